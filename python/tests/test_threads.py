# SPDX-License-Identifier: Apache-2.0
"""Any number of threads: the bits of a lone run, whatever else runs."""
import sysconfig
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import onnx_writer
import streampool
from conftest import count_of

MODELS = ["torch_linear", "torch_mlp", "torch_encoder", "torch_lstm", "silero_vad_v5", "ppocr_cls"]


def arrays_for(model, rows=1):
    """Inputs with the same values each time; free sizes are small."""
    sizes = {"silero_vad_v5": [(1, 512), (2, 1, 128), ()], "ppocr_cls": [(1, 3, 48, 192)]}
    result = []
    for i, port in enumerate(model.inputs):
        name = getattr(model, "test_name", "")
        shape = sizes[name][i] if name in sizes else tuple(
            size if isinstance(size, int) else rows for size in port.shape)
        count = int(np.prod(shape, dtype=np.int64))
        values = np.sin(np.arange(count, dtype=np.float64) + i).reshape(shape) * 0.5
        result.append(np.array(16000) if port.dtype == "int64" else values.astype(port.dtype))
    return result


def bits_of(result):
    return [array.tobytes() for array in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("threads", [1, 31])
def test_the_bits_are_those_of_a_lone_run(shared_model, name, threads):
    model = shared_model(name)
    model.test_name = name
    inputs = arrays_for(model)
    expected = bits_of(shared_model(name, release_gil=True)(*inputs))
    rounds = count_of(200, 8)
    wrong = []

    def run(_):
        for i in range(rounds):
            result = model(*inputs) if i % 3 else model.submit(*inputs).result()
            if bits_of(result) != expected:
                wrong.append(i)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(run, range(threads)))
    assert not wrong


@pytest.mark.parametrize("release_gil", ["auto", True, False])
def test_each_way_to_hold_the_lock_gives_the_same_bits(release_gil, linear, x):
    model = streampool.load(onnx_writer.linear(), release_gil=release_gil)
    expected = linear(x).tobytes()
    with ThreadPoolExecutor(8) as pool:
        for result in pool.map(lambda _: model(x), range(500)):
            assert result.tobytes() == expected


def is_seen_by_another_thread(release_gil, seconds):
    """Whether another thread sees a run in flight. The runs go on until then, or for so long."""
    model = streampool.load(onnx_writer.long_running(), release_gil=release_gil)
    value = np.ones((512, 512), np.float32)
    seen, is_over = threading.Event(), threading.Event()

    def look():
        while not is_over.is_set():
            if model.statistics()["in_flight"] > 0:
                seen.set()

    thread = threading.Thread(target=look)
    thread.start()
    end = time.monotonic() + seconds
    while not seen.is_set() and time.monotonic() < end:
        model(value)
    is_over.set()
    thread.join()
    return seen.is_set()


def test_a_long_run_lets_other_threads_compute():
    """It releases the interpreter's lock."""
    assert is_seen_by_another_thread("auto", 60)


@pytest.mark.skipif(sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this interpreter has no lock")
def test_a_long_run_that_keeps_the_lock_does_not():
    assert not is_seen_by_another_thread(False, 0.5)


def test_threads_with_inputs_of_their_own(shared_model):
    model = shared_model("torch_linear")
    inputs = [np.random.default_rng(i).random((1 + i % 5, 256), np.float32) for i in range(31)]
    expected = [model(value).tobytes() for value in inputs]

    def run(i):
        return all(model(inputs[i]).tobytes() == expected[i] for _ in range(count_of(2000, 50)))

    with ThreadPoolExecutor(31) as pool:
        assert all(pool.map(run, range(31)))


def test_models_are_loaded_used_and_closed_by_threads(x):
    def use(_):
        with streampool.load(onnx_writer.linear()) as model:
            return model(x).tobytes()

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(use, range(100)))) == 1


def test_runs_that_were_submitted_before_a_close_have_results(x):
    """Of the first run too, after which the package notes the shapes of outputs."""
    expected = streampool.load(onnx_writer.linear())(x).tobytes()
    for _ in range(20):
        model = streampool.load(onnx_writer.linear())
        futures = [model.submit(x) for _ in range(3)]
        queue = streampool.BatchQueue(model)
        futures.append(queue.submit(x))
        queue.close()
        model.close()
        assert [future.result(timeout=30).tobytes() for future in futures] == [expected] * 4


def test_a_call_during_which_the_model_is_closed_succeeds():
    value = np.ones((256, 512), np.float32)
    model = streampool.load(onnx_writer.long_running())
    results = []
    thread = threading.Thread(target=lambda: results.append(model(value)))
    thread.start()
    while model.statistics()["in_flight"] == 0 and not results:
        time.sleep(0.001)
    model.close()
    thread.join()
    assert (results[0] == 1).all()


@pytest.mark.parametrize("is_submitted", [False, True])
def test_a_close_during_runs_ends_them_or_lets_them_finish(x, is_submitted):
    for _ in range(count_of(50, 5)):
        model = streampool.load(onnx_writer.linear())
        expected = model(x).tobytes()
        outcomes = []

        def run():
            try:
                while True:
                    result = model.submit(x).result(timeout=30) if is_submitted else model(x)
                    outcomes.append(result.tobytes() == expected)
            except streampool.Error as error:
                outcomes.append(error.status == streampool.Status.CLOSED)

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        model.close()
        for thread in threads:
            thread.join(30)
        assert all(outcomes) and len(outcomes) >= 4
