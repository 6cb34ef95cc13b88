#!/usr/bin/env python3
"""Writes graphs of bytes in the styles of those who make them, for `scripts/bench quantised` and `scripts/bench zoo`:

    quantised_graphs.py FOLDER [NAME ...]

static, static_signed, operators, dynamic, dynamic_conv, lite, lite_unsigned, fake, gates, old, new, products, segmentation, fused: nets of a few layers,
as quantisers of ONNX Runtime, converters from TFLite, exports of PyTorch, NNCF and compressors write them: scales for a tensor or a channel, u8 and
i8, zero points of weights, scales of the run time, QOperator, operator sets 10 to 21. softmax, resize: many small graphs of one operator each, over
types, axes, shapes, scales and coordinates. Without names: all of them. Weights are seeded. Wants python3-onnx and numpy.
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

FLOAT, U8, I8 = T.FLOAT, T.UINT8, T.INT8
NUMPY = {U8: np.uint8, I8: np.int8}


class Graph:
    def __init__(self, name, opset=13):
        self.name, self.opset, self.nodes, self.constants, self.inputs, self.outputs, self.count = name, opset, [], [], [], [], 0
        self.random = np.random.RandomState(sum(name.encode()))

    def constant(self, value, dtype=np.float32):
        self.count += 1
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), f'c{self.count}'))
        return f'c{self.count}'

    def node(self, op, inputs, domain='', count=1, **attributes):
        self.count += 1
        names = [f'v{self.count}' + (f'_{i}' if i else '') for i in range(count)]
        self.nodes.append(helper.make_node(op, inputs, names, domain=domain, name=f'{op}_{self.count}', **attributes))
        return names[0] if count == 1 else names

    def contrib(self, op, inputs, **attributes):
        return self.node(op, inputs, 'com.microsoft', **attributes)

    def input(self, shape, kind=FLOAT):
        name = f'x{len(self.inputs)}' if self.inputs else 'x'
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, value, kind=FLOAT):
        name = f'y{len(self.outputs)}' if self.outputs else 'y'
        self.nodes.append(helper.make_node('Identity', [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, kind, None))

    def save(self, folder):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid('', self.opset), helper.make_opsetid('com.microsoft', 1)]
        model = helper.make_model(graph, opset_imports=opsets)
        model.ir_version = 5 if self.opset < 12 else 8 if self.opset < 20 else 10
        onnx.save(model, os.path.join(folder, f'{self.name}.onnx'))

    # ---- bytes

    def scale(self, scale, zero, kind=U8):
        return [self.constant(scale), self.constant(zero, NUMPY[kind])]

    def quantised(self, x, q):
        return self.node('QuantizeLinear', [x, *self.scale(*q)])

    def pair(self, x, q):
        s = self.scale(*q)
        return self.node('DequantizeLinear', [self.node('QuantizeLinear', [x, *s]), *s])

    def bytes(self, shape, kind=I8, least=-127, most=127):
        return self.constant(self.random.randint(least, most + 1, shape), NUMPY[kind])

    def weight(self, shape, depth, axis=0, kind=I8, zero=0):
        """Bytes, their scales and zero points; axis None: one for all."""
        most = 1.6 / np.sqrt(depth) / 127
        count = 1 if axis is None else shape[axis]
        scales = most * self.random.uniform(0.5, 1.5, () if axis is None else (count,))
        zeros = np.full((), zero) if axis is None else zero + self.random.randint(-4, 5, count) * (zero != 0)
        values = self.bytes(shape, kind, -127 if kind == I8 else 0, 127 if kind == I8 else 255)
        return values, self.constant(scales), self.constant(zeros, NUMPY[kind]), scales

    def real_weight(self, *words, **named):
        axis = named.get('axis', 0)
        values, scale, zero, scales = self.weight(*words, **named)
        attributes = {} if axis is None or self.opset < 13 else {'axis': axis}
        return self.node('DequantizeLinear', [values, scale, zero], **attributes), scales

    def whole_bias(self, count, scales):
        scales = np.broadcast_to(np.asarray(scales, np.float32), (count,))
        values = self.constant(self.random.randint(-3000, 3000, count), np.int32)
        return self.node('DequantizeLinear', [values, self.constant(scales), self.constant(np.zeros(count), np.int32)], axis=0)

    def conv(self, x, channels, outputs, kernel, q, axis=0, stride=1, group=1, kind=I8, zero=0):
        """A convolution of reals that stand for bytes."""
        depth = channels // group * kernel * kernel
        w, scales = self.real_weight([outputs, channels // group, kernel, kernel], depth, axis=axis, kind=kind, zero=zero)
        bias = self.whole_bias(outputs, q[0] * scales) if self.opset >= 13 else self.constant(self.random.normal(0, 0.1, outputs))
        return self.node('Conv', [x, w, bias], kernel_shape=[kernel, kernel], pads=[kernel // 2] * 4, strides=[stride, stride], group=group)


# As observed ranges give them: of round ones, such as 0.03 and 0.02, sums would lie halfway between two steps by the hundred.
UNSIGNED, SIGNED, POSITIVE, POSITIVE_SIGNED = (0.030411, 125, U8), (0.029573, -3, I8), (0.020137, 0, U8), (0.019871, -128, I8)


def residual_net(g, q, axis, kind=I8, zero=0, relu=POSITIVE, classes=(0.083, 120, U8)):
    x = g.pair(g.input([1, 3, 64, 64]), q)
    a = g.pair(g.node('Relu', [g.conv(x, 3, 32, 3, q, axis, 2, 1, kind, zero)]), relu)
    b = g.pair(g.node('Relu', [g.conv(a, 32, 32, 3, relu, axis, 1, 1, kind, zero)]), relu)
    c = g.pair(g.conv(b, 32, 32, 3, relu, axis, 1, 1, kind, zero), q)
    d = g.pair(g.node('Relu', [g.node('Add', [c, a])]), relu)
    e = g.pair(g.node('MaxPool', [d], kernel_shape=[2, 2], strides=[2, 2]), relu)
    f = g.pair(g.node('GlobalAveragePool', [e]), relu)
    h = g.pair(g.node('Flatten', [f]), relu)
    w, scales = g.real_weight([10, 32], 32, axis=axis, kind=kind, zero=zero)
    g.output(g.pair(g.node('Gemm', [h, w, g.whole_bias(10, relu[0] * scales)], transB=1), classes))


def static(g):
    residual_net(g, UNSIGNED, None)


def static_signed(g):
    residual_net(g, SIGNED, 0, relu=POSITIVE_SIGNED, classes=(0.0831, 5, I8))


def operators(g):
    def conv(x, q, channels, outputs, kernel, to):
        w, scale, zero, _ = g.weight([outputs, channels, kernel, kernel], channels * kernel * kernel, axis=0)
        bias = g.constant(g.random.randint(-2000, 2000, outputs), np.int32)
        return g.node('QLinearConv', [x, *q, w, scale, zero, *to, bias], kernel_shape=[kernel] * 2, pads=[kernel // 2] * 4)
    q, p = g.scale(*UNSIGNED), g.scale(*POSITIVE)
    a = conv(g.node('QuantizeLinear', [g.input([1, 3, 48, 48]), *q]), q, 3, 32, 3, p)
    b = conv(a, p, 32, 32, 3, q)
    s = g.contrib('QLinearAdd', [b, *q, a, *p, *p])
    m = g.node('MaxPool', [s], kernel_shape=[2, 2], strides=[2, 2])
    l = g.contrib('QLinearLeakyRelu', [m, *p, *q], alpha=0.1)
    t = g.contrib('QLinearConcat', [*p, l, *q, m, *p], axis=1)
    v = g.contrib('QLinearAveragePool', [t, *p, *p], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    w = g.contrib('QLinearSigmoid', [v, *p, *g.scale(1 / 256, 0)])
    u = g.contrib('QLinearMul', [v, *p, w, *g.scale(1 / 256, 0), *p])
    f = g.node('Flatten', [g.contrib('QLinearGlobalAveragePool', [u, *p, *p])])
    w, scale, zero, _ = g.weight([10, 64], 64, axis=0)
    bias = g.constant(g.random.randint(-2000, 2000, 10), np.int32)
    o = g.scale(0.0517, 128)
    y = g.contrib('QGemm', [f, *p, w, scale, zero, bias, *o], transB=1)
    g.output(g.node('DequantizeLinear', [y, *o]))


def dynamic(g):
    x = g.input([32, 256])
    for kind, axis, outputs in [(I8, 1, 512), (U8, None, 256)]:
        q, scale, zero = g.node('DynamicQuantizeLinear', [x], count=3)
        depth = 256 if axis == 1 else 512
        w, w_scale, w_zero, _ = g.weight([depth, outputs], depth, axis=axis, kind=kind, zero=0 if kind == I8 else 117)
        sums = g.node('Cast', [g.node('MatMulInteger', [q, w, zero, w_zero])], to=FLOAT)
        y = g.node('Add', [g.node('Mul', [sums, g.node('Mul', [scale, w_scale])]), g.constant(g.random.normal(0, 0.1, outputs))])
        x = g.node('Relu', [y])
    g.output(x)


def dynamic_conv(g):
    x = g.input([1, 8, 40, 40])
    for channels, outputs in [(8, 32), (32, 32)]:
        q, scale, zero = g.node('DynamicQuantizeLinear', [x], count=3)
        w, w_scale, w_zero, _ = g.weight([outputs, channels, 3, 3], channels * 9, axis=None, kind=U8, zero=121)
        sums = g.node('Cast', [g.node('ConvInteger', [q, w, zero, w_zero], kernel_shape=[3, 3], pads=[1] * 4)], to=FLOAT)
        bias = g.constant(g.random.normal(0, 0.1, (1, outputs, 1, 1)))
        x = g.node('Relu', [g.node('Add', [g.node('Mul', [sums, g.node('Mul', [scale, w_scale])]), bias])])
    g.output(x)


def lite_net(g, axis, kind, zero, q, positive, probabilities):
    """NHWC outside, depthwise inside, a softmax of bytes at the end."""
    x = g.node('DequantizeLinear', [g.input([1, 48, 48, 3], q[2]), *g.scale(*q)])
    x = g.pair(g.node('Transpose', [x], perm=[0, 3, 1, 2]), q)
    a = g.pair(g.node('Clip', [g.conv(x, 3, 24, 3, q, axis, 2, 1, kind, zero), g.constant(0), g.constant(6)]), positive)
    b = g.pair(g.node('Clip', [g.conv(a, 24, 24, 3, positive, axis, 1, 24, kind, zero), g.constant(0), g.constant(6)]), positive)
    c = g.pair(g.conv(b, 24, 48, 1, positive, axis, 1, 1, kind, zero), q)
    p = g.pair(g.node('AveragePool', [c], kernel_shape=[24, 24]), q)
    f = g.pair(g.node('Reshape', [g.node('Transpose', [p], perm=[0, 2, 3, 1]), g.constant([1, 48], np.int64)]), q)
    w, scales = g.real_weight([48, 12], 48, axis=None if axis is None else 1, kind=kind, zero=zero)
    m = g.pair(g.node('Add', [g.node('MatMul', [f, w]), g.whole_bias(12, q[0] * scales)]), q)
    g.output(g.quantised(g.node('Softmax', [m], axis=-1), probabilities), q[2])


def lite(g):
    lite_net(g, 0, I8, 0, SIGNED, (6 / 255, -128, I8), (1 / 256, -128, I8))


def lite_unsigned(g):
    lite_net(g, None, U8, 120, UNSIGNED, (6 / 255, 0, U8), (1 / 256, 0, U8))


def fake(g):
    """Floats rounded by QuantizeLinear and DequantizeLinear, weights too, with a scale a channel and seven bits of activations."""
    q = (0.0597, 62, U8)
    x = g.pair(g.input([1, 16, 40, 40]), q)
    for outputs, kernel in [(32, 3), (32, 1), (16, 3)]:
        channels = 16 if outputs == 32 and kernel == 3 else 32
        w = g.constant(g.random.normal(0, 1 / np.sqrt(channels * kernel * kernel), (outputs, channels, kernel, kernel)))
        s = [g.constant(np.full(outputs, 0.01) * g.random.uniform(0.5, 1.5, outputs)), g.constant(np.zeros(outputs), np.int8)]
        w = g.node('DequantizeLinear', [g.node('QuantizeLinear', [w, *s], axis=0), *s], axis=0)
        c = g.node('Conv', [x, w, g.constant(g.random.normal(0, 0.1, outputs))], kernel_shape=[kernel] * 2, pads=[kernel // 2] * 4)
        x = g.pair(g.node('Relu', [c]), (0.0313, 0, U8))
    g.output(x)


def gates(g):
    """HardSwish, squeezing and exciting."""
    q = (0.0413, 100, U8)
    x = g.pair(g.input([1, 16, 32, 32]), q)
    c = g.pair(g.conv(x, 16, 32, 1, q), q)
    h = g.pair(g.node('Mul', [c, g.pair(g.node('HardSigmoid', [c], alpha=1 / 6, beta=0.5), (1 / 255, 0, U8))]), q)
    s = g.pair(g.node('GlobalAveragePool', [h]), q)
    s = g.pair(g.node('Relu', [g.conv(s, 32, 8, 1, q)]), POSITIVE)
    s = g.pair(g.node('HardSigmoid', [g.pair(g.conv(s, 8, 32, 1, POSITIVE), q)], alpha=0.2, beta=0.5), (1 / 255, 0, U8))
    m = g.pair(g.node('Mul', [h, s]), q)
    g.output(g.pair(g.conv(m, 32, 16, 1, q), q))


def old(g):
    q, p = g.scale(*UNSIGNED), g.scale(*POSITIVE)
    w, scale, zero, _ = g.weight([16, 3, 3, 3], 27, axis=None, kind=U8, zero=128)
    x = g.node('QuantizeLinear', [g.input([1, 3, 32, 32]), *q])
    c = g.node('QLinearConv', [x, *q, w, scale, zero, *p], kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2])
    f = g.node('QuantizeLinear', [g.node('Flatten', [g.node('AveragePool', [g.node('DequantizeLinear', [c, *p])], kernel_shape=[4, 4], strides=[4, 4])]), *p])
    w, scale, zero, _ = g.weight([256, 10], 256, axis=None, kind=I8)
    y = g.node('QLinearMatMul', [f, *p, w, scale, zero, *q])
    g.output(g.node('DequantizeLinear', [y, *q]))


def new(g):
    """Operator set 21: attention between bytes, a layer norm between reals."""
    q, s = (0.0303, -4, I8), (1 / 256, -128, I8)
    x = g.pair(g.input([1, 24, 64]), q)

    def dense(x, inputs, outputs, to):
        w = g.real_weight([inputs, outputs], inputs, axis=1)[0]
        return g.pair(g.node('Add', [g.node('MatMul', [x, w]), g.constant(g.random.normal(0, 0.1, (1, 1, outputs)))]), to)

    def heads(x, perm):
        return g.pair(g.node('Transpose', [g.pair(g.node('Reshape', [x, g.constant([1, 24, 4, 16], np.int64)]), q)], perm=perm), q)
    a = heads(dense(x, 64, 64, q), [0, 2, 1, 3])
    b = heads(dense(x, 64, 64, q), [0, 2, 3, 1])
    v = heads(dense(x, 64, 64, q), [0, 2, 1, 3])
    t = g.pair(g.node('Mul', [g.pair(g.node('MatMul', [a, b]), (0.0971, 0, I8)), g.constant(0.25)]), q)
    o = g.pair(g.node('MatMul', [g.pair(g.node('Softmax', [t], axis=-1), s), v]), q)
    o = g.pair(g.node('Reshape', [g.pair(g.node('Transpose', [o], perm=[0, 2, 1, 3]), q), g.constant([1, 24, 64], np.int64)]), q)
    r = g.node('Add', [dense(o, 64, 64, q), x])
    n = g.node('LayerNormalization', [r, g.constant(np.ones(64)), g.constant(np.zeros(64))], axis=-1)
    g.output(dense(g.pair(n, q), 64, 96, (0.0529, 0, I8)))


def products(g):
    q, s = g.scale(*UNSIGNED), g.scale(1 / 256, 0)
    a = g.node('QuantizeLinear', [g.input([4, 40, 32]), *q])
    b = g.node('QuantizeLinear', [g.input([4, 32, 40]), *q])
    t = g.node('QLinearMatMul', [a, *q, b, *q, *g.scale(0.0971, 128)])
    p = g.contrib('QLinearSoftmax', [t, *g.scale(0.0971, 128), *s], axis=-1, opset=13)
    y = g.node('QLinearMatMul', [p, *s, a, *q, *q])
    g.output(g.node('DequantizeLinear', [y, *q]))


def segmentation(g):
    q = (0.0307, 118, U8)
    x = g.pair(g.input([1, 3, 64, 64]), UNSIGNED)
    a = g.pair(g.node('Relu', [g.conv(x, 3, 16, 3, UNSIGNED, 0, 2)]), POSITIVE)
    b = g.pair(g.node('Relu', [g.conv(a, 16, 32, 3, POSITIVE, 0, 2)]), POSITIVE)
    sizes = [g.constant([], np.float32), g.constant([], np.float32), g.constant([1, 32, 32, 32], np.int64)]
    u = g.pair(g.node('Resize', [b, *sizes], mode='linear', coordinate_transformation_mode='pytorch_half_pixel'), POSITIVE)
    c = g.pair(g.node('Concat', [u, a], axis=1), POSITIVE)
    d = g.pair(g.conv(c, 48, 8, 1, POSITIVE), q)
    up = [g.constant([], np.float32), g.constant([1, 1, 2, 2])]
    g.output(g.pair(g.node('Resize', [d, *up], mode='linear', coordinate_transformation_mode='align_corners'), q))


def fused(g):
    """Operators of com.microsoft that quantise as they multiply."""
    x = g.input([16, 128])
    w, scale, zero, _ = g.weight([128, 96], 128, axis=1)
    a = g.contrib('DynamicQuantizeMatMul', [x, w, scale, zero, g.constant(g.random.normal(0, 0.1, 96))])
    q, q_scale, q_zero = g.node('DynamicQuantizeLinear', [a], count=3)
    w, scale, zero, _ = g.weight([96, 64], 96, axis=None, kind=U8, zero=130)
    g.output(g.contrib('MatMulIntegerToFloat', [q, w, q_scale, scale, q_zero, zero, g.constant(g.random.normal(0, 0.1, 64))]))


OPSETS = {'old': 10, 'new': 21, 'dynamic': 11, 'operators': 12, 'products': 15, 'fused': 14}
NETS = [static, static_signed, operators, dynamic, dynamic_conv, lite, lite_unsigned, fake, gates, old, new, products, segmentation, fused]


def one_operator(folder, name, opset, op, shape, kind, scales, constants=(), **attributes):
    g = Graph(name, opset)
    x = g.node('DequantizeLinear', [g.input(shape, kind), *g.scale(*scales[0], kind)])
    y = g.node(op, [x, *(g.constant(*c) for c in constants)], **attributes)
    g.output(g.quantised(y, (*scales[1], kind)), kind)
    g.save(folder)


def softmax(folder):
    random, n = np.random.RandomState(3), 0
    shapes = [([1, 10], -1), ([4, 1000], -1), ([2, 3, 7], 1), ([2, 5, 4, 6], 1), ([3, 64], -1), ([1, 8, 16, 16], -1), ([5, 2], 1), ([2, 33], 0),
              ([8, 49], -1), ([1, 1001], 1)]
    for kind, least in [(U8, 0), (I8, -128)]:
        for shape, axis in shapes:
            for scale in (0.003, 0.02, 0.1, 0.5, 3.0):
                for out, zero in ((1 / 256, 0), (1 / 255, 0), (0.0039, 0), (0.008, 3), (1 / 700, 0)):
                    if (scale, out) != (0.1, 1 / 256) and random.rand() < 0.85:
                        continue
                    opset = 13 if axis != -1 or random.rand() < 0.7 else 11
                    axis_of_opset = axis if opset == 13 else len(shape) - 1
                    one_operator(folder, f'softmax_{n}', opset, 'Softmax', shape, kind, [(scale, least + 128), (out, least + zero)], axis=axis_of_opset)
                    n += 1


def resize(folder):
    shapes = [([1, 3, 7, 9], [2, 2]), ([2, 4, 8, 8], [1.7, 2.3]), ([1, 2, 16, 16], [0.5, 0.5]), ([1, 1, 10, 12], [3, 1]), ([1, 5, 6, 6], [1, 2.5]),
              ([1, 3, 5, 5], [4, 4]), ([1, 70, 9, 11], [2, 3]), ([1, 3, 13, 17], [0.37, 0.61])]
    n = 0
    for kind, least in [(U8, 0), (I8, -128)]:
        for shape, scale in shapes:
            for coordinates in ('half_pixel', 'asymmetric', 'align_corners', 'pytorch_half_pixel'):
                out = [int(np.float32(a) * np.float32(b)) for a, b in zip(shape, [1, 1, *scale])]
                constants = [([],), ([1, 1, *scale],)] if coordinates != 'align_corners' else [([],), ([],), (out, np.int64)]
                scales = [(0.07, least + 5), (0.07, least + 5) if n % 3 else (0.06, least + 9)]
                one_operator(folder, f'resize_{n}', 13, 'Resize', shape, kind, scales, constants, mode='linear',
                             coordinate_transformation_mode=coordinates)
                n += 1


def write_nets(usage, nets, opsets):
    """The nets that the command line names, or all of them, into its folder. Returns both."""
    if len(sys.argv) < 2 or sys.argv[1].startswith('-'):
        sys.exit(usage)
    folder, names = sys.argv[1], sys.argv[2:]
    os.makedirs(folder, exist_ok=True)
    for net in nets:
        if not names or net.__name__ in names:
            g = Graph(net.__name__, opsets.get(net.__name__, 13))
            net(g)
            g.save(folder)
    return folder, names


def main():
    folder, names = write_nets(__doc__, NETS, OPSETS)
    for grid in (softmax, resize):
        if not names or grid.__name__ in names:
            grid(folder)


if __name__ == '__main__':
    main()
