"""What the news of all classes have in common: how much is told, and the rows that prove it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.rows.relation import Relation
from holdfast.core.store.arrow_types import python_rows
from holdfast.core.words.change import DependencyChange, Event, Pair, WitnessRow

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

# Changes beyond this many come without the values of their rows: a report that nobody can read
# need not be stored either. Row ids are kept for all.
MAX_SHOWN = 2000
MAX_CELLS = 100_000
# Of tables with more columns than this a change tells the values of its own columns and of the first ones.
WIDE = 24
MAX_TEXT = 200
# Changes of one sort beyond this many are counted, not listed: the covers before and after tell them all.
MAX_LISTED = 1000
Kind = Literal["inserts", "deletes", "both"]  # what a batch has


@dataclass(frozen=True, slots=True)
class News:
    """What a batch changed for one class: the changes that are listed, and how many are not.

    `broken` is all that broke, as the class keeps it, the listed ones first; of classes whose reader tells
    for how many versions something had held (`held_versions`).
    """

    changes: tuple[DependencyChange, ...] = ()
    unlisted: int = 0
    broken: U64 | None = None


def kind_of(n_inserted: int, n_deleted: int) -> Kind:
    return "both" if n_inserted and n_deleted else "inserts" if n_inserted else "deletes"


def broken_text(error: float, max_error: float, who: str = "") -> str:
    """Why something is told as broken; with its error if it has one, and where that lies if one is kept in
    sight. `who` violates it, if that is told.

    >>> broken_text(0.0, 0.0), broken_text(0.02, 0.01)
    ('does not hold any more', 'does not hold any more (error 0.02, beyond 0.01)')
    """
    place = f", {'within' if error <= max_error else 'beyond'} {max_error:g}" if max_error else ""
    shown = f" (error {error:.4g}{place})" if error else ""
    return f"does not hold any more{who}{shown}"


def near_text(event: Event, error: float, max_error: float, better: str) -> str:
    """Why something is told as within an error, or as not the least within it: it is beyond, or `better`
    is within, too.

    >>> near_text("within", 0.01, 0.02, "a tighter one"), near_text("beyond", 0.03, 0.02, "a tighter one")
    ('error 0.01, within 0.02', 'error 0.03, beyond 0.02')
    >>> near_text("beyond", 0.01, 0.02, "a tighter one")
    'error 0.01; a tighter one is within 0.02 now'
    """
    if event == "within" or error > max_error:
        return f"error {error:.4g}, {event} {max_error:g}"
    return f"error {error:.4g}; {better} is within {max_error:g} now"


def witness_pairs(
    witnesses: I64, relation: Relation, about: Sequence[Sequence[str]] | None = None
) -> list[tuple[Pair, ...]]:
    """For each entry of witnesses int64[n, k, 2] its first pair, with values for the first entries.

    `about` are the columns that each is about: of wide tables only these are told, and the first ones.
    """
    wanted = witnesses[: min(MAX_SHOWN, MAX_CELLS // len(relation.schema)), 0]
    ids = np.unique(wanted[wanted >= 0])
    values = dict(zip(ids.tolist(), plain_rows(relation.fetch(ids)), strict=True))
    names = relation.schema.names
    wide = about is not None and len(names) > WIDE
    pairs: list[tuple[Pair, ...]] = []
    for i, (a, b) in enumerate(witnesses[:, 0].tolist()):
        rows = [values.get(a, {}), values.get(b, {})]
        if about is not None and wide:
            columns = dict.fromkeys([*about[i], *names[:WIDE]])
            rows = [{name: row[name] for name in columns if row} for row in rows]
        pairs.append(((WitnessRow(a, rows[0]), WitnessRow(b, rows[1])),) if a >= 0 else ())
    return pairs


def plain_rows(rows: pa.Table) -> list[dict[str, Any]]:
    """Rows as JSON can carry them; long texts are cut."""
    return [{name: plain(value) for name, value in row.items()} for row in python_rows(rows)]


def plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        value = value.hex()
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    text = str(value)
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "..."
