#!/usr/bin/env python3
"""Prepares the comparison of a model of integers with another runtime, layer by layer and picture by picture (scripts/bench quantised):

    quantised_layers.py layers MODEL.onnx FOLDER
    quantised_layers.py pictures MODEL.onnx PICTURES FOLDER COUNT

layers: FOLDER/exposed.onnx, the model with every tensor of bytes that a node makes as an output too; FOLDER/layers.onnx, the same nodes, each of
which reads such tensors as inputs of the graph, so that what follows a tensor of bytes is fed with bytes that are given; and the list of them.
pictures: COUNT .npy files of the model's input: crops of the pictures, and every second one drawn (stripes, discs, noise).
Wants python3-onnx, numpy and, for pictures, python3-pil.
"""
import glob
import json
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

BYTES = (TensorProto.UINT8, TensorProto.INT8)
# These give bytes of the type of their zero point, which shape inference does not know of all of them.
ROUNDING = {'QuantizeLinear': 2, 'QLinearConv': 7, 'QLinearMatMul': 7, 'QGemm': 8, 'QLinearAdd': 7, 'QLinearMul': 7, 'QLinearSigmoid': 4,
            'QLinearLeakyRelu': 4, 'QLinearGlobalAveragePool': 4, 'QLinearAveragePool': 4, 'QLinearConcat': 1}


def shape_of(value):
    return [d.dim_value if d.dim_value > 0 else 1 for d in value.type.tensor_type.shape.dim]


def types_of(model):
    graph = onnx.shape_inference.infer_shapes(model).graph
    types = {v.name: v.type.tensor_type.elem_type for v in list(graph.value_info) + list(graph.output)}
    constants = {i.name: i.data_type for i in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == 'Constant':
            constants[node.output[0]] = node.attribute[0].t.data_type
    for node in model.graph.node:
        at = ROUNDING.get(node.op_type)
        if at is not None:
            named = at < len(node.input) and node.input[at]
            types[node.output[0]] = constants.get(node.input[at], TensorProto.UINT8) if named else TensorProto.UINT8
        if node.op_type == 'DynamicQuantizeLinear':
            types[node.output[0]] = TensorProto.UINT8
    return types


def cuts_of(model):
    """Tensors of bytes that nodes make from what is given at run time, with their types."""
    known = {i.name for i in model.graph.initializer} | {''}
    types, cuts = types_of(model), {}
    for node in model.graph.node:
        if all(name in known for name in node.input):
            known.update(node.output)
            continue
        if types.get(node.output[0]) in BYTES:
            cuts[node.output[0]] = types[node.output[0]]
    return cuts


def write_layers(path, folder):
    model = onnx.load(path)
    for value in model.graph.input:  # a batch of one
        for dim in value.type.tensor_type.shape.dim:
            dim.dim_value = max(dim.dim_value, 1)
    cuts = cuts_of(model)
    outputs = {o.name for o in model.graph.output}
    exposed = onnx.ModelProto()
    exposed.CopyFrom(model)
    for name, kind in cuts.items():
        if name not in outputs:
            exposed.graph.output.append(helper.make_tensor_value_info(name, kind, None))
    onnx.save(exposed, os.path.join(folder, 'exposed.onnx'))
    for node in model.graph.node:
        node.input[:] = [name + '.given' if name in cuts else name for name in node.input]
    used = {name for node in model.graph.node for name in node.input}
    graph = exposed.graph
    model.graph.output.extend(o for o in graph.output if o.name not in outputs)
    with open(os.path.join(folder, 'layers.json'), 'w') as file:
        given = [n for n in cuts if n + '.given' in used]
        json.dump({'cuts': list(cuts), 'given': given, 'signed': [n for n in cuts if cuts[n] == TensorProto.INT8]}, file)
    # Their shapes are those that the exposed model gives: `finish` adds them as inputs.
    onnx.save(model, os.path.join(folder, 'layers.onnx'))


def finish(folder):
    """Gives layers.onnx its inputs, whose shapes are in shapes.json."""
    path = os.path.join(folder, 'layers.onnx')
    model = onnx.load(path)
    with open(os.path.join(folder, 'layers.json')) as file:
        layers = json.load(file)
    with open(os.path.join(folder, 'shapes.json')) as file:
        shapes = json.load(file)
    for name in layers['given']:
        kind = TensorProto.INT8 if name in layers['signed'] else TensorProto.UINT8
        model.graph.input.append(helper.make_tensor_value_info(name + '.given', kind, shapes[name]))
    for output in model.graph.output:
        if output.name in shapes:
            kind = output.type.tensor_type.elem_type
            output.CopyFrom(helper.make_tensor_value_info(output.name, kind, shapes[output.name]))
    onnx.save(model, path)


def drawn(random, height, width):
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    angle, period = random.uniform(0, np.pi), random.uniform(4, 40)
    image = np.empty((height, width, 3), np.float32)
    stripes = 0.5 + 0.5 * np.sin((np.cos(angle) * x + np.sin(angle) * y) * 2 * np.pi / period)
    disc = (x - random.uniform(0, width)) ** 2 + (y - random.uniform(0, height)) ** 2 < random.uniform(10, height / 2) ** 2
    for channel in range(3):
        image[..., channel] = np.where(disc, random.uniform(0, 1), stripes * random.uniform(0, 1))
    return np.clip(image + random.normal(0, random.uniform(0, 0.1), image.shape), 0, 1)


def write_pictures(path, pictures, folder, count):
    from PIL import Image
    value = onnx.load(path, load_external_data=False).graph.input[0]
    shape = shape_of(value)
    channels, height, width = shape[1:] if len(shape) == 4 else (1, shape[-2], shape[-1])
    files = sorted(glob.glob(os.path.join(pictures, '*.png')))
    random = np.random.RandomState(7)
    for i in range(count):
        if i % 2:
            image = drawn(random, height, width)
        else:
            photo = Image.open(files[i // 2 % len(files)]).convert('RGB')
            side = int(random.uniform(0.3, 1.0) * min(photo.size))
            left, top = random.randint(photo.size[0] - side + 1), random.randint(photo.size[1] - side + 1)
            image = np.asarray(photo.crop((left, top, left + side, top + side)).resize((width, height)), np.float32) / 255
        image = (image - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
        image = image if channels == 3 else image.mean(axis=2, keepdims=True)
        np.save(os.path.join(folder, f'{i}.npy'), image.transpose(2, 0, 1).reshape(shape).astype(np.float32))


if __name__ == '__main__':
    if sys.argv[1:2] == ['layers'] and len(sys.argv) == 4:
        write_layers(sys.argv[2], sys.argv[3])
    elif sys.argv[1:2] == ['finish'] and len(sys.argv) == 3:
        finish(sys.argv[2])
    elif sys.argv[1:2] == ['pictures'] and len(sys.argv) == 6:
        write_pictures(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
    else:
        sys.exit(__doc__)
