"""The training script's pruning on a tiny case: pruned_training_test.py TRAINING_FOLDER TRAINED_READER OUT.onnx

Says SKIPPED where what trains is not installed. The pictures are made here: no fonts, a few seconds.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
try:
    import numpy as np
    import onnx
    import torch
    import train_reader
except ImportError as problem:
    sys.exit(print(f"SKIPPED: {problem} (scripts/setup --training)"))
import shrink_weights

SHARE, STEPS = 0.6, 90


def bars(count):
    """Pictures of one thick bar, of four heights, and what to read in them: "0" to "3"."""
    rng = np.random.default_rng(7)
    pictures, classes = [], []
    for _ in range(count):
        which = int(rng.integers(4))
        picture = rng.integers(0, 40, (32, 32)).astype(np.uint8)
        picture[4 + 6 * which:9 + 6 * which, 8:24] = 220
        pictures.append(picture)
        classes.append(np.array([which + 1]))
    return pictures, classes


def check(true, what):
    if not true:
        sys.exit(f"not so: {what}")


def check_norms(net, ink):
    """A net whose norms have something to do again gives what it gave."""
    with torch.no_grad():
        before = net(ink)
        shrink_weights.unfold_norms(net, train_reader.norms_of(net), ink)
        check(torch.allclose(net(ink), before, atol=1e-3 * float(before.abs().max())), "unfolded norms change nothing")
    variances = [norm.running_var for _, norm in train_reader.norms_of(net)]
    check(all(float((v - 1).abs().max()) > 0.01 for v in variances), "norms have variances of their own")


def check_file(net, path):
    """Whole numbers and short scales, that are what the net multiplies by."""
    tensors = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}
    zeros = values = 0
    for name, conv in net.named_modules():
        if not isinstance(conv, torch.nn.Conv2d):
            continue
        plain = name.removeprefix("parts.").removesuffix(".0") + ".weight"
        numbers, scales = tensors[plain + ".numbers"], tensors[plain + ".scales"]
        check(numbers.dtype == np.int8, f"{plain} is bytes")
        check(np.array_equal(numbers * scales[:, None, None, None], conv.weight.detach().numpy()), f"{plain} is what was trained")
        fraction = np.frexp(scales)[0] * 4
        check(np.array_equal(fraction, np.round(fraction)), f"scales of {plain} have two bits")
        pruned = numbers.size >= shrink_weights.LEAST_PRUNED
        check(np.abs(numbers).max() <= (shrink_weights.FEW if pruned else shrink_weights.MANY), f"{plain} is of few values")
        if pruned:
            zeros += int((numbers == 0).sum())
            values += numbers.size
    check(zeros >= SHARE * values, f"{zeros} of {values} are zero")
    check(zeros < 0.95 * values, "not everything is")


def mean_loss(net, items):
    with torch.no_grad():
        return float(np.mean([train_reader.loss_of(net, train_reader.some_of(items, np.random.default_rng(i))).item() for i in range(4)]))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    net = train_reader.Reader()
    net.load(Path(sys.argv[2]))
    net.eval()
    items = bars(600)
    ink = train_reader.some_of(items, np.random.default_rng(3))[0]
    again = train_reader.Reader()
    again.load(Path(sys.argv[2]))
    check_norms(again.eval(), ink)
    before = mean_loss(net, items)
    train_reader.shrink(net, items, argparse.Namespace(steps=STEPS, seed=1, prune=SHARE))
    after = mean_loss(net, items)
    print(f"loss {before:.2f}, then {after:.2f}")
    check(after < 0.5 * before, "it learns while it is pruned")
    net.export(sys.argv[3])
    check_file(net, sys.argv[3])
    with torch.no_grad():
        np.save(sys.argv[3].replace(".onnx", ".in.npy"), ink[:1, :, :, :32].numpy())
        np.save(sys.argv[3].replace(".onnx", ".out.npy"), np.ascontiguousarray(net(ink[:1, :, :, :32]).numpy()))


main()
