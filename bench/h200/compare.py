#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The models of bench_tensors beside PyTorch's of bench_torch.py, as tables of Markdown.
   bench/h200/compare.py [FILE], of bench/h200/run; bench/results/h200.json unless one is given"""

import json
import pathlib
import sys

DEFAULT = pathlib.Path(__file__).resolve().parents[1] / "results" / "h200.json"


def read(path):
    """samples/s by (network, way, type, rows, threads)."""
    rates = {}
    for line in path.read_text().splitlines():
        case = json.loads(line) if line.startswith("{") else {}
        if "samples_per_second" not in case:
            continue
        for way in ("pytorch_eager", "pytorch_graph", "tensors", "host"):
            if case["case"].endswith("_" + way):
                name = case["case"].removesuffix("_" + way)
                key = (name, way, case["type"], case["rows"], case["threads"])
                rates[key] = case["samples_per_second"]
    return rates


def short(rate):
    if rate is None:
        return "-"
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if rate >= size:
            return f"{rate / size:.3g}{unit}"
    return f"{rate:.0f}"


def ratio(ours, theirs):
    return f"{ours / theirs:.2f}" if ours and theirs else "-"


def rows_table(rates, names):
    yield "| model, one row | PyTorch 1 / 8 / 31 | its graph, 1 | ours on tensors | ours from the host | over PyTorch | over its graph |"
    yield "|---|---|---|---|---|---|---|"
    for name in names:
        points = (1, 8, 31)
        eager, tensors, host = (
            [rates.get((name, way, "f32", 1, threads)) for threads in points]
            for way in ("pytorch_eager", "tensors", "host")
        )
        graph = rates.get((name, "pytorch_graph", "f32", 1, 1))
        shown = [" / ".join(map(short, column)) for column in (eager, tensors, host)]
        over = " / ".join(ratio(a, b) for a, b in zip(tensors, eager))
        yield (
            f"| {name} | {shown[0]} | {short(graph)} | {shown[1]} | {shown[2]} | {over} "
            f"| {ratio(tensors[0], graph)} |"
        )


def batches_table(rates, names):
    yield "| model, samples/s in batches of 64 / 256 | PyTorch f32 | ours | ratio | PyTorch bf16 | ours | ratio |"
    yield "|---|---|---|---|---|---|---|"
    for name in names:
        cells = []
        for type_name in ("f32", "bf16"):
            theirs, ours = (
                [rates.get((name, way, type_name, rows, 1)) for rows in (64, 256)]
                for way in ("pytorch_eager", "tensors")
            )
            cells += [" / ".join(map(short, theirs)), " / ".join(map(short, ours))]
            cells.append(" / ".join(ratio(a, b) for a, b in zip(ours, theirs)))
        yield f"| {name} | " + " | ".join(cells) + " |"


def main():
    rates = read(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT)
    names = list(dict.fromkeys(key[0] for key in rates))
    print("\n".join([*rows_table(rates, names), "", *batches_table(rates, names)]))


if __name__ == "__main__":
    main()
