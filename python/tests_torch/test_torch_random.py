# SPDX-License-Identifier: Apache-2.0
"""Random sequences of layers with random parameters: PyTorch's own results, and the bits of lone runs.

A case is a number: `STREAMPOOL_TEST_SCALE` is how many times as many are tried, `STREAMPOOL_TORCH_CASE`
is one to try alone.
"""
import os
import random

import pytest
import torch
from torch import nn

import streampool.torch
from conftest import bits, from_threads, own_results

CASES = max(1, int(40 * float(os.environ.get("STREAMPOOL_TEST_SCALE", "1"))))
ONE = os.environ.get("STREAMPOOL_TORCH_CASE")

ACTIVATIONS = [
    nn.ReLU, nn.GELU, nn.SiLU, nn.Sigmoid, nn.Tanh, nn.ELU, nn.SELU, nn.CELU, nn.LeakyReLU, nn.Softplus,
    nn.Hardswish, nn.Hardsigmoid, nn.Hardtanh, nn.ReLU6, nn.Mish, nn.Softsign, nn.LogSigmoid,
    nn.Tanhshrink, nn.Softshrink, nn.Hardshrink, lambda: nn.GELU(approximate="tanh"),
    lambda: nn.Softmax(-1), lambda: nn.LogSoftmax(1),
    lambda: nn.PReLU(init=0.3), nn.Identity, nn.Dropout, lambda: nn.Softmin(-1)]


class Permuted(nn.Module):
    def __init__(self, *axes):
        super().__init__()
        self.axes = axes

    def forward(self, x):
        return x.permute(*self.axes)


class Residual(nn.Module):
    def __init__(self, *parts):
        super().__init__()
        self.parts = nn.Sequential(*parts)

    def forward(self, x):
        return x + self.parts(x)


class First(nn.Module):
    """The first result of a module that returns several."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)[0]


class SelfAttention(nn.MultiheadAttention):
    def forward(self, x):
        return super().forward(x, x, x, need_weights=False)[0]


def _groups(rng, channels):
    return rng.choice([n for n in range(1, channels + 1) if channels % n == 0])


def _layer_norm(size, affine=True):
    """Of one element PyTorch's own result is the rounding of its mean, times a large number."""
    return nn.LayerNorm(size, elementwise_affine=affine) if size > 1 else nn.ReLU()


def _group_norm(groups, shape):
    """PyTorch refuses groups of one element."""
    return nn.GroupNorm(groups, shape[0]) if _size(shape) > 2 * groups else nn.ReLU()


def _behind(first, second):
    """A convolution and another layer: the exporter knows the channels of convolutions only."""
    return nn.Sequential(first, second)


def _vector(rng, shape):
    """A layer for [features], and the shape behind it."""
    size = shape[0]
    out = rng.choice([1, 3, 8, 17, 33])
    return rng.choice([
        lambda: (nn.Linear(size, out, bias=rng.random() < 0.8), (out,)),
        lambda: (_layer_norm(size, rng.random() < 0.8), shape),
        lambda: (nn.BatchNorm1d(size, affine=rng.random() < 0.8), shape),
        lambda: (Residual(nn.Linear(size, out), nn.ReLU(), nn.Linear(out, size)), shape)])()


def _encoder_layer(rng, size, heads):
    if size == 1:
        return nn.Tanh()
    return nn.TransformerEncoderLayer(size, heads, 8, batch_first=True, norm_first=rng.random() < 0.5)


def _sequence(rng, shape):
    """A layer for [channels, length], which recurrent layers and attention take as [time, features]."""
    channels, length = shape
    out, kernel = rng.choice([1, 4, 6, 16]), rng.randint(1, min(5, length))
    stride, padding = rng.randint(1, 3), rng.randint(0, kernel // 2)
    groups, heads = _groups(rng, channels), _groups(rng, length)

    def windows(pad):
        return (length + 2 * pad - kernel) // stride + 1

    def conv(before, width):
        return _behind(before, nn.Conv1d(channels, out, 1)), (out, width)

    def conv_of_groups():
        return nn.Conv1d(channels, out * groups, kernel, stride, padding, groups=groups)

    return rng.choice([
        lambda: (conv_of_groups(), (out * groups, windows(padding))),
        lambda: (nn.ConvTranspose1d(channels, out, kernel, stride), (out, (length - 1) * stride + kernel)),
        lambda: (nn.BatchNorm1d(channels), shape),
        lambda: (_group_norm(groups, shape), shape),
        lambda: (nn.MaxPool1d(kernel, stride, kernel // 2), (channels, windows(kernel // 2))),
        lambda: (nn.AvgPool1d(kernel, stride), (channels, windows(0))),
        lambda: (nn.AdaptiveAvgPool1d(1), (channels, 1)),
        lambda: (_layer_norm(length), shape),
        lambda: (nn.Linear(length, out), (channels, out)),
        lambda: conv(nn.ConstantPad1d((1, 2), 0.5), length + 3),
        lambda: conv(nn.ReflectionPad1d(1), length + 2) if length > 1 else (nn.Tanh(), shape),
        lambda: (Permuted(0, 2, 1), (length, channels)),
        lambda: (First(nn.LSTM(length, out, rng.randint(1, 2), batch_first=True)), (channels, out)),
        lambda: (First(nn.GRU(length, out, batch_first=True, bidirectional=True)), (channels, 2 * out)),
        lambda: (First(nn.RNN(length, out, batch_first=True)), (channels, out)),
        lambda: (SelfAttention(length, heads, batch_first=True), shape),
        lambda: (_encoder_layer(rng, length, heads), shape),
        lambda: (nn.Flatten(), (channels * length,)),
        lambda: (nn.Upsample(scale_factor=2), (channels, 2 * length))])()


def _image(rng, shape):
    """A layer for [channels, height, width]."""
    channels, height, width = shape
    out, kernel = rng.choice([1, 4, 16, 18]), rng.randint(1, min(3, height, width))
    stride, padding, groups = rng.randint(1, 2), rng.randint(0, kernel // 2), _groups(rng, channels)
    dilation = 2 if min(height, width) + 2 * padding > 2 * (kernel - 1) else 1

    def windows(pad, dilated=1):
        return tuple((size + 2 * pad - dilated * (kernel - 1) - 1) // stride + 1 for size in (height, width))

    def transposed():
        return tuple((size - 1) * stride + kernel for size in (height, width))

    def conv():
        return nn.Conv2d(channels, out * groups, kernel, stride, padding, dilation, groups,
                         bias=rng.random() < 0.7)

    def resized():
        return nn.Upsample(scale_factor=2, mode=rng.choice(["nearest", "bilinear"]))

    def shuffled():
        if channels % 4 != 0:
            return nn.SiLU(), shape
        return nn.PixelShuffle(2), (channels // 4, 2 * height, 2 * width)

    def normed():
        if height * width < 3:
            return nn.ReLU(), shape
        both = _behind(nn.Conv2d(channels, out, 1), nn.InstanceNorm2d(out, affine=True))
        return both, (out, height, width)

    return rng.choice([
        lambda: (conv(), (out * groups, *windows(padding, dilation))),
        lambda: (nn.Conv2d(channels, channels, 3, padding=1, groups=channels), shape),
        lambda: (nn.Conv2d(channels, out, kernel, padding="same", padding_mode="replicate"),
                 (out, height, width)),
        lambda: (nn.ConvTranspose2d(channels, out, kernel, stride), (out, *transposed())),
        lambda: (nn.BatchNorm2d(channels), shape),
        lambda: (_group_norm(groups, shape), shape),
        normed,
        lambda: (nn.MaxPool2d(kernel, stride, kernel // 2), (channels, *windows(kernel // 2))),
        lambda: (nn.AvgPool2d(kernel, stride, kernel // 2, count_include_pad=rng.random() < 0.5),
                 (channels, *windows(kernel // 2))),
        lambda: (nn.AdaptiveAvgPool2d(1), (channels, 1, 1)),
        lambda: (nn.PReLU(channels), shape),
        lambda: (_behind(nn.ZeroPad2d((1, 0, 2, 1)), nn.Conv2d(channels, out, 1)),
                 (out, height + 3, width + 1)),
        lambda: (resized(), (channels, 2 * height, 2 * width)),
        shuffled,
        lambda: (Permuted(0, 1, 3, 2), (channels, width, height)),
        lambda: (Residual(nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU()), shape),
        lambda: (nn.Flatten(2), (channels, height * width)),
        lambda: (nn.Flatten(), (channels * height * width,))])()


_LAYERS = {1: _vector, 2: _sequence, 3: _image}


def _size(shape):
    return torch.Size(shape).numel()


def _with_random_state(module):
    """No state is its initial one, which may be neutral."""
    for part in module.modules():
        if getattr(part, "running_mean", None) is not None:
            part.running_mean.uniform_(-0.5, 0.5)
            part.running_var.uniform_(0.5, 2)
        is_norm = isinstance(part, (nn.LayerNorm, nn.GroupNorm, nn.BatchNorm1d, nn.BatchNorm2d))
        if is_norm and part.weight is not None:
            nn.init.uniform_(part.weight, 0.5, 1.5)
            nn.init.uniform_(part.bias, -0.5, 0.5)
    return module


def random_module(rng):
    """(module, shape of a row)."""
    shape = first = rng.choice([(5,), (16,), (3, 9), (8, 16), (4, 1), (3, 8, 8), (16, 7, 5), (2, 1, 6)])
    layers = []
    for _ in range(rng.randint(1, 7)):
        if rng.random() < 0.4:
            layers.append(rng.choice(ACTIVATIONS)())
            continue
        layer, behind = _LAYERS[len(shape)](rng, shape)
        if 0 < _size(behind) <= 4096:
            layers.append(layer)
            shape = behind
    return _with_random_state(nn.Sequential(*layers)), first


def _require_close(got, want):
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    bound = 1e-4 * max(1.0, float(want.abs().max()) if want.numel() else 0.0)
    assert torch.allclose(got, want, rtol=0, atol=bound), float((got - want).abs().max())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", [int(ONE)] if ONE else range(CASES))
def test_a_random_module(case):
    rng = random.Random(case)
    torch.manual_seed(case)
    module, row = random_module(rng)
    f = streampool.torch.compile(module, torch.randn(rng.choice([1, 2, 3]), *row))
    inputs = [torch.randn(batch, *row) for batch in (1, 2, 5, 8, 1, 3, 4, 7)]
    for x in inputs:
        _require_close(f(x), own_results(module, x)[0])
    alone = [bits(f(x)) for x in inputs]
    for results in from_threads(8, f, inputs):
        assert [bits(result) for result in results] == alone
    assert bits(torch.cat([f(inputs[3][i:i + 1]) for i in range(8)])) == alone[3]
    assert bits(f.submit(inputs[2]).result()) == alone[2]
