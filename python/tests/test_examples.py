# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/python that need no PyTorch, each in a process of its own."""
import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"
PROGRAMS = {
    "server_threads.py": (["--self-test", "31"], "31 requests at once: equal to lone calls"),
    "asyncio_app.py": (["200"], "200 equal to lone calls"),
    "many_models.py": (["8"], "equal to lone calls"),
    "vad_streams.py": (["1"], "a stream alone: equal"),
}


def test_each_program_is_in_the_table():
    others = {path.name for path in FOLDER.glob("torch_*.py")}  # in python/tests_torch
    assert {path.name for path in FOLDER.glob("*.py")} - others == set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_ends_with_the_right_results(name):
    arguments, expected = PROGRAMS[name]
    done = subprocess.run([sys.executable, "-B", FOLDER / name, *arguments], capture_output=True, text=True,
                          timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert expected in done.stdout
