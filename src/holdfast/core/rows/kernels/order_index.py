"""Order indexes: which rows lie on the asked side of a value, in one column or in two at once.

Rows have *codes*, int32 per column, that compare as the values do; 0 is NULL. A probe is a *half rank* in
the codes of the column that it is compared with: `2 * code` if the column has the value, the odd number
between the neighbours if not, 0 if it is NULL. So values that the column has never seen can be asked for.

Two columns (IncDC, sections 5 and 6). Rows with equal codes in both are folded to one *node*. The nodes are
split into *chains* (Sorted_i of the paper), each ordered on both columns at once: of two nodes of a chain the
later stands to the earlier as the two operators of the index say. The number of chains is the *rank*; `build`
makes it as small as can be. Along a chain each column only rises or only falls, so whatever one comparison
asks for is one range of the chain, and so is what two ask for. Every index therefore answers every pair of
operators: with its own operators by the ends of the chains (Fetch, algorithm 1), with one of them turned
round by the middle (section 6.2), > instead of >= by leaving out the ties. Ranges of nodes are ranges of
`rows`, because nodes and their rows stand in chain order.

Which operators to build for is a question of rank only. Ties cost a strict index a chain each; one for <= or
>= never has more chains than the strict one of the same directions. The direction of the second operator
should follow the sign of the correlation.

One column: rows sorted by code.

NULL. With a NULL on one side only `!=` holds, with NULLs on both sides `=`, `<=` and `>=` do. Rows with a
NULL stand in no ordered chain: up to three chains behind the others hold them (NULL in a, in b, in both).

All operators take part: `=` is a range too, `!=` two (the lower with the NULLs, and the upper).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import frozen, postings
from holdfast.core.rows.kernels.operators import EQ, GE, GT, LE, LT, NE

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

# Above every code and every bound that a half rank gives; its negative plus one is still an int64.
TOP = np.int64(1) << np.int64(62)

# Counting sort is used up to so many places a row, else a comparison sort.
PLACES_PER_ROW = 4

# Rows that `correlation` looks at.
SAMPLE = 10_000


class OrderIndex(NamedTuple):
    """The chains of two columns, for good. Arrays are read-only and may be memory maps.

    Chain c holds the nodes `chain_offsets[c]` to `chain_offsets[c + 1]`, node v the rows
    `rows[node_offsets[v]:node_offsets[v + 1]]`, ascending. No chain and no node is empty.
    Law: of two nodes of a chain without NULLs the later one, y, and the earlier one, x, satisfy
    `y.a op_a x.a` and `y.b op_b x.b`.
    """

    op_a: int  # LT, LE, GT or GE
    op_b: int
    node_a: I32  # int32[m]: code of the node in the first column
    node_b: I32  # int32[m]
    chain_offsets: I64  # int64[k + 1]
    node_offsets: I64  # int64[m + 1]
    rows: I32  # int32[n]: every row once

    @property
    def rank(self) -> int:
        """The number of chains without NULLs: what a probe costs, in binary searches."""
        first = self.chain_offsets[:-1]
        return int(np.count_nonzero((self.node_a[first] != 0) & (self.node_b[first] != 0)))


class ColumnIndex(NamedTuple):
    """The rows of one column by code: code v has `rows[offsets[v]:offsets[v + 1]]`, ascending."""

    offsets: I32  # int32[n_codes + 2]
    rows: I32  # int32[n]


class Hits(NamedTuple):
    """Pairs of a probe and a row: probes ascend, and each probe's rows stand in the order of the index."""

    probes: I32  # int32[h]
    rows: I32  # int32[h]


# --- Building --------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _by_code(order, codes, n_codes, falling, sorted_order):  # type: ignore[no-untyped-def]
    """One stable counting sort of rows by code.

    order IN int32[n], rows; codes IN int32[n] in 0..n_codes, by row; sorted_order OUT int32[n].
    """
    starts = np.zeros(n_codes + 2, dtype=np.int64)
    for i in range(order.shape[0]):
        code = np.int64(codes[order[i]])
        starts[(n_codes - code if falling else code) + 1] += 1
    for c in range(n_codes + 1):
        starts[c + 1] += starts[c]
    for i in range(order.shape[0]):
        code = np.int64(codes[order[i]])
        place = n_codes - code if falling else code
        sorted_order[starts[place]] = order[i]
        starts[place] += 1


@njit(cache=True, nogil=True)
def _fold(order, a, b, node_offsets):  # type: ignore[no-untyped-def]
    """The number of nodes m.

    order IN int32[n], rows sorted by (a, b); a, b IN int32[n]; node_offsets OUT int64[n + 1], m + 1 of them
    valid: where in `order` each node begins.
    """
    m = 0
    for i in range(order.shape[0]):
        if i == 0 or a[order[i]] != a[order[i - 1]] or b[order[i]] != b[order[i - 1]]:
            node_offsets[m] = i
            m += 1
    node_offsets[m] = order.shape[0]
    return m


@njit(cache=True, nogil=True)
def _assign(node_a, node_b, strict_a, strict_b, sign_b, chain):  # type: ignore[no-untyped-def]
    """The rank k; see `build`.

    node_a, node_b IN int32[m], in the order of the index; chain OUT int32[m]: 0 to k - 1 of a node without
    NULLs, -1, -2, -3 of one with a NULL in a only, in b only, in both.
    """
    m = node_a.shape[0]
    tails = np.empty(64, dtype=np.int64)
    k = 0
    start = 0
    while start < m:
        # Nodes with the same a: upwards in b, or downwards where they must not share a chain.
        stop = start + 1
        while stop < m and node_a[stop] == node_a[start]:
            stop += 1
        for j in range(stop - start):
            v = stop - 1 - j if strict_a else start + j
            if node_a[v] == 0 or node_b[v] == 0:
                chain[v] = -3 if node_a[v] == node_b[v] else (-1 if node_a[v] == 0 else -2)
                continue
            key = sign_b * np.int64(node_b[v])
            limit = key - 1 if strict_b else key
            low = 0
            high = k
            while low < high:
                middle = (low + high) >> 1
                if tails[middle] > limit:
                    low = middle + 1
                else:
                    high = middle
            if low == k:
                if k == tails.shape[0]:
                    grown = np.empty(2 * k, dtype=np.int64)
                    grown[:k] = tails
                    tails = grown
                k += 1
            tails[low] = key
            chain[v] = low
        start = stop
    return k


@njit(cache=True, nogil=True)
def _lay_out(  # type: ignore[no-untyped-def]
    order, sorted_offsets, sorted_a, sorted_b, chain, k, chain_offsets, node_a, node_b, node_offsets, rows
):
    """Move nodes and rows into chain order; returns the number of chains, those with NULLs included.

    order IN int32[n]; sorted_offsets IN int64[m + 1]; sorted_a, sorted_b IN int32[m]; chain IN int32[m];
    chain_offsets OUT int64[k + 4], of which one more than the result are valid; node_a, node_b OUT int32[m];
    node_offsets OUT int64[m + 1]; rows OUT int32[n].
    """
    m = chain.shape[0]
    sizes = np.zeros(k + 3, dtype=np.int64)
    for v in range(m):
        sizes[chain[v] if chain[v] >= 0 else k - 1 - chain[v]] += 1
    cursor = np.empty(k + 3, dtype=np.int64)
    n_chains = 0
    at = np.int64(0)
    for c in range(k + 3):
        cursor[c] = at
        if sizes[c] > 0:
            chain_offsets[n_chains] = at
            n_chains += 1
        at += sizes[c]
    chain_offsets[n_chains] = m
    place = np.empty(m, dtype=np.int64)
    for v in range(m):
        c = chain[v] if chain[v] >= 0 else k - 1 - chain[v]
        p = cursor[c]
        cursor[c] += 1
        place[p] = v
    at = np.int64(0)
    for p in range(m):
        v = place[p]
        node_a[p] = sorted_a[v]
        node_b[p] = sorted_b[v]
        node_offsets[p] = at
        for i in range(sorted_offsets[v], sorted_offsets[v + 1]):
            rows[at] = order[i]
            at += 1
    node_offsets[m] = at
    return n_chains


def _sign(op: int) -> int:
    """1 where codes rise along a chain of this operator, -1 where they fall."""
    if op in (GT, GE):
        return 1
    if op in (LT, LE):
        return -1
    raise ValueError(f"an order index is built for <, <=, > or >=, not for operator number {op}")


def _sorted_rows(a: I32, b: I32, sign_a: int, sign_b: int) -> I32:
    """All rows by a, then by b, each in its direction; rows that tie ascend."""
    n = len(a)
    top_a, top_b = (int(a.max()), int(b.max())) if n else (0, 0)
    if max(top_a, top_b) > PLACES_PER_ROW * n + 1024:
        keys = (sign_b * b.astype(np.int64), sign_a * a.astype(np.int64))
        return np.lexsort(keys).astype(np.int32)
    by_b = np.empty(n, dtype=np.int32)
    _by_code(frozen(np.arange(n, dtype=np.int32)), frozen(b), top_b, sign_b < 0, by_b)
    by_a = np.empty(n, dtype=np.int32)
    _by_code(frozen(by_b), frozen(a), top_a, sign_a < 0, by_a)
    return by_a


def build(a: I32, b: I32, op_a: int = GE, op_b: int = GE) -> OrderIndex:
    """The index of two columns with the smallest possible rank (OptIndex, algorithm 3).

    IN a, b int32[n]: codes, 0 is NULL. op_a, op_b: LT, LE, GT or GE.

    Write x before y if y may follow x in a chain: `y.a op_a x.a` and `y.b op_b x.b`. On nodes that is a
    partial order. Let keys be codes with the sign of their direction, so that they rise along a chain. Nodes
    are taken by their key in a; of those that tie, upwards in b if op_a is weak, downwards if it is strict.
    Then whatever is before y is taken before y; and a node x taken earlier is before y iff its key in b is
    at most (op_b strict: below) that of y: if op_a is strict and x ties with y, x has the higher key in b.
    (The paper breaks ties upwards always, which puts ties of a strict op_a into one chain.)

    Each node y goes to the first chain whose tail is before it, or opens a chain at the end. From chain to
    chain the keys of the tails fall (op_b strict: never rise), and y keeps it so: the tails of earlier chains
    are above it (strict: not below), the tail that it replaces is not, and later ones are no higher than
    that. So a binary search finds the chain, and its tail is the nearest to y of all that are before y.

    No index has fewer chains. When y came to chain i > 0, the tail x of chain i - 1 was not before it. Go
    from a node of the last chain to such an x, from there likewise, on to the first chain: k nodes, one of
    each chain. On the way keys in b rise (strict: never fall) while nodes were taken ever earlier, so none
    of them is before another: no two can share a chain in any index, and k chains are needed.

    Cost: two counting sorts, and one binary search over the tails a node: O(n log k).

    >>> index = build(np.array([1, 2, 3], np.int32), np.array([3, 1, 2], np.int32), GT, GT)
    >>> index.rank, index.rows, index.chain_offsets
    (2, array([0, 1, 2], dtype=int32), array([0, 1, 3]))
    """
    sign_a, sign_b = _sign(op_a), _sign(op_b)
    a, b = frozen(np.asarray(a, dtype=np.int32)), frozen(np.asarray(b, dtype=np.int32))
    order = _sorted_rows(a, b, sign_a, sign_b)
    sorted_offsets = np.empty(len(order) + 1, dtype=np.int64)
    m = _fold(frozen(order), a, b, sorted_offsets)
    sorted_offsets = sorted_offsets[: m + 1]
    heads = order[sorted_offsets[:-1]]
    sorted_a, sorted_b = frozen(a[heads]), frozen(b[heads])
    chain = np.empty(m, dtype=np.int32)
    k = _assign(sorted_a, sorted_b, op_a in (LT, GT), op_b in (LT, GT), sign_b, chain)
    chain_offsets = np.empty(k + 4, dtype=np.int64)
    node_a = np.empty(m, dtype=np.int32)
    node_b = np.empty(m, dtype=np.int32)
    node_offsets = np.empty(m + 1, dtype=np.int64)
    rows = np.empty(len(order), dtype=np.int32)
    n_chains = _lay_out(
        frozen(order), frozen(sorted_offsets), sorted_a, sorted_b, frozen(chain), k,
        chain_offsets, node_a, node_b, node_offsets, rows,
    )  # fmt: skip
    return OrderIndex(
        op_a, op_b, frozen(node_a), frozen(node_b), frozen(chain_offsets[: n_chains + 1].copy()),
        frozen(node_offsets), frozen(rows),
    )  # fmt: skip


def build_column(codes: I32, n_codes: int) -> ColumnIndex:
    """The index of one column: IN codes int32[n] in 0..n_codes, 0 is NULL. Cost: one counting sort."""
    offsets, rows = postings(np.asarray(codes, dtype=np.int32), n_codes)
    return ColumnIndex(frozen(offsets), frozen(rows))


# --- What an operator asks for ---------------------------------------------------------------------------


def _intervals(op: int, probes: I64) -> list[tuple[I64, I64]]:
    """The codes v such that `v op probe`, as disjoint intervals low <= v < high: one, for `!=` two.

    NULL is the code 0, below all others: one more value to an interval, and to no operator.
    """
    null = probes == 0
    zero = np.zeros(len(probes), dtype=np.int64)
    top = np.full(len(probes), TOP, dtype=np.int64)
    at = (probes + 1) // 2  # the first code that is not below the probe
    above = probes // 2 + 1  # the first code above it
    if op == NE:
        lower = (np.where(null, 1, zero), np.where(null, top, at))
        return [lower, (np.where(null, top, above), top)]
    if op == EQ:
        low, high = at, above
    elif op == LT:
        low, high = zero + 1, at
    elif op == LE:
        low, high = zero + 1, above
    elif op == GT:
        low, high = above, top
    elif op == GE:
        low, high = at, top
    else:
        raise ValueError(f"there is no operator number {op}")
    if op in (LT, GT):
        return [(np.where(null, top, low), np.where(null, zero, high))]
    return [(np.where(null, 0, low), np.where(null, 1, high))]


def _bounds(op: int, probes: I64, sign: int) -> list[tuple[I64, I64]]:
    """The same in keys (code times sign), lower interval first, so that hits come in the order of a chain."""
    intervals = _intervals(op, probes)
    if sign > 0:
        return intervals
    return [(1 - high, 1 - low) for low, high in reversed(intervals)]


# --- Fetch -----------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _first_at_least(codes, start, stop, sign, bound):  # type: ignore[no-untyped-def]
    """The first place in start..stop with `sign * code >= bound`, where such codes stand last; else stop."""
    size = stop - start
    while size > 0:
        half = size >> 1
        below = sign * np.int64(codes[start + half]) < bound
        start = start + half + 1 if below else start
        size = size - half - 1 if below else half
    return start


@njit(cache=True, nogil=True)
def _narrow(codes, start, stop, sign, low, high):  # type: ignore[no-untyped-def]
    """The part of a range, not empty, of a chain whose keys are in low..high, as a range."""
    first = sign * np.int64(codes[start])
    last = sign * np.int64(codes[stop - 1])
    if high <= first or last < low:
        return start, start
    if first < low:
        start = _first_at_least(codes, start + 1, stop, sign, low)
    if high <= last:
        stop = _first_at_least(codes, start, stop - 1, sign, high)
    return start, stop


@njit(cache=True, nogil=True)
def _count(  # type: ignore[no-untyped-def]
    node_a, node_b, chain_offsets, node_offsets, sign_a, sign_b, low_a, high_a, low_b, high_b, counts
):
    """The rows that each probe hits.

    node_a, node_b IN int32[m]; chain_offsets IN int64[k + 1]; node_offsets IN int64[m + 1];
    low_a, high_a IN int64[i, p], low_b, high_b IN int64[j, p]: in each column the keys that each probe asks
    for, as intervals; counts IN/OUT int64[p]. Chain by chain: a chain stays in the cache for all probes.
    """
    for c in range(chain_offsets.shape[0] - 1):
        for p in range(counts.shape[0]):
            for i in range(low_a.shape[0]):
                start, stop = _narrow(
                    node_a, chain_offsets[c], chain_offsets[c + 1], sign_a, low_a[i, p], high_a[i, p]
                )
                if start >= stop:
                    continue
                for j in range(low_b.shape[0]):
                    first, last = _narrow(node_b, start, stop, sign_b, low_b[j, p], high_b[j, p])
                    counts[p] += node_offsets[last] - node_offsets[first]


@njit(cache=True, nogil=True)
def _fill(  # type: ignore[no-untyped-def]
    node_a, node_b, chain_offsets, node_offsets, rows, sign_a, sign_b, low_a, high_a, low_b, high_b, cursor,
    hit_probes, hit_rows,
):  # fmt: skip
    """As `_count`, but with the rows.

    rows IN int32[n]; cursor IN/OUT int64[p]: where each probe's hits begin, then where they end;
    hit_probes, hit_rows OUT int32[h].
    """
    for c in range(chain_offsets.shape[0] - 1):
        for p in range(cursor.shape[0]):
            for i in range(low_a.shape[0]):
                start, stop = _narrow(
                    node_a, chain_offsets[c], chain_offsets[c + 1], sign_a, low_a[i, p], high_a[i, p]
                )
                if start >= stop:
                    continue
                for j in range(low_b.shape[0]):
                    first, last = _narrow(node_b, start, stop, sign_b, low_b[j, p], high_b[j, p])
                    at = cursor[p]
                    for r in range(node_offsets[first], node_offsets[last]):
                        hit_probes[at] = p
                        hit_rows[at] = rows[r]
                        at += 1
                    cursor[p] = at


class _Question(NamedTuple):
    """Probes as the kernels want them."""

    sign_a: int
    sign_b: int
    low_a: I64
    high_a: I64
    low_b: I64
    high_b: I64


def _question(index: OrderIndex, a: I32 | I64, b: I32 | I64, op_a: int, op_b: int) -> _Question:
    sign_a, sign_b = _sign(index.op_a), _sign(index.op_b)
    of_a = _bounds(op_a, np.asarray(a, dtype=np.int64), sign_a)
    of_b = _bounds(op_b, np.asarray(b, dtype=np.int64), sign_b)
    low_a, high_a = (frozen(np.stack(side)) for side in zip(*of_a, strict=True))
    low_b, high_b = (frozen(np.stack(side)) for side in zip(*of_b, strict=True))
    return _Question(sign_a, sign_b, low_a, high_a, low_b, high_b)


def _counted(index: OrderIndex, question: _Question) -> I64:
    counts = np.zeros(question.low_a.shape[1], dtype=np.int64)
    _count(
        frozen(index.node_a), frozen(index.node_b), frozen(index.chain_offsets), frozen(index.node_offsets),
        *question, counts,
    )  # fmt: skip
    return counts


def count(index: OrderIndex, a: I32 | I64, b: I32 | I64, op_a: int, op_b: int) -> I64:
    """How many rows `fetch` would give for each probe: int64[p]. Cost: that of the searches alone."""
    return _counted(index, _question(index, a, b, op_a, op_b))


def blocks(counts: I64, limit: int) -> list[tuple[int, int]]:
    """Ranges of probes, one after the other, with at most `limit` hits each, or of a single probe with more.

    IN counts int64[p]: hits of each probe. Small blocks are faster than large ones, too: fresh memory costs
    more than the hits that fill it.

    >>> blocks(np.array([3, 3, 9, 0, 1]), 6)
    [(0, 2), (2, 3), (3, 5)]
    """
    ends = np.cumsum(counts)
    ranges = []
    start = 0
    while start < len(counts):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + limit, side="right")))
        ranges.append((start, stop))
        start = stop
    return ranges


def fetch(index: OrderIndex, a: I32 | I64, b: I32 | I64, op_a: int, op_b: int) -> Hits:
    """The rows r with `r.a op_a probe.a` and `r.b op_b probe.b`, for any two of the six operators.

    IN a, b int[p]: half ranks of the probes in the codes of the first and of the second column. That is
    T-bar^s of algorithm 1; with symmetric operators it is T^s. The probes' values may be those of other
    columns than the index has: that is algorithm 2, Fetch+. Probes that are rows of the index meet
    themselves where both operators allow it. Hits may be a share of all pairs: count first, and fetch in
    `blocks` of probes.

    Cost: two binary searches a probe and chain (four where an operator bounds on both sides, or is `!=`),
    twice (count, then fill), and the hits.

    >>> index = build(np.array([1, 2, 3], np.int32), np.array([3, 1, 2], np.int32))
    >>> fetch(index, np.array([6, 3]), np.array([5, 3]), LT, LT)
    Hits(probes=array([0], dtype=int32), rows=array([1], dtype=int32))
    """
    question = _question(index, a, b, op_a, op_b)
    counts = _counted(index, question)
    cursor = np.cumsum(counts) - counts
    n_hits = int(counts.sum())
    hits = Hits(np.empty(n_hits, dtype=np.int32), np.empty(n_hits, dtype=np.int32))
    _fill(
        frozen(index.node_a), frozen(index.node_b), frozen(index.chain_offsets), frozen(index.node_offsets),
        frozen(index.rows), *question, cursor, *hits,
    )  # fmt: skip
    return hits


# --- One column ------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _fill_column(rows, starts, stops, hit_probes, hit_rows):  # type: ignore[no-untyped-def]
    """rows IN int32[n]; starts, stops IN int64[i, p], ranges of rows; hit_probes, hit_rows OUT int32[h]."""
    at = 0
    for p in range(starts.shape[1]):
        for i in range(starts.shape[0]):
            for r in range(starts[i, p], stops[i, p]):
                hit_probes[at] = p
                hit_rows[at] = rows[r]
                at += 1


def _column_ranges(index: ColumnIndex, probes: I32 | I64, op: int) -> tuple[I64, I64]:
    """starts, stops int64[i, p]: ranges of `index.rows`."""
    top = len(index.offsets) - 1
    intervals = _intervals(op, np.asarray(probes, dtype=np.int64))
    starts = np.stack([index.offsets[np.minimum(low, top)] for low, _ in intervals]).astype(np.int64)
    stops = np.stack([index.offsets[np.minimum(high, top)] for _, high in intervals]).astype(np.int64)
    return starts, np.maximum(starts, stops)


def count_column(index: ColumnIndex, probes: I32 | I64, op: int) -> I64:
    """How many rows `fetch_column` would give for each probe: int64[p]. Cost: two look-ups a probe."""
    starts, stops = _column_ranges(index, probes, op)
    return np.asarray((stops - starts).sum(axis=0), dtype=np.int64)


def fetch_column(index: ColumnIndex, probes: I32 | I64, op: int) -> Hits:
    """The rows r with `r op probe`, for any of the six operators. IN probes int[p]: half ranks.

    Cost: two look-ups a probe, and the hits.

    >>> index = build_column(np.array([2, 1, 0, 2], np.int32), 2)
    >>> fetch_column(index, np.array([3]), LT), count_column(index, np.array([3, 0]), NE)
    (Hits(probes=array([0], dtype=int32), rows=array([1], dtype=int32)), array([4, 3]))
    """
    starts, stops = _column_ranges(index, probes, op)
    n_hits = int((stops - starts).sum())
    hits = Hits(np.empty(n_hits, dtype=np.int32), np.empty(n_hits, dtype=np.int32))
    _fill_column(frozen(index.rows), frozen(starts), frozen(stops), *hits)
    return hits


# --- Correlation -----------------------------------------------------------------------------------------


def correlation(a: I32, b: I32, n_sample: int = SAMPLE, seed: int = 0) -> float:
    """The correlation coefficient of two columns in -1..1, on a uniform sample of the rows without NULL.

    IN a, b int32[n]: codes, 0 is NULL. Codes are ranks, so it is a rank correlation: chains, too, depend on
    the order of values alone, and an outlier does not count for more than one. 0.0 where it is not defined
    (fewer than two rows, or a column that is constant). Cost: that of the sample, and a pass for NULLs.
    """
    rows = np.flatnonzero((a != 0) & (b != 0))
    if len(rows) > n_sample:
        rows = np.random.default_rng(seed).choice(rows, n_sample, replace=False, shuffle=False)
    if len(rows) < 2:
        return 0.0
    x, y = np.asarray(a)[rows].astype(np.float64), np.asarray(b)[rows].astype(np.float64)
    x -= x.mean()
    y -= y.mean()
    scale = float(np.sqrt(x @ x) * np.sqrt(y @ y))
    return min(1.0, max(-1.0, float(x @ y) / scale)) if scale > 0 else 0.0


def warm_up() -> None:
    """Compile all kernels: call each once."""
    codes = np.array([1, 2, 0], dtype=np.int32)
    fetch(build(codes, codes), codes, codes, NE, GT)
    fetch_column(build_column(codes, 2), codes, NE)
