"""The inclusions of a lake: found by column, scored, ranked, with matching values. Needs no kernels.

Files of inclusions are sorted by their dependent column, so those that start in a table are a few row groups;
for those that end in it the referenced columns of all are looked through, a row group at a time (about 3 ms
for a million). There may be a hundred million: only the best are kept while looking.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from holdfast.lakes.answers import LakeInd, Matches
from holdfast.lakes.reader.catalogue import I32, U64, Bool, LakeCatalogue
from holdfast.lakes.reader.pages import RowGroups, arrow, numbers

Direction = Literal["both", "out", "in"]
F64 = NDArray[np.float64]

_COLUMNS = ("dependent", "referenced", "shared")
SAMPLES = 5
SCORE_DIGITS = 6  # what a score is made of is kept in single precision: the seventh digit is noise


@dataclass(frozen=True, slots=True)
class Inds:
    """Inclusions by the numbers of their columns: arrays of one length."""

    dependent: I32
    referenced: I32
    shared: I32

    def __len__(self) -> int:
        return len(self.dependent)

    def at(self, where: NDArray[np.int64] | Bool) -> Inds:
        return Inds(self.dependent[where], self.referenced[where], self.shared[where])

    def __add__(self, other: Inds) -> Inds:
        return Inds(
            np.concatenate([self.dependent, other.dependent]),
            np.concatenate([self.referenced, other.referenced]),
            np.concatenate([self.shared, other.shared]),
        )

    @classmethod
    def none(cls) -> Inds:
        return cls(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int32))


@dataclass(frozen=True, slots=True)
class Measures:
    """What the score of each of some inclusions is made of."""

    coverage: F64
    containment: F64
    uniqueness: F64
    distinctive: F64
    score: F64


def measured(catalogue: LakeCatalogue, inds: Inds) -> Measures:
    """The measures of inclusions: score = containment * cbrt(coverage * uniqueness * distinctive).

    The score is rounded to SCORE_DIGITS.
    """
    own = catalogue.sizes[inds.dependent].astype(np.float64)
    other = catalogue.sizes[inds.referenced].astype(np.float64)
    rows = catalogue.n_rows[inds.referenced]
    # A pair that somebody asks for may be without values or rows; an inclusion of the lake is not.
    coverage = inds.shared / np.maximum(other, 1)
    containment = inds.shared / np.maximum(own, 1)
    uniqueness = np.minimum(other / np.maximum(rows, 1), 1.0)
    distinctive = catalogue.rarity[inds.dependent] * own / (own + 2)
    score = rounded_scores(containment * np.cbrt(coverage * uniqueness * distinctive))
    return Measures(coverage, containment, uniqueness, distinctive, score)


def rounded_scores(scores: NDArray[Any]) -> F64:
    """Scores as they are told: those of inclusions, and those of links, which are kept in single precision.

    >>> rounded_scores(np.array([0.7], np.float32)).tolist()
    [0.7]
    """
    rounded: F64 = np.asarray(scores, np.float64).round(SCORE_DIGITS)
    return rounded


def reaches(scores: F64, least: float) -> Bool:
    """Which rounded scores are at least so high.

    The score of a link and that of the inclusion it comes from may be rounded apart, and a half that was
    worked out is a little less than a half at times: what misses the least score by so little reaches it.
    """
    good: Bool = scores > least - 2 * 10.0**-SCORE_DIGITS
    return good


def pieces(
    catalogue: LakeCatalogue,
    files: RowGroups,
    columns: range | None = None,
    direction: Direction = "both",
) -> Iterator[Inds]:
    """The live inclusions, a row group at a time: all, or those that start (`out`) or end (`in`) in adjacent
    columns; one that does both comes once."""
    if columns is None:
        for group in range(len(files)):
            found = _live(catalogue, _inds(files.read(group, _COLUMNS)))
            if len(found):
                yield found
        return
    if not columns:
        return
    low, high = files.bounds("dependent")
    starts = (low < columns.stop) & (high >= columns.start) & (direction != "in")
    groups = range(len(files)) if direction != "out" else np.flatnonzero(starts).tolist()

    def touching(group: int) -> Inds:
        if not starts[group]:  # most row groups have none: look at one column before reading three
            ends = numbers(files.read(group, ("referenced",)).column(0))
            if not _within(ends, columns).any():
                return Inds.none()
        found = _inds(files.read(group, _COLUMNS))
        return _live(catalogue, found.at(_touching(found, columns, direction)))

    # Arrow decodes outside of Python's lock; what comes back is small.
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        yield from (found for found in pool.map(touching, groups) if len(found))


def _live(catalogue: LakeCatalogue, inds: Inds) -> Inds:
    """Those without a dropped table."""
    if catalogue.state.dropped is None:
        return inds
    live, table_of = catalogue.live, catalogue.table_of
    return inds.at(live[table_of[inds.dependent]] & live[table_of[inds.referenced]])


def best(
    catalogue: LakeCatalogue, found: Iterable[Inds], limit: int, min_score: float = 0.0
) -> tuple[Inds, int]:
    """The inclusions of the highest scores, best first, at most `limit`; and how many reach `min_score`.

    Equal scores are in the order of the columns.
    """
    kept, scores, n = Inds.none(), np.empty(0), 0
    for piece in found:
        score = measured(catalogue, piece).score
        good = reaches(score, min_score)
        n += int(good.sum())
        if len(kept) >= limit > 0:
            good &= score >= scores[-1]
        kept, scores = kept + piece.at(good), np.concatenate([scores, score[good]])
        order = np.lexsort((kept.referenced, kept.dependent, -scores))[:limit]
        kept, scores = kept.at(order), scores[order]
    return kept, n


def told(
    catalogue: LakeCatalogue, inds: Inds, own: range | None = None, samples: int | None = None
) -> list[LakeInd]:
    """Inclusions with names and measures, in their order.

    With `samples`, each has so many shared values; their texts are those of the column that lies in `own`,
    since these lie in one place.
    """
    measures = measured(catalogue, inds)
    numbers_of = (
        inds.shared,
        catalogue.sizes[inds.dependent],
        catalogue.sizes[inds.referenced],
        measures.coverage,
        measures.containment,
        measures.uniqueness,
        measures.distinctive,
        measures.score,
    )
    sides = catalogue.sides(inds.dependent), catalogue.sides(inds.referenced)
    found = [LakeInd(*row) for row in zip(*sides, *(x.tolist() for x in numbers_of), strict=True)]
    if samples is None:
        return found
    return [replace(ind, samples=_samples(catalogue, ind, own or range(0), samples)) for ind in found]


def _samples(catalogue: LakeCatalogue, ind: LakeInd, own: range, n: int) -> tuple[str, ...]:
    """The texts of a few values that two columns share."""
    left, right = ind.dependent.id, ind.referenced.id
    if left not in own:
        left, right = right, left
    shared = common(catalogue.values(left), catalogue.values(right))
    return catalogue.telling(_first(catalogue.texts(left), shared, 4 * n), n)


def _first(texts: pa.Array, where: Bool, n: int) -> list[str]:
    """The first of some texts by alphabet: values lie in the order of their hashes, which mean nothing."""
    some = texts.take(arrow(np.flatnonzero(where)))
    first: list[str] = some.take(pc.bottom_k_unstable(some, n)).to_pylist()
    return first


def side_by_side(catalogue: LakeCatalogue, dependent: int, referenced: int, limit: int) -> Matches:
    """What two columns share and what only one of them has, the first `limit` texts of each."""
    own, other = catalogue.values(dependent), catalogue.values(referenced)
    shared, known = common(own, other), common(other, own)
    inds = Inds(*(np.array([x], np.int32) for x in (dependent, referenced, int(shared.sum()))))
    texts, other_texts = catalogue.texts(dependent), catalogue.texts(referenced)

    parts = ((texts, shared), (texts, ~shared), (other_texts, ~known))
    return Matches(told(catalogue, inds)[0], *(tuple(_first(of, where, limit)) for of, where in parts))


def common(own: tuple[U64, U64], other: tuple[U64, U64]) -> Bool:
    """Which values of one column the other has too: bool[len(own)]. Both are (h1, h2), sorted."""
    (values, checks), (others, other_checks) = own, other
    found = np.zeros(len(values), np.bool_)
    open_ = np.arange(len(values))
    at = np.searchsorted(others, values)
    while len(open_):  # more than once only if two values have one h1
        inside = at < len(others)
        open_, at = open_[inside], at[inside]
        alike = others[at] == values[open_]
        open_, at = open_[alike], at[alike]
        equal = other_checks[at] == checks[open_]
        found[open_[equal]] = True
        open_, at = open_[~equal], at[~equal] + 1
    return found


def _inds(table: pa.Table) -> Inds:
    return Inds(*(numbers(table.column(name)) for name in _COLUMNS))


def _touching(inds: Inds, columns: range, direction: Direction) -> Bool:
    if direction == "out":
        return _within(inds.dependent, columns)
    if direction == "in":
        return _within(inds.referenced, columns)
    return _within(inds.dependent, columns) | _within(inds.referenced, columns)


def _within(some: I32, columns: range) -> Bool:
    found: Bool = (some >= columns.start) & (some < columns.stop)
    return found
