"""Which columns to index: SWAN's algorithms 3 and 4, and a third step.

Every minimal unique must contain an indexed column, so that a batch row finds each old row that it
could clash with by looking up posting lists. Algorithm 3 covers the keys greedily by the most
frequent column. Algorithm 4 spends the rest of a quota on columns that let lookups intersect:
for an index column C, a set of further columns that covers all keys in which C is the only one.

Both count how often columns occur in keys, trusting that frequent columns are selective. On
lineitem they are not: `tax` and `shipmode` cover many keys and have nine and seven values. An
index costs little here (four bytes a row), a long list costs every batch, so a third step gives
each key a list that is nearly as short as its columns allow. On 100,000 rows of lineitem that cut
the entries walked for a batch of 1,000 rows from 11.8 million to 0.5 million.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from holdfast.core.rows.kernels.masks import mask_of, n_words_for, popcounts, positions_of
from holdfast.core.words.column_sets import bits_of

U64 = NDArray[np.uint64]

# A posting list is short with so many rows, or with so many times the rows of the best one.
SHORT_LIST = 16
NEARLY_BEST = 4
# Algorithm 4 tries all sets of index columns; beyond this many it only tries the least selective ones.
MAX_COMBINED = 10


def columns_for(probed: U64, distinct: Sequence[int], n_rows: int, current: Sequence[int]) -> Sequence[int]:
    """The columns to index now: the current ones while they cover every key, else chosen anew.

    `probed` are the keys, and the left-hand sides of functional dependencies that are probed like them.
    Keys only grow under inserts, so their indexes stay good; deletes can shrink a key past its
    indexed columns (SWAN III-D).
    """
    keys = probed[probed.any(axis=1)]
    if not len(keys) or (current and (keys & mask_of(current, keys.shape[1])).any(axis=1).all()):
        return current
    return choose_index_columns(keys, distinct, n_rows)


def choose_index_columns(
    keys: U64, distinct: Sequence[int], n_rows: int, quota: int | None = None
) -> list[int]:
    """The columns to index, ascending. `distinct` counts the values of each column.

    The quota bounds what algorithm 4 adds, never what algorithm 3 needs; by default it is half of
    the columns, and 20 at most (as in the paper's experiments).
    """
    n_columns = len(distinct)
    # A key of one column that no other key has leaves no choice. Wide tables have thousands of them.
    single = popcounts(keys) == 1
    shared = np.bitwise_or.reduce(keys[~single], axis=0)
    alone = single & ~(keys & shared).any(axis=1)
    needed = positions_of(np.bitwise_or.reduce(keys[alone], axis=0))
    keys = keys[~alone]
    if not len(keys):
        return list(needed)
    cover = covering_columns(keys, distinct)
    n_needed = len(needed)
    limit = max(n_needed + len(cover), min(n_columns // 2, 20) if quota is None else quota) - n_needed
    chosen = {*cover, *additional_columns(keys, cover, distinct, n_rows, limit)}
    return sorted({*needed, *chosen, *selective_columns(keys, sorted(chosen), distinct, n_rows)})


def covering_columns(keys: U64, distinct: Sequence[int]) -> list[int]:
    """Algorithm 3: columns that hit every key, most frequent first; ties go to the more selective."""
    n_columns = len(distinct)
    member = _membership(keys, n_columns)
    chosen: list[int] = []
    while len(member):
        frequency = member.sum(axis=0)
        best = max(range(n_columns), key=lambda c: (frequency[c], distinct[c], -c))
        chosen.append(best)
        member = member[~member[:, best]]
    return chosen


def additional_columns(
    keys: U64, cover: Sequence[int], distinct: Sequence[int], n_rows: int, quota: int
) -> list[int]:
    """Algorithm 4: more columns under the quota, so that lookups on unselective indexes shrink."""
    n_words = n_words_for(len(distinct))
    indexed = mask_of(cover, n_words)
    helping: dict[int, frozenset[int]] = {}
    for c in cover:
        alone = mask_of([c], n_words)
        only = keys[((keys & indexed) == alone).all(axis=1)] & ~alone
        only = only[only.any(axis=1)]  # a key of C alone needs no help
        columns = frozenset(covering_columns(only, distinct))
        if columns and len(cover) + len(columns) <= quota:
            helping[c] = columns
    selectivity = {c: distinct[c] / max(1, n_rows) for c in helping}
    least = sorted(helping, key=lambda c: selectivity[c])[:MAX_COMBINED]
    solutions: list[tuple[frozenset[int], frozenset[int]]] = []
    for size in range(len(least), 0, -1):
        for combination in combinations(least, size):
            columns = frozenset().union(*(helping[c] for c in combination))
            if len(columns | set(cover)) > quota:
                continue
            helped = frozenset(combination)
            if not any(helped < larger for larger, _ in solutions):  # line 12: redundant ones go
                solutions.append((helped, columns))
    if not solutions:
        return []

    def joint_selectivity(solution: tuple[frozenset[int], frozenset[int]]) -> float:
        return 1 - prod(1 - selectivity[c] for c in solution[0])

    return sorted(min(solutions, key=joint_selectivity)[1])


def selective_columns(keys: U64, indexed: Sequence[int], distinct: Sequence[int], n_rows: int) -> list[int]:
    """The third step: columns that give every key a list nearly as short as its columns allow.

    A list of column C has n_rows / distinct[C] entries on average. Keys that lack a short one vote
    for their most selective column; the column with most votes is taken until none is left.
    """
    member = _membership(keys, len(distinct))
    length = np.array([n_rows / max(1, d) for d in distinct])
    key_lengths = np.where(member, length, np.inf)
    best = key_lengths.min(axis=1, initial=np.inf)
    chosen: list[int] = []
    while True:
        have = key_lengths[:, [*indexed, *chosen]].min(axis=1, initial=np.inf)
        lacking = have > np.maximum(SHORT_LIST, NEARLY_BEST * best)
        if not lacking.any():
            return sorted(chosen)
        votes = np.bincount(key_lengths[lacking].argmin(axis=1), minlength=len(distinct))
        chosen.append(int(votes.argmax()))


def _membership(keys: U64, n_columns: int) -> NDArray[np.bool_]:
    """bool[n_keys, n_columns]; the empty key has no column to index and is left out."""
    member = bits_of(keys, n_columns)
    return member[member.any(axis=1)]
