# SPDX-License-Identifier: Apache-2.0
"""Shared by the checks of the source text: finding files, blanking comments, self-tests.

A check is a function (root) -> list of findings. Its self-test copies the sources into a scratch
folder, plants one violation at a time, and requires that each adds a finding.
"""
import functools
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE_DIRS = ("include", "src", "cli", "tests", "bench", "verify", "examples", "python")

_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def c_files(root, *dirs):
    """The C files below the folders, sorted, as paths relative to root."""
    found = []
    for folder in dirs:
        found += (root / folder).rglob("*.[ch]")
    return sorted(path.relative_to(root) for path in found)


@functools.lru_cache(maxsize=None)  # self-tests read the same files repeatedly
def code_of(text, keep_strings=False):
    """The text with comments (and the contents of strings) blanked; line numbers do not change."""

    def blank(match):
        token = match.group(0)
        if token[0] in "\"'":
            return token if keep_strings else token[0] + " " * (len(token) - 2) + token[-1]
        return re.sub(r"[^\n]", " ", token)

    return _TOKEN.sub(blank, text)


def copy_sources(target):
    for folder in SOURCE_DIRS:
        if (ROOT / folder).is_dir():
            shutil.copytree(ROOT / folder, target / folder)


def self_test(check, plants):
    """plants: (what, relative path, text). The text is added to the end of the file, which may be
    new. Returns the failures of the self-test."""
    failures = []
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        copy_sources(root)
        before = set(check(root))
        for what, name, text in plants:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            original = path.read_text() if path.exists() else None
            path.write_text((original or "") + text)
            if not set(check(root)) - before:
                failures.append(f"did not notice: {what}")
            if original is None:
                path.unlink()
            else:
                path.write_text(original)
    return failures


def main(check, plants):
    """Runs the check, or with --self-test its self-test, and exits."""
    arguments = sys.argv[1:]
    if arguments == ["--self-test"]:
        findings = self_test(check, plants)
    elif not arguments:
        findings = check(ROOT)
    else:
        sys.exit(f"usage: {sys.argv[0]} [--self-test]")
    for finding in findings:
        print(finding)
    if not findings:
        print(f"{len(plants)} planted violations found" if arguments else "nothing found")
    sys.exit(1 if findings else 0)


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
