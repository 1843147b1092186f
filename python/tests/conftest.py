# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import onnx_writer
import streampool

DATA = pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "data"


@pytest.fixture(scope="session")
def linear():
    return streampool.load(onnx_writer.linear())


@pytest.fixture(scope="session")
def slow():
    return streampool.load(onnx_writer.long_running())


@pytest.fixture(scope="session")
def two():
    return streampool.load(onnx_writer.two())


VALUE = np.full((2, 256), 3, np.float32)


class Held:
    """A model whose only slot is taken by a run of some tens of seconds until open() cancels it: runs of VALUE
    that are submitted before are in flight until then. Their results are VALUE."""

    def __init__(self):
        self.model = streampool.load(onnx_writer.long_running(256, 2000), max_concurrent_runs=1)
        self._first = self.model.submit(np.ones((32768, 256), np.float32))

    def submit(self):
        return self.model.submit(VALUE)

    def open(self):
        assert not self._first.done()
        self._first.cancel()


@pytest.fixture
def held():
    held = Held()
    yield held
    held._first.cancel()


@pytest.fixture(scope="session")
def x():
    return np.cos(np.arange(8, dtype=np.float32)).reshape(2, 4)


@pytest.fixture(scope="session")
def shared_model():
    """Loads a model of the shared data, or skips."""
    def load(name, **options):
        path = DATA / "models" / name / "model.onnx"
        if not path.is_file():
            pytest.skip(f"no {path.name} of {name}: the shared data is not beside the checkout")
        return streampool.load(path, **options)
    return load


def count_of(full, quick):
    """As test_count() of the C tests: `full` where STREAMPOOL_TEST_SCALE asks for it."""
    scale = float(os.environ.get("STREAMPOOL_TEST_SCALE", "1"))
    return max(1, min(full, int(quick * scale)))


def run_python(code, timeout=300, check=True, **environment):
    """Runs a program in a process of its own; its standard output."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          timeout=timeout, cwd=pathlib.Path(__file__).parent,
                          env={**os.environ, **environment}, check=False)
    if check:
        assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-2000:]}"
        return done.stdout
    return done
