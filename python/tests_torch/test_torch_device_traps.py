# SPDX-License-Identifier: Apache-2.0
"""What is easily wrong in a device of PyTorch: order between threads, lifetimes of memory, lazy views."""
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

import streampool.torch.device
from together import together

DEVICE = streampool.torch.device._names.OWN_NAME
IS_TORCH_2 = DEVICE == "sp"


def _slow(x, count=30):
    """A chain of products that is still queued when it is returned."""
    for _ in range(count):
        x = x @ x
        x = x * (1 / 200)
    return x


def _ones(size=200):
    return torch.ones(size, size)


def test_a_tensor_that_one_thread_makes_is_read_by_others_without_a_wait():
    # 1: each thread has a stream of its own; storages order their uses.
    want = _slow(_ones())
    weight = nn.Linear(200, 200).to("sp")
    expected = None
    with ThreadPoolExecutor(max_workers=4) as pool, torch.no_grad():
        for _ in range(20):
            made = _slow(_ones().to("sp"))  # queued on this thread's stream

            def use(_, made=made):
                with torch.no_grad():
                    return weight(made).cpu(), made.cpu()

            for product, read in pool.map(use, range(4)):
                assert torch.allclose(read, want, rtol=1e-3)
                expected = product if expected is None else expected
                assert product.equal(expected)


def test_memory_of_a_queued_reader_is_not_written_by_the_host():
    # 2: a freed block goes to the next tensor of the thread, which the host writes at once.
    want = None
    for _ in range(50):
        a = torch.full((200, 200), 1.0).to("sp")
        b = _slow(a, 5)  # reads a's block when its turn comes
        del a
        reused = torch.full((200, 200), -7.0, device=DEVICE)  # a kernel of the host, in place
        result = b.cpu()
        want = result if want is None else want
        assert result.equal(want) and bool((reused == -7).all())


def test_memory_that_the_host_made_is_kept_for_queued_readers():
    # 3: the result of a fallback is freed while commands that read it are queued.
    x = _ones().to("sp")
    want = None
    for _ in range(50):
        made = torch.exp(x * 0)  # by the host
        y = _slow(made, 5)
        del made
        noise = [torch.exp(torch.randn(200, 200)) for _ in range(4)]  # the host's allocator reuses
        result = y.cpu()
        want = result if want is None else want
        assert result.equal(want) and len(noise) == 4


def test_lazily_conjugated_and_negated_tensors_are_copied():
    # 4: a copy that resolved them first would copy them, without an end.
    x = torch.randn(6, 5, dtype=torch.complex64)
    d = x.to("sp")
    assert d.conj().is_conj() and d.conj().cpu().resolve_conj().equal(x.conj().resolve_conj())
    assert d.conj().imag.is_neg() and d.conj().imag.cpu().equal(x.conj().imag.resolve_neg())
    assert torch.allclose(torch.fft.irfft(d.conj()).cpu(), torch.fft.irfft(x.conj()), atol=1e-6)
    assert d.mH.clone().cpu().resolve_conj().equal(x.mH.resolve_conj())
    y = torch.zeros(5, 6, dtype=torch.complex64).to("sp")
    y.copy_(d.mH)
    assert y.cpu().equal(x.mH.resolve_conj())


def test_a_resize_to_the_same_size_keeps_the_strides():
    x = torch.randn(3, 4).to("sp").t()
    assert x.resize_(4, 3).stride() == (1, 4)
    assert x.resize_(5, 3).stride() == (3, 1)


def test_operators_run_inside_autocast():
    # 5: without a kernel for the key of autocast every operator inside raises.
    if not IS_TORCH_2:
        with pytest.raises(RuntimeError):
            torch.autocast(DEVICE)
        return
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.LayerNorm(8)).to("sp")
    x = torch.randn(2, 8)
    with torch.no_grad():
        want = model(x.to("sp")).cpu()
        with torch.autocast("sp", dtype=torch.bfloat16):
            got = model(x.to("sp")).float().cpu()
    assert torch.allclose(got, want, atol=0.1)


def _query_until_true(query):
    """Polls without a wait of the device; a query that starts nothing would poll for ever."""
    import time
    end = time.monotonic() + 60
    while not query():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_a_query_of_queued_work_becomes_true():
    # 6: work that is queued without a wait begins by itself.
    stream = streampool.current_stream()
    event = streampool.Event()
    y = _slow(_ones().to("sp"))
    event.record(stream)
    _query_until_true(event.query)
    assert stream.query()
    if IS_TORCH_2:
        event = torch.Event(device="sp")
        y = _slow(_ones().to("sp"))
        event.record()
        _query_until_true(event.query)
        assert torch.sp.is_available() and torch.accelerator.current_stream().query()
    assert y.cpu().isfinite().all()


def test_in_place_writes_and_reads_of_several_threads_neither_crash_nor_lock_up():
    a, b = torch.zeros(64, 64).to("sp"), torch.zeros(64, 64).to("sp")

    def work(place):
        for i in range(200):
            one, other = (a, b) if (i + place) % 2 else (b, a)
            one.add_(other).mul_(0.5)      # queued
            one.copy_(torch.lerp(one, other, 0.5))  # by the host
            one.lerp_(other, 0.25)

    together(work, 6)
    assert not a.cpu().any() and not b.cpu().any()


def test_kernels_of_the_host_compute_on_the_calling_thread_and_keep_its_number_of_threads():
    inputs = [torch.randn(1 << 18) for _ in range(8)]
    alone = [x.sum().item() for x in inputs]
    torch.set_num_threads(2)
    assert [x.sum().item() for x in inputs] != alone  # the bits of the host follow from the number
    assert [x.to("sp").sum().item() for x in inputs] == alone
    assert torch.get_num_threads() == 2
