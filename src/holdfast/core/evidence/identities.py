"""Identities: numbers that equal values of all segments of a table share and no others do.

Segments have dictionaries of their own, sorted, so identities are a merge of them. Equal codes of two
segments can be a collision of hashes: where two segments share the code of a text the texts are compared,
and a column in which any two differ is numbered by its texts. So no hash is ever compared for an answer.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.rows.codes import texts_differ_at
from holdfast.core.rows.segments import Segment
from holdfast.core.store.root import Root

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Identities:
    """What the local codes of some segments stand for: equal values, equal numbers; 0 is NULL.

    Equal by the files of the segments, so that deletes do not matter. Numbers are the same in every process.
    """

    root: Root
    files: tuple[str, ...]
    segments: tuple[Segment, ...] = field(compare=False, repr=False)
    _numbers: dict[int, tuple[list[I32], int]] = field(default_factory=dict, compare=False, repr=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, compare=False, repr=False)

    @property
    def n_columns(self) -> int:
        return len(self.segments[0].schema)

    def of(self, column: int) -> tuple[list[I32], int]:
        """(for each segment int32[1 + distinct values], one more than the largest number) of a column."""
        with self._lock:
            if column not in self._numbers:
                self._numbers[column] = column_identities(self.segments, column)
            return self._numbers[column]


@lru_cache(maxsize=1)
def _shared(fresh: Identities) -> Identities:
    return fresh


def identities_of(segments: Sequence[Segment]) -> Identities:
    """The identities of these segments, from this process's cache if they are there."""
    files = tuple(s.ref.file.name for s in segments)
    return _shared(Identities(segments[0].root, files, tuple(segments)))


def column_identities(segments: Sequence[Segment], column: int) -> tuple[list[I32], int]:
    """(for each segment int32[1 + distinct values], one more than the largest number) of a column.

    Cost: a merge of the dictionaries, and a comparison of the texts that two segments share.
    """
    dictionaries = [s.dictionary(column) for s in segments]
    sizes = [len(d) for d in dictionaries]
    if len(segments) == 1:
        return [np.arange(sizes[0] + 1, dtype=np.int32)], sizes[0] + 1
    everything = np.concatenate(dictionaries)
    order = np.argsort(everything, kind="stable")  # merges sorted runs
    ordered = everything[order]
    again = np.zeros(len(order), dtype=np.bool_)  # the same code as its neighbour
    again[1:] = ordered[1:] == ordered[:-1]
    if segments[0].schema.types[column].hashed:
        shared = np.flatnonzero(again)
        if _collide(segments, column, order[shared - 1], order[shared]):
            exact = text_identities(segments, column)
            highest = max(int(e.max(initial=0)) for e in exact)
            return [_with_null(e) for e in exact], highest + 2
    numbers = np.empty(len(order), dtype=np.int32)
    numbers[order] = np.cumsum(~again, dtype=np.int32) - 1
    n_values = len(order) - int(again.sum())
    return [_with_null(n) for n in np.split(numbers, np.cumsum(sizes)[:-1])], n_values + 1


def _collide(segments: Sequence[Segment], column: int, left: I64, right: I64) -> bool:
    """Whether some text left[i] is not the text right[i]; texts are numbered through all segments.

    Segment by segment: all texts of a large table one behind the other would be gigabytes.
    """
    texts = [t for s in segments if (t := s.texts(column)) is not None]
    starts = np.cumsum([0, *map(len, texts)])
    i, j = (np.searchsorted(starts[1:], side, side="right") for side in (left, right))
    pair = i * len(texts) + j
    by_pair = np.argsort(pair, kind="stable")
    for here in np.split(by_pair, np.flatnonzero(np.diff(pair[by_pair])) + 1):
        if len(here):
            a, b = i[here[0]], j[here[0]]
            if texts_differ_at(texts[a], left[here] - starts[a], texts[b], right[here] - starts[b]).any():
                return True
    return False


def text_identities(segments: Sequence[Segment], column: int) -> list[I32]:
    """For each segment's dictionary entry a number that equal texts share and no others do."""
    texts = [t for s in segments if (t := s.texts(column)) is not None]
    numbers: I32 = pa.concat_arrays(texts).dictionary_encode().indices.to_numpy()
    return np.split(numbers, np.cumsum([len(t) for t in texts])[:-1])


def _with_null(numbers: I32) -> I32:
    """The numbers, each one more, behind 0 for NULL."""
    out = np.zeros(len(numbers) + 1, dtype=np.int32)
    out[1:] = numbers
    out[1:] += 1
    return out
