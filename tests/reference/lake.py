"""A lake of tables by definition: Python sets, every pair of columns. Slow, plain, independent.

A table is a name, a header and columns of texts; None is a missing cell. A column is named by its table and
its position, from 0. Nothing here knows of hashes, signatures, postings or parts.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

Cell = str | None
Column = tuple[str, int]  # table, position
Pair = tuple[Column, Column]  # dependent, referenced

FILTERS = ("null", "integer", "non-unique", "coverage")
NORMALISATIONS = ("unicode", "trim", "fold")  # in the order in which they are done
NULL_LIKE = ("", "—", "-", "\u2013", "N/A", "?", "Unknown", "- -", "n/a", "•", "- - -", ".", "??", "(n/a)")
INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)


@dataclass(frozen=True)
class Table:
    """A name, and for each name of the header a column of cells; all columns have as many."""

    name: str
    header: tuple[str, ...]
    columns: tuple[tuple[Cell, ...], ...]

    @property
    def n_rows(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    @property
    def rows(self) -> list[tuple[Cell, ...]]:
        return list(zip(*self.columns, strict=True))


@dataclass(frozen=True)
class Options:
    filters: tuple[str, ...] = FILTERS
    tau: float = 0.2
    null_values: tuple[str, ...] = ()  # beside the usual ones
    normalise: tuple[str, ...] = ()
    max_error: float = 0.0
    min_values: int = 5  # of a dependent column that may lack some

    def normal(self, text: str) -> str:
        return normal(text, self.normalise)

    @cached_property
    def null_like(self) -> frozenset[str]:
        return frozenset(self.normal(text) for text in (*NULL_LIKE, *self.null_values))


def normal(text: str, normalise: Iterable[str]) -> str:
    """
    >>> normal(" ＡＢ ", ("fold", "trim")), normal(" ＡＢ ", ("fold", "unicode", "trim"))
    ('ａｂ', 'ab')
    """
    wanted = set(normalise)
    if "unicode" in wanted:
        text = unicodedata.normalize("NFKC", text)
    if "trim" in wanted:
        text = text.strip()
    if "fold" in wanted:
        text = text.casefold()
    return text


# -- columns -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Facts:
    """What there is to know of one column."""

    values: frozenset[str]
    n_rows: int
    n_missing: int
    n_null_like: int  # cells
    null: bool  # all its values are null-like (so is a column without any)
    integer: bool  # some value is not null-like, and all of those are integers
    unique: bool  # no value twice, no cell missing


def facts(cells: Sequence[Cell], options: Options | None = None) -> Facts:
    """
    >>> facts(["1", "-2", "?", "?"]).integer, facts(["1", "-2", "?", "?"]).unique, facts(["?", ""]).null
    (True, False, True)
    >>> facts(["1", "x"]).integer, facts(["a", None]).unique, facts(["a", "b"]).unique, facts(["١"]).integer
    (False, False, True, False)
    >>> facts(["nil", "7"], Options(null_values=("NIL",), normalise=("fold",))).integer
    True
    """
    options = options or Options()
    texts = [options.normal(cell) for cell in cells if cell is not None]
    values = frozenset(texts)
    meant = [text for text in values if text not in options.null_like]
    return Facts(
        values=values,
        n_rows=len(cells),
        n_missing=len(cells) - len(texts),
        n_null_like=sum(text in options.null_like for text in texts),
        null=not meant,
        integer=bool(meant) and all(INTEGER.fullmatch(text) for text in meant),
        unique=len(values) == len(cells),
    )


def all_facts(tables: Iterable[Table], options: Options) -> dict[Column, Facts]:
    found: dict[Column, Facts] = {}
    for table in tables:
        for position, cells in enumerate(table.columns):
            assert (table.name, position) not in found, f"two tables are called {table.name!r}"
            found[table.name, position] = facts(cells, options)
    return found


# -- inclusion dependencies --------------------------------------------------------------------------------


def max_missing(n_values: int, options: Options) -> int:
    """How many values of a dependent column with so many may be missing in the referenced one.

    >>> max_missing(10, Options(max_error=0.3)), max_missing(4, Options(max_error=0.3))
    (3, 0)
    >>> max_missing(5, Options(max_error=1 - 1e-12))
    4
    """
    if n_values < max(options.min_values, 1):
        return 0
    return min(int(options.max_error * n_values + 1e-9), n_values - 1)


def judged(tables: Sequence[Table], options: Options | None = None) -> dict[Pair, tuple[int, str | None]]:
    """Every IND of the lake: how many values are shared, and the filter that removes it, None if it is kept.

    >>> lake = [Table("t", ("a", "b"), (("x", "y"), ("y", "x"))), Table("u", ("c",), (("x", "x"),))]
    >>> for (a, b), (shared, gone) in judged(lake).items():
    ...     print(*a, *b, shared, gone)
    t 0 t 1 2 None
    t 1 t 0 2 None
    u 0 t 0 1 None
    u 0 t 1 1 None
    """
    options = options or Options()
    columns = all_facts(tables, options)
    found: dict[Pair, tuple[int, str | None]] = {}
    for a, dep in columns.items():
        for b, ref in columns.items():
            if a == b or not dep.values or not ref.values:
                continue
            shared = len(dep.values & ref.values)
            if len(dep.values) - shared <= max_missing(len(dep.values), options):
                found[a, b] = shared, removed_by(dep, ref, shared, options)
    return found


def removed_by(dep: Facts, ref: Facts, shared: int, options: Options) -> str | None:
    """The first filter that removes an IND, or None."""
    reasons = {
        "null": dep.null or ref.null,
        "integer": dep.integer or ref.integer,
        "non-unique": not ref.unique,
        "coverage": shared < options.tau * len(ref.values),
    }
    return next((name for name in FILTERS if name in options.filters and reasons[name]), None)


def inds(tables: Sequence[Table], options: Options | None = None) -> set[Pair]:
    """The INDs that are kept.

    >>> lake = [Table("t", ("a",), (("x", "y", "x"),)), Table("u", ("c",), (("x", "y", "z"),))]
    >>> inds(lake), inds(lake, Options(tau=0.7))
    ({(('t', 0), ('u', 0))}, set())
    """
    return set(shared(tables, options))


def shared(tables: Sequence[Table], options: Options | None = None) -> dict[Pair, int]:
    """The INDs that are kept, each with the number of values that both columns have."""
    return {pair: n for pair, (n, gone) in judged(tables, options).items() if gone is None}


def removed(tables: Sequence[Table], options: Options | None = None) -> dict[str, int]:
    """How many INDs each filter that is on removes; those of an earlier one are not counted again.

    >>> numbers = Table("t", ("a", "b"), (("1", "2"), ("1", "2")))
    >>> removed([numbers]), removed([numbers], Options(filters=("coverage",)))
    ({'null': 0, 'integer': 2, 'non-unique': 0, 'coverage': 0}, {'coverage': 0})
    """
    options = options or Options()
    counts = Counter(gone for _, gone in judged(tables, options).values())
    return {name: counts[name] for name in FILTERS if name in options.filters}


# -- overlaps ----------------------------------------------------------------------------------------------


def overlaps(
    values: frozenset[str],
    tables: Sequence[Table],
    options: Options | None = None,
    top: int = 20,
    asked: Column | None = None,
) -> list[tuple[Column, int, int]]:
    """The columns with the most of some values, but for the one they are of: (column, shared, its values).

    Equal ones by the name of the table, then by position.

    >>> lake = [Table("u", ("a", "b"), (("x", "z"), ("x", "y"))), Table("t", ("c",), (("x", None, "x"),))]
    >>> overlaps(frozenset("xy"), lake, top=2)
    [(('u', 1), 2, 2), (('t', 0), 1, 1)]
    """
    columns = all_facts(tables, options or Options())
    found = [
        (column, len(values & one.values), len(one.values))
        for column, one in columns.items()
        if column != asked and values & one.values
    ]
    return sorted(found, key=lambda overlap: (-overlap[1], overlap[0]))[:top]


# -- tables ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Graph:
    """Tables and the INDs between different ones."""

    components: frozenset[frozenset[str]]  # of at least two tables each
    isolated: frozenset[str]
    edges: dict[tuple[str, str], int] = field(hash=False)  # (dependent, referenced) -> how many INDs


def graph(tables: Sequence[Table], options: Options | None = None) -> Graph:
    """
    >>> a, b, c = (Table(n, ("x",), ((v,),)) for n, v in (("a", "p"), ("b", "p"), ("c", "q")))
    >>> found = graph([a, b, c])
    >>> [sorted(c) for c in found.components], set(found.isolated), found.edges
    ([['a', 'b']], {'c'}, {('a', 'b'): 1, ('b', 'a'): 1})
    """
    edges = Counter((a[0], b[0]) for a, b in inds(tables, options) if a[0] != b[0])
    group = {table.name: {table.name} for table in tables}
    for left, right in edges:
        if group[left] is not group[right]:
            group[left] |= group[right]
            for name in group[right]:
                group[name] = group[left]
    groups = {frozenset(members) for members in group.values()}
    return Graph(
        components=frozenset(g for g in groups if len(g) > 1),
        isolated=frozenset(name for g in groups if len(g) == 1 for name in g),
        edges=dict(sorted(edges.items())),
    )


# -- the score of an IND -----------------------------------------------------------------------------------


def rarity(part: Sequence[Table], options: Options | None = None) -> dict[Column, float]:
    """How rare the values of each column are among the columns of its part; 0 for a column without any."""
    columns = all_facts(part, options or Options())
    n = max(len(columns), 2)
    frequency = Counter(value for one in columns.values() for value in one.values)
    found: dict[Column, float] = {}
    for name, one in columns.items():
        logs = [math.log(n / frequency[value]) / math.log(n) for value in one.values]
        found[name] = min(max(sum(logs) / len(logs), 0.0), 1.0) if logs else 0.0
    return found


def score(dep: Facts, ref: Facts, dep_rarity: float) -> float:
    """How likely an IND is to be a meaningful join, 0 to 1."""
    both = len(dep.values & ref.values)
    coverage = both / len(ref.values)
    uniqueness = min(len(ref.values) / ref.n_rows, 1.0)
    distinctive = dep_rarity * len(dep.values) / (len(dep.values) + 2)
    containment = both / len(dep.values)
    return containment * math.cbrt(coverage * uniqueness * distinctive)
