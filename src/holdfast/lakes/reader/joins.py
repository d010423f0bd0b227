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

from holdfast.core.store.tabular import Listed
from holdfast.lakes.answers import LakeInd, LakeMatches
from holdfast.lakes.reader.catalogue import I32, U64, Bool, LakeCatalogue
from holdfast.lakes.reader.pages import RowGroups, arrow, numbers

Direction = Literal["both", "out", "in"]
F64 = NDArray[np.float64]

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

    def at(self, where: NDArray[np.int64] | Bool | slice) -> Inds:
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


class LakeJoins(Listed[LakeInd]):
    """What a table or column of a lake can be joined with, the likeliest first."""

    noun = "joins"

    def records(self) -> list[dict[str, Any]]:
        return [
            {
                "score": ind.score,
                "dependent": str(ind.dependent),
                "referenced": str(ind.referenced),
                "shared": ind.shared,
                "coverage": ind.coverage,
                "containment": ind.containment,
                "samples": ind.samples,
            }
            for ind in self
        ]

    def lines(self) -> Iterable[str]:
        return (f"{ind.score:.2f}  {ind}" for ind in self)


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
    dep_sizes = catalogue.sizes[inds.dependent].astype(np.float64)
    ref_sizes = catalogue.sizes[inds.referenced].astype(np.float64)
    rows = catalogue.n_rows[inds.referenced]
    # A pair that somebody asks for may be without values or rows; an inclusion of the lake is not.
    coverage = inds.shared / np.maximum(ref_sizes, 1)
    containment = inds.shared / np.maximum(dep_sizes, 1)
    uniqueness = np.minimum(ref_sizes / np.maximum(rows, 1), 1.0)
    distinctive = catalogue.rarity[inds.dependent] * dep_sizes / (dep_sizes + 2)
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
            inds = _live(catalogue, _inds(catalogue, files, group, _read(files, group, "referenced")))
            if len(inds):
                yield inds
        return
    if not columns:
        return
    low, high = files.bounds("dependent")
    starts = (low < columns.stop) & (high >= columns.start) & (direction != "in")
    groups = range(len(files)) if direction != "out" else np.flatnonzero(starts).tolist()

    def touching(group: int) -> Inds:
        ends = _read(files, group, "referenced")
        if starts[group]:
            inds = _inds(catalogue, files, group, ends)
            return _live(catalogue, inds.at(_touching(inds, columns, direction)))
        at = np.flatnonzero(_within(ends, columns))
        return _live(catalogue, _inds(catalogue, files, group, ends, at)) if len(at) else Inds.none()

    # Arrow decodes outside of Python's lock; what comes back is small.
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        yield from (inds for inds in pool.map(touching, groups) if len(inds))


def _live(catalogue: LakeCatalogue, inds: Inds) -> Inds:
    """Those without a dropped table."""
    if catalogue.state.dropped is None:
        return inds
    live, table_of = catalogue.live, catalogue.table_of
    return inds.at(live[table_of[inds.dependent]] & live[table_of[inds.referenced]])


def best(
    catalogue: LakeCatalogue, chunks: Iterable[Inds], limit: int, min_score: float = 0.0
) -> tuple[Inds, int]:
    """The inclusions of the highest scores, best first, at most `limit`; and how many reach `min_score`.

    Equal scores are in the order of the columns.
    """
    top, scores, n = Inds.none(), np.empty(0), 0
    for chunk in chunks:
        score = measured(catalogue, chunk).score
        good = reaches(score, min_score)
        n += int(good.sum())
        if len(top) >= limit > 0:
            good &= score >= scores[-1]
        top, scores = top + chunk.at(good), np.concatenate([scores, score[good]])
        order = np.lexsort((top.referenced, top.dependent, -scores))[:limit]
        top, scores = top.at(order), scores[order]
    return top, n


def lake_inds(
    catalogue: LakeCatalogue, inds: Inds, columns: range | None = None, samples: int | None = None
) -> list[LakeInd]:
    """Inclusions with names and measures, in their order.

    With `samples`, each has so many shared values; their texts are those of the column that is one of
    `columns`, since these lie in one place.
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
    listed = [LakeInd(*row) for row in zip(*sides, *(x.tolist() for x in numbers_of), strict=True)]
    if samples is None:
        return listed
    return [replace(ind, samples=_samples(catalogue, ind, columns or range(0), samples)) for ind in listed]


def _samples(catalogue: LakeCatalogue, ind: LakeInd, columns: range, n: int) -> tuple[str, ...]:
    """The texts of a few values that two columns share."""
    near, far = ind.dependent.id, ind.referenced.id
    if near not in columns:
        near, far = far, near
    shared = common(catalogue.values(near), catalogue.values(far))
    return catalogue.telling(_first(catalogue.texts(near), shared, 4 * n), n)


def _first(texts: pa.Array, where: Bool, n: int) -> list[str]:
    """The first of some texts by alphabet: values lie in the order of their hashes, which mean nothing."""
    some = texts.take(arrow(np.flatnonzero(where)))
    first: list[str] = some.take(pc.bottom_k_unstable(some, n)).to_pylist()
    return first


def side_by_side(catalogue: LakeCatalogue, dependent: int, referenced: int, limit: int) -> LakeMatches:
    """What two columns share and what only one of them has, the first `limit` texts of each."""
    dep_values, ref_values = catalogue.values(dependent), catalogue.values(referenced)
    shared, in_dependent = common(dep_values, ref_values), common(ref_values, dep_values)
    inds = Inds(*(np.array([x], np.int32) for x in (dependent, referenced, int(shared.sum()))))
    dep_texts, ref_texts = catalogue.texts(dependent), catalogue.texts(referenced)

    parts = ((dep_texts, shared), (dep_texts, ~shared), (ref_texts, ~in_dependent))
    return LakeMatches(
        lake_inds(catalogue, inds)[0], *(tuple(_first(of, where, limit)) for of, where in parts)
    )


def common(probe: tuple[U64, U64], against: tuple[U64, U64]) -> Bool:
    """Which values of one column the other has too: bool[len(values)]. Both are (h1, h2), sorted."""
    (values, checks), (keys, key_checks) = probe, against
    shared = np.zeros(len(values), np.bool_)
    undecided = np.arange(len(values))
    at = np.searchsorted(keys, values)
    while len(undecided):  # more than once only if two values have one h1
        inside = at < len(keys)
        undecided, at = undecided[inside], at[inside]
        alike = keys[at] == values[undecided]
        undecided, at = undecided[alike], at[alike]
        equal = key_checks[at] == checks[undecided]
        shared[undecided[equal]] = True
        undecided, at = undecided[~equal], at[~equal] + 1
    return shared


def _read(files: RowGroups, group: int, name: str) -> I32:
    return numbers(files.read(group, (name,)).column(0))


def _inds(
    catalogue: LakeCatalogue,
    files: RowGroups,
    group: int,
    referenced: I32,
    at: NDArray[np.int64] | slice = slice(None),
) -> Inds:
    """The inclusions of a row group, or some of them; its referenced columns are read already.

    Of those that are not partial it is clear what is shared, so that column is left alone.
    """
    dependent = _read(files, group, "dependent")[at]
    partial = catalogue.state.options.max_error > 0
    shared = _read(files, group, "shared")[at] if partial else catalogue.sizes[dependent]
    return Inds(dependent, referenced[at], shared)


def _touching(inds: Inds, columns: range, direction: Direction) -> Bool:
    if direction == "out":
        return _within(inds.dependent, columns)
    if direction == "in":
        return _within(inds.referenced, columns)
    return _within(inds.dependent, columns) | _within(inds.referenced, columns)


def _within(ids: I32, columns: range) -> Bool:
    inside: Bool = (ids >= columns.start) & (ids < columns.stop)
    return inside
