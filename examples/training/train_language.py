#!/usr/bin/env python3
"""Trains the language model: a small GPT that continues a text character by character.

    train_language.py --out ../models               the model that is in the repository, with its held-out passages
    train_language.py --width 0.5                   the same model half as wide: figures only
    train_language.py --seed 2                      other weights and another order of passages: figures only

A token is an ASCII code. S tokens go in with the keys and values of the P tokens before them; the logits of the S tokens come out with the
keys and values of all P + S. Places are told apart by distance alone (a penalty that grows with it, ALiBi), so the past may be a window that
moves on for ever; `valid` hides places of a past that no token has filled yet.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import onnx_graph
import texts

TOKENS = 128          # ASCII
CONTEXT = 128         # tokens that the model is trained on at once
LAYERS, HEADS, CHANNELS = 4, 4, 64
HIDDEN = -10000.0     # what a place that must not be seen adds to its score
PASSAGES, PASSAGE = 1000, CONTEXT + 1   # held out: each gives CONTEXT predictions
SLOPES = [2.0 ** (-2 * (head + 1)) for head in range(HEADS)]  # ALiBi's, for four heads
EPSILON = 1e-5


class Layer(nn.Module):
    """Attention and two dense layers, each behind a norm and beside a shortcut."""

    def __init__(self, channels):
        super().__init__()
        self.channels = channels
        self.norm1, self.norm2 = nn.LayerNorm(channels, eps=EPSILON), nn.LayerNorm(channels, eps=EPSILON)
        self.qkv, self.merge = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)
        self.up, self.down = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)

    def forward(self, x, bias):
        batch, length, channels = x.shape
        q, k, v = (t.view(batch, length, HEADS, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).split(channels, -1))
        seen = torch.softmax(q @ k.transpose(2, 3) * (channels // HEADS) ** -0.5 + bias, -1) @ v
        x = x + self.merge(seen.transpose(1, 2).reshape(batch, length, channels))
        return x + self.down(F.relu(self.up(self.norm2(x))))

    def export(self, graph, name, x, bias):
        """The same with a past; gives (data, present keys, present values)."""
        shape = [1, HEADS, "P", self.channels // HEADS]
        past_k = graph.input(name + ".past_keys", onnx_graph.FLOAT, shape)
        past_v = graph.input(name + ".past_values", onnx_graph.FLOAT, shape)
        qkv = dense(graph, name + ".qkv", norm(graph, name + ".norm1", x, self.norm1), self.qkv)
        parts = [f"{name}.{part}" for part in ("q", "k", "v")]
        graph.nodes.append(onnx_graph.helper.make_node("Split", [qkv], parts, name=name + ".split", axis=2))
        q, k, v = (graph.add("Transpose", [graph.add("Reshape", [part, "to_heads"], part + ".apart")], part + ".heads", perm=[0, 2, 1, 3])
                   for part in parts)
        k = graph.add("Concat", [past_k, k], name + ".keys", axis=2)
        v = graph.add("Concat", [past_v, v], name + ".values", axis=2)
        scores = graph.add("MatMul", [q, graph.add("Transpose", [k], name + ".keys.turned", perm=[0, 1, 3, 2])], name + ".products")
        scores = graph.add("Add", [graph.add("Mul", [scores, "scale"], name + ".scaled"), bias], name + ".scores")
        seen = graph.add("MatMul", [graph.add("Softmax", [scores], name + ".weights", axis=-1), v], name + ".seen")
        seen = graph.add("Transpose", [seen], name + ".seen.together", perm=[0, 2, 1, 3])
        seen = graph.add("Reshape", [seen, "to_channels"], name + ".seen.flat")
        x = graph.add("Add", [x, dense(graph, name + ".merge", seen, self.merge)], name + ".attended")
        up = dense(graph, name + ".up", norm(graph, name + ".norm2", x, self.norm2), self.up)
        down = dense(graph, name + ".down", graph.add("Relu", [up], name + ".relu"), self.down)
        return graph.add("Add", [x, down], name + ".out"), k, v


def dense(graph, name, data, linear):
    """x W + b."""
    weight = graph.floats(name + ".weight", linear.weight.detach().T)
    product = graph.add("MatMul", [data, weight], name + ".product")
    return graph.add("Add", [product, graph.floats(name + ".bias", linear.bias.detach())], name)


def norm(graph, name, data, layer_norm):
    scale, shift = graph.floats(name + ".scale", layer_norm.weight.detach()), graph.floats(name + ".shift", layer_norm.bias.detach())
    return graph.add("LayerNormalization", [data, scale, shift], name, axis=-1, epsilon=EPSILON)


class Language(nn.Module):
    def __init__(self, width=1.0):
        super().__init__()
        self.channels = int(CHANNELS * width)
        self.table = nn.Embedding(TOKENS, self.channels)  # of tokens, and of logits
        self.layers = nn.ModuleList(Layer(self.channels) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(self.channels, eps=EPSILON)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                nn.init.normal_(weight, std=0.02 if "table" in name else (2.0 * self.channels) ** -0.5)
            elif name.endswith("bias"):
                nn.init.zeros_(weight)
        place = torch.arange(CONTEXT)
        distance = (place[:, None] - place[None, :]).float()
        slopes = torch.tensor(SLOPES)[:, None, None]
        self.register_buffer("bias", torch.where(distance >= 0, -slopes * distance, torch.tensor(HIDDEN)))

    def forward(self, tokens):
        length = tokens.shape[1]
        x = self.table(tokens)
        for layer in self.layers:
            x = layer(x, self.bias[:, :length, :length])
        return self.norm(x) @ self.table.weight.T

    def export(self, path):
        graph = onnx_graph.Graph("language")
        tokens = graph.input("tokens", onnx_graph.INT64, [1, "S"])
        graph.input("valid", onnx_graph.FLOAT, [1, "T"])  # T = S + P; 1: a token is there, 0: none yet
        table = graph.floats("table", self.table.weight.detach())
        graph.floats("scale", (self.channels // HEADS) ** -0.5)
        graph.integers("to_heads", [1, -1, HEADS, self.channels // HEADS])
        graph.integers("to_channels", [1, -1, self.channels])
        bias = distances(graph)
        x = graph.add("Gather", [table, tokens], "embedded")
        present = []
        for number, layer in enumerate(self.layers):
            x, keys, values = layer.export(graph, f"layer{number}", x, bias)
            present += [keys, values]
        x = norm(graph, "norm", x, self.norm)
        graph.add("MatMul", [x, graph.add("Transpose", [table], "table.turned", perm=[1, 0])], "logits")
        graph.output("logits", onnx_graph.FLOAT, [1, "S", TOKENS])
        for name in present:
            graph.output(name, onnx_graph.FLOAT, [1, HEADS, "T", self.channels // HEADS])
        graph.save(path, opset=17)


def distances(graph):
    """What each pair of places adds to its score, [1, heads, S, T]: the penalty of distance, HIDDEN for the future and for no token.

    A softmax does not see what a whole row has in common, so the distance counts from the last place, the same for all rows: one row a head
    and one triangle for all heads are the only constants.
    """
    for name, value in (("zero", 0), ("one", 1)):
        graph.integers(name, value)
    now = graph.add("Gather", [graph.add("Shape", ["tokens"], "tokens.shape"), "one"], "now", axis=0)
    places = graph.add("Gather", [graph.add("Shape", ["valid"], "valid.shape"), "one"], "places", axis=0)
    before = graph.add("Sub", [places, now], "before")
    rows = graph.add("Range", [before, places, "one"], "rows")
    rows = graph.add("Unsqueeze", [rows, graph.integers("last_axis", [1])], "rows.column")
    columns = graph.add("Range", ["zero", places, "one"], "columns")
    triangle = graph.add("Where", [graph.add("Less", [rows, columns], "future"), graph.floats("hidden", HIDDEN), graph.floats("seen", 0.0)],
                         "triangle")
    from_last = graph.add("Cast", [graph.add("Sub", [columns, places], "from_last")], "from_last.real", to=onnx_graph.FLOAT)
    nearness = graph.add("Mul", [from_last, graph.floats("slopes", np.asarray(SLOPES).reshape(1, HEADS, 1, 1))], "nearness")
    missing = graph.add("Mul", [graph.add("Sub", ["valid", graph.floats("all", 1.0)], "missing"), graph.floats("hide", -HIDDEN)], "missing.score")
    missing = graph.add("Unsqueeze", [missing, graph.integers("heads_and_rows", [1, 2])], "missing.row")
    return graph.add("Add", [graph.add("Add", [nearness, missing], "columns.score"), triangle], "bias")


def tokens_of(text):
    return torch.tensor(list(text.encode("ascii")), dtype=torch.long)


def train(net, tokens, steps, seed):
    generator = torch.Generator().manual_seed(seed)
    batch = 32
    optimiser = torch.optim.AdamW(net.parameters(), weight_decay=1e-2, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=4e-3, total_steps=steps, pct_start=0.1)
    started, mean = time.time(), None
    for step in range(1, steps + 1):
        at = torch.randint(len(tokens) - PASSAGE, (batch,), generator=generator)
        passages = tokens[at[:, None] + torch.arange(PASSAGE)]
        loss = F.cross_entropy(net(passages[:, :-1]).reshape(-1, TOKENS), passages[:, 1:].reshape(-1))
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        mean = loss.item() if mean is None else 0.99 * mean + 0.01 * loss.item()
        if step % 100 == 0 or step == steps:
            left = (time.time() - started) / step * (steps - step) / 60
            print(f"step {step}/{steps}  perplexity {np.exp(mean):.3f}  {left:.1f} min left", flush=True)
    net.eval()


def held_out_passages(blocks):
    """As many passages from each block as fit, then every so many of them."""
    passages = [block[at:at + PASSAGE] for block in blocks for at in range(0, len(block) - PASSAGE + 1, PASSAGE)]
    if len(passages) < PASSAGES:
        raise SystemExit(f"{len(passages)} held-out passages, {PASSAGES} are wanted")
    return [passages[i * len(passages) // PASSAGES] for i in range(PASSAGES)]


@torch.no_grad()
def perplexity(net, passages):
    """exp of the mean over all predictions, and the logits of the first passage."""
    tokens = torch.stack([tokens_of(passage) for passage in passages])
    loss = 0.0
    for part in tokens.split(50):
        loss += F.cross_entropy(net(part[:, :-1]).reshape(-1, TOKENS), part[:, 1:].reshape(-1), reduction="sum").item()
    return float(np.exp(loss / (len(passages) * CONTEXT))), net(tokens[:1, :-1])[0].numpy()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="write language.onnx and the held-out passages there")
    parser.add_argument("--width", type=float, default=1.0, help="share of the channels")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    net = Language(options.width)
    kept, blocks = texts.split(texts.read_documents())
    print(f"{sum(p.numel() for p in net.parameters())} parameters; {len(kept)} characters to learn from", flush=True)
    train(net, tokens_of(kept), options.steps, options.seed)

    passages = held_out_passages(blocks)
    figure, golden = perplexity(net, passages)
    print(f"held out: perplexity {figure:.4f}")
    if options.out:
        net.export(options.out / "language.onnx")
        (options.out / "language_heldout.txt").write_bytes("".join(passages).encode("ascii"))
        np.save(options.out / "language_golden.npy", np.ascontiguousarray(golden))


if __name__ == "__main__":
    main()
