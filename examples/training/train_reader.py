#!/usr/bin/env python3
"""Trains the reader: a convolutional net that reads a short text from a picture of 32 rows and any width.

    train_reader.py --out ../models                 the net that is in the repository, with its held-out pictures
    train_reader.py --width 0.5                     the same net with half its channels: figures only
    train_reader.py --seed 2                        other first weights, another order of the pictures: figures only
    train_reader.py --from ../models/reader.onnx    no training: a net that is there, on the held-out pictures
    train_reader.py --from ../models/reader.onnx --prune 0.88 --save pruned.onnx    trained on, until this share of its weights is zero

Ink goes in (`render.normalise`), [1, 1, 32, W]; logits of CTC come out, [1, W / 4, classes], class 0 being "no character".
"""

import argparse
import time
from pathlib import Path

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn

import onnx_graph
import render
import shrink_weights

CLASSES = len(render.CHARACTERS) + 1
TRAINING_SEED, TRAINING_ITEMS, TRAINING_LONGEST, TRAINING_HARD = 1, 60000, 12, 0.25
HELD_OUT_SEED, HELD_OUT_ITEMS, HELD_OUT_LONGEST = 1_000_003, 1000, 6
HELD_OUT_HARD, HELD_OUT_SEVERITIES = 0.06, {"usual": 0.1, "hard": 0.85}  # few that nobody can read: both shares stay between 90 and 97 %
GOLDEN_ITEMS = 6  # held-out items whose logits are stored


def export_bias(graph, name, bias):
    """None, of a net that was shrunk, where it is zero."""
    return [graph.floats(name, bias.detach())] if bias.any() else []


def export_weight(graph, name, conv, factor):
    """As floats; of a net that was shrunk, whose factors are 1, as whole numbers and scales."""
    if not hasattr(conv, "parametrizations"):
        return graph.floats(name, (conv.weight * factor[:, None, None, None]).detach())
    numbers, scales = shrink_weights.whole_numbers_of(conv)
    inputs = [graph.constant(name + ".numbers", numbers), graph.floats(name + ".scales", scales)]
    return graph.add("DequantizeLinear", inputs, name, axis=0)


class Folded(nn.Sequential):
    """A convolution with its batch norm, and a ReLU."""

    def __init__(self, into, out, kernel, stride=1, padding=0, groups=1):
        super().__init__(nn.Conv2d(into, out, kernel, stride, padding, groups=groups, bias=False), nn.BatchNorm2d(out), nn.ReLU())

    def load(self, weights, name):
        """What `export` wrote: the norm is left with nothing to do but the bias."""
        conv, norm = self[0], self[1]
        conv.weight.data = weights[name + ".weight"]
        norm.bias.data = weights.get(name + ".bias", torch.zeros(conv.out_channels))
        norm.weight.data.fill_((1 + norm.eps) ** 0.5)

    def export(self, graph, name, data):
        """Conv with the batch norm in its weights, Relu."""
        conv, norm = self[0], self[1]
        factor = norm.weight / torch.sqrt(norm.running_var + norm.eps)
        weight = export_weight(graph, name + ".weight", conv, factor)
        bias = export_bias(graph, name + ".bias", norm.bias - norm.running_mean * factor)
        pads = [conv.padding[0], conv.padding[1]] * 2
        data = graph.add("Conv", [data, weight, *bias], name, kernel_shape=list(conv.kernel_size), strides=list(conv.stride), pads=pads,
                         group=conv.groups)
        return graph.add("Relu", [data], name + ".relu")


class Context(nn.Module):
    """What stands to the left and right: a depthwise convolution along the line and a pointwise one, added to what came."""

    def __init__(self, channels):
        super().__init__()
        self.along = Folded(channels, channels, (1, 7), padding=(0, 3), groups=channels)
        self.across = Folded(channels, channels, 1)

    def forward(self, x):
        return x + self.across(self.along(x))

    def load(self, weights, name):
        self.along.load(weights, name + ".along")
        self.across.load(weights, name + ".across")

    def export(self, graph, name, data):
        mixed = self.across.export(graph, name + ".across", self.along.export(graph, name + ".along", data))
        return graph.add("Add", [data, mixed], name + ".add")


class Reader(nn.Module):
    """Height 32 -> 16 -> 8 -> 4 -> 1, width W -> W / 4."""

    def __init__(self, width=1.0):
        super().__init__()
        a, b, c, d, e = (int(channels * width) for channels in (16, 32, 48, 64, 96))
        self.parts = nn.ModuleDict({
            "edges": Folded(1, a, 3, 2, 1),
            "strokes": Folded(a, b, 3, (2, 1), 1),
            "bows": Folded(b, c, 3, 2, 1),
            "shapes": Folded(c, d, 3, 1, 1),
            "columns": Folded(d, e, (4, 3), 1, (0, 1)),
            "context1": Context(e),
            "context2": Context(e),
        })
        self.classes = nn.Conv2d(e, CLASSES, 1)

    def forward(self, x):
        for part in self.parts.values():
            x = part(x)
        return self.classes(x).squeeze(2).transpose(1, 2)

    def load(self, path):
        """The weights of an exported net of the same width."""
        weights = {w.name: torch.from_numpy(onnx.numpy_helper.to_array(w).copy()) for w in onnx.load(str(path)).graph.initializer}
        for name in [name for name in weights if name.endswith(".numbers")]:
            plain = name.removesuffix(".numbers")
            weights[plain] = weights[name] * weights[plain + ".scales"][:, None, None, None]
        for name, part in self.parts.items():
            part.load(weights, name)
        self.classes.weight.data, self.classes.bias.data = weights["classes.weight"], weights.get("classes.bias", torch.zeros(CLASSES))

    def export(self, path):
        graph = onnx_graph.Graph("reader")
        data = graph.input("ink", onnx_graph.FLOAT, [1, 1, render.HEIGHT, "W"])
        for name, part in self.parts.items():
            data = part.export(graph, name, data)
        weight = export_weight(graph, "classes.weight", self.classes, torch.ones(CLASSES))
        data = graph.add("Conv", [data, weight, *export_bias(graph, "classes.bias", self.classes.bias)], "classes", kernel_shape=[1, 1])
        data = graph.add("Squeeze", [data, graph.integers("rows", [2])], "line")
        graph.add("Transpose", [data], "logits", perm=[0, 2, 1])
        graph.output("logits", onnx_graph.FLOAT, [1, "T", CLASSES])
        graph.save(path, opset=13)


def training_items(count, cache):
    """Pictures as ink of 8 bits, sorted by width, and their classes. Rendered once where there is a cache."""
    file = Path(cache) / f"reader-{TRAINING_SEED}-{count}.npz" if cache else None
    if file and file.exists():
        stored = np.load(file)
        ends, text_ends = np.cumsum(stored["widths"]), np.cumsum(stored["lengths"])
        pictures = np.split(stored["pictures"], ends[:-1], axis=1)
        return pictures, np.split(stored["classes"], text_ends[:-1])
    items = render.draw_items(TRAINING_SEED, count, TRAINING_LONGEST, TRAINING_HARD)
    items.sort(key=lambda item: item[0].shape[1])
    pictures = [np.round(render.normalise(grey) * 255).astype(np.uint8) for grey, _ in items]
    classes = [np.array([render.CHARACTERS.index(c) + 1 for c in text]) for _, text in items]
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, pictures=np.concatenate(pictures, axis=1), widths=[p.shape[1] for p in pictures],
                 classes=np.concatenate(classes), lengths=[len(c) for c in classes])
    return pictures, classes


def batch_of(pictures, classes, rng):
    """Pictures side by side to the widest, moved by a row and a few columns, with more or less ink."""
    across = max(p.shape[1] for p in pictures) + render.WIDTH_STEP
    ink = np.zeros((len(pictures), 1, render.HEIGHT, across), dtype=np.float32)
    for to, picture in zip(ink, pictures):
        left, down = int(rng.integers(render.WIDTH_STEP)), int(rng.integers(-1, 2))
        to[0, :, left:left + picture.shape[1]] = np.roll(picture, down, axis=0) * (rng.uniform(0.85, 1.1) / 255)
    lengths = torch.tensor([len(c) for c in classes])
    return torch.from_numpy(ink).clamp_(0, 1), torch.from_numpy(np.concatenate(classes)), lengths


def loss_of(net, batch, teacher=None):
    """Of CTC, a character; and what the net loses of a teacher's answers, a character too."""
    ink, targets, lengths = batch
    answers = net(ink).log_softmax(2)
    steps = torch.full((len(ink),), answers.shape[1], dtype=torch.long)
    loss = F.ctc_loss(answers.transpose(0, 1), targets, steps, lengths, zero_infinity=True)
    if teacher is None:
        return loss
    with torch.no_grad():
        wanted = teacher(ink).log_softmax(2)
    return loss + F.kl_div(answers, wanted, log_target=True, reduction="sum") / len(targets)


def some_of(items, rng, size=32):
    """A batch of neighbours, which are as wide as each other."""
    pictures, classes = items
    at = int(rng.integers(len(pictures) - 4 * size))
    chosen = at + rng.choice(4 * size, size, replace=False)
    return batch_of([pictures[i] for i in chosen], [classes[i] for i in chosen], rng)


def train(net, items, steps, seed, rate=5e-3, teacher=None, after_step=None):
    rng = np.random.default_rng(seed)
    optimiser = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=rate, total_steps=steps, pct_start=0.15)
    started, mean = time.time(), None
    for step in range(1, steps + 1):
        loss = loss_of(net, some_of(items, rng), teacher)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimiser.step()
        schedule.step()
        if after_step:
            after_step(step, optimiser)
        mean = loss.item() if mean is None else 0.99 * mean + 0.01 * loss.item()
        if step % 200 == 0 or step == steps:
            left = (time.time() - started) / step * (steps - step) / 60
            print(f"step {step}/{steps}  loss {mean:.3f}  {left:.1f} min left", flush=True)


def norms_of(net):
    """(convolution, norm) of each layer that keeps its norm while it is shrunk: all but the depthwise ones."""
    return [(part[0], part[1]) for part in net.modules() if isinstance(part, Folded) and part[0].groups == 1]


def leave_out_biases(net):
    """Of depthwise layers and of the last one, where they are worth less than their bytes: there norms do nothing."""
    net.classes.bias.data.zero_()
    net.classes.bias.requires_grad_(False)
    for part in net.modules():
        if isinstance(part, Folded) and part[0].groups > 1:
            part[1].bias.data.zero_()
            part[1].requires_grad_(False).eval()


def shrink(net, items, options, teacher=None):
    """Trains a net that is trained on, with fewer and fewer values: two thirds of the steps with norms, the others without."""
    layers = norms_of(net)
    shrink_weights.unfold_norms(net.eval(), layers, some_of(items, np.random.default_rng(options.seed), 128)[0])
    shrink_weights.begin(net)
    leave_out_biases(net.train())
    with_norms = 2 * options.steps // 3

    def choose(step, optimiser):
        if step % shrink_weights.EVERY == 0 and step < 0.8 * with_norms:
            shrink_weights.choose_zeros(net, optimiser, shrink_weights.share_at(step, with_norms, options.prune))

    train(net, items, with_norms, options.seed, 3e-3, teacher, choose)
    shrink_weights.fold_norms(net, layers)
    train(net.eval(), items, options.steps - with_norms, options.seed + 1, 1.5e-3, teacher)
    print(f"{100 * shrink_weights.zeros_of(net):.1f} % zeros, {shrink_weights.bits_of(net) / 8192:.1f} KiB of information in whole numbers")


def text_of(logits):
    """Greedy: the best class of each step, repeats and "no character" left out."""
    best = logits.argmax(-1).tolist()
    return "".join(render.CHARACTERS[b - 1] for b, before in zip(best, [0] + best) if b not in (0, before))


def distance(a, b):
    """Insertions, deletions and replacements that make `b` of `a`."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


@torch.no_grad()
def accuracy(net, items):
    """(shares of characters and of lines that are right, logits of the first items)."""
    wrong = characters = lines = 0
    golden = []
    for grey, text in items:
        logits = net(torch.from_numpy(render.normalise(grey))[None, None])[0]
        if len(golden) < GOLDEN_ITEMS:
            golden.append(logits.numpy())
        read = text_of(logits)
        wrong += distance(text, read)
        characters += len(text)
        lines += read == text
    return 1 - wrong / characters, lines / len(items), np.concatenate(golden)


def write_held_out(folder, items, golden):
    """The sheet of pictures, where each item lies and what it says, and torch's logits of the first items."""
    sheet, places = render.sheet_of(items)
    Image.fromarray(sheet).save(folder / "reader_heldout.png", optimize=True)
    lines = [f"{left} {top} {across} {text}\n" for left, top, across, text in places]
    (folder / "reader_heldout.txt").write_text("".join(lines))
    (folder / "reader_characters.txt").write_text(render.CHARACTERS + "\n")
    np.save(folder / "reader_golden.npy", np.ascontiguousarray(golden))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="write reader.onnx and the held-out items there")
    parser.add_argument("--width", type=float, default=1.0, help="share of the channels")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--items", type=int, default=TRAINING_ITEMS, help="training pictures")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cache", help="folder that keeps rendered pictures from one call to the next")
    parser.add_argument("--from", dest="trained", type=Path, help="take the weights of this file instead of training")
    parser.add_argument("--prune", type=float, help="with --from: train these weights on, until this share of them is zero and the others are few values")
    parser.add_argument("--teacher", type=Path, help="with --prune: the net whose answers are wanted (default: that of --from)")
    parser.add_argument("--save", type=Path, help="write the net to this file")
    options = parser.parse_args()
    if options.prune is not None and not (options.trained and 0 < options.prune < 1):
        parser.error("--prune takes a share between 0 and 1, and a net --from which it begins")

    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    net = Reader(options.width)
    if options.trained:
        net.load(options.trained)
        net.eval()
        if options.prune:
            teacher = Reader(options.width)
            teacher.load(options.teacher or options.trained)
            shrink(net, training_items(options.items, options.cache), options, teacher.eval())
    else:
        count = sum(p.numel() for p in net.parameters())
        print(f"{count} parameters; rendering {options.items} pictures", flush=True)
        train(net.train(), training_items(options.items, options.cache), options.steps, options.seed)
        net.eval()

    held_out = render.draw_items(HELD_OUT_SEED, HELD_OUT_ITEMS, HELD_OUT_LONGEST, HELD_OUT_HARD, **HELD_OUT_SEVERITIES)
    characters, lines, golden = accuracy(net, held_out)
    print(f"held out: characters {100 * characters:.2f} %, lines {100 * lines:.2f} %")
    if options.save:
        net.export(options.save)
    if options.out:
        if not options.trained:
            net.export(options.out / "reader.onnx")
        write_held_out(options.out, held_out, golden)


if __name__ == "__main__":
    main()
