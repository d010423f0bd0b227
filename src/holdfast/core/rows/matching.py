"""Which row each query takes: rows of a batch that name rows of a table, each one occurrence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Matching:
    """What queries match, and take: `counts[q]` rows equal query q, of which it takes `taken[q]`; -1 is none.

    Equal queries take different rows, as long as there are any: the k-th of them the k-th row.
    """

    counts: I64
    taken: I64

    @classmethod
    def of(cls, query: I64, row_id: I64, leader: I64) -> Matching:
        """From pairs of queries and rows that are equal; `leader[q]` is the query that q's pairs stand under.

        Equal queries match the same rows and different ones none in common, so a query's smallest match names
        its group. Cost: a sort of the pairs, and one of the queries.

        >>> pairs = np.array([0, 0, 2]), np.array([7, 8, 9])
        >>> Matching.of(*pairs, np.array([0, 0, 2, 0, 4])).taken.tolist()
        [7, 8, 9, -1, -1]
        """
        n_queries = len(leader)
        if not len(query):
            return cls(np.zeros(n_queries, np.int64), np.full(n_queries, -1, np.int64))
        order = np.lexsort((row_id, query))
        query, row_id = query[order], row_id[order]
        starts = np.searchsorted(query, leader)
        counts = np.searchsorted(query, leader, side="right") - starts
        group = np.where(counts > 0, row_id[np.minimum(starts, len(row_id) - 1)], -1)
        by_group = np.argsort(group, kind="stable")
        ordered = group[by_group]
        rank = np.empty(n_queries, dtype=np.int64)
        rank[by_group] = np.arange(n_queries) - np.searchsorted(ordered, ordered)
        at = np.minimum(starts + rank, len(row_id) - 1)
        return cls(counts, np.where(rank < counts, row_id[at], -1))
