#!/usr/bin/env python3
"""Writes small image networks of bytes in the styles of several makers, for comparison with another runtime (docs/quantisation.md):

    python3 qdq_styles.py FOLDER

Wants python3-onnx and numpy. The weights are seeded; scales come from running the network in f32 on seeded inputs.
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Net:
    """A graph that is computed in f32 while it is made, so that every value has a range."""

    def __init__(self, signed, per_channel, symmetric, qoperator, seed):
        self.signed, self.per_channel, self.symmetric, self.qoperator = signed, per_channel, symmetric, qoperator
        self.random = np.random.RandomState(seed)
        self.nodes, self.initialisers, self.values, self.linear, self.count = [], [], {}, {}, 0

    def name(self, stem):
        self.count += 1
        return f'{stem}_{self.count}'

    def constant(self, stem, array):
        name = self.name(stem)
        self.initialisers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op, inputs, stem=None, domain='', **attributes):
        out = self.name(stem or op)
        self.nodes.append(helper.make_node(op, inputs, [out], name=out + '_node', domain=domain, **attributes))
        return out

    def range_of(self, value):
        low, high = min(float(value.min()), 0.0), max(float(value.max()), 1e-3)
        kind = np.int8 if self.signed else np.uint8
        if self.symmetric and self.signed:
            return np.float32(max(-low, high) / 127), kind(0)
        scale = np.float32((high - low) / 255)
        zero = round(-low / float(scale)) - (128 if self.signed else 0)
        return scale, kind(zero)

    def quantised(self, real_name, value, linear=None):
        """Gives the DequantizeLinear of `real_name` rounded; the value is rounded too."""
        scale, zero = linear or self.range_of(value)
        s, z = self.constant('scale', scale), self.constant('zero', zero)
        q = self.node('QuantizeLinear', [real_name, s, z], 'q')
        d = self.node('DequantizeLinear', [q, s, z], 'd')
        info = np.iinfo(zero.dtype)
        rounded = np.clip(np.rint(value / scale) + float(zero), info.min, info.max)
        self.values[d] = ((rounded - float(zero)) * scale).astype(np.float32)
        self.linear[d] = (scale, zero, s, z, q)
        return d

    def weight(self, shape, axis=0):
        w = self.random.randn(*shape).astype(np.float32) / np.sqrt(np.prod(shape) / shape[axis])
        others = tuple(a for a in range(len(shape)) if a != axis)
        most = np.abs(w).max(axis=others) if self.per_channel else np.abs(w).max()
        scale = (most / 127).astype(np.float32)
        wide = scale.reshape([-1 if a == axis else 1 for a in range(len(shape))]) if self.per_channel else scale
        q = np.clip(np.rint(w / wide), -127, 127).astype(np.int8)
        names = self.constant('w', q), self.constant('w_scale', scale), self.constant('w_zero', np.zeros_like(scale, dtype=np.int8))
        return names, (q * wide).astype(np.float32), scale

    def layer(self, x, outputs, kernel=1, stride=1, groups=1, then=None):
        inputs = self.values[x].shape[1]
        names, w, scale = self.weight((outputs, inputs // groups, kernel, kernel))
        x_scale, _, s, z, q = self.linear[x]
        bias = np.rint(self.random.randn(outputs) * 0.2 / (x_scale * scale)).astype(np.int32)
        bias_scale = (x_scale * scale).astype(np.float32)
        pad = kernel // 2
        attributes = dict(kernel_shape=[kernel] * 2, pads=[pad] * 4, strides=[stride] * 2, group=groups)
        real = convolve(self.values[x], w, stride, pad, groups) + (bias * bias_scale).reshape(1, -1, 1, 1)
        if then == 'Relu':
            real = np.maximum(real, 0)
        b = self.constant('bias', bias)
        if self.qoperator:
            y_scale, y_zero = self.range_of(real)  # of a Relu it begins at zero, and so the bytes do its work
            ys, yz = self.constant('scale', y_scale), self.constant('zero', y_zero)
            y = self.node('QLinearConv', [q, s, z, names[0], names[1], names[2], ys, yz, b], 'q', **attributes)
            d = self.node('DequantizeLinear', [y, ys, yz], 'd')
            info = np.iinfo(y_zero.dtype)
            self.values[d] = ((np.clip(np.rint(real / y_scale) + float(y_zero), info.min, info.max) - float(y_zero)) * y_scale).astype(np.float32)
            self.linear[d] = (y_scale, y_zero, ys, yz, y)
            return d
        axis = dict(axis=0) if self.per_channel else {}
        wd = self.node('DequantizeLinear', list(names), 'wd', **axis)
        zeros = self.constant('bias_zero', np.zeros_like(bias_scale, dtype=np.int32))
        bd = self.node('DequantizeLinear', [b, self.constant('bias_scale', bias_scale), zeros], 'bd', **axis)
        y = self.node('Conv', [x, wd, bd], 'conv', **attributes)
        if then == 'Relu':
            y = self.node('Relu', [y])
        return self.quantised(y, real)

    def unary(self, x, op, function, **attributes):
        return self.quantised(self.node(op, [x], **attributes), function(self.values[x]))

    def binary(self, a, b, op, function):
        return self.quantised(self.node(op, [a, b]), function(self.values[a], self.values[b]))

    def pool(self, x):
        v = self.values[x].mean(axis=(2, 3), keepdims=True)
        return self.quantised(self.node('GlobalAveragePool', [x]), v)


def convolve(x, w, stride, pad, groups):
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    n, c, h, width = x.shape
    outputs, each, kh, kw = w.shape
    oh, ow = (h - kh) // stride + 1, (width - kw) // stride + 1
    out = np.zeros((n, outputs, oh, ow), np.float32)
    per = outputs // groups
    for g in range(groups):
        for i in range(kh):
            for j in range(kw):
                part = x[:, g * each:(g + 1) * each, i:i + oh * stride:stride, j:j + ow * stride:stride]
                out[:, g * per:(g + 1) * per] += np.einsum('nchw,oc->nohw', part, w[g * per:(g + 1) * per, :, i, j])
    return out


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def build(path, signed=False, per_channel=True, symmetric=False, qoperator=False, seed=1):
    net = Net(signed, per_channel, symmetric, qoperator, seed)
    image = np.random.RandomState(seed + 100).randn(1, 3, 32, 32).astype(np.float32)
    x = net.quantised('input', image)
    x = net.layer(x, 16, 3, 2, then='Relu')
    skip = x
    x = net.layer(x, 32, 1, then='Relu')
    x = net.layer(x, 32, 3, groups=32)
    if not qoperator:
        x = net.unary(x, 'HardSwish', lambda v: v * np.clip(v / 6 + 0.5, 0, 1))
        gate = net.layer(net.pool(x), 8, then='Relu')
        gate = net.unary(net.layer(gate, 32), 'HardSigmoid', lambda v: np.clip(v / 6 + 0.5, 0, 1), alpha=1 / 6)
        x = net.binary(x, gate, 'Mul', np.multiply)
    x = net.layer(x, 16)
    x = net.binary(x, skip, 'Add', np.add)
    if not qoperator:
        x = net.unary(x, 'LeakyRelu', lambda v: np.where(v < 0, 0.1 * v, v).astype(np.float32), alpha=0.1)
    a, b = net.layer(x, 16, 3, then='Relu'), net.layer(x, 24, 1, groups=4)
    joined = np.concatenate([net.values[a], net.values[b]], axis=1)
    x = net.quantised(net.node('Concat', [a, b], axis=1), joined)
    size = net.constant('scales', np.array([1, 1, 2, 2], np.float32))
    up = net.node('Resize', [x, '', size], mode='nearest', coordinate_transformation_mode='asymmetric', nearest_mode='floor')
    x = net.quantised(up, net.values[x].repeat(2, axis=2).repeat(2, axis=3), net.linear[x][:2])
    x = net.unary(net.layer(x, 20, 3, 2), 'Sigmoid', sigmoid)
    x = net.pool(x)
    net.nodes.append(helper.make_node('Flatten', [x], ['output'], axis=1))
    graph = helper.make_graph(net.nodes, 'styles', [helper.make_tensor_value_info('input', TensorProto.FLOAT, [1, 3, 32, 32])],
                              [helper.make_tensor_value_info('output', TensorProto.FLOAT, [1, 20])], net.initialisers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 14), helper.make_opsetid('com.microsoft', 1)], ir_version=8)
    onnx.checker.check_model(model, full_check=False)
    onnx.save(model, path)
    np.save(path.replace('.onnx', '.in.npy'), image)


if __name__ == '__main__':
    folder = sys.argv[1] if len(sys.argv) > 1 else sys.exit(__doc__)
    build(f'{folder}/u8_channel.onnx', seed=1)
    build(f'{folder}/u8_tensor.onnx', per_channel=False, seed=2)
    build(f'{folder}/i8_asymmetric.onnx', signed=True, seed=3)
    build(f'{folder}/i8_symmetric.onnx', signed=True, symmetric=True, seed=4)
    build(f'{folder}/i8_symmetric_tensor.onnx', signed=True, symmetric=True, per_channel=False, seed=5)
    build(f'{folder}/qoperator_u8.onnx', qoperator=True, seed=6)
    build(f'{folder}/qoperator_i8.onnx', qoperator=True, signed=True, seed=7)
