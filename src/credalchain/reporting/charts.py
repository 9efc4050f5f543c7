"""Line charts for the page as SVG: percent against percent, in the colours of the page.

They are written by hand rather than drawn by matplotlib, so that text follows the page's colours,
light or dark, and a chart on a phone is as readable as one on a wide screen.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from credalchain.text import visible

N_COLOURS = 7  # classes k0 to k6 in style.css
_DASHES = ("", "7 3", "2 3", "9 3 2 3")
_RAMP = ((59, 125, 216), (154, 95, 208), (208, 80, 143), (200, 100, 26))  # seen on light and dark
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 12, 8, 42  # margins


@dataclass(frozen=True)
class Point:
    """A point in percent, with what the mean varies by (NaN: not known) and words about it."""

    x: float
    y: float
    spread: float
    words: str


@dataclass(frozen=True)
class Look:
    """How a curve is drawn: a class for its colour, or the colour itself; dashes; a marker."""

    colour: str
    dashes: str = ""
    marker: int = 0

    @property
    def attributes(self) -> str:
        if self.colour.startswith("#"):
            return f'color="{self.colour}"'
        return f'class="{self.colour}"'


@dataclass(frozen=True)
class Curve:
    """Points in the order in which they are connected."""

    look: Look
    points: Sequence[Point]


def method_look(index: int) -> Look:
    """The look of a method: colours repeat after seven, with other dashes and markers."""
    n_repeats = index // N_COLOURS
    return Look(
        f"k{index % N_COLOURS}", _DASHES[(index + n_repeats) % 4], (index + n_repeats) % N_COLOURS
    )


def ramp_look(index: int, n: int) -> Look:
    """The look of a value by its index among n in order."""
    position = (len(_RAMP) - 1) * (index / (n - 1) if n > 1 else 0)
    left = min(int(position), len(_RAMP) - 2)
    parts = zip(_RAMP[left], _RAMP[left + 1], strict=True)
    mixed = [round(a + (position - left) * (b - a)) for a, b in parts]
    return Look("#" + "".join(f"{part:02x}" for part in mixed))


def key(look: Look) -> str:
    """A piece of a curve, for a legend."""
    line = f'<path d="M2 7H34" fill="none" stroke="currentColor" stroke-width="2"{_dashed(look)}/>'
    return (
        f'<svg class="key" viewBox="0 0 36 14" aria-hidden="true"><g {look.attributes}>{line}'
        f'<path d="{_marker(look.marker, 18, 7)}" fill="currentColor"/></g></svg>'
    )


def chart(
    curves: Sequence[Curve],
    label: str,
    x_words: str,
    y_words: str,
    size: tuple[int, int] = (380, 290),
    kind: str = "chart",
) -> str:
    """An SVG of curves with their bands.

    ``label`` says what it shows to those who cannot see it; ``kind`` is its class in style.css.
    """
    points = [point for curve in curves for point in curve.points]
    x_ticks, y_ticks = _ticks(p.x for p in points), _ticks(y for p in points for y in _ends(p))
    frame = _Frame(x_ticks, y_ticks, size)
    parts = [
        f'<svg class="{kind}" viewBox="0 0 {size[0]} {size[1]}" role="img" '
        f'aria-label="{escape(visible(label))}">',
        *_axes(frame, x_words, y_words),
        *(_band(frame, curve) for curve in curves),
        *(_line(frame, curve) for curve in curves),
        "</svg>",
    ]
    return "".join(parts)


class _Frame:
    """Where a point in percent is drawn."""

    def __init__(self, x: list[int], y: list[int], size: tuple[int, int]) -> None:
        self.x_ticks, self.y_ticks = x, y
        self.left, self.right = _LEFT, size[0] - _RIGHT
        self.top, self.bottom = _TOP, size[1] - _BOTTOM

    def x(self, value: float) -> float:
        low, high = self.x_ticks[0], self.x_ticks[-1]
        return round(self.left + (value - low) / (high - low) * (self.right - self.left), 1)

    def y(self, value: float) -> float:
        low, high = self.y_ticks[0], self.y_ticks[-1]
        return round(self.bottom - (value - low) / (high - low) * (self.bottom - self.top), 1)


def _ends(point: Point) -> tuple[float, float]:
    """The band at a point, within what a percentage can be."""
    spread = 0.0 if math.isnan(point.spread) else point.spread
    return max(point.y - spread, 0.0), min(point.y + spread, 100.0)


def _ticks(values: Iterable[float]) -> list[int]:
    """Round numbers around all values: a few, at equal distances."""
    numbers = list(values)
    low, high = min(numbers, default=0.0), max(numbers, default=100.0)
    for step in (2, 5, 10, 20, 25):
        start = int(low // step) * step
        stop = max(math.ceil(high / step - 1e-9) * step, start + step)
        if stop - start <= 6 * step:
            break
    return list(range(start, stop + 1, step))


def _axes(frame: _Frame, x_words: str, y_words: str) -> list[str]:
    parts = ['<g class="axes">']
    for tick in frame.y_ticks:
        y = frame.y(tick)
        parts.append(f'<path d="M{frame.left} {y}H{frame.right}"/>')
        parts.append(f'<text x="{frame.left - 6}" y="{y + 4}" text-anchor="end">{tick}</text>')
    for tick in frame.x_ticks:
        x = frame.x(tick)
        parts.append(f'<path d="M{x} {frame.top}V{frame.bottom}"/>')
        parts.append(f'<text x="{x}" y="{frame.bottom + 17}" text-anchor="middle">{tick}</text>')
    middle = (frame.left + frame.right) / 2, (frame.top + frame.bottom) / 2
    below = f'x="{middle[0]}" y="{frame.bottom + 36}"'
    beside = f'transform="translate(13 {middle[1]}) rotate(-90)"'
    for position, words in ((below, x_words), (beside, y_words)):
        parts.append(f'<text {position} text-anchor="middle">{escape(words)}</text>')
    return [*parts, "</g>"]


def _band(frame: _Frame, curve: Curve) -> str:
    known = [point for point in curve.points if not math.isnan(point.spread)]
    if len(known) < 2:
        return ""
    upper = [f"{frame.x(p.x)} {frame.y(_ends(p)[1])}" for p in known]
    lower = [f"{frame.x(p.x)} {frame.y(_ends(p)[0])}" for p in reversed(known)]
    shape = "M" + "L".join([*upper, *lower]) + "Z"
    return f'<g {curve.look.attributes}><path class="band" d="{shape}"/></g>'


def _line(frame: _Frame, curve: Curve) -> str:
    positions = [(frame.x(point.x), frame.y(point.y)) for point in curve.points]
    line = "M" + "L".join(f"{x} {y}" for x, y in positions)
    parts = [f"<g {curve.look.attributes}>"]
    if len(positions) > 1:
        parts.append(f'<path class="line" d="{line}"{_dashed(curve.look)}/>')
    for (x, y), point in zip(positions, curve.points, strict=True):
        title = escape(visible(point.words))
        mark = _marker(curve.look.marker, x, y)
        parts.append(f'<path class="mark" d="{mark}"><title>{title}</title></path>')
    return "".join([*parts, "</g>"])


def _dashed(look: Look) -> str:
    return f' stroke-dasharray="{look.dashes}"' if look.dashes else ""


def _marker(kind: int, x: float, y: float) -> str:
    """Circle, square, triangle, diamond, triangle upside down, bar upright, bar lying."""
    shapes = (
        "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z",
        "m-2.7-2.7h5.4v5.4h-5.4z",
        "m0-3.6l3.4 6h-6.8z",
        "m0-3.8l3.8 3.8l-3.8 3.8l-3.8-3.8z",
        "m0 3.6l3.4-6h-6.8z",
        "m-1.3-4h2.6v8h-2.6z",
        "m-4-1.3h8v2.6h-8z",
    )
    return f"M{x} {y}{shapes[kind % len(shapes)]}"
