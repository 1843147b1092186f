# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/python.md and README.md print what the pages say."""
import ast
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


def is_public(name):
    return not name.startswith("_")


def docstrings_of(body):
    """{name: docstring} of the functions and classes of a part of the stubs."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {part.name: ast.get_docstring(part) for part in body if isinstance(part, kinds)}


@pytest.fixture(scope="module")
def stub():
    """The stubs of the extension: what an editor and a type checker know of it."""
    return ast.parse((pathlib.Path(streampool.__file__).parent / "_core.pyi").read_text())


def of_the_extension(kind):
    values = {name: getattr(streampool, name) for name in streampool.__all__}
    return [name for name, value in values.items()
            if isinstance(value, kind) and getattr(value, "__module__", None) == "streampool._core"]


def test_each_public_name_has_a_docstring():
    """Of the extension the stubs tell: there a docstring begins with the signature."""
    for name in set(streampool.__all__) - set(of_the_extension(object)):
        value = getattr(streampool, name)
        if callable(value):
            assert value.__doc__ and value.__doc__.strip(), name
        for member, own in vars(value).items() if isinstance(value, type) else ():
            is_own = is_public(member) and (inspect.isfunction(own) or isinstance(own, property))
            assert not is_own or own.__doc__, f"{name}.{member}"


def test_the_stubs_have_what_the_extension_has(stub):
    functions, classes = of_the_extension(type(streampool.is_available)), of_the_extension(type)
    assert len(functions) > 12 and {"Device", "Event", "Stream", "Tensor"} <= set(classes)
    docstrings = docstrings_of(stub.body)
    for name in functions + classes:
        assert docstrings[name], name
    for name in classes:
        members = docstrings_of(next(part for part in stub.body if getattr(part, "name", "") == name).body)
        for member in filter(is_public, vars(getattr(streampool, name))):
            assert members.get(member), f"{name}.{member}"
    assert (pathlib.Path(streampool.__file__).parent / "py.typed").is_file()


def test_results_have_types():
    """An object of the stubs has no methods to a type checker."""
    stub = (pathlib.Path(streampool.__file__).parent / "_core.pyi").read_text()
    for name in ("Tensor", "Stream", "Event", "stream"):
        methods = stub.split(f"\nclass {name}:\n")[1].split("\nclass ")[0].split("\ndef ")[0]
        assert "def " in methods and "-> object" not in methods, name
    assert "def shape(self) -> tuple[int, ...]" in stub and "def numpy(self) -> Any" in stub
    for name in ("memory_stats", "info"):
        assert stub.split(f"def {name}(")[1].split("\n")[0].endswith("-> dict[str, int]:")
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
