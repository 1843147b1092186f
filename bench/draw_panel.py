# SPDX-License-Identifier: Apache-2.0
"""What the pictures of docs have in common: pairs of axes with lines, as SVG."""
import math
from dataclasses import dataclass

PANEL_WIDTH, WIDTH, HEIGHT = 350, 720, 330
LEFT, RIGHT, TOP, BOTTOM = 52, 20, 84, 276  # of the axes; x within a panel


@dataclass
class Line:
    """`points` are (x, rate), or one (None, rate): a level without labels, dashed."""
    label: str
    colour: str
    points: list


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
    """Three digits: 8.14k, 41.6k, 327k, 1.2M."""
    return f"{rate / 1000:.3g}k" if rate < 999500 else f"{rate / 1000000:.3g}M"


def marks(line, x_of, y_of, last, is_first_beside):
    """The points of a line, each with its rate."""
    out = []
    for i, (n, rate) in enumerate(line.points):
        x, y = x_of(n), y_of(rate)
        out.append(f'<circle cx="{x:g}" cy="{y:g}" r="3.5" fill="{line.colour}"/>')
        if i == 0 and is_first_beside:  # where the lines are close
            place = {"x": x + 12, "y": y - 4}
        else:
            place = {"x": x, "y": y - 8, "anchor": "end" if n == last else "middle"}
        out.append(text(words=thousands(rate), fill=line.colour, size=11, **place))
    return out


def polyline(line, x_of, y_of):
    way = " ".join(f"{x_of(n):g},{y_of(rate):g}" for n, rate in line.points)
    return f'<polyline points="{way}" fill="none" stroke="{line.colour}" stroke-width="2.5"/>'


def panel(left, title, lines, is_spaced=False, with_marks=None):
    """One pair of axes, both from 0 on; `is_spaced`: the numbers of threads at equal distances.
    Rates are written at the points of the lines `with_marks`, or of all."""
    most = max(rate for line in lines for _, rate in line.points)
    threads = [n for n, _ in lines[0].points]
    step = step_of(most)
    top_value = math.ceil(most / step) * step
    end = left + PANEL_WIDTH - RIGHT

    def x_of(n):
        share = (threads.index(n) + 0.3) / (len(threads) - 0.7) if is_spaced else n / threads[-1]
        return round(left + LEFT + share * (end - left - LEFT), 1)

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
    for line in lines:
        if line.points[0][0] is None:
            out.append(f'<path d="M{left + LEFT} {y_of(line.points[0][1]):g}H{end}" '
                       f'stroke="{line.colour}" stroke-width="1.5" stroke-dasharray="6 4"/>')
            continue
        out.append(polyline(line, x_of, y_of))
        if with_marks is None or line in with_marks:
            out += marks(line, x_of, y_of, threads[-1], not is_spaced)
    return out


def picture(title, subject, labels, panels):
    """`labels`: (label, colour, is dashed), in the order of the legend."""
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12" '
           f'fill="#1f2937">',
           f"<title>{title}: {subject}</title>",
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
           text(20, 26, title, size=15, weight="bold")]
    x = 20
    for label, colour, is_dashed in labels:
        stroke = 'stroke-width="1.5" stroke-dasharray="6 4"' if is_dashed else 'stroke-width="2.5"'
        out.append(f'<path d="M{x} 42h22" stroke="{colour}" {stroke}/>')
        out.append(text(x + 28, 46, label, fill=colour))
        x += max(130, 50 + 7 * len(label))
    for lines in panels:
        out += lines
    out.append("</svg>")
    return "\n".join(out)
