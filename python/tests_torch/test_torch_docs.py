# SPDX-License-Identifier: Apache-2.0
"""The examples of README.md and docs/python.md that use PyTorch print what the pages say."""
import pytest

import streampool.torch
from page_examples import ROOT, run_examples


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_each_example_with_torch_prints_what_follows_it(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    run_examples(page, of_torch=True)


def test_each_public_name_has_a_docstring():
    for name in streampool.torch.__all__:
        assert getattr(streampool.torch, name).__doc__.strip(), name
