"""A uniform sample of the rows of a relation, in codes of its own: for statistics and first guesses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import open_segment
from holdfast.core.rows.table_state import SegmentRef
from holdfast.core.rows.tasks import Payload, parsed_schema
from holdfast.core.store.bundle import pack, unpack
from holdfast.core.store.root import root_of
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
    """n live rows, or all. Cost: reads what it takes; by one job where that is far."""
    schema = relation.schema
    segments = [s for s in relation.segments if s.n_live]
    shares = _shares(np.array([s.n_live for s in segments], dtype=np.int64), n, np.random.default_rng(seed))
    payloads = [
        relation.payload(segment=ref.to_dict(), n_rows=wanted, seed=[seed, i])
        for i, (ref, wanted) in enumerate(zip(segments, shares, strict=True))
        if wanted
    ]
    asked = [ref for ref, wanted in zip(segments, shares, strict=True) if wanted]
    parts = [unpack(result) for result in relation.look(sample_part, payloads, asked)]
    codes = np.zeros((len(schema), sum(shares)), dtype=np.int32)
    by_type: dict[Type, list[int]] = {}
    for c, type_ in enumerate(schema.types):
        by_type.setdefault(type_, []).append(c)
    for type_, columns in by_type.items():
        values = pa.chunked_array([part.arrow(str(c)) for c in columns for part in parts], _arrow_of(type_))
        codes[columns] = _ranks(values, hashed=type_.hashed).reshape(len(columns), -1)
    return RowSample(codes, np.concatenate([np.empty(0, np.int64), *(p.array("row_ids") for p in parts)]))


def sample_part(payload: Payload) -> bytes:
    """Some live rows of a segment: the codes or texts of each column, and their ids."""
    schema = parsed_schema(payload["schema"])
    segment = open_segment(root_of(payload["root"]), SegmentRef.from_dict(payload["segment"]), schema)
    live = np.flatnonzero(segment.live)
    at = np.sort(np.random.default_rng(payload["seed"]).choice(live, payload["n_rows"], replace=False))
    columns: dict[str, Any] = {"row_ids": segment.row_ids(at)}
    for c, type_ in enumerate(schema.types):
        local, texts = segment.codes[c][at], segment.texts(c)
        there = local > 0
        if texts is not None:
            values = texts.take(pa.array(local.astype(np.int64) - 1, mask=~there))
        else:
            codes = np.zeros(len(at), np.uint64)
            codes[there] = segment.dictionary(c)[local[there] - 1]
            values = pa.array(codes, mask=~there)
        columns[str(c)] = values.cast(_arrow_of(type_))
    return pack(columns, {})


def _arrow_of(type_: Type) -> pa.DataType:
    return pa.large_binary() if type_.hashed else pa.uint64()


def _shares(sizes: I64, n: int, rng: np.random.Generator) -> list[int]:
    """How many rows of each segment a uniform sample of n rows has."""
    ends = np.cumsum(sizes)
    if not len(ends) or ends[-1] <= n:
        return [int(s) for s in sizes]
    # Not `multivariate_hypergeometric`: it takes less than a thousand million rows.
    rows = rng.choice(ends[-1], n, replace=False, shuffle=False)
    return [int(k) for k in np.bincount(np.searchsorted(ends, rows, side="right"), minlength=len(ends))]


def _ranks(values: pa.ChunkedArray, *, hashed: bool) -> I32:
    """The ranks of codes among all of them, from 1 on; numbers of texts; 0 for NULL."""
    out = np.zeros(len(values), dtype=np.int32)
    there = values.is_valid().to_numpy()
    known = values.drop_null()
    if hashed:
        out[there] = known.dictionary_encode().combine_chunks().indices.to_numpy() + 1
    else:
        out[there] = np.unique(known.to_numpy(), return_inverse=True)[1] + 1
    return out
