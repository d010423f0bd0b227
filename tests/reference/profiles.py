"""Column profiles by their definition: from the values of a column, with plain dictionaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from reference.conditions import key
from reference.keys import canonical

Counts = list[tuple[Any, int]]


def values_of(column: Sequence[Any]) -> Counter[Any]:
    """How often each value occurs; NULL is none."""
    return Counter(canonical(value) for value in column if value is not None)


def order(value: Any) -> Any:
    """NaN is greater than all numbers; texts by their code points, binary values by their bytes."""
    if repr(value) == "NaN":
        value = float("nan")
    return value if isinstance(value, bytes) else key(value)


def extremes(column: Sequence[Any]) -> tuple[Any, Any]:
    ordered = sorted(values_of(column), key=order)
    return ordered[0], ordered[-1]


def top(column: Sequence[Any], n: int) -> Counts:
    """The most frequent values; of those with one count the lower ones."""
    counts = values_of(column)
    return sorted(counts.items(), key=lambda item: (-item[1], order(item[0])))[:n]


def shape(text: str) -> str:
    return "".join(_symbol(c) for c in text)


def _symbol(c: str) -> str:
    if not c.isascii():
        return "U"
    return "A" if c.isupper() else "a" if c.islower() else "9" if c.isdigit() else c


def form(text: str) -> str:
    """The shape with each run of a class as one."""
    symbols: list[str] = []
    for symbol in shape(text):
        if not (symbols and symbols[-1] == symbol and symbol in "Aa9U"):
            symbols.append(symbol)
    return "".join(symbols)


def patterns(column: Sequence[Any], most: int, listed: int) -> tuple[Counts, int] | None:
    """Shapes, if they are few enough to be listed, else forms; None if there are more than can be counted."""
    texts = [value for value in column if value is not None]
    shapes, forms = Counter(map(shape, texts)), Counter(map(form, texts))
    chosen = shapes if len(shapes) <= min(listed, most) else forms
    if len(chosen) > most:
        return None
    ranked = sorted(chosen.items(), key=lambda item: (-item[1], item[0]))
    return ranked[:listed], len(chosen)
