# SPDX-License-Identifier: Apache-2.0
"""compile()'s comparison of results that are small leftovers of larger terms: right ones and wrong ones."""
import copy
import random

import pytest
import torch
from torch import nn

import streampool.torch
from streampool.torch import CompileError, _compile
from conftest import own_results


class Returns(nn.Module):
    """A module of one expression."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Twins(nn.Module):
    """The difference of two layers whose weights are almost the same."""

    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(2048, 8), nn.Linear(2048, 8)
        self.other.load_state_dict(self.one.state_dict())
        with torch.no_grad():
            self.other.weight += 1e-6 * torch.randn(8, 2048)

    def forward(self, x):
        return self.one(x) - self.other(x)


class Products(nn.Module):
    """A product of three matrices less the same in another order."""

    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.randn(64, 64))

    def forward(self, x):
        return (x @ self.weight) @ self.weight.T - x @ (self.weight @ self.weight.T)


def _centred():
    """A layer whose weights have no mean, for rows of almost equal values: its terms are products."""
    layer = nn.Linear(2048, 8)
    with torch.no_grad():
        weight = torch.randn(8, 2048)
        layer.weight.copy_(1000 * (weight - weight.mean(-1, keepdim=True)))
    return layer


def _moments(x):
    return (x * x).mean(-1) - x.mean(-1) ** 2


LEFTOVERS = {
    "a variance by two moments": lambda: (Returns(_moments), 100 + torch.randn(3, 300)),
    "two layers": lambda: (Twins(), torch.randn(3, 2048)),
    "two orders of a product": lambda: (Products(), torch.randn(3, 64)),
    "one layer": lambda: (_centred(), 1000 + 0.001 * torch.randn(3, 2048)),
}


@pytest.mark.parametrize("name", LEFTOVERS)
def test_what_is_left_of_larger_terms_is_accepted(name):
    module, x = LEFTOVERS[name]()
    state = {name: value.clone() for name, value in module.state_dict().items()}
    f = streampool.torch.compile(module, x)
    assert f(x).shape == own_results(module, x)[0].shape
    for own, value in module.state_dict().items():
        assert value.dtype == torch.float32 and torch.equal(value, state[own])


class Wrong(nn.Module):
    """Another module; the exporter sees the batch of four only, for which something is added."""

    def __init__(self, module, error):
        super().__init__()
        self.module, self.error = module, error

    def forward(self, x):
        return self.module(x) + (self.error if len(x) > 3 else 0.0)


def _refuse(module, x):
    with pytest.raises(CompileError, match="does not give the module's results: 'output'"):
        streampool.torch.compile(module, x)


@pytest.mark.parametrize("name, error", [("a variance by two moments", 0.1), ("two layers", 3e-5),
                                         ("two orders of a product", 2e-3), ("one layer", 1000.0)])
def test_a_wrong_leftover_is_refused(name, error):
    module, x = LEFTOVERS[name]()
    streampool.torch.compile(Wrong(module, 0.0), x)
    _refuse(Wrong(module, error), x)


def test_a_module_of_single_precision_has_the_former_bound():
    """Its product raises in double precision."""
    products = Products()
    _refuse(Returns(lambda x: Products.forward(products, x)), torch.randn(3, 64))


def test_a_module_that_is_another_one_in_double_precision_is_refused():
    """The result in double precision is the wrong one that is compiled."""
    _refuse(Returns(lambda x: x * 2 if len(x) > 3 or x.dtype == torch.float64 else x), torch.randn(3, 4))


def test_a_random_leftover_is_refused():
    """Other numbers in double precision do not excuse those that are compiled."""
    _refuse(Returns(lambda x: (100 + 0.001 * random.random() * x) - 100), torch.rand(30, 40))


def test_infinities_are_those_of_the_module():
    """In double precision there are none; the other elements are leftovers."""
    class Overflowing(nn.Module):
        def forward(self, x):
            return torch.cat([(x * 1e30 * 1e30)[:, :1], _moments(x)[:, None]], 1)

    x = 100 + torch.randn(3, 300)
    assert streampool.torch.compile(Overflowing(), x)(x)[:, 0].isinf().all()
    signs = torch.tensor([-1.0, 1.0])
    _refuse(Returns(lambda y: Overflowing()(y) * (signs if len(y) > 3 else 1)), x)


def _rounded(x):
    """Where an element is 0.5, it is 0 in single and 1 in double precision. -1e9 is no term of it."""
    masked = x.masked_fill(x > 9, -1e9)
    return torch.round(x + 1e-9) + masked.exp() * 1e-3


def test_one_element_that_differs_in_double_precision_excuses_few_others():
    x = torch.rand(3, 100)
    x[0, 0], x[0, 1] = 0.5, 10
    streampool.torch.compile(Wrong(Returns(_rounded), 0.0), x)
    _refuse(Wrong(Returns(_rounded), 0.9), x)


def test_a_result_that_is_infinite_in_double_precision_excuses_nothing():
    """So is its largest term."""
    def scaled(x):
        largest = x.new_tensor(torch.finfo(x.dtype).max)
        return (x * largest) * (1 / largest if x.dtype == torch.float32 else 2 / x)

    x = 0.5 + 0.1 * torch.rand(3, 4)
    streampool.torch.compile(Wrong(Returns(scaled), 0.0), x)
    _refuse(Wrong(Returns(scaled), 0.5), x)


def test_the_difference_of_a_result_with_infinities_is_a_number():
    module = Wrong(Returns(lambda x: torch.cat([x / 0, x], 1)), 0.5)
    with pytest.raises(CompileError, match="the largest difference is 0.5"):
        streampool.torch.compile(module, torch.rand(3, 4))
    signs = Returns(lambda x: x / (0.0 if len(x) > 3 else -0.0))
    with pytest.raises(CompileError, match="the largest difference is inf"):
        streampool.torch.compile(signs, torch.rand(3, 4))


@pytest.fixture
def narrow(monkeypatch):
    """Loads with a precision as far as the CPU has one: the file that was loaded first instead, which is
    to be that of a module with rounded weights."""
    load, files = _compile.load, []

    def loaded(data, device, **options):
        files.append(bytes(data))
        is_narrow = options.pop("precision", "default") != "default"
        return load(files[0] if is_narrow else data, device, **options)

    monkeypatch.setattr(_compile, "load", loaded)


def test_the_rounding_of_a_precision_is_no_difference(narrow):
    module, x = nn.Linear(64, 8), torch.randn(3, 64)
    rounded = copy.deepcopy(module).bfloat16().float()
    own = streampool.torch.compile(Wrong(rounded, 0.0), x)(x)
    assert torch.equal(streampool.torch.compile(Wrong(module, 0.0), x, precision="bf16")(x), own)
    with pytest.raises(CompileError, match="does not give the module's results"):
        streampool.torch.compile(Wrong(module, 0.5), x, precision="bf16")
