#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the table of README.md of calls from Python, from the lines of bench/results/python.json
(bench_python.py --json) or of the file that is named. scripts/check-figure compares the two."""
import json
import sys
from pathlib import Path

from draw_panel import thousands

RESULTS = Path(__file__).resolve().parent / "results" / "python.json"
# Heading, how a peer's sides begin, kind of calls. The last is there if the results have it.
COLUMNS = [("streampool", "streampool", "looped"), ("ONNX Runtime", "onnxruntime", "looped"),
           ("PyTorch", "torch", "looped"), ("tasks of an executor: streampool", "streampool", "tasked"),
           ("ONNX Runtime", "onnxruntime", "tasked"), ("a C function that spins", "spin", "looped")]


def figure(rate):
    """Three digits: 26, 8.14k, 327k, 16.3M."""
    return f"{rate:.3g}" if rate < 999.5 else thousands(rate)


def cell(cases, side, kind):
    """The better of a peer's sides, for each number of workers."""
    rates = [max((pair[kind] for name, pair in case["calls_per_second"].items() if name.startswith(side)),
                 default=None) for case in cases]
    return " / ".join(map(figure, rates)) if None not in rates else "-"


def rows(lines):
    cases = [line for line in lines if "model" in line]
    has_spin = any("spin" in case["calls_per_second"] for case in cases)
    columns = COLUMNS if has_spin else COLUMNS[:-1]
    yield ["model", *(heading for heading, _, _ in columns)]
    yield ["---"] * (len(columns) + 1)
    for model in dict.fromkeys(case["model"] for case in cases):
        own = [case for case in cases if case["model"] == model]
        sides = [("empty" if model == "empty" and side == "streampool" else side, kind)
                 for _, side, kind in columns]
        name = "an empty function" if model == "empty" else model
        yield [name, *(cell(own, side, kind) for side, kind in sides)]


def main():
    path = Path(sys.argv[1]) if sys.argv[1:] else RESULTS
    for row in rows(json.loads(path.read_text())):
        print("|---" * len(row) + "|" if row[0] == "---" else f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
