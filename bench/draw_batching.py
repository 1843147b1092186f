#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints docs/batching.svg: runs per second of threads with one row each, against one caller with
batches, from the lines of bench/results/batching.json (bench_batching --json). `make docs` writes the
file; scripts/check-figure compares the two. With --table it prints the table of README.md."""
import json
import sys
from pathlib import Path

from draw_panel import PANEL_WIDTH, WIDTH, Line, panel, picture, thousands

RESULTS = Path(__file__).resolve().parent / "results" / "batching.json"
PANELS = ["torch_mlp", "torch_lstm"]
# Value of "batching", label, colour.
LINES = [("combine", "streampool", "#0b62a4"), ("off", "not merged", "#6b9fc9"),
         ("onnxruntime", "ONNX Runtime", "#c2410c")]
BATCH = ("one caller, batches of 64", "#374151")


def read_results():
    """The machine's line, and {model: [lines]}."""
    machine, models = {}, {}
    for text in RESULTS.read_text().splitlines():
        line = json.loads(text)
        if "cores" in line:
            machine = line
        if "model" in line:
            models.setdefault(line["model"], []).append(line)
    return machine, models


def of_case(lines, case, **values):
    return [line for line in lines
            if line["case"] == case and all(line[key] == value for key, value in values.items())]


def batch_rate(machine, lines):
    """Rows per second of one caller whose batches of 64 rows keep all cores busy."""
    return machine["cores"] * 1e9 / of_case(lines, "row", rows=64)[0]["b_ns"]


def draw():
    machine, models = read_results()
    panels = []
    for i, model in enumerate(PANELS):
        lines = [Line(label, colour, [(line["callers"], line["per_second"])
                                      for line in of_case(models[model], "callers", batching=mode)])
                 for mode, label, colour in LINES]
        lines.append(Line(*BATCH, [(None, batch_rate(machine, models[model]))]))
        panels.append(panel(i * (WIDTH - PANEL_WIDTH), model, lines, is_spaced=True,
                            with_marks=lines[:1]))
    labels = [(label, colour, False) for _, label, colour in LINES] + [(*BATCH, True)]
    return picture(f"Rows per second on {machine['cores']} cores, by calling threads",
                   "one row each, and batches", labels, panels)


def table():
    machine, models = read_results()
    print("| model | 1 / 2 / 8 / 31 / 128 threads | ONNX Runtime | batches of 64 | runs in a batch, 31 threads "
          "| p99.9, 31 threads: streampool / ONNX Runtime |")
    print("|---|---|---|---|---|---|")
    for model, lines in models.items():
        def rates(mode):
            return " / ".join(thousands(line["per_second"]) for count in (1, 2, 8, 31, 128)
                              for line in of_case(lines, "callers", batching=mode, callers=count))
        ours = of_case(lines, "callers", batching="combine", callers=31)[0]
        rows = of_case(lines, "row", rows=64)
        batch = thousands(batch_rate(machine, lines)) if rows else "not separable"
        theirs = of_case(lines, "callers", batching="onnxruntime", callers=31)
        tail = f" / {theirs[0]['p999_ns'] / 1e6:.3g}" if theirs else ""
        print(f"| {model} | {rates('combine')} | {rates('onnxruntime')} | {batch} | {ours['rows']:.1f} | "
              f"{ours['p999_ns'] / 1e6:.3g}{tail} ms |")


if __name__ == "__main__":
    if sys.argv[1:] == ["--table"]:
        table()
    else:
        print(draw())
