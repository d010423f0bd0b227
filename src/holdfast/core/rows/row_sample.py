"""A uniform sample of the rows of a relation, in codes of its own: for statistics and first guesses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import Segment, open_segment
from holdfast.core.words.schema import Type

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RowSample:
    """Rows: codes int32[n_columns, n], 0 for NULL, which compare as the values of all columns of one type do
    (of texts: equal iff they are); row_ids int64[n]."""

    codes: I32
    row_ids: I64


def sample_rows(relation: Relation, n: int, seed: int = 0) -> RowSample:
    """n live rows, or all. Cost: reads what it takes."""
    rng = np.random.default_rng(seed)
    parts: list[tuple[Segment, I64]] = []
    segments = [s for s in relation.segments if s.n_live]
    shares = _shares(np.array([s.n_live for s in segments], dtype=np.int64), n, rng)
    for ref, wanted in zip(segments, shares, strict=True):
        segment = open_segment(relation.root, ref, relation.schema)
        live = np.flatnonzero(segment.live)
        parts.append((segment, np.sort(rng.choice(live, wanted, replace=False))))
    schema = relation.schema
    n_rows = int(sum(shares))
    codes = np.zeros((len(schema), n_rows), dtype=np.int32)
    by_type: dict[Type, list[int]] = {}
    for c, type_ in enumerate(schema.types):
        by_type.setdefault(type_, []).append(c)
    for type_, columns in by_type.items():
        codes[columns] = _ranks(parts, columns, hashed=type_.hashed).reshape(len(columns), n_rows)
    ids = [s.row_ids(at) for s, at in parts] or [np.empty(0, np.int64)]
    return RowSample(codes, np.concatenate(ids))


def _shares(sizes: I64, n: int, rng: np.random.Generator) -> list[int]:
    """How many rows of each segment a uniform sample of n rows has."""
    if int(sizes.sum()) <= n:
        return [int(s) for s in sizes]
    return [int(k) for k in rng.multivariate_hypergeometric(sizes, n)]


def _ranks(parts: list[tuple[Segment, I64]], columns: list[int], *, hashed: bool) -> I32:
    """The ranks of the values of some columns of one type among all of them, one column after the other."""
    filled, values, texts = [], [], []
    for c in columns:
        for segment, at in parts:
            local = segment.codes[c][at]
            wanted = local[local > 0].astype(np.int64) - 1
            filled.append(local > 0)
            if hashed:
                texts.append(segment.texts(c).take(pa.array(wanted)))  # type: ignore[union-attr]
            else:
                values.append(segment.dictionary(c)[wanted])
    out = np.zeros(sum(map(len, filled)), dtype=np.int32)
    there = np.concatenate(filled) if filled else np.empty(0, np.bool_)
    if hashed and texts:
        encoded = pc.dictionary_encode(pa.chunked_array(texts)).combine_chunks()
        out[there] = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int32) + 1
    elif values:
        out[there] = np.unique(np.concatenate(values), return_inverse=True)[1] + 1
    return out
