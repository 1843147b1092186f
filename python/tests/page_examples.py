# SPDX-License-Identifier: Apache-2.0
"""The examples of a page: Python code, and what it prints."""
import contextlib
import io
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
_EXAMPLE = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
_TORCH = re.compile(r"\btorch\b")


def run_examples(page, of_torch):
    """Runs a page's examples in order, those that use PyTorch or all others, and compares."""
    names = {}
    examples = [example for example in _EXAMPLE.findall((ROOT / page).read_text())
                if bool(_TORCH.search(example[0])) == of_torch]
    assert examples
    for code, expected in examples:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, page, "exec"), names)  # noqa: S102
        assert out.getvalue() == expected
