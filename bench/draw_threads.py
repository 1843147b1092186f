#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints docs/threads.svg: calls per second against calling threads, PyTorch and streampool, from the
lines of bench/results/h200.json. `make docs` writes the file; scripts/check-figure compares the two."""
import json
from pathlib import Path

from draw_panel import PANEL_WIDTH, WIDTH, Line, panel, picture

RESULTS = Path(__file__).resolve().parent / "results" / "h200.json"
PANELS = [("torch_mlp", "MLP 256-512-512-128, one row"),
          ("torch_linear", "Linear 256-128, one row")]
# Suffix of the case, label, colour.
LINES = [("host", "streampool", "#0b62a4"), ("pytorch_eager", "PyTorch", "#c2410c")]


def read_results():
    """{(model, line): [(threads, calls per second)]}, the machine's line, PyTorch's version."""
    points, machine, version = {}, {}, ""
    for text in RESULTS.read_text().splitlines():
        line = json.loads(text)
        if "gpu" in line or "cores" in line:
            machine.update(line)
        version = line.get("version", version)
        for model, _ in PANELS:
            for suffix, _, _ in LINES:
                if line.get("case") == f"{model}_{suffix}" and line["rows"] == 1:
                    points.setdefault((model, suffix), []).append(
                        (line["threads"], line["samples_per_second"]))
    return points, machine, version


def draw():
    points, machine, version = read_results()
    labels = [(label + (f" {version.split('+')[0]}" if suffix == "pytorch_eager" else ""), colour, False)
              for suffix, label, colour in LINES]
    panels = []
    for i, (model, name) in enumerate(PANELS):
        lines = [Line(label, colour, points[model, suffix]) for suffix, label, colour in LINES]
        panels.append(panel(i * (WIDTH - PANEL_WIDTH), name, lines))
    return picture(f"Calls per second on one {machine['gpu']}, by calling threads",
                   "streampool and PyTorch", labels, panels)


if __name__ == "__main__":
    print(draw())
