# SPDX-License-Identifier: Apache-2.0
"""Threads that share everything at once; where the interpreter has no lock, truly at the same time."""
import asyncio
import sys
import sysconfig
import threading

import numpy as np
import pytest

import onnx_writer
import streampool
from conftest import count_of, run_python
from streampool import Status
from together import THREADS, together


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this interpreter has a lock")
def test_an_interpreter_without_a_lock_still_has_none():
    assert not sys._is_gil_enabled()


def test_first_runs_of_one_model_at_once(x):
    """What a model remembers of its outputs is made by whichever run is first."""
    for _ in range(count_of(200, 20)):
        model = streampool.load(onnx_writer.linear())
        inputs = [np.repeat(x, 1 + i % 4, axis=0) for i in range(THREADS)]
        results = together(lambda i: [model(inputs[i]).tobytes() for _ in range(3)])
        for i, bits in enumerate(results):
            assert set(bits) == {np.repeat(model(x), 1 + i % 4, axis=0).tobytes()}


def test_more_input_shapes_than_a_model_remembers():
    model = streampool.load(onnx_writer.unary("Neg", "float32", ["n"]))

    def run(index):
        for n in range(1, 100):
            value = np.full(n, index, np.float32)
            assert (model(value) == -value).all() and model(value).shape == (n,)

    together(run)


def test_one_array_is_the_input_of_all(linear, x):
    expected = linear(x).tobytes()
    rounds = count_of(5000, 200)
    for bits in together(lambda _: {linear(x).tobytes() for _ in range(rounds)}):
        assert bits == {expected}


def test_all_kinds_of_use_at_once(linear, two, x):
    expected, a = linear(x).tobytes(), np.float32([1, 2, 3])
    queue = streampool.BatchQueue(linear)
    shared, stream = streampool.tensor(x), streampool.Stream()
    event = streampool.Event()
    event.record(stream)

    def tensors():
        assert ((shared + 1) * 2 - shared).tolist() == ((x + 1) * 2 - x).tolist()
        assert (np.from_dlpack(shared)[:, 0] == x[:, 0]).all()
        assert streampool.from_dlpack(x.copy()).tolist() == x.tolist()

    def streams():
        with streampool.stream(stream):
            assert streampool.current_stream() == stream
            event.record()
        stream.synchronize()
        event.synchronize()
        streampool.synchronize()

    async def awaits():
        results = await asyncio.gather(*[asyncio.wrap_future(linear.submit(x)) for _ in range(5)])
        assert all(result.tobytes() == expected for result in results)

    def loaded():
        with streampool.load(onnx_writer.linear()) as model:
            assert model(x).tobytes() == expected

    def arrays():
        out = np.empty((2, 3), np.float32)
        assert linear.run({"x": x}, {"y": out})["y"].tobytes() == expected
        assert two(a, b=a)[1].tolist() == [0, 0, 0]
        assert [r.tobytes() for r in streampool.batch_inference(linear, [x] * 5)] == [expected] * 5

    kinds = [tensors, streams, lambda: asyncio.run(awaits()), loaded, arrays,
             lambda: linear.submit(x).result().tobytes() == expected or 1 / 0,
             lambda: queue.submit(x).result().tobytes() == expected or 1 / 0,
             lambda: (linear.statistics(), queue.statistics(), streampool.memory_stats(), linear.info)]

    def use(index):
        for i in range(count_of(1000, 25)):
            kinds[(index + i) % len(kinds)]()

    together(use)


def test_one_future_is_waited_for_cancelled_and_completed_at_once(linear, x):
    expected = linear(x).tobytes()
    for _ in range(count_of(500, 30)):
        future = linear.submit(x)
        uses = [future.result, future.exception, future.cancel, future.done] * 2

        def use(index):
            try:
                return uses[index]()
            except streampool._future.concurrent.futures.CancelledError:
                return None

        for result in together(use)[::4]:
            assert result is None or result.tobytes() == expected


def test_a_run_that_was_finished_meanwhile_is_not_cancelled(linear, x):
    future = linear.submit(x)
    future.result()
    future._run.cancel()  # as after a look at the future when it was not done yet


def test_a_model_and_a_queue_are_closed_by_many(x):
    for _ in range(count_of(200, 20)):
        model = streampool.load(onnx_writer.linear())
        queue = streampool.BatchQueue(model)
        expected = model(x).tobytes()

        def use(index):
            try:
                if index < 2:
                    return model.close()
                if index < 4:
                    return queue.close()
                if index < 6:
                    assert model(x).tobytes() == expected
                else:
                    assert queue.submit(x).result().tobytes() == expected
            except streampool.Error as error:
                assert error.status in (Status.CLOSED, Status.INVALID, Status.CANCELLED)

        together(use)


def test_one_capsule_is_imported_once(x):
    for _ in range(count_of(500, 30)):
        capsule = x.copy().__dlpack__()

        def take(_):
            try:
                return streampool._core.import_dlpack(capsule)
            except ValueError:
                return None

        taken = [tensor for tensor in together(take) if tensor is not None]
        assert len(taken) == 1 and taken[0].tolist() == x.tolist()


def test_one_scope_is_entered_by_all():
    stream = streampool.Stream()
    scope = streampool.stream(stream)

    def enter(_):
        own = streampool.current_stream()
        for _ in range(count_of(2000, 100)):
            with scope:
                with scope:
                    assert streampool.current_stream() == stream
                assert streampool.current_stream() == stream
            assert streampool.current_stream() == own

    together(enter)
    with pytest.raises(streampool.Error, match="has not entered"):
        scope.__exit__(None, None, None)


def test_the_simulated_device_is_opened_once():
    out = run_python("""
import test_stress, streampool
devices = test_stress.together(lambda _: streampool.device("null"), 16)
print(len(set(devices)), streampool.device_count())
""")
    assert out == "1 2\n"


def test_a_mapping_that_changes_is_read_once(two):
    a = np.float32([1, 2])
    inputs, is_over = {"a": a, "b": a}, threading.Event()

    def use(index):
        if index > 0:
            for _ in range(count_of(2000, 200)):
                try:
                    assert two.run(inputs)[0].tolist() == [2, 4]
                except (TypeError, ValueError):
                    pass  # with one of the other names
            is_over.set()
        while index == 0 and not is_over.is_set():
            for i in range(20):
                inputs[f"other {i}"] = a
            for i in range(20):
                del inputs[f"other {i}"]

    together(use, 3)


def test_loops_begin_and_end_in_all_threads(linear, x):
    expected = linear(x).tobytes()

    async def main():
        return [(await linear.submit(x)).tobytes() for _ in range(3)]

    def use(_):
        for _ in range(count_of(200, 10)):
            assert asyncio.run(main()) == [expected] * 3

    together(use)
