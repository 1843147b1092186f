# SPDX-License-Identifier: Apache-2.0
"""Element types, and conversions that lose nothing."""
import numpy as np
import pytest

import onnx_writer
import streampool
from streampool._convert import is_lossless

NUMPY = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
         "uint64", "bool"]


@pytest.mark.parametrize("dtype", NUMPY)
def test_each_dtype_goes_in_and_out(dtype):
    model = streampool.load(onnx_writer.unary("Identity", dtype, ["n"]))
    value = np.array([0, 1, 1, 0]).astype(dtype)
    assert model.inputs[0].dtype == dtype
    result = model(value)
    assert result.dtype == dtype and (result == value).all()


def test_bfloat16_comes_as_a_tensor_and_goes_in_as_one():
    model = streampool.load(onnx_writer.unary("Identity", "bfloat16", ["n"]))
    result = model(streampool.tensor(np.float32([1, 0.5, -3])).cast("bfloat16"))
    assert isinstance(result, streampool.Tensor) and result.dtype == "bfloat16"
    assert result.cast("float32").tolist() == [1, 0.5, -3]
    assert model(np.zeros(0, np.int8)).shape == (0,)
    assert model(result).cast("float32").tolist() == [1, 0.5, -3]
    assert model(np.int8([3, -128])).cast("float32").tolist() == [3, -128]
    with pytest.raises(TypeError, match="input 'x' is bfloat16"):
        model(np.float32([1]))
    with pytest.raises(TypeError, match="input 'x' is bfloat16"):
        model(np.uint16([1]))
    with pytest.raises(TypeError, match="NumPy has no dtype bfloat16"):
        result.numpy()


def test_the_byte_order_of_an_array_and_of_a_dtype_does_not_matter():
    model = streampool.load(onnx_writer.unary("Identity", "float32", ["n"]))
    for dtype in (">f4", "<f4", ">f2", ">i2"):
        assert model(np.array([1, -2], dtype)).tolist() == [1, -2]
    for dtype in (np.dtype(">f8"), np.dtype("<f8"), np.double):
        assert streampool.tensor(np.float32([1, -2]), dtype).dtype == "float64"
    assert streampool.tensor(np.int8([1]), np.longlong).dtype == "int64"


@pytest.mark.skipif(not hasattr(np, "dtypes") or not hasattr(np.dtypes, "StringDType"), reason="NumPy before 2")
def test_a_dtype_without_a_hash_is_named():
    model = streampool.load(onnx_writer.unary("Identity", "float32", ["n"]))
    with pytest.raises(TypeError, match="an array of StringDType"):
        model(np.array(["a"], np.dtypes.StringDType(na_object=[])))


@pytest.mark.parametrize("source", NUMPY)
@pytest.mark.parametrize("target", NUMPY)
def test_a_conversion_is_made_if_it_loses_nothing(source, target):
    """The rule, against every limit of the source as Python numbers."""
    model = streampool.load(onnx_writer.unary("Identity", target, ["n"]))
    if source == "bool":
        values = np.array([False, True])
    elif source.startswith("float"):
        info = np.finfo(source)
        values = np.array([info.max, info.tiny, info.eps + 1, -info.max]).astype(source)
    else:
        info = np.iinfo(source)
        values = np.array([info.max, info.min, info.max - 1 if info.max % 2 else info.max], source)
    with np.errstate(all="ignore"):
        kept = [int(b) == int(a) if target[0] != "f" and source[0] != "f" else b == a and
                (target[0] == "f" or source[0] != "f") and int(b) == int(a) if source[0] != "f" else b == a
                for a, b in zip(values.tolist(), values.astype(target).tolist())]
    is_exact = all(kept) and not (source[0] == "f" and target[0] != "f") and target != "bool" or \
        source == target
    assert is_lossless(source, target) == is_exact
    if is_exact:
        assert (model(values) == values.astype(target)).all()
    else:
        with pytest.raises(TypeError, match=f"input 'x' is {target}; an array of {source}"):
            model(values)


@pytest.mark.parametrize("value", [np.array(["a"]), np.array([object()]), np.array([1j]),
                                   np.array([1], "datetime64[s]"), np.zeros(2, [("a", "f4")])])
def test_dtypes_without_numbers_are_refused(value):
    with pytest.raises(TypeError, match="input 'x'"):
        streampool.load(onnx_writer.unary("Identity", "float32", ["n"]))(value)


@pytest.mark.parametrize("value", [1.0, [1.0, 2.0], None, "text", {}])
def test_what_is_no_array_is_refused_by_the_inputs_name(value):
    with pytest.raises(TypeError, match="input 'x'"):
        streampool.load(onnx_writer.unary("Identity", "float32", ["n"]))(value)
