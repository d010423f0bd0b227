"""One consistent set of links out of many candidates, given the primary keys.

What holds of the links that are chosen:

- a column (a set of columns) has one parent. Composite links coexist with those of their columns: lineitem
  (partkey, suppkey) refers to partsupp, partkey alone to part;
- links do not lead back to where they started: of two keys with the same values only one refers to the other;
- a link is as short as it can be: columns beyond a key add nothing to the reference.

A round gives every candidate the points that depend on the primary keys and on the links of the round before,
and takes the best candidates first. Cost: O(n log n) for n candidates.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log

from holdfast.core.words.column_facts import ColumnFacts
from holdfast.core.words.dependency import Ind, Side
from holdfast.core.words.name_similarity import Names, Words
from holdfast.inclusions.links.link_evidence import PROOF_DIGITS, Reason, surprise

Column = tuple[str, str]  # table, column
PrimaryKeys = Mapping[str, tuple[str, ...]]

# Points of the reasons that depend on what else is chosen.
PRIMARY = 1.0
NOT_MINIMAL = -1.5
UNIQUE_CHILD = -2.5
CHAINED = -0.75
SAME_PARENTS = 1.5
CONSENSUS = 1.5
COUNTER = -1.5
MUTUAL = 0.25
COPIED = -6.0

SURE = 1.0  # points from which on a link may speak for others
GROUPS = 4  # a counter within groups does not reach this many times the mean size of a group


@dataclass(slots=True)
class Candidate:
    """An inclusion dependency in a key, with the reasons that depend on nothing else."""

    ind: Ind
    order: int  # among all, to break ties
    facts: Sequence[tuple[ColumnFacts, ColumnFacts]]
    minimal: bool  # the referenced columns are a minimal key, not more
    unique: bool  # the dependent columns contain a key of their table
    named: float  # how much names speak for it, 0 to 1
    reasons: list[Reason]
    joint: list[Reason] = field(default_factory=list)  # of the round
    points: float = 0.0  # of both
    columns: tuple[Column, Column] = field(init=False)  # child and parent of a unary candidate

    def __post_init__(self) -> None:
        self.columns = next(column_pairs(self.ind))

    @property
    def child(self) -> Side:
        return self.ind.dependent

    @property
    def parent(self) -> Side:
        return self.ind.referenced

    @property
    def unary(self) -> bool:
        return len(self.facts) == 1

    @property
    def sure(self) -> bool:
        """Whether it is likely by itself, without the word of others."""
        return self.points - sum(r.points for r in self.joint if r.name == "consensus") >= SURE


class Choice:
    """All candidates, and what the links and primary keys chosen so far say about each."""

    def __init__(
        self, facts: Mapping[Column, ColumnFacts], names: Names, candidates: Sequence[Candidate]
    ) -> None:
        self._facts = facts
        self._candidates = candidates
        self._n_columns = Counter(table for table, _ in facts)
        self._subjects = {column: names.subject(*column) or () for column in facts}
        self._errors: dict[Column, dict[Column, float]] = defaultdict(dict)  # child -> parent -> error
        for c in candidates:
            if c.unary:
                self._errors[c.columns[0]][c.columns[1]] = c.ind.error
        # Pairs of columns that refer to one row: (child, parent) -> pairs that hold together with it
        self._together: dict[tuple[Column, Column], set[tuple[Column, Column]]] = defaultdict(set)
        for c in candidates:
            pairs = set(column_pairs(c.ind))
            for pair in pairs if len(pairs) > 1 else ():
                self._together[pair] |= pairs - {pair}
        self._primary: PrimaryKeys = {}
        self._parents: dict[Column, Column] = {}
        # Who refers to a column under a name: (subject of the name, parent) -> tables
        self._referring: dict[tuple[Words, Column], set[str]] = {}

    def choose(self, primary: PrimaryKeys, before: Sequence[Candidate]) -> list[Candidate]:
        """A round: set the points of all candidates; then the best ones that go together, best first."""
        self._primary = primary
        self._parents = {c.columns[0]: c.columns[1] for c in before if c.unary}
        self._referring = {}
        for c in before:
            child, parent = c.columns
            if c.unary and c.sure and self._subjects[child]:
                self._referring.setdefault((self._subjects[child], parent), set()).add(child[0])
        for c in self._candidates:
            c.joint = [r for r in self._reasons(c) if r is not None]
            c.points = sum(r.points for r in c.reasons) + sum(r.points for r in c.joint)
        links = ChosenLinks(self._candidates)
        for c in sorted(self._candidates, key=lambda c: (-c.points, c.order)):
            if c.points <= 0:
                break
            if links.objection(c) is None:
                links.accept(c)
        return links.accepted

    def _reasons(self, c: Candidate) -> Iterator[Reason | None]:
        yield self._key(c)
        yield self._unique_child(c)
        if c.unary:
            yield self._chained(c)
            yield self._farther(c)
            yield self._consensus(c)
            yield self._counter(c)
            yield self._mutual(c)
        else:
            yield self._same_parents(c)
        yield self._copied(c)

    def _key(self, c: Candidate) -> Reason:
        there, key = written(c.parent), self._primary.get(c.parent.table, ())
        if not c.minimal:
            text = f"{there} has more columns than a key of {c.parent.table} needs"
            return Reason("key", NOT_MINIMAL, 1.0, text)
        if set(key) == set(c.parent.columns):
            text = f"{there} is unique and looks like the primary key of {c.parent.table}"
            return Reason("key", PRIMARY, 1.0, text)
        text = f"{there} is unique, but the primary key of {c.parent.table} looks like {', '.join(key)}"
        return Reason("key", PRIMARY, -1.0, text)

    def _unique_child(self, c: Candidate) -> Reason | None:
        if not c.unique:
            return None
        table = c.child.table
        key = self._primary.get(table)
        is_primary = key is not None and set(key) <= set(c.child.columns)
        # A table may extend another one, and share its key; a row does not extend another one of its table.
        extends = 0.8 * c.named if table != c.parent.table else 0.0
        text = f"{written(c.child)} is itself unique"
        if is_primary:
            text = f"{written(c.child)} looks like the primary key of {table} itself"
        return Reason("unique_child", UNIQUE_CHILD, (1.0 if is_primary else 0.7) * (1 - extends), text)

    def _chained(self, c: Candidate) -> Reason | None:
        """A parent that refers on to another one, which is a parent as well: rather that one, unless the
        child keeps to the nearer one's values where it had the choice of all."""
        child, parent = c.columns
        root = self._parents.get(parent)
        if root is None or root not in self._errors[child]:
            return None
        value = 1 - self._drawn_from(child, parent, root)
        if value <= 0:
            return None
        included = f"{_nearly(self._errors[child][root])}included there"
        text = f"{written(c.parent)} itself refers to {'.'.join(root)}, and {written(c.child)} is {included}"
        return Reason("chained", CHAINED, value, text)

    def _farther(self, c: Candidate) -> Reason | None:
        """A parent that a nearer one refers to: child, nearer parent and this one are a chain."""
        child, root = c.columns
        nearer = [parent for parent in self._errors[child] if self._parents.get(parent) == root]
        drawn = [(self._drawn_from(child, parent, root), parent) for parent in nearer if parent != child]
        value, parent = max(drawn, default=(0.0, root))
        if value <= 0:
            return None
        nearest = f"{'.'.join(parent)}, which refers to {written(c.parent)}"
        text = f"{written(c.child)} keeps to the values of {nearest}"
        return Reason("farther", CHAINED, value, text)

    def _drawn_from(self, child: Column, parent: Column, root: Column) -> float:
        """How improbable it is, 0 to 1, that a child whose values are any of the root's has those of a parent
        that refers to the root: a few of very many parents' values are hit by no accident, and of a parent
        with nearly all of the root's they are hit anyway."""
        child_facts, n, m = self._facts[child], self._facts[parent].n_distinct, self._facts[root].n_distinct
        share = min(1.0, n * (1 - self._errors[parent].get(root, 0.0)) / m)
        digits = child_facts.n_distinct * surprise(1 - self._errors[child][parent], share) / log(10)
        return min(1.0, digits / PROOF_DIGITS)

    def _consensus(self, c: Candidate) -> Reason | None:
        """Columns of the same name in other tables refer to the same parent."""
        child, parent = c.columns
        # A key does not refer to anything because others of its name do: they may refer to itself.
        subject = () if c.unique else self._subjects[child]
        for start in range(len(subject)):
            referring = self._referring.get((subject[start:], parent))
            if referring is not None and (tables := sorted(referring - {child[0]})):
                text = f"columns of this name in {', '.join(tables)} refer to {written(c.parent)}"
                return Reason("consensus", CONSENSUS, min(1.0, 0.4 + 0.2 * len(tables)), text)
        return None

    def _counter(self, c: Candidate) -> Reason | None:
        """A counter within groups, such as a line number: integers that complete a composite key."""
        ((child, _),) = c.facts
        key = self._primary.get(child.table, ())
        others = [p for p in key if p != child.column]
        if not others or len(others) == len(key) or not child.is_sequence or c.named >= 0.5:
            return None
        parts = [self._facts.get((child.table, p)) for p in others]
        groups = max(1 if p is None else p.n_distinct for p in parts)
        mean_size = child.n_rows / groups
        if not mean_size * 1.01 < child.n_distinct < GROUPS * mean_size:
            return None  # all combinations occur, or few of them: not lines of an order
        text = f"{child} looks like a counter within {', '.join(others)}"
        return Reason("counter", COUNTER, 1 - c.named, text)

    def _mutual(self, c: Candidate) -> Reason | None:
        """Two keys with the same values: the table with more columns is rather the one that is extended."""
        child, parent = c.columns
        if not c.unique or child not in self._errors[parent]:
            return None
        more = self._n_columns[parent[0]] - self._n_columns[child[0]]
        if more == 0:
            return None
        wide, narrow = (parent[0], child[0]) if more > 0 else (child[0], parent[0])
        nearly = _nearly(c.ind.error + self._errors[parent][child])
        text = f"both columns have {nearly}the same values, but {wide} has more columns than {narrow}"
        return Reason("mutual", MUTUAL, 1.0 if more > 0 else -1.0, text)

    def _copied(self, c: Candidate) -> Reason | None:
        """Columns that come along with a reference: each row repeats values of the row it refers to."""
        key = self._primary.get(c.parent.table, ())
        if set(key) == set(c.parent.columns):
            return None
        along = (self._together.get(pair, set()) for pair in column_pairs(c.ind))
        for child, parent in sorted(set.intersection(*along)):
            if self._parents.get(child) == parent and (parent[1],) == key:
                there = f"the row that {'.'.join(child)} refers to has the same value"
                text = f"{written(c.child)} is a copy: {there}"
                return Reason("copied", COPIED, 1.0, text)
        return None

    def _same_parents(self, c: Candidate) -> Reason | None:
        """Columns of a composite link whose counterparts refer to where they refer to."""
        pairs = list(column_pairs(c.ind))
        shared = [a for a, b in pairs if a in self._parents and self._parents[a] in (self._parents.get(b), b)]
        if not shared:
            return None
        text = f"{', '.join('.'.join(a) for a in shared)} and {written(c.parent)} have parents in common"
        return Reason("same_parents", SAME_PARENTS, len(shared) / len(pairs), text)


class ChosenLinks:
    """A consistent set of links: they are accepted one by one, best first."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self.accepted: list[Candidate] = []
        self._by_child: dict[tuple[str, frozenset[str]], Candidate] = {}
        self._parents: dict[Column, Column] = {}
        self._shortest: dict[tuple[str, str], list[frozenset[tuple[str, str]]]] = defaultdict(list)
        if all(c.minimal for c in candidates):
            return  # the usual case: no link is longer than it must be
        for c in candidates:
            if c.minimal:
                self._shortest[c.child.table, c.parent.table].append(_mapping(c.ind))

    def accept(self, c: Candidate) -> None:
        self.accepted.append(c)
        self._by_child[c.child.table, frozenset(c.child.columns)] = c
        if c.unary:
            child, parent = c.columns
            self._parents[child] = parent

    def objection(self, c: Candidate) -> Reason | None:
        """Why a link cannot be chosen beside the accepted ones, if there is a reason.

        It takes from a link what its rival has, or all it has: no more than even odds remain.
        """
        here, there = written(c.child), written(c.parent)
        rival = self._by_child.get((c.child.table, frozenset(c.child.columns)))
        if rival is not None:
            text = f"{here} refers to {written(rival.parent)} rather"
            return Reason("rival", -max(rival.points, c.points), 1.0, text)
        if c.unary:
            start, node = c.columns
            while node != start and node in self._parents:
                node = self._parents[node]
            if node == start:
                direct = self._parents.get(c.columns[1]) == start
                text = f"{there} itself refers to {here}" + ("" if direct else ", by way of others")
                return Reason("circle", -max(c.points, 0.0), 1.0, text)
        elif any(self._parents.get(b) == a for a, b in column_pairs(c.ind)):
            return Reason("circle", -max(c.points, 0.0), 1.0, f"{there} itself refers to {here}")
        elif not c.minimal:
            mapping = _mapping(c.ind)
            if any(short < mapping for short in self._shortest[c.child.table, c.parent.table]):
                text = f"fewer columns are enough to refer to {c.parent.table}"
                return Reason("implied", -max(c.points, 0.0), 1.0, text)
        return None


def _nearly(error: float) -> str:
    return "nearly " if error > 0 else ""


def column_pairs(ind: Ind) -> Iterator[tuple[Column, Column]]:
    for a, b in zip(ind.dependent.columns, ind.referenced.columns, strict=True):
        yield (ind.dependent.table, a), (ind.referenced.table, b)


def written(side: Side) -> str:
    """customer.c_custkey, partsupp.(ps_partkey, ps_suppkey)"""
    if len(side.columns) == 1:
        return f"{side.table}.{side.columns[0]}"
    return f"{side.table}.({', '.join(side.columns)})"


def _mapping(ind: Ind) -> frozenset[tuple[str, str]]:
    return frozenset(zip(ind.dependent.columns, ind.referenced.columns, strict=True))
