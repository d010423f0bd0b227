"""What broke lately, and what of it matters: the newest incidents of a workspace, from its ledger.

A batch breaks dependencies by the dozen, and most of them looked like chance. An *incident* is one that did
not: it has a role, or a score (`order.py`), as it would have now if it held. Of each version, table and kind
those are weighed that come first; the ledger has them in the order of what they meant to that batch.

A broken dependency *holds again* once one appeared that says it: itself, or a narrower one. That follows from
the minimal covers: what comes to hold does so with something minimal that did not hold before, and whatever
becomes minimal that way is written as "appeared".

Nothing is listed and no row is looked at. Cost: of the newest versions their changes; of inclusions, which
can be foreign keys, all that broke since their tables were tracked, once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.core.store.change_counts import I64, Bool, ChangeCounts, change_texts
from holdfast.core.words.dependency import Dependency, Fd, Ind, Ucc
from holdfast.core.words.predicate import IMPLIED, Dc, Operator
from holdfast.core.words.ranks import LONG_HELD, Rank
from holdfast.core.words.row_rule import RowRule
from holdfast.kind import entries

if TYPE_CHECKING:
    from holdfast.inclusions.links.references import References
    from holdfast.workspace import Workspace

# Of a version, table and kind so many are weighed; of inclusions that are broken now, and of versions.
FIRST = 3
MOST_INDS = 300
MOST_VERSIONS = 60
# Minimal keys of a table, the shortest, among which a primary key is looked for.
MOST_KEYS = 20
# What had held for long means something from this score on.
WORTH = 0.3


@dataclass(frozen=True, slots=True)
class Incident:
    """A dependency that broke, and that somebody may have meant."""

    version: int
    dependency: Dependency
    reason: str
    rank: Rank
    long_held: bool  # it was not among what appeared in the versions before
    again: int | None  # the version since which it holds again

    @property
    def strong(self) -> bool:
        """A foreign key, a primary key, or what had held for long and has a score."""
        if self.rank.role in ("foreign key", "primary key", "pinned"):
            return True
        return self.rank.role == "dependency" and self.long_held and self.rank.score >= WORTH


def says(narrow: Dependency, broad: Dependency) -> bool:
    """Whether the second follows from the first, of one kind and table.

    >>> says(Ucc("t", ("a",)), Ucc("t", ("a", "b"))), says(Fd("t", ("a", "b"), "c"), Fd("t", ("a",), "c"))
    (True, False)
    >>> says(RowRule("t", "a", "<", "b"), RowRule("t", "a", "<=", "b"))
    True
    """
    if isinstance(narrow, Ucc) and isinstance(broad, Ucc):
        return {*narrow.columns} <= {*broad.columns}
    if isinstance(narrow, Fd) and isinstance(broad, Fd):
        return narrow.rhs == broad.rhs and {*narrow.lhs} <= {*broad.lhs}
    if isinstance(narrow, RowRule) and isinstance(broad, RowRule):
        same = (narrow.left, narrow.right) == (broad.left, broad.right)
        return same and broad.op in IMPLIED[narrow.op]
    if isinstance(narrow, Dc) and isinstance(broad, Dc):
        return any(_inside(dc, broad) for dc in (narrow, narrow.mirrored))
    return narrow == broad


def _inside(narrow: Dc, broad: Dc) -> bool:
    """Whether pairs that satisfy all of the second satisfy all of the first."""
    given: dict[tuple[str, str], list[Operator]] = {}
    for p in broad.predicates:
        given.setdefault((p.left, p.right), []).append(p.op)
    return all(any(p.op in IMPLIED[op] for op in given.get((p.left, p.right), ())) for p in narrow.predicates)


@dataclass
class OpenInclusions:
    """The inclusions that broke and have not appeared again; read once, then version by version."""

    version: int = 0
    broken: dict[Ind, tuple[int, str]] = field(default_factory=dict)  # version, reason

    def read(self, ws: Workspace, counts: ChangeCounts, until: int) -> None:
        ind = counts.kinds.get("ind")
        first, self.version = self.version + 1, until
        some = counts.counts
        versions = some.version[(some.kind == ind) & (some.version >= first)]
        tracked = counts.commits.version[counts.commits.action == counts.actions.get("track")]
        if ind < 0 or not len(versions := versions[~np.isin(versions, tracked)]):
            return
        turns = [counts.events.get(event) for event in ("broke", "appeared")]

        def turned(version: I64, table: I64, kind: I64, event: I64) -> Bool:
            chosen: Bool = (kind == ind) & np.isin(event, turns) & ~np.isin(version, tracked)
            return chosen

        bounds = int(versions.min()), until
        for block in change_texts(ws.ledger, counts, *bounds, turned, ("dependency", "reason")):
            columns = (block.version.tolist(), block.event.tolist(), *block.cells.values())
            for version, event, text, reason in zip(*columns, strict=True):
                sides = Ind.from_dict(json.loads(text or ""))
                self.broken.pop(sides, None)
                if event == turns[0]:
                    self.broken[sides] = version, reason or ""

    def newest(self, lives: Mapping[str, int]) -> list[tuple[int, Ind, str]]:
        """(version, inclusion, reason) of the newest, of tables that are tracked since before."""
        living = [
            (version, ind, reason)
            for ind, (version, reason) in self.broken.items()
            if all(lives.get(side.table, version) < version for side in (ind.dependent, ind.referenced))
        ]
        return sorted(living, key=lambda each: each[0])[-MOST_INDS:]


def lives(counts: ChangeCounts, tables: Iterable[str]) -> dict[str, int]:
    """Of each table the version that it is tracked since."""
    commits = counts.commits
    is_track = commits.action == counts.actions.get("track")
    last = np.zeros(max(1, len(counts.tables.texts)), dtype=np.int64)
    np.maximum.at(last, commits.table[is_track], commits.version[is_track])
    return {table: int(last[counts.tables.get(table)]) for table in tables}


def incidents(
    ws: Workspace, counts: ChangeCounts, inclusions: OpenInclusions, tables: Sequence[str], at: int
) -> list[Incident]:
    """What broke and may have been meant, newest first: of the newest versions that broke something, and all
    inclusions that are broken now."""
    since = lives(counts, tables)
    inclusions.read(ws, counts, at)
    recent = _recent(ws, counts, since, at)
    broken = [*recent.broken, *(b for b in inclusions.newest(since) if b[0] < recent.first)]
    ranks = _ranks(ws, [dependency for _, dependency, _ in broken], at)
    listed = [
        Incident(version, dependency, reason, rank, recent.long_held(version, dependency), None)
        for (version, dependency, reason), rank in zip(broken, ranks, strict=True)
        if rank.role not in ("chance", "muted") and not _follows_from_parts(dependency, rank)
    ]
    listed = [replace(i, again=recent.again(i.version, i.dependency)) for i in listed]
    return sorted(listed, key=lambda i: (-i.version, i.rank.place(LONG_HELD if i.long_held else 0)))


def _follows_from_parts(dependency: Dependency, rank: Rank) -> bool:
    """An inclusion of several columns that is no foreign key: one of its columns says it."""
    return isinstance(dependency, Ind) and len(dependency.columns) > 1 and rank.role == "dependency"


@dataclass
class _Recent:
    """The changes of the newest versions: what broke, and the texts of what appeared by table and kind."""

    first: int
    since: Mapping[str, int]
    broken: list[tuple[int, Dependency, str]] = field(default_factory=list)
    appeared: dict[tuple[str, str], list[tuple[int, str]]] = field(default_factory=dict)
    _read: dict[tuple[str, str], list[tuple[int, Dependency]]] = field(default_factory=dict)

    def _of(self, dependency: Dependency) -> list[tuple[int, Dependency]]:
        at = dependency.table, dependency.kind
        if at not in self._read:
            texts = self.appeared.get(at, [])
            self._read[at] = [(version, dependency_of(json.loads(text))) for version, text in texts]
        return self._read[at]

    def again(self, version: int, dependency: Dependency) -> int | None:
        """The first version after one at which something appeared that says the dependency."""
        since = (v for v, other in self._of(dependency) if v > version and says(other, dependency))
        return next(since, None)

    def long_held(self, version: int, dependency: Dependency) -> bool:
        """Whether it was there before, and not among what appeared in the LONG_HELD versions before."""
        if version - LONG_HELD < self.since.get(dependency.table, version):
            return False
        young = range(version - LONG_HELD + 1, version)
        return not any(v in young and other == dependency for v, other in self._of(dependency))


def _recent(ws: Workspace, counts: ChangeCounts, since: Mapping[str, int], at: int) -> _Recent:
    some, broke, came = counts.counts, counts.events.get("broke"), counts.events.get("appeared")
    # By the number of a table; those that are not tracked broke nothing.
    lived = np.array([since.get(name, at) for name in counts.tables.texts] or [at], dtype=np.int64)
    versions = np.unique(some.version[(some.event == broke) & (some.version > lived[some.table])])
    if not len(versions):
        return _Recent(at + 1, since)
    first = int(versions[-MOST_VERSIONS:][0])

    def wanted(version: I64, table: I64, kind: I64, event: I64) -> Bool:
        alive = (table >= 0) & (version > lived[table])
        is_broken = alive & (event == broke) & (version >= first)
        chosen: Bool = (alive & (event == came)) | (
            is_broken & (_places(version, table, kind, is_broken) < FIRST)
        )
        return chosen

    recent = _Recent(first, since)
    for block in change_texts(ws.ledger, counts, first - LONG_HELD, at, wanted, ("dependency", "reason")):
        rows = zip(
            *(column.tolist() for column in (block.version, block.table, block.kind, block.event)),
            *block.cells.values(),
            strict=True,
        )
        for version, table, kind, event, text, reason in rows:
            place = counts.tables.texts[table], counts.kinds.texts[kind]
            if event == came:
                recent.appeared.setdefault(place, []).append((version, text or ""))
            else:
                recent.broken.append((version, dependency_of(json.loads(text or "")), reason or ""))
    return recent


def _places(version: I64, table: I64, kind: I64, chosen: Bool) -> I64:
    """Which one of the chosen of its version, table and kind each row is; 0 for those that are not."""
    places = np.zeros(len(version), dtype=np.int64)
    rows = np.flatnonzero(chosen)
    keys = np.stack([version[rows], table[rows], kind[rows]])
    order = np.lexsort(keys[::-1])  # stable: rows of a group stay in their order
    starts = np.ones(len(rows), dtype=np.bool_)
    starts[1:] = (keys[:, order][:, 1:] != keys[:, order][:, :-1]).any(axis=0)
    numbers = np.arange(len(rows))
    places[rows[order]] = numbers - np.maximum.accumulate(np.where(starts, numbers, 0))
    return places


def _ranks(ws: Workspace, broken: Sequence[Dependency], at: int) -> list[Rank]:
    """What each would mean if it held now: a key that broke is weighed beside those that hold."""
    if not broken:
        return []
    gone: dict[str, list[tuple[str, ...]]] = {}
    for dependency in broken:
        if isinstance(dependency, Ucc):
            gone.setdefault(dependency.table, []).append(dependency.columns)
    order = ws.readers.order(at)
    held, references = order.keys, order.references

    @cache
    def keys(table: str) -> tuple[tuple[str, ...], ...]:
        return (*_shortest(held(table) or ()), *gone.get(table, ()))

    def among() -> References | None:
        weighed = references()
        return None if weighed is None else replace(weighed, keys=keys)

    order = replace(order, keys=keys, references=among)
    columns = {table: {*ws.schema(table, at).names} for table in {d.table for d in broken}}
    known = [i for i, d in enumerate(broken) if {*d.columns} <= columns[d.table]]
    ranks = [Rank("chance", 0.0)] * len(broken)  # a column that is gone broke nothing
    for i, rank in zip(known, order.ranks([broken[i] for i in known]), strict=True):
        ranks[i] = rank
    return ranks


def _shortest(keys: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Keys that somebody may have meant: tables have thousands of longer ones, which say nothing here."""
    return sorted(keys, key=len)[:MOST_KEYS]


def dependency_of(fields: Mapping[str, Any]) -> Dependency:
    """A dependency in its JSON form."""
    dependency: Dependency = entries()[fields["kind"]].dependency.from_dict(fields)
    return dependency
