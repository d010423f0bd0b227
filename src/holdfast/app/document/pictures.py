"""Small pictures, as SVG without scripts: rows over time, what broke when, the life of a dependency.

Each has a name in words, and is told in words beside it as well: nobody needs to see it, or its colours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import sqrt
from typing import Any

from holdfast.app.document.writing import Json
from holdfast.app.report.html import text_html

SPARK = (132, 24)  # width and height
FOOT = 5  # of a sparkline, for marks
LINE = (640, 22)
TIMELINE = (640, 70)
UP = 42  # of a timeline: the room of what broke
HELD = {True: "held", False: "not", None: "unknown"}


def _svg(css: str, size: tuple[int, int], words: str, parts: Iterable[str]) -> str:
    width, height = size
    return (
        f'<svg class="{css}" role="img" aria-label="{text_html(words)}" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">{"".join(parts)}</svg>'
    )


def _bar(css: str, x: float, y: float, width: float, height: float, words: str = "") -> str:
    title = f"<title>{text_html(words)}</title>" if words else ""
    box = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="{css}" {box}>{title}</rect>'


def sparkline(name: str, spark: Json) -> str:
    """The rows of a table over the versions of the workspace, with a mark where something broke."""
    width, height = SPARK
    versions, rows, broke = spark["versions"], spark["n_rows"], spark["broke"]
    first, last = versions[0], versions[-1]
    low, high = min(rows, default=0), max(rows, default=0)

    def x(version: int) -> float:
        return width if last == first else 1 + (version - first) / (last - first) * (width - 2)

    def y(n: int) -> float:
        """A flat line stands in the middle; a slope is as steep as it can be."""
        room = height - FOOT
        return room / 2 if high == low else 1 + (1 - (n - low) / (high - low)) * (room - 3)

    points = " ".join(f"{x(v):.1f},{y(n):.1f}" for v, n in zip(versions, rows, strict=False))
    parts = [f'<polyline points="{points}"/>'] if len(rows) > 1 else []
    for version, n in zip(versions, broke, strict=True):
        if n:
            tall = 5 if n > 10 else 4 if n > 2 else 3
            parts.append(_bar("broke", x(version) - 1, height - tall, 2, tall))
    ends = f"{rows[0]:,} rows at version {first:,}, {rows[-1]:,} now; " if rows else ""
    words = f"{name}: {ends}{sum(broke):,} {'dependency' if sum(broke) == 1 else 'dependencies'} broke"
    return _svg("spark", SPARK, words, parts)


def timeline(answer: Json) -> str:
    """What broke and what appeared, bucket by bucket: bars up and down, as the square root of how many."""
    width, height = TIMELINE
    broke, appeared = answer["events"]["broke"], answer["events"]["appeared"]
    step = width / max(1, len(broke))
    most = sqrt(max([1, *broke, *appeared]))
    parts = [f'<line x1="0" y1="{UP}" x2="{width}" y2="{UP}"/>']
    for i, (first, last) in enumerate(zip(answer["first"], answer["last"], strict=True)):
        where = f"version {first:,}" if first == last else f"versions {first:,} to {last:,}"
        for css, n, room, up in (
            ("broke", broke[i], UP - 2, True),
            ("appeared", appeared[i], height - UP - 2, False),
        ):
            if n:
                tall = max(2.0, sqrt(n) / most * room)
                top = UP - tall if up else UP
                parts.append(
                    _bar(css, i * step, top, max(1.0, min(step - 1, 24)), tall, f"{where}: {n:,} {css}")
                )
    words = (
        f"versions {answer['since']:,} to {answer['until']:,}: {sum(broke):,} dependencies broke, "
        f"{sum(appeared):,} appeared"
    )
    return _svg("timeline", TIMELINE, words, parts)


def lifeline(stretches: Sequence[Json], versions: Sequence[Sequence[Any]], words: Sequence[str]) -> str:
    """When something held: a bar for each stretch, as long as the versions of its table that it went through;
    `words` are those of the stretches."""
    width, height = LINE
    numbers = [version for version, _ in versions]
    spans = [
        max(1, sum(s["first"] <= v and (s["last"] is None or v <= s["last"]) for v in numbers))
        for s in stretches
    ]
    step, x, parts = width / sum(spans), 0.0, []
    for stretch, span, text in zip(stretches, spans, words, strict=True):
        css = HELD[stretch["holds"]]
        top = 2 if css == "held" else height / 2  # told apart without colours, too
        parts.append(_bar(css, x, top, max(1.0, step * span - 2), height - top - 2, text))
        x += step * span
    return _svg("life", LINE, "; ".join(words[-3:]), parts)
