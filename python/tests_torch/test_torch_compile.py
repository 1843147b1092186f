# SPDX-License-Identifier: Apache-2.0
"""compile(): what it leaves as it was, what it refuses, and what it finds out."""
import gc
import weakref

import pytest
import torch
from torch import nn

import streampool
import streampool.torch
from streampool.torch import CompileError
from conftest import bits, flat, own_results
from together import together


class Returns(nn.Module):
    """A module of one expression."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def _mixed():
    """Training and eval parts, frozen and other parameters."""
    module = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(), nn.Linear(8, 2))
    module[1].eval()
    module[0].weight.requires_grad_(False)
    module[3].requires_grad_(False)
    return module


def _flags(module):
    return ([part.training for part in module.modules()],
            [parameter.requires_grad for parameter in module.parameters()],
            torch.is_grad_enabled(), torch.is_inference_mode_enabled())


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_the_module_and_the_thread_are_as_before(mode):
    module = _mixed()
    state = {name: value.clone() for name, value in module.state_dict().items()}
    with mode():
        flags = _flags(module)
        f = streampool.torch.compile(module, torch.randn(3, 4))
        assert _flags(module) == flags
    assert all(torch.equal(value, state[name]) for name, value in module.state_dict().items())
    assert all(parameter.grad is None for parameter in module.parameters())
    x = torch.randn(5, 4)
    assert torch.allclose(f(x), own_results(module, x)[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad])
def test_they_are_so_after_a_failure_too(mode):
    module = nn.Sequential(_mixed(), Returns(lambda x: torch.fft.fft(x).real))
    with mode():
        flags = _flags(module)
        with pytest.raises(CompileError):
            streampool.torch.compile(module, torch.randn(3, 4))
        assert _flags(module) == flags
    assert streampool.torch.compile(nn.Linear(4, 2), torch.randn(3, 4))(torch.ones(1, 4)).shape == (1, 2)


@pytest.mark.parametrize("is_frozen", [True, False])
@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_attention_is_exported_in_every_mode(mode, is_frozen):
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).requires_grad_(not is_frozen)
    module = nn.Sequential(nn.Embedding(9, 16).requires_grad_(not is_frozen), layer)
    ids = torch.randint(0, 9, (2, 5))
    with mode():
        f = streampool.torch.compile(module, ids)
    assert torch.allclose(f(ids), own_results(module, ids)[0], rtol=0, atol=1e-5)


def test_the_state_is_frozen():
    module = nn.Linear(4, 2)
    x = torch.randn(3, 4)
    f = streampool.torch.compile(module, x)
    before = bits(f(x))
    with torch.no_grad():
        module.weight.zero_()
    assert bits(f(x)) == before


class Counting(nn.Module):
    """Its forward changes the values of one buffer and replaces another."""

    def __init__(self):
        super().__init__()
        self.part = nn.Module()
        self.part.register_buffer("calls", torch.zeros(1))
        self.register_buffer("last", torch.full((1,), float("nan")))
        self.register_buffer("none", None)

    def forward(self, x):
        self.part.calls += 1
        self.last = x.sum().reshape(1)
        return x * 2


@pytest.mark.parametrize("fails", [False, True])
def test_buffers_that_the_module_changes_are_as_before(fails):
    module = Counting()
    last = module.last
    if fails:
        whole = nn.Sequential(module, Returns(lambda x: torch.fft.fft(x).real))
        with pytest.raises(CompileError):
            streampool.torch.compile(whole, torch.randn(3, 4))
    else:
        streampool.torch.compile(module, torch.randn(3, 4))
    assert module.part.calls == 0 and module.last is last and last.isnan().all() and module.none is None
    assert list(module._buffers) == ["last", "none"]


@pytest.mark.parametrize("function", [lambda x: x // 3, lambda x: torch.floor_divide(x, 3)])
def test_integers_are_divided_as_the_module_does(function):
    """PyTorch's exporter rounds toward zero."""
    example, x = torch.arange(6).reshape(3, 2), torch.tensor([[-7, 7], [-3, 3], [-1, 0]])
    f = streampool.torch.compile(Returns(function), example)
    assert f(x).tolist() == function(x).tolist() == [[-3, 2], [-1, 1], [-1, 0]]
    values = torch.tensor([[-3.5, 3.5]])
    f = streampool.torch.compile(Returns(function), torch.rand(3, 2))
    assert bits(f(values)) == bits(function(values))


def test_the_exception_that_the_caller_handles_keeps_its_frames():
    def fail():
        kept = [1]
        raise ValueError(kept)

    try:
        fail()
    except ValueError as own:
        with pytest.raises(CompileError):
            streampool.torch.compile(Returns(lambda x: torch.fft.fft(x).real), torch.randn(3, 4))
        assert own.__traceback__.tb_next.tb_frame.f_locals["kept"] == [1]


def test_the_module_is_not_kept():
    module = nn.Sequential(nn.Linear(4, 2), nn.LSTM(2, 2))
    f = streampool.torch.compile(module, torch.randn(3, 4))
    gone = weakref.ref(module)
    del module
    gc.collect()
    assert gone() is None
    assert f(torch.randn(3, 4))[0].shape == (3, 2)


def test_the_example_is_not_written():
    x = torch.randn(3, 4)
    own = x.clone()
    f = streampool.torch.compile(Returns(lambda y: y.add_(1) * 2), x)
    assert torch.equal(x, own)
    assert bits(f(x)) == bits((own + 1) * 2)
    assert torch.equal(x, own)


def test_compiles_at_the_same_time():
    modules = [nn.Sequential(nn.Linear(4, 4 + i), nn.Dropout(0.5)) for i in range(8)] * 2
    x = torch.randn(3, 4)
    results = together(lambda place: streampool.torch.compile(modules[place], x)(x), len(modules))
    assert all(module.training for module in modules)
    for module, result in zip(modules, results):
        assert torch.allclose(result, own_results(module, x)[0], rtol=0, atol=1e-5)


def test_a_layer_norm_without_weights():
    module = nn.LayerNorm(16, elementwise_affine=False)
    x = torch.randn(3, 16)
    assert torch.allclose(streampool.torch.compile(module, x)(x), module(x), rtol=0, atol=1e-5)


def test_an_operator_without_an_onnx_form_is_named():
    module = nn.Sequential(nn.Linear(4, 4), Returns(lambda x: torch.fft.fft(x).real))
    with pytest.raises(CompileError, match=r"aten::fft_fft at \S*test_torch_compile.py:\d+") as info:
        streampool.torch.compile(module, torch.randn(3, 4))
    assert info.value.status == streampool.Status.UNSUPPORTED
    assert info.value.__cause__ is not None


def test_exceptions_that_are_kept_do_not_disturb_later_exports():
    """PyTorch 1.13 takes a new graph for one that a kept traceback still has."""
    kept = []
    x = torch.randn(3, 4)
    for width in range(2, 22):
        with pytest.raises(CompileError) as info:
            streampool.torch.compile(Returns(lambda y: y + torch.rand_like(y)), x)
        kept.append(info)
        with pytest.raises(CompileError) as info:
            streampool.torch.compile(Returns(lambda y: torch.fft.fft(y).real), x)
        kept.append(info)
        module = nn.Sequential(nn.Linear(4, width), nn.ReLU())
        f = streampool.torch.compile(module, x)
        assert torch.allclose(f(x), own_results(module, x)[0], rtol=0, atol=1e-5)


def test_an_operator_that_the_library_lacks_is_named():
    module = Returns(lambda x: x + torch.rand_like(x))
    with pytest.raises(CompileError, match="node '.*RandomUniformLike.*op RandomUniformLike") as info:
        streampool.torch.compile(module, torch.randn(3, 4))
    assert info.value.status == streampool.Status.UNSUPPORTED
    assert isinstance(info.value.__cause__, streampool.Error)


def test_a_dtype_that_an_operator_lacks_is_no_matter_of_the_batch():
    module = Returns(lambda x: x + x)
    for options in ({}, {"dynamic_batch": False}):
        with pytest.raises(CompileError, match=r"Add.* for type bool; convert the input .* help\(streampool.ops.Add\)") as info:
            streampool.torch.compile(module, torch.zeros(3, 4, dtype=torch.bool), **options)
        assert "dynamic_batch" not in str(info.value)


def test_what_the_exporter_takes_for_a_constant_is_found():
    module = Returns(lambda x: x * 2 if len(x) > 3 else x)
    with pytest.raises(CompileError, match="does not give the module's results: 'output'"):
        streampool.torch.compile(module, torch.randn(3, 4))
    x = torch.randn(3, 4)
    assert bits(streampool.torch.compile(module, x, dynamic_batch=False)(x)) == bits(x)
    wrong = streampool.torch.compile(module, x, check=False)
    assert bits(wrong(x)) == bits(x * 2)


def test_a_batch_that_the_code_fixes_is_found():
    module = Returns(lambda x: torch.ones(int(x.shape[0]), 4) + x)
    with pytest.raises(CompileError, match="dynamic_batch=False") as info:
        streampool.torch.compile(module, torch.randn(3, 4))
    assert isinstance(info.value.__cause__, streampool.Error)
    x = torch.randn(3, 4)
    f = streampool.torch.compile(module, x, dynamic_batch=False)
    assert bits(f(x)) == bits(x + 1)


def test_random_results_are_found():
    module = Returns(lambda x: nn.functional.dropout(x, training=True))
    with pytest.raises(CompileError):
        streampool.torch.compile(module, torch.randn(30, 40))


def test_a_module_that_fails_with_another_batch():
    weight = torch.randn(3, 3)
    module = Returns(lambda x: weight @ x)
    with pytest.raises(CompileError, match="fails with a batch of 4.*dynamic_batch=False"):
        streampool.torch.compile(module, torch.randn(3, 4))
    x = torch.randn(3, 4)
    f = streampool.torch.compile(module, x, dynamic_batch=False)
    assert torch.allclose(f(x), weight @ x, rtol=0, atol=1e-5)


def test_inputs_without_the_batch_stay_fixed():
    class Masked(nn.Module):
        def forward(self, x, mask):
            return x * mask

    f = streampool.torch.compile(Masked(), {"x": torch.randn(3, 5), "mask": torch.randn(1, 5)})
    assert [port.shape for port in f.model.inputs] == [("batch", 5), (1, 5)]
    f = streampool.torch.compile(Masked(), (torch.randn(3, 5), torch.randn(3, 5)))
    assert [port.shape for port in f.model.inputs] == [("batch", 5), ("batch", 5)]


def test_the_dimensions_of_a_batch_by_name():
    module = nn.LSTM(4, 6)
    example = (torch.randn(5, 3, 4), (torch.randn(1, 3, 6), torch.randn(1, 3, 6)))
    f = streampool.torch.compile(module, example, dynamic_batch={"input": 1, "hx_0": 1, "hx_1": 1})
    assert [port.shape for port in f.model.inputs] == [(5, "batch", 4), (1, "batch", 6), (1, "batch", 6)]
    x, states = torch.randn(5, 7, 4), (torch.randn(1, 7, 6), torch.randn(1, 7, 6))
    for got, want in zip(flat(f(x, states)), own_results(module, x, states)):
        assert torch.allclose(got, want, rtol=0, atol=1e-5)
    for batch, text in [({"hx": 1}, r"names the inputs \['hx'\]"), ({}, "names the inputs"),
                        ({"input": 3}, "dimension 3 of input 'input'"),
                        ({"input": 0, "hx_0": 1}, "different sizes: {'input': 5, 'hx_0': 3}")]:
        with pytest.raises(ValueError, match=text):
            streampool.torch.compile(module, example, dynamic_batch=batch)


def test_a_number_that_depends_on_the_batch_is_no_result():
    module = Returns(lambda x: (x, len(x)))
    with pytest.raises(CompileError, match="other numbers in it"):
        streampool.torch.compile(module, torch.randn(3, 4))
    x = torch.randn(3, 4)
    assert streampool.torch.compile(module, x, dynamic_batch=False)(x)[1] == 3


@pytest.mark.parametrize("function, text", [
    (lambda x: None, "no tensor"), (lambda x: (1, "text"), "no tensor"),
    (lambda x: {"x": object()}, "'output_x' is of type object; it can have tensors, numbers")])
def test_results_that_are_no_tensors_are_refused(function, text):
    with pytest.raises(TypeError, match=text):
        streampool.torch.compile(Returns(function), torch.randn(3, 4))


def test_bad_arguments():
    linear, x = nn.Linear(4, 2), torch.randn(3, 4)
    for module, example, error, text in [
            (lambda y: y, x, TypeError, "must be a torch.nn.Module"),
            (torch.jit.script(linear), x, TypeError, "ScriptModule"),
            (linear, 7, TypeError, "example_inputs is of type int"),
            (linear, (x, x), TypeError, "too many positional"),
            (linear, (3,), TypeError, "no tensor"),
            (linear, (object(),), TypeError, "'input' is of type object"),
            (linear, torch.empty(3, 4, device="meta"), TypeError, "on meta"),
            (nn.Linear(4, 2, device="meta"), x, TypeError, "'weight' of the module is on meta"),
            (linear, x.to_sparse(), TypeError, "'input' has the layout torch.sparse_coo; give it as .to_dense"),
            (linear, torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), TypeError, "'input' is quantized; .*dequantize"),
            (linear, x.to(torch.complex64), TypeError, "'input' is complex64, .*view_as_real"),
            (linear, torch.empty(0, 4), ValueError, "batch of the example is empty"),
            (nn.ReLU(), torch.tensor(1.0), ValueError, "no example input has a dimension")]:
        with pytest.raises(error, match=text):
            streampool.torch.compile(module, example)
    for options, text in [({"example_kwargs": 3}, "example_kwargs is of type int"),
                          ({"dynamic_batch": "input"}, "dynamic_batch is of type str"),
                          ({"dynamic_batch": {"input": "0"}}, "type str as the dimension of input 'input'")]:
        with pytest.raises(TypeError, match=text):
            streampool.torch.compile(linear, x, **options)


def test_what_the_module_raises_comes_through():
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        streampool.torch.compile(nn.Linear(4, 2), torch.randn(3, 5))


def test_options_of_load_and_no_batch():
    f = streampool.torch.compile(nn.ReLU(), torch.tensor(-1.0), dynamic_batch=False, release_gil=True)
    assert f(torch.tensor(2.0)) == 2 and f(torch.tensor(-2.0)) == 0
    with pytest.raises(TypeError, match="no option"):
        streampool.torch.compile(nn.ReLU(), torch.randn(2), no_such_option=1)
