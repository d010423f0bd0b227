"""What is exported: tables, their keys and foreign keys, as plain values; and which of the keys to declare.

Nothing here is specific to a format. A key is declared as PRIMARY KEY only if its columns are known to be
free of NULL. A table may have hundreds of minimal keys; declared are the primary key, those that foreign
keys refer to and those that are worth it by their score (`key_score`), and the others only if asked for. For
a constraint refuses rows, and that no two rows of today agree proves little: of eight employees no two need
share a first name, of six hundred customers no two a last name. So it takes a name like that of a key, or
batches that it has outlived; and columns that refer to other tables have their names from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from graphlib import TopologicalSorter

from holdfast.app.report.pins import against_text
from holdfast.app.report.texts import name_text, pin_text, safe, side_text
from holdfast.core.words.change import Pin
from holdfast.core.words.column_facts import ColumnFacts, domain
from holdfast.core.words.condition import Absent, Node, Not, read_condition
from holdfast.core.words.dependency import Side
from holdfast.core.words.key_score import KeyScores
from holdfast.core.words.schema import Schema
from holdfast.errors import plural

DECLARED = 0.75  # the score of keys that are declared though nothing refers to them
TELLING_ROWS = 100  # in fewer rows a column is easily without duplicates by chance


@dataclass(frozen=True, slots=True)
class ExportTable:
    """A table: `keys` are its minimal keys (none if they are not tracked), `not_null` the columns that are
    known to hold no NULL, `primary_key` the key that was chosen among all. `longest` are the most bytes that
    a value of a text or binary column has, `distinct` the values that a column has, as far as it is known;
    `stability` is how much each key has outlived; `with_nulls` are the columns known to hold NULL.
    `broken` are the pinned keys that are not unique now: `primary_key` may be one of them."""

    name: str
    schema: Schema
    n_rows: int
    keys: tuple[tuple[str, ...], ...] = ()
    primary_key: tuple[str, ...] | None = None
    not_null: frozenset[str] = frozenset()
    longest: Mapping[str, int] = field(default_factory=dict, hash=False)
    distinct: Mapping[str, int] = field(default_factory=dict, hash=False)
    stability: Mapping[tuple[str, ...], float] = field(default_factory=dict, hash=False)
    with_nulls: frozenset[str] = frozenset()
    broken: tuple[Pin, ...] = ()

    def __post_init__(self) -> None:
        for columns in (*self.keys, self.primary_key or (), tuple(sorted(self.not_null | self.with_nulls))):
            _check_columns(self, columns)

    @property
    def filled(self) -> frozenset[str]:
        """Columns without NULL. A table without rows has none: that there is no NULL in it says nothing."""
        return self.not_null if self.n_rows > 0 else frozenset()

    def key_scores(self) -> KeyScores:
        """How much each key looks meant. Half of the longest text's bytes stand for the mean."""
        return KeyScores(
            [
                ColumnFacts(
                    table=self.name,
                    column=name,
                    position=position,
                    domain=domain(type_, as_text=False),
                    n_rows=self.n_rows,
                    n_values=self.n_rows - 1 if name in self.with_nulls else None,
                    n_distinct=self.distinct.get(name, self.n_rows),
                    low=None,
                    high=None,
                    integers=type_.whole,
                    mean_length=self.longest[name] / 2 if name in self.longest else None,
                )
                for position, (name, type_) in enumerate(
                    zip(self.schema.names, self.schema.types, strict=True)
                )
            ],
            self.stability,
        )

    @property
    def tells_keys(self) -> bool:
        """Whether there are enough rows for a column without duplicates to be taken for a key."""
        return self.n_rows >= TELLING_ROWS

    @property
    def few_rows(self) -> str:
        """Why single columns are not declared, where `tells_keys` is false."""
        return f"in {plural(self.n_rows, 'row')} values may differ by chance"

    def tells_apart(self, columns: Iterable[str]) -> bool:
        """Whether the columns contain a key of at least one column.

        The empty key is in every set of columns, but all it says is that there is at most one row.
        """
        names, primary = set(columns), () if self.lacks_primary else self.primary_key or ()
        return any(key and names.issuperset(key) for key in (primary, *self.keys))

    @property
    def lacks_primary(self) -> bool:
        """Whether the primary key is a pinned one that is not unique now."""
        return any(set(pin.columns) == set(self.primary_key or ()) for pin in self.broken)


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key to propose. `error` is the share of its values that are missing, 0 if it holds. It is not
    `proved` where its column has no value, and only its name tells what it refers to."""

    dependent: Side
    referenced: Side
    score: float
    error: float
    proved: bool = True

    @property
    def holds(self) -> bool:
        # And not `not error > 0`, which an unknown (NaN) error would pass.
        return self.proved and self.error <= 0

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        return tuple(zip(self.dependent.columns, self.referenced.columns, strict=True))

    @property
    def doubt(self) -> str:
        """Why it is not taken to hold."""
        if not self.proved:
            return "unproved, as its column has no value"
        return f"{100 * self.error:.2g} % of its values are missing"

    def __str__(self) -> str:
        return f"{side_text(self.dependent)} in {side_text(self.referenced)}"


@dataclass(frozen=True, slots=True)
class Model:
    """A version of a workspace, or a part of it: a foreign key may refer to a table that is left out.

    `pins` are the conditions on each row that somebody relies on.
    """

    version: int
    tables: tuple[ExportTable, ...]
    foreign_keys: tuple[ForeignKey, ...] = ()
    pins: tuple[Pin, ...] = ()

    def __post_init__(self) -> None:
        tables = self.by_name()
        if len(tables) < len(self.tables):
            raise ValueError("two tables of an export have the same name")
        for foreign_key in self.foreign_keys:
            child, parent = foreign_key.dependent, foreign_key.referenced
            if not 0 < len(child.columns) == len(parent.columns):
                raise ValueError(f"{foreign_key} does not pair its columns")
            if child.table not in tables:
                raise ValueError(f"{foreign_key} starts at a table that is left out")
            for side in (child, parent):
                if side.table in tables:
                    _check_columns(tables[side.table], side.columns)
        # The same pairs of columns in another order are the same foreign key.
        different = {(f.dependent.table, f.referenced.table, frozenset(f.pairs)) for f in self.foreign_keys}
        if len(different) < len(self.foreign_keys):
            raise ValueError("a foreign key is given twice")

    def referring(self, table: str) -> set[str]:
        """The columns of a table that refer to others, or to itself."""
        return {c for f in self.foreign_keys if f.dependent.table == table for c in f.dependent.columns}

    def by_name(self) -> dict[str, ExportTable]:
        return {t.name: t for t in self.tables}

    def conditions(self, table: ExportTable) -> list[tuple[Pin, Node]]:
        """The pinned conditions of a table, each as it is read; not those that NOT NULL says already."""
        pinned = [p for p in self.pins if p.condition is not None and p.table == table.name]
        read = [(p, read_condition(str(p), table.schema)) for p in pinned]
        return [(p, node) for p, node in read if not (p.holds and _says_filled(node, table))]


def _says_filled(node: Node, table: ExportTable) -> bool:
    return isinstance(node, Not) and isinstance(node.part, Absent) and node.part.column in table.filled


def broken_text(pin: Pin) -> str:
    """A pinned key that is not unique now, and why it is not declared."""
    reason = safe(f" ({pin.terms.reason})") if pin.terms.reason else ""
    return f"pinned {pin_text(pin, with_table=True)}{reason}: {doubt_of(pin)}"


def doubt_of(pin: Pin) -> str:
    """Why what is pinned is not declared: it does not hold, or need not for each row; "" if nothing is."""
    if not pin.holds:
        return f"it does not hold{'' if pin.n_violations is None else f': {against_text(pin)}'}"
    if pin.terms.at_most:
        now = plural(pin.n_violations or 0, "row")
        return f"it is pinned with a tolerance: at most {pin.terms.at_most}, now {now}"
    return ""


def _check_columns(table: ExportTable, columns: tuple[str, ...]) -> None:
    for column in columns:
        if table.schema.position(column) is None:
            raise ValueError(f"table {table.name!r} has no column {column!r}")
    if len(set(columns)) < len(columns):
        raise ValueError(f"{columns!r} of table {table.name!r} has a column twice")


def header(model: Model) -> str:
    """The line that every export begins with, as a comment."""
    return (
        f"holdfast, version {model.version} of the workspace: "
        "proposed by what holds in the data, not declared"
    )


@dataclass(frozen=True, slots=True)
class ChosenKeys:
    """The keys of a table to declare: the primary key as it was given, the others with their columns in the
    order of the schema, narrow ones first.

    `nullable` are the columns that keep the chosen key from being the primary key. `left_out` counts the
    minimal keys that are not among these; `at_most_one_row` stands for the empty key, which is none of them.
    """

    primary: tuple[str, ...] | None
    unique: tuple[tuple[str, ...], ...]
    nullable: tuple[str, ...]
    left_out: int
    at_most_one_row: bool
    referring: int  # of those left out the ones of which all columns refer to other tables

    def remark_left_out(self, table: ExportTable) -> list[str]:
        """How many keys are not declared, and why."""
        if not self.left_out:
            return []
        text = f"keys of {name_text(table.name)} that are not declared here: {self.left_out:,}"
        return [f"{text} ({self._reason_left_out() if table.tells_keys else table.few_rows})"]

    def _reason_left_out(self) -> str:
        n = self.left_out - self.referring
        reasons = ["nothing refers to it, and it may be unique by chance"] * (n == 1)
        reasons += ["nothing refers to them, and they may be unique by chance"] * (n > 1)
        reasons += [f"all columns of {self.referring:,} refer to other tables"] * (self.referring > 0)
        return "; ".join(reasons)

    def remark(self, table: str) -> list[str]:
        """Why a table has no key, where that might surprise."""
        empty = f"{name_text(table)} has at most one row: that nothing is in it twice makes no key"
        return [empty] if self.at_most_one_row else []

    def all(self) -> tuple[tuple[str, ...], ...]:
        return ((self.primary,) if self.primary else ()) + self.unique

    def declared(self, columns: Iterable[str]) -> tuple[str, ...] | None:
        """The declared key of exactly these columns, in its own order."""
        wanted = set(columns)
        return next((key for key in self.all() if set(key) == wanted), None)


def choose_keys(model: Model, *, all_keys: bool = False) -> dict[str, ChosenKeys]:
    """The keys to declare, by table."""
    referenced: dict[str, list[tuple[str, ...]]] = {t.name: [] for t in model.tables}
    for foreign_key in model.foreign_keys:
        side = foreign_key.referenced
        if side.table in referenced:
            referenced[side.table].append(side.columns)
    return {t.name: _choose(t, referenced[t.name], model.referring(t.name), all_keys) for t in model.tables}


def _choose(
    table: ExportTable, referenced: list[tuple[str, ...]], referring: set[str], all_keys: bool
) -> ChosenKeys:
    primary = table.primary_key or None
    wanted = [columns for columns in referenced if table.tells_apart(columns)]
    scores = table.key_scores()
    best = scores.primary(table.keys) if primary is None else None
    wanted += [key for key in (best,) if key]
    if table.lacks_primary:  # no other one is declared in its place
        primary = None
    worth = (scores.scores(table.keys) >= DECLARED).tolist()
    wanted += [
        key
        for key, is_worth in zip(table.keys, worth, strict=True)
        if key and (all_keys or (is_worth and not referring.issuperset(key)))
    ]
    nullable = tuple(c for c in primary or () if c not in table.filled)
    if primary and nullable:
        wanted.append(primary)
        primary = None
    unique: dict[frozenset[str], tuple[str, ...]] = {}
    for key in wanted:
        if set(key) != set(primary or ()):
            unique[frozenset(key)] = tuple(c for c in table.schema.names if c in key)
    in_order = sorted(unique.values(), key=lambda key: (len(key), [table.schema.position(c) for c in key]))
    declared = {*unique, frozenset(primary or ())}
    left_out = [key for key in table.keys if key and frozenset(key) not in declared]
    borrowed = sum(map(referring.issuperset, left_out))
    return ChosenKeys(primary, tuple(in_order), nullable, len(left_out), () in table.keys, borrowed)


def creation_order(
    model: Model, foreign_keys: Iterable[ForeignKey]
) -> tuple[list[ExportTable], frozenset[ForeignKey]]:
    """The tables with parents before their children, and the foreign keys that this order cannot serve.

    Those are self references and, of every cycle, the one with the lowest score: the others are taken
    best first, each unless its parent is known to need its child already. O(F * (T + F)) for F foreign keys.
    """
    parents: dict[str, set[str]] = {t.name: set() for t in model.tables}
    late = []
    # A score that is not a number comes last: compared as it is, it would scramble the order.
    for foreign_key in sorted(
        foreign_keys,
        key=lambda f: (not f.score >= 0, -f.score if f.score >= 0 else 0, f.dependent, f.referenced),
    ):
        child, parent = foreign_key.dependent.table, foreign_key.referenced.table
        if child in _ancestors(parent, parents):
            late.append(foreign_key)
        else:
            parents[child].add(parent)
    tables = model.by_name()
    rank = {name: i for i, name in enumerate(tables)}
    # Sets have no order of their own to rely on: the same model must give the same text.
    graph = {name: sorted(above, key=rank.__getitem__) for name, above in parents.items()}
    return [tables[name] for name in TopologicalSorter(graph).static_order()], frozenset(late)


def _ancestors(name: str, parents: Mapping[str, set[str]]) -> set[str]:
    """The table itself and all that it needs."""
    ancestors, waiting = {name}, [name]
    while waiting:
        new = parents[waiting.pop()] - ancestors
        ancestors |= new
        waiting += new
    return ancestors
