"""Validation by Spark's shuffle, for tables that are more than every task should read.

In `validation.py` each task looks at one pivot column of all segments. That is least for what one machine can
read, and grows with the square of the rows. Here two tasks look at each segment, whatever the rows, and what
has to meet is sent, in one job of four steps:

1. by segment: the different values of each pivot, to the part that their hash falls into;
2. by part: the values that another segment has, too, back to the segments that have them once;
3. by segment: the rows with repeated values, on the columns of the pivot's candidates, to the value's part;
4. by part: the candidates that these rows refute, by the kernels of validation.

A second job reads the few rows that witness it, on all columns.

Values meet by 128 bits: their code, which is the value itself or half of a SipHash of it under the key of the
workspace, and the other half (see decision 0007).

Bytes: 25 for each value of a pivot and segment; for each row with a repeated value 8, and 1 to 20 for each
column of the candidates. Rows that are equal on all of these are sent twice at most, so a value that many
rows have is no burden where few columns are concerned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.kernels import partitions
from holdfast.core.evidence.validation import refuted_in, trie
from holdfast.core.rows.codes import hash_again
from holdfast.core.rows.kernels.masks import n_words_for
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import Segment
from holdfast.core.rows.tasks import Payload, opened, parsed_schema, staged
from holdfast.core.store.bundle import Bundle, pack, unpack

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Blocks = Iterator[bytes]
Sent = Iterator[tuple[int, bytes]]

# From so many rows on, where tasks share no disk.
SHUFFLED_ROWS = 1 << 25
# Rows of a pivot that meet in one part.
PART_ROWS = 1 << 20
# Where a pivot has so many rows for each of its values, rows that say the same are sent twice at most.
FOLDED_FROM = 64
# Equal hashes of values should not mean equal parts of a smaller number.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_NULL_CHECK = np.uint64(1)  # a value of an exact type has 0


@dataclass(frozen=True, slots=True)
class Refuted:
    """What rows refute of some candidates, uint64[n, n_words]; pairs of row ids that do, int64[k, 2]."""

    rhs: U64
    pairs: I64


def validate_by_shuffle(relation: Relation, lhs: U64, rhs: U64, pivots: I64) -> tuple[Refuted, U64]:
    """(what is refuted, the agree set of each pair), of left-hand sides that are not empty; else as
    `validate_fds`. Two jobs."""
    chosen = np.unique(pivots).tolist()
    n_columns = len(relation.schema)
    columns = {
        str(p): np.flatnonzero(_bits(np.bitwise_or.reduce((lhs | rhs)[pivots == p]), n_columns)).tolist()
        for p in chosen
    }
    n_rows = relation.n_rows
    n_parts = max(1, -(-n_rows * len(chosen) // PART_ROWS))
    candidates = relation.stage("candidates", lhs=lhs, rhs=rhs, pivots=pivots)
    common = {"pivots": chosen, "columns": columns, "n_parts": n_parts}
    by_segment = [
        relation.payload(**common, segment=segment, number=i) for i, segment in enumerate(relation.live)
    ]
    by_part = [
        relation.payload(
            **common, candidates=candidates, ranking=relation.ranking(), part=i, n_segments=len(by_segment)
        )
        for i in range(n_parts)
    ]
    results = relation.engine.exchange(
        send_values,
        by_segment,
        refute_part,
        by_part,
        relation.progress,
        relays=((find_repeated, by_part), (send_rows, by_segment)),
    )
    refuted, pairs = np.zeros_like(rhs), [np.empty((0, 2), np.int64)]
    for result in map(unpack, results):
        np.bitwise_or.at(
            refuted, result.array("candidate"), result.array("refuted").reshape(-1, rhs.shape[1])
        )
        pairs.append(result.array("pairs").reshape(-1, 2))
    different = np.unique(np.concatenate(pairs), axis=0)
    return Refuted(refuted, different), agree_sets(relation, different)


def agree_sets(relation: Relation, pairs: I64) -> U64:
    """The columns on which the rows of each pair agree; pairs are of row ids. One job."""
    row_ids = np.unique(pairs)
    n_columns = len(relation.schema)
    keys, checks = (np.zeros((len(row_ids), n_columns), np.uint64) for _ in range(2))
    if len(row_ids):
        wanted = relation.stage("rows", row_ids=row_ids)
        payloads = [relation.payload(segment=segment, rows=wanted) for segment in relation.live]
        # In tasks, however few the rows: the driver is not to fetch every segment.
        for result in map(unpack, relation.engine.run(read_rows, payloads, where="spark")):
            at = result.array("at")
            keys[at] = result.array("keys").reshape(-1, n_columns)
            checks[at] = result.array("checks").reshape(-1, n_columns)
    a, b = np.searchsorted(row_ids, pairs.T)
    agree = (keys[a] == keys[b]) & (checks[a] == checks[b])
    if relation.nulls == "distinct":
        agree &= (keys[a] != 0) | (checks[a] != _NULL_CHECK)
    return _packed(agree, relation.n_words)


# -- tasks -------------------------------------------------------------------------------------


def send_values(payload: Payload) -> Sent:
    """Step 1: the values that live rows of a segment have in the pivots, and which of them more than once."""
    segment, nulls_distinct = _segment(payload)
    fields: dict[str, list[NDArray[Any]]] = {"pivot": [], "code": [], "key": [], "check": [], "many": []}
    for pivot in payload["pivots"]:
        counts = _counts(segment, pivot, nulls_distinct)
        used = np.flatnonzero(counts)
        keys, checks = _identities(segment, pivot)
        fields["pivot"].append(np.full(len(used), pivot, np.int32))
        fields["code"].append(used.astype(np.int32))
        fields["key"].append(keys[used])
        fields["check"].append(checks[used])
        fields["many"].append((counts[used] > 1).astype(np.uint8))
    arrays = {name: np.concatenate(parts) for name, parts in fields.items()}
    meta = {"segment": str(payload["number"])}
    for part, at in _by_part(arrays["key"], payload["n_parts"]):
        yield part, pack({name: array[at] for name, array in arrays.items()}, meta)
    yield 0, pack({name: array[:0] for name, array in arrays.items()}, meta)  # somebody has to be there


def find_repeated(blocks: Blocks, payload: Payload) -> Sent:
    """Step 2: to each segment those of its values that it has once and another segment has, too."""
    bundles = [unpack(block) for block in blocks]
    pivot, code, key, check, many = (
        np.concatenate([b.array(name) for b in bundles]) for name in ("pivot", "code", "key", "check", "many")
    )
    segment = np.repeat([int(b.meta["segment"]) for b in bundles], [len(b.array("code")) for b in bundles])
    order = np.lexsort((check, key, pivot))
    fields = [array[order] for array in (pivot, key, check)]
    change = np.ones(len(order), np.bool_)
    change[1:] = np.logical_or.reduce([f[1:] != f[:-1] for f in fields])
    sizes = np.diff(np.append(np.flatnonzero(change), len(order)))
    repeated = order[np.repeat(sizes, sizes) > 1]
    repeated = repeated[many[repeated] == 0]
    everybody = range(payload["n_segments"]) if payload["part"] == 0 else ()  # each has its turn in step 3
    for number in sorted({*everybody, *segment[repeated].tolist()}):
        at = repeated[segment[repeated] == number]
        yield number, pack({"pivot": pivot[at], "code": code[at]}, {})


def send_rows(blocks: Blocks, payload: Payload) -> Sent:
    """Step 3: the rows of a segment whose value of a pivot is repeated."""
    segment, nulls_distinct = _segment(payload)
    bundles = [unpack(block) for block in blocks]
    pivots, codes = (np.concatenate([b.array(name) for b in bundles]) for name in ("pivot", "code"))
    for pivot in payload["pivots"]:
        repeated = _counts(segment, pivot, nulls_distinct) > 1
        repeated[codes[pivots == pivot]] = True
        rows = np.flatnonzero(repeated[segment.codes[pivot]] & segment.live)
        columns = payload["columns"][str(pivot)]
        if len(rows) > FOLDED_FROM * int(repeated.sum()):
            rows = _twice_at_most(segment.codes[np.ix_(columns, rows)], rows)
        identities = {c: _identities(segment, c) for c in columns}
        local = segment.codes[pivot][rows]
        for part, at in _by_part(identities[pivot][0][local], payload["n_parts"]):
            arrays: dict[str, NDArray[Any]] = {"row_id": segment.row_ids(rows[at])}
            for c in columns:
                used, codes_here = np.unique(segment.codes[c][rows[at]], return_inverse=True)
                keys, checks = identities[c]
                width = np.min_scalar_type(len(used))  # most columns have few values
                arrays |= {f"code.{c}": codes_here.astype(width), f"key.{c}": keys[used]}
                if checks[used].any():
                    arrays[f"check.{c}"] = checks[used]
            yield part, pack(arrays, {"pivot": str(pivot)})


def refute_part(blocks: Blocks, payload: Payload) -> bytes:
    """Step 4: what rows with equal values of a pivot refute of its candidates."""
    by_pivot: dict[int, list[Bundle]] = {}
    for bundle in map(unpack, blocks):
        by_pivot.setdefault(int(bundle.meta["pivot"]), []).append(bundle)
    candidates = staged(payload, "candidates")
    pivots = candidates.array("pivots")
    lhs, rhs = (candidates.array(side).reshape(len(pivots), -1) for side in ("lhs", "rhs"))
    numbers, refuted, pairs = [np.empty(0, np.int64)], [rhs[:0]], [np.empty((0, 2), np.int64)]
    for pivot, bundles in sorted(by_pivot.items()):
        at = np.flatnonzero(pivots == pivot)
        found = _refuted(bundles, pivot, lhs[at], rhs[at], payload)
        hit = found.rhs.any(axis=1)
        numbers.append(at[hit])
        refuted.append(found.rhs[hit])
        pairs.append(found.pairs)
    return pack(
        {
            "candidate": np.concatenate(numbers),
            "refuted": np.concatenate(refuted),
            "pairs": np.concatenate(pairs),
        },
        {},
    )


def read_rows(payload: Payload) -> bytes:
    """Rows of a segment by id, as the values that they have in all columns."""
    segment, _ = _segment(payload)
    positions = segment.positions(staged(payload, "rows").array("row_ids"))
    at = np.flatnonzero(positions >= 0)
    values = [_identities(segment, c, segment.codes[c][positions[at]]) for c in range(len(segment.schema))]
    keys, checks = (np.stack([v[i] for v in values], axis=1) for i in range(2))
    return pack({"at": at, "keys": keys, "checks": checks}, {})


# -- inside ------------------------------------------------------------------------------------


class _Received:
    """Rows that have come from all segments, as `validation.Layout`: int32[n, n_columns], 0 for NULL."""

    def __init__(self, matrix: I32, row_ids: I64) -> None:
        self._matrix, self._row_ids = matrix, row_ids

    def partnered(self, rows: I32, offsets: I64, columns: I32, nulls_distinct: bool) -> tuple[I64, I64]:
        return partitions.partnered(self._matrix, rows, offsets, columns, nulls_distinct)

    def values(self, rows: I32) -> I32:
        return partitions.columns_of(self._matrix, rows)

    def row_ids(self, rows: I32) -> I64:
        return self._row_ids[rows]


def _refuted(bundles: Sequence[Bundle], pivot: int, lhs: U64, rhs: U64, payload: Payload) -> Refuted:
    """What the rows in some blocks refute of the candidates of a pivot, on the columns that were sent."""
    columns = payload["columns"][str(pivot)]
    n_columns = len(parsed_schema(payload["schema"]))
    row_ids = np.concatenate([b.array("row_id") for b in bundles])
    matrix = np.empty((len(row_ids), len(columns)), np.int32)
    n_ids = np.empty(len(columns), np.int64)
    for j, c in enumerate(columns):
        matrix[:, j], n_ids[j] = _numbered(bundles, c)
    place = {c: j for j, c in enumerate(columns)}
    at = place[pivot]
    rows, offsets = partitions.cluster(np.ascontiguousarray(matrix[:, at]), int(n_ids[at]))
    # The row itself, of keys, is the column behind the last one, here as there.
    kept, n_words = [*columns, n_columns], n_words_for(len(columns) + 1)
    narrow_lhs, narrow_rhs = (_packed(_bits(side, n_columns + 1)[:, kept], n_words) for side in (lhs, rhs))
    ranking = [place[c] for c in payload["ranking"] if c in place]
    refuted, _, witnesses = refuted_in(
        _Received(matrix, row_ids),
        rows,
        offsets,
        narrow_lhs,
        narrow_rhs,
        trie(narrow_lhs, at, ranking),
        n_ids,
        payload["nulls"] == "distinct",
    )
    wide = np.zeros((len(rhs), 64 * rhs.shape[1]), np.bool_)
    there = [c for c in kept if c < wide.shape[1]]  # room for the row is where there are keys
    wide[:, there] = _bits(refuted, len(there))
    pairs = witnesses.reshape(-1, 2)
    return Refuted(_packed(wide, rhs.shape[1]), pairs[pairs[:, 0] >= 0])


def _numbered(bundles: Sequence[Bundle], column: int) -> tuple[I32, int]:
    """(numbers of values: equal ones share one, and no others do; one more than the largest). NULL is 0."""
    keys, name = [b.array(f"key.{column}") for b in bundles], f"check.{column}"
    checks = [
        b.array(name) if name in b else np.zeros(len(k), np.uint64)
        for b, k in zip(bundles, keys, strict=True)
    ]
    key, check = np.concatenate(keys), np.concatenate(checks)
    order = np.lexsort((check, key))
    change = np.zeros(len(order), np.bool_)
    change[1:] = (key[order[1:]] != key[order[:-1]]) | (check[order[1:]] != check[order[:-1]])
    numbers = np.empty(len(order), np.int32)
    numbers[order] = np.cumsum(change, dtype=np.int32) + 1
    numbers[(key == 0) & (check == _NULL_CHECK)] = 0
    parts = np.split(numbers, np.cumsum([len(k) for k in keys])[:-1])
    codes = (b.array(f"code.{column}") for b in bundles)
    return np.concatenate([n[c] for n, c in zip(parts, codes, strict=True)]), int(numbers.max(initial=0)) + 1


def _segment(payload: Payload) -> tuple[Segment, bool]:
    schema = parsed_schema(payload["schema"])
    return opened(payload, "segment", schema), payload["nulls"] == "distinct"


def _counts(segment: Segment, column: int, nulls_distinct: bool) -> I64:
    """How many live rows have each local code; 0 for NULL if no two are equal."""
    codes = segment.codes[column]
    counts = np.bincount(codes[segment.live] if segment.ref.n_deleted else codes)
    counts = np.append(counts, np.zeros(len(segment.dictionary(column)) + 1 - len(counts), counts.dtype))
    if nulls_distinct:
        counts[0] = 0
    return counts


def _identities(segment: Segment, column: int, codes: I32 | None = None) -> tuple[U64, U64]:
    """(keys, checks) of the values of some local codes, or of all: together 128 bits that no others have."""
    dictionary, texts = segment.dictionary(column), segment.texts(column)
    if codes is None:
        codes = np.arange(len(dictionary) + 1, dtype=np.int32)
    entries = codes[codes > 0] - 1
    keys, checks = np.zeros(len(codes), np.uint64), np.full(len(codes), _NULL_CHECK)
    keys[codes > 0] = dictionary[entries]
    checks[codes > 0] = 0 if texts is None else hash_again(texts.take(entries), segment.key)
    return keys, checks


def _by_part(keys: U64, n_parts: int) -> Iterator[tuple[int, I64]]:
    """(part, which of the keys fall into it)."""
    parts = ((keys * _SPREAD) >> np.uint64(32)) % np.uint64(n_parts)
    order = np.argsort(parts, kind="stable")
    bounds = np.flatnonzero(np.diff(parts[order])) + 1
    for at in np.split(order, bounds) if len(order) else ():
        yield int(parts[at[0]]), at


def _twice_at_most(codes: I32, rows: I64) -> I64:
    """Of rows that are equal on all columns two: codes int32[n_columns, n]."""
    order = np.lexsort(codes)
    ordered = codes[:, order]
    same = (ordered[:, 1:] == ordered[:, :-1]).all(axis=0)
    third = np.zeros(len(order), np.bool_)
    third[2:] = same[1:] & same[:-1]
    return rows[np.sort(order[~third])]


def _bits(masks: U64, n: int) -> NDArray[np.bool_]:
    """The first n columns of masks, as bools; masks may be too narrow to have them all."""
    bits = np.unpackbits(np.ascontiguousarray(masks).view(np.uint8), axis=-1, bitorder="little").astype(
        np.bool_
    )
    lacking = max(0, n - bits.shape[-1])
    return np.pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, lacking)])[..., :n]


def _packed(bits: NDArray[np.bool_], n_words: int) -> U64:
    """Masks uint64[n, n_words] of bools [n, *]."""
    octets = np.packbits(np.pad(bits, [(0, 0), (0, 64 * n_words - bits.shape[1])]), axis=1, bitorder="little")
    return np.ascontiguousarray(octets).view(np.uint64).reshape(len(bits), n_words)
