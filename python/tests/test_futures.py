# SPDX-License-Identifier: Apache-2.0
"""Submitted runs as futures of concurrent.futures."""
import concurrent.futures
import contextlib
import gc
import logging
import threading
import time
import weakref

import numpy as np
import pytest

import onnx_writer
import streampool
from conftest import VALUE, Held, run_python
from together import together


def test_a_future_has_the_bits_of_a_call(linear, two, x):
    future = linear.submit(x)
    assert isinstance(future, concurrent.futures.Future)
    assert future.result().tobytes() == linear(x).tobytes() and future.done()
    assert future.exception() is None
    a = np.float32([1, 2])
    assert two.submit(a, b=a).result()._fields == ("_0", "_1")
    assert linear.submit(x.astype(np.float16)).result().shape == (2, 3)


def test_what_waits_for_any_future_waits_for_ours(linear, x):
    futures = [linear.submit(x) for _ in range(50)]
    done, pending = concurrent.futures.wait(futures, timeout=30)
    assert len(done) == 50 and not pending
    futures = [linear.submit(x) for _ in range(50)]
    assert len(list(concurrent.futures.as_completed(futures, timeout=30))) == 50


def test_a_wait_ends_after_its_time(held):
    future = held.submit()
    begin = time.monotonic()
    with pytest.raises(TimeoutError):
        future.result(timeout=0.001)
    with pytest.raises(TimeoutError):
        future.exception(timeout=0)
    assert time.monotonic() - begin < 5
    assert future.running() and not future.done()
    held.open()
    assert (future.result(timeout=60) == VALUE).all()


def test_callbacks_are_called_once_and_their_exceptions_are_logged(linear, x, caplog):
    called = []
    event = threading.Event()

    def fail(future):
        called.append(future)
        raise RuntimeError("a callback that fails")

    with caplog.at_level(logging.ERROR):
        future = linear.submit(x)
        future.add_done_callback(fail)
        future.add_done_callback(lambda _: event.set())
        assert event.wait(30)
    assert called == [future] and "a callback that fails" in caplog.text
    assert linear.submit(x).result().shape == (2, 3)


def test_a_callback_that_exits_does_not_end_the_drainer(held):
    def leave(_):
        raise SystemExit(3)

    event = threading.Event()
    future, after = held.submit(), held.submit()
    future.add_done_callback(leave)
    after.add_done_callback(lambda _: event.set())
    held.open()
    assert event.wait(30)


def test_a_callback_may_submit(linear, x):
    results = []
    event = threading.Event()

    def again(future):
        results.append(future.result())
        if len(results) == 100:
            event.set()
        else:
            linear.submit(x).add_done_callback(again)

    linear.submit(x).add_done_callback(again)
    assert event.wait(30)
    assert all(result.tobytes() == results[0].tobytes() for result in results)


def test_a_cancel_is_a_request(held):
    futures = [held.submit() for _ in range(6)]
    assert not futures[5].cancel()
    with pytest.raises(concurrent.futures.CancelledError):
        futures[5].result(timeout=60)
    assert not any(future.done() for future in futures[:5])
    held.open()
    for future in futures[:5]:
        assert (future.result(timeout=60) == VALUE).all()
    assert not futures[0].cancel()


def test_the_run_keeps_its_arrays_and_its_model():
    held, value = Held(), VALUE.copy()
    alive = weakref.ref(value)
    future = held.model.submit(value)
    with pytest.raises(ValueError, match="resize"):
        value.resize((1, 1))
    del value, held.model
    gc.collect()
    assert alive() is not None and not future.done()
    held.open()
    assert (future.result() == VALUE).all()
    gc.collect()
    assert alive() is None


def test_an_interrupt_while_a_future_is_completed_loses_nothing():
    """The exception of a signal handler may end the call at any place."""
    for kind in (KeyboardInterrupt, SystemExit):
        held = Held()
        future, done, calls = held.submit(), threading.Event(), []

        def finish(result, kind=kind, calls=calls):
            calls.append(1)
            if len(calls) < 3:  # of the caller and of the drainer
                raise kind
            return result

        future._finish = finish
        future.add_done_callback(lambda _, done=done: done.set())
        held.open()
        for _ in range(3):
            try:
                future.result()
            except kind:
                pass
        assert (future.result(timeout=30) == VALUE).all() and done.wait(30) and len(calls) >= 3


def test_a_result_that_cannot_be_made_is_the_futures_exception(held):
    future = held.submit()
    future._finish = lambda result: 1 / 0
    held.open()
    assert concurrent.futures.wait([future], timeout=30).done
    assert isinstance(future.exception(timeout=30), ZeroDivisionError)


def test_a_future_is_awaited_in_a_loop_only(held):
    future = held.submit()
    with pytest.raises(RuntimeError, match="event loop"):
        future.__await__().send(None)
    held.open()
    assert (future.result() == VALUE).all()


def test_forgotten_futures_end(linear, x):
    alive = [weakref.ref(linear.submit(x)) for _ in range(200)]
    deadline = time.monotonic() + 30
    while any(ref() is not None for ref in alive):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_thread_may_end_with_futures_pending(held):
    futures = []

    def submit():
        futures.extend(held.submit() for _ in range(4))

    thread = threading.Thread(target=submit)
    thread.start()
    thread.join()
    held.open()
    assert all((future.result() == VALUE).all() for future in futures)


def test_many_threads_wait_for_one_future(held):
    future = held.submit()

    def wait(index):
        if index == 0:
            held.open()
        return future.result()

    results = together(wait)
    assert len(results) == 8 and all(result is results[0] for result in results)


def test_errors_of_the_call_and_of_the_run(linear):
    with pytest.raises(ValueError):
        linear.submit(np.zeros((2, 5), np.float32))
    with pytest.raises(TypeError):
        linear.submit()
    table = streampool.load(onnx_writer.table())
    future = table.submit(np.int64([9]))
    assert isinstance(future.exception(), streampool.Error)
    with pytest.raises(streampool.Error, match="out of range"):
        future.result()


def test_a_submit_that_fails_keeps_no_future(linear):
    def futures():
        gc.collect()
        return sum(isinstance(value, streampool.Future) for value in gc.get_objects())
    before = futures()
    for _ in range(20):
        with pytest.raises(ValueError):
            linear.submit(np.zeros((2, 5), np.float32))
    assert futures() <= before


def test_each_callback_is_called_once_whatever_ends_the_calls(linear, x):
    """Of an exception of a signal handler, the rest is called by who finds the future again."""
    class Ends(BaseException):
        pass

    calls, future = [], linear.submit(x)
    concurrent.futures.wait([future])
    other = type(future)(future._run, future._finish)

    def end(_):
        calls.append("ends")
        raise Ends

    for callback in (lambda _: calls.append(1), end, lambda _: calls.append(2)):
        other.add_done_callback(callback)
    with pytest.raises(Ends):
        other.set_result(None)
    other._invoke_callbacks()
    assert calls == [1, "ends", 2]


def test_only_a_thread_that_cannot_be_started_is_done_without():
    out = run_python("""
import _thread, threading, numpy as np, onnx_writer, streampool
model, x = streampool.load(onnx_writer.linear()), np.ones((2, 4), np.float32)
start, start_new = threading.Thread.start, _thread.start_new_thread
def fail(*_):
    raise RuntimeError(message)
message = "no thread"
threading.Thread.start = fail
print(model.submit(x).done())
threading.Thread.start = start
_thread.start_new_thread = fail
for message in ("can't start new thread", "of a handler"):
    try:
        print(model.submit(x).done())
    except RuntimeError as error:
        print(error)
_thread.start_new_thread = start_new
print(model.submit(x).result().shape, streampool._future.has_drainer())
""")
    assert out == "True\nTrue\nof a handler\n(2, 3) True\n"


def test_a_lock_that_a_thread_keeps_stops_no_other_future(linear, x):
    """As concurrent.futures.wait() does that a signal handler ends."""
    kept = Held()
    future = kept.submit()
    future._condition.acquire()
    kept.open()
    calls = []
    for _ in range(3):
        linear.submit(x).add_done_callback(calls.append)
        while not calls:
            time.sleep(0.001)
        calls.clear()
    assert not future.done()
    future._condition.release()
    concurrent.futures.wait([future])
    assert (future.result() == VALUE).all()


@contextlib.contextmanager
def completions_held_up():
    """The thread for completions is in a callback."""
    held, inside, end = Held(), threading.Event(), threading.Event()
    held.submit().add_done_callback(lambda _: (inside.set(), end.wait()))
    held.open()
    inside.wait()
    try:
        yield
    finally:
        end.set()


def test_no_memory_for_the_exception_of_a_run_is_its_exception(linear, x):
    testcapi = pytest.importorskip("_testcapi")
    table = streampool.load(onnx_writer.table())
    with completions_held_up():  # no other thread makes the exception
        failed = table.submit(np.int64([9]))
        failed._run.wait(None)
        testcapi.set_nomemory(1, 2)
        try:
            failed.exception()
        except MemoryError:
            pass
        finally:
            testcapi.remove_mem_hooks()
    assert isinstance(failed.exception(timeout=30), (MemoryError, streampool.Error))
    assert failed.exception() is failed.exception()
    assert not concurrent.futures.wait([failed, linear.submit(x)], timeout=30).not_done


def test_a_lock_of_a_wait_that_is_kept_stops_no_other_future(linear, x):
    kept = Held()
    future = kept.submit()
    waiting = threading.Thread(target=concurrent.futures.wait, args=([future],))
    waiting.start()
    while not future._waiters:
        time.sleep(0.001)
    waiter = future._waiters[0]
    for lock in (waiter.event._cond, waiter.lock):
        lock.acquire()
        kept.open()
        calls = []
        linear.submit(x).add_done_callback(calls.append)
        while not calls:
            time.sleep(0.001)
        assert waiting.is_alive()
        lock.release()
    waiting.join()
    assert (future.result() == VALUE).all()


def test_results_that_nobody_else_waits_for_are_not_kept(linear, x):
    with completions_held_up():
        alive = []
        for _ in range(100):
            future = linear.submit(x)
            alive.append(weakref.ref(future.result()))
            assert not concurrent.futures.wait([future], timeout=0).not_done
        assert sum(ref() is not None for ref in alive) == 1  # the last one


def results_here(future):
    return future.result()


def results_in_a_thread(future):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(future.result).result()


@pytest.mark.parametrize("result_of", [results_here, results_in_a_thread])
def test_a_result_leaves_callbacks_to_another_thread(result_of):
    for _ in range(5):
        held, threads = Held(), []
        future = held.submit()
        future.add_done_callback(lambda _, threads=threads: threads.append(threading.current_thread().name))
        held.open()
        assert (result_of(future) == VALUE).all() and future.done() and not future.running()
        while not threads:
            time.sleep(0.001)
        assert future.exception() is None and threads == ["streampool"]


def test_a_result_that_the_end_of_an_array_holds_up_is_not_lost(linear, x):
    """Other threads run while the caller's arrays are given back."""
    for _ in range(3):
        held, value, calls = Held(), VALUE.copy(), []
        weakref.finalize(value, time.sleep, 0.1)
        held.submit().add_done_callback(lambda _: time.sleep(0.05))  # the thread for completions comes later
        future = held.model.submit(value)
        del value
        future.add_done_callback(calls.append)
        held.open()
        assert (future.result() == VALUE).all()
        assert not concurrent.futures.wait([future], timeout=20).not_done
        while not calls:
            time.sleep(0.001)
