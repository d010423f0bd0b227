"""Denial constraints by definition: every pair of rows is compared, every choice of operators is tried.

A row is a tuple of Python values, a group (left, right, ordered) two columns that are compared, a constraint
the ascending numbers of its predicates. Sets of evidences are integers, too: bit e is the e-th evidence. So a
choice of predicates is asked of all evidences at once, and a search of some thousand choices takes a moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations, permutations
from typing import Any

import pyarrow as pa

from reference import predicate_evidence, row_outcomes
from reference.dc_hitting_sets import LOOSER, OPERATORS, Predicates
from reference.keys import NAN, Row, canonical
from reference.predicates import Words, circular

Group = tuple[str, str, bool]
Numbers = tuple[int, ...]


def ordered(type_: pa.DataType) -> bool:
    """Numbers, dates, times and timestamps have six operators; decimals only if they fit 64 bits.

    >>> [ordered(t) for t in (pa.int8(), pa.date32(), pa.string(), pa.bool_(), pa.decimal128(19, 2))]
    [True, True, False, False, False]
    """
    if pa.types.is_decimal(type_):
        return bool(type_.precision <= 18)
    return bool(
        pa.types.is_integer(type_)
        or pa.types.is_floating(type_)
        or pa.types.is_date(type_)
        or pa.types.is_time(type_)
        or pa.types.is_timestamp(type_)
    )


def kind_of(type_: pa.DataType) -> str:
    """What two columns must have in common: widths do not matter, digits and units do.

    >>> kind_of(pa.int8()) == kind_of(pa.int64()), kind_of(pa.uint64()) == kind_of(pa.int64())
    (True, False)
    """
    is_ = pa.types
    if is_.is_integer(type_) and not is_.is_uint64(type_):
        return "int"
    for name, belongs in (
        ("float", is_.is_floating(type_)),
        ("date", is_.is_date(type_)),
        ("text", is_.is_string(type_) or is_.is_large_string(type_)),
        ("binary", is_.is_binary(type_) or is_.is_large_binary(type_)),
        ("decimal", is_.is_decimal(type_)),
        ("timestamp", is_.is_timestamp(type_)),
    ):
        if belongs and name == "decimal":
            return f"decimal({type_.precision},{type_.scale})"
        if belongs and name == "timestamp":
            return f"timestamp({type_.unit},{type_.tz is not None})"
        if belongs:
            return name
    return str(type_)


def within_a_row(one: pa.DataType, other: pa.DataType) -> bool | None:
    """Whether two columns of a row are compared by order; False: only as equal or not; None: not at all.

    Numbers of all types are, and points in time of any unit.

    >>> within_a_row(pa.int8(), pa.float64()), within_a_row(pa.bool_(), pa.bool_())
    (True, False)
    >>> within_a_row(pa.decimal128(19, 0), pa.int64()) is within_a_row(pa.date32(), pa.timestamp("s")) is None
    True
    """
    if not ordered(one) or not ordered(other):
        return False if kind_of(one) == kind_of(other) else None
    sorts = [kind_of(t).partition("(")[0].partition("[")[0] for t in (one, other)]
    if set(sorts) <= {"int", "uint64", "float", "decimal"}:
        return True
    same = sorts[0].rstrip("0123456789") == sorts[1].rstrip("0123456789")
    zones = [pa.types.is_timestamp(t) and t.tz is not None for t in (one, other)]
    return True if same and zones[0] == zones[1] else None


def row_rules(
    rows: Sequence[Row], schema: pa.Schema, columns: Collection[str], max_error: float = 0.0
) -> dict[Words, int]:
    """The tightest comparison of each two columns of a row, with the rows that violate it."""
    found: dict[Words, int] = {}
    for a, b in combinations([c for c, name in enumerate(schema.names) if name in columns], 2):
        by_order = within_a_row(schema.field(a).type, schema.field(b).type)
        if by_order is not None:
            counts = row_outcomes.counts(rows, a, b, by_order)
            rule = row_outcomes.rule(counts, by_order, max_error)
            if rule is not None:
                found[schema.names[a], rule[0], schema.names[b]] = rule[1]
    return found


def comparable(value: Any) -> Any:
    """Something that compares as the value does: NaN equals itself and is greater than all other floats.

    >>> comparable(float("inf")) < comparable(float("nan")), comparable(-0.0) == comparable(0.0)
    (True, True)
    """
    if value is NAN or (isinstance(value, float) and value != value):
        return (1, 0.0)
    return (0, value) if isinstance(value, float) else value


def groups(rows: Sequence[Row], schema: pa.Schema, columns: Collection[str] | None = None) -> set[Group]:
    """Every column with itself, and two of one type that share values: 30 % of those of the larger one."""
    found: set[Group] = set()
    values = [{canonical(row[c]) for row in rows} - {None} for c in range(len(schema))]
    for a, b in ((a, b) for a in range(len(schema)) for b in range(len(schema))):
        one, other = schema.field(a), schema.field(b)
        if columns is not None and not {one.name, other.name} <= set(columns):
            continue
        alike = kind_of(one.type) == kind_of(other.type)
        n_shared, n_larger = len(values[a] & values[b]), max(len(values[a]), len(values[b]))
        if a == b or (alike and n_shared > 0 and 10 * n_shared >= 3 * n_larger):
            found.add((one.name, other.name, ordered(one.type)))
    return found


class Space:
    """The predicates of some groups, numbered in the order given, over rows with these columns."""

    def __init__(self, groups: Sequence[Group], names: Sequence[str]) -> None:
        self.groups, self.names = tuple(groups), list(names)
        at = {name: c for c, name in enumerate(names)}
        self.predicates = Predicates([(at[a], at[b], ordered) for a, b, ordered in groups])
        self.words: list[Words] = [(groups[g][0], op, groups[g][1]) for g, op in self.predicates.predicates]
        first = [self.predicates.number[g, "="] for g in range(len(groups))]
        self._asked = [(at[a], at[b], order, first[g]) for g, (a, b, order) in enumerate(groups)]

    def evidence(self, rows: Sequence[Row]) -> Counter[int]:
        """The evidences of all ordered pairs of different rows, as masks, with their numbers of pairs."""
        told = [tuple(map(comparable, row)) for row in rows]
        return Counter(predicate_evidence.evidence(t, s, self._asked) for t, s in permutations(told, 2))

    def violating(self, rows: Sequence[Row], dc: Iterable[Words]) -> list[tuple[int, int]]:
        """The ordered pairs of rows, by position, that satisfy all predicates (any, in the space or not)."""
        return violating(rows, self.names, dc)

    def numbers(self, dc: Iterable[Words]) -> Numbers:
        return tuple(sorted(self.words.index(p) for p in dc))

    def canonical(self, dc: Iterable[int]) -> Numbers:
        mirrored = self.predicates.mirrored(frozenset(dc))
        return min(tuple(sorted(dc)), tuple(sorted(mirrored)))

    def telling(self, found: Mapping[Numbers, int]) -> dict[Numbers, int]:
        """Without constraints that hold in every table: what is listed."""
        return {dc: n for dc, n in found.items() if not circular([self.words[i] for i in dc])}

    def looser(self, dc: Iterable[int]) -> Iterator[Numbers]:
        """All that say one thing less."""
        return (tuple(sorted(other)) for other in self.predicates.looser(frozenset(dc)))

    def general(
        self,
        evidence: Counter[int],
        most: int = 0,
        max_predicates: int | None = None,
        operators: Collection[str] = OPERATORS,
    ) -> dict[Numbers, int]:
        """The constraints that at most `most` ordered pairs violate, and nothing looser; with their pairs.

        One predicate for each group at most, one of each mirrored pair.
        """

        def next_ones(chosen: Numbers) -> Iterator[tuple[int, list[int]]]:
            start = self.predicates.predicates[chosen[-1]][0] + 1 if chosen else 0
            for i, (g, op) in enumerate(self.predicates.predicates):
                if g >= start and op in operators:
                    looser = [
                        self.predicates.number.get((g, o), -1) for o in LOOSER.get(op, ()) if o in operators
                    ]
                    yield i, [j for j in looser if j >= 0]

        return self._search(evidence, most, max_predicates, next_ones)

    def set_minimal(
        self, evidence: Counter[int], most: int = 0, max_predicates: int | None = None
    ) -> dict[Numbers, int]:
        """As `general`, but a set of any predicates that are not trivial together, of which none can go."""

        def next_ones(chosen: Numbers) -> Iterator[tuple[int, list[int]]]:
            for i in range(chosen[-1] + 1 if chosen else 0, len(self.words)):
                if not self.predicates.trivial(frozenset([*chosen, i])):
                    yield i, []

        return self._search(evidence, most, max_predicates, next_ones)

    def _search(
        self,
        evidence: Counter[int],
        most: int,
        max_predicates: int | None,
        next_ones: Callable[[Numbers], Iterable[tuple[int, list[int]]]],
    ) -> dict[Numbers, int]:
        masks, counts = list(evidence), list(evidence.values())
        having = [sum(1 << e for e, m in enumerate(masks) if m >> i & 1) for i in range(len(self.words))]

        @cache
        def pairs(evidences: int) -> int:
            return sum(n for e, n in enumerate(counts) if evidences >> e & 1)

        found: dict[Numbers, int] = {}

        def extend(chosen: Numbers, left: int, looser: list[int]) -> None:
            """`left` are the evidences that violate the chosen, `looser` those that violate looser ones."""
            if pairs(left) <= most:
                found[self.canonical(chosen)] = pairs(left)
            elif max_predicates is None or len(chosen) < max_predicates:
                for i, instead in next_ones(chosen):
                    now = left & having[i]
                    wider = [left, *(left & having[j] for j in instead)]
                    wider += (other & having[i] for other in looser)
                    # What is looser stays valid, or as good as the chosen, whatever is added to both.
                    if now not in wider and all(pairs(other) > most for other in wider):
                        extend((*chosen, i), now, wider)

        extend((), (1 << len(masks)) - 1, [])
        return found


def violating(rows: Sequence[Row], names: Sequence[str], dc: Iterable[Words]) -> list[tuple[int, int]]:
    """The ordered pairs of different rows, by position, that satisfy all predicates.

    >>> violating([(1, 2), (2, 1), (3, 3)], ["a", "b"], [("a", "<", "a"), ("b", ">=", "b")])
    [(0, 1)]
    """
    asked = [(names.index(a), op, names.index(b)) for a, op, b in dc]
    told = [tuple(map(comparable, row)) for row in rows]
    return [
        (i, j)
        for i, j in permutations(range(len(rows)), 2)
        if all(predicate_evidence.holds(told[i][a], op, told[j][b]) for a, op, b in asked)
    ]


def total_pairs(rows: Sequence[Row]) -> int:
    return len(rows) * (len(rows) - 1)


def error(n_violating: int, rows: Sequence[Row]) -> float:
    """The share of the ordered pairs that violate a constraint; 0 where there are none."""
    return n_violating / max(1, total_pairs(rows))


def allowed(max_error: float, rows: Sequence[Row]) -> int:
    """The most pairs that may violate a constraint, so that the error that is told is within `max_error`.

    >>> allowed(0.29, [()] * 25), allowed(1 / 6, [()] * 4), allowed(0.5, [()])
    (174, 2, 0)
    """
    total = total_pairs(rows)
    return max((n for n in range(total + 1) if n / max(total, 1) <= max_error), default=0)
