# SPDX-License-Identifier: Apache-2.0
"""Operators of the device "sp": which have kernels of ours, their results, dtypes, views, errors."""
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import streampool.torch.device as sp
from conftest import bits

DEVICE = sp._names.OWN_NAME
IS_TORCH_2 = DEVICE == "sp"


def _conv_transpose(x):
    torch.manual_seed(2)
    return nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2).to(x.device)(x)


def _cell(kind, x):
    torch.manual_seed(2)
    return kind(8, 6).to(x.device)(x)


NATIVE = {
    "linear": lambda x: F.linear(x, x[2:6], x[2:6, 0].clone()),
    "addmm_strided": lambda x: torch.addmm(x[0], x.t(), x),
    "mm": lambda x: torch.mm(x, x.t()),
    "mm_sliced": lambda x: torch.mm(x[:, 1:5], x[1:5]),
    "bmm": lambda x: torch.bmm(x.view(2, 4, 8), x.view(2, 4, 8).transpose(1, 2)),
    "baddbmm": lambda x: torch.baddbmm(x[:4, :4], x.view(2, 4, 8), x.view(2, 8, 4)),
    "layer_norm": lambda x: F.layer_norm(x, (8,), x[0], x[1]),
    "softmax": lambda x: torch.softmax(x, 0),
    "log_softmax": lambda x: torch.log_softmax(x.t(), -1),
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "relu": lambda x: F.relu(x.t()),
    "relu_in_place": lambda x: (x + 0).relu_(),
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "add": lambda x: x + x[:, :1],
    "add_number": lambda x: x + 2.5,
    "add_times": lambda x: torch.add(x, 2, alpha=3),
    "sub": lambda x: x - x[0],
    "mul": lambda x: 3 * x * x.t(),
    "mul_in_place": lambda x: (x + 0).mul_(x[0]).add_(1),
    "div": lambda x: x / 3,
    "cat": lambda x: torch.cat([x, x.t(), x[:2]], 0),
    "zeros": lambda x: x.new_zeros(3, 4) + torch.full((4,), 1.5, device=x.device),
    "copy": lambda x: x.t().contiguous(),
    "conv1d": lambda x: F.conv1d(x.view(1, 8, 8), x.view(4, 4, 4)[:, :, :3].clone(), x[0, :4].clone(),
                                 padding=2, stride=2, dilation=2, groups=2),
    "conv2d": lambda x: F.conv2d(x.view(1, 2, 4, 8), x.view(4, 2, 4, 2), padding=1),
    "conv3d": lambda x: F.conv3d(x.view(1, 1, 4, 4, 4), x.view(8, 1, 2, 2, 2)),
    "conv_transpose2d": lambda x: _conv_transpose(x.view(1, 4, 4, 4)),
    "lstm_cell": lambda x: _cell(nn.LSTMCell, x),
    "gru_cell": lambda x: _cell(nn.GRUCell, x),
    "attention": lambda x: torch.bmm(torch.softmax(torch.bmm(x.view(2, 4, 8) / math.sqrt(8),
                                                             x.view(2, 4, 8).transpose(1, 2)), -1),
                                     x.view(2, 4, 8)),
}
if IS_TORCH_2:
    NATIVE["scaled_dot_product_attention"] = lambda x: F.scaled_dot_product_attention(
        *[x.view(1, 2, 4, 8)] * 3)
    NATIVE["encoder_layer"] = lambda x: nn.TransformerEncoderLayer(
        8, 2, 16, batch_first=True, activation="gelu").eval().to(x.device)(x.view(2, 4, 8))
    NATIVE["multi_head_attention"] = lambda x: nn.MultiheadAttention(8, 2, batch_first=True).eval().to(
        x.device)(*[x.view(2, 4, 8)] * 3, need_weights=False)[0]


def _tensors(result):
    return list(result) if isinstance(result, tuple) else [result]


@pytest.mark.parametrize("name", NATIVE)
def test_an_operator_with_a_kernel_of_ours_does_not_use_the_hosts(name):
    x = torch.randn(8, 8)
    on_device = x.to("sp")
    with torch.no_grad():
        torch.manual_seed(5)
        want = _tensors(NATIVE[name](x))
        torch.manual_seed(5)
        NATIVE[name](on_device)  # modules that it makes initialise themselves on the host
        torch.manual_seed(5)
        before = sp.host_kernel_count()
        got = _tensors(NATIVE[name](on_device))
        assert sp.host_kernel_count() == before
    for one, other in zip(got, want, strict=True):
        assert one.device.type == DEVICE and one.shape == other.shape
        assert torch.allclose(one.cpu(), other, rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(not IS_TORCH_2, reason="PyTorch 2")
def test_attention_to_nothing_is_zero():
    x, mask = torch.randn(1, 2, 4, 8), torch.ones(4, 4, dtype=torch.bool)
    mask[2] = False
    want = F.scaled_dot_product_attention(x, x, x, mask)
    got = F.scaled_dot_product_attention(*[x.to("sp")] * 3, mask.to("sp")).cpu()
    assert torch.allclose(got, want, atol=1e-5) and not got[:, :, 2].any()


DTYPES = [torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64,
          torch.uint8, torch.bool, torch.complex64]


@pytest.mark.parametrize("dtype", DTYPES)
def test_other_dtypes_have_the_results_of_the_host(dtype):
    x = (torch.randn(4, 5) * 9).to(dtype)
    d = x.to("sp")
    for call in (lambda t: t.t().contiguous(), lambda t: torch.cat([t, t]), lambda t: t[1:, ::2].clone(),
                 lambda t: t.to(torch.float32 if not t.is_complex() else t.dtype) + 1,
                 lambda t: torch.where(t != 0, t, t), lambda t: t[t != 0], lambda t: t.flatten()[[3, 1]]):
        got, want = call(d).cpu(), call(x)
        assert got.dtype is want.dtype
        if dtype is torch.bfloat16:  # which NumPy does not have
            got, want = got.float(), want.float()
        assert bits(got) == bits(want)


def test_views_share_their_storage_and_see_writes():
    x = torch.zeros(4, 6).to("sp")
    x[1, 2:4] = 5
    x.t()[0].fill_(2)
    x.view(2, 12)[1, 11] = 9
    x.unfold(1, 2, 2)[2, 1, 0] = 4
    torch.view_as_complex(x.view(12, 2))[0] = 1 + 3j
    want = torch.zeros(4, 6)
    want[1, 2:4] = 5
    want[:, 0] = 2
    want[3, 5] = 9
    want[2, 2] = 4
    want[0, 0], want[0, 1] = 1, 3
    assert x.cpu().equal(want)
    assert x.data_ptr() == x.view(24).data_ptr() and x[1].data_ptr() == x.data_ptr() + 24


def test_results_given_by_out_are_resized():
    x = torch.randn(5, 3).to("sp")
    out = torch.empty(0, device=DEVICE)
    assert torch.exp(x, out=out) is out
    assert out.shape == (5, 3) and torch.allclose(out.cpu(), x.cpu().exp())
    values, places = torch.empty(0, device=DEVICE), torch.empty(0, dtype=torch.int64, device=DEVICE)
    torch.sort(x, dim=0, out=(values, places))
    assert values.cpu().equal(x.cpu().sort(0).values) and places.cpu().equal(x.cpu().sort(0).indices)
    out = torch.zeros(2).to("sp")
    out.resize_(1000).fill_(3)
    assert out.sum().item() == 3000


def test_tensors_of_several_devices_are_refused():
    x = torch.randn(4, 4)
    for call in (lambda a, b: a @ b, torch.add, torch.atan2, lambda a, b: torch.cat([a, b])):
        with pytest.raises(RuntimeError, match="same device"):
            call(x.to("sp"), x)
    for call in (lambda a, b: torch.exp(a, out=b), lambda a, b: b.add_(a), lambda a, b: b.lerp_(a, 0.5),
                 lambda a, b: a.add_(b), lambda a, b: a.mul_(b), lambda a, b: a.lerp_(b, 0.5),
                 lambda a, b: F.layer_norm(a, (4,), b[0]), lambda a, b: F.group_norm(a, 2, b[0], b[0])):
        with pytest.raises(RuntimeError, match="same device"):
            call(x.to("sp"), x.clone())
    assert torch.linalg.eigvals(x.to("sp")).shape == (4,)
    assert (x.to("sp") + torch.tensor(2.0)).cpu().equal(x + 2)
    assert x.to("sp")[torch.tensor([2, 0])].cpu().equal(x[[2, 0]])
    with pytest.raises((RuntimeError, TypeError)):
        x.to("sp").numpy()


def test_wrong_arguments_have_the_messages_of_pytorch():
    x = torch.randn(4, 4).to("sp")
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        x @ x[:3]
    with pytest.raises(RuntimeError, match="must match"):
        x + x[:, :3]
    with pytest.raises(IndexError, match="out of range"):
        torch.softmax(x, 5)
    with pytest.raises(IndexError):
        F.embedding(torch.tensor([9]).to("sp"), x)
    with pytest.raises(RuntimeError, match="one device"):
        torch.randn(2).to("sp:1")


REFUSED = {
    "a name of gelu": lambda x: F.gelu(x, approximate="sigmoid"),
    "a fill out of range": lambda x: x.fill_(-1e39),
    "a factor of True": lambda x: torch.add(x, x, alpha=True),
    "a factor of True in place": lambda x: x.add_(2, alpha=True),
    "a complex factor": lambda x: torch.add(x, 2, alpha=1j),
    "a complex factor of a difference": lambda x: torch.sub(x, 2, alpha=2j),
    "a difference from True": lambda x: x - True,
    "an output padding as large as the stride": lambda x: F.conv_transpose1d(x[None], x[:, :2, None],
                                                                             output_padding=1),
}


def _refusal(call, x):
    with pytest.raises(RuntimeError) as raised:
        call(x)
    return str(raised.value)


@pytest.mark.parametrize("name", REFUSED)
def test_arguments_that_the_host_refuses_have_its_message(name):
    x = torch.randn(4, 4)
    assert _refusal(REFUSED[name], x.to("sp")) == _refusal(REFUSED[name], x)


def test_memory_that_is_not_there_is_an_error_and_the_device_goes_on():
    with pytest.raises(RuntimeError, match="bytes|memory") as raised:
        torch.empty(1 << 44, dtype=torch.uint8, device=DEVICE)
    assert type(raised.value).__name__ == "OutOfMemoryError"
    assert torch.ones(3).to("sp").sum().item() == 3


def test_the_statistics_of_memory():
    sp.empty_cache()
    before = sp.memory_allocated()
    x = torch.empty(1 << 20, device=DEVICE)
    assert sp.memory_allocated() >= before + (4 << 20)
    assert sp.max_memory_allocated() >= sp.memory_reserved() >= sp.memory_allocated()
    del x
    sp.synchronize()
    assert sp.memory_allocated() < before + (4 << 20)
    assert sp.memory_stats()["in_use_bytes"] == sp.memory_allocated()


def test_random_numbers_follow_the_seed():
    torch.manual_seed(4)
    want = torch.randn(3, 3)
    torch.manual_seed(4)
    assert torch.randn(3, 3, device=DEVICE).cpu().equal(want)
    sp.manual_seed(4)
    state = sp.get_rng_state()
    assert torch.randn(3, 3, device=DEVICE).cpu().equal(want)
    sp.set_rng_state(state)
    assert torch.empty(3, 3, device=DEVICE).normal_().cpu().equal(want)
    if IS_TORCH_2:
        generator = torch.Generator(device="sp").manual_seed(4)
        assert torch.randn(3, 3, device="sp", generator=generator).cpu().equal(want)


@pytest.mark.skipif(not IS_TORCH_2, reason="PyTorch 2")
def test_pytorch_2_knows_the_device(tmp_path):
    assert torch.sp is sp and torch.empty(1, device="sp").is_sp
    x = torch.randn(3, 4).sp()
    torch.save(x, tmp_path / "x.pt")
    assert torch.load(tmp_path / "x.pt").cpu().equal(x.cpu())
    assert torch.load(tmp_path / "x.pt", map_location="cpu").device.type == "cpu"
    assert torch.accelerator.current_accelerator().type == "sp"
    torch.accelerator.synchronize()
    stream = torch.Stream(device="sp")
    first, last = (torch.Event(device="sp", enable_timing=True) for _ in range(2))
    first.record(stream)
    last.record(stream)
    last.synchronize()
    assert first.elapsed_time(last) >= 0
    x.record_stream(stream)
    own = torch.accelerator.current_stream()
    torch.accelerator.set_stream(stream)
    assert torch.accelerator.current_stream() == stream
    assert (x + 1).cpu().equal(x.cpu() + 1)
    torch.accelerator.set_stream(own)
    assert torch.accelerator.current_stream() == own
    assert torch.from_dlpack(x.cpu()).equal(x.cpu())
    assert nn.Linear(2, 2).sp().weight.is_sp


@pytest.mark.skipif(not IS_TORCH_2, reason="PyTorch 2")
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_recurrent_layers_are_trained_as_on_the_host(kind):
    def train(device):
        torch.manual_seed(3)
        model = kind(4, 5).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x = torch.randn(6, 2, 4).to(device)
        for _ in range(3):
            optimizer.zero_grad()
            model(x)[0].pow(2).sum().backward()
            optimizer.step()
        return [parameter.detach().cpu() for parameter in model.parameters()]

    for got, want in zip(train("sp"), train("cpu"), strict=True):
        assert torch.allclose(got, want, atol=1e-5)


@pytest.mark.skipif(not IS_TORCH_2, reason="PyTorch 2")
def test_an_encoder_takes_a_padding_mask():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).eval()
    x, mask = torch.randn(2, 4, 8), torch.tensor([[False, False, False, True], [False] * 4])
    with torch.no_grad():
        want = model(x, src_key_padding_mask=mask)
        got = model.to("sp")(x.to("sp"), src_key_padding_mask=mask.to("sp")).cpu()
    assert torch.allclose(got[~mask], want[~mask], atol=1e-5)
