# SPDX-License-Identifier: Apache-2.0
"""The calls on a device's memory."""
import numpy as np
import pytest

import streampool
from conftest import run_python


def test_the_figures_follow_tensors():
    device = streampool.Device("null")
    before = streampool.current_allocated_memory(device)
    held = streampool.tensor(np.zeros(1 << 20, np.uint8), device=device)
    assert streampool.current_allocated_memory(device) >= before + (1 << 20)
    assert streampool.driver_allocated_memory(device) >= streampool.current_allocated_memory(device)
    assert streampool.max_memory_allocated(device) >= streampool.driver_allocated_memory(device)
    stats = streampool.memory_stats(device)
    assert stats["allocations"] >= 1 and stats["in_use_bytes"] >= 1 << 20
    del held
    streampool.synchronize(device)
    assert streampool.current_allocated_memory(device) == before
    streampool.empty_cache(device)
    assert streampool.memory_stats(device)["cached_bytes"] < 1 << 20
    device.close()


def test_the_peak_begins_again_at_a_reset():
    device = streampool.Device("null")
    large = streampool.tensor(np.zeros(1 << 24, np.uint8), device=device)
    del large
    streampool.synchronize(device)
    streampool.empty_cache(device)
    assert streampool.max_memory_allocated(device) >= 1 << 24
    streampool.reset_peak_memory_stats(device)
    assert streampool.max_memory_allocated(device) == streampool.driver_allocated_memory(device) < 1 << 24
    device.close()


def test_a_fraction_limits_the_process():
    device = streampool.Device("null")
    most = streampool.recommended_max_memory(device)
    assert most == device.memory_bytes > 0
    streampool.set_per_process_memory_fraction((1 << 20) / most, device)
    with pytest.raises(MemoryError, match="limit") as caught:
        streampool.tensor(np.zeros(1 << 23, np.uint8), device=device)
    assert caught.value.status == streampool.Status.OUT_OF_MEMORY
    streampool.set_per_process_memory_fraction(1.0, device)
    assert streampool.tensor(np.zeros(1 << 23, np.uint8), device=device).nbytes == 1 << 23
    for fraction in (0, -1, 1.5, float("nan")):
        with pytest.raises(ValueError, match="fraction"):
            streampool.set_per_process_memory_fraction(fraction, device)
    device.close()


def test_the_defaults_are_the_cpu():
    assert streampool.memory_stats() == streampool.memory_stats("cpu")
    streampool.empty_cache()


def test_memory_debugging_of_python_finds_nothing_in_threads():
    """PYTHONMALLOC=debug finds writes past an object, and memory that is freed or used without the lock."""
    run_python("""
import sys, pytest
tests = ["test_stress.py", "test_arrays.py", "test_dlpack.py", "test_futures.py", "test_asyncio.py"]
sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-k", "not simulated", *tests]))
""", PYTHONMALLOC="debug")


def test_memory_debugging_of_python_finds_nothing():
    run_python("""
import numpy as np, streampool, onnx_writer
model = streampool.load(onnx_writer.linear()); two = streampool.load(onnx_writer.two())
x = np.ones((2, 4), np.float32); a = np.ones(3, np.float32)
for _ in range(50):
    model(x); model.run(x, (np.empty((2, 3), np.float32),)); model.submit(x).result(); two(a, b=a)
    model(x.astype(np.float16)); two.run((a, a), {"758": None})
    streampool.batch_inference(model, [x] * 5)
    t = streampool.from_dlpack(x); np.from_dlpack(t + 1); del t
""", PYTHONMALLOC="debug")
