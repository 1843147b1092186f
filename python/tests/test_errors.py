# SPDX-License-Identifier: Apache-2.0
"""Failures as exceptions, by kind, with the library's message."""
import numpy as np
import pytest

import onnx_writer
import streampool
from streampool import Error, Status


def test_a_count_or_a_name_that_is_wrong(two):
    a = np.float32([1])
    with pytest.raises(TypeError, match="3 inputs given; the model has 2"):
        two(a, a, a)
    with pytest.raises(TypeError, match="input 'b' is missing"):
        two(a)
    with pytest.raises(TypeError, match="input 'a' is given twice"):
        two(a, a=a, b=a)
    with pytest.raises(ValueError, match="nothing"):
        two(a, a, nothing=a)
    with pytest.raises(TypeError, match="1 outputs given; the model has 2"):
        two.run((a, a), (a,))
    with pytest.raises(TypeError, match="no output 'nothing'"):
        two.run((a, a), {"nothing": None})


def test_a_wrong_shape_is_a_value_error_with_the_librarys_message(linear):
    for shape in ((2, 5), (4,), (1, 2, 4)):
        with pytest.raises(ValueError, match="'x'") as caught:
            linear(np.zeros(shape, np.float32))
        assert isinstance(caught.value, Error) and caught.value.status == Status.MISMATCH
    with pytest.raises((ValueError, TypeError)):
        linear(np.zeros((1,) * 9, np.float32))


@pytest.mark.parametrize("is_known", [False, True])
def test_outputs_that_do_not_fit_are_refused(is_known, x):
    model = streampool.load(onnx_writer.linear())
    if is_known:
        model(x)
    frozen = np.zeros((2, 3), np.float32)
    frozen.flags.writeable = False
    with pytest.raises(TypeError, match="output 'y' is no writable array"):
        model.run(x, (frozen,))
    with pytest.raises(TypeError, match="output 'y' is float32; the array given has elements of type float64"):
        model.run(x, (np.zeros((2, 3)),))
    with pytest.raises(ValueError, match="output 'y': the array given is not contiguous"):
        model.run(x, (np.zeros((2, 6), np.float32)[:, ::2],))
    for shape in ((3, 2), (6,), (4, 3)):
        with pytest.raises(ValueError, match=r"output 'y' has shape \(2, 3\); the array given has"):
            model.run(x, (np.zeros(shape, np.float32),))
    with pytest.raises(ValueError):
        model.run(x, (np.zeros((1, 3), np.float32),))
    assert (model(x) == model.run(x, (np.zeros((2, 3), np.float32),))).all()


def test_a_kernel_that_fails_names_the_node():
    model = streampool.load(onnx_writer.table())
    assert model(np.int64([4, 0])).tolist() == [[12, 13, 14], [0, 1, 2]]
    for run in (lambda v: model(v), lambda v: model.submit(v).result()):
        with pytest.raises(Error, match="Gather.*out of range"):
            run(np.int64([7]))
    assert model(np.int64([1])).tolist() == [[3, 4, 5]]


def test_files_that_cannot_be_loaded(tmp_path):
    with pytest.raises(OSError, match="nothing.onnx") as caught:
        streampool.load(tmp_path / "nothing.onnx")
    assert caught.value.status == Status.IO
    with pytest.raises(Error) as caught:
        streampool.load(b"\xff" * 100)
    assert caught.value.status == Status.CORRUPT
    path = tmp_path / "linear.onnx"
    path.write_bytes(onnx_writer.linear())
    for source in (path, str(path), path.read_bytes(), bytearray(path.read_bytes())):
        assert streampool.load(source).inputs[0].name == "x"


def test_options_of_load(x):
    assert streampool.load(onnx_writer.linear(), max_plans=2, weight=3, cpu_ops="Tanh")(x).shape == (2, 3)
    with pytest.raises(TypeError, match="no option 'speed'"):
        streampool.load(onnx_writer.linear(), speed=3)
    with pytest.raises(ValueError, match="release_gil is 3"):
        streampool.load(onnx_writer.linear(), release_gil=3)
    with pytest.raises(ValueError, match="weight"):
        streampool.load(onnx_writer.linear(), weight=5000)
    with pytest.raises((OverflowError, ValueError)):
        streampool.load(onnx_writer.linear(), max_plans=-1)
    with pytest.raises(Error, match="max_run_bytes"):
        streampool.load(onnx_writer.long_running(64), max_run_bytes=64)(np.zeros((9, 64), np.float32))
    with pytest.raises(Error):
        streampool.load(onnx_writer.linear(), device="tpu")


def test_a_closed_model_raises(x):
    with streampool.load(onnx_writer.linear()) as model:
        expected = model(x)
        future = model.submit(x)
    assert (future.result() == expected).all()
    for use in (lambda: model(x), lambda: model.submit(x), lambda: model.info, lambda: model.run(x),
                lambda: streampool.BatchQueue(model)):
        with pytest.raises(Error, match="closed") as caught:
            use()
        assert caught.value.status == Status.CLOSED
    model.close()
    assert "closed" in repr(model)


def test_the_statuses_are_the_librarys():
    assert Status.INVALID == 1 and Status(18).name == "INTERNAL" and len(Status) == 19
