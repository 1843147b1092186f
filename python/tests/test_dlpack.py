# SPDX-License-Identifier: Apache-2.0
"""Tensors, and their exchange with other libraries without a copy."""
import gc
import subprocess
import sys
import time
import weakref

import threading

import numpy as np
import pytest

import streampool


def test_memory_is_shared_in_both_directions():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor = streampool.from_dlpack(array)
    assert tensor.shape == (2, 3) and tensor.dtype == "float32" and tensor.strides == (3, 1)
    array[0, 0] = 7
    assert tensor.tolist() == [[7, 1, 2], [3, 4, 5]]
    back = np.from_dlpack(tensor)
    assert back.__array_interface__["data"][0] == array.__array_interface__["data"][0]
    array[1, 1] = -1
    assert back[1, 1] == -1


def test_strided_arrays_and_scalars_are_exchanged():
    array = np.arange(24, dtype=np.int64).reshape(4, 6)[::2, 1::2]
    tensor = streampool.from_dlpack(array)
    assert tensor.tolist() == array.tolist() and not tensor.is_contiguous
    assert np.from_dlpack(tensor).tolist() == array.tolist()
    assert streampool.from_dlpack(np.array(3.5)).item() == 3.5


def test_the_producer_gets_its_memory_back():
    array = np.zeros(1000, np.float32)
    alive = weakref.ref(array)
    tensor = streampool.from_dlpack(array)
    del array
    gc.collect()
    assert alive() is not None
    del tensor
    deadline = time.monotonic() + 30
    while alive() is not None:
        gc.collect()
        assert time.monotonic() < deadline
        time.sleep(0.001)


GIVEN_BACK_BY_AN_IMPORT = """
import time, weakref
import numpy as np
from streampool import _core

def imported(count):
    array = np.empty(count, np.float32)
    _core.import_dlpack(array.__dlpack__())
    return weakref.ref(array)

alive, deadline = imported(1 << 26), time.monotonic() + 10
while alive() is not None:
    assert time.monotonic() < deadline
    imported(1)
"""


def test_much_memory_is_given_back_by_the_next_import():
    """Not only by the drainer, which may wait for the interpreter's lock: here there is none."""
    subprocess.run([sys.executable, "-c", GIVEN_BACK_BY_AN_IMPORT], check=True, timeout=60)


def test_much_memory_is_given_back_without_a_wait_for_more():
    def seconds():
        array = np.empty(1 << 26, np.float32)
        alive = weakref.ref(array)
        tensor = streampool.from_dlpack(array)
        del array
        begin = time.monotonic()
        del tensor
        while alive() is not None:
            assert time.monotonic() < begin + 30
            time.sleep(0.0001)
        return time.monotonic() - begin

    assert min(seconds() for _ in range(50)) < 0.01  # what is little waits so long


def test_a_consumer_keeps_the_tensor():
    tensor = streampool.tensor(np.float32([1, 2, 3]))
    array = np.from_dlpack(tensor)
    del tensor
    gc.collect()
    assert array.tolist() == [1, 2, 3]


def test_capsules_of_both_versions_are_made_and_may_be_forgotten():
    tensor = streampool.tensor(np.float32([1, 2, 3]))
    assert "dltensor_versioned" in repr(tensor.__dlpack__(max_version=(1, 1)))
    assert '"dltensor"' in repr(tensor.__dlpack__())
    assert tensor.__dlpack_device__() == (1, 0)

    class Old:
        def __init__(self, inner):
            self.inner = inner

        def __dlpack__(self):
            return self.inner.__dlpack__()

    assert streampool.from_dlpack(Old(tensor)).tolist() == [1, 2, 3]
    copied = np.from_dlpack(streampool.from_dlpack(Old(tensor)))
    assert copied.tolist() == [1, 2, 3]
    with pytest.raises(BufferError):
        tensor.__dlpack__(dl_device=(2, 0))
    apart = tensor.__dlpack__(copy=True, max_version=(1, 0))
    assert "dltensor_versioned" in repr(apart)


EXPORTED_WITHOUT_MEMORY = """
import _testcapi
import numpy as np
import streampool

def in_use():
    return streampool.memory_stats("cpu")["in_use_bytes"]

def export(failing, version):
    tensor = streampool.tensor(np.zeros(1000, np.float32))
    method, options = tensor.__dlpack__, {"max_version": version}
    _testcapi.set_nomemory(failing, failing + 1)
    try:
        capsule = method(**options)
        _testcapi.remove_mem_hooks()
        return True
    except MemoryError:
        _testcapi.remove_mem_hooks()
        return False

for version in None, (1, 0):
    export(1 << 30, version)
    before, failing = in_use(), 0
    while not export(failing, version):
        assert in_use() == before, f"the tensor is leaked without allocation {failing}"
        failing += 1
    assert failing > 0 and in_use() == before
"""


def test_an_export_without_memory_for_its_capsule_leaks_no_tensor():
    if not hasattr(pytest.importorskip("_testcapi"), "set_nomemory"):
        pytest.skip("this Python cannot fail an allocation")
    subprocess.run([sys.executable, "-c", EXPORTED_WITHOUT_MEMORY], check=True, timeout=60)


class Refusing:
    """An array that only __array__ gives out, as some of PyTorch's are."""

    def __dlpack_device__(self):
        raise RuntimeError("a layout without DLPack")

    def __dlpack__(self, **options):
        raise RuntimeError("a layout without DLPack")


class Giving(Refusing):
    def __init__(self, array):
        self._array = array

    def __array__(self, dtype=None, copy=None):
        return self._array


def test_what_refuses_dlpack_is_asked_for_an_array(linear, x):
    assert linear(Giving(x)).tobytes() == linear(x).tobytes()
    assert streampool.tensor(Giving(x)).tolist() == x.tolist()
    for call in (linear, streampool.tensor, streampool.from_dlpack):
        with pytest.raises(RuntimeError, match="a layout without DLPack"):
            call(Refusing())


@pytest.mark.parametrize("copy", [0, 1, "", "yes", np.bool_(True)])
def test_a_copy_is_asked_for_by_what_is_true(copy):
    a = streampool.tensor(np.float32([1, 2]))
    same = streampool._core.import_dlpack(a.__dlpack__(copy=copy))
    same.copy_(streampool.tensor(np.float32([3, 4])))
    assert same.tolist() == [3, 4]
    assert a.tolist() == ([1, 2] if copy else [3, 4])
    if copy:
        assert a.__array__(copy=copy).tolist() == a.tolist()
    else:
        with pytest.raises(ValueError, match="is a copy"):
            a.__array__(copy=copy)


def test_a_capsule_is_used_once():
    capsule = streampool.tensor(np.float32([1])).__dlpack__(max_version=(1, 0))

    class Once:
        def __dlpack__(self, max_version=None):
            return capsule

    streampool.from_dlpack(Once())
    with pytest.raises(ValueError):
        streampool.from_dlpack(Once())
    with pytest.raises(AttributeError):
        streampool.from_dlpack(3)
    for made in (3, None):
        Once.__dlpack__ = lambda self, max_version=None, made=made: made
        with pytest.raises(TypeError, match="is a capsule; an object of type"):
            streampool.from_dlpack(Once())


def test_one_of_many_threads_gets_a_capsule():
    """Two of them would give the memory back twice."""
    for _ in range(300):
        value = np.zeros(4, np.float32)
        capsule, got, barrier = value.__dlpack__(), [], threading.Barrier(4)

        class Same:
            def __dlpack__(self, max_version=None, capsule=capsule):
                return capsule

        def take(got=got, barrier=barrier, same=Same()):
            barrier.wait()
            try:
                got.append(streampool.from_dlpack(same))
            except ValueError:
                pass

        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(got) == 1


@pytest.mark.parametrize("version", [5, (), (1,), "1.0", ("1", 0)])
def test_a_version_that_is_none(version):
    with pytest.raises(TypeError):
        streampool.tensor(np.float32([1])).__dlpack__(max_version=version)


def test_results_and_inputs_are_tensors_of_other_libraries(linear, x):
    y = linear(streampool.from_dlpack(x))
    assert isinstance(y, streampool.Tensor) and (y.numpy() == linear(x)).all()


def test_a_tensor_is_made_of_an_array():
    tensor = streampool.tensor([[1, 2]] if False else np.int32([[1, 2], [3, 4]]), device="null")
    assert tensor.device.kind == "null" and tensor.numpy().tolist() == [[1, 2], [3, 4]]
    assert streampool.tensor(np.int8([1]), "float32").dtype == "float32"
    assert streampool.tensor(np.int8([1, -2]), "bfloat16").cast("float32").tolist() == [1, -2]
    with pytest.raises(TypeError, match="without loss"):
        streampool.tensor(np.float32([1]), "int8")
    with pytest.raises(TypeError, match="dtype complex64"):
        streampool.tensor(np.float32([1]), "complex64")
    assert np.asarray(tensor, np.float64).dtype == np.float64
    with pytest.raises(ValueError):
        np.asarray(tensor, copy=False) if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else \
            tensor.__array__(copy=False)


def test_views():
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    tensor = streampool.tensor(array)
    for index in (0, -1, slice(None, None, 2), (1, slice(0, 2), -2), (slice(None), None, 1),
                  (slice(None, None, -1), slice(2, 0, -1)), slice(5, 9)):
        assert tensor[index].numpy().tolist() == array[index].tolist()
    assert tensor.reshape(6, -1).numpy().tolist() == array.reshape(6, -1).tolist()
    assert tensor.reshape((4, 6)).shape == (4, 6)
    assert tensor.permute(2, 0, 1).numpy().tolist() == array.transpose(2, 0, 1).tolist()
    assert tensor.transpose(0, 1).contiguous().numpy().tolist() == array.swapaxes(0, 1).tolist()
    assert tensor.contiguous() is tensor and tensor.to("cpu") is tensor
    assert tensor.unsqueeze(0).squeeze(0).shape == (2, 3, 4)
    assert tensor[0, 0].unsqueeze(0).expand(3, 4).numpy().tolist() == [[0, 1, 2, 3]] * 3
    assert tensor.view_as("int32").dtype == "int32" and len(tensor) == 2
    assert tensor.select(1, 2).shape == (2, 4) and tensor.slice(2, 1, 2).shape == (2, 3, 2)
    for wrong in ((9,), (0, 0, 0, 0), ("a",)):
        with pytest.raises((IndexError, TypeError, ValueError)):
            tensor[wrong]
    with pytest.raises(ValueError):
        tensor.reshape(5, 5)
    target = streampool.tensor(np.zeros((3, 4), np.float32))
    assert target.copy_(tensor[1]) is target and target.tolist() == array[1].tolist()
