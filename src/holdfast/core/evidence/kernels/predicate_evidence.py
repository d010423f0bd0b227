"""Evidence of pairs of rows over predicates t.A op s.B (IncDC, sec. 8: BuildEvidence), counted.

A *group* is an ordered pair of columns (A, B) that may be compared. A pair of rows (t, s) has one *outcome*
in each group, which decides all of its predicates at once:

    ordered    0: t.A < s.B      !=, <, <=        unordered    0: t.A != s.B    !=
               1: t.A = s.B      =, <=, >=                     1: t.A = s.B     =
               2: t.A > s.B      !=, >, >=
               3: one is NULL    !=

Two NULLs are equal. A group's predicates are numbered from first[g] on, in the order =, !=, <, <=, >, >= (the
first two if it is unordered); the *evidence* of (t, s) is the mask of those it satisfies.

The outcomes of a pair are its key in `kernels.compared_pairs`, which says what values are, how they are
compared with any segment without a common dictionary, and how keys are counted: 2 bits for an ordered group
and 1 for another. Only different keys are expanded to masks of predicates, at the end.

The outcome of (A, B) for (s, t) is the outcome of (B, A) for (t, s), turned round. So an unordered pair of
rows is compared once per group; the other evidence is read from the same key.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.evidence.kernels.compared_pairs import (
    Comparisons,
    CountedKeys,
    all_pairs,
    ascending,
    listed_pairs,
)
from holdfast.core.rows.kernels.encode import frozen

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]


class Groups(NamedTuple):
    """Groups, all int32[n_groups]: columns left (of t) and right (of s), 1 if ordered, first predicate."""

    left: I32
    right: I32
    ordered: I32
    first: I32


class Evidence(NamedTuple):
    """Consolidated evidence of k masks.

    masks uint64[k, n_words], all different; equal families come in equal order. counts int64[k]: how many
    ordered pairs have each mask; witnesses int64[k, 2]: any one of these, (t, s); batch_first bool[k]:
    whether t is the batch row and s the old row, else t is the old one.
    """

    masks: U64
    counts: I64
    witnesses: I64
    batch_first: Bool


# Predicates (bits =, !=, <, <=, >, >=) of each outcome, and of two rows exchanged the outcome.
ORDERED_OUTCOMES = (0b001110, 0b101001, 0b110010, 0b000010)
UNORDERED_OUTCOMES = (0b10, 0b01)
EXCHANGED = (2, 1, 0, 3)


# --- The plan: which comparisons a pair costs, and how its key is read -----------------------------------


class _Plan(NamedTuple):
    """The comparisons of a batch row with an old row, and what their outcomes say.

    sources int64[2, c]: group and side of the batch's values for each comparison; exchange, predicates
    uint64[n_bytes, 256, *]: for each byte of a key what it adds to the key of the exchanged pair, and to the
    evidence. `complete`: every group comes with its mirrored one, so keys and masks are as many.
    """

    compared: Comparisons
    sources: I64
    exchange: U64
    predicates: U64
    complete: bool


def planned(groups: Groups, n_words: int) -> _Plan:
    """One comparison for each group; two for a group that comes without its mirrored one."""
    left, right, first = groups.left.tolist(), groups.right.tolist(), groups.first.tolist()
    forward, backward = list(zip(left, right, strict=True)), list(zip(right, left, strict=True))
    comparison_of: dict[tuple[int, int], int] = {}
    sources: list[tuple[int, int]] = []
    for side, pairs in enumerate((forward, backward)):
        for g, pair in enumerate(pairs):
            if pair not in comparison_of:
                comparison_of[pair] = len(sources)
                sources.append((g, side))
    source = np.array(sources, dtype=np.int64).reshape(len(sources), 2).T
    wide = groups.ordered[source[0]] != 0
    # Outcomes of two bits first: none straddles two bytes.
    order = np.argsort(~wide, kind="stable")
    bits = np.where(wide, 2, 1)
    shifts = np.empty(len(sources), dtype=np.int64)
    shifts[order] = np.cumsum(bits[order]) - bits[order]
    n_bits = int(bits.sum())

    exchanged = [[0] * 4 for _ in sources]
    satisfied = [[0] * 4 for _ in sources]
    for (a, b), c in comparison_of.items():
        for o, turned in enumerate(EXCHANGED if wide[c] else range(2)):
            exchanged[c][o] = turned << int(shifts[comparison_of[b, a]])
    for g, pair in enumerate(forward):
        c = comparison_of[pair]
        for o, predicates in enumerate(ORDERED_OUTCOMES if wide[c] else UNORDERED_OUTCOMES):
            satisfied[c][o] = predicates << first[g]
    columns = np.array([right for _, right in comparison_of], dtype=np.int64)
    compared = Comparisons(columns, wide, shifts, n_bits)
    exchange = _by_byte(exchanged, compared, compared.n_words)
    masks = _by_byte(satisfied, compared, n_words)
    return _Plan(compared, source, exchange, masks, len(comparison_of) == len(set(forward)))


def _by_byte(meanings: list[list[int]], compared: Comparisons, n_words: int) -> U64:
    """uint64[n_bytes, 256, n_words]: what each value of each byte of a key says, from what outcomes say."""
    wide, shifts = compared.wide, compared.shifts
    tables = np.zeros((max(1, -(-compared.n_bits // 8)), 256, n_words), dtype=np.uint64)
    for c, of_outcomes in enumerate(meanings):
        words = np.array(
            [[(o >> 64 * w) & (1 << 64) - 1 for w in range(n_words)] for o in of_outcomes], np.uint64
        )
        outcomes = (np.arange(256) >> (shifts[c] & 7)) & (3 if wide[c] else 1)
        tables[shifts[c] >> 3] |= words[outcomes]
    return tables


@njit(cache=True, nogil=True)
def _read(keys, tables, out):  # type: ignore[no-untyped-def]
    """OUT out uint64[k, n_words], preset to 0: what tables say of the keys.

    IN keys uint64[k, *]; IN tables uint64[n_bytes, 256, n_words].
    """
    for k in range(keys.shape[0]):
        for b in range(tables.shape[0]):
            v = (keys[k, b >> 3] >> np.uint64(8 * (b & 7))) & np.uint64(255)
            for w in range(out.shape[1]):
                out[k, w] |= tables[b, v, w]


def _looked_up(keys: U64, tables: U64) -> U64:
    out = np.zeros((len(keys), tables.shape[2]), dtype=np.uint64)
    _read(keys, frozen(tables), out)
    return out


# --- Evidence --------------------------------------------------------------------------------------------


def evidence_counts(
    old: I32,
    live: Bool,
    batch: I32,
    groups: Groups,
    n_words: int,
    within: bool = False,
    first: int = 0,
    plan: _Plan | None = None,
) -> Evidence:
    """The evidence of all pairs of a batch row with a live old row, in both directions.

    IN old int32[n_columns, n]: local codes, 0 for NULL; IN live bool[n]; IN batch int32[n_groups, 2, b]: half
    ranks of the batch rows for each group (A, B): [g, 0] as t, of A in the dictionary of old column B; [g, 1]
    as s, of B in the dictionary of old column A, which is read only if the group (B, A) is missing. All
    predicates are below 64 * n_words. The counts add up to twice the number of pairs of rows.

    `plan` is `planned(groups, n_words)`, for many calls. The second side of a batch may be missing if every
    group comes with its mirrored one.

    With `within` batch row j is row first + j of old, paired only with the live rows before it: parts of a
    table, one after the other, see each of its pairs once. Witnesses are then (batch row j, row), or the
    reverse, as always.

    Cost: that of `all_pairs`, then some 100 ns a mask.

    >>> one = np.zeros(1, dtype=np.int32)
    >>> groups = Groups(one, one, one + 1, one)
    >>> old = np.array([[1, 2, 0]], dtype=np.int32)
    >>> evidence = evidence_counts(old, old[0] >= 0, np.array([[[4], [4]]], dtype=np.int32), groups, 1)
    >>> [(f"{m:06b}", n) for m, n in zip(evidence.masks[:, 0].tolist(), evidence.counts.tolist())]
    [('001110', 1), ('101001', 2), ('110010', 1), ('000010', 2)]
    """
    plan = plan or planned(groups, n_words)
    values = batch[plan.sources[0], plan.sources[1]]
    return _evidence(plan, all_pairs(old, live, values, plan.compared, within, first))


class ListedPairs:
    """The evidence of listed pairs of a batch with old rows; made once for any number of lists.

    IN old int32[n_columns, n], batch int32[n_groups, 1 or 2, b], groups, n_words as of `evidence_counts`; the
    second side of a batch may be missing if every group comes with its mirrored one.
    """

    def __init__(self, old: I32, batch: I32, groups: Groups, n_words: int) -> None:
        self._plan = planned(groups, n_words)
        self._old = frozen(old)
        self._values = frozen(batch[self._plan.sources[0], self._plan.sources[1]])

    def evidence(self, batch_rows: I64, old_rows: I64) -> Evidence:
        """The evidence of the pairs of batch row batch_rows[i] with old row old_rows[i], in both directions.

        IN batch_rows, old_rows int64[p]. A pair counts as often as it is listed. Cost: see `listed_pairs`.
        """
        plan = self._plan
        return _evidence(plan, listed_pairs(self._old, self._values, plan.compared, batch_rows, old_rows))


def pairs_evidence_of(
    old: I32, batch: I32, groups: Groups, n_words: int, batch_rows: I64, old_rows: I64
) -> Evidence:
    """The evidence of one list of pairs: see `ListedPairs`."""
    return ListedPairs(old, batch, groups, n_words).evidence(batch_rows, old_rows)


# --- From keys to evidence -------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _settle(order, new, counts, exchanged_counts, pairs, out_counts, out_pairs, batch_first):  # type: ignore[no-untyped-def]
    """OUT out_counts, out_pairs int64[k], batch_first bool[k]: those of keys, then of new ones, in order.

    IN order int64[k]; IN counts, exchanged_counts, pairs int64[n]: of n keys, their exchanged ones, and a
    pair of each; IN new int64[k - n]: the keys whose exchanged one is new.
    """
    n = counts.shape[0]
    for i in range(order.shape[0]):
        k = order[i]
        batch_first[i] = k < n
        if k < n:
            out_counts[i] = counts[k] + exchanged_counts[k]
            out_pairs[i] = pairs[k]
        else:
            out_counts[i] = counts[new[k - n]]
            out_pairs[i] = pairs[new[k - n]]


def _evidence(plan: _Plan, counted: CountedKeys) -> Evidence:
    """The evidence of counted pairs, in both directions."""
    masks, counts, pairs, batch_first = _both_ways(plan, counted)
    batch_rows, old_rows = counted.rows_of(pairs)
    t = np.where(batch_first, batch_rows, old_rows)
    return Evidence(masks, counts, np.stack([t, batch_rows + old_rows - t], axis=1), batch_first)


def _both_ways(plan: _Plan, counted: CountedKeys) -> tuple[U64, I64, I64, Bool]:
    """(masks, counts, pairs, batch_first): both directions of the counted pairs, with a pair's number each.

    A key has its own pairs, and those of the exchanged key the other way round.
    """
    keys, counts, pairs = counted.entries()
    exchanged = _looked_up(keys, plan.exchange)
    exchanged_counts = counted.counts_of(exchanged)
    new = np.flatnonzero(exchanged_counts == 0)
    keys = np.concatenate([keys, exchanged[new]])
    order = ascending(keys, plan.compared.n_bits)
    out_counts, out_pairs = np.empty(len(order), dtype=np.int64), np.empty(len(order), dtype=np.int64)
    batch_first = np.empty(len(order), dtype=np.bool_)
    _settle(order, new, counts, exchanged_counts, pairs, out_counts, out_pairs, batch_first)
    masks = _looked_up(keys[order], plan.predicates)
    if plan.complete:
        return masks, out_counts, out_pairs, batch_first
    # Keys that differ in a comparison of no group have equal masks.
    order = np.lexsort(masks.T[::-1])
    masks = masks[order]
    heads = np.flatnonzero(np.append(True, (masks[1:] != masks[:-1]).any(axis=1))[: len(masks)])
    out_counts = np.add.reduceat(out_counts[order], heads) if len(heads) else out_counts
    return masks[heads], out_counts, out_pairs[order[heads]], batch_first[order[heads]]


def warm_up() -> None:
    for n_groups in (1, 12, 33):
        columns = np.arange(n_groups, dtype=np.int32)
        groups = Groups(columns, columns, np.ones(n_groups, np.int32), 6 * columns)
        codes = np.tile(np.arange(3, dtype=np.int32), (n_groups, 1))
        batch = np.repeat(2 * codes[:, None], 2, axis=1)
        evidence_counts(codes, np.ones(3, dtype=np.bool_), batch, groups, 4, within=True)
        rows = np.arange(2)
        pairs_evidence_of(codes, batch, groups, 4, rows, rows + 1)
