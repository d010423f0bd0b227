"""What holds in a table, best first, as arrays: filtered in milliseconds, however much there is.

Wide tables have hundreds of thousands of functional dependencies or denial constraints, of which a page shows
fifty. So these stay masks of columns or predicates, as their covers are stored; their scores are worked out
for all at once, they are put in order once for a version, and filters compare masks. An object is made only
for what is shown. The order is that of `Workspace.dependencies(table=..., ranked=True)`.

Cost of a listing: 1 us for each functional dependency or denial constraint, 20 us for each dependency of
another kind; of a filter some nanoseconds for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.app.report.texts import meaning, safe
from holdfast.core.words.column_sets import columns_mask, listed_order, masks_from, words_for
from holdfast.core.words.dependency import Dependency, Ind
from holdfast.core.words.predicate import Dc
from holdfast.core.words.ranks import ROLES, Rank
from holdfast.core.words.row_rule import RowRule
from holdfast.denial.constraints import dcs_of
from holdfast.functional.refs import named_fds, named_uccs
from holdfast.kind import Query, kinds

if TYPE_CHECKING:
    from holdfast.core.rows.table_state import TableState
    from holdfast.order import Order
    from holdfast.workspace import Workspace

U64 = NDArray[np.uint64]
I8 = NDArray[np.int8]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Bool = NDArray[np.bool_]

ARROW = "->"
# The kinds as a workspace lists them, which is the order of what means the same; then all others.
FIRST = ("ucc", "fd", "dc", "row", "ind")
MOST_TEXTS = 20_000  # dependencies of a kind that a search looks at as texts
PINNED, DEPENDENCY, CHANCE, MUTED = map(ROLES.index, ("pinned", "dependency", "chance", "muted"))


@dataclass(frozen=True)
class Part:
    """The dependencies of one kind, best first: `named` makes some of them, by their places here."""

    kind: str
    roles: I8  # as numbers of ROLES
    scores: F64
    left: U64  # columns, uint64[n, n_words]; of functional dependencies those of the left-hand side
    rhs: I32 | None  # of functional dependencies
    named: Callable[[I64], Sequence[Dependency]]
    having: Callable[[str], Bool] | None = None  # those with a word, where there are too many for texts

    @cached_property
    def columns(self) -> U64:
        """All columns of each, as masks."""
        if self.rhs is None:
            return self.left
        masks = self.left.copy()
        masks[np.arange(len(masks)), self.rhs >> 6] |= np.uint64(1) << (self.rhs & 63).astype(np.uint64)
        return masks

    @cached_property
    def _texts(self) -> list[str]:
        """What a search looks at, beside the names of columns."""
        return [f"{d.name} {sentence_of(d)}".casefold() for d in self.named(np.arange(len(self.roles)))]

    def about(self, column: int) -> Bool:
        """Those with a column: bool[n]."""
        return _with_any(self.columns, [column])

    def matching(self, words: Sequence[str], names: Sequence[str]) -> Bool:
        """Those in which each word occurs: in the name of a column, or in the text: bool[n].

        Of functional dependencies what stands behind an arrow is looked for on the right-hand side. Of them
        and of keys only the names of columns are looked at, of more than MOST_TEXTS constraints only their
        predicates, and not what they say in words.
        """
        matches = np.ones(len(self.roles), dtype=np.bool_)
        at = words.index(ARROW) if ARROW in words else len(words)
        for i, word in enumerate(words):
            columns = [c for c, name in enumerate(names) if word in name]
            if self.having is not None:
                matches &= self.having(word)
            elif self.kind not in ("ucc", "fd"):
                matches &= np.array([word in text for text in self._texts], dtype=np.bool_)
            elif word == ARROW:
                matches &= self.rhs is not None
            elif self.rhs is None or at == len(words):
                matches &= _with_any(self.columns, columns)
            else:
                matches &= _with_any(self.left, columns) if i < at else np.isin(self.rhs, columns)
        return matches


@dataclass(frozen=True)
class Ask:
    """Which dependencies are wanted; what is None does not matter."""

    kind: str | None = None
    column: int | None = None
    text: str | None = None
    least_score: float = 0.0
    role: str | None = None


@dataclass(frozen=True)
class Chosen:
    """The places of what is wanted, best first; `by_kind` counts those of each kind, wanted or not."""

    places: I64
    n_chance: int
    n_muted: int
    by_kind: dict[str, int]


class Listing:
    """All dependencies of a table at a version, best first."""

    def __init__(self, parts: Sequence[Part], names: Sequence[str]) -> None:
        self.parts, self.names = parts, names
        sizes = [len(part.roles) for part in parts]
        starts = np.cumsum([0, *sizes])
        kind = np.repeat(np.arange(len(parts)), sizes)
        within = np.arange(starts[-1]) - starts[kind]
        roles = np.concatenate([np.empty(0, np.int8), *(part.roles for part in parts)])
        scores = np.concatenate([np.empty(0), *(part.scores for part in parts)])
        order = np.lexsort((-scores, roles))  # stable: of one place the kinds come in their order
        self.kind, self.within, self.roles, self.scores = (
            kind[order],
            within[order],
            roles[order],
            scores[order],
        )
        self._order = order

    def __len__(self) -> int:
        return len(self.roles)

    def part(self, kind: str) -> Part | None:
        return next((part for part in self.parts if part.kind == kind), None)

    def choose(self, ask: Ask) -> Chosen:
        """What is wanted. Cost: a comparison of masks for each condition."""
        wanted = np.ones(len(self), dtype=np.bool_)
        if ask.column is not None:
            column = ask.column
            wanted &= self._of_parts(lambda part: part.about(column))
        words = (ask.text or "").casefold().replace(ARROW, f" {ARROW} ").replace(",", " ").split()
        if words:
            names = [name.casefold() for name in self.names]
            wanted &= self._of_parts(lambda part: part.matching(words, names))
        if ask.least_score:
            wanted &= self.scores >= ask.least_score
        if ask.role is not None:
            wanted &= self.roles == [*ROLES].index(ask.role)  # type: ignore[arg-type]
        counts = np.bincount(self.kind[wanted], minlength=len(self.parts)).tolist()
        by_kind = {part.kind: n for part, n in zip(self.parts, counts, strict=True)}
        if ask.kind is not None:
            wanted &= np.array([part.kind == ask.kind for part in self.parts], dtype=np.bool_)[self.kind]
        places = np.flatnonzero(wanted)
        n_chance, n_muted = (int((self.roles[places] == role).sum()) for role in (CHANCE, MUTED))
        return Chosen(places, n_chance, n_muted, by_kind)

    def named(self, places: I64) -> list[tuple[Dependency, Rank]]:
        """The dependencies at some places, each with what it means."""
        named: dict[int, Dependency] = {}
        for i, part in enumerate(self.parts):
            those = places[self.kind[places] == i]
            named.update(zip(those.tolist(), part.named(self.within[those]), strict=True))
        return [
            (named[p], Rank(ROLES[role], score))
            for p, role, score in zip(
                places.tolist(), self.roles[places].tolist(), self.scores[places].tolist(), strict=True
            )
        ]

    def _of_parts(self, test: Callable[[Part], Bool]) -> Bool:
        return np.concatenate([np.empty(0, np.bool_), *map(test, self.parts)])[self._order]


def listing_of(ws: Workspace, order: Order, table: str, at: int | None) -> Listing:
    """The listing of a table."""
    state = order.state(table)
    parts = []
    for kind in (*FIRST, *(kind for kind in kinds() if kind not in FIRST)):
        if kind == "fd":
            part = _fds(ws, order, state)
        elif kind == "ucc":
            part = _keys(ws, order, state)
        elif kind == "dc" and kind in state.kinds:
            part = _dcs(ws, order, state)
        else:
            part = _others(list(ws.readers.listed(Query(kind, table, at))), kind, order, state)
        if len(part.roles) or kind in state.kinds:
            parts.append(part)
    return Listing(parts, state.schema.names)


def _fds(ws: Workspace, order: Order, state: TableState) -> Part:
    cover = ws.fds.cover(state)
    n_words = words_for(len(state.schema))
    masks, rhs = (np.empty((0, n_words), np.uint64), np.empty(0, np.int32)) if cover is None else cover
    chance, scores = order.table(state.table).fd_ranks(masks, rhs)
    roles = np.where(chance, CHANCE, DEPENDENCY).astype(np.int8)
    position = {name: i for i, name in enumerate(state.schema.names)}
    for role, marked in ((MUTED, order.muted(state.table)), (PINNED, order.pinned)):
        for left, right in marked.fds(state.table):
            mask = columns_mask([position[c] for c in left], n_words)
            roles[(masks == mask).all(axis=1) & (rhs == position[right])] = role
    best = np.lexsort((rhs, *listed_order(masks), -scores, roles))
    masks, rhs, roles = masks[best], rhs[best], roles[best]

    def named(some: I64) -> list[Dependency]:
        return [named_fds(state, masks[i : i + 1], rhs[i : i + 1])[0] for i in some]

    return Part("fd", roles, scores[best], masks, rhs, named)


def _keys(ws: Workspace, order: Order, state: TableState) -> Part:
    cover = ws.keys.cover(state)
    return _others([] if cover is None else named_uccs(state, cover), "ucc", order, state)


def _dcs(ws: Workspace, order: Order, state: TableState) -> Part:
    masks, space = ws.dcs.masks(state), ws.dcs.space(state.table)
    position = {name: i for i, name in enumerate(state.schema.names)}
    sides = [(position[p.left], position[p.right]) for p in space.predicates]
    n_words = words_for(len(position))
    columns = np.zeros((len(masks), n_words), dtype=np.uint64)
    for c in sorted({c for pair in sides for c in pair}):
        has = _with_any(masks, [i for i, pair in enumerate(sides) if c in pair])
        columns[has, c >> 6] |= np.uint64(1) << np.uint64(c & 63)
    chance, scores = order.table(state.table).dc_ranks(masks, space)

    def named(some: I64) -> list[Dependency]:
        return [*dcs_of(state.table, space, masks[some])]

    roles = np.where(chance, CHANCE, DEPENDENCY).astype(np.int8)
    for role, marked in ((MUTED, order.muted(state.table)), (PINNED, order.pinned)):
        for names in marked.columns(state.table):
            if names <= position.keys():
                about = columns_mask([position[c] for c in names], n_words)
                near = np.flatnonzero((columns == about).all(axis=1))
                roles[[i for i, dc in zip(near.tolist(), named(near), strict=True) if dc in marked]] = role
    best = np.lexsort((-scores, roles))
    masks, columns = masks[best], columns[best]
    texts = [str(p).casefold() for p in space.predicates]

    def having(word: str) -> Bool:
        return _with_any(masks, [i for i, text in enumerate(texts) if word in text])

    many = having if len(masks) > MOST_TEXTS else None
    return Part("dc", roles[best], scores[best], columns, None, named, many)


def _with_any(masks: U64, bits: Sequence[int]) -> Bool:
    """Which masks have one of some bits: bool[n]."""
    wanted = columns_mask(bits, masks.shape[1])
    any_: Bool = np.zeros(len(masks), dtype=np.bool_)
    for word in np.flatnonzero(wanted):
        any_ |= masks[:, word] & wanted[word] != 0
    return any_


def _others(dependencies: Sequence[Dependency], kind: str, order: Order, state: TableState) -> Part:
    ranks = order.ranks(dependencies)
    best = sorted(range(len(ranks)), key=lambda i: ranks[i].place())
    some = [dependencies[i] for i in best]
    position = {name: i for i, name in enumerate(state.schema.names)}
    sets = [[position[c] for c in columns_in(dependency, state.table)] for dependency in some]
    masks = masks_from(sets, words_for(len(position)))
    return Part(
        kind,
        np.array([ROLES.index(ranks[i].role) for i in best], dtype=np.int8),
        np.array([ranks[i].score for i in best], dtype=np.float64),
        masks,
        None,
        lambda places: [some[i] for i in places],
    )


def sentence_of(dependency: Dependency) -> str:
    """A rule in words; "" of what needs none."""
    if isinstance(dependency, Dc):
        return meaning(dependency)
    return safe(dependency.sentence) if isinstance(dependency, RowRule) else ""


def columns_in(dependency: Dependency, table: str) -> Sequence[str]:
    """The columns of a table that a dependency is about."""
    if isinstance(dependency, Ind):
        sides = (dependency.dependent, dependency.referenced)
        return [c for side in sides if side.table == table for c in side.columns]
    return dependency.columns
