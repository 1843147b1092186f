# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors of the device "sp": the host's results, in shared memory, from any thread.

PyTorch 1.13 has coordinates (COO) only: its class of compressed tensors (CSR) refuses other devices.
"""
import gc
import resource

import pytest
import torch
from torch import nn

import streampool.torch.device as sp
from conftest import bits, from_threads

DEVICE = sp._names.OWN_NAME
IS_TORCH_2 = DEVICE == "sp"
LAYOUTS = ["coo", "csr"] if IS_TORCH_2 else ["coo"]
torch_2 = pytest.mark.skipif(not IS_TORCH_2, reason="PyTorch 2")
pytestmark = pytest.mark.filterwarnings("ignore:Sparse")


def _dense(rows=6, columns=5):
    x = torch.randn(rows, columns)
    return torch.where(x > 0, x, torch.zeros(()))


def _sparse(x, layout):
    return x.to_sparse_csr() if layout == "csr" else x.to_sparse()


def _duplicates(device):
    places = torch.tensor([[2, 0, 2, 1, 0], [0, 1, 0, 4, 1]], device=device)
    return torch.sparse_coo_tensor(places, torch.arange(1.0, 6.0).to(device), (3, 5))


def _parts(x):
    """The dense tensors of a result, on the host."""
    if x.layout is torch.sparse_coo:
        return [x._indices().cpu(), x._values().cpu()]
    if x.layout is torch.sparse_csr:
        return [x.crow_indices().cpu(), x.col_indices().cpu(), x.values().cpu()]
    return [x.detach().cpu()]


def _all_bits(x):
    return bits(_parts(x))


def _assert_same(got, want):
    assert got.device.type == DEVICE and got.layout is want.layout and got.shape == want.shape
    assert got.dtype is want.dtype
    if want.layout is torch.sparse_coo:
        assert got.is_coalesced() == want.is_coalesced()
    assert _all_bits(got) == _all_bits(want)


BOTH = {
    "to_dense": lambda s: s.to_dense(),
    "clone": lambda s: s.clone(),
    "detach": lambda s: s.detach(),
    "mul_number": lambda s: s * 3,
    "neg": torch.neg,
    "sqrt": torch.sqrt,
    "abs_in_place": lambda s: s.clone().neg_().abs_(),
    "times_dense": lambda s: s @ torch.ones(s.shape[1], 3, device=s.device),
    "times_vector": lambda s: torch.mv(s, torch.ones(s.shape[1], device=s.device)),
    "addmm": lambda s: torch.addmm(torch.ones(s.shape[0], 2, device=s.device), s,
                                   torch.ones(s.shape[1], 2, device=s.device), beta=2),
    "double": lambda s: s.to(torch.float64),
    "add": lambda s: s + s,
    "dense_add": lambda s: torch.ones(s.shape, device=s.device) + s,
    "zeros_like": torch.zeros_like,
    "resize_as": lambda s: torch.zeros_like(s).copy_(s) if s.layout is torch.sparse_coo else s,
}
COO = {
    "coalesce": lambda s: _duplicates(s.device).coalesce(),
    "add_in_place": lambda s: s.clone().add_(_sparse(s.to_dense().flip(0), "coo")),
    "out": lambda s: torch.add(s, s, out=torch.sparse_coo_tensor(s.shape, device=s.device)),
    "zero_in_place": lambda s: s.clone().zero_(),
    "transpose": lambda s: s.t(),
    "select": lambda s: s.select(0, 2),
    "index_select": lambda s: s.index_select(1, torch.tensor([3, 0], device=s.device)),
    "cat": lambda s: torch.cat([s, s]),
    "sum": torch.sparse.sum,
    "sum_of_rows": lambda s: torch.sparse.sum(s, 1),
    "softmax": lambda s: torch.sparse.softmax(s, 1),
    "mask": lambda s: torch.ones(s.shape, device=s.device).sparse_mask(s),
    "sparse_times_sparse": lambda s: torch.sparse.mm(s, s.t()),
    "product": lambda s: s * s,
    "isnan": torch.isnan,
    "to_coo": lambda s: s.to_dense().to_sparse(1),
    "empty": lambda s: torch.sparse_coo_tensor((3, 4), device=s.device),
    "resized": lambda s: s.clone().sparse_resize_((9, 9), 2, 0),
}
CSR = {
    "to_csr": lambda s: s.to_dense().to_sparse_csr(),
    "from_coo": lambda s: s.to_dense().to_sparse().to_sparse_csr(),
    "to_coo": lambda s: s.to_sparse(),
    "made": lambda s: torch.sparse_csr_tensor(s.crow_indices(), s.col_indices(), s.values(), s.shape),
    "sampled_addmm": lambda s: torch.sparse.sampled_addmm(
        s, torch.ones(s.shape[0], 2, device=s.device), torch.ones(2, s.shape[1], device=s.device)),
    "mm_reduce": lambda s: torch.sparse.mm(s, torch.ones(s.shape[1], 3, device=s.device), "mean"),
    "copy": lambda s: s.clone().copy_(s * 2),
}
CALLS = ([("coo", name, call) for name, call in [*BOTH.items(), *COO.items()]] +
         [("csr", name, call) for name, call in [*BOTH.items(), *CSR.items()] if IS_TORCH_2])


@pytest.mark.parametrize("layout, call", [pytest.param(layout, call, id=f"{layout}-{name}")
                                          for layout, name, call in CALLS])
def test_an_operator_has_the_result_of_the_host_alone_and_from_threads(layout, call):
    x = _dense()
    want = call(_sparse(x, layout))
    on_device = _sparse(x, layout).to("sp")  # by this thread's stream, read on those of others
    _assert_same(call(on_device), want)
    _assert_same(call(_sparse(x.to("sp"), layout)), want)
    for results in from_threads(8, lambda s: _all_bits(call(s)), [on_device] * 5):
        assert results == [_all_bits(want)] * 5
    assert _all_bits(on_device) == _all_bits(_sparse(x, layout))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_sparse_tensor_goes_to_the_device_and_back(layout):
    s = _sparse(_dense(), layout)
    there = s.to("sp")
    assert there.device == torch.device(DEVICE, 0) and there.layout is s.layout
    back = there.cpu()
    assert back.device.type == "cpu" and back.layout is s.layout and _all_bits(back) == _all_bits(s)
    assert there.to("cpu", torch.float64).dtype is torch.float64
    s.copy_((there * 2))
    assert s.to_dense().equal(back.to_dense() * 2)
    there.copy_(s)
    assert there.to_dense().cpu().equal(s.to_dense())
    assert torch.empty_like(there, device="cpu").device.type == "cpu"


def test_parts_share_the_memory_of_the_tensor():
    values = torch.arange(1.0, 4.0).to("sp")
    s = torch.sparse_coo_tensor(torch.tensor([[0, 1, 2]], device=DEVICE), values, (4,))
    assert s._values().data_ptr() == values.data_ptr()
    values.mul_(2)  # queued; nothing waits for it
    assert s.to_dense().cpu().tolist() == [2, 4, 6, 0]
    s = s.coalesce()
    before = s.values().data_ptr()
    s.neg_()
    assert s.values().data_ptr() == before and s.values().cpu().tolist() == [-2, -4, -6]


def test_what_concerns_the_tensor_alone_is_not_computed():
    s = _duplicates(DEVICE)
    before = sp.host_kernel_count()
    assert (s._nnz(), s.sparse_dim(), s.dense_dim(), s.is_coalesced()) == (5, 2, 0, False)
    assert s._indices().shape == (2, 5) and s._values().device.type == DEVICE
    assert s.cpu()._nnz() == 5 if IS_TORCH_2 else True
    assert sp.host_kernel_count() == before
    assert s.coalesce()._nnz() == 3 and s.coalesce().values().cpu().tolist() == [7, 4, 4]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_sparse_tensor_is_printed(layout):
    text = repr(_sparse(torch.eye(3), layout).to("sp"))
    assert f"device='{DEVICE}:0'" in text and f"torch.sparse_{layout}" in text and "nnz=3" in text


def test_wrong_input_has_a_message():
    x = _dense()
    s = x.to_sparse()
    for call in (lambda: s.to("sp") @ x.t(), lambda: s @ x.t().to("sp"), lambda: s.to("sp") + s,
                 lambda: s + s.to("sp"), lambda: x.to("sp") + s, lambda: s.clone().add_(s.to("sp")),
                 lambda: s.to("sp").clone().add_(s), lambda: torch.cat([s, s.to("sp")])):
        with pytest.raises(RuntimeError, match="same device"):
            call()
    with pytest.raises(RuntimeError, match="size"):
        s.to("sp") @ x.to("sp")
    with pytest.raises(RuntimeError, match="copy_.. between dense and sparse"):
        s.to("sp").copy_(x)
    checked = {"check_invariants": True} if IS_TORCH_2 else {}
    with pytest.raises(RuntimeError, match="size is inconsistent|found index"):
        torch.sparse_coo_tensor(torch.tensor([[7]]), torch.ones(1), (3,), device=DEVICE, **checked)
    with pytest.raises(RuntimeError, match="coalesce"):
        _duplicates(DEVICE).values()
    assert (s.to("sp") @ x.t().to("sp")).cpu().equal(s @ x.t())


def test_indices_of_the_host_are_copied():
    places = torch.tensor([[0, 2]])
    s = torch.sparse_coo_tensor(places, torch.ones(2).to("sp"), (3,))
    places.fill_(1)
    assert s.to_dense().cpu().tolist() == [1, 0, 1]


def test_the_host_has_a_message_where_it_cannot_hold_compressed_tensors():
    x = _dense()
    if IS_TORCH_2:
        with pytest.raises(RuntimeError, match="same device"):
            x.to_sparse_csr().to("sp") @ x.t()
        return
    with pytest.raises(NotImplementedError, match="PyTorch before 2.6 has no compressed"):
        x.to("sp").to_sparse_csr()
    with pytest.raises(RuntimeError, match="SparseCsr"):
        x.to_sparse_csr().to("sp")


def _train(device):
    torch.manual_seed(3)
    table = nn.Embedding(10, 4, sparse=True).to(device)
    weight = torch.randn(4, 2).to(device).requires_grad_()
    links = _dense(5, 5).to_sparse().to(device)
    optimizer = torch.optim.SGD([*table.parameters(), weight], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        rows = table(torch.tensor([1, 2, 2, 9, 0]).to(device))
        torch.sparse.mm(links, rows @ weight).pow(2).sum().backward()
        assert table.weight.grad.is_sparse
        optimizer.step()
    return table.weight.detach().cpu(), weight.detach().cpu()


def test_steps_of_training_are_those_of_the_host():
    for got, want in zip(_train("sp"), _train("cpu")):
        assert torch.allclose(got, want, atol=1e-5)


@torch_2
@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
@pytest.mark.parametrize("of", [0, 1])
def test_gradients_of_reduced_products(reduce, of):
    def gradient(device):  # the forward kernel keeps places for the backward one if there will be one
        factors = [_sparse(x, "csr").to(device).detach(), y.to(device)]
        factors[of].requires_grad_()
        torch.sparse.mm(*factors, reduce).pow(2).sum().backward()
        return factors[of].grad

    x, y = _dense(), torch.randn(5, 3)
    _assert_same(gradient("sp"), gradient("cpu"))


@torch_2
def test_the_optimizer_for_sparse_gradients():
    def train(device):  # PyTorch 1.13 makes its tensors by a call that knows no such device
        torch.manual_seed(3)
        table = nn.Embedding(10, 4, sparse=True).to(device)
        optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            table(torch.tensor([1, 2, 2]).to(device)).pow(2).sum().backward()
            optimizer.step()
        return table.weight.detach().cpu()

    assert torch.allclose(train("sp"), train("cpu"), atol=1e-5)


@torch_2
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_sparse_tensor_is_saved_and_loaded(layout, tmp_path):
    s = _sparse(_dense(), layout)
    torch.save(s.to("sp"), tmp_path / "s.pt")
    _assert_same(torch.load(tmp_path / "s.pt"), s)


@torch_2
@pytest.mark.parametrize("kind", ["csc", "bsr", "bsc"])
def test_other_compressed_layouts(kind):
    x = _dense(6, 4)
    size = ((2, 2),) if kind != "csc" else ()
    s = getattr(x.to("sp"), f"to_sparse_{kind}")(*size)
    assert s.device.type == DEVICE and s.layout is getattr(torch, f"sparse_{kind}")
    assert s.to_dense().cpu().equal(x) and s.cpu().to_dense().equal(x)


def test_several_threads_write_into_shared_tensors():
    s, d = _duplicates(DEVICE).coalesce(), torch.zeros(3, 5).to("sp")

    def work(_):
        for _ in range(50):
            s.neg_().neg_()
            d.add_(s)
        return s._nnz(), s.is_coalesced()

    assert from_threads(8, work, [None]) == [[(3, True)]] * 8
    assert s.values().cpu().tolist() == [7, 4, 4] and d.abs().sum().item() <= 400 * 15


def test_several_threads_replace_the_parts_of_a_shared_tensor_and_do_not_crash():
    one, two = (torch.sparse_coo_tensor((40, 40), device=DEVICE) for _ in range(2))
    eye = torch.eye(40).to("sp").to_sparse()

    def work(place):
        for i in range(100):
            target, other = (one, two) if (i + place) % 2 else (two, one)
            target.add_(eye)        # other indices and values each time
            target.copy_(eye * 2)
            assert other._nnz() in range(0, 81) and other._values().shape[0] in range(0, 81)
            other.to_dense().cpu()
        return place

    assert from_threads(8, work, list(range(8))) == [list(range(8))] * 8
    for s in (one, two):
        s = s.coalesce().cpu()
        assert s.values().shape[0] == s.indices().shape[1]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_memory_is_released_with_the_tensor(layout):
    gc.collect()
    sp.synchronize()
    before = sp.memory_allocated()
    x = _sparse(torch.ones(512, 512), layout).to("sp")
    parts = [part.data_ptr() for part in (x.values(), x.to_dense())]
    assert all(parts) and sp.memory_allocated() >= before + (1 << 20)
    del x
    sp.synchronize()
    assert sp.memory_allocated() == before
    d = torch.ones(1024, 1024).to("sp")
    _sparse(d, layout)
    sp.synchronize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(50):  # 20 MB each, in memory of the host's kernels
        y = _sparse(d, layout) * 2
    del y
    sp.synchronize()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < peak + 300_000
