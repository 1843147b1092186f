# SPDX-License-Identifier: Apache-2.0
"""Futures in event loops."""
import asyncio
import concurrent.futures
import gc
import os
import selectors
import sys
import threading
import weakref

import numpy as np
import pytest

import onnx_writer
import streampool
from conftest import VALUE, Held


def test_a_thousand_requests_in_flight(linear, x):
    expected = linear(x).tobytes()

    async def request():
        return (await linear.submit(x)).tobytes()

    async def main():
        return await asyncio.gather(*[request() for _ in range(1000)])

    assert all(result == expected for result in asyncio.run(main()))


def test_the_loop_completes_futures_and_callbacks_run_in_it(linear, x):
    async def main():
        threads = []
        future = linear.submit(x)
        future.add_done_callback(lambda _: threads.append(threading.current_thread()))
        await future
        if not threads:
            await asyncio.sleep(0.01)
        return threads

    assert asyncio.run(main()) == [threading.main_thread()]


def test_result_in_the_loop_does_not_wait_for_the_loop(slow):
    async def main():
        return slow.submit(np.ones((64, 512), np.float32)).result(timeout=30)

    assert (asyncio.run(main()) == 1).all()


def test_results_in_a_loop_that_does_not_turn_are_not_kept(linear, x):
    async def main():
        alive = []
        for _ in range(100):
            future = linear.submit(x)
            alive.append(weakref.ref(future.result()))
            assert not concurrent.futures.wait([future], timeout=0).not_done
        return sum(ref() is not None for ref in alive)

    assert asyncio.run(main()) == 1  # the last one


def test_an_error_is_raised_by_await():
    table = streampool.load(onnx_writer.table())

    async def main():
        with pytest.raises(streampool.Error, match="out of range"):
            await table.submit(np.int64([9]))
        return (await table.submit(np.int64([1]))).tolist()

    assert asyncio.run(main()) == [[3, 4, 5]]


def test_a_cancelled_task_cancels_its_run(held):
    futures = []

    async def request():
        futures.append(held.submit())
        return await futures[-1]

    async def main():
        tasks = [asyncio.create_task(request()) for _ in range(5)]
        await asyncio.sleep(0)
        tasks[4].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[4]
        assert isinstance(futures[4].exception(timeout=30), concurrent.futures.CancelledError)
        held.open()
        for task in tasks[:4]:
            assert ((await task) == VALUE).all()

    asyncio.run(main())


def test_a_future_of_a_thread_is_awaited_in_a_loop_and_the_reverse(slow):
    value = np.ones((64, 512), np.float32)
    before = slow.submit(value)

    async def main():
        assert ((await before) == 1).all()
        inside = slow.submit(value)
        assert ((await asyncio.to_thread(inside.result)) == 1).all()
        done = slow.submit(value)
        await done
        return ((await done) == 1).all()

    assert asyncio.run(main())


def test_runs_outlive_their_loop():
    for _ in range(3):
        held = Held()

        async def main(held=held):
            return [held.submit() for _ in range(4)]

        left = asyncio.run(main())
        done = threading.Event()
        left[3].add_done_callback(lambda _, done=done: done.set())
        asyncio.run(main())  # a new loop: the runs of the closed one go to the drainer
        held.open()
        assert done.wait(30)
        assert all((future.result() == VALUE).all() for future in left)


@pytest.mark.parametrize("waits", ["wait", "callback", "another loop", "a loop of a thread"])
def test_futures_of_a_loop_that_is_stopped_are_completed(linear, x, waits):
    """It is not closed, and may never run again."""
    async def submit():
        return linear.submit(x)

    async def awaits(future):
        return await asyncio.wait_for(own(future), 20)

    async def own(future):
        return await future

    stopped = asyncio.new_event_loop()
    future, done = stopped.run_until_complete(submit()), threading.Event()
    if waits == "wait":
        assert not concurrent.futures.wait([future], timeout=20).not_done
    elif waits == "callback":
        future.add_done_callback(lambda _: done.set())
        assert done.wait(20)
    elif waits == "another loop":
        assert asyncio.run(awaits(future)).shape == (2, 3)
    else:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            assert pool.submit(asyncio.run, awaits(future)).result().shape == (2, 3)
    stopped.close()


def test_a_loop_that_is_dropped_after_a_cancelled_await_is_collected(held):
    """Without close(), and though its future is kept."""
    futures = []

    async def main():
        futures.append(held.submit())
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(futures[0], 0.01)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
    alive = weakref.ref(loop)
    with pytest.warns(ResourceWarning, match="unclosed event loop"):
        del loop
        gc.collect()
    assert alive() is None
    assert isinstance(futures[0].exception(timeout=30), concurrent.futures.CancelledError)


@pytest.mark.parametrize("selector", [selectors.DefaultSelector, selectors.PollSelector,
                                      selectors.SelectSelector])
def test_runs_outlive_a_closed_loop_that_is_kept(held, selector):
    async def main():
        return [held.submit() for _ in range(4)]

    loop = asyncio.SelectorEventLoop(selector())
    left = loop.run_until_complete(main())
    loop.close()
    held.open()
    done, not_done = concurrent.futures.wait(left, timeout=30)
    assert len(done) == 4 and not not_done
    assert all((future.result() == VALUE).all() for future in left)


def test_many_loops_at_once_come_and_go(linear, x):
    errors = []

    async def main():
        return await linear.submit(x)

    def work():
        try:
            for _ in range(40):
                asyncio.run(main())
        except BaseException as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not errors


def test_closed_loops_leave_no_descriptors(linear, x):
    async def main():
        return await linear.submit(x)

    asyncio.run(main())
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        asyncio.run(main())
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before
    assert not streampool._completion._loop_lists and streampool._completion._newest == (None, None)


def test_futures_and_closed_loops_that_are_kept_hold_no_descriptors(linear, x):
    kept = []

    async def main():
        future = linear.submit(x)
        await future
        kept.append((future, asyncio.get_running_loop()))

    asyncio.run(main())
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(30):
        asyncio.run(main())
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def test_loops_in_several_threads(linear, x):
    expected = linear(x).tobytes()
    wrong = []

    async def main():
        for _ in range(20):
            results = await asyncio.gather(*[asyncio.wrap_future(linear.submit(x)) for _ in range(20)])
            wrong.extend(result for result in results if result.tobytes() != expected)

    threads = [threading.Thread(target=asyncio.run, args=(main(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


class Interrupt(BaseException):
    """Of a signal handler; an event loop logs it and goes on."""


def _raising_once(kind, finish):
    raised = []

    def finish_or_raise(result):
        if not raised:
            raised.append(kind)
            raise kind
        return finish(result)

    return finish_or_raise


def test_an_interrupt_of_the_loop_loses_no_future(linear, x):
    """A signal handler may end the completion of a future anywhere."""
    async def wait_for(future):
        return await future

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        futures = [linear.submit(x) for _ in range(5)]
        for future in futures[1:3]:
            future._finish = _raising_once(Interrupt, future._finish)
        return await asyncio.wait_for(asyncio.gather(*map(wait_for, futures)), 30)

    assert all((result == linear(x)).all() for result in asyncio.run(main()))


def test_an_interrupt_that_ends_the_loop_loses_no_future(linear, held, x):
    """Also while the exception is kept, with the frames of the loop."""
    futures = []

    async def main():
        futures.extend(held.submit() for _ in range(2))
        futures.extend(linear.submit(x) for _ in range(3))
        futures[3]._finish = _raising_once(KeyboardInterrupt, futures[3]._finish)
        await asyncio.sleep(60)

    with pytest.raises(KeyboardInterrupt) as interrupt:
        asyncio.run(main())
    held.open()
    done, pending = concurrent.futures.wait(futures, timeout=60)
    assert len(done) == 5 and not pending
    assert all((future.result() == VALUE).all() for future in futures[:2])
    assert all((future.result() == linear(x)).all() for future in futures[2:])
    del interrupt
