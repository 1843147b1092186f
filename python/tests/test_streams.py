# SPDX-License-Identifier: Apache-2.0
"""Streams and events."""
import asyncio
import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import onnx_writer
import streampool


def test_the_cpu_is_there():
    assert streampool.is_available() and streampool.device_count() >= 1
    cpu = streampool.device()
    assert cpu.kind == "cpu" and cpu == streampool.device("cpu") and hash(cpu) == hash(streampool.device(cpu))
    assert cpu.width >= 1 and cpu.run_slots >= 1 and "cpu" in repr(cpu)
    with ThreadPoolExecutor(1) as pool:  # a thread without failed commands of other tests
        pool.submit(streampool.synchronize).result()
        pool.submit(streampool.synchronize, cpu).result()


@pytest.mark.filterwarnings("ignore:nanobind")
@pytest.mark.parametrize("kind", [streampool.Device, streampool.Stream])
def test_devices_and_streams_are_compared_with_anything(kind):
    one = kind("cpu")
    for other in (None, 3, "cpu", streampool.Event(), kind.__new__(kind)):
        assert not one == other and one != other and other not in [one]
    assert one in [None, one]


def test_null_is_one_device_and_more_can_be_opened(x, linear):
    null = streampool.device("null")
    assert null == streampool.device("null") and null.kind == "null"
    other = streampool.Device("null")
    assert other != null
    model = streampool.load(onnx_writer.linear(), device=other)
    assert model(x).tobytes() == linear(x).tobytes()
    other.close()
    with pytest.raises(streampool.Error):
        model(x)
    with pytest.raises(ValueError):
        streampool.device().close()
    with pytest.raises(TypeError):
        streampool.synchronize(3)


def test_the_main_threads_stream_is_the_default_one():
    assert streampool.current_stream() == streampool.default_stream()
    others = []

    def note():
        others.append(streampool.current_stream())
        streampool.release_current_thread_slot()
        streampool.release_current_thread_slot()

    thread = threading.Thread(target=note)
    thread.start()
    thread.join()
    assert others[0] != streampool.default_stream()


def test_a_scope_makes_a_stream_current():
    stream, other = streampool.Stream(), streampool.Stream("cpu")
    assert stream != other
    scope = streampool.stream(stream)
    with scope as current:
        assert current is stream and streampool.current_stream() == stream
        with streampool.stream(other), scope:
            assert streampool.current_stream() == stream
        assert streampool.current_stream() == stream
    assert streampool.current_stream() == streampool.default_stream()
    with pytest.raises(RuntimeError):
        with streampool.stream(stream):
            raise RuntimeError
    assert streampool.current_stream() == streampool.default_stream()
    with pytest.raises(TypeError, match="stream is a Stream"):
        streampool.stream(3)
    with pytest.raises(TypeError, match="timeout is a number"):
        stream.synchronize("soon")
    with pytest.raises(ValueError, match="not entered"):
        scope.__exit__()


def test_scopes_are_left_in_any_order():
    default = streampool.current_stream()
    streams = [streampool.Stream() for _ in range(4)]
    scopes = [streampool.stream(stream) for stream in streams]
    for scope in scopes:
        scope.__enter__()
    for left, current in ((1, 3), (3, 2), (0, 2)):
        scopes[left].__exit__()
        assert streampool.current_stream() == streams[current]
    with pytest.raises(ValueError, match="not entered"):
        scopes[0].__exit__()
    scopes[2].__exit__()
    assert streampool.current_stream() == default


def test_scopes_of_tasks_overlap():
    async def use(begin, end):
        with streampool.stream(streampool.Stream()):
            begin.set()
            await end.wait()
            return (streampool.tensor(np.float32([1])) + 1).item()

    async def main():
        first_is_in, second_is_in, first_is_out = (asyncio.Event() for _ in range(3))
        first = asyncio.create_task(use(first_is_in, second_is_in))
        await first_is_in.wait()
        second = asyncio.create_task(use(second_is_in, first_is_out))
        results = [await first]
        first_is_out.set()
        return [*results, await second]

    assert asyncio.run(main()) == [2, 2]
    assert streampool.current_stream() == streampool.default_stream()
    assert (streampool.tensor(np.float32([1])) + 1).item() == 2


def test_a_scope_that_is_left_on_another_thread_keeps_its_stream():
    def scope():
        with streampool.stream(streampool.Stream()):
            yield

    def work():
        entered = scope()
        next(entered)
        with ThreadPoolExecutor(1) as other, pytest.raises(ValueError, match="not entered"):
            other.submit(entered.close).result()
        del entered
        gc.collect()
        return (streampool.tensor(np.float32([1])) + 1).item()

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(work).result() == 2


def test_a_scope_is_entered_by_several_threads():
    """Each leaves its own: the stream of one is never that of another afterwards."""
    scope, barrier, wrong = streampool.stream(streampool.Stream()), threading.Barrier(8), []

    def work():
        own = streampool.Stream()
        try:
            with streampool.stream(own):
                for _ in range(200):
                    barrier.wait()
                    with scope:
                        barrier.wait()
                    if streampool.current_stream() != own:
                        wrong.append(threading.get_ident())
        except BaseException as error:
            wrong.append(error)
            barrier.abort()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_null_is_opened_again_after_a_close():
    device = streampool.device("null")
    assert streampool.device("null") == device
    device.close()
    again = streampool.device("null")
    assert again != device and again.name.startswith("null")
    assert streampool.tensor(np.float32([1]), device="null").tolist() == [1]


def test_events_are_recorded_waited_for_and_timed():
    stream, event = streampool.Stream(), streampool.Event(enable_timing=True)
    with pytest.raises(ValueError):
        event.query()
    event.record(stream)
    event.synchronize()
    stream.synchronize()
    assert event.query() and stream.query()
    time.sleep(0.005)
    end = streampool.Event(enable_timing=True)
    end.record(stream)
    assert 4 < event.elapsed_time(end) < 60_000
    assert event.elapsed_time(end) == -end.elapsed_time(event)
    with pytest.raises(ValueError):
        event.elapsed_time(stream.record_event())


def test_streams_wait_for_events_and_for_each_other():
    first, second = streampool.Stream(), streampool.Stream()
    with streampool.stream(first):
        value = streampool.tensor(np.ones((256, 256), np.float32))
        for _ in range(20):
            value = value @ value * (1 / 256)
    event = first.record_event()
    second.wait_event(event)
    event.wait(second)
    event.wait()
    second.wait_stream(first)
    second.flush()
    second.synchronize()
    assert event.query() and first.query()
    assert second.info()["failed"] == 0 and first.info()["submissions"] > 0
    assert value.numpy()[0, 0] == 1


def test_a_forgotten_stream_is_given_back():
    for _ in range(4 * streampool.device().stream_count):
        streampool.Stream().synchronize()
    stream = streampool.Stream()
    assert stream.info()["holders"] == 1


def test_waits_have_time_outs(slow):
    device = streampool.Device("null")
    stream = streampool.Stream(device)
    stream.synchronize(timeout=10)
    event = stream.record_event()
    event.synchronize(timeout=10)
    device.close()


@pytest.mark.parametrize("device", ["cpu", "null"])
def test_a_full_stream_is_waited_for(device):
    """Of 1 MiB of commands, or 16, each of some 200 bytes."""
    count = 100000 if device == "cpu" else 10000
    with streampool.stream(streampool.Stream(device)):
        value = streampool.tensor(np.eye(512, dtype=np.float32), device=device)
        for _ in range(50):
            value = value @ value
        total = value[0, 0] - 1
        for _ in range(count):
            total = total + value[0, 0]
        assert total.item() == count
