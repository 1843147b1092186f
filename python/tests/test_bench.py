# SPDX-License-Identifier: Apache-2.0
"""bench/bench_python.py runs, and its table and its JSON agree."""
import importlib
import json
import pathlib
import subprocess
import sys

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


def test_the_spin_takes_as_long_as_it_is_told(monkeypatch):
    monkeypatch.syspath_prepend(PROGRAM.parent)
    spin = importlib.import_module("spin")
    function = spin.load()
    for ns in (5_000, 50_000):  # with the interpreter's lock, and without it
        assert 0.8 * ns < spin.nanoseconds_of(lambda: function(ns), 0.1) < 2 * ns
    side = spin.side_of(30_000, function, 0.05)
    assert 20_000 < spin.nanoseconds_of(side, 0.1) < 60_000
    assert spin.side_of(spin.LONGEST_NS, function, 0.01) is None
