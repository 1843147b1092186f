# SPDX-License-Identifier: Apache-2.0
"""Calls of compiled modules: forms of inputs and outputs, futures, errors."""
import asyncio
import collections
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
from torch import nn

import streampool
import streampool.torch
from streampool.torch import _compiled
from conftest import bits


class Scaled(nn.Module):
    """x, an optional bias, a factor, a mode."""

    def forward(self, x, bias=None, *, factor=2, mode="sum"):
        y = x * factor
        if bias is not None:
            y = y + bias
        return y if mode == "sum" else -y


Pair = collections.namedtuple("Pair", "first second")


class Nested(nn.Module):
    def forward(self, parts, table):
        first, (second, third) = parts
        total = first + second * table["scale"]
        return {"pair": Pair(total, [third, None]), "number": 7, "twice": (total, total),
                "largest": torch.max(first, 1)}


@pytest.fixture
def linear():
    module = nn.Linear(4, 3)
    return module, streampool.torch.compile(module, torch.randn(2, 4))


def test_a_tensor_of_the_package_is_taken_by_all_calls():
    for dtype in (torch.float32, torch.bfloat16, torch.bool, torch.int64):
        x = torch.tensor([[1, 0], [2, 3]]).to(dtype)
        f = streampool.torch.compile(nn.Flatten(0), x, dynamic_batch=False)
        own = streampool.from_dlpack(x) if dtype != torch.bool else streampool.tensor(x.numpy())
        for value in (own, own.to("null")):
            for result in (f(value), f(input=value), f.submit(value).result(), f.submit(input=value).result()):
                assert isinstance(result, torch.Tensor) and torch.equal(result, x.flatten())
    with pytest.raises(TypeError, match="'input' is int64; the tensor given is float32"):
        f.submit(streampool.tensor(np.float32([[1, 0], [2, 3]])))


def test_the_package_alone_does_not_import_torch():
    code = "import streampool, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_results_are_new_tensors_without_gradients(linear):
    _, f = linear
    x = torch.randn(2, 4)
    one, other = f(x), f(x)
    assert type(one) is torch.Tensor and not one.requires_grad
    assert one.data_ptr() != other.data_ptr()
    one.zero_()
    assert bits(f(x)) == bits(other)


def test_contiguous_inputs_are_used_in_place(linear):
    _, f = linear
    for x in (torch.randn(2, 4), torch.randn(2, 4, requires_grad=True), torch.randn(6, 4)[2:4]):
        assert _compiled._array_of(x, f.model.inputs[0]).ctypes.data == x.data_ptr()


@pytest.mark.parametrize("change", [
    lambda x: x.requires_grad_(), lambda x: nn.Parameter(x), lambda x: x.t().contiguous().t(),
    lambda x: x.repeat_interleave(2, 0)[::2], lambda x: x.repeat(1, 2)[:, :4]])
def test_tensors_of_any_strides_and_with_gradients_are_inputs(linear, change):
    _, f = linear
    x = torch.randn(3, 4)
    expected = bits(f(x))
    other = change(x.clone())
    assert torch.equal(other.detach(), x)
    assert bits(f(other)) == expected


def test_an_expanded_tensor_is_an_input(linear):
    _, f = linear
    row = torch.randn(1, 4)
    assert bits(f(row.expand(3, 4))) == bits(f(row.expand(3, 4).contiguous()))


def test_a_wrong_dtype_names_the_input(linear):
    _, f = linear
    with pytest.raises(TypeError, match="input 'input' is float32; the tensor given is float64"):
        f(torch.randn(2, 4).double())
    with pytest.raises(TypeError, match="input 'input' is float32; the tensor given is int64"):
        f.submit(torch.ones(2, 4, dtype=torch.int64))


def test_a_tensor_of_another_device_or_layout_is_refused(linear):
    _, f = linear
    with pytest.raises(TypeError, match=r"input 'input' is on meta; give it as .cpu\(\)"):
        f(torch.empty(2, 4, device="meta"))
    with pytest.raises(TypeError, match="layout torch.sparse_coo"):
        f(torch.eye(4).to_sparse())


def test_what_is_no_tensor_is_refused(linear):
    _, f = linear
    for value in (np.zeros((2, 4), np.float32), [1.0], None):
        with pytest.raises(TypeError, match="input 'input' is of type"):
            f(value)


def test_wrong_shapes_and_counts_are_refused(linear):
    _, f = linear
    with pytest.raises(ValueError, match="input"):
        f(torch.randn(2, 5))
    for args, kwargs in (((), {}), ((torch.randn(2, 4),) * 2, {}), ((), {"y": torch.randn(2, 4)})):
        with pytest.raises(TypeError):
            f(*args, **kwargs)


def test_several_inputs_by_position_and_by_name():
    module = Scaled()
    x, bias = torch.randn(3, 4), torch.randn(4)
    f = streampool.torch.compile(module, (x, bias))
    expected = bits(module(x, bias))
    assert [port.name for port in f.model.inputs] == ["x", "bias"]
    assert bits(f(x, bias)) == bits(f(x, bias=bias)) == bits(f(bias=bias, x=x)) == expected
    assert bits(f(x[:1], bias)) == bits(module(x[:1], bias))


def test_keyword_arguments_in_the_example():
    module = Scaled()
    x, bias = torch.randn(3, 4), torch.randn(4)
    expected = bits(module(x, bias, factor=3, mode="negative"))
    f = streampool.torch.compile(module, x, example_kwargs={"bias": bias, "factor": 3, "mode": "negative"})
    assert bits(f(x, bias=bias, factor=3, mode="negative")) == expected
    f = streampool.torch.compile(module, {"x": x, "bias": bias, "factor": 3, "mode": "negative"})
    assert bits(f(x, bias, factor=3, mode="negative")) == expected


def test_what_is_no_tensor_is_a_constant():
    x = torch.randn(3, 4)
    f = streampool.torch.compile(Scaled(), x)
    assert bits(f(x)) == bits(f(x, None, factor=2, mode="sum"))
    with pytest.raises(ValueError, match="'factor' is 3; it was compiled with the constant 2"):
        f(x, factor=3)
    with pytest.raises(ValueError, match="'factor' is 2.0"):
        f(x, factor=2.0)
    with pytest.raises(ValueError, match="'factor' is .*int64"):
        f(x, factor=np.int64(2))
    with pytest.raises(ValueError, match="'bias' is Tensor; it was compiled with the constant None"):
        f(x, torch.ones(4))


class Divided(nn.Module):
    def forward(self, x, by=0.0, self_=None):
        return x / by


def test_the_sign_of_a_zero_and_nan_as_constants():
    x = torch.ones(3, 4)
    f = streampool.torch.compile(Divided(), (x, 0.0))
    assert bits(f(x, 0.0)) == bits(x / 0.0)
    with pytest.raises(ValueError, match="'by' is -0.0; it was compiled with the constant 0.0"):
        f(x, -0.0)
    f = streampool.torch.compile(Divided(), (x, float("nan")))
    assert f(x, float("nan")).isnan().all()


class Own(nn.Module):
    def forward(this, self, args):
        return self - args


def test_parameters_with_names_that_the_call_has_too():
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    f = streampool.torch.compile(Own(), {"self": x, "args": y})
    assert bits(f(self=x, args=y)) == bits(f.submit(self=x, args=y).result()) == bits(x - y)


def test_nested_inputs_and_outputs_keep_their_structure():
    module = Nested()
    parts = (torch.randn(2, 3), [torch.randn(2, 3), torch.randn(2)])
    table = {"scale": torch.randn(2, 1)}
    f = streampool.torch.compile(module, (parts, table))
    got, want = f(parts, table), module(parts, table)
    assert list(got) == list(want) and got["number"] == 7
    assert type(got["pair"]) is Pair and got["pair"].second[1] is None
    assert type(got["largest"]) is type(want["largest"])
    assert bits([got["largest"].values, got["largest"].indices]) == bits(list(want["largest"]))
    assert bits([got["pair"].first, got["pair"].second[0], *got["twice"]]) == bits(
        [want["pair"].first, want["pair"].second[0], *want["twice"]])
    assert bits(f.submit(parts, table).result()["twice"][1]) == bits(want["twice"][1])


def test_another_structure_is_refused():
    parts = (torch.randn(2, 3), [torch.randn(2, 3), torch.randn(2)])
    table = {"scale": torch.randn(2, 1)}
    f = streampool.torch.compile(Nested(), (parts, table))
    with pytest.raises(TypeError, match="'parts_1' is of type tuple; it was compiled as list"):
        f((parts[0], tuple(parts[1])), table)
    with pytest.raises(TypeError, match="'parts_1' has 1 elements; it was compiled with 2"):
        f((parts[0], parts[1][:1]), table)
    with pytest.raises(TypeError, match="'table' has the keys"):
        f(parts, {"other": table["scale"]})


def test_an_input_that_the_module_does_not_use():
    class First(nn.Module):
        def forward(self, unused, x):
            return x + 1

    x = torch.randn(2, 3)
    f = streampool.torch.compile(First(), (torch.randn(2, 5), x))
    assert bits(f(torch.randn(2, 5), x)) == bits(x + 1)


def test_inputs_and_buffers_as_outputs():
    class Same(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", torch.arange(3.0))

        def forward(self, x):
            return x, self.table

    x = torch.randn(2, 3)
    f = streampool.torch.compile(Same(), x)
    same, table = f(x)
    assert bits([same, table]) == bits([x, torch.arange(3.0)])
    assert same.data_ptr() != x.data_ptr()


def test_sizes_that_follow_from_values():
    class Positive(nn.Module):
        def forward(self, x):
            return x[x > 0]

    module = Positive()
    f = streampool.torch.compile(module, torch.randn(3, 4))
    for _ in range(5):
        x = torch.randn(4, 4)
        assert bits(f(x)) == bits(module(x))


def test_an_empty_batch(linear):
    _, f = linear
    assert f(torch.empty(0, 4)).shape == (0, 3)


def test_futures_of_tensors(linear):
    _, f = linear
    inputs = [torch.randn(1 + i % 4, 4, requires_grad=i % 2 == 0) for i in range(40)]
    alone = [bits(f(x)) for x in inputs]
    futures = [f.submit(x) for x in inputs]
    assert [bits(future.result()) for future in futures] == alone

    async def main():
        return [bits(await future) for future in [f.submit(x) for x in inputs]]

    assert asyncio.run(main()) == alone


def test_a_future_keeps_its_inputs_alive(linear):
    _, f = linear
    x = torch.randn(64, 4)
    expected = bits(f(x))
    futures = [f.submit(x.clone()) for _ in range(200)]
    assert all(bits(future.result()) == expected for future in futures)


def test_the_model_behind_it(linear):
    _, f = linear
    x = torch.randn(2, 4)
    assert isinstance(f.model, streampool.Model)
    assert f.model(x.numpy()).tobytes() == f(x).numpy().tobytes()
    with streampool.BatchQueue(f.model, max_batch=4) as queue:
        results = [queue.submit(x.numpy()) for _ in range(8)]
        assert all(future.result().tobytes() == f(x).numpy().tobytes() for future in results)
    assert repr(f) == ("<streampool.torch.CompiledModule Linear(input: float32[batch, 4]) -> "
                       "(output: float32[batch, 3])>")


def test_calls_under_other_modes_of_the_thread(linear):
    _, f = linear
    x = torch.randn(2, 4)
    expected = bits(f(x))
    with torch.no_grad():
        assert bits(f(x)) == expected
    with torch.inference_mode():
        assert bits(f(x * 1)) == expected


def test_errors_of_one_thread_do_not_disturb_others(linear):
    _, f = linear
    x = torch.randn(2, 4)
    expected = bits(f(x))
    wrong = []

    def fail():
        for _ in range(200):
            try:
                f(torch.randn(2, 5))
            except ValueError:
                continue
            wrong.append("no error")

    threads = [threading.Thread(target=fail) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(500):
        assert bits(f(x)) == expected
    for thread in threads:
        thread.join()
    assert not wrong
