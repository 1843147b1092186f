# SPDX-License-Identifier: Apache-2.0
"""A forked child: calls raise, nothing hangs."""
import pytest

from conftest import run_python

PREPARE = """
import asyncio, os, signal, numpy as np, onnx_writer, streampool
from streampool import Error, Status
def in_child(work):
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        try:
            work()
        finally:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
def raises(call):
    try:
        call()
    except Error as error:
        return error.status == Status.FORKED
    return False
model = streampool.load(onnx_writer.linear())
x = np.ones((2, 4), np.float32)
model(x)
"""


@pytest.mark.filterwarnings("ignore")
def test_calls_raise_in_the_child():
    out = run_python(PREPARE + """
pending = streampool.load(onnx_writer.repeated()).submit(np.int64(onnx_writer.ENDLESS), np.float32([1]))
tensor, queue = streampool.tensor(x), streampool.BatchQueue(model)
device = streampool.device("cpu")
async def awaited():
    return await pending
def work():
    calls = [lambda: model(x), lambda: model.submit(x), lambda: pending.result(),
             lambda: streampool.load(onnx_writer.linear()), lambda: streampool.tensor(x),
             lambda: tensor.numpy(), lambda: tensor + 1, lambda: queue.submit(x),
             lambda: streampool.current_stream(), lambda: streampool.synchronize(),
             lambda: asyncio.run(awaited()),
             lambda: streampool.batch_inference(model, [x])]
    wrong = [i for i, call in enumerate(calls) if not raises(call)]
    print(wrong, tensor, device, flush=True)
    os._exit(7 if not wrong else 8)
code, is_running = in_child(work), not pending.done()
pending.cancel()
print(code, is_running, type(pending.exception()).__name__, model(x).shape)
""")
    assert out == "[] streampool.Tensor(FORKED) streampool.Device(FORKED)\n7 True CancelledError (2, 3)\n"


def test_a_future_that_was_done_before_the_fork_keeps_its_result():
    out = run_python(PREPARE + """
ended = model.submit(x)
ended.result()
print(in_child(lambda: os._exit(ended.result().shape == (2, 3))))
""")
    assert out == "1\n"


def test_a_future_that_was_done_has_its_result_in_a_child_of_a_process_that_waits_for_it():
    """The wait takes and gives the future's lock, which the child may have as taken for ever."""
    out = run_python(PREPARE + """
import concurrent.futures, threading
ended = model.submit(x)
ended.result()
def wait():
    while True: concurrent.futures.wait([ended])
threading.Thread(target=wait, daemon=True).start()
def work():
    async def awaited():
        return await ended
    is_right = ended.done() and ended.result().shape == asyncio.run(awaited()).shape == (2, 3)
    os._exit(7 if is_right and ended.exception() is None else 8)
print({in_child(work) for _ in range(20)})
""")
    assert out == "{7}\n"


def test_a_future_whose_result_was_had_before_the_fork_is_done_in_the_child():
    """Whether or not the thread that completes it has come to it. The parent calls its callbacks."""
    out = run_python(PREPARE + """
import concurrent.futures
concurrent.futures.wait([model.submit(x)])
def work():
    calls.clear()
    done = concurrent.futures.wait([ended], timeout=5).done
    ended.add_done_callback(calls.append)
    os._exit(7 if done and calls == [ended] and ended.result().shape == (2, 3) else 8)
codes = []
for _ in range(100):
    calls, ended = [], model.submit(x)
    ended.add_done_callback(lambda _: calls.append("of the parent"))
    ended.result()
    codes.append(in_child(work))
    while not calls: pass
print(set(codes), calls)
""")
    assert out == "{7} ['of the parent']\n"


@pytest.mark.parametrize("wait", ["streampool.synchronize(device)", "device.close()"])
def test_a_wait_that_a_handler_forks_in_ends_in_the_child(wait):
    assert run_python(f"""
import os, signal, numpy as np, streampool
device = streampool.Device("null")
value = streampool.tensor(np.ones((512, 512), np.float32), device=device)
for _ in range(150):
    value = value @ value
children = []
signal.signal(signal.SIGALRM, lambda *_: children.append(os.fork()))
signal.setitimer(signal.ITIMER_REAL, 0.02)
try:
    {wait}
    assert children and children[0] != 0
    print(os.waitpid(children[0], 0)[1])
except streampool.Error as error:
    os._exit(0 if children == [0] and error.status == streampool.Status.FORKED else 1)
""", timeout=60) == "0\n"


def test_the_child_exits_in_order_while_threads_of_the_parent_run():
    out = run_python(PREPARE + """
import sys, threading
for _ in range(4):
    threading.Thread(target=lambda: [model.submit(x).result() for _ in iter(int, 1)], daemon=True).start()
codes = []
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        del model
        sys.exit(5)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print(set(codes))
""")
    assert out == "{5}\n"


def test_a_process_of_its_own_works():
    out = run_python(PREPARE + """
import subprocess, sys
code = "import numpy as np, onnx_writer, streampool; print(streampool.load(onnx_writer.linear())(np.ones((2, 4), np.float32)).shape)"
print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout)
""")
    assert "(2, 3)" in out


def test_children_of_a_process_that_has_only_imported_the_package_share_nothing():
    """Each one's completions wake its own drainer: the descriptors of a fork are one counter."""
    out = run_python("""
import concurrent.futures, os, signal, numpy as np, onnx_writer, streampool
x = np.ones((2, 4), np.float32)
def work():
    signal.alarm(40)
    model = streampool.load(onnx_writer.linear())
    for _ in range(500):
        if concurrent.futures.wait([model.submit(x)], timeout=10).not_done:
            os._exit(2)
    os._exit(7)
pids = [os.fork() or work() for _ in range(4)]
print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids])
""")
    assert out == "[7, 7, 7, 7]\n"


@pytest.mark.filterwarnings("ignore")
def test_a_child_takes_no_completions_of_its_parent():
    out = run_python(PREPARE + """
import asyncio, concurrent.futures, time
model.submit(x).result()
def refused_for_ever():
    signal.alarm(40)
    for submit in (model.submit, streampool.from_dlpack):
        try:
            submit(x)
        except Error:
            pass
    while True: time.sleep(1)
async def main():
    await model.submit(x)
    pids = [os.fork() or refused_for_ever() for _ in range(3)]
    for _ in range(300):
        await asyncio.wait_for(model.submit(x), 10)
    return pids
pids = asyncio.run(main())
lost = 0
for _ in range(300):
    lost += len(concurrent.futures.wait([model.submit(x)], timeout=10).not_done)
    if lost: break
for pid in pids: os.kill(pid, signal.SIGKILL)
print(lost)
""")
    assert out == "0\n"
