# SPDX-License-Identifier: Apache-2.0
"""Eager operators on tensors."""
import inspect
import operator

import numpy as np
import pytest

import onnx_writer
import streampool
from streampool import ops, tensor
from together import together


def test_the_functions_are_those_of_the_table():
    assert len(ops.__all__) > 100 and "MatMul" in ops.__all__ and "If" not in ops.__all__
    assert "axis: int" in ops.Softmax.__doc__ and "Input 0: float" in ops.Softmax.__doc__
    assert "axis" in inspect.signature(ops.Softmax).parameters


@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.truediv, operator.lt,
                                operator.le, operator.gt, operator.ge])
def test_operators_of_python(op):
    a, b = np.float32([[1, 2], [3, 4]]), np.float32([2, -4])
    assert op(tensor(a), tensor(b)).tolist() == op(a, b).tolist()
    assert op(tensor(a), 2).tolist() == op(a, np.float32(2)).tolist()
    assert op(2.5, tensor(a)).tolist() == op(np.float32(2.5), a).tolist()


def test_other_operators_of_python():
    a = tensor(np.float32([[1, -2], [3, 4]]))
    assert (-a).tolist() == [[-1, 2], [-3, -4]] and abs(a).tolist() == [[1, 2], [3, 4]]
    assert (a @ a).tolist() == (a.numpy() @ a.numpy()).tolist()
    assert (a ** 2).tolist() == [[1, 4], [9, 16]] and (2 ** a).tolist() == [[2, 0.25], [8, 16]]
    flags = tensor(np.array([True, False]))
    assert (~flags).tolist() == [False, True] and (flags & flags).tolist() == [True, False]
    assert (flags | True).tolist() == [True, True] and (flags ^ flags).tolist() == [False, False]
    assert (a.cast("bfloat16") + 1).cast("float32").tolist() == [[2, -1], [4, 5]]
    with pytest.raises(TypeError, match="a float does not fit"):
        tensor(np.int32([1])) + 1.5
    with pytest.raises(TypeError):
        a + "text"
    with pytest.raises(ValueError):
        a + tensor(np.float32([1, 2, 3]))
    assert bool(tensor(np.array([True]))) and tensor(np.float32([3])).item() == 3


def test_comparisons_for_equality_are_of_the_elements():
    a = tensor(np.float32([1, 2, 3]))
    assert (a == 2).tolist() == [False, True, False] and (a != 2).tolist() == [True, False, True]
    assert (2 == a).tolist() == (a == tensor(np.float32([3, 2, 1]))).tolist() == [False, True, False]
    assert 2.0 in a and 5.0 not in a
    assert not a == None and a != "text"  # noqa: E711
    assert a in {a: 1} and tensor(np.float32([1])) not in {a: 1}


@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow,
                                operator.lt, operator.eq, operator.ne])
def test_operands_of_numpy_give_tensors(op):
    a, b = np.float32([[1, 2], [3, 4]]), np.float32([2, -4])
    for other in (b, np.float32(2), np.float64(2), np.int64(2), np.float16(2), np.array(2.0)):
        want = np.asarray(other, np.float32)
        results = op(tensor(a), other), op(other, tensor(a))
        assert all(isinstance(result, streampool.Tensor) for result in results)
        assert [result.tolist() for result in results] == [op(a, want).tolist(), op(want, a).tolist()]


def test_other_operands_of_numpy():
    a, flags = tensor(np.float32([[1, 2], [3, 4]])), tensor(np.array([True, False]))
    assert (np.float32([[1, 0], [0, 2]]) @ a).tolist() == [[1, 2], [6, 8]]
    assert (a @ np.float32([[1, 0], [0, 2]])).tolist() == [[1, 4], [3, 8]]
    assert (True & flags).tolist() == (np.True_ & flags).tolist() == [True, False]
    assert (False | flags).tolist() == (np.bool_([True, True]) ^ ~flags).tolist() == [True, False]
    for wrong in (np.complex64(1), np.longdouble(1), np.datetime64(5, "ns"), np.array(["text"])):
        with pytest.raises(TypeError):
            a + wrong
    with pytest.raises(ValueError, match="f32.*f64"):
        a + np.float64([1, 2])
    with pytest.raises(TypeError, match="a float does not fit"):
        tensor(np.int32([1])) * np.float32(1.5)


def test_functions_of_numpy_are_numpys_own():
    array = np.float32([[1, 2], [3, 4]])
    a = tensor(array)
    for call in (np.exp, np.sum, np.add.reduce, lambda x: np.add.outer(x, x), np.mean, lambda x: np.concatenate([x, x]),
                 lambda x: np.add(x, [1, 2]), lambda x: np.maximum(x, array[::-1]), lambda x: np.add(array, x, dtype="f8")):
        assert not isinstance(call(a), streampool.Tensor) and np.array_equal(call(a), call(array))
    with pytest.raises(TypeError, match="numpy.exp does not write into a Tensor"):
        np.exp(array, out=a)
    with pytest.raises(TypeError, match="bfloat16"):
        np.exp(a.cast("bfloat16"))


def test_an_array_is_written_in_place():
    array = np.float32([[1, 2], [3, 4]])
    same = array
    same += tensor(np.float32([10, 20]))
    same *= tensor(np.float32(2))
    assert same is array and array.tolist() == [[22, 44], [26, 48]]


def test_one_element_is_a_number():
    a = tensor(np.float32([[1.5]]))
    assert (float(a), int(a)) == (1.5, 1) and isinstance(int(tensor(np.int64(2**53 + 1))), int)
    assert int(tensor(np.int64(2**53 + 1))) == 2**53 + 1
    for of in (float, int):
        with pytest.raises(ValueError):
            of(tensor(np.float32([1, 2])))


def test_integers_are_not_divided_by_a_slash():
    a = tensor(np.int32([7, -7]))
    for operation in (lambda: a / 2, lambda: 2 / a, lambda: a / a, lambda: a / np.int32([2, 2])):
        with pytest.raises(TypeError, match="/ of int32 would lose"):
            operation()
    assert ops.Div(a, tensor(np.int32([2]))).tolist() == [3, -3]


def test_indices():
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    for index in (None, (None, 1), (0, None, slice(None, None, -2)), -1, (slice(5, None), np.int8(2)), (), ...,
                  (..., 1), (0, ...), (0, ..., 1), (None, ..., None), (..., None, slice(None, None, -1))):
        assert tensor(a)[index].tolist() == a[index].tolist(), index
    for index in (True, (0, False), [0], 1.0):
        with pytest.raises(TypeError, match="an index is an integer, a slice, None or '...'"):
            tensor(a)[index]
    with pytest.raises(IndexError, match="there can be one '...'"):
        tensor(a)[..., ...]
    for index in ((0, 0, 0), (slice(None),) * 3, (None, 0, None, 0, slice(None))):
        with pytest.raises(IndexError, match="too many indices: the tensor has 2 dimensions"):
            tensor(a)[index]
    for index in (2, -3, (0, 3), 2**70, (0, -(2**70))):
        with pytest.raises(IndexError, match="index"):
            tensor(a)[index]


def test_an_operator_has_the_bits_of_a_model_with_it():
    x = np.sin(np.arange(64, dtype=np.float32)).reshape(8, 8)
    model = streampool.load(onnx_writer.unary("Softmax", "float32", [8, 8], axis=1))
    assert ops.Softmax(tensor(x), axis=1).numpy().tobytes() == model(x).tobytes()


def test_attributes_of_each_type_and_several_outputs():
    x = tensor(np.arange(12, dtype=np.float32).reshape(3, 4))
    left, right = ops.Split(x, axis=1, num_outputs=2, outputs=2)
    assert left.tolist() == x.numpy()[:, :2].tolist() and right.shape == (3, 2)
    assert ops.Transpose(x, perm=[1, 0]).tolist() == x.numpy().T.tolist()
    assert ops.LeakyRelu(-x, alpha=0.5).tolist() == (-x.numpy() / 2).tolist()
    assert ops.Constant(value=np.int64([3, 4]), device="cpu").tolist() == [3, 4]
    padded = ops.Pad(x, tensor(np.int64([0, 1, 0, 1])), mode="edge")
    assert padded.tolist() == np.pad(x.numpy(), ((0, 0), (1, 1)), "edge").tolist()
    assert ops.Clip(x, None, tensor(np.float32(5))).numpy().max() == 5
    for outputs, opset in ((2, None), (np.int64(2), None), (np.int8(2), 11), (np.uint16(2), np.int64(11))):
        assert len(ops.TopK(x, tensor(np.int64([2])), outputs=outputs, opset=opset)) == 2
    assert len(ops.Relu(x, outputs=np.int64(1))) == len(ops.Relu(x, outputs=np.int32(1), opset=np.int8(14))) == 1
    values, indices = ops.TopK(x, tensor(np.int64([2])), outputs=2)
    assert values.tolist() == [[3, 2], [7, 6], [11, 10]] and indices.dtype == "int64"


def test_wrong_calls():
    x = tensor(np.float32([1]))
    with pytest.raises(TypeError, match="Relu has no attribute axis"):
        ops.Relu(x, axis=1)
    with pytest.raises(ValueError):
        ops.Relu(x, x)
    with pytest.raises(TypeError, match="Tensor, which streampool.tensor.. makes.*ndarray"):
        ops.Relu(np.float32([1]))
    for axis in ("one", 1.5):
        with pytest.raises(TypeError, match="attribute 'axis' is an integer"):
            ops.Softmax(x, axis=axis)
    with pytest.raises(TypeError, match="each value of attribute 'perm' is an integer"):
        ops.Transpose(x, perm=["a"])
    with pytest.raises(TypeError, match="attribute 'perm' is a list; an object of type int"):
        ops.Transpose(x, perm=0)
    with pytest.raises(TypeError, match="^input 1 is a Tensor, .*ndarray"):
        ops.Add(x, np.float32([1]))
    with pytest.raises(TypeError, match="attribute 'value' is an array; an object of type object was given"):
        ops.Constant(value=object(), device="cpu")
    with pytest.raises(TypeError, match="attribute 'approximate' is a string"):
        ops.Gelu(x, approximate=0)
    with pytest.raises(TypeError, match="a size or an axis is an integer"):
        x.reshape("ab")
    with pytest.raises(AttributeError):
        ops.If  # noqa: B018
    for outputs in (-1, 65537, 2**32 - 1, 2**64):  # none of which gets memory
        with pytest.raises(ValueError, match="outputs"):
            ops.Relu(x, outputs=outputs)
    with pytest.raises(ValueError, match="^outputs is 5, but Relu has 1: leave it out$"):
        ops.Relu(x, outputs=5)
    with pytest.raises(ValueError, match="^outputs is 4, but LSTM has 1 to 3: ask for so many, or leave it out for 1$"):
        ops.LSTM(x, x, x, outputs=4)
    with pytest.raises(ValueError, match="^outputs is 0, but Split has 1 or more"):
        ops.Split(x, outputs=0)
    for outputs in (np.int64(5), np.uint8(5)):
        with pytest.raises(ValueError, match="^outputs is 5, but Relu has 1: leave it out$"):
            ops.Relu(x, outputs=outputs)
        for opset in (14, np.int64(14)):
            with pytest.raises(ValueError, match="^outputs is 5, but Relu has 1: leave it out$"):
                ops.Relu(x, outputs=outputs, opset=opset)
    for outputs in ("1", 1.0, [1]):
        with pytest.raises(TypeError, match="^outputs is an integer"):
            ops.Relu(x, outputs=outputs, opset=14)
    with pytest.raises(ValueError, match="^Relu: 0 inputs are given"):
        ops.Relu()
    for opset in ("one", 1.0):
        with pytest.raises(TypeError, match="opset is an integer"):
            ops.Relu(x, opset=opset)


def test_the_defaults_of_a_signature_leave_attributes_out():
    x = tensor(np.float32([[1, 2], [3, 4]]))
    for name in ("Softmax", "ReduceSum", "Gelu", "Transpose"):
        parameters = inspect.signature(getattr(ops, name)).parameters.values()
        defaults = {p.name: p.default for p in parameters if p.kind == p.KEYWORD_ONLY}
        np.testing.assert_array_equal(getattr(ops, name)(x, **defaults).numpy(), getattr(ops, name)(x).numpy())


@pytest.mark.filterwarnings("error")
def test_numbers_that_do_not_fit_are_refused():
    for dtype, number in (("int8", 300), ("int8", -129), ("int16", 2**15), ("uint8", -1), ("uint8", 256),
                          ("int32", -(2**31) - 1), ("int64", 2**63), ("int64", -(2**63) - 1), ("uint64", -1),
                          ("uint64", 2**64), ("bool", 2), ("float32", 10**400)):
        with pytest.raises(OverflowError, match=f"does not fit a tensor of dtype {dtype}"):
            tensor(np.zeros(1, dtype)) + number
    assert (tensor(np.int8([1])) + -128).tolist() == [-127]
    assert (tensor(np.int32([0])) + (2**31 - 1)).tolist() == [2**31 - 1]
    assert (tensor(np.int64([0])) + -(2**63)).tolist() == [-(2**63)]
    assert (tensor(np.uint64([0])) + (2**64 - 1)).tolist() == [2**64 - 1]
    assert (tensor(np.bool_([True])) & True).tolist() == [True]


class _Lying:
    """Its length is not the number of its elements."""

    def __init__(self, *elements, length):
        self._elements, self._length = elements, length

    def __len__(self):
        return self._length

    def __iter__(self):
        return iter(self._elements)

    def __getitem__(self, place):
        return self._elements[place]


def test_a_list_has_what_it_iterates_over():
    x = tensor(np.float32([[1, 2]]))
    with pytest.raises(ValueError, match="perm has 1 entries"):
        ops.Transpose(x, perm=_Lying(0, length=1000000))
    with pytest.raises(ValueError, match="8 dimensions"):
        x.reshape(_Lying(*[1] * 1000, length=2))


def test_numbers_of_bfloat16():
    for number in (1.0, -2.5, 0.0):
        x = tensor(np.float32(number)).cast("bfloat16")
        assert x.item() == number and bool(x) == bool(number)
    assert not tensor(np.float32(-0.0)).cast("bfloat16")


def test_tensors_written_by_one_thread_are_read_by_another():
    def use(i):
        value = tensor(np.full((64, 64), i, np.float32))
        for _ in range(10):
            value = value @ tensor(np.eye(64, dtype=np.float32))
        return value

    assert all((result.numpy() == i).all() for i, result in enumerate(together(use, 16)))
