"""The fewest rows without which no pair of rows violates a rule: a minimum vertex cover of the pairs.

To find one is NP-hard in general, so what is small is solved, and what is not is bounded from both sides:

1. A row that is in one pair only: its partner goes, which is never worse. Over and over, all of them at once.
2. What is left falls into parts that share no pair. Small ones are solved by branching: either a row goes,
   or all of its partners do.
3. Of a larger part rows with more pairs than any partner go, until no pair is left, then those stay after all
   whose partners all go. Pairs without a row in common, as many as are met, are a lower bound: of each of
   them one row goes.

Cost: passes over the pairs, a few dozen at most; branching ends after MAX_STEPS.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

# Rows of a part that is solved, and the steps that all parts may take together.
SMALL, MAX_STEPS = 64, 50_000
# Passes of one sort at most; what is left then is decided more coarsely.
MAX_PASSES = 200


def fewest_rows(pairs: I64, n_rows: int) -> tuple[Bool, int]:
    """(which rows to remove, how many must go at least): equal numbers where the first are the fewest.

    IN pairs int64[n, 2] of numbers below n_rows, no row with itself; each may be there in both directions.

    >>> fewest_rows(np.array([[0, 1], [1, 0], [1, 2]]), 3)
    (array([False,  True, False]), 1)
    """
    removed = np.zeros(n_rows, dtype=np.bool_)
    low, high = pairs.min(axis=1, initial=n_rows), pairs.max(axis=1, initial=0)
    codes = np.unique(low * max(1, n_rows) + high)
    edges = np.stack([codes // max(1, n_rows), codes % max(1, n_rows)], axis=1)
    edges = _without_leaves(edges, removed)
    at_least = int(removed.sum())
    if not len(edges):
        return removed, at_least
    part = _parts(edges, n_rows)
    of_edge = part[edges[:, 0]]
    sizes = np.bincount(part[np.unique(edges)], minlength=n_rows)
    small = sizes[of_edge] <= SMALL
    order = np.argsort(of_edge[small], kind="stable")
    solvable = edges[small][order]
    cuts = np.flatnonzero(np.diff(of_edge[small][order])) + 1
    rest = [edges[~small]]
    steps = MAX_STEPS
    for component in np.split(solvable, cuts) if len(solvable) else []:
        cover, steps = _solved(component, steps)
        if cover is None:
            rest.append(component)
        else:
            removed[cover] = True
            at_least += len(cover)
    large = np.concatenate(rest)
    if len(large):
        removed |= _greedy(large, n_rows)
        at_least += _n_apart(large, n_rows)
    return removed, at_least


def _degrees(edges: I64, n_rows: int) -> I64:
    return np.bincount(edges.reshape(-1), minlength=n_rows)


def _without_leaves(edges: I64, removed: Bool) -> I64:
    """The pairs that are left when partners of rows with one pair are removed. OUT removed bool[n]."""
    for _ in range(MAX_PASSES):
        alone = _degrees(edges, len(removed))[edges] == 1
        leaf = alone.any(axis=1)
        if not leaf.any():
            break
        # Of a pair of two such rows the first one goes.
        removed[np.where(alone[leaf, 1], edges[leaf, 0], edges[leaf, 1])] = True
        edges = edges[~removed[edges].any(axis=1)]
    return edges


def _parts(edges: I64, n_rows: int) -> I64:
    """For each row the lowest row that it is connected with: int64[n]."""
    label = np.arange(n_rows)
    while True:
        lowest = label.copy()
        ends = label[edges]
        np.minimum.at(lowest, ends.max(axis=1), ends.min(axis=1))
        while not np.array_equal(shorter := lowest[lowest], lowest):
            lowest = shorter
        merged = lowest[label]
        if np.array_equal(merged, label):
            return label
        label = merged


def _solved(edges: I64, steps: int) -> tuple[I64 | None, int]:
    """(the fewest rows of a small part, or None if the steps do not suffice; the steps that are left)."""
    rows, places = np.unique(edges, return_inverse=True)
    partners = [0] * len(rows)
    for a, b in places.reshape(-1, 2).tolist():
        partners[a] |= 1 << b
        partners[b] |= 1 << a
    best = (1 << len(rows)) - 1
    waiting = [(best, 0)]  # rows that are not decided, rows that go
    while waiting:
        if steps <= 0:
            return None, 0
        steps -= 1
        open_rows, gone = waiting.pop()
        widest, most, n_pairs = -1, 0, 0
        some = open_rows
        while some:
            row = (some & -some).bit_length() - 1
            some &= some - 1
            degree = (partners[row] & open_rows).bit_count()
            n_pairs += degree
            if degree > most:
                widest, most = row, degree
        # A row that goes takes `most` pairs with it at most.
        needed = -(-n_pairs // (2 * most)) if most else 0
        if gone.bit_count() + needed >= best.bit_count():
            continue
        if not most:
            best = gone
            continue
        others = partners[widest] & open_rows
        waiting.append((open_rows & ~others & ~(1 << widest), gone | others))
        waiting.append((open_rows & ~(1 << widest), gone | 1 << widest))
    chosen = [i for i in range(len(rows)) if best >> i & 1]
    return rows[chosen], steps


def _shuffled(n: int) -> I64:
    """An order of the rows, always the same, by which equals are told apart."""
    return np.random.default_rng(0).permutation(n)


def _greedy(edges: I64, n_rows: int) -> Bool:
    """Rows of which every pair has one, and none is needless."""
    removed, every, turn = np.zeros(n_rows, dtype=np.bool_), edges, _shuffled(n_rows)
    for _ in range(MAX_PASSES):
        if not len(edges):
            break
        rank = _degrees(edges, n_rows) * n_rows + turn
        beaten = np.zeros(n_rows, dtype=np.bool_)
        beaten[np.where(rank[edges[:, 0]] < rank[edges[:, 1]], edges[:, 0], edges[:, 1])] = True
        there = np.zeros(n_rows, dtype=np.bool_)
        there[edges] = True
        removed |= there & ~beaten
        edges = edges[~removed[edges].any(axis=1)]
    removed[edges] = True
    return _needed(every, removed, turn)


def _needed(edges: I64, removed: Bool, turn: I64) -> Bool:
    """Without rows all partners of which go: those first that come first of their partners."""
    for _ in range(MAX_PASSES):
        only = np.zeros(len(removed), dtype=np.bool_)  # rows that a partner which stays cannot do without
        for a, b in ((0, 1), (1, 0)):
            only[edges[~removed[edges[:, b]], a]] = True
        needless = removed & ~only
        if not needless.any():
            break
        later = needless[edges].all(axis=1)
        wait = np.where(turn[edges[later, 0]] > turn[edges[later, 1]], edges[later, 0], edges[later, 1])
        needless[wait] = False
        removed = removed & ~needless
    return removed


def _n_apart(edges: I64, n_rows: int) -> int:
    """How many pairs without a row in common there are, as far as passes over the pairs show."""
    n, turn = 0, _shuffled(len(edges))
    for _ in range(MAX_PASSES):
        if not len(edges):
            break
        first = np.full(n_rows, np.iinfo(np.int64).max)
        for side in (0, 1):
            np.minimum.at(first, edges[:, side], turn)
        taken = (first[edges[:, 0]] == turn) & (first[edges[:, 1]] == turn)
        n += int(taken.sum())
        used = np.zeros(n_rows, dtype=np.bool_)
        used[edges[taken]] = True
        rest = ~used[edges].any(axis=1)
        edges, turn = edges[rest], turn[rest]
    return n
