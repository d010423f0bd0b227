"""What tests are fed with: columns of every type, rows in which duplicates are likely, tables, batches.

A `Shape` is a schema with a small pool of values per column. Rows are drawn from the pools, so that two
rows agree often, on any combination of columns, and NULL, NaN, -0.0, the empty text and the ends of each
type's range turn up all the time.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from reference.keys import Row, canonical

DAY = dt.date
CLOCK = dt.datetime
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


_EXACT = Context(prec=80)


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    largest = 10**precision - 1
    unscaled = st.one_of(st.sampled_from([0, 1, -1, 100, largest, -largest]), st.integers(-largest, largest))
    return unscaled.map(lambda n: Decimal(n).scaleb(-scale, context=_EXACT))


TEXTS = ["", "a", "A", "a ", "007", "7", "NULL", "\x00", "é", "e\u0301", "日本", "\U0001f600", "x" * 40]
FLOATS = [0.0, -0.0, 1.5, -1.5, float("nan"), float("inf"), float("-inf"), 5e-324, 1.7976931348623157e308]

# Type name -> (Arrow type, values). The names are for people who read a failing example.
TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int": (pa.int64(), st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63)]) | st.integers(-(2**63), 2**63 - 1)),
    "small int": (pa.int8(), st.integers(-128, 127)),
    "uint": (pa.uint64(), st.sampled_from([0, 1, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1)),
    "float": (pa.float64(), st.sampled_from(FLOATS) | st.floats()),
    "text": (pa.string(), st.sampled_from(TEXTS) | st.text(max_size=12)),
    "large text": (pa.large_string(), st.sampled_from(TEXTS)),
    "binary": (pa.binary(), st.sampled_from([b"", b"\x00", b"\xff", b"a"]) | st.binary(max_size=70)),
    "bool": (pa.bool_(), st.booleans()),
    "date": (pa.date32(), st.sampled_from([DAY(1970, 1, 1), DAY.min, DAY.max]) | st.dates()),
    "time": (pa.time64("us"), st.times()),
    "timestamp": (
        pa.timestamp("us"),
        st.sampled_from([CLOCK(1970, 1, 1), CLOCK(1969, 12, 31, 23, 59, 59, 999999)]) | st.datetimes(),
    ),
    "instant": (
        pa.timestamp("ms", tz="UTC"),
        st.integers(-(10**10), 10**10).map(lambda ms: EPOCH + dt.timedelta(milliseconds=ms)),
    ),
    "decimal": (pa.decimal128(12, 2), _decimals(12, 2)),
    "decimal of 18 digits": (pa.decimal128(18, 0), _decimals(18, 0)),
    "wide decimal": (pa.decimal128(30, 5), _decimals(30, 5)),
    "very wide decimal": (pa.decimal256(60, 10), _decimals(60, 10)),
}


@dataclass(frozen=True)
class Shape:
    """A schema, and for each column the values to draw from."""

    schema: pa.Schema
    pools: tuple[tuple[Any, ...], ...]

    @property
    def n_columns(self) -> int:
        return len(self.pools)

    @property
    def names(self) -> list[str]:
        return list(self.schema.names)

    def row(self) -> st.SearchStrategy[Row]:
        return st.tuples(*(st.sampled_from(pool) for pool in self.pools))

    def rows(self, min_size: int = 0, max_size: int = 16) -> st.SearchStrategy[list[Row]]:
        return st.lists(self.row(), min_size=min_size, max_size=max_size)

    def table(self, rows: Sequence[Row], columns: Sequence[str] | None = None) -> pa.Table:
        """Rows as an Arrow table, with all columns or some."""
        wanted = self.names if columns is None else columns
        at = [self.names.index(name) for name in wanted]
        arrays = [pa.array([row[c] for row in rows], self.schema.field(c).type) for c in at]
        return pa.table(arrays, schema=pa.schema([self.schema.field(c) for c in at]))


@st.composite
def shapes(
    draw: st.DrawFn,
    min_columns: int = 1,
    max_columns: int = 5,
    types: Sequence[str] = tuple(TYPES),
    pool_size: int = 4,
    with_nulls: bool = True,
) -> Shape:
    """Schemas with pools of up to `pool_size` different values, NULL perhaps among them."""
    names = draw(st.lists(st.sampled_from(types), min_size=min_columns, max_size=max_columns))
    fields, pools = [], []
    for c, name in enumerate(names):
        type_, values = TYPES[name]
        unique = st.lists(values, min_size=1, max_size=pool_size, unique_by=canonical)
        pool = draw(unique)
        if 0.0 in pool and name == "float":
            pool = [*pool, -0.0, 0.0]  # the same value, spelled twice
        if with_nulls and draw(st.booleans()):
            pool = [*pool, None]
        fields.append(pa.field(f"c{c}", type_))
        pools.append(tuple(pool))
    return Shape(pa.schema(fields), tuple(pools))


# Twelve values of some types, the odd ones first: pools of any size without drawing each value.
VARIED: dict[str, list[Any]] = {
    "int": [0, -1, 2**63 - 1, -(2**63), *range(1, 9)],
    "uint": [0, 2**64 - 1, 2**63, *range(1, 10)],
    "float": [float("nan"), -0.0, 0.0, float("inf"), float("-inf"), *(n / 4 for n in range(1, 8))],
    "text": ["", "a", "A", "é", "e\u0301", "日本", "7", "007", *"bcde"],
    "binary": [b"", b"\x00", b"\xff", *(bytes([n]) * 40 for n in range(9))],
    "bool": [False, True],
    "date": [DAY(1970, 1, 1), DAY.min, DAY.max, *(DAY(2026, m, 1) for m in range(1, 10))],
    "wide decimal": [Decimal(n).scaleb(-5) for n in (0, 1, -1, 10**20, 10**20 + 1, *range(2, 9))],
}


@st.composite
def varied_shapes(
    draw: st.DrawFn, types: Sequence[str] = tuple(VARIED), min_columns: int = 1, max_columns: int = 5
) -> Shape:
    """Schemas with columns from constant to nearly unique, so that tables have keys of all sizes.

    Cheap to draw, hence for state machines.
    """
    names = draw(st.lists(st.sampled_from(types), min_size=min_columns, max_size=max_columns))
    fields, pools = [], []
    for c, name in enumerate(names):
        size = draw(st.sampled_from([12, 6, 3, 2, 1]))
        null = draw(st.booleans())
        fields.append(pa.field(f"c{c}", TYPES[name][0]))
        pools.append((*VARIED[name][:size], *([None] if null else [])))
    return Shape(pa.schema(fields), tuple(pools))


@dataclass(frozen=True)
class Filled:
    """A shape with some rows of it."""

    shape: Shape
    rows: tuple[Row, ...]

    @property
    def table(self) -> pa.Table:
        return self.shape.table(self.rows)


@st.composite
def filled(draw: st.DrawFn, max_rows: int = 16, **shape: Any) -> Filled:
    """Tables."""
    found = draw(shapes(**shape))
    return Filled(found, tuple(draw(found.rows(max_size=max_rows))))


@dataclass(frozen=True)
class BatchOfRows:
    """Rows to delete, all of them there, and rows to insert."""

    deletes: tuple[Row, ...]
    inserts: tuple[Row, ...]

    def applied_to(self, rows: Sequence[Row]) -> list[Row]:
        left = list(rows)
        for row in self.deletes:
            left.remove(row)
        return [*left, *self.inserts]


@st.composite
def batches(draw: st.DrawFn, shape: Shape, live: Sequence[Row], max_rows: int = 5) -> BatchOfRows:
    """A batch on a table that has the `live` rows; each of them is deleted at most once.

    Rows are named by identity, so a NaN in a row does not stop `list.remove` from finding it.
    """
    gone: list[Row] = []
    if live:
        at = draw(st.lists(st.integers(0, len(live) - 1), unique=True, max_size=max_rows))
        gone = [live[i] for i in at]
    return BatchOfRows(tuple(gone), tuple(draw(shape.rows(max_size=max_rows))))
