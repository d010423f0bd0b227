"""From counts to profiles, and to the rules that all rows keep in a column: what suits a CHECK.

| aspect | rule | if |
|---|---|---|
| nulls | `x is not null` | no row is NULL |
| values | `x in ('a', 'b')` | texts or whole numbers, at most 20 different ones, each in 3 rows or more |
| values | `x >= 1 and x <= 5` | such numbers, three or more, and all whole ones from the first to the last |
| range | `x >= 1`, `x > 0`, `x >= 0`, `x >= 0 and x <= 1` | numbers: bounds that mean something |
| range | `x >= 1 and x <= 50` | whole numbers, 20 rows for each value: the next 1, 2 or 5 with zeros |
| range | `x >= 1` | numbers that are named like an id, however many rows have each: ids go on |
| range | `x >= '2020-01-01'` | days and points in time from 1900 on: the decade of the first one |
| pattern | `x matches '[A-Z]{2}-[0-9]{4}'` | texts with one form, or with at most 3 shapes |

A column has a list of values, or a range, or a pattern: the first that it can have. A rule is a function of
the counts, and its bounds are round: so a batch changes few of them, and one that it breaks is news. The
score says how much a rule means: few values with many rows each most, a range of what looks like ids least.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa

from holdfast.core.cover.news import plain
from holdfast.core.store.arrow_types import python_values
from holdfast.core.words.column_rule import Aspect, ColumnRule
from holdfast.core.words.condition import (
    Absent,
    Among,
    Compared,
    Constant,
    Every,
    Like,
    Node,
    Not,
    formula_of,
)
from holdfast.core.words.name_similarity import names_id
from holdfast.core.words.schema import NUMBERS, Column, Type
from holdfast.errors import plural
from holdfast.profile.column_counts import MOST, ColumnCounts
from holdfast.profile.column_profile import (
    ALL_VALUES,
    TOP_PATTERNS,
    TOP_VALUES,
    ColumnProfile,
    Counted,
    Lengths,
)
from holdfast.profile.tally import Tally
from holdfast.profile.text_shapes import CLASSES, expression

# A value that is accepted is in so many rows at least.
ROWS_OF_A_VALUE = 3
# With so many rows for each value whole numbers have a round upper bound, too.
ROWS_OF_A_NUMBER = 20
# So many whole numbers without a gap are a range.
DENSE_NUMBERS = 3
# One value for all rows may be all that there is yet.
CONSTANT_SCORE = 0.3
MOST_SHAPES = 3
FIRST_YEAR = 1900


Known = tuple[Node, float, str]  # a rule, its score and its reason
Finder = Callable[[Column, ColumnCounts], Known | None]


# -- profiles ----------------------------------------------------------------------------------


def profile_of(table: str, column: Column, counts: ColumnCounts) -> ColumnProfile:
    """What the counts of a column say."""
    values, type_ = counts.values, column.type
    complete = values is not None and values.complete
    low, high = None, None
    if values is not None and len(values.values) and type_.family not in ("bool", "binary"):
        low, high = map(as_json, python_values(values.values.take(pa.array([0, len(values.values) - 1]))))
    lengths = None
    if counts.lengths is not None and counts.n_values:
        shortest = counts.lengths.values[0].as_py()
        lengths = Lengths(shortest, counts.max_length, counts.total_length / counts.n_values)
    patterns, n_patterns = _patterns(counts)
    return ColumnProfile(
        column.name,
        str(type_),
        counts.n_rows,
        counts.n_nulls,
        len(values.values) if values is not None and complete else None,
        0 if values is None or complete else MOST["values"],
        low,
        high,
        most_frequent(values) if values is not None and complete else None,
        lengths,
        patterns,
        n_patterns,
        tuple(_rules(table, column, counts)),
    )


def most_frequent(values: Tally) -> tuple[Counted, ...]:
    """The values of a complete tally that most rows have."""
    n = len(values.values)
    at = values.most_frequent(n if n <= ALL_VALUES else TOP_VALUES)
    return listed(values.values.take(pa.array(at)), values.counts[at].tolist())


def listed(values: pa.Array, counts: list[int]) -> tuple[Counted, ...]:
    return tuple(Counted(as_json(v), n) for v, n in zip(python_values(values), counts, strict=True))


def as_json(value: Any) -> Any:
    """A value as JSON carries it, whole."""
    return value if isinstance(value, str) else plain(value)


def _patterns(counts: ColumnCounts) -> tuple[tuple[Counted, ...] | None, int | None]:
    for tally in (counts.shapes, counts.forms):
        last = tally is counts.forms
        if tally is not None and tally.complete and (last or len(tally.values) <= TOP_PATTERNS):
            at = tally.most_frequent(TOP_PATTERNS)
            shown = tally.values.take(pa.array(at)).to_pylist()
            pairs = zip(shown, tally.counts[at].tolist(), strict=True)
            return tuple(Counted(shape, n) for shape, n in pairs), len(tally.values)
    return None, None


# -- rules -------------------------------------------------------------------------------------


def _rules(table: str, column: Column, counts: ColumnCounts) -> Iterator[ColumnRule]:
    """The rules of a column, each with its score and its reason."""

    def rule(aspect: Aspect, node: Node, score: float, reason: str) -> ColumnRule:
        return ColumnRule(table, formula_of(node), (column.name,), aspect, round(score, 4), reason)

    if counts.n_rows and not counts.n_nulls:
        yield rule("nulls", Not(Absent(column.name)), _grown(0.35, counts.n_rows), "no row is NULL")
    if not counts.n_values or counts.values is None:
        return
    finders: tuple[tuple[Aspect, Finder], ...] = (
        ("values", _accepted),
        ("range", _range),
        ("pattern", _pattern),
    )
    for aspect, finder in finders:
        known = finder(column, counts)
        if known is not None:
            yield rule(aspect, *known)
            return


def _grown(least: float, n: float) -> float:
    """A score that grows with the rows that speak for a rule: by a tenth for each zero of their number."""
    return min(0.95, least + 0.1 * math.log10(max(1.0, n)))


def _accepted(column: Column, counts: ColumnCounts) -> Known | None:
    values = counts.values
    assert values is not None
    n = len(values.values)
    listed_type = column.type.family == "text" or column.type.whole
    if not listed_type or not values.complete or n > ALL_VALUES:
        return None
    least = int(values.counts.min())
    constants = _constants(values.values, column.type)
    if least < ROWS_OF_A_VALUE or constants is None:
        return None
    reason = f"{plural(n, 'value')} in {plural(counts.n_values, 'row')}, each in at least {least:,}"
    node: Node = Among(column.name, constants)
    if n >= DENSE_NUMBERS and column.type.whole:
        low, high = values.values[0].as_py(), values.values[-1].as_py()
        if high - low == n - 1 and names_id(column.name):
            return None
        if high - low == n - 1:
            node = Every(
                (Compared(column.name, ">=", constants[0]), Compared(column.name, "<=", constants[-1]))
            )
    return node, _grown(0.55 if n > 1 else CONSTANT_SCORE, counts.n_values / n), reason


def _constants(values: pa.Array, type_: Type) -> tuple[Constant, ...] | None:
    """Values as constants of conditions; None if one cannot be written."""
    if type_.family == "text":
        try:
            return tuple(raw.decode() for raw in values.cast(pa.large_binary()).to_pylist())
        except UnicodeDecodeError:
            return None
    return tuple(Decimal(value) for value in values.to_pylist())


def _range(column: Column, counts: ColumnCounts) -> Known | None:
    values, family = counts.values, column.type.family
    assert values is not None
    ends = values.values.take(pa.array([0, len(values.values) - 1]))
    if family in NUMBERS:
        low, high = ends.to_pylist()
        return _number_range(column, low, high, counts)
    if family in ("date", "timestamp"):
        return _time_range(column, python_values(ends)[0])
    return None


def _number_range(column: Column, low: Any, high: Any, counts: ColumnCounts) -> Known | None:
    """Bounds with a meaning. NaN is greater than all numbers, and so no lower bound."""
    name, values, whole = column.name, counts.values, column.type.whole
    assert values is not None
    if not low >= 0:
        return None
    reason = f"all values are from {low:,} to {high:,}"
    if whole:
        bound = Compared(name, ">=", Decimal(1 if low >= 1 else 0))
        n_each = counts.n_values / len(values.values) if values.complete else 0.0
        is_named = names_id(column.name)
        if n_each >= ROWS_OF_A_NUMBER and not is_named:
            upper = Compared(name, "<=", Decimal(round_up(int(high))))
            return Every((bound, upper)), 0.45, reason
        is_id = is_named or not values.complete or n_each < 2
        return bound, 0.1 if is_id else 0.3, reason
    if high <= 1:
        bounds = Compared(name, ">=", Decimal(0)), Compared(name, "<=", Decimal(1))
        return Every(bounds), 0.5, reason
    return Compared(name, ">" if low > 0 else ">=", Decimal(0)), 0.4, reason


def round_up(n: int) -> int:
    """
    >>> [round_up(n) for n in (0, 1, 3, 5, 6, 12, 31, 100, 101)]
    [1, 1, 5, 5, 10, 20, 50, 100, 200]
    """
    power = 1
    while True:
        for digit in (1, 2, 5):
            if digit * power >= n:
                return digit * power
        power *= 10


def _time_range(column: Column, first: Any) -> Known | None:
    """From the decade of the first one on; of years that Python does not know there is none."""
    if not isinstance(first, dt.date) or first.year < FIRST_YEAR:
        return None
    bound: dt.date = dt.date(first.year // 10 * 10, 1, 1)
    if column.type.family == "timestamp":
        bound = dt.datetime(bound.year, 1, 1, tzinfo=dt.UTC if column.type.utc else None)
    return Compared(column.name, ">=", bound), 0.3, f"the first one is {first.isoformat()}"


def _pattern(column: Column, counts: ColumnCounts) -> Known | None:
    """One form, or a few shapes; of a form whose shapes are not known any length of a run."""
    shapes, forms = counts.shapes, counts.forms
    if shapes is None or forms is None or not forms.complete:
        return None
    n_forms, n_shapes = len(forms.values), len(shapes.values)
    exact = shapes.complete
    if n_forms > 1 and not (exact and n_shapes <= MOST_SHAPES):
        return None
    chosen = (shapes if exact else forms).values.to_pylist()
    text = expression(chosen, exact=exact)
    # A word, or any text of letters, is no code: it has a form by chance.
    telling = any("9" in shape or any(c not in CLASSES for c in shape) for shape in chosen)
    if text is None or not text or not telling:
        return None
    shown = ", ".join(chosen[:MOST_SHAPES])
    return Like(column.name, text, regex=True), _grown(0.4, counts.n_values), f"all texts look like {shown}"
