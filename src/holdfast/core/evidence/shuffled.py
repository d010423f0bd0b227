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

Bytes: 21 for each value of a pivot and segment; for each row with a repeated value 8, and 1 to 16 for each
column of the candidates; 2 KB for each block. Rows that are equal on all of these are sent twice at most, so
a value that many rows have is no burden where few columns are concerned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.kernels import partitions
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.evidence.validation import columns_of_any, refuted_in, trie
from holdfast.core.evidence.witnessed_masks import evidence_in
from holdfast.core.rows.codes import hash_again
from holdfast.core.rows.kernels.masks import n_words_for
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import Segment
from holdfast.core.rows.tasks import Payload, all_opened, parsed_schema, staged
from holdfast.core.store.bundle import Bundle, pack, unpack
from holdfast.core.store.format import text_key
from holdfast.core.words.column_sets import bits_of, masks_of

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Blocks = Iterator[bytes]
Sent = Iterator[tuple[int, bytes]]

# From so many rows on, where tasks share no disk.
SHUFFLED_ROWS = 1 << 25
# Rows of a pivot that meet in one part: some 400 MB with forty columns.
PART_ROWS = 1 << 21
# Where a pivot has so many rows for each of its values, rows that say the same are sent twice at most.
FOLDED_FROM = 64
# A column that has so many values for each row of a block has another one in most of them.
FEW_VALUES = 4
# Equal hashes of values should not mean equal parts of a smaller number.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
NULL_CHECK = np.uint64(1)  # a value of an exact type has 0


def is_worth_it(relation: Relation, ns: float) -> bool:
    """Whether rows had better meet by the shuffle, for work of so many nanoseconds of one core.

    Without a key of the workspace values could be made up that meet and are not equal.
    """
    engine = relation.engine
    if relation.n_rows <= SHUFFLED_ROWS or not engine.shuffles or text_key(relation.root) is None:
        return False
    return engine.mode != "auto" or engine.choose(ns) == "spark" or relation.is_far


def validate_by_shuffle(relation: Relation, lhs: U64, rhs: U64, pivots: I64) -> tuple[U64, U64, I64, U64]:
    """(refuted, masks, witnesses, exhausted): as `validate_fds`, no left-hand side is empty. Two jobs.

    Nothing is exhausted: of the pairs that the tasks have compared only some are sent here.
    """
    n_columns, ranking = len(relation.schema), relation.ranking()
    n_parts = -(-relation.n_rows // PART_ROWS)  # of each pivot
    candidates = relation.stage("candidates", lhs=lhs, rhs=rhs, pivots=pivots)
    chosen = [
        {"pivot": p, "columns": columns_of_any((lhs | rhs)[pivots == p], n_columns)}
        for p in np.unique(pivots).tolist()
    ]
    by_segment = [
        relation.payload(segment=segment, number=i, chosen=chosen, n_parts=n_parts)
        for i, segment in enumerate(relation.live)
    ]
    by_part = [
        relation.payload(
            **of_pivot, candidates=candidates, ranking=ranking, part=i, n_segments=len(by_segment)
        )
        for i, of_pivot in enumerate(of_pivot for of_pivot in chosen for _ in range(n_parts))
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
    for slot, of_pivot in enumerate(chosen):
        bundles = [unpack(result) for result in results[slot * n_parts : (slot + 1) * n_parts]]
        for bundle in bundles:
            refuted[bundle.array("candidate")] |= bundle.array("refuted").reshape(-1, rhs.shape[1])
        # Parts find the same again and again; a few pairs of each kind will do.
        evidence = evidence_in(bundles, n_words_for(len(of_pivot["columns"]) + 1), WITNESSES, 2)
        some = partitions.unite(*evidence)[1].reshape(-1, 2)
        pairs.append(some[some[:, 0] >= 0])
    different = np.unique(np.concatenate(pairs), axis=0)
    witnesses: I64 = np.full((len(different), WITNESSES, 2), -1, dtype=np.int64)
    witnesses[:, 0] = different
    return refuted, agree_sets(relation, different), witnesses, rhs[:0]


def agree_sets(relation: Relation, pairs: I64) -> U64:
    """The columns on which the rows of each pair agree; pairs are of row ids. One job."""
    row_ids = np.unique(pairs)
    n_columns = len(relation.schema)
    keys, checks = (np.zeros((len(row_ids), n_columns), np.uint64) for _ in range(2))
    if len(row_ids):
        wanted = relation.stage("rows", row_ids=row_ids)
        payloads = [
            relation.payload(segment=s.to_dict(), rows=wanted) for s in relation.that_may_have(row_ids)
        ]
        # In tasks, however few the rows: the driver is not to fetch every segment.
        for result in map(unpack, relation.engine.run(read_rows, payloads, where="spark")):
            at = result.array("at")
            keys[at] = result.array("keys").reshape(-1, n_columns)
            checks[at] = result.array("checks").reshape(-1, n_columns)
    a, b = np.searchsorted(row_ids, pairs.T)
    agree = (keys[a] == keys[b]) & (checks[a] == checks[b])
    if relation.nulls == "distinct":
        agree &= (keys[a] != 0) | (checks[a] != NULL_CHECK)
    return masks_of(agree, relation.n_words)


# -- tasks -------------------------------------------------------------------------------------


def send_values(payload: Payload) -> Sent:
    """Step 1: the values that live rows of a segment have in the pivots, and which of them more than once."""
    segment, nulls_distinct = segment_of(payload)
    meta = {"segment": str(payload["number"])}
    arrays: dict[str, NDArray[Any]] = {}
    for slot, of_pivot in enumerate(payload["chosen"]):
        counts = _counts(segment, of_pivot["pivot"], nulls_distinct)
        used = np.flatnonzero(counts).astype(np.int32)
        keys, checks = identities_in(segment, of_pivot["pivot"], used)
        arrays = {"code": used, "key": keys, "check": checks, "many": (counts[used] > 1).astype(np.uint8)}
        for part, at in by_part(keys, payload["n_parts"]):
            yield slot * payload["n_parts"] + part, pack({n: a[at] for n, a in arrays.items()}, meta)
    # Somebody has to be there, to give each segment its turn.
    yield 0, pack({name: array[:0] for name, array in arrays.items()}, meta)


def find_repeated(blocks: Blocks, payload: Payload) -> Sent:
    """Step 2: to each segment those of its values that it has once and another segment has, too."""
    bundles = [unpack(block) for block in blocks]
    code, key, check, many = (
        np.concatenate([b.array(name) for b in bundles]) for name in ("code", "key", "check", "many")
    )
    segment = np.repeat([int(b.meta["segment"]) for b in bundles], [len(b.array("code")) for b in bundles])
    order = np.lexsort((check, key))
    change = np.ones(len(order), np.bool_)
    change[1:] = _differ(key[order], check[order])
    sizes = np.diff(np.append(np.flatnonzero(change), len(order)))
    repeated = order[np.repeat(sizes, sizes) > 1]
    repeated = repeated[many[repeated] == 0]
    meta = {"pivot": str(payload["pivot"])}
    for number, at in grouped(segment[repeated]):
        yield number, pack({"code": code[repeated[at]]}, meta)
    for number in range(payload["n_segments"]) if payload["part"] == 0 else ():
        yield number, pack({"code": code[:0]}, meta)


def send_rows(blocks: Blocks, payload: Payload) -> Sent:
    """Step 3: the rows of a segment whose value of a pivot is repeated."""
    segment, nulls_distinct = segment_of(payload)
    elsewhere: dict[int, list[I32]] = {}
    for bundle in map(unpack, blocks):
        elsewhere.setdefault(int(bundle.meta["pivot"]), []).append(bundle.array("code"))
    for slot, of_pivot in enumerate(payload["chosen"]):
        pivot, columns = of_pivot["pivot"], of_pivot["columns"]
        repeated = _counts(segment, pivot, nulls_distinct) > 1
        repeated[np.concatenate([np.empty(0, np.int32), *elsewhere.get(pivot, ())])] = True
        rows = np.flatnonzero(repeated[segment.codes[pivot]] & segment.live)
        if len(rows) > FOLDED_FROM * int(repeated.sum()):
            rows = _twice_at_most(segment.codes[np.ix_(columns, rows)], rows)
        keys, _ = identities_in(segment, pivot)
        for part, at in by_part(keys[segment.codes[pivot][rows]], payload["n_parts"]):
            yield slot * payload["n_parts"] + part, packed_rows(segment, rows[at], columns)


def refute_part(blocks: Blocks, payload: Payload) -> bytes:
    """Step 4: what rows with equal values of a pivot refute of its candidates."""
    bundles = [unpack(block) for block in blocks]
    candidates = staged(payload, "candidates")
    pivots = candidates.array("pivots")
    numbers = np.flatnonzero(pivots == payload["pivot"])
    lhs, rhs = (candidates.array(side).reshape(len(pivots), -1)[numbers] for side in ("lhs", "rhs"))
    refuted, masks, witnesses = np.zeros_like(rhs), lhs[:0], np.empty((0, WITNESSES, 2), np.int64)
    if bundles:
        refuted, masks, witnesses = _refuted(bundles, payload["pivot"], payload["columns"], lhs, rhs, payload)
    hit = refuted.any(axis=1)
    evidence = {"masks": masks, "witnesses": witnesses}
    return pack({"candidate": numbers[hit], "refuted": refuted[hit], **evidence}, {})


def read_rows(payload: Payload) -> bytes:
    """Rows of a segment by id, as the values that they have in all columns."""
    segment, _ = segment_of(payload)
    positions = segment.positions(staged(payload, "rows").array("row_ids"))
    at = np.flatnonzero(positions >= 0)
    values = [identities_in(segment, c, segment.codes[c][positions[at]]) for c in range(len(segment.schema))]
    keys, checks = (np.stack([v[i] for v in values], axis=1) for i in range(2))
    return pack({"at": at, "keys": keys, "checks": checks}, {})


# -- inside ------------------------------------------------------------------------------------


class _Received:
    """Rows that have come from all segments, as `validation.Layout`: int32[n, n_columns], 0 for NULL."""

    def __init__(self, matrix: I32, row_ids: I64) -> None:
        self._matrix, self._row_ids = matrix, row_ids

    def partnered(self, rows: I32, offsets: I64, columns: I32, nulls_distinct: bool) -> tuple[I64, I64]:
        return partitions.partnered(self._matrix, rows, offsets, columns, nulls_distinct)

    def values(self, rows: I32) -> tuple[I32, I32]:
        return self._matrix, rows

    def row_ids(self, rows: I32) -> I64:
        return self._row_ids[rows]


def _refuted(
    bundles: Sequence[Bundle], pivot: int, columns: list[int], lhs: U64, rhs: U64, payload: Payload
) -> tuple[U64, U64, I64]:
    """(refuted, masks, witnesses): what the rows in some blocks refute of the candidates of a pivot; masks
    are of the columns that were sent."""
    n_columns = len(parsed_schema(payload["schema"]))
    matrix, n_ids = numbered(bundles, len(columns))
    place = {c: j for j, c in enumerate(columns)}
    at = place[pivot]
    rows, offsets = partitions.cluster(np.ascontiguousarray(matrix[:, at]), int(n_ids[at]))
    # The row itself, of keys, is the column behind the last one, here as there.
    sent, n_words = [*columns, n_columns], n_words_for(len(columns) + 1)
    narrow_lhs, narrow_rhs = (masks_of(bits_of(side, n_columns + 1)[:, sent], n_words) for side in (lhs, rhs))
    ranking = [place[c] for c in payload["ranking"] if c in place]
    refuted, masks, witnesses, _ = refuted_in(
        _Received(matrix, np.concatenate([b.array("row_id") for b in bundles])),
        rows,
        offsets,
        narrow_lhs,
        narrow_rhs,
        trie(narrow_lhs, [at], ranking),
        n_ids,
        payload["nulls"] == "distinct",
    )
    wide = np.zeros((len(rhs), 64 * rhs.shape[1]), np.bool_)
    there = [c for c in sent if c < wide.shape[1]]  # room for the row is where there are keys
    wide[:, there] = bits_of(refuted, len(there))
    return masks_of(wide, rhs.shape[1]), *partitions.unite(masks, witnesses)


def packed_rows(segment: Segment, rows: I64, columns: Sequence[int], **more: NDArray[Any]) -> bytes:
    """Rows on some columns, in few arrays, since blocks are many: of each column the different values, and
    for each row which of them it has, in as few bytes as will do; the values of all rows if most differ.
    Whatever else is to be sent goes along."""
    codes, keys, checks, counts = [], [], [], []
    for c in columns:
        used = local = segment.codes[c][rows]
        n_values = len(segment.dictionary(c)) + 1
        if n_values < FEW_VALUES * len(rows):
            there = np.zeros(n_values, np.bool_)
            there[local] = True
            used = np.flatnonzero(there).astype(np.int32)
            width = np.min_scalar_type(len(used))
            if len(used) * 8 + len(rows) * width.itemsize < len(rows) * 8:
                codes.append((np.cumsum(there) - 1)[local].astype(width).view(np.uint8))
            else:
                used = local
        key, check = identities_in(segment, c, used)
        keys.append(key)
        checks.append(check if check.any() else check[:0])
        counts.append((len(key), len(checks[-1])))
    arrays = {
        "code": np.concatenate([np.empty(0, np.uint8), *codes]),
        "key": np.concatenate(keys),
        "check": np.concatenate(checks),
    }
    return pack({"row_id": segment.row_ids(rows), "count": np.array(counts, np.int32), **arrays, **more}, {})


def numbered(
    bundles: Sequence[Bundle], n_columns: int, alike: Sequence[Sequence[int]] | None = None
) -> tuple[I32, I64]:
    """(matrix int32[n_rows, n_columns], n_ids int64[n_columns]): numbers that equal values of a column share
    and no others do, 0 for NULL; all of column c are below n_ids[c]. Of types that have an order larger
    values have larger numbers. Columns that are `alike` share them; without it, each has its own.
    """
    received = [list(unpacked_columns(b, n_columns)) for b in bundles]
    starts = np.cumsum([0, *(len(b.array("row_id")) for b in bundles)])
    matrix, n_ids = np.empty((starts[-1], n_columns), np.int32), np.ones(n_columns, np.int64)
    for some in [[j] for j in range(n_columns)] if alike is None else alike:
        key, check = (
            np.concatenate([np.empty(0, np.uint64), *(columns[j][i] for j in some for columns in received)])
            for i in (1, 2)
        )
        order = np.lexsort((check, key))
        change = np.zeros(len(order), np.bool_)
        change[1:] = _differ(key[order], check[order])
        numbers = np.empty(len(order), np.int32)
        numbers[order] = np.cumsum(change, dtype=np.int32) + 1
        numbers[(key == 0) & (check == NULL_CHECK)] = 0
        n_ids[some] = int(numbers.max(initial=0)) + 1
        first = 0
        for j in some:
            for columns, start, end in zip(received, starts, starts[1:], strict=False):
                codes, keys, _ = columns[j]
                matrix[start:end, j] = numbers[first : first + len(keys)][codes]
                first += len(keys)
    return matrix, n_ids


def unpacked_columns(bundle: Bundle, n_columns: int) -> Iterator[tuple[NDArray[Any], U64, U64]]:
    """(codes, keys, checks) of each column of a block."""
    n_rows = len(bundle.array("row_id"))
    codes, keys, checks = (bundle.array(name) for name in ("code", "key", "check"))
    at = np.zeros(3, np.int64)
    for n_keys, n_checks in bundle.array("count").reshape(n_columns, 2).tolist():
        width = np.dtype(np.min_scalar_type(n_keys))
        each = n_keys == n_rows  # no codes: one value for each row
        ends = np.add(at, (0 if each else n_rows * width.itemsize, n_keys, n_checks))
        some = checks[at[2] : ends[2]] if n_checks else np.zeros(n_keys, np.uint64)
        which = np.arange(n_rows) if each else codes[at[0] : ends[0]].view(width)
        yield which, keys[at[1] : ends[1]], some
        at = ends


def _differ(*ordered: NDArray[Any]) -> NDArray[np.bool_]:
    """Where one of some arrays has another value than in the place before."""
    differ: NDArray[np.bool_] = np.logical_or.reduce([array[1:] != array[:-1] for array in ordered])
    return differ


def segment_of(payload: Payload) -> tuple[Segment, bool]:
    """(segment, whether NULLs are distinct) of a task that reads a segment from end to end."""
    schema = parsed_schema(payload["schema"])
    [segment] = all_opened({**payload, "segments": [payload["segment"]]}, schema)
    return segment, payload["nulls"] == "distinct"


def _counts(segment: Segment, column: int, nulls_distinct: bool) -> I64:
    """How many live rows have each local code; 0 for NULL if no two are equal."""
    codes = segment.codes[column]
    counts = np.bincount(codes[segment.live] if segment.ref.n_deleted else codes)
    counts = np.append(counts, np.zeros(len(segment.dictionary(column)) + 1 - len(counts), counts.dtype))
    if nulls_distinct:
        counts[0] = 0
    return counts


def identities_in(segment: Segment, column: int, codes: I32 | None = None) -> tuple[U64, U64]:
    """(keys, checks) of the values of some local codes, or of all: together 128 bits that no others have."""
    dictionary, texts = segment.dictionary(column), segment.texts(column)
    if codes is None:
        codes = np.arange(len(dictionary) + 1, dtype=np.int32)
    entries = codes[codes > 0] - 1
    keys, checks = np.zeros(len(codes), np.uint64), np.full(len(codes), NULL_CHECK)
    keys[codes > 0] = dictionary[entries]
    checks[codes > 0] = 0 if texts is None else hash_again(texts.take(entries), segment.key)
    return keys, checks


def by_part(keys: U64, n_parts: int) -> Iterator[tuple[int, I64]]:
    """(part, which of the keys fall into it)."""
    return grouped(((keys * _SPREAD) >> np.uint64(32)) % np.uint64(n_parts))


def grouped(numbers: NDArray[Any]) -> Iterator[tuple[int, I64]]:
    """(number, where it stands) for each that occurs."""
    order = np.argsort(numbers, kind="stable")
    bounds = np.flatnonzero(np.diff(numbers[order])) + 1
    for at in np.split(order, bounds) if len(order) else ():
        yield int(numbers[at[0]]), at


def _twice_at_most(codes: I32, rows: I64) -> I64:
    """Of rows that are equal on all columns two: codes int32[n_columns, n]."""
    order = np.lexsort(codes)
    ordered = codes[:, order]
    same = (ordered[:, 1:] == ordered[:, :-1]).all(axis=0)
    third = np.zeros(len(order), np.bool_)
    third[2:] = same[1:] & same[:-1]
    return rows[np.sort(order[~third])]
