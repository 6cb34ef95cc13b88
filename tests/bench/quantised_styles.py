#!/usr/bin/env python3
"""Writes more graphs of bytes in the styles of those who make them, as quantised_graphs.py does:

    quantised_styles.py FOLDER [NAME ...]

Weights whose channels lie on another axis than the first, sums of integers alone, Gemm of all kinds, what is no layer among bytes, means of many
windows, shuffled channels, lines in place of images, transposed convolutions, an LSTM, weights of 4 bits in blocks, scales of f16, weights alone,
activations of 16 bits, norms and GELU spelt out, QOperator of i8. Weights are seeded. Wants python3-onnx and numpy.
"""

import numpy as np
import onnx
from onnx import TensorProto as T

from quantised_graphs import I8, POSITIVE, POSITIVE_SIGNED, SIGNED, U8, UNSIGNED, Graph, write_nets

UINT4, INT4 = 21, 22  # older releases of python3-onnx do not name them


def noise(g, *shape):
    return g.constant(g.random.normal(0, 0.1, shape))


def dense(g, x, inputs, outputs, q, kind=I8, zero=0, **attributes):
    """Gemm of a weight [outputs, inputs]."""
    w, scales = g.real_weight([outputs, inputs], inputs, axis=0, kind=kind, zero=zero)
    return g.node('Gemm', [x, w, g.whole_bias(outputs, q[0] * scales)], transB=1, **attributes)


def lite_axis(g):
    """Weights OHWI, quantised along the axis of outputs and transposed before each layer; images NHWC around it."""
    q, p = SIGNED, (6 / 255, -128, I8)
    x = g.node('DequantizeLinear', [g.input([1, 40, 40, 3], I8), *g.scale(*q)])

    def layer(x, inputs, outputs, kernel, q_in, stride=1, depthwise=False):
        if depthwise:
            w, scales = g.real_weight([1, kernel, kernel, inputs], kernel * kernel, axis=3)
        else:
            w, scales = g.real_weight([outputs, kernel, kernel, inputs], kernel * kernel * inputs, axis=0)
        w = g.node('Transpose', [w], perm=[3, 0, 1, 2] if depthwise else [0, 3, 1, 2])
        c = g.node('Conv', [g.node('Transpose', [x], perm=[0, 3, 1, 2]), w, g.whole_bias(outputs, q_in[0] * scales)],
                   kernel_shape=[kernel, kernel], auto_pad='SAME_UPPER', strides=[stride, stride], group=inputs if depthwise else 1)
        return g.pair(g.node('Transpose', [g.node('Clip', [c, g.constant(0), g.constant(6)])], perm=[0, 2, 3, 1]), p)
    x = layer(x, 3, 16, 3, q, 2)
    for outputs, stride in [(32, 1), (32, 2)]:
        inputs = 16 if stride == 1 else 32
        x = layer(layer(x, inputs, inputs, 3, p, stride, True), inputs, outputs, 1, p)
    m = g.pair(g.node('ReduceMean', [x], axes=[1, 2], keepdims=0), p)
    w, scales = g.real_weight([8, 32], 32, axis=0)
    m = g.node('Add', [g.node('MatMul', [m, g.node('Transpose', [w], perm=[1, 0])]), g.whole_bias(8, p[0] * scales)])
    g.output(g.quantised(m, q), I8)


def sums(g):
    """ConvInteger and MatMulInteger whose sums are the result."""
    x = g.input([1, 16, 20, 20], U8)
    c = g.node('ConvInteger', [x, g.bytes([24, 16, 3, 3]), g.constant(3, np.uint8)], kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2])
    g.output(c, T.INT32)
    w = g.bytes([64, 40], U8, 0, 255)
    g.output(g.node('MatMulInteger', [g.input([8, 64], I8), w, g.constant(-3, np.int8), g.constant(120, np.uint8)]), T.INT32)


def gemms(g):
    q = UNSIGNED
    x = g.pair(g.input([16, 96]), q)
    w, scales = g.real_weight([96, 64], 96, axis=1)
    a = g.pair(g.node('Gemm', [x, w, g.whole_bias(64, q[0] * scales)]), q)
    b = g.pair(g.node('Relu', [dense(g, a, 64, 48, q, U8, 119)]), POSITIVE)
    w, _ = g.real_weight([48, 32], 48, axis=None, kind=U8, zero=130)
    c = g.pair(g.node('MatMul', [b, w]), q)
    w, _ = g.real_weight([32, 10], 32, axis=1)
    g.output(g.pair(g.node('Gemm', [c, w], alpha=0.5), q))


def around(g):
    """What is no layer among bytes."""
    q, p, none = UNSIGNED, POSITIVE, g.constant([], np.float32)
    around = g.constant([0, 0, 1, 1, 0, 0, 1, 1], np.int64)
    x = g.pair(g.node('Pad', [g.pair(g.input([1, 3, 32, 32]), q), around, g.constant(0.0)]), q)
    h = g.pair(g.node('HardSwish', [g.pair(g.conv(x, 3, 16, 3, q, 0, 2), q)]), q)
    c = g.pair(g.node('Clip', [g.conv(h, 16, 32, 3, q), g.constant(0), g.constant(6)]), p)
    r = g.pair(g.node('Pad', [c, around], mode='reflect'), p)
    slope = g.node('DequantizeLinear', [g.bytes([32, 1, 1]), g.constant(0.003), g.constant(0, np.int8)])
    d = g.pair(g.node('PRelu', [g.pair(g.conv(r, 32, 32, 3, p), q), slope]), q)
    twice = [d, none, g.constant([1, 1, 2, 2])]
    u = g.pair(g.node('Resize', twice, mode='nearest', coordinate_transformation_mode='asymmetric', nearest_mode='floor'), q)
    s = g.pair(g.node('Sub', [u, g.pair(g.node('Resize', twice, mode='cubic'), q)]), q)
    f = g.pair(g.conv(g.pair(g.node('Concat', [s, u], axis=1), q), 64, 16, 1, q), q)
    i = g.pair(g.node('InstanceNormalization', [f, g.constant(np.ones(16)), g.constant(np.zeros(16))]), q)
    g.output(g.pair(g.node('GlobalAveragePool', [g.pair(g.node('DepthToSpace', [i], blocksize=2), q)]), q))


def old_softmax(g):
    q = UNSIGNED
    f = g.pair(g.node('Flatten', [g.pair(g.conv(g.pair(g.input([1, 3, 16, 16]), q), 3, 8, 3, q, None, 2), q)]), q)
    w, _ = g.real_weight([10, 512], 512, axis=None)
    g.output(g.pair(g.node('Softmax', [g.pair(g.node('Gemm', [f, w, noise(g, 10)], transB=1), q)], axis=1), (1 / 256, 0, U8)))


def means(g):
    """Windows with and without padding, whole images; scales that make halves, and others."""
    windows = [([1, 24, 20, 20], [2, 2], [2, 2], [0] * 4, 0), ([1, 24, 21, 20], [3, 3], [1, 1], [1] * 4, 0),
               ([2, 19, 21, 20], [3, 3], [2, 2], [1] * 4, 1), ([1, 70, 12, 12], [5, 3], [1, 2], [2, 1, 2, 1], 0),
               ([1, 33, 7, 7], [7, 7], [1, 1], [0] * 4, 0)]
    for kind, least in ((U8, 0), (I8, -128)):
        for shape, kernel, strides, pads, include in windows:
            for zero, zero_out, scale in ((0, 0, 0.02), (125, 125, 0.02), (3, 130, 0.0231)):
                x = g.node('DequantizeLinear', [g.input(shape, kind), *g.scale(0.02, zero + least, kind)])
                y = g.node('AveragePool', [x], kernel_shape=kernel, strides=strides, pads=pads, count_include_pad=include)
                g.output(g.quantised(y, (scale, zero_out + least, kind)), kind)
        x = g.node('DequantizeLinear', [g.input([1, 40, 9, 9], kind), *g.scale(0.02, least + 7, kind)])
        g.output(g.quantised(g.node('GlobalAveragePool', [x]), (0.0173, least + 9, kind)), kind)


def halves(g):
    """Sums and products of round scales, of which many results lie halfway between two steps."""
    for kind, least in ((U8, 0), (I8, -128)):
        a, b = ((0.02, least + 128, kind), (0.02, least + 3, kind))
        for out in ((0.04, least + 128, kind), (0.04, least + 5, kind), (0.08, least + 77, kind)):
            x, y = g.pair(g.input([1, 8, 24, 24]), a), g.pair(g.input([1, 8, 24, 24]), b)
            s = g.pair(g.node('Add', [x, y]), out)
            m = g.pair(g.node('Mul', [s, g.pair(g.node('Sigmoid', [s]), (1 / 256, least, kind))]), out)
            c = g.pair(g.node('Add', [g.pair(g.conv(m, 8, 8, 3, out), out), s]), (out[0] * 2, out[1], kind))
            g.output(c)


def shuffle(g):
    q = POSITIVE
    x = g.pair(g.input([1, 32, 28, 28]), q)
    for _ in range(2):
        a, b = [g.pair(half, q) for half in g.node('Split', [x], count=2, axis=1)]
        b = g.pair(g.node('Relu', [g.conv(b, 16, 16, 1, q)]), q)
        b = g.pair(g.node('Relu', [g.conv(g.pair(g.conv(b, 16, 16, 3, q, group=16), q), 16, 16, 1, q)]), q)
        r = g.pair(g.node('Reshape', [g.pair(g.node('Concat', [a, b], axis=1), q), g.constant([1, 2, 16, 28, 28], np.int64)]), q)
        t = g.pair(g.node('Transpose', [r], perm=[0, 2, 1, 3, 4]), q)
        x = g.pair(g.node('Reshape', [t, g.constant([1, 32, 28, 28], np.int64)]), q)
    g.output(x)


def line(g):
    """Convolutions of one axis, as of speech."""
    q, p = SIGNED, POSITIVE_SIGNED

    def conv(x, inputs, outputs, kernel, q, group=1, dilation=1, stride=1):
        w, scales = g.real_weight([outputs, inputs // group, kernel], inputs // group * kernel)
        return g.node('Conv', [x, w, g.whole_bias(outputs, q[0] * scales)], kernel_shape=[kernel], pads=[dilation * (kernel // 2)] * 2,
                      group=group, dilations=[dilation], strides=[stride])
    a = g.pair(g.node('Relu', [conv(g.pair(g.input([1, 16, 200]), q), 16, 64, 9, q, stride=2)]), p)
    c = g.pair(g.node('Relu', [conv(g.pair(conv(a, 64, 64, 5, p, 64, 2), q), 64, 64, 1, q)]), p)
    e = g.pair(g.node('AveragePool', [g.pair(g.node('Add', [c, a]), p)], kernel_shape=[4], strides=[4]), p)
    m = g.pair(g.node('ReduceMean', [e], axes=[2], keepdims=0), p)
    g.output(g.pair(dense(g, m, 64, 12, p), q))


def transposed(g):
    q = UNSIGNED
    w, scales = g.real_weight([32, 16, 2, 2], 32, axis=1)
    x = g.pair(g.input([1, 32, 16, 16]), q)
    a = g.pair(g.node('ConvTranspose', [x, w, g.whole_bias(16, q[0] * scales)], kernel_shape=[2, 2], strides=[2, 2]), q)
    w, _ = g.real_weight([16, 8, 4, 4], 64, axis=None)
    b = g.node('Relu', [g.node('ConvTranspose', [a, w], kernel_shape=[4, 4], strides=[2, 2], pads=[1] * 4)])
    g.output(g.pair(g.conv(g.pair(b, POSITIVE), 8, 4, 3, POSITIVE), q))


def lstm(g):
    q, state = SIGNED, (1 / 127, 0, I8)
    weights = [g.real_weight([1, 256, inputs], inputs, axis=None)[0] for inputs in (40, 64)]
    y = g.node('LSTM', [g.pair(g.input([20, 1, 40]), q), *weights, noise(g, 1, 512)], count=3, hidden_size=64)[0]
    y = g.pair(g.node('Squeeze', [y, g.constant([1], np.int64)]), state)
    g.output(g.pair(g.node('MatMul', [y, g.real_weight([64, 12], 64, axis=1)[0]]), q))


def nibbles(g, values, kind):
    tensor = onnx.TensorProto(name=f'n{len(g.constants)}', data_type=kind, dims=values.shape)
    low = (values.flatten() & 15).astype(np.uint8)
    tensor.raw_data = (low[0::2] | low[1::2] << 4).tobytes()
    g.constants.append(tensor)
    return tensor.name


def blocks(g):
    """Operator set 21: weights of 4 bits with a scale for each block."""
    x = g.input([4, 128])
    for k, n, kind, block, least in ((128, 256, INT4, 32, -8), (256, 96, UINT4, 64, 0)):
        scales = g.constant(g.random.uniform(0.5, 1.5, (k // block, n)) * 0.3 / np.sqrt(k))
        inputs = [nibbles(g, g.random.randint(least, least + 16, (k, n)), kind), scales]
        if kind == UINT4:
            inputs.append(nibbles(g, np.full((k // block, n), 8), kind))
        x = g.node('Relu', [g.node('MatMul', [x, g.node('DequantizeLinear', inputs, axis=0, block_size=block)])])
    g.output(x)


def nbits(g):
    x = g.input([2, 128])
    for n, k, block in ((256, 128, 32), (64, 256, 128)):
        b = g.constant(g.random.randint(0, 256, (n, k // block, block // 2)), np.uint8)
        scales = g.constant(g.random.uniform(0.5, 1.5, n * (k // block)) * 0.3 / np.sqrt(k))
        x = g.contrib('MatMulNBits', [x, b, scales], K=k, N=n, bits=4, block_size=block)
    g.output(x)


def half_scales(g):
    """Operator set 19: of scales of f16 what is dequantised is f16."""
    def pair(x, scale, zero):
        s = [g.constant(scale, np.float16), g.constant(zero, np.uint8)]
        return g.node('DequantizeLinear', [g.node('QuantizeLinear', [x, *s]), *s])
    scales = g.constant(g.random.uniform(0.5, 1.5, 32) * 0.001, np.float16)
    w = g.node('DequantizeLinear', [g.bytes([32, 16, 3, 3]), scales, g.constant(np.zeros(32), np.int8)], axis=0)
    x = pair(g.input([1, 16, 24, 24], T.FLOAT16), 0.03, 125)
    c = g.node('Conv', [x, w, g.constant(g.random.normal(0, 0.1, 32), np.float16)], kernel_shape=[3, 3], pads=[1] * 4)
    g.output(pair(g.node('Relu', [c]), 0.02, 0), T.FLOAT16)


def weights_only(g):
    """Bytes of weights, floats of activations."""
    x = g.input([1, 3, 48, 48])
    for shape, attributes in (([32, 3, 3, 3], {'strides': [2, 2]}), ([32, 1, 3, 3], {'group': 32}), ([64, 32, 1, 1], {})):
        kind, zero = (U8, 121) if shape[2] == 1 else (I8, 0)
        w, _ = g.real_weight(shape, int(np.prod(shape[1:])), kind=kind, zero=zero)
        x = g.node('Relu', [g.node('Conv', [x, w, noise(g, shape[0])], kernel_shape=shape[2:], pads=[shape[2] // 2] * 4, **attributes)])
    x = g.node('Flatten', [g.node('GlobalAveragePool', [x])])
    g.output(g.node('MatMul', [x, g.real_weight([64, 100], 64, axis=1)[0]]))


def wide(g):
    """Activations of 16 bits."""
    s = [g.constant(0.0003), g.constant(32000, np.uint16)]

    def pair(x):
        return g.node('DequantizeLinear', [g.node('QuantizeLinear', [x, *s]), *s])
    c = g.node('Conv', [pair(g.input([1, 16, 24, 24])), g.real_weight([32, 16, 3, 3], 144)[0], noise(g, 32)], kernel_shape=[3, 3], pads=[1] * 4)
    g.output(pair(g.node('Conv', [pair(g.node('Sigmoid', [pair(c)])), g.real_weight([16, 32, 1, 1], 32)[0]], kernel_shape=[1, 1])))


def chains(g):
    """A layer norm and a GELU spelt out, among bytes."""
    q, p = SIGNED, POSITIVE
    x = g.pair(g.input([1, 32, 64]), q)
    d = g.pair(g.node('Sub', [x, g.pair(g.node('ReduceMean', [x], axes=[-1]), q)]), q)
    v = g.pair(g.node('ReduceMean', [g.pair(g.node('Pow', [d, g.constant(2.0)]), p)], axes=[-1]), p)
    r = g.pair(g.node('Sqrt', [g.pair(g.node('Add', [v, g.constant(1e-5)]), p)]), p)
    a = g.pair(g.node('MatMul', [g.pair(g.node('Div', [d, r]), q), g.real_weight([64, 128], 64, axis=1)[0]]), q)
    e = g.pair(g.node('Erf', [g.pair(g.node('Div', [a, g.constant(1.4142135)]), q)]), (1 / 127, 0, I8))
    e = g.pair(g.node('Add', [e, g.constant(1.0)]), (2 / 255, -128, I8))
    g.output(g.pair(g.node('Mul', [g.pair(g.node('Mul', [a, e]), q), g.constant(0.5)]), q))


def signed_operators(g):
    """QOperator of i8, in groups."""
    q, p, gate = g.scale(*SIGNED), g.scale(*POSITIVE_SIGNED), g.scale(1 / 256, -128, I8)

    def conv(x, q_in, q_out, inputs, outputs, kernel, group=1):
        w, scale, zero, _ = g.weight([outputs, inputs // group, kernel, kernel], inputs // group * kernel * kernel)
        bias = g.constant(g.random.randint(-2000, 2000, outputs), np.int32)
        return g.node('QLinearConv', [x, *q_in, w, scale, zero, *q_out, bias], kernel_shape=[kernel] * 2, pads=[kernel // 2] * 4, group=group)
    a = conv(g.node('QuantizeLinear', [g.input([1, 16, 30, 30]), *q]), q, p, 16, 32, 3, 4)
    c = conv(conv(a, p, q, 32, 32, 3, 32), q, q, 32, 24, 1)
    m = g.contrib('QLinearMul', [c, *q, g.contrib('QLinearSigmoid', [c, *q, *gate]), *gate, *q])
    v = g.contrib('QLinearAveragePool', [m, *q, *q], kernel_shape=[2, 2], strides=[2, 2])
    k = g.contrib('QLinearConcat', [*q, g.contrib('QLinearLeakyRelu', [v, *q, *q], alpha=0.2), *q, v, *q], axis=1)
    r = g.node('Flatten', [g.contrib('QLinearGlobalAveragePool', [k, *q, *q])])
    w, scale, zero, _ = g.weight([48, 10], 48, axis=None)
    g.output(g.node('DequantizeLinear', [g.node('QLinearMatMul', [r, *q, w, scale, zero, *q]), *q]))


def gated(g):
    """Attention over channels and places, and the class as an index."""
    q = UNSIGNED
    c = g.pair(g.conv(g.pair(g.input([1, 16, 24, 24]), q), 16, 32, 3, q), q)
    over = [g.pair(g.node(op, [c], axes=[1], keepdims=1), q) for op in ('ReduceMean', 'ReduceMax')]
    s = g.pair(g.node('Sigmoid', [g.pair(g.conv(g.pair(g.node('Concat', over, axis=1), q), 2, 1, 7, q, None), q)]), (1 / 256, 0, U8))
    d = g.pair(g.node('Mul', [c, s]), q)
    m = g.pair(g.node('Mul', [d, g.pair(g.node('ReduceMax', [c], axes=[2, 3], keepdims=1), q)]), q)
    g.output(g.pair(g.node('LeakyRelu', [g.pair(g.node('Add', [m, g.pair(g.node('GlobalMaxPool', [c]), q)]), q)], alpha=0.1), q))
    f = g.node('Flatten', [g.pair(g.node('GlobalAveragePool', [d]), q)])
    g.output(g.node('ArgMax', [f], axis=1, keepdims=0), T.INT64)


OPSETS = {'blocks': 21, 'half_scales': 19, 'wide': 21, 'around': 14, 'old_softmax': 11}
NETS = [lite_axis, sums, gemms, around, old_softmax, means, halves, shuffle, line, transposed, lstm, blocks, nbits, half_scales, weights_only, wide,
        chains, signed_operators, gated]


if __name__ == '__main__':
    write_nets(__doc__, NETS, OPSETS)
