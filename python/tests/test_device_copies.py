# SPDX-License-Identifier: Apache-2.0
"""Tensors that are copied from one device to another."""
import numpy as np
import onnx_writer
import pytest

import streampool
from streampool import tensor
from together import together

VALUES = np.arange(24, dtype=np.float32).reshape(4, 6)


def test_a_tensor_goes_to_a_device_and_back():
    device = streampool.Device("null")
    x = tensor(VALUES)
    there = x.to(device)
    assert there.device == device and there.is_contiguous and there.numpy().tobytes() == VALUES.tobytes()
    turned = there.transpose(0, 1).to("cpu")
    assert turned.device == x.device and turned.is_contiguous and turned.tolist() == VALUES.T.tolist()
    device.close()


def test_a_tensor_of_the_device_is_the_same_memory():
    x = tensor(VALUES)
    y = x.to("cpu")
    y[0, 0].copy_(tensor(np.float32(77)))
    assert x[0, 0].item() == 77


def test_elements_are_copied_into_a_tensor_of_another_device():
    x, there = tensor(VALUES), tensor(np.zeros((4, 6), np.float32), device="null")
    assert there[:, ::2].copy_(x[:, 1::2]) is not None
    assert there[:, ::2].tolist() == VALUES[:, 1::2].tolist() and not there[:, 1::2].numpy().any()
    x.copy_(there)
    assert x.tolist() == there.tolist()


def test_what_cannot_be_copied_is_refused():
    there = tensor(VALUES, device="null")
    with pytest.raises(streampool.Error, match="cannot copy f32 of shape"):
        there.copy_(tensor(VALUES[0]))
    with pytest.raises(streampool.Error, match='no device kind "tpu"'):
        there.to("tpu")
    with pytest.raises(TypeError, match="device is a Device or its name"):
        there.to(3)
    closed = streampool.Device("null")
    closed.close()
    with pytest.raises(streampool.Error, match="closed"):
        there.to(closed)


def test_a_model_takes_a_tensor_that_has_come_to_its_device_as_one_and_others_as_arrays():
    model = streampool.load(onnx_writer.unary("Tanh", "float32", ["n", 6]))
    there = tensor(VALUES, device="null")
    as_array, as_tensor = model(there), model(there.to("cpu"))
    assert isinstance(as_array, np.ndarray) and isinstance(as_tensor, streampool.Tensor)
    assert as_array.tobytes() == as_tensor.numpy().tobytes() == model(VALUES).tobytes()


def test_threads_copy_between_devices_at_once():
    devices = [streampool.Device("null"), streampool.Device("null"), streampool.device("cpu")]

    def work(index):
        x = tensor(VALUES + index)
        for turn in range(30):
            x = x.to(devices[(index + turn) % 3])
        return x.numpy().tobytes() == (VALUES + index).tobytes()

    assert all(together(work))
