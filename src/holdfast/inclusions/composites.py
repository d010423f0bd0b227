"""Composite inclusion dependencies, discovered level by level and maintained batch by batch.

(A1..Ak) of T is included in (B1..Bk) of U if what is not NULL in the A's of each row of T occurs in the
B's of some row of U (SQL's MATCH PARTIAL). So every part of an inclusion is one, too; and if all parts of a
set of pairs hold, only rows without NULL in the A's can refute it. Listed are those whose B's contain
a minimal key of U; other sets are looked at only where those depend on them.

A batch has no need to look at everything again. A set that

    held         has T's new rows looked up in U, and U's deleted rows in T, if U has no other such row
    was refuted  still is while the row that refutes it is live, and U got no row with its tuple
    is unknown   has all rows of T looked up in U, unless some of the first few refute it

Where the sets of one size are too many, those of two tables are complete up to the size below, and
`Composites.stopped` says so. Whether that is so follows from the rows alone: a batch on which sets become few
again brings them back.

Which sets are looked at follows from the inclusions of single columns, the keys, and which smaller sets hold.
So if a batch changes none of the three, no other set has to be looked at: the usual case, and one job.

Cost: one job a level at most, whatever the number of tables and sets. Pairs of tables neither of which a
batch changes are not looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from holdfast.core.words.dependency import Side
from holdfast.inclusions import composite_state as stored
from holdfast.inclusions.composite_state import Composite, Composites
from holdfast.inclusions.tuples import Look, TableRows, refuting_rows, still_missing

MAX_ARITY = 4

Pair = tuple[int, int]  # positions of a dependent and of a referenced column
Node = tuple[Pair, ...]  # ascending: in the order of the dependent table's schema
Tables = Mapping[str, TableRows]


@dataclass(frozen=True)
class CompositeStep:
    """The composite inclusions after a batch, and what it changed among those that are listed."""

    after: Composites
    # With ids of rows that carry missing tuples; none if a part of one column, or the key, is gone.
    broke: list[tuple[Composite, list[int]]]
    appeared: list[Composite]
    dropped: list[Composite]  # were listed; now there are too many of their size to know
    n_checked: int  # sets of columns for which rows were looked at


def maintain(
    known: Composites,
    unary: Collection[tuple[tuple[str, str], tuple[str, str]]],
    tables: Tables,
    max_arity: int = MAX_ARITY,
    *,
    same_basis: bool = False,
) -> CompositeStep:
    """The composite inclusions after a batch, from those before it.

    `unary` are the inclusions of single columns that hold after it, as ((table, column), (table, column)).
    `tables` are all tables that take part in any; those of which nothing was added or deleted are as they
    were. With `Composites.empty()` everything is found from scratch. `same_basis`: the inclusions of single
    columns and the keys are those before the batch.
    """
    whole = known.max_arity != max_arity
    if same_basis and not whole:
        same, n_checked = _as_before(known, tables)
        if same is not None:
            return CompositeStep(same, [], [], [], n_checked)
    before = {pair: dict(nodes) for pair, nodes in known.by_tables.items()}
    pairs: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for (t, a), (u, b) in unary:
        if t in tables and u in tables and tables[u].keys is not None:
            pairs.setdefault((t, u), []).append((a, b))
    valid: set[Composite] = set()
    refuted: dict[Composite, int] = {}
    stopped: dict[tuple[str, str], int] = {}
    lattices = []
    for (t, u), columns in sorted(pairs.items()):
        if not whole and not tables[t].changed and not tables[u].changed:
            for name, row_id in before.get((t, u), {}).items():
                if row_id is None:
                    valid.add(name)
                else:
                    refuted[name] = row_id
            stopped |= {(t, u): known.stopped[t, u]} if (t, u) in known.stopped else {}
            continue
        lattices.append(Lattice.of(tables, t, u, columns, before.get((t, u), {}), max_arity))
    listed = set(known.listed & valid)
    n_checked = sum(_settle_level(tables, lattices, arity) for arity in range(2, max_arity + 1))
    rows: dict[Composite, list[int]] = {}
    dropped: set[Composite] = set()
    for lattice in lattices:
        if lattice.complete < max_arity:
            stopped[lattice.dependent, lattice.referenced] = lattice.complete
            dropped |= {name for node, name in lattice.were_listed(known.listed) if lattice.is_open(node)}
        for node in lattice.valid:
            name = lattice.named(node)
            valid.add(name)
            if lattice.has_key(node):
                listed.add(name)
        refuted |= {lattice.named(node): row_id for node, row_id in lattice.refuted.items()}
        rows |= {name: lattice.rows_against(node) for node, name in lattice.were_listed(known.listed)}
    return CompositeStep(
        Composites(frozenset(valid), refuted, frozenset(listed), max_arity, stopped),
        [(name, rows.get(name, [])) for name in sorted(known.listed - listed - dropped)],
        sorted(listed - known.listed),
        sorted(dropped),
        n_checked,
    )


def _as_before(known: Composites, tables: Tables) -> tuple[Composites | None, int]:
    """(what is known, if each set that held holds and each that was refuted is, maybe by another row; for how
    many sets rows were looked at). One job.
    """
    looks: list[Look] = []
    doubtful: list[Composite] = []
    for (t, u), nodes in known.by_tables.items():
        left, right = tables[t], tables[u]
        places = left.relation.schema.places, right.relation.schema.places
        refuted = [(node, row_id) for node, row_id in nodes if row_id is not None]
        if refuted and (left.deleted or right.added):
            questions = [_look(node, *places, everything=True) for node, _ in refuted]
            still = still_missing(tables, questions, [row_id for _, row_id in refuted])
            open_ones = np.flatnonzero(~still).tolist()
            looks += [questions[i] for i in open_ones]
            doubtful += [refuted[i][0] for i in open_ones]
    n_doubtful = len(looks)
    for (t, u), nodes in known.by_tables.items():
        left, right = tables[t], tables[u]
        if left.added or right.deleted:
            places = left.relation.schema.places, right.relation.schema.places
            looks += [_look(node, *places, everything=False) for node, row_id in nodes if row_id is None]
    rows = refuting_rows(tables, looks)
    if not all(rows[:n_doubtful]) or any(rows[n_doubtful:]):
        return None, len(looks)
    if doubtful:
        now = {node: ids[0] for node, ids in zip(doubtful, rows[:n_doubtful], strict=True)}
        known = replace(known, refuted={**known.refuted, **now})
    return known, len(looks)


def _look(node: Composite, left: Mapping[str, int], right: Mapping[str, int], *, everything: bool) -> Look:
    columns = tuple(left[c] for c in node.dependent.columns)
    partners = tuple(right[c] for c in node.referenced.columns)
    return Look(node.dependent.table, node.referenced.table, columns, partners, everything)


@dataclass
class Lattice:
    """The sets of pairs of columns of two tables, as far as they are settled."""

    dependent: str
    referenced: str
    left_names: tuple[str, ...]  # of all columns of the dependent table
    right_names: tuple[str, ...]
    pairs: list[Pair]
    all_keys: list[int]  # of the referenced table, as masks
    max_arity: int
    before: dict[Node, int | None]  # before the batch: None where it held, else the row against it
    valid: set[Node] = field(default_factory=set)
    refuted: dict[Node, int] = field(default_factory=dict)
    broken: dict[Node, list[int]] = field(default_factory=dict)  # held before: rows against it now
    keys: list[int] = field(default_factory=list)  # those that the paired columns contain and a set can have
    complete: int = 0  # the size up to which all sets are settled: less than max_arity if there are too many
    _level: list[Node] = field(default_factory=list)
    _beside: list[Node] = field(default_factory=list)  # with what it depends on, short ones first
    _inside: set[int] = field(default_factory=set)  # parts of keys, as masks
    _keyed: dict[int, bool] = field(default_factory=dict)  # columns, as a mask -> whether a key is inside

    def __post_init__(self) -> None:
        self.complete = self.max_arity
        paired = sum(1 << b for b in {b for _, b in self.pairs})
        self.keys = [m for m in self.all_keys if m & ~paired == 0 and m.bit_count() <= self.max_arity]
        for key in self.keys:
            columns = [c for c in range(key.bit_length()) if key >> c & 1]
            for n in range(1, len(columns) + 1):
                self._inside |= {sum(1 << c for c in part) for part in combinations(columns, n)}

    @classmethod
    def of(
        cls,
        tables: Tables,
        dependent: str,
        referenced: str,
        columns: Sequence[tuple[str, str]],
        before: Mapping[Composite, int | None],
        max_arity: int,
    ) -> Lattice:
        left, right = (tables[t].relation.schema for t in (dependent, referenced))
        left_at, right_at = ({name: i for i, name in enumerate(s.names)} for s in (left, right))
        pairs = sorted((left_at[a], right_at[b]) for a, b in columns)
        keys = [sum(1 << right_at[c] for c in key) for key in tables[referenced].keys or ()]
        lattice = cls(dependent, referenced, left.names, right.names, pairs, keys, max_arity, {})
        lattice.before = {lattice.node_of(node): row_id for node, row_id in before.items()}
        return lattice

    @cached_property
    def _positions(self) -> tuple[dict[str, int], dict[str, int]]:
        left = {name: i for i, name in enumerate(self.left_names)}
        return left, {name: i for i, name in enumerate(self.right_names)}

    def node_of(self, composite: Composite) -> Node:
        left, right = self._positions
        sides = zip(composite.dependent.columns, composite.referenced.columns, strict=True)
        return tuple((left[a], right[b]) for a, b in sides)

    def named(self, node: Node) -> Composite:
        return Composite(
            Side(self.dependent, tuple(self.left_names[a] for a, _ in node)),
            Side(self.referenced, tuple(self.right_names[b] for _, b in node)),
        )

    def look(self, node: Node, *, everything: bool) -> Look:
        left, right = zip(*node, strict=True)
        return Look(self.dependent, self.referenced, left, right, everything)

    def has_key(self, node: Node) -> bool:
        columns = sum(1 << b for _, b in node)
        keyed = self._keyed.get(columns)
        if keyed is None:  # asked of many sets of pairs with the same referenced columns
            keyed = self._keyed[columns] = any(key & ~columns == 0 for key in self.keys)
        return keyed

    def candidates(self, arity: int) -> list[Node]:
        """The sets that may hold at this level, and sets of fewer pairs that they depend on.

        None if they are too many: then the level below is the last one, which `complete` says.

        A set whose referenced columns contain a key is looked at if those of its parts that contain one
        hold. Without a key it is looked at as a part of a key, or because a set with a key depends on it: so
        columns that have their few values in common with all others, such as flags, do not multiply.
        """
        if arity > self.complete:
            return []
        nodes: dict[Node, None] = {}
        for base in [(p,) for p in self.pairs] if arity == 2 else self._level:
            keyed, columns = self.has_key(base), sum(1 << b for _, b in base)
            for pair in self.pairs:
                if any(a == pair[0] or b == pair[1] for a, b in base):
                    continue
                if not keyed and columns | 1 << pair[1] not in self._inside:
                    continue
                node = tuple(sorted((*base, pair)))
                if node not in nodes and self._may_hold(node):
                    nodes[node] = None
            if len(nodes) > stored.MAX_NODES:
                return self._stop_below(arity)
        self._level = list(nodes)
        for node in self._level:
            if self.has_key(node):
                nodes |= dict.fromkeys(part for part in _all_parts(node) if part not in self.valid)
            if len(nodes) > stored.MAX_NODES:
                return self._stop_below(arity)
        self._beside = sorted(nodes, key=len)
        return list(nodes)

    def _stop_below(self, arity: int) -> list[Node]:
        self.complete = arity - 1
        self._level, self._beside = [], []
        return []

    def is_open(self, node: Node) -> bool:
        """Whether a set of too many pairs to be looked at may hold, and would be listed."""
        columns = sum(1 << b for _, b in node)
        return (
            len(node) > self.complete
            and any(key & ~columns == 0 for key in self.all_keys)
            and all(pair in self.pairs for pair in node)
            and not any(part in self.refuted for part in _all_parts(node))
        )

    def _may_hold(self, node: Node) -> bool:
        """Whether no part of it is known to fail; parts without a key may be unknown if it has one."""
        if not self.has_key(node):
            return len(node) == 2 or all(part in self.valid for part in _parts(node))
        return all(
            part in self.valid or not (part in self.refuted or self.has_key(part))
            for part in _all_parts(node)
        )

    def settle(self, node: Node, rows: Sequence[int]) -> None:
        """What the rows say: they are against it, or there are none."""
        if not rows:
            self.valid.add(node)
            return
        self.refuted[node] = rows[0]
        if self.before.get(node, rows[0]) is None:
            self.broken[node] = list(rows)

    def close_level(self) -> None:
        """A set holds only if all of its parts do, which may have been settled beside it."""
        for node in self._beside:
            if len(node) > 2 and any(part not in self.valid for part in _parts(node)):
                self.valid.discard(node)
        self._level = [node for node in self._level if node in self.valid]

    def were_listed(self, listed: Collection[Composite]) -> Iterator[tuple[Node, Composite]]:
        """What held before and does not hold now, of what was listed."""
        for node, row_id in self.before.items():
            if row_id is None and node not in self.valid:
                name = self.named(node)
                if name in listed:
                    yield node, name

    def rows_against(self, node: Node) -> list[int]:
        """Rows that miss a tuple of a set that held: its own, or those of a part that broke."""
        if node in self.broken:
            return self.broken[node]
        if len(node) > 2:
            for part in _parts(node):
                if part not in self.valid and (rows := self.rows_against(part)):
                    return rows
        return []


def _settle_level(tables: Tables, lattices: Sequence[Lattice], arity: int) -> int:
    """Settle all sets of one size with one job; for how many rows were looked at."""
    looks: list[Look] = []
    questions: list[tuple[Lattice, Node]] = []
    for lattice in lattices:
        left, right = tables[lattice.dependent], tables[lattice.referenced]
        doubtful = []
        for node in lattice.candidates(arity) if lattice.keys else ():
            row_id = lattice.before.get(node, -1)
            if row_id is None:
                if left.added or right.deleted:
                    looks.append(lattice.look(node, everything=False))
                    questions.append((lattice, node))
                else:
                    lattice.settle(node, ())
            elif row_id >= 0 and not (left.deleted or right.added):
                lattice.settle(node, (row_id,))
            else:
                doubtful.append((node, row_id))
        for node in _unknown(tables, lattice, doubtful):
            looks.append(lattice.look(node, everything=True))
            questions.append((lattice, node))
    for (lattice, node), rows in zip(questions, refuting_rows(tables, looks), strict=True):
        lattice.settle(node, rows)
    for lattice in lattices:
        lattice.close_level()
    return len(looks)


def _unknown(tables: Tables, lattice: Lattice, nodes: Sequence[tuple[Node, int]]) -> list[Node]:
    """Those of the sets that no known row refutes any more; the others are settled."""
    unknown = [node for node, row_id in nodes if row_id < 0]
    refuted = [(node, row_id) for node, row_id in nodes if row_id >= 0]
    if not refuted:
        return unknown
    looks = [lattice.look(node, everything=True) for node, _ in refuted]
    missing = still_missing(tables, looks, [row_id for _, row_id in refuted])
    for (node, row_id), still in zip(refuted, missing.tolist(), strict=True):
        if still:
            lattice.settle(node, (row_id,))
        else:
            unknown.append(node)
    return unknown


def _parts(node: Node) -> Iterator[Node]:
    """The sets with one pair less."""
    for i in range(len(node)):
        yield node[:i] + node[i + 1 :]


def _all_parts(node: Node) -> Iterator[Node]:
    """The sets of at least two of its pairs, but not all."""
    for n in range(2, len(node)):
        yield from combinations(node, n)
