# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/python that use PyTorch, each in a process of its own."""
import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"
PROGRAMS = {
    "torch_threads.py": (["8", "100"], "100 requests from 8 threads: equal to lone calls, within 1e-5 of the module"),
}


def test_each_program_is_in_the_table():
    assert {path.name for path in FOLDER.glob("torch_*.py")} == set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_ends_with_the_right_results(name):
    arguments, expected = PROGRAMS[name]
    done = subprocess.run([sys.executable, "-B", FOLDER / name, *arguments], capture_output=True, text=True,
                          timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert expected in done.stdout
