"""The few values of a column that make all of it texts: looked for in its sample, to be named in a note."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute

from holdfast.core.sources.read_options import ReadOptions
from holdfast.core.sources.respelling import GUISES, ORDERS, TIMES, YMD, null_options, respelt
from holdfast.core.sources.type_rule import Texts, decode, first_unfit
from holdfast.core.words.schema import Type
from holdfast.errors import listing, shorten

pc: Any = pa.compute

# What any value that is no text looks like, roughly; and how few others, and rows of those, are worth a note.
_VALUE = r"^[-+]?[0-9.,][0-9.,:/+\-' TZeE]*$|^(?i:true|false)$"
MAX_ODD, ODD_ROWS = 3, 10
LOOKED_AT = 64  # texts of a column: of most columns of texts the first ones show it


def odd_texts(bare: Texts) -> list[str]:
    """The few texts of a column that do not look like values of any type where nearly all others do, or none.

    >>> odd_texts(pa.chunked_array([["1.5"] * 10 + ["unknown"]], pa.large_string()))
    ['unknown']
    """
    odd: list[str] = []
    for part in (bare.slice(0, LOOKED_AT), bare):
        present = part.drop_null()
        unlike = present.filter(pc.invert(pc.match_substring_regex(present, _VALUE)))
        odd = pc.unique(unlike).to_pylist()
        if len(odd) > MAX_ODD:
            return []
    few = len(unlike) * ODD_ROWS <= len(present)
    return odd if few and all(0 < len(text) <= 40 for text in odd) else []


def odd_note(names: Sequence[str], odd: Sequence[str], words: Sequence[str], t: Type) -> str:
    """What is said of columns that would be of a type but for a few texts; `words`: those for NULL there."""
    what = {"bool": "boolean", "date": "date", "timestamp": "time"}.get(t.family, "number")
    shown = ", ".join(shorten(text) for text in odd)
    it, is_no = ("it", f"is no {what}") if len(odd) == 1 else ("them", f"are no {what}s")
    return (
        f"{listing(names)}: texts, since {shown} {is_no}; {null_options([*words, *odd])} reads {it} as NULL, "
        f"--types {shorten(names[0])[1:-1]}=text keeps the texts"
    )


def odd_dates(bare: Texts, options: ReadOptions) -> list[str]:
    """The few texts of a column that are no dates or times where nearly all others are, or none.

    Cost: nothing for columns that do not look like dates; else up to some dozens of readings of the sample.

    >>> odd_dates(pa.chunked_array([["2026-01-31"] * 10 + ["2026-02-30"]], pa.large_string()), ReadOptions())
    ['2026-02-30']
    """
    present = bare.drop_null()
    start = present.slice(0, LOOKED_AT)
    if 2 * (pc.sum(pc.match_substring_regex(start, GUISES["times"])).as_py() or 0) < len(start):
        return []
    orders = [options.dates] if options.dates else [YMD, *ORDERS]
    for order, t in itertools.product(orders, TIMES):
        if odd := _unfit(present, order, t):
            return odd
    return []


def _unfit(present: Texts, order: str, t: Type) -> list[str]:
    """The texts that are no values of a type; none if they are many."""

    def fits(part: Texts) -> bool:
        return decode(respelt(part, order), t) is not None

    odd: list[str] = []
    rest = present
    while not fits(rest):
        odd.append(rest[first_unfit(rest, fits)].as_py())
        rest = rest.filter(pc.not_equal(rest, odd[-1]))
        if len(odd) > MAX_ODD or (len(present) - len(rest)) * ODD_ROWS > len(present):
            return []
    return odd
