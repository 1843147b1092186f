# SPDX-License-Identifier: Apache-2.0
"""The bridge in processes of its own: its build, fork, exit, operator tests."""
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

import streampool.torch.device
from streampool.torch.device import _build

HERE = pathlib.Path(__file__).parent


def _run(code, seconds=300, **environment):
    return subprocess.run([sys.executable, "-B", "-c", textwrap.dedent(code)], text=True, timeout=seconds,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**os.environ, **environment})


def _require(done, output):
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == output.split()


# A compiler that only counts its calls, and gives what the process of the tests has loaded.
_COUNTING = """\
#!{python}
import os, shutil, sys, time
with open({calls!r}, "a") as calls:
    calls.write("called\\n")
time.sleep(0.5)
shutil.copy({library!r}, sys.argv[sys.argv.index("-o") + 1])
"""


def _counting_compiler(folder, calls):
    compiler = folder / "compiler"
    compiler.write_text(_COUNTING.format(python=sys.executable, calls=str(calls),
                                         library=_build.library()))
    compiler.chmod(0o755)
    return str(compiler)


def test_of_processes_and_threads_that_start_at_once_one_compiles(tmp_path):
    calls = tmp_path / "calls"
    compiler = _counting_compiler(tmp_path, calls)
    code = textwrap.dedent("""
        import threading, torch
        def use():
            import streampool.torch.device
            assert torch.ones(2).to("sp").sum().item() == 2
        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        import streampool.torch.device
        print("used")
        """)
    environment = {**os.environ, "CXX": compiler, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    processes = [subprocess.Popen([sys.executable, "-B", "-c", code], text=True, stdout=subprocess.PIPE,
                                  env=environment) for _ in range(3)]
    assert [process.communicate(timeout=300)[0] for process in processes] == ["used\n"] * 3
    assert calls.read_text().count("called") == 1
    made = sorted(path.suffix for path in (tmp_path / "cache/streampool").iterdir())
    assert made == [".lock", ".so"]


_IMPORT = """
    import streampool.torch
    try:
        import streampool.torch.device
    except streampool.torch.BuildError as error:
        print(error)
    """


@pytest.mark.parametrize("compiler, texts", [
    ("no-such-compiler", ["no-such-compiler", "C++ compiler", "CXX"]),
    ("false", ["The compiler failed", "g++ 11"]),
    ("g++ -include no_such_header.h", ["The compiler failed", "no_such_header.h"])])
def test_a_build_that_fails_says_what_is_missing(tmp_path, compiler, texts):
    done = _run(_IMPORT, CXX=compiler, XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert all(text in done.stdout for text in texts), done.stdout
    assert not list(tmp_path.rglob("*.so"))


def test_a_cache_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "streampool").write_text("a file where the folder should be")
    done = _run(_IMPORT, XDG_CACHE_HOME=str(tmp_path))
    assert str(tmp_path / "streampool") in done.stdout and "XDG_CACHE_HOME" in done.stdout, done.stderr


def test_missing_headers_of_pytorch_are_named(monkeypatch):
    monkeypatch.setattr(pathlib.Path, "is_file", lambda self: False)
    with pytest.raises(streampool.torch.BuildError, match="libtorch-dev"):
        _build._torch_includes()


def test_a_device_of_another_extension_is_not_replaced():
    _require(_run("""
        import torch, streampool
        other = torch.library.Library("aten", "IMPL", "PrivateUse1")
        other.impl("empty.memory_format", lambda *args, **kwargs: torch.empty(0))
        try:
            import streampool.torch.device
        except streampool.Error as error:
            print(error.status.name, "another one has taken it" in str(error))
        """), "EXHAUSTED True")


def test_a_forked_child_gets_errors_and_can_end():
    _require(_run("""
        import os, sys, torch
        import streampool.torch.device
        x = torch.ones(64, 64).to("sp")
        y = x @ x
        child = os.fork()
        if child == 0:
            for call in (lambda: x + 1, lambda: x.cpu(), lambda: torch.ones(2).to("sp"), lambda: x.exp()):
                try:
                    call()
                    os._exit(1)
                except RuntimeError as error:
                    if "fork" not in str(error):
                        os._exit(2)
            assert streampool.torch.device._is_in_bad_fork()
            del x, y
            sys.exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), (y + 1).sum().item())
        """), "7 266240.0")


@pytest.mark.parametrize("ending", ["", "sys.exit(0)", "streampool.synchronize()"])
def test_a_process_ends_with_queued_work_and_other_threads(ending):
    _require(_run(f"""
        import sys, threading, torch
        import streampool.torch.device
        model = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).eval().to("sp")
        x = torch.randn(2, 8, 64).to("sp")
        done = []
        def work():
            with torch.no_grad():
                for _ in range(30):
                    done.append(model(x))
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads: thread.start()
        kept = [x @ x.transpose(1, 2) for _ in range(50)]
        print("end")
        {ending}
        """), "end")


def test_more_threads_than_streams_and_short_threads():
    _require(_run("""
        import threading, torch
        import streampool.torch.device
        x = torch.randn(16, 16)
        d = x.to("sp")
        want = (d @ d).exp().cpu()
        wrong = []
        def work(count):
            for _ in range(count):
                if not (d @ d).exp().cpu().equal(want): wrong.append(1)
        def run(number, count):
            threads = [threading.Thread(target=work, args=(count,)) for _ in range(number)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
        run(64, 20)
        for _ in range(50): run(4, 1)
        print(len(wrong))
        """), "0")


def test_pytorchs_own_operator_tests_pass():
    done = subprocess.run([sys.executable, "-B", HERE / "operators.py"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600)
    assert done.returncode == 0, done.stdout[-4000:]
