# SPDX-License-Identifier: Apache-2.0
"""The end of the interpreter, while threads are inside the library or come back from it."""
import concurrent.futures
import sysconfig

import pytest

from conftest import count_of, run_python

PREPARE = """
import sys, threading, time, numpy as np, onnx_writer, streampool
short = streampool.load(onnx_writer.linear())
long = streampool.load(onnx_writer.long_running(256, 20))
x, wide = np.ones((2, 4), np.float32), np.ones((64, 256), np.float32)
short(x), long(wide)
def forever(step):
    while True:
        step()
def start(step, daemon=True):
    threading.Thread(target=forever, args=(step,), daemon=daemon).start()
def again(future):
    long.submit(wide).add_done_callback(again)
"""

PROGRAMS = {
    "daemon threads in runs": """
for _ in range(3): start(lambda: long(wide))
for _ in range(3): start(lambda: short(x))
""",
    "daemon threads that release the lock for short runs": """
released = streampool.load(onnx_writer.linear(), release_gil=True)
for _ in range(6): start(lambda: released(x))
""",
    "callbacks that submit": """
for _ in range(8): long.submit(wide).add_done_callback(again)
""",
    "daemon threads that wait for futures": """
for _ in range(4): start(lambda: long.submit(wide).result())
for _ in range(2): start(lambda: short.submit(x).result())
""",
    "futures that nobody waits for": """
futures = [long.submit(wide) for _ in range(50)]
""",
    "daemon threads with tensors, queues and dlpack": """
queue = streampool.BatchQueue(short)
start(lambda: queue.submit(x).result())
start(lambda: (streampool.tensor(x) + 1).numpy())
start(lambda: streampool.from_dlpack(x.copy()))
start(lambda: streampool.current_stream().synchronize())
""",
    "daemon threads whose requests are taken by Python code": """
half = x.astype(np.float16)
sys.setswitchinterval(1e-5)
for _ in range(3): start(lambda: streampool.batch_inference(short, [half] * 100))
""",
    "daemon threads in methods that calls call": """
tensor = streampool.tensor(x)
class Index:
    def __index__(self):
        for _ in range(100): pass
        return 0
class Shape:
    def __len__(self): return 2
    def __getitem__(self, i):
        for _ in range(100): pass
        return (4, 2)[i]
sys.setswitchinterval(1e-5)
start(lambda: tensor[Index(), Index()])
start(lambda: tensor.reshape(Shape()))
""",
    "an event loop that is left": """
import asyncio
async def main():
    for _ in range(20): short.submit(x)
    for _ in range(8): long.submit(wide).add_done_callback(again)
    await asyncio.sleep(0.01)
asyncio.run(main())
""",
    "a callback that does not end": """
def endless(future):
    while True: pass
short.submit(x).add_done_callback(endless)
""",
    "exit by an exception": """
for _ in range(4): start(lambda: long(wide))
time.sleep(0.01)
raise SystemExit(0)
""",
}

ROUNDS = count_of(25, 4)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_process_ends_in_order(name):
    """11 programs x 25 exits at full scale."""
    def leave(i):
        pause = f"\ntime.sleep({0.002 * (i % 5)})\n"
        code = PREPARE + PROGRAMS[name].replace("raise SystemExit", pause.strip() + "\nraise SystemExit")
        return run_python(code + (pause if "SystemExit" not in code else ""), check=False)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for done in pool.map(leave, range(ROUNDS)):
            assert done.returncode == 0, f"{done.returncode}: {done.stderr[-1000:]}"
            assert "Fatal" not in done.stderr and "terminate" not in done.stderr


def test_a_thread_that_python_ends_inside_of_a_call_does_not_end_the_process():
    """Its attempt to come back to the interpreter, from a method that the call calls, is while a finalizer
    runs. Without the lock of the interpreter it was a crash in the frame of the call until Python 3.14."""
    run_python("""
import os, threading, time, streampool
reader, writer = os.pipe()
class Slow:
    def __float__(self):
        inside.set()
        os.read(reader, 1)
        return 1.0
class Last:
    def __del__(self, write=os.write, writer=writer, sleep=time.sleep):
        write(writer, b".")
        sleep(1)
last = Last()
inside = threading.Event()
stream = streampool.Stream()
threading.Thread(target=lambda: stream.synchronize(Slow()), daemon=True).start()
inside.wait()
""")


def test_objects_are_used_by_exit_handlers_and_finalizers():
    out = run_python(PREPARE + """
import atexit
atexit.register(lambda: print("handler", short(x).shape))
class Last:
    def __del__(self): print("finalizer", short(x).shape)
last = Last()
""")
    assert "handler (2, 3)" in out


def test_a_callback_that_submits_is_not_called_by_itself_at_the_end():
    out = run_python(PREPARE + """
def follow(future):
    future.exception()
    short.submit(x).add_done_callback(follow)
for _ in range(6): follow(short.submit(x))
time.sleep(0.02)
""", check=False)
    assert (out.returncode, out.stderr) == (0, "")


def test_an_exit_handler_of_before_the_import_may_wait_for_what_it_submits():
    """It runs after that of the package, which has ended the drainer."""
    out = run_python("""
import atexit, concurrent.futures
def handler():
    future = short.submit(x)
    print(len(concurrent.futures.wait([future], timeout=10).not_done), future.result().shape)
atexit.register(handler)
""" + PREPARE + "short.submit(x).result()")
    assert out == "0 (2, 3)\n"


@pytest.mark.parametrize("before", ["", "streampool.batch_inference(short, [x])", "atexit.register(early)"])
def test_the_first_submit_may_be_in_an_exit_handler(before):
    """The part of the package that completes futures is imported then, when no exit handler can be added."""
    out = run_python("""
import atexit, concurrent.futures
kept, called = [], []
def waits(future):
    return len(concurrent.futures.wait([future], timeout=10).not_done)
def early():
    kept.append(short.submit(x))
    waits(kept[0])
def late():
    future = short.submit(x)
    print(waits(future), [waits(of_before) for of_before in kept], future.result().shape)
    future = short.submit(x)
    future.add_done_callback(called.append)
    future.result()
    print(len(called))
atexit.register(late)
""" + PREPARE + "import streampool\n" + before)
    assert out == f"0 {[0] if 'early' in before else []} (2, 3)\n1\n"


def test_a_thread_that_is_no_daemon_finishes_its_work():
    out = run_python(PREPARE + """
def work():
    time.sleep(0.05)
    print(all((long(wide) == 1).all() for _ in range(5)), long.submit(wide).result().shape)
    done = threading.Event()
    long.submit(wide).add_done_callback(lambda _: done.set())
    print(done.wait(30))
threading.Thread(target=work).start()
""")
    assert out == "True (64, 256)\nTrue\n"


def test_the_package_is_imported_again_after_it_was_dropped():
    """As tools do that load changed code again."""
    out = run_python("""
import importlib, sys
import numpy as np
import onnx_writer
import streampool
x = np.ones((2, 4), np.float32)
model = streampool.load(onnx_writer.linear())
y = model.submit(x).result()
for _ in range(2):
    for name in [name for name in sys.modules if name.startswith("streampool")]:
        del sys.modules[name]
    again = importlib.import_module("streampool")
    assert again is not streampool and again.Tensor is streampool.Tensor
    another = again.load(onnx_writer.linear())
    for each in (model, another):
        assert each(x).tobytes() == each.submit(x).result().tobytes() == y.tobytes()
    try:
        another(x[:, :3])
    except again.Error as error:
        assert isinstance(error, ValueError) and error.status == again.Status.MISMATCH
importlib.reload(again)
importlib.reload(again._core)
print(again.load(onnx_writer.linear())(x).tobytes() == y.tobytes())
""")
    assert out == "True\n"


def test_a_subinterpreter_is_refused():
    out = run_python("""
import numpy as np, onnx_writer, streampool
model, x = streampool.load(onnx_writer.linear()), np.ones((2, 4), np.float32)
model.submit(x).result()
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
ident = interpreters.create()
try:
    print(interpreters.run_string(ident, '''
try:
    import streampool
    print("imported", flush=True)
except ImportError as error:
    print(error, flush=True)
'''))
except BaseException as error:
    print("refused", error)
streampool.load(onnx_writer.linear()).submit(x).result()
print("the main one goes on:", model(x).shape, (streampool.tensor(x) + 1).shape)
""")
    assert "subinterpreter" in out and "imported" not in out  # of the package, or of Python 3.12
    assert "the main one goes on: (2, " in out


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this interpreter has a lock")
def test_without_a_lock_daemon_threads_import_nothing():
    """Nor read sys.modules: one that waits for its mutex while Python 3.13 ends may hang the end."""
    out = run_python("""
import asyncio.events, builtins, sys, threading
import numpy as np, onnx_writer, streampool
from numpy._core._rational_tests import rational
del sys.modules["asyncio.events"]  # it is looked for until it is found
file = onnx_writer.linear()
model = streampool.load(file)
queue = streampool.BatchQueue(model)
x = np.ones((2, 4), np.float32)
names = []
original = builtins.__import__
builtins.__import__ = lambda name, *others: (names.append(name), original(name, *others))[1]
class Watched(dict):
    def get(self, key, *default):
        names.append(key)
        return super().get(key, *default)
sys.modules = Watched(sys.modules)
def use():
    model.submit(x).result(), queue.submit(x).result(), model(x)
    streampool.load(file)
    t = streampool.tensor(x, np.float64)
    (t + 1).numpy(), (t + x.astype(np.float64)).numpy()
    streampool.from_dlpack(x.copy()), streampool.Stream().synchronize()
    streampool.ops.Relu(t)
    model(x.astype(">f4")), streampool.tensor(x, np.dtype(">f8"))
    streampool.tensor(np.int8([1]), np.longlong)
    try:
        model(np.array([[rational(1)]]))
    except TypeError as error:
        done.append("an array of rational" in str(error))
    done.append(True)
done = []
thread = threading.Thread(target=use, daemon=True)
thread.start(), thread.join()
print(done, names)
""")
    assert out == "[True, True] []\n"
