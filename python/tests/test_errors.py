# SPDX-License-Identifier: Apache-2.0
"""Failures as exceptions, by kind, with the library's message."""
import copy
import ctypes
import errno
import os
import pickle
import sys

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
    with pytest.raises(TypeError, match="input 'b' is missing; 'c' is no input's name"):
        two(a, c=a)
    with pytest.raises(TypeError, match="input 'a' is given twice"):
        two(a, a=a, b=a)
    with pytest.raises(ValueError, match="nothing"):
        two(a, a, nothing=a)
    with pytest.raises(TypeError, match="1 outputs given; the model has 2"):
        two.run((a, a), (a,))
    with pytest.raises(TypeError, match="no output 'nothing'"):
        two.run((a, a), {"nothing": None})


TEXTS = {
    "name of an input": lambda text: streampool.load(onnx_writer.linear())(**{text: np.zeros(1)}),
    "name of an output": lambda text: streampool.load(onnx_writer.linear()).run(
        np.zeros((1, 4), np.float32), {text: None}),
    "device": streampool.device,
    "name of an option": lambda text: streampool.load(onnx_writer.linear(), **{text: 1}),
    "path": streampool.load,
    "cpu_ops": lambda text: streampool.load(onnx_writer.linear(), cpu_ops=text),
    "dtype": lambda text: streampool.tensor(np.float32([1]), text),
    "attribute": lambda text: streampool.ops.Gelu(streampool.tensor(np.float32([1])), approximate=text),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_that_c_does_not_hold_is_a_value_error(name):
    """Half of a surrogate pair has no UTF-8, and a null character would end the text."""
    with pytest.raises(ValueError, match=name):
        TEXTS[name]("cpu\0x")
    with pytest.raises(UnicodeEncodeError):
        TEXTS[name]("\ud800")


def test_arguments_of_another_type(linear, held):
    for load in (lambda: streampool.load(None), lambda: streampool.load(3)):
        with pytest.raises(TypeError, match="source is a path, or the bytes of a file"):
            load()
    with pytest.raises(TypeError, match="cpu_ops is a string"):
        streampool.load(onnx_writer.linear(), cpu_ops=3)
    with pytest.raises(ValueError, match="precision is 'f8'; it can be 'default', 'tf32'"):
        streampool.load(onnx_writer.linear(), precision="f8")
    with pytest.raises(TypeError, match="precision is a string"):
        streampool.load(onnx_writer.linear(), precision=16)
    with pytest.raises(Error, match="precision bf16 needs a cuda device"):
        streampool.load(onnx_writer.linear(), precision="bf16")
    assert streampool.load(onnx_writer.linear(), precision="default").info["precision"] == "default"
    with pytest.raises(TypeError, match="max_run_bytes is an integer"):
        streampool.load(onnx_writer.linear(), max_run_bytes=1e9)
    with pytest.raises(ValueError, match="max_run_bytes is -1"):
        streampool.load(onnx_writer.linear(), max_run_bytes=-1)
    with pytest.raises(TypeError, match="timeout is a number"):
        held.submit().result("soon")
    with pytest.raises(TypeError, match="device is a Device or its name"):
        streampool.tensor(np.zeros(1), device=None)
    for call in (lambda: streampool.batch_inference(None, []), lambda: streampool.BatchQueue(3)):
        with pytest.raises(TypeError, match="model is of type .*; it must be a streampool.Model"):
            call()
    with pytest.raises(TypeError, match="queue is of type Model; it must be a streampool.BatchQueue"):
        streampool.configure_batch_queue(linear, workers=1)


def _failures(tmp_path):
    for call in (lambda: streampool.load(onnx_writer.linear())(np.zeros((2, 5), np.float32)),
                 lambda: streampool.load(tmp_path / "none"), lambda: streampool.load(b"")):
        with pytest.raises(Error) as caught:
            call()
        yield caught.value


def test_exceptions_go_to_other_processes(tmp_path):
    for error in [*_failures(tmp_path), Error("own")]:
        for other in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
            assert type(other) is type(error) and str(other) == str(error)
            assert other.__dict__ == error.__dict__
        assert repr(error).startswith("Error(")
        assert f"{type(error).__module__}.{type(error).__qualname__}" == "streampool.Error"


def test_a_message_of_a_file_that_is_no_text():
    name = "\u00e9" * 400  # cut inside of a character
    model = streampool.load(onnx_writer.model(
        [onnx_writer.node("Neg", [name], ["y"])], [onnx_writer.value(name, "float32", ["n"])],
        [onnx_writer.value("y", "float32", ["n"])]))
    with pytest.raises(TypeError, match="\u00e9"):
        model()


def test_a_wrong_shape_is_a_value_error_with_the_librarys_message(linear):
    for shape in ((2, 5), (4,), (1, 2, 4)):
        with pytest.raises(ValueError, match="'x'") as caught:
            linear(np.zeros(shape, np.float32))
        assert isinstance(caught.value, Error) and caught.value.status == Status.MISMATCH
    with pytest.raises((ValueError, TypeError)):
        linear(np.zeros((1,) * 9, np.float32))


class _Slot(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int), ("function", ctypes.c_void_p)]


class _Spec(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("size", ctypes.c_int), ("item_size", ctypes.c_int),
                ("flags", ctypes.c_uint), ("slots", ctypes.POINTER(_Slot))]


def _class_whose_buffer_asks_for_its_length():
    """Before Python 3.12 no class has a method for its buffer. The slot for it (1) gets PyObject_Size,
    which ignores all arguments but the first and returns -1 with the exception of __len__."""
    size = ctypes.cast(ctypes.pythonapi.PyObject_Size, ctypes.c_void_p)
    slots = (_Slot * 2)(_Slot(1, size), _Slot(0, None))
    is_base_type = 1 << 10
    make = ctypes.pythonapi.PyType_FromSpec
    make.restype = ctypes.py_object
    return make(ctypes.byref(_Spec(b"tests.Sized", 0, 0, is_base_type, slots)))


def _output_that_raises(error):
    def fail(self, *flags):
        raise error
    if sys.version_info >= (3, 12):
        return type("Output", (), {"__buffer__": fail})()
    return type("Output", (_class_whose_buffer_asks_for_its_length(),), {"__len__": fail})()


@pytest.mark.parametrize("error", [KeyboardInterrupt("Ctrl-C"), MemoryError("none left"), RuntimeError("its own")])
def test_an_exception_of_an_outputs_buffer_stays_what_it_is(error, x):
    with pytest.raises(type(error), match=str(error)):
        streampool.load(onnx_writer.linear()).run(x, (_output_that_raises(error),))


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
    with pytest.raises(TypeError, match="the array given has elements of type >f"):
        model.run(x, (np.zeros((2, 3), ">f4"),))
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


def with_external(path, name):
    """The path of a model with data in that file beside it."""
    path.write_bytes(onnx_writer.model(
        [onnx_writer.node("Add", ["x", "w"], ["y"])], [onnx_writer.value("x", "float32", [2])],
        [onnx_writer.value("y", "float32", [2])], [onnx_writer.external("w", os.fsencode(name), [2])]))
    return path


def files_that_cannot_be_read(folder):
    """(path, the class of Python, its errno, its file name)."""
    locked, beside = folder / "locked.onnx", folder / "beside.onnx"
    locked.write_bytes(b"")
    locked.chmod(0)
    with_external(beside, "w.bin")
    yield folder / "none.onnx", FileNotFoundError, errno.ENOENT, folder / "none.onnx"
    yield str(folder / "none.onnx"), FileNotFoundError, errno.ENOENT, folder / "none.onnx"
    yield folder, IsADirectoryError, errno.EISDIR, folder
    yield locked / "below", NotADirectoryError, errno.ENOTDIR, locked / "below"
    yield beside, FileNotFoundError, errno.ENOENT, folder / "w.bin"
    yield "x" * 300, OSError, errno.ENAMETOOLONG, "x" * 300
    deep = folder.joinpath(*["d" * 100] * 8)  # messages are shorter
    yield deep / "none.onnx", FileNotFoundError, errno.ENOENT, deep / "none.onnx"
    deep.mkdir(parents=True)
    yield deep, IsADirectoryError, errno.EISDIR, deep
    yield locked / ("x" * 100) / ("y" * 200) / ("z" * 200), NotADirectoryError, errno.ENOTDIR, None
    odd = os.fsdecode(b"w\xff\xfe.bin")
    for name in (odd, "it's: odd '.bin", "e" * 200 + "/" + "f" * 200 + "/" + "g" * 200):
        for at in (folder, deep):
            yield with_external(at / "odd.onnx", name), FileNotFoundError, errno.ENOENT, at / name
    yield with_external(folder / "long.onnx", "n" * 300), OSError, errno.ENAMETOOLONG, folder / ("n" * 300)
    if os.geteuid() != 0:
        yield locked, PermissionError, errno.EACCES, locked


def test_a_file_that_cannot_be_read_is_the_class_that_python_has_for_it(tmp_path):
    for path, kind, code, name in files_that_cannot_be_read(tmp_path):
        with pytest.raises(kind) as caught:
            streampool.load(path)
        error = caught.value
        assert isinstance(error, Error) and error.status == Status.IO
        assert error.errno == code and error.strerror == os.strerror(code)
        assert error.filename == str(name or path)
        if len(str(path)) < 400:  # longer messages are cut
            assert "cannot open" in str(error) or "not a regular file" in str(error)
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.errno, again.filename, again.status) == (
            type(error), str(error), code, str(name or path), Status.IO)
        assert f"{type(error).__module__}.{type(error).__qualname__}" == "streampool.Error"


def test_messages_name_the_argument(x):
    two = streampool.load(onnx_writer.two())
    deep = np.zeros((1,) * 9, np.float32)
    for message, call in (("^input 'b' has more than 8 dimensions", lambda: two(np.float32([1]), deep)),
                          ("^input 'b': object is no array", lambda: two(np.float32([1]), object())),
                          ("^fraction is 2; ", lambda: streampool.set_per_process_memory_fraction(2)),
                          ("^max_plans is 4294967296; ", lambda: streampool.load(onnx_writer.linear(), max_plans=2**32)),
                          ("^device is a Device or its name; an object of type int", lambda: streampool.device(3)),
                          ("^dtype is a name .*NoneType", lambda: streampool.tensor(x).cast(None))):
        with pytest.raises((TypeError, ValueError), match=message):
            call()


def test_options_of_load(x):
    assert streampool.load(onnx_writer.linear(), max_plans=2, weight=3, cpu_ops="Tanh")(x).shape == (2, 3)
    with pytest.raises(TypeError, match="no option 'speed'"):
        streampool.load(onnx_writer.linear(), speed=3)
    for release_gil in (3, []):
        with pytest.raises(ValueError, match="release_gil is "):
            streampool.load(onnx_writer.linear(), release_gil=release_gil)
    with pytest.raises(ValueError, match="weight"):
        streampool.load(onnx_writer.linear(), weight=5000)
    with pytest.raises((OverflowError, ValueError)):
        streampool.load(onnx_writer.linear(), max_plans=-1)
    with pytest.raises(Error, match="max_run_bytes"):
        streampool.load(onnx_writer.long_running(64), max_run_bytes=64)(np.zeros((9, 64), np.float32))
    with pytest.raises(Error):
        streampool.load(onnx_writer.linear(), device="tpu")


@pytest.mark.parametrize("error", [OSError(5, "of the option"), FileNotFoundError("of the option"), TypeError("of it"),
                                   ZeroDivisionError()])
def test_what_the_conversion_of_an_option_raises_comes_through(error, tmp_path):
    class Number:
        def __index__(self):
            raise error

    path = tmp_path / "linear.onnx"
    path.write_bytes(onnx_writer.linear())
    for source in (path, onnx_writer.linear()):
        for option in ("max_plans", "max_run_bytes"):
            with pytest.raises(type(error)) as caught:
                streampool.load(source, **{option: Number()})
            assert caught.value is error


def test_a_failure_of_a_load_in_an_option_comes_through(tmp_path):
    class Number:
        def __index__(self):
            return streampool.load(tmp_path / "other.onnx")

    with pytest.raises(FileNotFoundError) as caught:
        streampool.load(tmp_path / "none.onnx", max_plans=Number())
    assert caught.value.filename == str(tmp_path / "other.onnx")


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


def wrong_arguments():
    """(text, call), each with one argument of another type."""
    x, stream, event = streampool.tensor(np.float32([[1, 2]])), streampool.Stream(), streampool.Event()
    for use in (streampool.device, streampool.Stream, x.to, streampool.synchronize, streampool.empty_cache,
                streampool.current_stream, streampool.memory_stats):
        for device in (None, 3):
            yield "device is a Device or its name", lambda use=use, device=device: use(device)
    for wrong in ("a", 1.5):
        yield "axis is an integer", lambda wrong=wrong: x.select(wrong, 0)
        yield "index is an integer", lambda wrong=wrong: x.select(0, wrong)
        yield "other is an integer", lambda wrong=wrong: x.transpose(0, wrong)
        yield "start is an integer", lambda wrong=wrong: x.slice(0, wrong, 1)
        yield "step is an integer", lambda wrong=wrong: x.slice(0, 0, 1, wrong)
        for use in (x.squeeze, x.unsqueeze):
            yield "axis is an integer", lambda use=use, wrong=wrong: use(wrong)
    yield "source is a Tensor, which streampool.tensor", lambda: x.copy_(np.float32([[1, 2]]))
    for use in (x.cast, x.view_as):
        yield "dtype is a name such as 'float32'", lambda use=use: use(None)
    yield r"streampool.tensor\(\) makes a Tensor of an array", lambda: streampool.Tensor([1.0])
    yield "event is an Event", lambda: stream.wait_event(stream)
    yield "stream is a Stream", lambda: stream.wait_stream(event)
    yield "stream is a Stream", lambda: streampool.stream(None)
    yield "end is an Event", lambda: event.elapsed_time(3)
    yield "kind is a string", lambda: streampool.Device(3)
    yield "fraction is a number", lambda: streampool.set_per_process_memory_fraction("all")


def test_an_argument_of_another_type_is_named():
    for text, call in wrong_arguments():
        with pytest.raises(TypeError, match=f"^{text}.*") as caught:
            call()
        assert "\n" not in str(caught.value)


def of_a_closed_device():
    device = streampool.Device("null")
    device.close()
    return device


ADVICE = {
    r"contiguous first \(contiguous\(\)\)": lambda x: x.transpose().reshape(4),
    r"use expand\(\)": lambda x: x.slice(0, 0, 1, 0),
    r"one device: copy with to\(\)": lambda x: x + x.to("null"),
    "cpu cannot be closed": lambda x: streampool.device("cpu").close(),
    "was closed": lambda x: streampool.Stream(of_a_closed_device()),
    "holds no graph": lambda x: streampool.load(b""),
    "outputs is 0": lambda x: streampool.ops.Relu(x, outputs=0),
}


@pytest.mark.parametrize("advice", ADVICE)
def test_messages_advise_what_the_package_has(advice):
    with pytest.raises((Error, ValueError), match=advice) as caught:
        ADVICE[advice](streampool.tensor(np.float32([[1, 2], [3, 4]])))
    assert "sp_" not in str(caught.value) and "NULL" not in str(caught.value)


def test_the_statuses_are_the_librarys():
    assert Status.INVALID == 1 and Status(18).name == "INTERNAL" and len(Status) == 19
    own = [(f"SP_{status.name}", status.value) for status in Status]
    assert own == [(name, value) for name, value, _ in streampool._core.statuses()]
