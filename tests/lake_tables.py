"""What lakes are made of in tests: tables of texts in which inclusions are likely, options, and hard cases.

Values come from small pools where everything is at hand that a lake treats in its own way: what stands for
nothing, integers and what only looks like one, texts that differ until they are normalised, missing cells.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from reference.lake import FILTERS, NORMALISATIONS, NULL_LIKE, Cell, Column, Options, Pair, Table

# -- values ------------------------------------------------------------------------------------------------

WORDS = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "ibis", "jay", "kite", "lynx")
INTEGERS = ("1", "2", "3", "4", "-1", "+2", "0", "007", "10", "99999999999999999999")
NO_INTEGERS = ("1.0", " 1", "1 ", "1e3", "--1", "+", "\u0661", "\uff11", "1,000", "0x1")  # none as they are
NOTHINGS = (*NULL_LIKE, "none", "NIL", "unknown", " ", "  - ", "n.a.")  # the last are null-like only at times
# Groups of texts that one normalisation or several make equal.
VARIANTS = (
    *("Cat", "CAT", " cat", "cat\t", "\u00a0cat", "\uff43\uff41\uff54", "\ufb01n", "fin", "FIN"),
    *("straße", "STRASSE", "strasse", "\u2460", "1", "é", "e\u0301", "É", "\u0130", "i\u0307"),
    *("\u03a9", "\u2126", "\u03c9", "\u2003x", "x"),
)
AWKWARD = (
    *("", "a,b", 'say "hi"', "two\nlines", "tab\there", "\\", "'", ";", "|", "日本語", "\U0001f600"),
    *("x" * 1_001, "x" * 1_000 + "y", "null", "NaN", "#1", "true", "\ufeff", "\x00", "\r"),
)

POOLS: dict[str, tuple[str, ...]] = {
    "words": WORDS,
    "integers": INTEGERS,
    "mixed": ("ant", "bee", "1", "2", "", "-", "cat", "3", "?", "dog", "N/A", "4"),
    "near integers": (*NO_INTEGERS, "1", "2"),
    "nothings": (*NOTHINGS, "ant", "1"),
    "variants": VARIANTS,
    "awkward": AWKWARD,
}


# -- tables ------------------------------------------------------------------------------------------------


@st.composite
def columns(draw: st.DrawFn, pool: Sequence[str], n_rows: int) -> tuple[Cell, ...]:
    """A column of any of the kinds that lakes have: a listing, a reference to one, ranks, nothing, ..."""
    kind = draw(
        st.sampled_from(("drawn", "listed", "drawn", "listed", "gaps", "one", "ranks", "nothing", "missing"))
    )
    if kind == "ranks":
        return tuple(str(i + 1) for i in range(n_rows))
    if kind == "missing":
        return (None,) * n_rows
    if kind == "one":
        return (draw(st.sampled_from(pool)),) * n_rows
    if kind == "nothing":
        return tuple(draw(st.lists(st.sampled_from(NOTHINGS), min_size=n_rows, max_size=n_rows)))
    if kind == "listed":  # the first values of the pool, each once: so listings contain each other
        first = draw(st.sampled_from((0, 0, 1)))
        return tuple(itertools.islice(itertools.cycle((*pool[first:], *pool[:first])), n_rows))
    few = pool[: draw(st.sampled_from((2, 4, 8, len(pool))))]
    cells: st.SearchStrategy[Cell] = st.sampled_from((*few, None) if kind == "gaps" else few)
    return tuple(draw(st.lists(cells, min_size=n_rows, max_size=n_rows)))


@st.composite
def tables(
    draw: st.DrawFn, name: str, pools: Sequence[str] = tuple(POOLS), max_columns: int = 4, max_rows: int = 12
) -> Table:
    """A table with columns from some of the pools; perhaps without rows, perhaps without columns."""
    n_columns = draw(st.integers(0 if max_columns < 2 else draw(st.sampled_from((0, 1, 1, 1))), max_columns))
    n_rows = draw(st.sampled_from((3, 5, 6, 8, 2, 1, max_rows, 0)))
    chosen = draw(st.lists(st.sampled_from(list(pools)), min_size=n_columns, max_size=n_columns))
    cells = tuple(draw(columns(POOLS[pool], min(n_rows, max_rows))) for pool in chosen)
    header = tuple(
        draw(st.lists(st.sampled_from(("a", "b", "", "a ", "Name")), min_size=n_columns, max_size=n_columns))
    )
    return Table(name, header, cells)


@st.composite
def lakes(
    draw: st.DrawFn,
    max_tables: int = 6,
    min_tables: int = 0,
    max_columns: int = 4,
    max_rows: int = 12,
    names: Callable[[int], str] = "t{}".format,
    first: int = 0,
    without: Sequence[str] = (),
) -> list[Table]:
    """Some tables, numbered from `first`, whose values come from one pool or two, or from all of them."""
    usable = [pool for pool in POOLS if pool not in without]
    theme = draw(st.sampled_from([usable, *([pool] for pool in usable), usable[:2], usable[2:4]]))
    n = draw(st.integers(min_tables, max_tables))
    return [draw(tables(names(first + i), theme, max_columns, max_rows)) for i in range(n)]


# -- options -----------------------------------------------------------------------------------------------


@st.composite
def filters(draw: st.DrawFn) -> tuple[str, ...]:
    """All, none, or any of the filters."""
    some = st.lists(st.sampled_from(FILTERS), unique=True).map(
        lambda chosen: tuple(f for f in FILTERS if f in chosen)
    )
    return draw(st.sampled_from([FILTERS, ()]) | some)


@st.composite
def options(draw: st.DrawFn, partial: bool = True) -> Options:
    """Options as the oracle takes them; `partial`: perhaps with INDs that a few values violate."""
    normalise = draw(
        st.sampled_from([(), (), NORMALISATIONS]) | st.sets(st.sampled_from(NORMALISATIONS)).map(tuple)
    )
    max_error = draw(st.sampled_from([0.0, 0.0, 0.1, 0.2, 0.5, 0.9])) if partial else 0.0
    return Options(
        filters=draw(filters()),
        tau=draw(st.sampled_from([0.2, 0.0, 0.5, 1.0, 1 / 3, 0.7])),
        null_values=draw(st.sampled_from([(), (), ("none",), ("NIL", " ant "), ("1",)])),
        normalise=tuple(n for n in NORMALISATIONS if n in normalise),
        max_error=max_error,
        min_values=draw(st.sampled_from([5, 1, 2, 4])) if max_error else 5,
    )


# Signatures from hopeless (nearly every pair is a candidate) to good: (m, k, p).
BLOOMS = ((8, 2, 1), (1, 1, 1), (64, 3, 1), (63, 2, 3), (650, 6, 2))


@dataclass(frozen=True)
class Matching:
    """How INDs are looked for, which must not change what is found."""

    proposer: str
    strategy: str
    m: int
    k: int
    p: int

    def arguments(self) -> dict[str, Any]:
        return {"proposer": self.proposer, "strategy": self.strategy, "m": self.m, "k": self.k, "p": self.p}


@st.composite
def matchings(draw: st.DrawFn, exact: bool = True) -> Matching:
    """Any way of matching that finds exact INDs; partial ones are found through the index alone."""
    proposers = ["signatures", "index", "auto"] if exact else ["index", "auto"]
    m, k, p = draw(st.sampled_from(BLOOMS))
    strategy = draw(st.sampled_from(["dep2refs", "ref2deps"]))
    return Matching(draw(st.sampled_from(proposers)), strategy, m, k, p)


# -- hard cases --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A lake with its INDs when no filter is on, known without looking."""

    tables: list[Table]
    pairs: set[Pair]


def one_column(name: str, cells: Sequence[Cell]) -> Table:
    return Table(name, ("c",), (tuple(cells),))


def chain(n: int) -> Case:
    """Column i has the values 0 to i: every column is in all later ones."""
    lake = [one_column(f"t{i}", [f"v{j}" for j in range(i + 1)]) for i in range(n)]
    return Case(lake, {((f"t{i}", 0), (f"t{j}", 0)) for i in range(n) for j in range(i + 1, n)})


def equal(n: int, n_values: int = 3) -> Case:
    """All columns have the same values, in one table and across tables."""
    cells = tuple(f"v{j}" for j in range(n_values))
    lake = [Table(f"t{i}", ("a", "b"), (cells, cells[::-1])) for i in range((n + 1) // 2)]
    if n % 2:
        lake[-1] = one_column(lake[-1].name, cells)
    return Case(lake, set(itertools.permutations(_columns(lake), 2)))


def crossed(n: int) -> Case:
    """Column i lacks value i only: each pair shares nearly everything and no IND holds."""
    return Case([one_column(f"t{i}", [f"v{j}" for j in range(n) if j != i]) for i in range(n)], set())


def one_in_all(n: int) -> Case:
    """A value that every column has, alone in the first and beside one of its own in the others."""
    lake = [one_column("t0", ["x"]), *(one_column(f"t{i}", ["x", f"v{i}"]) for i in range(1, n))]
    return Case(lake, {(("t0", 0), (f"t{i}", 0)) for i in range(1, n)})


def apart(n: int) -> Case:
    """Columns without any value in common."""
    return Case([one_column(f"t{i}", [f"v{i}-{j}" for j in range(3)]) for i in range(n)], set())


def one_long(n: int) -> Case:
    """A column with n values, and columns with one of them each."""
    lake = [
        one_column("long", [f"v{i}" for i in range(n)]),
        *(one_column(f"t{i}", [f"v{i}"]) for i in range(n)),
    ]
    return Case(lake, {((f"t{i}", 0), ("long", 0)) for i in range(n)})


def wide(n: int) -> Case:
    """A table of n columns, the last of which repeats the first, and a table of one cell, a value of both."""
    cells = [(f"v{i}", f"w{i}") for i in range(n - 1)]
    table = Table("wide", ("c",) * n, (*cells, cells[0]))
    pairs = {(("wide", 0), ("wide", n - 1)), (("wide", n - 1), ("wide", 0))}
    return Case([table, one_column("cell", ["v0"])], pairs | {(("cell", 0), ("wide", c)) for c in (0, n - 1)})


def twice() -> Case:
    """The same table under two names: its second column is in the first one."""
    columns = (("x", "y", "z"), ("x", "x", "y"))
    lake = [Table(name, ("a", "b"), columns) for name in ("one", "other")]
    a, b, c, d = _columns(lake)
    return Case(lake, {(a, c), (c, a), (b, d), (d, b), (b, a), (b, c), (d, a), (d, c)})


def without_values() -> Case:
    """Tables without columns, without rows, and with missing cells only, around one IND."""
    lake = [
        Table("no columns", (), ()),
        Table("no rows", ("a", "b"), ((), ())),
        Table("missing", ("a",), ((None, None),)),
        one_column("some", ["x", None]),
        one_column("more", ["x", "y"]),
        one_column("empty text", [""]),
    ]
    return Case(lake, {(("some", 0), ("more", 0))})


def nothing_at_all() -> Case:
    return Case([], set())


CASES: dict[str, Callable[[], Case]] = {
    "nothing at all": nothing_at_all,
    "without values": without_values,
    "one column": lambda: chain(1),
    "a chain of 70": lambda: chain(70),
    "65 equal columns": lambda: equal(65),
    "crossed": lambda: crossed(20),
    "one value in all": lambda: one_in_all(130),
    "apart": lambda: apart(70),
    "the same table twice": twice,
    "1,000 columns in a table": lambda: wide(1_000),
    "one long column": lambda: one_long(300),
}


def _columns(lake: Sequence[Table]) -> list[Column]:
    return [(table.name, position) for table in lake for position in range(len(table.columns))]


# -- files -------------------------------------------------------------------------------------------------


def renamed(lake: Sequence[Table], name: Callable[[int, str], str]) -> list[Table]:
    """The same tables under other names, by number and old name: those that their files give them."""
    return [replace(table, name=name(i, table.name)) for i, table in enumerate(lake)]


def json_line(table: Table) -> str:
    """A table as one line of JSON; a missing cell is null."""
    fields = {"name": table.name, "headers": list(table.header), "rows": [list(row) for row in table.rows]}
    return json.dumps(fields, ensure_ascii=False)


def write_json_lines(lake: Sequence[Table], file: Path) -> Path:
    """All tables in one file; by default table i is then called `<file>#<i + 1>`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json_line(table) + "\n" for table in lake), encoding="utf-8", newline="")
    return file


def write_parquet_files(lake: Sequence[Table], folder: Path) -> Path:
    """A Parquet file for each table, called as the table is; columns are called c0, c1, ..."""
    for table in lake:
        file = folder / table.name
        file.parent.mkdir(parents=True, exist_ok=True)
        arrays = [pa.array(cells, pa.string()) for cells in table.columns]
        pq.write_table(pa.table(arrays, names=[f"c{i}" for i in range(len(arrays))]), file)
    return folder


def fits_csv(table: Table) -> bool:
    """Whether a CSV file can hold a table: with columns, no missing cells, and no text that readers spoil."""
    texts = [cell for cells in table.columns for cell in cells]
    # A line feed is kept within quotes; a record of one empty cell looks like no record.
    spoiled = any(t is None or "\x00" in t or "\r" in t or "\ufeff" in t for t in texts)
    return bool(table.columns) and not spoiled and not (len(table.columns) == 1 and "" in texts)


def csv_text(table: Table, delimiter: str = ",") -> str:
    text = io.StringIO()
    out = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    out.writerow(table.header)
    out.writerows(table.rows)
    return text.getvalue()


def write_csv_files(lake: Sequence[Table], folder: Path) -> Path:
    """A CSV file for each table, called as the table is."""
    for table in lake:
        file = folder / table.name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(csv_text(table), encoding="utf-8", newline="")
    return folder
