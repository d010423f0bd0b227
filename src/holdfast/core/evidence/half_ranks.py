"""Rows of one segment beside those of another, as predicates compare them: half ranks.

A half rank (`rows/kernels/encode.half_ranks`) says where a value stands among the dictionary of a
column of another segment, be it in it (even: twice the local code) or not (odd). So a batch is compared with
every segment in that segment's own codes, whatever the operators and the columns.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.kernels.predicate_evidence import Groups
from holdfast.core.rows.codes import texts_differ_at
from holdfast.core.rows.kernels.encode import half_ranks
from holdfast.core.rows.kernels.masks import n_words_for
from holdfast.core.rows.segments import Segment
from holdfast.core.words.predicate import PredicateSpace
from holdfast.core.words.schema import Schema

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SpaceColumns:
    """A predicate space with the positions of its columns, as tasks need it."""

    space: PredicateSpace
    groups: Groups
    n_words: int

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """(left, right) of each group."""
        return list(zip(self.groups.left.tolist(), self.groups.right.tolist(), strict=True))


@lru_cache(maxsize=8)
def space_columns(space: PredicateSpace, schema: Schema) -> SpaceColumns:
    positions = {name: i for i, name in enumerate(schema.names)}
    groups = Groups(
        np.array([positions[g.left] for g in space.groups], dtype=np.int32),
        np.array([positions[g.right] for g in space.groups], dtype=np.int32),
        np.array([g.ordered for g in space.groups], dtype=np.int32),
        np.array(space.first, dtype=np.int32),
    )
    return SpaceColumns(space, groups, n_words_for(space.n_predicates))


@lru_cache(maxsize=8)
def parsed_space(text: str) -> PredicateSpace:
    """The space that a payload holds as JSON."""
    return PredicateSpace.from_dict(json.loads(text))


def half_rank_rows(segment: Segment, other: Segment, positions: I64, pairs: Sequence[tuple[int, int]]) -> I32:
    """Some rows of `other` as half ranks of `segment`: int32[len(pairs), len(positions)].

    For each pair (a, b) column a of the rows among the dictionary of column b. Exact for hashed types, too:
    equal codes are compared on the texts, and what differs there gets an odd rank, equal to none. Cost:
    that of the smaller of the rows and the dictionary of a, and a gather.
    """
    out = np.empty((len(pairs), len(positions)), dtype=np.int32)
    first_of: dict[tuple[int, int], int] = {}
    for i, (a, b) in enumerate(pairs):
        if (a, b) in first_of:
            out[i] = out[first_of[a, b]]
            continue
        first_of[a, b] = i
        codes = other.codes[a][positions]
        if segment is other and a == b:
            np.multiply(codes, 2, out=out[i])
            continue
        dictionary = other.dictionary(a)
        if len(positions) < len(dictionary):
            needed, inverse = np.unique(codes, return_inverse=True)
            entries = needed[needed > 0].astype(np.int64) - 1
            ranks = _ranks(segment, other, a, b, entries)
            # The first one is NULL, if any row has it.
            out[i] = (ranks if len(entries) < len(needed) else ranks[1:])[inverse]
        else:
            out[i] = _ranks(segment, other, a, b, np.arange(len(dictionary)))[codes]
    return out


def _ranks(segment: Segment, other: Segment, a: int, b: int, entries: I64) -> I32:
    """int32[1 + len(wanted)]: the half ranks of some entries of a dictionary; the first one is of NULL."""
    ranks = half_ranks(segment.dictionary(b), other.dictionary(a)[entries])
    texts, other_texts = segment.texts(b), other.texts(a)
    if texts is not None and other_texts is not None:
        hit = 1 + np.flatnonzero((ranks[1:] & 1) == 0)
        differ = texts_differ_at(texts, ranks[hit].astype(np.int64) // 2 - 1, other_texts, entries[hit - 1])
        ranks[hit[differ]] += 1
    return ranks
