"""Where a task of the probe works: rows of two segments, an access to pairs of them, and what was found.

A row of the *source* is a probe, t; a row of the *segment* is what it is compared with, s. Where both are one
segment (`within`), each pair of rows is taken once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.half_ranks import SpaceColumns, half_rank_rows
from holdfast.core.evidence.kernels.predicate_evidence import Evidence, ListedPairs, evidence_counts, planned
from holdfast.core.evidence.kernels.probed_pairs import satisfied
from holdfast.core.rows.kernels.masks import contains_any, unique_masks, without
from holdfast.core.rows.segments import Segment, row_hashes
from holdfast.core.rows.table_state import OrderKey
from holdfast.core.words.codec import Coded

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

Predicates = tuple[tuple[int, int], ...]  # the number of the group, the operator


@dataclass(frozen=True, slots=True)
class Access(Coded):
    """How pairs (t, s) are found, t being the batch row: those that satisfy some predicates.

    The index answers `source`: one equality, two predicates on the order index `key`, or one on posting
    lists; what it gives is compared on `others`. A scan has no source, and compares in the groups given.
    """

    kind: Literal["equality", "order", "column", "scan"]
    source: Predicates
    others: Predicates = ()
    key: OrderKey | None = None
    groups: tuple[int, ...] = ()  # of a scan

    @property
    def predicates(self) -> Predicates:
        return (*self.source, *self.others)


@dataclass
class Place:
    """The rows that a task compares, and what it has found among them."""

    segment: Segment
    source: Segment
    within: bool  # both are one segment
    columns: SpaceColumns
    dcs: U64
    limit: int
    complete: bool = True
    # Pairs that are gathered at once.
    BLOCK: ClassVar[int] = 1 << 21
    _violating: list[tuple[U64, I64]] = field(default_factory=list)
    _looked: int = 0
    _pairs: ListedPairs | None = None
    _plan: Any = None
    _values: I32 | None = None
    _judged_masks: U64 = field(init=False)  # evidence that was looked at

    def __post_init__(self) -> None:
        self._judged_masks = self.dcs[:0]

    @property
    def values(self) -> I32:
        """Half ranks of the source's rows: int32[n_groups, n]."""
        if self._values is None:
            everything = np.arange(self.source.ref.n_rows)
            self._values = half_rank_rows(self.segment, self.source, everything, self.columns.pairs)
        return self._values

    def begin(self) -> None:
        """The next access: its pairs are counted against the limit."""
        self._looked = 0

    @property
    def room(self) -> int:
        return max(0, self.limit - self._looked) if self.limit else 1 << 62

    def compared(self, probes: I64, rows: I64, predicates: Predicates) -> tuple[I64, I64]:
        """Those of the pairs that satisfy some predicates."""
        if not predicates or not len(probes):
            return probes, rows
        groups, ops = padded([predicates])
        right = self.columns.groups.right
        met = satisfied(self.segment.codes, self.values, right, groups[0], ops[0], probes, rows)
        return probes[met], rows[met]

    def take(self, probes: I64, rows: I64) -> None:
        """Compare listed pairs: rows of the source with rows of the segment."""
        live = self.source.live[probes] & self.segment.live[rows]
        if self.within:
            live &= probes != rows
        probes, rows = probes[live], rows[live]
        if len(probes) > self.room:
            probes, rows, self.complete = probes[: self.room], rows[: self.room], False
        self._looked += len(probes)
        if self._pairs is None:
            groups, n_words = self.columns.groups, self.columns.n_words
            self._pairs = ListedPairs(self.segment.codes, self.values[:, None, :], groups, n_words)
        for start in range(0, len(probes), self.BLOCK):
            part = slice(start, start + self.BLOCK)
            self._keep(self._pairs.evidence(probes[part], rows[part]))

    def compare(self, probes: I64, rows: I64 | None, within: bool, first: int = 0) -> None:
        """Compare live rows of the source with live rows of the segment (None: all of these), each with each.

        `within`: probes are those of rows from number `first` on, each with those before it.
        """
        codes, live = self.segment.codes, self.segment.live
        if rows is not None:
            codes, live = codes[:, rows], live[rows]
        groups, n_words = self.columns.groups, self.columns.n_words
        self._plan = self._plan or planned(groups, n_words)
        batch = self.values[:, None, probes]
        evidence = evidence_counts(codes, live, batch, groups, n_words, within, first, self._plan)
        self._keep(evidence, probes, rows)

    def _keep(self, evidence: Evidence, probes: I64 | None = None, rows: I64 | None = None) -> None:
        """Take down what violates a constraint; probes and rows: whose the numbers of witnesses are."""
        # Most evidence comes again and again; constraints are many.
        unknown = np.flatnonzero(without(evidence.masks, self._judged_masks))
        self._judged_masks = np.concatenate([self._judged_masks, evidence.masks[unknown]])
        violating = unknown[contains_any(evidence.masks[unknown], self.dcs)]
        if not len(violating):
            return
        first, second = evidence.witnesses[violating].T
        probe_first = evidence.batch_first[violating]
        if probes is not None:
            probe = probes[np.where(probe_first, first, second)]
            row = np.where(probe_first, second, first)
            row = row if rows is None else rows[row]
            first, second = np.where(probe_first, probe, row), np.where(probe_first, row, probe)
        t = np.where(probe_first, self.source.row_ids(np.where(probe_first, first, 0)), -1)
        s = np.where(probe_first, self.segment.row_ids(np.where(probe_first, second, 0)), -1)
        t = np.where(probe_first, t, self.segment.row_ids(np.where(probe_first, 0, first)))
        s = np.where(probe_first, s, self.source.row_ids(np.where(probe_first, 0, second)))
        self._violating.append((evidence.masks[violating], np.stack([t, s], axis=1)))

    def evidence(self) -> tuple[U64, I64]:
        """(masks, a pair of row ids of each)."""
        if not self._violating:
            return self.dcs[:0], np.empty((0, 2), np.int64)
        masks, witnesses = (np.concatenate(part) for part in zip(*self._violating, strict=True))
        first, _ = unique_masks(masks)
        return masks[first], witnesses[first]


def padded(sets: Sequence[Predicates]) -> tuple[I32, I32]:
    """(groups, operators) of sets of predicates, int32[n_sets, *], padded with -1."""
    groups = np.full((len(sets), max(map(len, sets))), -1, dtype=np.int32)
    ops = groups.copy()
    for i, predicates in enumerate(sets):
        for j, (g, op) in enumerate(predicates):
            groups[i, j], ops[i, j] = g, op
    return groups, ops


def column_hashes(segment: Segment, columns: Sequence[int]) -> U64:
    """A hash of each row's values in some columns: uint64[n_rows]."""
    values = ((segment.dictionary(c), segment.codes[c]) for c in columns)
    return row_hashes(values, segment.ref.n_rows, segment.key)
