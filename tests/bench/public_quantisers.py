#!/usr/bin/env python3
"""Ranges of activations by the methods that quantisers publish, beside those of `sluice quantize` (public_quantisers.mjs drives this):

    public_quantisers.py expose MODEL.onnx BASE.onnx FOLDER
    public_quantisers.py quantise BASE.onnx FOLDER

BASE is what `sluice quantize --method minmax --no-bias-correction --no-equalisation` made of MODEL: every method rounds the same tensors and the same
weights. expose: FOLDER/exposed.onnx gives what BASE rounds, FOLDER/tensors.json lists it. quantise reads what was seen of it, FOLDER/I_ITEM.f32, and
writes FOLDER/METHOD.onnx. Methods: percentile (99.999 of the values, and 99.99), entropy (the threshold with the least Kullback-Leibler divergence of a
histogram of 2048 bins and its 128 levels), mse (the share of the range with the least squared error of rounding and cutting). Wants python3-onnx, numpy.
"""
import glob
import json
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def rounded(model):
    """QuantizeLinear nodes of activations: what they read, and the names of scale and zero point."""
    constants = {i.name for i in model.graph.initializer}
    return [(n.input[0], n.input[1], n.input[2]) for n in model.graph.node if n.op_type == 'QuantizeLinear' and n.input[0] not in constants]


def expose(path, base_path, folder):
    model, base = onnx.load(path), onnx.load(base_path)
    made = {o for n in model.graph.node for o in n.output} | {i.name for i in model.graph.input}
    outputs = {o.name for o in model.graph.output}
    tensors = [t for t, _, _ in rounded(base) if t in made]
    given = {i.name for i in model.graph.input}
    for name in tensors:
        if name not in outputs | given:
            model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    onnx.save(model, os.path.join(folder, 'exposed.onnx'))
    with open(os.path.join(folder, 'tensors.json'), 'w') as file:
        json.dump({'tensors': tensors, 'given': sorted(given), 'outputs': sorted(outputs)}, file)


def percentile(values, low, high, keep):
    if low < 0 < high:
        return np.percentile(values, (100 - keep) / 2), np.percentile(values, 100 - (100 - keep) / 2)
    return (low, np.percentile(values, keep)) if high > 0 else (np.percentile(values, 100 - keep), high)


def entropy(values, low, high):
    """As TensorRT describes it: magnitudes, thresholds from 128 bins on."""
    most, bins, levels = max(-low, high), 2048, 128
    counts, _ = np.histogram(np.abs(values), bins, (0, most))
    counts = counts.astype(np.float64)
    best, threshold = np.inf, most
    for end in range(levels, bins + 1, 8):
        p = counts[:end].copy()
        p[-1] += counts[end:].sum()
        groups = np.arange(end) * levels // end
        used = counts[:end] > 0
        sums = np.bincount(groups, counts[:end], levels)
        nonzero = np.bincount(groups, used, levels)
        q = np.where(used, (sums / np.maximum(nonzero, 1))[groups], 0)
        p, q = p / p.sum(), q / max(q.sum(), 1e-30)
        where = p > 0
        divergence = np.sum(p[where] * np.log(p[where] / np.maximum(q[where], 1e-12)))
        if divergence < best:
            best, threshold = divergence, (end + 0.5) * most / bins
    return max(low, -threshold), min(high, threshold)


def scale_of(low, high):
    scale = (high - low) / 255
    return (scale, int(np.clip(np.rint(-low / scale), 0, 255))) if scale > 1e-20 else (1.0, 0)


def mse(values, low, high):
    sample = values if values.size <= 200000 else np.random.RandomState(1).choice(values, 200000, replace=False)
    best, found = np.inf, (low, high)
    for share in np.linspace(0.3, 1, 71):
        scale, zero = scale_of(low * share, high * share)
        error = np.mean((sample - (np.clip(np.rint(sample / scale) + zero, 0, 255) - zero) * scale) ** 2)
        if error < best:
            best, found = error, (low * share, high * share)
    return found


METHODS = {'percentile_99.999': lambda v, l, h: percentile(v, l, h, 99.999), 'percentile_99.99': lambda v, l, h: percentile(v, l, h, 99.99),
           'entropy': entropy, 'mse': mse}


def quantise(base_path, folder):
    base = onnx.load(base_path)
    with open(os.path.join(folder, 'tensors.json')) as file:
        tensors = json.load(file)['tensors']
    constants = {i.name: i for i in base.graph.initializer}
    value = {name: numpy_helper.to_array(i) for name, i in constants.items()}
    ranges = {method: {} for method in METHODS}
    tied = {}  # what has one scale and zero point in BASE keeps one
    for tensor, scale, zero in rounded(base):
        if tensor not in tensors:
            continue
        files = sorted(glob.glob(os.path.join(folder, f'{tensors.index(tensor)}_*.f32')))
        values = np.concatenate([np.fromfile(f, np.float32) for f in files])
        low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
        group = tied.setdefault((float(value[scale]), int(value[zero])), [])
        group.append((scale, zero))
        for method, of in METHODS.items():
            found = of(values, low, high) if high > low else (low, high)
            seen = ranges[method].setdefault((float(value[scale]), int(value[zero])), [0.0, 0.0])
            seen[0], seen[1] = min(seen[0], float(found[0])), max(seen[1], float(found[1]))
    for method in METHODS:
        model = onnx.ModelProto()
        model.CopyFrom(base)
        by_name = {i.name: i for i in model.graph.initializer}
        for key, group in tied.items():
            scale, zero = scale_of(*ranges[method][key])
            for scale_name, zero_name in group:
                by_name[scale_name].CopyFrom(numpy_helper.from_array(np.float32(scale).reshape(value[scale_name].shape), scale_name))
                by_name[zero_name].CopyFrom(numpy_helper.from_array(np.array(zero, value[zero_name].dtype).reshape(value[zero_name].shape), zero_name))
        onnx.save(model, os.path.join(folder, f'{method}.onnx'))
    print(' '.join(METHODS))


if __name__ == '__main__':
    if sys.argv[1:2] == ['expose'] and len(sys.argv) == 5:
        expose(*sys.argv[2:])
    elif sys.argv[1:2] == ['quantise'] and len(sys.argv) == 4:
        quantise(*sys.argv[2:])
    else:
        sys.exit(__doc__)
