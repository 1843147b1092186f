# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/python.md and README.md print what the pages say."""
import inspect
import os
import pathlib
import subprocess
import sys
import typing

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


def test_results_have_types():
    """An object of the stubs has no methods to a type checker."""
    stub = (pathlib.Path(streampool.__file__).parent / "_core.pyi").read_text()
    for name in ("Tensor", "Stream", "Event", "stream"):
        methods = stub.split(f"\nclass {name}:\n")[1].split("\nclass ")[0].split("\ndef ")[0]
        assert "def " in methods and "-> object" not in methods, name
    assert "def shape(self) -> tuple[int, ...]" in stub and "def numpy(self) -> Any" in stub
    for function in (streampool.Model.__call__, streampool.Model.submit, streampool.Model.run, streampool.load,
                     streampool.Future.result, streampool.from_dlpack, streampool.tensor,
                     streampool.batch_inference, streampool.BatchQueue.submit):
        hints = typing.get_type_hints(function)
        assert hints["return"] is not type(None), function
        parameters = set(inspect.signature(function).parameters) - {"self"}
        assert parameters <= set(hints), function


@pytest.mark.parametrize("arguments, expected", [(["--version"], "streampool 0.1.0"),
                                                 (["inspect", "examples/blazeface/model.onnx"], "input")])
def test_the_program_runs_as_a_module(arguments, expected):
    done = subprocess.run([sys.executable, "-m", "streampool", *arguments], cwd=ROOT, text=True,
                          capture_output=True, check=True, env=os.environ)
    assert expected in done.stdout
