# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/python.md and README.md print what the pages say."""
import os
import pathlib
import subprocess
import sys

import pytest

import streampool
from page_examples import ROOT, run_examples


@pytest.mark.parametrize("page", ["docs/python.md", "README.md"])
def test_each_example_prints_what_follows_it(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    run_examples(page, of_torch=False)


def test_each_public_name_has_a_docstring():
    for name in streampool.__all__:
        value = getattr(streampool, name)
        if callable(value):
            assert value.__doc__ and value.__doc__.strip(), name


def test_the_stubs_have_what_the_extension_has():
    stub = (pathlib.Path(streampool.__file__).parent / "_core.pyi").read_text()
    for name in ("class Tensor", "class Stream", "class Event", "def memory_stats", "def synchronize"):
        assert name in stub
    assert (pathlib.Path(streampool.__file__).parent / "py.typed").is_file()


@pytest.mark.parametrize("arguments, expected", [(["--version"], "streampool 0.1.0"),
                                                 (["inspect", "examples/blazeface/model.onnx"], "input")])
def test_the_program_runs_as_a_module(arguments, expected):
    done = subprocess.run([sys.executable, "-m", "streampool", *arguments], cwd=ROOT, text=True,
                          capture_output=True, check=True, env=os.environ)
    assert expected in done.stdout
