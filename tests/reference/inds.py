"""Inclusion dependencies by definition: sets and counters of Python values. Slow, plain, independent.

A database is a dict of `Table`s; a column is named by `(table, column)`. Values are compared by what they
are: a number is a fraction whatever its type, a text is its bytes, and values of different domains never
match. Nothing here knows of runs, codes or pair counts.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, product
from typing import Any

Row = tuple[Any, ...]
Column = tuple[str, str]  # table, column
Side = tuple[str, tuple[str, ...]]  # table, columns
Cluster = frozenset[Column]

FLOAT_DIGITS = 15  # a decimal of as many digits survives the way to a float and back


@dataclass(frozen=True)
class Table:
    """The rows of a table, and how it takes part."""

    names: tuple[str, ...]
    rows: Sequence[Row]
    columns: tuple[str, ...] | None = None  # those that take part; None: all
    append_only: bool = False
    as_text: bool = False

    @property
    def taking_part(self) -> tuple[str, ...]:
        return self.names if self.columns is None else self.columns


Database = Mapping[str, Table]


@dataclass(frozen=True)
class Inclusion:
    """How far a column is inside another one."""

    missing_values: int
    missing_rows: int | None
    error: float
    coverage: float


# -- values ------------------------------------------------------------------------------------------------


def comparable(value: Any, as_text: bool = False) -> Hashable:
    """(domain, value): equal for values that match. None for NULL, which matches nothing.

    >>> comparable(1) == comparable(1.0) == comparable(Decimal("1.00"))
    True
    >>> comparable(0.1) == comparable(Decimal("0.1")), comparable(-0.0) == comparable(0)
    (True, True)
    >>> comparable(0.1 + 0.2) == comparable(Decimal("0.30000000000000004")), comparable(1) == comparable("1")
    (False, False)
    >>> comparable(float("nan")) == comparable(-float("nan")), comparable(True) == comparable(1)
    (True, False)
    """
    if value is None:
        return None
    if as_text:
        return "text", text_of(value)
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, int | Decimal):
        return "number", Fraction(value)
    if isinstance(value, float):
        return "number", _float(value)
    if isinstance(value, str):
        return "text", value.encode()
    if isinstance(value, bytes):
        return "binary", value
    if isinstance(value, dt.datetime):
        return ("timestamp" if value.tzinfo is None else "instant"), value
    if isinstance(value, dt.date):
        return "date", value
    if isinstance(value, dt.time):
        return "time", value
    raise TypeError(f"no domain for {value!r}")


def _float(value: float) -> Hashable:
    """The number that a float stands for: itself if whole, else the one short decimal that reads as it.

    A float that no decimal of 15 digits reads as equals only itself.
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return value
    if value.is_integer():
        return Fraction(value)
    short = Decimal(f"{value:.{FLOAT_DIGITS - 1}e}")
    return Fraction(short) if float(short) == value else ("float", value)


def text_of(value: Any) -> bytes:
    """The text by which a value takes part in a table that is compared as text: that of a plain CSV file.

    >>> text_of(7), text_of(True), text_of(Decimal("1.50")), text_of(dt.date(2026, 1, 2)), text_of("a")
    (b'7', b'true', b'1.50', b'2026-01-02', b'a')
    >>> text_of(1.0), text_of(-0.0), text_of(1e-7), text_of(dt.datetime(2026, 1, 2, 3, 4, 5, 120000))
    (b'1.0', b'0.0', b'1e-07', b'2026-01-02 03:04:05.120')
    >>> text_of(dt.datetime(2026, 1, 2, tzinfo=dt.UTC)), text_of(dt.time(3, 4, 5, 6)), text_of(b"a")
    (b'2026-01-02 00:00:00Z', b'03:04:05.000006', b'a')
    """
    if isinstance(value, bytes):
        return value
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, Decimal):
        text = f"{value:f}"
    elif isinstance(value, float):
        text = repr(value + 0.0)
    elif isinstance(value, dt.datetime):
        local = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
        text = local.isoformat(" ", _precision(value.microsecond)) + ("" if value.tzinfo is None else "Z")
    elif isinstance(value, dt.time):
        text = value.isoformat(_precision(value.microsecond))
    else:
        text = str(value)
    return text.encode()


def _precision(microsecond: int) -> str:
    return "seconds" if not microsecond else "microseconds" if microsecond % 1000 else "milliseconds"


def frequencies(table: Table, name: str) -> Counter[Hashable]:
    """How many rows carry each value of a column; NULL is none.

    >>> sorted(frequencies(Table(("a",), [(1,), (1.0,), (None,)]), "a").values())
    [2]
    """
    position = table.names.index(name)
    found = Counter(comparable(row[position], table.as_text) for row in table.rows)
    del found[None]
    return found


def columns_of(database: Database) -> list[Column]:
    """The columns that take part."""
    return [(table, name) for table in database for name in database[table].taking_part]


# -- unary -------------------------------------------------------------------------------------------------


def inclusion(database: Database, dependent: Column, referenced: Column) -> Inclusion:
    """How many values (and rows) of a column are missing in another one.

    An empty column lacks nothing; coverage by a column without values is 0.

    >>> t = Table(("a", "b"), [(1, 1), (2, None), (2, 4)])
    >>> inclusion({"t": t}, ("t", "a"), ("t", "b"))
    Inclusion(missing_values=1, missing_rows=2, error=0.5, coverage=0.5)
    """
    inside, outside = (frequencies(database[t], name) for t, name in (dependent, referenced))
    return _inclusion(inside, outside, database[dependent[0]].append_only)


def _inclusion(inside: Counter[Hashable], outside: Counter[Hashable], append_only: bool) -> Inclusion:
    missing = {v: n for v, n in inside.items() if v not in outside}
    return Inclusion(
        missing_values=len(missing),
        missing_rows=None if append_only else sum(missing.values()),
        error=len(missing) / len(inside) if inside else 0.0,
        coverage=len(inside & outside) / len(outside) if outside else 0.0,
    )


def missing_values(database: Database, dependent: Column, referenced: Column) -> set[Hashable]:
    """The values of a column that another one lacks."""
    inside, outside = (frequencies(database[t], name) for t, name in (dependent, referenced))
    return inside.keys() - outside.keys()


def inclusions(
    database: Database, max_error: float = 0.0, with_empty: bool = False
) -> dict[tuple[Column, Column], Inclusion]:
    """Every A in B of two different columns whose error is at most `max_error`.

    A column without values takes part in none, or, `with_empty`, is in every other one.

    >>> rows = [("a", "a", "f", "a"), ("b", "b", "e", "a"), ("b", "c", "f", "c"), ("d", "d", "f", "c")]
    >>> table1 = {"r": Table(("A", "B", "C", "D"), rows)}
    >>> [(a, b) for (_, a), (_, b) in inclusions(table1)]
    [('A', 'B'), ('D', 'B')]
    """
    values = {(t, name): frequencies(database[t], name) for t, name in columns_of(database)}
    found = {}
    for a, b in product(values, values):
        takes_part = (values[a] and values[b]) or (with_empty and not values[a])
        if a != b and takes_part:
            one = _inclusion(values[a], values[b], database[a[0]].append_only)
            if one.error <= max_error:
                found[a, b] = one
    return found


def clusters(database: Database) -> dict[Cluster, int]:
    """The sets of columns that share a value and no larger set does, with the number of such values.

    Definition 4.1 of the paper; by its Lemma 4.2, A is in B iff every cluster with A has B:

    >>> rows = [("a", "a", "f", "a"), ("b", "b", "e", "a"), ("b", "c", "f", "c"), ("d", "d", "f", "c")]
    >>> table1 = {"r": Table(("A", "B", "C", "D"), rows)}
    >>> shaped = clusters(table1)
    >>> sorted(("".join(sorted(name for _, name in c)), n) for c, n in shaped.items())
    [('AB', 2), ('ABD', 1), ('BD', 1), ('C', 2)]
    >>> lemma = {
    ...     (a, b)
    ...     for a in columns_of(table1)
    ...     for b in columns_of(table1)
    ...     if a != b and all(b in c for c in shaped if a in c)
    ... }
    >>> lemma == set(inclusions(table1))
    True
    """
    where: dict[Hashable, set[Column]] = {}
    for column in columns_of(database):
        for value in frequencies(database[column[0]], column[1]):
            where.setdefault(value, set()).add(column)
    return dict(Counter(frozenset(c) for c in where.values()))


# -- of several columns ------------------------------------------------------------------------------------


def holds(database: Database, dependent: Side, referenced: Side) -> bool:
    """SQL's MATCH PARTIAL: what is not NULL in a row occurs in the referenced columns of some row.

    >>> d = {"t": Table(("a", "b"), [(1, 1), (2, None)]), "u": Table(("x", "y"), [(1, 1), (None, 2), (2, 3)])}
    >>> holds(d, ("t", ("a", "b")), ("u", ("x", "y"))), holds(d, ("u", ("x", "y")), ("t", ("a", "b")))
    (True, False)
    """
    wanted = [[v for v in enumerate(row) if v[1] is not None] for row in _projection(database, dependent)]
    there = list(_projection(database, referenced))
    return all(any(all(row[i] == v for i, v in part) for row in there) for part in wanted)


def _projection(database: Database, side: Side) -> Iterator[tuple[Hashable, ...]]:
    table = database[side[0]]
    at = [table.names.index(name) for name in side[1]]
    return (tuple(comparable(row[c], table.as_text) for c in at) for row in table.rows)


def wide_inclusions(
    database: Database, keys: Mapping[str, Collection[Sequence[str]]], max_arity: int = 4
) -> set[tuple[Side, Side]]:
    """The INDs of 2 to `max_arity` columns whose referenced columns contain a key of their table.

    Every part is an IND of two different columns; dependent columns are in the order of their table.

    >>> child = Table(("p", "s", "n"), [(1, 2, 0), (1, None, 0), (2, 1, 0)])
    >>> parent = Table(("x", "y"), [(1, 2), (2, 1), (2, 2)])
    >>> sorted(wide_inclusions({"child": child, "parent": parent}, {"parent": [("x", "y")]}))[:1]
    [(('child', ('p', 's')), ('parent', ('x', 'y')))]
    """
    unary = set(inclusions(database))
    found = set()
    for t, u in product(database, database):
        chosen = [
            columns
            for arity in range(2, max_arity + 1)
            for columns in combinations(database[t].taking_part, arity)
        ]
        for dependent in chosen:
            partners = [[b for b in database[u].taking_part if ((t, a), (u, b)) in unary] for a in dependent]
            for referenced in product(*partners):
                if (
                    len(set(referenced)) == len(referenced)
                    and any(set(key) <= set(referenced) for key in keys.get(u, ()))
                    and holds(database, (t, dependent), (u, referenced))
                ):
                    found.add(((t, dependent), (u, referenced)))
    return found
