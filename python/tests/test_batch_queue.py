# SPDX-License-Identifier: Apache-2.0
"""Batch queues and batch_inference."""
import numpy as np
import pytest

import onnx_writer
import streampool
from together import together


def rows(count):
    return [np.sin(np.arange(4, dtype=np.float32) + i).reshape(1, 4) for i in range(count)]


def test_requests_have_the_bits_of_lone_runs(linear):
    inputs = rows(300)
    expected = [linear(row).tobytes() for row in inputs]
    with streampool.BatchQueue(linear, max_batch=16) as queue:
        futures = [queue.submit(row) for row in inputs]
        assert [future.result().tobytes() for future in futures] == expected
        counts = queue.statistics()
    assert counts["submitted"] == 300 == counts["done"] and counts["failed"] == 0
    assert sum(size * batches for size, batches in counts["by_rows"].items()) == counts["rows"]


def test_a_delay_gathers_and_a_flush_ends_it(linear):
    queue = streampool.BatchQueue(linear, max_delay=60.0)
    futures = [queue.submit(row) for row in rows(3)]
    queue.flush()
    assert all(future.result(timeout=30).shape == (1, 3) for future in futures)
    streampool.configure_batch_queue(queue, max_delay=0.0, max_batch=2)
    assert queue.submit(rows(1)[0]).result(timeout=30).shape == (1, 3)


def test_options_are_checked(linear):
    with pytest.raises(ValueError):
        streampool.BatchQueue(linear, max_batch=65)
    for options in ({"max_batch": -1}, {"workers": 2**40}, {"max_waiting": -5}, {"max_delay": -1.0},
                    {"max_delay": float("nan")}, {"max_delay": float("inf")}, {"max_delay": 1e30}):
        with pytest.raises(ValueError, match=next(iter(options))):
            streampool.BatchQueue(linear, **options)
    for options in ({"speed": 3}, {"max_batch": 1.5}, {"workers": "1"}, {"max_delay": "1"}, {"max_delay": None}):
        with pytest.raises(TypeError, match=next(iter(options))):
            streampool.BatchQueue(linear, **options)
    with pytest.raises(TypeError, match="streampool.Model"):
        streampool.BatchQueue(3)
    queue = streampool.BatchQueue(linear)
    with pytest.raises(ValueError):
        queue.configure(workers=1000)
    with pytest.raises(TypeError):
        queue.submit()
    queue.close()
    for use in (lambda: queue.submit(rows(1)[0]), queue.flush, queue.statistics, queue.configure):
        with pytest.raises(streampool.Error, match="closed"):
            use()


def test_a_queue_outlives_its_model():
    model = streampool.load(onnx_writer.linear())
    queue = streampool.BatchQueue(model)
    expected = model(rows(1)[0]).tobytes()
    future = queue.submit(rows(1)[0])
    del model
    assert future.result().tobytes() == expected


def test_batch_inference_keeps_the_order(linear, two):
    inputs = rows(200)
    results = streampool.batch_inference(linear, inputs)
    assert [r.tobytes() for r in results] == [linear(row).tobytes() for row in inputs]
    a = np.float32([1, 2])
    results = streampool.batch_inference(two, [(a, a), {"a": a, "b": a}, [a, a.astype(np.float16)]])
    assert all(result._fields == ("_0", "_1") and result[0].tolist() == [2, 4] for result in results)
    assert streampool.batch_inference(linear, []) == []


def test_a_count_that_is_wrong_is_refused(linear, x):
    with pytest.raises(TypeError, match="2 inputs given; the model has 1"):
        streampool.batch_inference(linear, [x, (x, x)])
    with pytest.raises(TypeError, match="'x' is missing"):
        streampool.batch_inference(linear, [x, ()])


def test_a_failure_of_one_request_is_raised():
    table = streampool.load(onnx_writer.table())
    with pytest.raises(streampool.Error, match="out of range"):
        streampool.batch_inference(table, [np.int64([1]), np.int64([9]), np.int64([2])])
    with pytest.raises(TypeError):
        streampool.batch_inference(table, [np.float32([1])])


@pytest.mark.parametrize("bad", [np.ones((2, 5), np.float32), np.ones((2, 4)) * 1e300, (), "rows", {"z": 1},
                                 [np.ones((2, 4), np.float32)] * 2])
def test_the_request_that_fails_is_named(linear, x, bad):
    with pytest.raises((TypeError, ValueError)) as failure:
        streampool.batch_inference(linear, [x, x, bad, x])
    notes = getattr(failure.value, "__notes__", [])
    assert sum("requests[2]" in text for text in [str(failure.value), *notes]) == 1


def test_threads_share_a_queue(linear):
    queue = streampool.BatchQueue(linear)
    inputs = rows(31)
    expected = [linear(row).tobytes() for row in inputs]

    def use(i):
        for _ in range(50):
            assert queue.submit(inputs[i]).result().tobytes() == expected[i]

    together(use, 31)
