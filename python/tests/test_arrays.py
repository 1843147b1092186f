# SPDX-License-Identifier: Apache-2.0
"""Arrays as inputs and outputs: by which protocols, in which memory, and who keeps them."""
import array
import collections
import copy
import gc
import mmap
import pickle
import sys
import threading
import types

import numpy as np
import pytest

import onnx_writer
import streampool


def test_an_output_is_a_writable_array_of_its_own_memory(linear, x):
    y, other = linear(x), linear(x)
    assert type(y) is np.ndarray and y.dtype == np.float32 and y.shape == (2, 3)
    assert y.flags.owndata and y.flags.writeable
    y[:] = 7
    assert not (other == 7).any()


def test_inputs_are_given_in_order_or_by_name(two):
    a, b = np.float32([1, 2]), np.float32([10, 20])
    for result in (two(a, b), two(a, b=b), two(b=b, a=a), two.run((a, b)), two.run({"a": a, "b": b})):
        assert (result[0] == a + b).all() and (result[1] == a - b).all()


def test_inputs_by_name_are_converted_too(two):
    a, b = np.float16([1, 2]), np.int8([10, 20])
    for result in (two(b=b, a=a), two(a, b=b), two.submit(b=b, a=a).result(), two.submit(a, b=b).result(),
                   two.run({"a": a, "b": b}), streampool.batch_inference(two, [{"b": b, "a": a}])[0]):
        assert result[0].tolist() == [11, 22] and result[1].tolist() == [-9, -18]


def test_names_that_python_has_too():
    """self and values are parameters of the package's own methods."""
    names = ("self", "values", "outputs", "is_raw")
    model = streampool.load(onnx_writer.model(
        [onnx_writer.node("Sum", names, ["y"])], [onnx_writer.value(n, "float32", ["n"]) for n in names],
        [onnx_writer.value("y", "float32", ["n"])]))
    given = {name: np.float32([i]) for i, name in enumerate(names)}
    for result in (model(**given), model.submit(**given).result(),
                   streampool.BatchQueue(model).submit(**given).result()):
        assert result == 6


def test_mappings_may_change_during_the_run(slow):
    """Their names are in memory of the mapping."""
    value, changing = np.ones((64, 512), np.float32), []

    def change():
        while not changing:
            for mapping in mappings:
                mapping.clear()

    mappings = []
    thread = threading.Thread(target=change)
    thread.start()
    for i in range(20):
        inputs, outputs = {"".join(["x"]): value}, {"".join(["y"]): None}
        mappings[:] = [inputs, outputs]
        try:
            assert (slow.run(inputs, outputs)["y"] == 1).all()
        except (TypeError, KeyError):
            pass  # it was empty before the call
    changing.append(True)
    thread.join()


def test_arrays_that_are_not_aligned_are_copied(linear, two, x):
    unaligned = np.zeros(x.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(x.shape)
    unaligned[:] = x
    assert not unaligned.flags.aligned
    for result in (linear(unaligned), linear.run(unaligned), linear.submit(unaligned).result(),
                   streampool.batch_inference(linear, [unaligned])[0]):
        assert result.tobytes() == linear(x).tobytes()
    row = unaligned[0]
    assert two(row, b=row)[0].tobytes() == two(x[0], x[0])[0].tobytes()


def test_buffers_without_a_shape_as_outputs(x):
    """Before the shapes are known, and after."""
    model = streampool.load(onnx_writer.two())
    for _ in range(2):
        flat = array.array("f", [0] * 4)
        model.run((x[0], x[1]), (flat, None))
        assert flat.tolist() == (x[0] + x[1]).tolist()
        with pytest.raises(ValueError, match=r"has shape \(4,\); the array given has \(5,\)"):
            model.run((x[0], x[1]), (array.array("f", [0] * 5), None))


def test_results_go_to_other_processes(two):
    result = two(np.float32([1]), np.float32([2]))
    for other in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert type(other) is type(result) and other == result


def test_names_that_are_no_identifiers_are_renamed(two):
    result = two(np.float32([3]), np.float32([1]))
    assert result._fields == ("_0", "_1")
    assert [port.name for port in two.outputs] == ["Identity:0", "758"]


@pytest.mark.parametrize("make", [
    lambda x: x,
    lambda x: memoryview(x),
    lambda x: np.asfortranarray(x),
    lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    lambda x: x[::-1][::-1],
    lambda x: x.astype(">f4"),
    lambda x: x.astype(np.float16).astype(np.float16),
    lambda x: streampool.tensor(x),
    lambda x: streampool.tensor(x.T.copy()).transpose(),
], ids=["array", "memoryview", "fortran", "strided", "negative", "byte order", "float16", "tensor", "view"])
def test_each_kind_of_array_gives_the_bits_of_a_plain_one(linear, make):
    x = np.float32([[0.5, 1, 2, 4], [-1, -0.25, 8, 0]])  # float16 has these too
    result = linear(make(x))
    if isinstance(result, streampool.Tensor):  # of a Tensor
        result = result.numpy()
    assert result.tobytes() == linear(x).tobytes()
    assert linear.submit(make(x)).result().tobytes() == linear(x).tobytes()


def test_read_only_arrays_and_buffers_of_the_standard_library_are_inputs(linear, x):
    expected = linear(x)
    frozen = x.copy()
    frozen.flags.writeable = False
    assert (linear(frozen) == expected).all()
    assert (linear(np.frombuffer(x.tobytes(), np.float32).reshape(2, 4)) == expected).all()
    cube = streampool.load(onnx_writer.unary("Neg", "float32", ["n"]))
    assert (cube(array.array("f", [1, 2])) == [-1, -2]).all()
    with mmap.mmap(-1, 4096) as memory:
        assert streampool.load(onnx_writer.unary("Identity", "uint8", ["n"]))(memory).shape == (4096,)


def test_inputs_by_dlpack_alone_and_by_array_alone(linear, x):
    class ByDlpack:
        def __dlpack__(self, **options):
            return x.__dlpack__(**options)

        def __dlpack_device__(self):
            return x.__dlpack_device__()

    class ByArray:
        def __array__(self, dtype=None, copy=None):
            return x

    class Refusing(ByArray):
        def __dlpack__(self, **options):
            raise BufferError("a tensor that requires grad")

        def __dlpack_device__(self):
            return (1, 0)

    for value in (ByDlpack(), ByArray(), Refusing()):
        assert (linear(value) == linear(x)).all()


def test_scalars_and_empty_arrays():
    scalar = streampool.load(onnx_writer.unary("Neg", "float32", []))
    assert scalar(np.float32(3)).shape == () and scalar(np.float32(3)) == -3
    empty = streampool.load(onnx_writer.unary("Neg", "float32", ["n", 3]))
    for _ in range(3):
        assert empty(np.zeros((0, 3), np.float32)).shape == (0, 3)


def test_run_writes_into_the_callers_arrays(linear, two, x):
    out = np.zeros((2, 3), np.float32)
    for _ in range(3):
        out[:] = 0
        assert linear.run(x, (out,)) is out and linear.run([x], out) is out
        assert (out == linear(x)).all()
    a, b = np.float32([1, 2]), np.float32([4, 8])
    sums = np.zeros(2, np.float32)
    result = two.run((a, b), (sums, None))
    assert result[0] is sums and (sums == a + b).all() and (result[1] == a - b).all()


def test_a_mapping_requests_some_outputs(two):
    a, b = np.float32([1, 2]), np.float32([4, 8])
    result = two.run({"a": a, "b": b}, {"758": None})
    assert list(result) == ["758"] and (result["758"] == a - b).all()


def test_any_mapping_has_inputs_and_outputs(two):
    a, b = np.float32([1, 2]), np.float32([4, 8])
    for mapping in (types.MappingProxyType, collections.ChainMap, collections.UserDict):
        result = two.run(mapping({"a": a, "b": b}), mapping({"758": None}))
        assert list(result) == ["758"] and (result["758"] == a - b).all()
        assert (streampool.batch_inference(two, [mapping({"a": a, "b": b})])[0][0] == a + b).all()


def test_shapes_that_follow_from_values():
    nonzero = streampool.load(onnx_writer.unary("NonZero", "float32", ["n"], "int64", [1, "k"]))
    for values in ([0, 1, 0, 2], [0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 0, 2]):
        value = np.float32(values)
        assert nonzero(value).tolist() == [np.flatnonzero(value).tolist()]
        assert nonzero.submit(value).result().tolist() == [np.flatnonzero(value).tolist()]


def test_a_model_that_declares_no_dtype_takes_several():
    nodes = [onnx_writer.node("Neg", ["x"], ["y"])]
    model = streampool.load(onnx_writer.model(nodes, [onnx_writer.value("x", None, ["n"])],
                                              [onnx_writer.value("y", None, ["n"])]))
    assert model.inputs[0].dtype == "none"
    for _ in range(3):
        for dtype in ("float32", "int32", "int64", "int8"):
            result = model(np.ones(3, dtype))
            assert result.dtype == dtype and result.tolist() == [-1, -1, -1]


def test_many_inputs_and_outputs():
    count = 40
    nodes = [onnx_writer.node("Neg", [f"x{i}"], [f"y{i}"]) for i in range(count)]
    ports = [[onnx_writer.value(f"{side}{i}", "float32", ["n"]) for i in range(count)] for side in "xy"]
    model = streampool.load(onnx_writer.model(nodes, *ports))
    values = [np.full(3, i, np.float32) for i in range(count)]
    named = {f"x{i}": value.astype(np.float16) for i, value in enumerate(values)}
    for _ in range(3):
        for result in (model(*values), model(**named), model.submit(*values).result(),
                       model.run(values, [np.empty(3, np.float32) for _ in values])):
            assert all((result[i] == -i).all() for i in range(count))
    assert list(model.run(values, {"y7": None, "y3": None})) == ["y7", "y3"]


def test_large_outputs_keep_their_memory_without_a_copy():
    model = streampool.load(onnx_writer.unary("Neg", "float32", ["n"]))
    results = [model(np.full(100_000, i, np.float32)) for i in range(5)]
    gc.collect()
    for i, result in enumerate(results):
        assert result.flags.writeable and (result == -i).all()


def test_a_forgotten_model_and_its_results_end(x):
    before = streampool.current_allocated_memory()
    for _ in range(20):
        model = streampool.load(onnx_writer.long_running(256, 4))
        model(np.zeros((1, 256), np.float32))
        del model
    assert streampool.current_allocated_memory() <= before + 4_000_000


def test_calls_leave_no_references(linear, two, x):
    a = np.float32([1, 2])
    for call in (lambda: linear(x), lambda: two(a, a), lambda: linear.run(x, (out,)),
                 lambda: linear.submit(x).result(), lambda: linear(x.astype(np.float16))):
        out = np.zeros((2, 3), np.float32)
        call()
        gc.collect()
        before = sys.getrefcount(x), sys.getrefcount(a), sys.getrefcount(out)
        for _ in range(100):
            call()
        gc.collect()
        after = sys.getrefcount(x), sys.getrefcount(a), sys.getrefcount(out)
        assert all(late <= early + 2 for early, late in zip(before, after)), call


@pytest.mark.skipif(sys.version_info < (3, 12), reason="no __buffer__ of Python before 3.12")
@pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError, ZeroDivisionError])
def test_what_a_buffer_raises_is_not_lost(linear, x, kind):
    class Raises:
        def __buffer__(self, flags):
            raise kind

        def __array__(self, *_, **__):
            return x

    for call in (linear, linear.submit, lambda value: linear.run(value)):
        with pytest.raises(kind):
            call(Raises())
