#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints docs/threads.svg: calls per second against calling threads, PyTorch and streampool, from the
lines of bench/results/h200.json. `make docs` writes the file; scripts/check-figure compares the two."""
import json
import math
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results" / "h200.json"
PANELS = [("torch_mlp", "MLP 256-512-512-128, batch 1"),
          ("torch_linear", "Linear 256-128, batch 4")]
# Suffix of the case, label, colour.
LINES = [("run", "streampool", "#0b62a4"), ("pytorch", "PyTorch", "#c2410c")]
PANEL_WIDTH, WIDTH, HEIGHT = 350, 720, 330
LEFT, RIGHT, TOP, BOTTOM = 52, 20, 84, 276  # of the axes; x within a panel


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
                if line.get("case") == f"{model}_{suffix}":
                    points.setdefault((model, suffix), []).append(
                        (line["threads"], line["per_second"]))
    return points, machine, version


def step_of(most):
    """The distance of the lines of the grid: 1, 2 or 5 times a power of ten, at most six of them."""
    power = 10 ** math.floor(math.log10(most / 6))
    return next(power * n for n in (1, 2, 5, 10) if power * n * 6 >= most)


def text(x, y, words, **attributes):
    """Attributes that are not given are those of the whole picture: 12 px, dark grey, from x on."""
    names = {"anchor": "text-anchor", "size": "font-size", "weight": "font-weight"}
    given = "".join(f' {names.get(key, key)}="{value}"' for key, value in attributes.items())
    return f'<text x="{x:g}" y="{y:g}"{given}>{words}</text>'


def thousands(rate):
    """Three digits: 8.14k, 41.6k, 327k."""
    return f"{rate / 1000:.3g}k"


def panel(left, title, lines):
    """One pair of axes: both start at 0, x is the number of threads."""
    most = max(rate for points in lines.values() for _, rate in points)
    threads = [n for n, _ in next(iter(lines.values()))]
    step = step_of(most)
    top_value = math.ceil(most / step) * step
    end = left + PANEL_WIDTH - RIGHT

    def x_of(n):
        return round(left + LEFT + n / threads[-1] * (end - left - LEFT), 1)

    def y_of(rate):
        return round(BOTTOM - rate / top_value * (BOTTOM - TOP), 1)

    out = ["", text(left + LEFT, TOP - 16, title, weight="bold")]
    for i in range(int(top_value / step) + 1):
        y = y_of(i * step)
        out.append(f'<path d="M{left + LEFT} {y:g}H{end}" stroke="#d1d5db"/>')
        out.append(text(left + LEFT - 6, y + 4, thousands(i * step) if i else "0",
                        anchor="end"))
    out += [text(x_of(n), BOTTOM + 18, n, anchor="middle") for n in threads]
    out.append(text((left + LEFT + end) / 2, BOTTOM + 36, "threads", anchor="middle"))
    for suffix, _, colour in LINES:
        points = lines[suffix]
        way = " ".join(f"{x_of(n):g},{y_of(rate):g}" for n, rate in points)
        out.append(f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        for n, rate in points:
            out.append(f'<circle cx="{x_of(n):g}" cy="{y_of(rate):g}" r="3.5" fill="{colour}"/>')
            if n == threads[0]:  # beside the point: the two lines are close there
                place = {"x": x_of(n) + 12, "y": y_of(rate) - 4}
            else:
                place = {"x": x_of(n), "y": y_of(rate) - 8,
                         "anchor": "end" if n == threads[-1] else "middle"}
            out.append(text(words=thousands(rate), fill=colour, size=11, **place))
    return out


def draw():
    points, machine, version = read_results()
    title = f"Calls per second on one {machine['gpu']}, by calling threads"
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12" '
           f'fill="#1f2937">',
           f"<title>{title}: streampool and PyTorch</title>",
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
           text(20, 26, title, size=15, weight="bold")]
    x = 20
    for suffix, label, colour in LINES:
        label += f" {version.split('+')[0]}" if suffix == "pytorch" else ""
        out.append(f'<path d="M{x} 42h22" stroke="{colour}" stroke-width="2.5"/>')
        out.append(text(x + 28, 46, label, fill=colour))
        x += 130
    for i, (model, name) in enumerate(PANELS):
        lines = {suffix: points[model, suffix] for suffix, _, _ in LINES}
        out += panel(i * (WIDTH - PANEL_WIDTH), name, lines)
    out.append("</svg>")
    return "\n".join(out)


if __name__ == "__main__":
    print(draw())
