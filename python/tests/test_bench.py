# SPDX-License-Identifier: Apache-2.0
"""bench/bench_python.py runs, and its table and its JSON agree."""
import importlib
import json
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from conftest import DATA

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "bench" / "bench_python.py"


def test_a_short_run_prints_and_writes_each_case(tmp_path):
    if not (DATA / "models" / "torch_linear").is_dir():
        pytest.skip("the shared data is not beside the checkout")
    path = tmp_path / "cases.json"
    done = subprocess.run([sys.executable, "-B", PROGRAM, "--models", "torch_linear", "--workers", "1,2",
                           "--seconds", "0.02", "--turns", "1", "--json", path],
                          capture_output=True, text=True, timeout=600, check=True)
    cases = json.loads(path.read_text())
    footprint = cases.pop()
    assert f"import: {footprint['import_ms']} ms" in done.stdout
    assert f"memory at rest: {footprint['rest_mb']} MB" in done.stdout
    assert 0 < footprint["import_ms"] and 0 < footprint["rest_mb"] <= 8
    assert [(case["model"], case["workers"]) for case in cases] == [
        ("torch_linear", 1), ("torch_linear", 2), ("empty", 1), ("empty", 2)]
    for case in cases:
        side = "empty" if case["model"] == "empty" else "streampool"
        looped = case["calls_per_second"][side]["looped"]
        assert looped > 0 and f"{looped:,}" in done.stdout
        if case["model"] != "empty":
            spin = case["calls_per_second"]["spin"]
            assert all(rate > 0 and f"{rate:,}" in done.stdout for rate in spin.values())
    table = subprocess.run([sys.executable, "-B", PROGRAM.parent / "draw_python.py", path], capture_output=True,
                           text=True, check=True).stdout.splitlines()
    assert table[0].endswith("| a C function that spins |") and len({row.count("|") for row in table}) == 1
    assert table[2].startswith("| torch_linear |") and table[3].startswith("| an empty function |")


def run(*arguments):
    return subprocess.run([sys.executable, "-B", PROGRAM, "--models", "torch_linear", "--turns", "1", *arguments],
                          capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("name, value, said", [
    ("--workers", "0", "a number from 1 on"),
    ("--workers", "1,x", "a number from 1 on"),
    ("--turns", "0", "a number from 1 on"),
    ("--seconds", "0", "above 0"),
    ("--seconds", "-1", "above 0"),
    ("--seconds", "nan", "above 0"),
    ("--models", "torch_linear,absent", "absent/model.onnx"),
    ("--data", "/absent", "/absent/models/torch_linear/model.onnx"),
    ("--json", "/absent/cases.json", "/absent"),
])
def test_a_bad_argument_is_refused_before_anything_is_measured(name, value, said):
    done = run(name, value)
    assert done.returncode == 2 and done.stdout == "", done.stderr
    assert said in done.stderr and "Traceback" not in done.stderr


def heed_interrupts():
    """Of a new process: a shell's jobs in the background ignore interrupts, and so do all that they start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interrupt_ends_the_program():
    """The workers of a window loop until it is over."""
    if not (DATA / "models" / "torch_linear").is_dir():
        pytest.skip("the shared data is not beside the checkout")
    with subprocess.Popen([sys.executable, "-B", PROGRAM, "--models", "torch_linear", "--workers", "2", "--seconds",
                           "600"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          preexec_fn=heed_interrupts) as program:
        try:
            tasks = pathlib.Path(f"/proc/{program.pid}/task")
            assert program.stdout.readline() != ""  # the head of the table
            before = len(list(tasks.iterdir()))
            while len(list(tasks.iterdir())) < before + 2:  # no worker yet
                time.sleep(0.01)
            time.sleep(0.5)
            program.send_signal(signal.SIGINT)
            assert program.wait(timeout=60) != 0
        finally:
            program.kill()


def test_a_failure_of_a_worker_is_the_windows(monkeypatch):
    monkeypatch.syspath_prepend(PROGRAM.parent)
    bench = importlib.import_module("bench_python")
    calls = []

    def fail_later():
        calls.append(0)
        if len(calls) > 20:
            raise ArithmeticError("the call has failed")

    def fail():
        raise ArithmeticError("the call has failed")

    for call in (fail_later, fail):
        with pytest.raises(ArithmeticError):
            bench.looped(call, 2, 0.01)


def test_there_is_no_spin_without_cmake(monkeypatch):
    monkeypatch.syspath_prepend(PROGRAM.parent)
    monkeypatch.setenv("PATH", "/absent")
    assert importlib.import_module("spin").load() is None


def test_the_spin_takes_as_long_as_it_is_told(monkeypatch):
    monkeypatch.syspath_prepend(PROGRAM.parent)
    spin = importlib.import_module("spin")
    function = spin.load()
    for ns in (5_000, 50_000):  # with the interpreter's lock, and without it
        assert 0.8 * ns < spin.nanoseconds_of(lambda: function(ns), 0.1) < 2 * ns
    side = spin.side_of(30_000, function, 0.05)
    assert 20_000 < spin.nanoseconds_of(side, 0.1) < 60_000
    assert spin.side_of(spin.LONGEST_NS, function, 0.01) is None
