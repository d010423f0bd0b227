"""Foreign keys among inclusion dependencies: every candidate scored, and one consistent set of them chosen.

A candidate is an inclusion dependency whose referenced side is a key. Its reasons (`link_evidence`) add up to
points, log-odds; a link is *chosen*, proposed as a foreign key, iff its score is over one half.

Keys and links are chosen together. A key that others refer to is more likely the primary key of its table,
and a link is more likely if it refers to a primary key and does not start from one. The two choices are
repeated, each with the other one fixed, until neither changes. What holds of the chosen links:

- a column has one parent; the others lose the points of the best one. Composite links coexist
  with those of their columns: lineitem (partkey, suppkey) refers to partsupp, partkey alone to part;
- links do not lead back to where they started: of two keys with the same values only one refers to the other;
- a link is as short as it can be: columns beyond a key that is referred to anyway add nothing.

Cost: some ten arithmetic features per candidate and a few rounds over all candidates; no data is read. The
result is a function of the arguments as sets: their order does not matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp
from typing import Any

from holdfast.discovery import link_evidence as evidence
from holdfast.discovery.link_evidence import ColumnFacts, Reason
from holdfast.discovery.name_similarity import SAME, NameMatch, Names
from holdfast.discovery.primary_keys import Keys
from holdfast.model.dependency import Ind, Side

__all__ = ["ColumnFacts", "Link", "Linkage", "Reason", "rank_links"]

MAX_ROUNDS = 8

# Points of the reasons that depend on what else is chosen.
PRIMARY = 1.0
NOT_MINIMAL = -1.5
CHAINED = -0.75
SAME_PARENTS = 1.5


@dataclass(frozen=True, slots=True)
class Link:
    """A foreign-key candidate: the dependent columns may refer to the key of another (or the same) table."""

    dependent: Side
    referenced: Side
    score: float  # 0 to 1; over one half iff chosen
    reasons: tuple[Reason, ...]
    chosen: bool
    error: float
    missing_values: int

    def __str__(self) -> str:
        return f"{self.dependent} -> {self.referenced}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "dependent": self.dependent.to_dict(),
            "referenced": self.referenced.to_dict(),
            "score": self.score,
            "chosen": self.chosen,
            "error": self.error,
            "missing_values": self.missing_values,
            "reasons": [reason.to_dict() for reason in self.reasons],
        }


@dataclass(frozen=True, slots=True)
class Linkage:
    """All candidates, best first, and the primary key that was chosen for each table that has a key."""

    links: tuple[Link, ...]
    primary_keys: Mapping[str, tuple[str, ...]]

    def to_dict(self) -> dict[str, Any]:
        return {
            "links": [link.to_dict() for link in self.links],
            "primary_keys": {table: list(columns) for table, columns in self.primary_keys.items()},
        }


def rank_links(
    columns: Sequence[ColumnFacts], keys: Mapping[str, Sequence[tuple[str, ...]]], inds: Sequence[Ind]
) -> Linkage:
    """Score inclusion dependencies as foreign keys, and choose some of them.

    `keys` are the minimal keys of the tables whose keys are known; in other tables a single column is known
    to be a key if all of its values are there and distinct. Columns that have no facts take part in nothing.

    >>> def integers(table, column, position, n_rows, n_distinct, high):
    ...     counts = (n_rows, n_rows, n_distinct)
    ...     return ColumnFacts(table, column, position, "number", *counts, 1, high, True, None)
    >>> facts = [integers("customers", "id", 0, 100, 100, 100), integers("orders", "id", 0, 900, 900, 900),
    ...          integers("orders", "customer_id", 1, 900, 90, 99), integers("orders", "items", 2, 900, 7, 7)]
    >>> inds = [Ind(Side("orders", (c,)), Side("customers", ("id",))) for c in ("customer_id", "items")]
    >>> [(str(link), link.chosen) for link in rank_links(facts, {}, inds).links]
    [('orders[customer_id] -> customers[id]', True), ('orders[items] -> customers[id]', False)]
    """
    facts = {(c.table, c.column): c for c in sorted(columns, key=lambda c: (c.table, c.position, c.column))}
    by_table: dict[str, list[str]] = defaultdict(list)
    for c in facts.values():
        by_table[c.table].append(c.column)
    names = Names(by_table)
    known = Keys.of(facts, keys, names)
    candidates = _candidates(facts, known, names, sorted(set(inds)))
    chosen: dict[Ind, Candidate] = {}
    primary = known.choose([])
    seen: set[tuple[frozenset[Ind], tuple[tuple[str, tuple[str, ...]], ...]]] = set()
    for _ in range(MAX_ROUNDS):
        chosen = _choose(candidates, primary, chosen)
        primary = known.choose([c.ind for c in chosen.values()])
        state = (frozenset(chosen), tuple(sorted(primary.items())))
        if state in seen:
            break
        seen.add(state)
    links = _links(candidates, primary, chosen)
    return Linkage(tuple(links), primary)


@dataclass(slots=True)
class Candidate:
    """An inclusion dependency in a key, with the reasons that depend on nothing else."""

    ind: Ind
    minimal: bool  # the referenced columns are a minimal key, not more
    unique: bool  # the dependent columns contain a key of their table
    named: float  # how much names speak for it, 0 to 1
    reasons: list[Reason]
    points: float = 0.0  # with the joint reasons of the round
    joint: list[Reason] = field(default_factory=list)

    @property
    def child(self) -> Side:
        return self.ind.dependent

    @property
    def parent(self) -> Side:
        return self.ind.referenced

    @property
    def unary(self) -> bool:
        return len(self.ind.dependent.columns) == 1


def _candidates(
    facts: Mapping[tuple[str, str], ColumnFacts], keys: Keys, names: Names, inds: Sequence[Ind]
) -> list[Candidate]:
    usable: list[tuple[Ind, bool, list[tuple[ColumnFacts, ColumnFacts]], list[NameMatch]]] = []
    for ind in inds:
        minimal = keys.minimal(ind.referenced)
        if minimal is None or not _known(facts, ind):
            continue
        pairs = [(facts[a], facts[b]) for a, b in _column_pairs(ind)]
        if any(a.n_distinct == 0 or b.n_distinct == 0 for a, b in pairs):
            continue  # an empty column is in everything and refers to nothing
        matches = [names.match(a.table, a.column, b.table, b.column, part=len(pairs) > 1) for a, b in pairs]
        usable.append((ind, minimal, pairs, matches))
    names_help = _names_help((ind, matches) for ind, _, _, matches in usable)
    return [
        _candidate(ind, minimal, pairs, matches, names_help, keys) for ind, minimal, pairs, matches in usable
    ]


def _known(facts: Mapping[tuple[str, str], ColumnFacts], ind: Ind) -> bool:
    return all(a in facts and b in facts for a, b in _column_pairs(ind))


def _column_pairs(ind: Ind) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    for a, b in zip(ind.dependent.columns, ind.referenced.columns, strict=True):
        yield (ind.dependent.table, a), (ind.referenced.table, b)


def _names_help(matches: Iterable[tuple[Ind, Sequence[NameMatch]]]) -> float:
    """Whether names mean something here, 0 to 1: by the number of columns that are named after a parent."""
    named = {ind.dependent for ind, (match, *more) in matches if not more and match.value >= SAME}
    return len(named) / (len(named) + 2)


def _candidate(
    ind: Ind,
    minimal: bool,
    pairs: Sequence[tuple[ColumnFacts, ColumnFacts]],
    matches: Sequence[NameMatch],
    names_help: float,
    keys: Keys,
) -> Candidate:
    child, parent = _written(ind.dependent), _written(ind.referenced)
    children = [a for a, _ in pairs]
    if len(pairs) == 1:
        coverage = children[0].n_distinct / pairs[0][1].n_distinct
    else:
        coverage = ind.coverage
    reasons = [
        evidence.name_reason(matches, names_help),
        evidence.coverage_reason(child, parent, coverage),
        evidence.range_reason(pairs),
        evidence.length_reason(pairs),
        evidence.chance_reason(child, parent, pairs, pairs[0][1].n_rows, coverage),
        evidence.sequence_reason(pairs),
        evidence.few_values_reason(children),
        evidence.repetition_reason(children[0]) if len(pairs) == 1 else None,
        evidence.type_reason(children),
        evidence.error_reason(child, parent, ind.error, ind.missing_values),
    ]
    named = min(m.value for m in matches)
    return Candidate(
        ind, minimal, keys.contains_key(ind.dependent), named, [r for r in reasons if r is not None]
    )


def _joint_reasons(
    candidate: Candidate,
    primary: Mapping[str, tuple[str, ...]],
    parents: Mapping[tuple[str, str], tuple[str, str]],
    included: Mapping[tuple[str, str], set[tuple[str, str]]],
) -> list[Reason]:
    """The reasons that depend on the primary keys and links of the round; `primary` is empty in the first."""
    child, parent = candidate.child, candidate.parent
    here, there = _written(child), _written(parent)
    reasons = []
    key = primary.get(parent.table)
    if not candidate.minimal:
        text = f"{there} has more columns than the key of {parent.table} needs"
        reasons.append(Reason("key", NOT_MINIMAL, 1.0, text))
    elif key is None or set(key) == set(parent.columns):
        text = f"{there} is unique and looks like the primary key of {parent.table}"
        reasons.append(Reason("key", PRIMARY, 1.0 if key is not None else 0.0, text))
    else:
        text = f"{there} is unique, but the primary key of {parent.table} looks like {', '.join(key)}"
        reasons.append(Reason("key", PRIMARY, -1.0, text))
    if candidate.unique:
        is_primary = set(primary.get(child.table, ())) <= set(child.columns)
        # A table may extend another one, and share its key; a row does not extend another one of its table.
        value = (1.0 if is_primary else 0.7) * (1 - 0.8 * candidate.named * (child.table != parent.table))
        what = f"looks like the primary key of {child.table} itself" if is_primary else "is itself unique"
        reasons.append(Reason("unique_child", evidence.UNIQUE_CHILD, value, f"{here} {what}"))
    if candidate.unary:
        ((a, b),) = _column_pairs(candidate.ind)
        root = parents.get(b)
        if root is not None and root in included[a]:
            text = f"{there} itself refers to {'.'.join(root)}, where {here} is included too"
            reasons.append(Reason("chained", CHAINED, 1.0, text))
    else:
        pairs = list(_column_pairs(candidate.ind))
        shared = [a for a, b in pairs if a in parents and parents[a] in (parents.get(b), b)]
        if shared:
            text = (
                f"{', '.join('.'.join(a) for a in shared)} and the columns of {there} have the same parents"
            )
            reasons.append(Reason("same_parents", SAME_PARENTS, len(shared) / len(pairs), text))
    return reasons


def _choose(
    candidates: Sequence[Candidate], primary: Mapping[str, tuple[str, ...]], before: Mapping[Ind, Candidate]
) -> dict[Ind, Candidate]:
    """One round: points of all candidates, then the best ones that are compatible with each other."""
    parents = {a: b for ind in before if len(ind.dependent.columns) == 1 for a, b in _column_pairs(ind)}
    included: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for c in candidates:
        if c.unary:
            ((a, b),) = _column_pairs(c.ind)
            included[a].add(b)
    for c in candidates:
        c.joint = _joint_reasons(c, primary, parents, included)
        c.points = evidence.PRIOR + sum(r.points for r in c.reasons) + sum(r.points for r in c.joint)
    accepted: dict[Ind, Candidate] = {}
    rules = _Rules(candidates)
    for c in sorted(candidates, key=lambda c: (-c.points, c.ind)):
        if c.points > 0 and rules.objection(c) is None:
            rules.accept(c)
            accepted[c.ind] = c
    return accepted


class _Rules:
    """What a set of chosen links must obey; links are accepted one by one, best first."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self._by_child: dict[tuple[str, frozenset[str]], Candidate] = {}
        self._parents: dict[tuple[str, str], tuple[str, str]] = {}
        self._sub: dict[tuple[str, str], list[frozenset[tuple[str, str]]]] = defaultdict(list)
        for c in candidates:
            if c.minimal:
                self._sub[c.child.table, c.parent.table].append(_mapping(c.ind))

    def accept(self, c: Candidate) -> None:
        self._by_child[_child(c.ind)] = c
        if c.unary:
            ((a, b),) = _column_pairs(c.ind)
            self._parents[a] = b

    def objection(self, c: Candidate) -> Reason | None:
        """Why a link cannot be chosen beside the accepted ones. It takes what the link's rival has, or all
        that the link has: either way no more than even odds remain."""
        here, there = _written(c.child), _written(c.parent)
        rival = self._by_child.get(_child(c.ind))
        if rival is not None and rival.ind != c.ind:
            text = f"{here} refers to {_written(rival.parent)} rather"
            return Reason("rival", -max(rival.points, c.points), 1.0, text)
        own = _mapping(c.ind)
        if any(sub < own for sub in self._sub[c.child.table, c.parent.table]):
            return Reason(
                "implied", -max(c.points, 0.0), 1.0, f"fewer columns are enough to refer to {there}"
            )
        if c.unary:
            ((start, node),) = _column_pairs(c.ind)
            while node != start and node in self._parents:
                node = self._parents[node]
            if node == start:
                return Reason("circle", -max(c.points, 0.0), 1.0, f"{there} itself refers to {here}")
        return None


def _child(ind: Ind) -> tuple[str, frozenset[str]]:
    return ind.dependent.table, frozenset(ind.dependent.columns)


def _mapping(ind: Ind) -> frozenset[tuple[str, str]]:
    return frozenset(zip(ind.dependent.columns, ind.referenced.columns, strict=True))


def _links(
    candidates: Sequence[Candidate], primary: Mapping[str, tuple[str, ...]], chosen: Mapping[Ind, Candidate]
) -> list[Link]:
    rules = _Rules(candidates)
    for c in chosen.values():
        rules.accept(c)
    scored: list[tuple[float, Ind, Link]] = []
    for c in candidates:
        reasons = sorted([*c.joint, *c.reasons], key=lambda r: -abs(r.points))
        points = c.points
        if c.ind not in chosen:
            objection = rules.objection(c)
            if objection is not None:
                reasons.append(objection)
                points += objection.points
        score = 1 / (1 + exp(-points))
        link = Link(
            c.child, c.parent, score, tuple(reasons), c.ind in chosen, c.ind.error, c.ind.missing_values
        )
        scored.append((-points, c.ind, link))
    return [link for _, _, link in sorted(scored, key=lambda s: s[:2])]


def _written(side: Side) -> str:
    """customer.c_custkey, partsupp.(ps_partkey, ps_suppkey)"""
    if len(side.columns) == 1:
        return f"{side.table}.{side.columns[0]}"
    return f"{side.table}.({', '.join(side.columns)})"
