# SPDX-License-Identifier: Apache-2.0
"""A picture of a measurement as SVG: bars for what is a share, curves for what is distributed."""

import math
from collections.abc import Mapping
from html import escape

_COLOURS = ("#b0413e", "#d99a3d", "#8a6fa8", "#7d9a5b", "#35618f")
_LEFT, _WIDTH, _HEIGHT, _PANEL, _TOP = 60, 700, 220, 310, 90
_BAR = 30
_RAREST = 0.001  # of the wake-ups, at the bottom of the curves


def page(title: str, variants: list[str], panels: list[list[str]]) -> str:
    """One picture of `panels`, one below the other, with a legend of `variants`, whose colours they share."""
    height, width = _TOP + _PANEL * len(panels), _LEFT + _WIDTH + 30
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif">'
    parts = [head, '<rect width="100%" height="100%" fill="white"/>', _text(16, 24, title, 15), *_legend(variants)]
    for number, panel in enumerate(panels):
        parts += [f'<g transform="translate({_LEFT} {_TOP + number * _PANEL})">', *panel, "</g>"]
    return "\n".join([*parts, "</svg>"]) + "\n"


def bars(title: str, groups: Mapping[str, list[float]]) -> list[str]:
    """A panel: for each group one bar a variant, in percent; each bar carries its value."""
    parts = [_text(0, -10, title, 12)]
    parts += [_line_at(_HEIGHT * (1 - percent / 100), f"{percent} %") for percent in (0, 25, 50, 75, 100)]
    for number, (name, values) in enumerate(groups.items()):
        left = 20 + number * _WIDTH / len(groups)
        parts.append(_text(left, _HEIGHT + 18, name, 12))
        for place, value in enumerate(values):
            parts.append(_bar(left + place * _BAR, value, _COLOURS[place]))
    return parts


def later_than(title: str, variants: list[Mapping[int, int]], reach: int) -> list[str]:
    """A panel: for each variant, how many of its wake-ups were later than so many microseconds; both axes logarithmic.

    A variant maps the upper end of each bucket to its count. The picture ends at `reach`.
    """
    lowest = 2 ** math.floor(math.log2(min(min(each) for each in variants)) - 0.5)
    highest = max(end for each in variants for end in each if end <= 2 * reach)
    parts = [_text(0, -10, title, 12)]
    parts += [_line_at(_height_of(share), f"{100 * share:g} %") for share in (1, 0.1, 0.01, _RAREST)]
    power = lowest
    while power <= highest:
        x = _x_of(power, lowest, highest)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{_HEIGHT}" stroke="#eee"/>')
        parts.append(_text(x - 10, _HEIGHT + 18, f"{power} us" if power < 1000 else f"{power / 1000:.2g} ms", 10))
        power *= 4
    return parts + [_curve(each, lowest, highest, _COLOURS[place]) for place, each in enumerate(variants)]


def _curve(counts: Mapping[int, int], lowest: int, highest: int, colour: str) -> str:
    total = later = sum(counts.values())
    points = [(0.0, 0.0)]
    for end, count in sorted(counts.items()):
        points.append((_x_of(min(end, highest), lowest, highest), points[-1][1]))
        later -= count if end <= highest else 0
        points.append((points[-1][0], _height_of(later / total)))
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'


def _x_of(latency: int, lowest: int, highest: int) -> float:
    return _WIDTH * math.log(latency / lowest) / math.log(highest / lowest)


def _height_of(share: float) -> float:
    return _HEIGHT * math.log(max(share, _RAREST)) / math.log(_RAREST)


def _legend(variants: list[str]) -> list[str]:
    parts = []
    for number, name in enumerate(variants):
        left = 16 + number * 155
        parts.append(f'<rect x="{left}" y="42" width="11" height="11" fill="{_COLOURS[number]}"/>')
        parts.append(_text(left + 16, 52, name, 11))
    return parts


def _line_at(y: float, label: str) -> str:
    return f'<line x1="0" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>' + _text(-48, y + 4, label, 11)


def _bar(left: float, percent: float, colour: str) -> str:
    length = _HEIGHT * percent / 100
    box = f'<rect x="{left:.1f}" y="{_HEIGHT - length:.1f}" width="{_BAR - 4}" height="{length:.1f}" fill="{colour}"/>'
    return box + _text(left, _HEIGHT - length - 4, f"{percent:.3g}", 10)


def _text(x: float, y: float, text: str, size: int) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}">{escape(text)}</text>'
