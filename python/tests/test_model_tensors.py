# SPDX-License-Identifier: Apache-2.0
"""Models on Tensors: Tensors in, Tensors out, on the current stream."""
import numpy as np
import onnx_writer
import pytest

import streampool
from streampool import tensor
from together import together


def pair(op, *dtypes):
    """y = op(a, b) of vectors; y has the dtype of a."""
    kinds = (dtypes * 2)[:2]
    sizes = ("n", "k") if op == "Gather" else ("n", "n")
    return streampool.load(onnx_writer.model(
        [onnx_writer.node(op, ["a", "b"], ["y"])],
        [onnx_writer.value(name, dtype, [size]) for name, dtype, size in zip("ab", kinds, sizes)],
        [onnx_writer.value("y", kinds[0], [sizes[1]])]))


@pytest.fixture
def model():
    return streampool.load(onnx_writer.unary("Tanh", "float32", ["n", 3]))


def values(rows=4, first=0):
    return np.float32(np.arange(first, first + rows * 3).reshape(rows, 3) / 7 - 1)


def same(result, array):
    return isinstance(result, streampool.Tensor) and result.numpy().tobytes() == array.tobytes()


def test_tensors_give_tensors_and_arrays_give_arrays(model):
    x = values()
    wanted = model(x)
    assert isinstance(wanted, np.ndarray)
    assert same(model(tensor(x)), wanted)
    assert same(model(x=tensor(x)), wanted)
    assert same(model.run(tensor(x)), wanted)
    assert isinstance(model.submit(tensor(x)).result(), np.ndarray)


def test_models_in_a_row_are_ordered_by_the_tensor_between_them(model):
    x = values()
    wanted = model(model(model(x)))
    assert same(model(model(model(tensor(x)))), wanted)
    one, two = streampool.Stream(), streampool.Stream()
    with streampool.stream(one):
        between = model(tensor(x))
    with streampool.stream(two):
        assert same(model(model(between)), wanted)


def test_views_and_outputs_of_the_caller(model):
    x = values()
    wanted = model(x)
    turned = tensor(np.ascontiguousarray(x.T)).transpose(0, 1)
    room = tensor(np.zeros((4, 6), np.float32))
    result = model.run(turned, room[:, 3:])
    assert result.numpy().tobytes() == wanted.tobytes()
    assert (room.numpy()[:, 3:] == wanted).all() and not room.numpy()[:, :3].any()
    state = tensor(x)
    assert model.run(state, state) is state
    assert model.run([state], {model.outputs[0].name: state})[model.outputs[0].name] is state
    assert same(state, model(wanted))


def test_arrays_beside_tensors_are_copied_to_the_device():
    model = pair("Add", "float32")
    x, y = np.float32([1, 2]), np.float32([3, 5])
    assert same(model(tensor(x), y), x + y)
    assert same(model(x, tensor(y)), x + y)
    assert same(model(tensor(x), np.int8([3, 5])), x + y)
    assert same(model(np.int8([1, 2]), tensor(np.int8([3, 5]))), x + y)
    room = tensor(np.zeros(2, np.float32))
    assert model.run([x, y], room) is room and same(room, x + y)


def test_what_does_not_fit_is_refused(model):
    x = tensor(values())
    with pytest.raises(TypeError, match="float64 cannot be converted"):
        model(tensor(np.zeros((4, 3))))
    with pytest.raises(ValueError, match="x"):
        model(tensor(np.zeros((4, 2), np.float32)))
    with pytest.raises(TypeError, match="2 inputs given"):
        model(x, x)
    with pytest.raises(ValueError, match="no input 'q'"):
        model(x, q=x)
    with pytest.raises(TypeError, match="is to be a Tensor"):
        model.run(x, np.zeros((4, 3), np.float32))
    with pytest.raises(ValueError, match="the given tensor is"):
        model.run(x, tensor(np.zeros((4, 2), np.float32)))
    with pytest.raises(TypeError, match="outputs given"):
        model.run(x, [None, None])
    model.close()
    with pytest.raises(streampool.Error):
        model(x)


def test_a_failure_is_raised_by_what_reads_the_result():
    model = pair("Gather", "float32", "int64")
    x = tensor(np.float32([1, 2, 3]))
    result = model(x, tensor(np.int64([7])))
    with pytest.raises(ValueError, match="index 7 is out of range"):
        result.numpy()
    with pytest.raises(streampool.Error):
        streampool.synchronize()
    assert same(model(x, tensor(np.int64([2]))), np.float32([3]))


def test_threads_share_tensors_and_models(model):
    inputs = [tensor(values(first=i)) for i in range(4)]
    wanted = [model(model(x.numpy())) for x in inputs]

    def run(index):
        for at in (i % 4 for i in range(index, index + 100)):
            assert same(model(model(inputs[at])), wanted[at])

    together(run)
