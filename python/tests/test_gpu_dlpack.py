# SPDX-License-Identifier: Apache-2.0
"""Tensors of a GPU by DLPack, and models with a precision: on the GPU or, if built, the simulated driver."""
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import onnx_writer
import streampool

FAKE_DRIVER = (pathlib.Path(__file__).resolve().parents[2] /
               "build/release/tests/cuda/fake_driver/libfake_cuda.so")


def has_gpu():
    try:
        streampool.Device("cuda:0")
    except streampool.Error:
        return False
    return True


IN_PROCESS = "STREAMPOOL_CUDA_DRIVER" in os.environ or has_gpu()
needs_gpu = pytest.mark.skipif(not IN_PROCESS, reason="no GPU")


@pytest.mark.skipif(IN_PROCESS or not FAKE_DRIVER.exists(), reason="not needed, or not built")
def test_on_the_simulated_driver():
    command = [sys.executable, "-m", "pytest", "-q", "-rp", __file__]
    environment = {**os.environ, "STREAMPOOL_CUDA_DRIVER": str(FAKE_DRIVER)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") >= 4, done.stdout


class Producer:
    """Another library's array on a GPU."""

    def __init__(self, tensor, ordinal=0):
        self.tensor = tensor
        self.ordinal = ordinal
        self.streams = []

    def __dlpack_device__(self):
        return (2, self.ordinal)

    def __dlpack__(self, *, stream=None, max_version=None):
        self.streams.append(stream)
        return self.tensor.__dlpack__(stream=-1, max_version=max_version)


@needs_gpu
def test_a_tensor_says_where_it_is():
    tensor = streampool.tensor(np.arange(6, dtype=np.float32), device="cuda:0")
    assert tensor.__dlpack_device__() == (2, 0)
    assert streampool.tensor(np.float32([1])).__dlpack_device__() == (1, 0)


@needs_gpu
def test_an_array_of_a_gpu_becomes_a_tensor_behind_our_stream():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    producer = Producer(streampool.tensor(array, device="cuda:0"))
    tensor = streampool.from_dlpack(producer)
    assert tensor.device.name == "cuda:0" and tensor.shape == (2, 3)
    assert np.array_equal(tensor.numpy(), array)
    assert producer.streams == [streampool.current_stream("cuda:0").cuda_stream] != [0]
    assert streampool.current_stream("cpu").cuda_stream == 0


@needs_gpu
def test_a_consumer_with_a_stream_gets_a_capsule_without_a_wait():
    tensor = streampool.tensor(np.arange(4, dtype=np.int32), device="cuda:0")
    for stream in (streampool.Stream("cuda:0").cuda_stream, -1, None):
        capsule = tensor.__dlpack__(stream=stream, max_version=(1, 0))
        assert "dltensor_versioned" in repr(capsule)
    for stream in (0, -2):
        with pytest.raises(ValueError, match="no CUDA stream"):
            tensor.__dlpack__(stream=stream)
    with pytest.raises(TypeError):
        tensor.__dlpack__(stream="1")


@needs_gpu
def test_an_array_of_a_gpu_is_no_array_of_the_host():
    producer = Producer(streampool.tensor(np.float32([[1, 2]]), device="cuda:0"))
    with pytest.raises(TypeError, match="the array is on cuda:0; copy it to the host"):
        streampool.tensor(producer)
    with pytest.raises(streampool.Error, match="there is no cuda:7"):
        streampool.from_dlpack(Producer(producer.tensor, 7))


@needs_gpu
def test_a_model_tells_its_precision():
    for precision in ("default", "tf32", "f16", "bf16"):
        model = streampool.load(onnx_writer.linear(), "cuda:0", precision=precision)
        assert model.info["precision"] == precision
