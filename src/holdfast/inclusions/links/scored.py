"""Foreign keys among inclusion dependencies: every candidate scored, and one consistent set of them chosen.

A candidate is an inclusion dependency whose referenced side is a key. Its reasons (`link_evidence`) add up to
points, log-odds: score = 1 / (1 + exp(-points)). A link is *chosen*, proposed as a foreign key, iff its score
is over one half.

Keys and links are chosen together. A key that others refer to is more likely the primary key of its table
(`primary_keys`), and a link is more likely if it refers to a primary key and does not start from one
(`link_choice`). The two choices are repeated, each with the other one fixed, until neither changes.

Cost: some ten arithmetic features per candidate and a few rounds over all candidates, 0.15 ms for each; no
data is read. The result is a function of the arguments as sets: their order does not matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import Any

from holdfast.core.store.tabular import Ranked
from holdfast.core.words.codec import Coded
from holdfast.core.words.column_facts import ColumnFacts
from holdfast.core.words.dependency import Ind, Side
from holdfast.core.words.name_similarity import SAME, NameMatch, Names
from holdfast.inclusions.links import link_evidence as evidence
from holdfast.inclusions.links.link_choice import (
    Candidate,
    Choice,
    ChosenLinks,
    Column,
    column_pairs,
    written,
)
from holdfast.inclusions.links.link_evidence import Reason
from holdfast.inclusions.links.primary_keys import Keys
from holdfast.inclusions.links.unproved import unproved_links

__all__ = ["ColumnFacts", "Link", "Linkage", "Reason", "rank_links"]

# Rounds settle after two or three; a choice that flips back and forth ends here.
MAX_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Link(Coded):
    """A foreign-key candidate: the dependent columns may refer to the key of another (or the same) table."""

    dependent: Side
    referenced: Side
    score: float  # 0 to 1; over one half iff chosen
    reasons: tuple[Reason, ...]
    chosen: bool
    error: float
    missing_values: int
    proved: bool = True  # False: the dependent column has no value, and its name alone speaks for the link

    def __str__(self) -> str:
        return f"{self.dependent} -> {self.referenced}"


@dataclass(frozen=True, slots=True, repr=False)
class Linkage(Coded, Ranked):
    """All candidates, best first, and the primary key that was chosen for each table that has a key."""

    links: tuple[Link, ...]
    primary_keys: Mapping[str, tuple[str, ...]]

    def ranked(self) -> Sequence[Any]:
        return self.links

    def lost_links(self, as_before: Linkage, lost: Collection[Ind]) -> list[Link]:
        """Of what was lost the links that are chosen `as_before`, when it held: of columns that have none
        now, to primary keys (of a copied column nobody knows any more that it is one)."""
        referring = {link.dependent for link in self.links if link.chosen}
        return [
            link
            for link in as_before.links
            if link.chosen
            and link.dependent not in referring
            and {*link.referenced.columns} == {*self.primary_keys.get(link.referenced.table, ())}
            and Ind(link.dependent, link.referenced) in lost
        ]

    def with_broken(self, links: Sequence[Link], now: Sequence[Ind]) -> Linkage:
        """These links and some that are broken, each with what it misses now."""
        broken = [
            replace(link, error=ind.error, missing_values=ind.missing_values)
            for link, ind in zip(links, now, strict=True)
        ]
        return Linkage(tuple(sorted([*self.links, *broken], key=lambda link: -link.score)), self.primary_keys)


def rank_links(
    columns: Sequence[ColumnFacts],
    keys: Mapping[str, Sequence[tuple[str, ...]]],
    inds: Sequence[Ind],
    *,
    with_unproved: bool = True,
) -> Linkage:
    """Score inclusion dependencies as foreign keys, and choose some of them.

    `keys` are the minimal keys of the tables whose keys are known; in other tables a single column is known
    to be a key if all of its values are there and distinct. Columns that have no facts take part in nothing.
    Columns without a value are linked by name, unless that is not asked for.

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
    all_keys = Keys.of(facts, keys, names)
    candidates = _candidates(facts, all_keys, names, sorted(set(inds)))
    choice = Choice(facts, names, candidates)
    chosen: list[Candidate] = []
    primary = all_keys.choose([])
    seen: set[tuple[frozenset[Ind], frozenset[tuple[str, tuple[str, ...]]]]] = set()
    while True:
        chosen = choice.choose(primary, chosen)
        state = (frozenset(c.ind for c in chosen), frozenset(primary.items()))
        if state in seen or len(seen) == MAX_ROUNDS:
            links = _links(candidates, chosen)
            links += _unproved(facts, names, primary) if with_unproved else ()
            return Linkage(tuple(sorted(links, key=lambda link: -link.score)), primary)
        seen.add(state)
        primary = all_keys.choose([c.ind for c in chosen])


def _candidates(
    facts: Mapping[Column, ColumnFacts], keys: Keys, names: Names, inds: Sequence[Ind]
) -> list[Candidate]:
    usable: list[tuple[Ind, bool, list[tuple[ColumnFacts, ColumnFacts]], list[NameMatch]]] = []
    for ind in inds:
        minimal = keys.minimal(ind.referenced)
        if minimal is None or not all(a in facts and b in facts for a, b in column_pairs(ind)):
            continue
        pairs = [(facts[a], facts[b]) for a, b in column_pairs(ind)]
        if any(a.n_distinct == 0 or b.n_distinct == 0 for a, b in pairs):
            continue  # an empty column is in everything: see `unproved`
        matches = [names.match(a.table, a.column, b.table, b.column, part=len(pairs) > 1) for a, b in pairs]
        usable.append((ind, minimal, pairs, matches))
    names_help = _names_help((ind, matches) for ind, _, _, matches in usable)
    return [_candidate(order, *fields, names_help, keys) for order, fields in enumerate(usable)]


def _names_help(matches: Iterable[tuple[Ind, Sequence[NameMatch]]]) -> float:
    """Whether names mean something here, 0 to 1: by the number of columns that are named after a parent."""
    named = {ind.dependent for ind, (match, *more) in matches if not more and match.value >= SAME}
    return len(named) / (len(named) + 2)


def _candidate(
    order: int,
    ind: Ind,
    minimal: bool,
    pairs: Sequence[tuple[ColumnFacts, ColumnFacts]],
    matches: Sequence[NameMatch],
    names_help: float,
    keys: Keys,
) -> Candidate:
    child, parent = written(ind.dependent), written(ind.referenced)
    children = [a for a, _ in pairs]
    coverage = ind.coverage  # counted by facts where they know it
    if len(pairs) == 1:
        coverage = children[0].n_distinct / pairs[0][1].n_distinct * (1 - ind.error)
    named = min(m.value for m in matches)
    reasons = [
        evidence.prior_reason(),
        evidence.name_reason(matches, names_help),
        evidence.coverage_reason(child, parent, coverage) if coverage is not None else None,
        evidence.range_reason(pairs, named),
        evidence.length_reason(pairs),
        evidence.chance_reason(child, parent, pairs, pairs[0][1].n_rows, coverage, ind.error),
        evidence.sequence_reason(pairs, named),
        evidence.few_values_reason(children),
        evidence.repetition_reason(children[0]) if len(pairs) == 1 else None,
        evidence.type_reason(children),
        evidence.error_reason(child, parent, ind.error, ind.missing_values),
    ]
    return Candidate(
        ind,
        order,
        pairs,
        minimal,
        unique=keys.contains_key(ind.dependent),
        named=named,
        reasons=[r for r in reasons if r is not None],
    )


def _links(candidates: Sequence[Candidate], chosen: Sequence[Candidate]) -> list[Link]:
    links = ChosenLinks(candidates)
    for c in chosen:
        links.accept(c)
    accepted = {c.ind for c in chosen}
    scored: list[tuple[float, int, Link]] = []
    for c in candidates:
        reasons = sorted([*c.joint, *c.reasons], key=lambda r: (r.name == "prior", -abs(r.points)))
        points = c.points
        objection = None if c.ind in accepted else links.objection(c)
        if objection is not None:
            reasons.append(objection)
            points += objection.points
        link = Link(
            c.child,
            c.parent,
            _score(points),
            tuple(reasons),
            c.ind in accepted,
            c.ind.error,
            c.ind.missing_values,
        )
        scored.append((-points, c.order, link))
    return [link for _, _, link in sorted(scored, key=lambda s: s[:2])]


def _unproved(
    facts: Mapping[Column, ColumnFacts], names: Names, primary: Mapping[str, tuple[str, ...]]
) -> Iterator[Link]:
    for child, parent, reasons in unproved_links(facts, names, primary):
        points = sum(r.points for r in reasons)
        sides = Side(child.table, (child.column,)), Side(parent.table, (parent.column,))
        yield Link(*sides, _score(points), reasons, points > 0, 0.0, 0, proved=False)


def _score(points: float) -> float:
    return 1 / (1 + exp(-points))
