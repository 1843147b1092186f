# SPDX-License-Identifier: Apache-2.0
"""bench/bench_python.py runs, and its table and its JSON agree."""
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
                          capture_output=True, text=True, timeout=120, check=True)
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
