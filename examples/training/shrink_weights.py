"""Trains a net on with fewer and fewer values in its weights: zeros, and small whole numbers times a scale of the output.

    with a batch norm behind a layer          zeros become more, as Zhu and Gupta's schedule says, and the others are rounded
    `fold_norms`, then without                scales are short numbers, and stay; what is left learns to live with them

A weight that is zero goes on learning: its gradient is that of the value which the net multiplies by, and it comes back when it is worth
more than another. What a zero costs is judged over all layers at once, by its square times the mean square of its output's gradients, which
the optimiser has anyway: the diagonal of the loss's second derivatives, near enough. That is the same whatever scale a norm takes back.

Stored as ONNX's DequantizeLinear of bytes, such weights are what `sluice convert --code small` makes few bytes of.
"""

import math

import torch
from torch import nn
from torch.nn.utils import parametrize

FEW, MANY = 3, 7  # largest whole number of a weight that is pruned, and of one that is rounded only
LEAST_PRUNED = 4096  # values: smaller weights are rounded only
EVERY = 20  # steps from one choice of zeros to the next


def short(values):
    """Of two bits: a power of two, or one and a half times that, so that a table of bytes holds few of them."""
    fraction, exponent = torch.frexp(values)
    return torch.ldexp(torch.round(fraction * 4) / 4, exponent)


class Shrunk(nn.Module):
    """What a weight becomes: `kept` of it, as whole numbers times a scale for each output."""

    def __init__(self, weight):
        super().__init__()
        self.pruned = weight.numel() >= LEAST_PRUNED
        self.most = FEW if self.pruned else MANY
        self.register_buffer("kept", torch.ones_like(weight))
        self.scales = None  # once fixed

    def scales_of(self, weight):
        sizes = (weight * self.kept).abs().flatten(1)
        if not self.pruned:
            return sizes.amax(1).clamp(min=1e-8) / self.most
        return (sizes.sum(1) / self.kept.flatten(1).sum(1).clamp(min=1)).clamp(min=1e-8) / 1.5

    @torch.no_grad()
    def whole_numbers(self, weight):
        scales = self.scales_of(weight) if self.scales is None else self.scales
        return torch.clamp(torch.round(weight / scales[:, None, None, None]), -self.most, self.most) * self.kept, scales

    def forward(self, weight):
        numbers, scales = self.whole_numbers(weight)
        return weight + (numbers * scales[:, None, None, None] - weight).detach()

    def right_inverse(self, weight):
        return weight


def convolutions(net):
    return [module for module in net.modules() if isinstance(module, nn.Conv2d)]


def begin(net):
    """From here on the net multiplies by what its weights become."""
    for conv in convolutions(net):
        parametrize.register_parametrization(conv, "weight", Shrunk(conv.weight))


def shrunk(conv):
    """(the weight that learns, what it becomes)."""
    return conv.parametrizations.weight.original, conv.parametrizations.weight[0]


def whole_numbers_of(conv):
    """(bytes, a scale for each output), as they are stored."""
    weight, becomes = shrunk(conv)
    numbers, scales = becomes.whole_numbers(weight)
    return numbers.to(torch.int8).numpy(), scales.numpy()


@torch.no_grad()
def choose_zeros(net, optimiser, share):
    """This share of all values in weights of some size: those that cost the least."""
    costs = []
    for conv in convolutions(net):
        weight, becomes = shrunk(conv)
        if becomes.pruned:
            squares = optimiser.state[weight]["exp_avg_sq"].flatten(1).mean(1)
            costs.append((becomes, weight.square() * squares[:, None, None, None]))
    together = torch.cat([cost.flatten() for _, cost in costs])
    least = together.kthvalue(max(1, int(share * together.numel()))).values
    for becomes, cost in costs:
        becomes.kept.copy_(cost > least)


def share_at(step, steps, share):
    """More of them early, while the net has many to spare; all after three fifths of the steps (Zhu and Gupta 2017, equation 1)."""
    done = min(1.0, step / (0.6 * steps))
    return share * (1 - (1 - done) ** 3)


@torch.no_grad()
def fold_norms(net, layers):
    """Norms into weights and biases; scales are short from here on, and fixed with the zeros."""
    for conv, norm in layers:
        weight, _ = shrunk(conv)
        factor = norm.weight / torch.sqrt(norm.running_var + norm.eps)
        weight.mul_(factor[:, None, None, None])
        norm.bias.sub_(norm.running_mean * factor)
        norm.running_mean.zero_()
        norm.running_var.fill_(1)
        norm.weight.fill_((1 + norm.eps) ** 0.5).requires_grad_(False)
    for conv in convolutions(net):
        weight, becomes = shrunk(conv)
        becomes.scales = short(becomes.scales_of(weight))


@torch.no_grad()
def unfold_norms(net, layers, batch):
    """The opposite, for a net whose norms have nothing to do: each gets the mean and variance that it sees, and gives what it gave."""
    def look(norm, inputs):
        values = inputs[0].transpose(0, 1).flatten(1)
        mean, variance = values.mean(1), values.var(1)
        norm.running_mean.copy_(mean)
        norm.running_var.copy_(variance)
        norm.weight.copy_(torch.sqrt(variance + norm.eps))
        norm.bias.add_(mean)

    hooks = [norm.register_forward_pre_hook(look) for _, norm in layers]
    net(batch)
    for hook in hooks:
        hook.remove()


def bits_of(net):
    """What the values have of information, a weight's with one distribution: a few bytes below what the coder makes of them."""
    total = 0.0
    for conv in convolutions(net):
        weight, becomes = shrunk(conv)
        numbers, _ = becomes.whole_numbers(weight)
        counts = torch.unique(numbers, return_counts=True)[1].tolist()
        total -= sum(count * math.log2(count / numbers.numel()) for count in counts)
    return total


def zeros_of(net):
    """Share of the values of pruned weights."""
    numbers = [becomes.whole_numbers(weight)[0].flatten() for weight, becomes in map(shrunk, convolutions(net)) if becomes.pruned]
    return (torch.cat(numbers) == 0).float().mean().item()
