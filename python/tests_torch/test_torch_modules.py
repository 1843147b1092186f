# SPDX-License-Identifier: Apache-2.0
"""Modules of all kinds: PyTorch's own results within 1e-5, and the bits of a lone run from threads."""
import inspect

import pytest
import torch
from torch import nn

import streampool.torch
from conftest import bits, flat, from_threads, own_results


def _with_statistics(module):
    """Batch norms that do something."""
    for part in module.modules():
        if isinstance(part, (nn.BatchNorm1d, nn.BatchNorm2d)):
            part.running_mean.uniform_(-0.5, 0.5)
            part.running_var.uniform_(0.5, 2)
    return module


def _mlp():
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))


def _encoder(batch_first):
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=batch_first)
    return nn.TransformerEncoder(layer, 6)


def _conv1d():
    return _with_statistics(nn.Sequential(
        nn.Conv1d(4, 8, 5, padding=2), nn.BatchNorm1d(8), nn.ReLU(), nn.Conv1d(8, 8, 3, groups=2),
        nn.GELU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(8, 3)))


def _conv2d():
    return _with_statistics(nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, stride=2), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(16, 3)))


class _Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 16)
        self.places = nn.Embedding(9, 16)
        self.norm = nn.LayerNorm(16)
        self.classes = nn.Linear(16, 5)

    def forward(self, ids):
        x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1])))
        return torch.softmax(self.classes(x.mean(1)), -1)


class _SelfAttention(nn.Module):
    def __init__(self, batch_first):
        super().__init__()
        self.attention = nn.MultiheadAttention(32, 4, batch_first=batch_first)

    def forward(self, x):
        return self.attention(x, x, x)


class _Einsums(nn.Module):
    """Attention of rotated heads, written by indices."""

    def forward(self, x):
        heads = x.reshape(x.shape[0], x.shape[1], 4, 8)
        places = torch.arange(x.shape[1], device=x.device).view(1, -1, 1, 1)
        angles = places / torch.arange(1, 9, device=x.device)
        turned = heads * torch.cos(angles) + heads.flip(-1) * torch.sin(angles)
        scores = torch.einsum("bqhd,bkhd->bhqk", turned, turned)
        return torch.einsum("bhqk,bkhd->bqhd", (scores / 8).softmax(-1), torch.atan(heads))


class _Angles(nn.Module):
    def forward(self, x):
        small = x.clamp(-0.9, 0.9)
        return torch.cat([torch.sin(x), torch.cos(x), torch.tan(small), torch.asin(small), torch.acos(small),
                          torch.atan(x)], -1)


class _Warped(nn.Module):
    """Images turned by an angle that follows from them."""

    def __init__(self, mode):
        super().__init__()
        self.mode = mode

    def forward(self, x):
        angle = x.mean((1, 2, 3)).view(-1, 1, 1, 1)
        y = torch.linspace(-1, 1, 6, device=x.device).view(1, 6, 1, 1)
        z = torch.linspace(-1, 1, 5, device=x.device).view(1, 1, 5, 1)
        grid = torch.cat([z * torch.cos(angle) - y * torch.sin(angle),
                          z * torch.sin(angle) + y * torch.cos(angle)], -1)
        return nn.functional.grid_sample(x, grid, mode=self.mode, padding_mode="border", align_corners=False)


def _floats(*shape):
    return lambda batch: torch.randn(batch, *shape)


def _time_first(time, *shape):
    """Dimension 1 is the batch."""
    return lambda batch: torch.randn(time, batch, *shape)


def _ids(batch):
    return torch.randint(0, 50, (batch, 9))


# Name: module, input of a batch.
MODULES = {
    "linear": (lambda: nn.Linear(16, 8), _floats(16)),
    "mlp": (_mlp, _floats(16)),
    "layer_norm": (lambda: nn.LayerNorm(16), _floats(5, 16)),
    "attention": (lambda: _SelfAttention(True), _floats(6, 32)),
    "attention_time_first": (lambda: _SelfAttention(False), _time_first(6, 32)),
    "encoder": (lambda: _encoder(True), _floats(6, 32)),
    "encoder_time_first": (lambda: _encoder(False), _time_first(6, 32)),
    "encoder_layer_norm_first": (lambda: nn.TransformerEncoderLayer(
        32, 4, 64, batch_first=True, norm_first=True, activation="gelu"), _floats(6, 32)),
    "lstm": (lambda: nn.LSTM(8, 16, 2, batch_first=True, bidirectional=True), _floats(5, 8)),
    "lstm_time_first": (lambda: nn.LSTM(8, 16), _time_first(5, 8)),
    "gru": (lambda: nn.GRU(8, 16, 2, batch_first=True), _floats(5, 8)),
    "gru_time_first": (lambda: nn.GRU(8, 16, bidirectional=True), _time_first(5, 8)),
    "conv1d": (_conv1d, _floats(4, 20)),
    "conv2d": (_conv2d, _floats(3, 12, 12)),
    "embedding": (_Words, _ids),
    "einsums": (_Einsums, _floats(6, 32)),
    "angles": (_Angles, _floats(16)),
    "warped": (lambda: _Warped("bilinear"), _floats(3, 6, 5)),
    "warped_cubic": (lambda: _Warped("bicubic"), _floats(3, 6, 5)),
}


def _free_batch(name, module):
    """dynamic_batch of a module whose batch is free."""
    return {next(iter(inspect.signature(module.forward).parameters)): 1} if "time_first" in name else True


def _require_own_results(f, module, inputs):
    for x in inputs:
        got, want = flat(f(x)), own_results(module, x)
        assert [tensor.shape for tensor in got] == [tensor.shape for tensor in want]
        for one, other in zip(got, want):
            assert one.dtype == other.dtype
            assert torch.allclose(one, other, rtol=0, atol=1e-5)


@pytest.mark.parametrize("is_dynamic", [True, False])
@pytest.mark.parametrize("name", MODULES)
def test_a_module_gives_its_own_results_with_the_same_bits_from_threads(name, is_dynamic):
    make, example = MODULES[name]
    module = make()
    free = _free_batch(name, module) if is_dynamic else False
    f = streampool.torch.compile(module, example(2), dynamic_batch=free)
    batches = [1, 2, 3, 7, 8] if is_dynamic else [2] * 5
    inputs = [example(batch) for batch in batches] * 3
    _require_own_results(f, module, inputs)
    alone = [bits(f(x)) for x in inputs]
    for count in (1, 8):
        for results in from_threads(count, f, inputs):
            assert [bits(result) for result in results] == alone


@pytest.mark.parametrize("name", ["mlp", "attention", "encoder", "conv1d", "conv2d", "embedding", "einsums",
                                  "angles", "warped"])
def test_rows_of_a_batch_have_the_bits_of_rows_alone(name):
    make, example = MODULES[name]
    f = streampool.torch.compile(make(), example(2))
    batch = example(5)
    rows = [bits(f(batch[i:i + 1])) for i in range(5)]
    assert [bits([part[i:i + 1] for part in flat(f(batch))]) for i in range(5)] == rows


def test_an_example_of_one_row_compiles_for_all_batches():
    for name in ("linear", "attention", "encoder", "lstm", "gru", "conv2d"):
        make, example = MODULES[name]
        module = make()
        f = streampool.torch.compile(module, example(1))
        _require_own_results(f, module, [example(1), example(4)])


@pytest.mark.parametrize("make", [lambda: nn.LSTM(8, 16), lambda: nn.GRU(8, 16, bidirectional=True)])
def test_the_time_may_be_free(make):
    module = make()
    f = streampool.torch.compile(module, torch.randn(4, 3, 8))
    _require_own_results(f, module, [torch.randn(time, 3, 8) for time in (1, 4, 9)])


def test_a_fixed_batch_refuses_others():
    f = streampool.torch.compile(nn.Linear(16, 8), torch.randn(2, 16), dynamic_batch=False)
    with pytest.raises(ValueError, match="input"):
        f(torch.randn(3, 16))


class _Each(nn.Module):
    def forward(self, x):
        return x, torch.cat([x, x], 1), x.to(torch.float32) * 2


@pytest.mark.parametrize("dtype", [torch.float16, torch.int8, torch.int32, torch.int64, torch.uint8,
                                   torch.bool])
def test_inputs_and_outputs_of_each_dtype(dtype):
    module = _Each()
    f = streampool.torch.compile(module, torch.ones(2, 3).to(dtype))
    x = (torch.rand(4, 3) * 9).to(dtype)
    assert [part.dtype for part in f(x)] == [dtype, dtype, torch.float32]
    assert bits(f(x)) == bits(f.submit(x).result()) == bits(module(x))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_dtypes_than_float32(dtype):
    module = nn.Sequential(nn.Linear(16, 8), nn.ReLU()).to(dtype)
    f = streampool.torch.compile(module, torch.randn(2, 16).to(dtype))
    x = torch.randn(3, 16).to(dtype)
    for result in (f(x), f.submit(x).result()):
        assert result.dtype is dtype
        assert torch.allclose(result.double(), own_results(module, x)[0].double(), rtol=0.02, atol=0.02)
