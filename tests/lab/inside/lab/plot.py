"""A picture of a measurement: one group of bars for each thing measured, one bar for each variant, as SVG."""

import math
from html import escape

_COLOURS = ("#b0413e", "#d99a3d", "#7d9a5b", "#35618f")
_BAR, _GAP, _HEIGHT, _TOP, _LEFT = 26, 40, 220, 60, 60


def bars(title: str, variants: list[str], groups: dict[str, list[float]], unit: str) -> str:
    """The picture. Values are drawn on a logarithmic scale that begins at 0.1 `unit`; each bar carries its value."""
    group_width = _BAR * len(variants) + _GAP
    width = max(_LEFT + group_width * len(groups) + _GAP, 760)
    top_decade = max(1, math.ceil(math.log10(max(max(values) for values in groups.values()) or 1)))
    parts = [_text(_LEFT, 24, f"{title} ({unit}, logarithmic)", 15), *_legend(variants), *_decades(top_decade, width)]
    for number, (name, values) in enumerate(groups.items()):
        left = _LEFT + _GAP / 2 + number * group_width
        parts.append(_text(left, _TOP + _HEIGHT + 18, name, 12))
        parts += [_bar(left + i * _BAR, value, top_decade, _COLOURS[i % 4]) for i, value in enumerate(values)]
    height = _TOP + _HEIGHT + 40
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" font-family="sans-serif">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>"]) + "\n"


def _legend(variants: list[str]) -> list[str]:
    parts = []
    for number, name in enumerate(variants):
        left = _LEFT + number * 175
        parts.append(f'<rect x="{left}" y="34" width="11" height="11" fill="{_COLOURS[number % 4]}"/>')
        parts.append(_text(left + 16, 44, name, 12))
    return parts


def _decades(top_decade: int, width: float) -> list[str]:
    parts = []
    for decade in range(-1, top_decade + 1):
        y = _TOP + _HEIGHT - _length(10**decade, top_decade)
        parts.append(f'<line x1="{_LEFT}" x2="{width - 10:.0f}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(_text(8, y + 4, f"{10**decade:g}", 11))
    return parts


def _bar(left: float, value: float, top_decade: int, colour: str) -> str:
    length = _length(value, top_decade)
    y = _TOP + _HEIGHT - length
    box = f'<rect x="{left:.1f}" y="{y:.1f}" width="{_BAR - 4}" height="{length:.1f}" fill="{colour}"/>'
    return box + _text(left, y - 4, f"{value:.3g}", 10)


def _length(value: float, top_decade: int) -> float:
    return _HEIGHT * max(0.0, (math.log10(value) + 1) / (top_decade + 1)) if value > 0 else 0.0


def _text(x: float, y: float, text: str, size: int) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}">{escape(text)}</text>'
