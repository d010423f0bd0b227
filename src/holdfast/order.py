"""What dependencies mean at a version, of all kinds: the one place that every report takes its order from.

| kind | role | score |
|---|---|---|
| all | pinned, if somebody relies on it; muted, if somebody has said that it means nothing | as below |
| inclusion | foreign key, as `links` would choose; chance, if unlikely and of integers | of the link |
| key | primary key, if it is the best one of its table; chance, below `CHANCE` | `KeyScores` |
| functional dependency | chance, below `CHANCE` | the bound of `fd_score`; 0 with a key on the left |
| denial constraint | chance, if it follows from row rules, is such a key or FD, or accident | by its form |
| row rule | chance, if it says little | |
| column rule | chance, below `CHANCE` | as its profile says |
| of a class from elsewhere | | |

All of it is known without a look at rows: from schemas, counts, names, the minimal keys, and of denial
constraints how many pairs of rows satisfy two predicates. Cost: that of `JointCounts.of` for these, what is
said of `References` for inclusions, some microseconds for each dependency of another kind, and for keys that
of the minimal keys of their tables that have at most WIDEST columns, and of the newest covers, for what each
has outlived. `core/words/ranks.py` says what follows from roles and scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.stability import Stability, stability
from holdfast.core.rows.table_state import TableState
from holdfast.core.words.change import DependencyChange, Pin
from holdfast.core.words.column_rule import ColumnRule
from holdfast.core.words.column_sets import bits_of, flat_columns, masks_from, places_among, words_for
from holdfast.core.words.dependency import Dependency, Fd, Ind, Ucc, extended
from holdfast.core.words.key_score import KeyScores
from holdfast.core.words.predicate import Dc, Group, PredicateSpace
from holdfast.core.words.ranks import Rank, best_first, in_order
from holdfast.core.words.row_rule import RowRule
from holdfast.core.words.sameness import DependencySet
from holdfast.denial.circular_dcs import RowOrder, following_from_rows
from holdfast.denial.joint_counts import JointCounts
from holdfast.denial.rule_score import dc_scores, says_little
from holdfast.functional.fd_score import score_bounds
from holdfast.kind import muted_set

if TYPE_CHECKING:
    from holdfast.inclusions.links.references import References

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
F64 = NDArray[np.float64]
Bool = NDArray[np.bool_]

# A key or functional dependency with less looks like chance.
CHANCE = 0.15
# Keys of more columns are not weighed as primary keys: hardly one was meant, and wide tables have thousands.
WIDEST = 4
# Longer denial constraints are not asked whether they follow: it costs the cube of their length.
LONGEST = 6
# Of what nothing is known, and of row rules that say something.
USUAL = 0.5

Combinations = tuple[tuple[str, ...], ...]
Anything = TypeVar("Anything", bound=Dependency)
# What some keys of a table have outlived.
Outlived = Callable[[str, Sequence[tuple[str, ...]]], Stability]
# The row rules of a table that hold, and the columns without NULL.
Rows = Callable[[str], tuple[Sequence[RowRule], frozenset[str]]]
# How many pairs of rows of a table satisfy two predicates; None where that is not known.
Joint = Callable[[str], JointCounts | None]
# Which of some keys of a table are what is left of a narrower one that broke.
Remainders = Callable[[str, Sequence[tuple[str, ...]]], Bool]


class TableOrder:
    """What the keys and functional dependencies of one table mean."""

    def __init__(
        self,
        state: TableState,
        keys: Combinations | None,
        outlived: Outlived,
        muted: DependencySet,
        rows: Rows,
        joint: Joint,
    ) -> None:
        facts, self._rows, self._joint = state.column_facts(), rows, joint
        self._table, self.n_rows, self._outlived = state.table, state.n_rows, outlived
        self._stability: dict[tuple[str, ...], float] = {}
        self.key_scores = KeyScores(facts, self._stability)
        self.distinct = {f.column: f.n_distinct for f in facts}
        self.weighed = [key for key in keys or () if len(key) <= WIDEST]
        self._meant = [key for key in self.weighed if Ucc(state.table, key) not in muted]

    def stability(self, keys: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], float]:
        """How much keys have outlived, 0 to 1: these, and those asked for before. One look at all."""
        new = [key for key in dict.fromkeys(keys) if key not in self._stability]
        if new:
            shares = stability(self._outlived(self._table, new), self.n_rows)
            self._stability.update(zip(new, shares.tolist(), strict=True))
        return self._stability

    @cached_property
    def primary_key(self) -> tuple[str, ...] | None:
        """The minimal key that looks like the primary key; a muted one does not."""
        self.stability(self.contenders)
        return self.key_scores.primary(self.contenders)

    @cached_property
    def contenders(self) -> list[tuple[str, ...]]:
        """The keys that may be the primary key, whatever they have outlived."""
        return self.key_scores.contenders(self._meant)

    @cached_property
    def _left_sides(self) -> dict[tuple[str, ...], bool]:
        """The minimal keys of at most WIDEST columns, and whether each looks like chance."""
        new, old = (self.key_scores.scores(self.weighed, outlived) < CHANCE for outlived in (0.0, 1.0))
        self.stability([self.weighed[i] for i in np.flatnonzero(new != old).tolist()])
        chance = self.key_scores.scores(self.weighed) < CHANCE
        return dict(zip(self.weighed, chance.tolist(), strict=True))

    def keys(self, keys: Sequence[tuple[str, ...]]) -> list[Rank]:
        self.stability([*keys, *self.contenders])
        scores = self.key_scores.scores(keys).tolist()
        return [
            Rank("primary key", score) if key == self.primary_key else _unless_chance(score)
            for key, score in zip(keys, scores, strict=True)
        ]

    def fds(self, fds: Sequence[Fd]) -> list[Rank]:
        sizes = np.array([len(fd.lhs) for fd in fds], dtype=np.int64)
        most = [max((self.distinct[c] for c in fd.lhs), default=0) for fd in fds]
        bounds = score_bounds(self.n_rows, sizes, most, [self.distinct[fd.rhs] for fd in fds])
        ranks = [_unless_chance(bound) for bound in bounds.tolist()]
        for i, fd in enumerate(fds):
            if fd.lhs in self._left_sides:  # told with its key, and no more than that one
                ranks[i] = Rank("chance" if self._left_sides[fd.lhs] else "dependency", 0.0)
        return ranks

    def fd_ranks(self, masks: U64, rhs: I32) -> tuple[Bool, F64]:
        """(chance, scores): the same of dependencies as masks of left-hand sides, and right-hand sides.

        bool[n], float64[n]; the role of what is no chance is "dependency". Cost: 0.3 us for each.
        """
        distinct = np.array([*self.distinct.values(), 0], dtype=np.int64)
        columns, sizes = flat_columns(masks)
        most, filled = np.zeros(len(masks), dtype=np.int64), np.flatnonzero(sizes)
        if len(filled):
            starts = (np.cumsum(sizes) - sizes)[filled]
            most[filled] = np.maximum.reduceat(distinct[columns], starts)
        scores = score_bounds(self.n_rows, sizes, most, distinct[rhs])
        chance = scores < CHANCE
        if self._left_sides:
            position = {name: i for i, name in enumerate(self.distinct)}
            keys = masks_from([[position[c] for c in key] for key in self._left_sides], masks.shape[1])
            key = places_among(masks, keys)
            scores[key >= 0] = 0.0
            chance = np.where(key >= 0, np.array([*self._left_sides.values()])[key], chance)
        return chance, scores

    @cached_property
    def _row_order(self) -> RowOrder:
        """What the row rules say together."""
        rules, filled = self._rows(self._table)
        return RowOrder.of(tuple(self.distinct), rules, filled)

    @cached_property
    def _pairs(self) -> JointCounts | None:
        return self._joint(self._table)

    def dcs(self, dcs: Sequence[Dc]) -> list[Rank]:
        pairs = dict.fromkeys(
            pair for dc in dcs for p in dc.predicates for pair in ((p.left, p.right), (p.right, p.left))
        )
        space = PredicateSpace(tuple(Group(a, b, True) for a, b in pairs))
        if self._pairs is not None and all(p in self._pairs.space for dc in dcs for p in dc.predicates):
            space = self._pairs.space
        numbers = [[space.number(p) for p in dc.predicates] for dc in dcs]
        chance, scores = self.dc_ranks(masks_from(numbers, words_for(space.n_predicates)), space)
        return [
            Rank("chance" if by_chance else "dependency", score)
            for by_chance, score in zip(chance.tolist(), scores.tolist(), strict=True)
        ]

    def dc_ranks(self, masks: U64, space: PredicateSpace) -> tuple[Bool, F64]:
        """(chance, scores) of denial constraints as masks of the predicates of a space: bool[n], float64[n].

        Cost: some microseconds for each that compares different columns, or is a key or dependency.
        """
        bits = bits_of(masks, space.n_predicates)
        across = np.array([p.left != p.right for p in space.predicates], dtype=np.bool_)
        sizes = bits.sum(axis=1)
        scores = dc_scores(sizes, bits[:, across].sum(axis=1))
        chance = np.zeros(len(masks), dtype=np.bool_)
        asked = np.flatnonzero(sizes <= LONGEST)
        chance[asked] = following_from_rows(masks[asked], space, self._row_order)
        if self._pairs is not None and self._pairs.space == space:
            chance |= self._pairs.chance(bits)
        same = np.array([p.op == "=" for p in space.predicates], dtype=np.bool_) & ~across
        differs = np.array([p.op == "!=" for p in space.predicates], dtype=np.bool_) & ~across
        n_same, n_differs = bits[:, same].sum(axis=1), bits[:, differs].sum(axis=1)
        columns = [p.left for p in space.predicates]
        keys = np.flatnonzero((n_same == sizes) & (sizes > 0))
        fds = np.flatnonzero((n_same == sizes - 1) & (n_differs == 1))
        lefts = {i: self._in_order(columns, bits[i] & same) for i in (*keys.tolist(), *fds.tolist())}
        known = [
            *self.keys([lefts[i] for i in keys.tolist()]),
            *self.fds([Fd(self._table, lefts[i], columns[int(np.flatnonzero(bits[i] & differs)[0])])
                       for i in fds.tolist()]),
        ]  # fmt: skip
        chance[np.concatenate([keys, fds])] |= np.array([r.role == "chance" for r in known], dtype=np.bool_)
        return chance, scores

    def _in_order(self, columns: Sequence[str], which: Bool) -> tuple[str, ...]:
        """The columns of some predicates, as the table has them."""
        names = {columns[i] for i in np.flatnonzero(which).tolist()}
        return tuple(name for name in self.distinct if name in names)


def _unless_chance(score: float) -> Rank:
    return Rank("chance" if score < CHANCE else "dependency", score)


@dataclass
class Order:
    """What dependencies mean at a version: `state`, `keys`, `outlived` tell of a table by its name."""

    state: Callable[[str], TableState]
    keys: Callable[[str], Combinations | None]
    outlived: Outlived
    pins: Iterable[Pin] = ()
    references: Callable[[], References | None] = lambda: None
    rows: Rows = lambda _: ((), frozenset())
    joint: Joint = lambda _: None
    _tables: dict[str, TableOrder] = field(default_factory=dict, init=False)
    _muted: dict[str, DependencySet] = field(default_factory=dict, init=False)

    def ranks(self, dependencies: Sequence[Dependency]) -> list[Rank]:
        """The rank of each."""
        inds = [d for d in dependencies if isinstance(d, Ind)]
        references = self.references() if inds else None
        of_inds = iter([Rank()] * len(inds) if references is None else references.ranks(inds))
        keys: dict[str, list[tuple[str, ...]]] = {}
        fds: dict[str, list[Fd]] = {}
        dcs: dict[str, list[Dc]] = {}
        for d in dependencies:
            if isinstance(d, Ucc):
                keys.setdefault(d.table, []).append(d.columns)
            elif isinstance(d, Fd):
                fds.setdefault(d.table, []).append(d)
            elif isinstance(d, Dc):
                dcs.setdefault(d.table, []).append(d)
        of_keys = {name: iter(self.table(name).keys(those)) for name, those in keys.items()}
        of_fds = {name: iter(self.table(name).fds(those)) for name, those in fds.items()}
        of_dcs = {name: iter(self.table(name).dcs(those)) for name, those in dcs.items()}

        def rank(d: Dependency) -> Rank:
            match d:
                case Ind():
                    return next(of_inds)
                case Ucc():
                    return next(of_keys[d.table])
                case Fd():
                    return next(of_fds[d.table])
                case Dc():
                    return next(of_dcs[d.table])
                case _:
                    return _rank(d)

        return [self._marked(d, rank(d)) for d in dependencies]

    def _marked(self, dependency: Dependency, rank: Rank) -> Rank:
        """What somebody has said of it goes before what is worked out."""
        if dependency in self.pinned:
            return rank._replace(role="pinned", unpinned=rank.role)
        return rank._replace(role="muted") if dependency in self.muted(dependency.table) else rank

    @cached_property
    def pinned(self) -> DependencySet:
        """What somebody relies on."""
        return DependencySet((pin.dependency for pin in self.pins), lambda table: self.state(table).nulls)

    def muted(self, table: str) -> DependencySet:
        """What of a table somebody has muted."""
        if table not in self._muted:
            self._muted[table] = muted_set(self.state(table))
        return self._muted[table]

    def sorted(self, dependencies: Sequence[Anything]) -> list[Anything]:
        """Dependencies as they are told; those of one place stay in the order given."""
        return [dependencies[i] for i in best_first(self.ranks(dependencies))]

    def table(self, name: str) -> TableOrder:
        if name not in self._tables:
            self._tables[name] = TableOrder(
                self.state(name), self.keys(name), self.outlived, self.muted(name), self.rows, self.joint
            )
        return self._tables[name]


def _rank(dependency: Dependency) -> Rank:
    """Of what is weighed by itself."""
    match dependency:
        case RowRule():
            return Rank("chance", 0.0) if says_little(dependency) else Rank("dependency", USUAL)
        case ColumnRule():
            return _unless_chance(dependency.score)
        case _:
            return Rank("dependency", USUAL)


def ranked(
    changes: Sequence[DependencyChange], before: Order, after: Order, remainders: Remainders
) -> tuple[DependencyChange, ...]:
    """Changes with what they mean, as they are told.

    What came is weighed by the tables after a batch, what went by those before it. A key that is what is left
    of one that broke, now or a while ago (`remainders` tells that), is unique by chance: where `id` has one
    duplicate, any other column that tells the two rows apart makes a key with it.
    """
    came = [c.event in ("appeared", "within") for c in changes]
    ranks: dict[bool, Any] = {}
    for is_new, order in ((True, after), (False, before)):
        ranks[is_new] = iter(
            order.ranks([c.dependency for c, new in zip(changes, came, strict=True) if new == is_new])
        )
    placed = [(c, next(ranks[is_new])) for c, is_new in zip(changes, came, strict=True)]
    left = _left_of_keys(placed, remainders)
    return in_order(
        replace(c, **(_by_chance(rank) if c.dependency in left else rank)._asdict()) for c, rank in placed
    )


def _by_chance(rank: Rank) -> Rank:
    """As chance, but for what somebody has said of it."""
    if rank.role == "pinned":
        return rank._replace(unpinned="chance")
    return rank if rank.role == "muted" else rank._replace(role="chance")


def _left_of_keys(placed: Sequence[tuple[DependencyChange, Rank]], remainders: Remainders) -> set[Dependency]:
    """The keys that came as what is left of one that broke, and those that broke of which that was so.

    Of a key that looked like chance nothing is left: a longer one may be the one that was meant.
    """
    broken: dict[str, dict[tuple[str, ...], bool]] = {}
    for c, rank in placed:
        if c.event == "broke" and isinstance(c.dependency, Ucc):
            broken.setdefault(c.dependency.table, {})[c.dependency.columns] = rank.meant != "chance"
    left: set[Dependency] = set()
    for table, meant in broken.items():
        keys = list(meant)
        again = {key for key, is_left in zip(keys, remainders(table, keys).tolist(), strict=True) if is_left}
        left.update(Ucc(table, key) for key in again)
        broken[table] = {key: True for key in keys if meant[key] or key in again}
    for c, _ in placed:
        d = c.dependency
        if c.event == "appeared" and isinstance(d, Ucc) and extended(d.columns, broken.get(d.table, ())):
            left.add(d)
    return left
