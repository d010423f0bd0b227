"""From inclusions between columns to links between tables, with a score that ranks them.

The score of an inclusion A in B says how much it looks like a join that means something:

    containment * cbrt(coverage * uniqueness * distinctive)

where containment is the share of A's values that B has, coverage the share of B's that A has, uniqueness how
nearly B is a key, and distinctive how rare A's values are. A link has the score of its best inclusion.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import frozen
from holdfast.lakes.kernels.graph_parts import root_of

I32 = NDArray[np.int32]
F32 = NDArray[np.float32]


@njit(cache=True, nogil=True)
def _linked(  # type: ignore[no-untyped-def]
    dep,
    ref,
    shared,
    dep_sizes,
    distinctive,
    dep_tables,
    ref_sizes,
    uniqueness,
    ref_tables,
    parent,
    limit,
    best,
    counts,
    touched,
    out_dep,
    out_ref,
    out_n,
    out_score,
):
    """How many links there are; they are out_*[:result]. IN dep to ref_tables: see `LinkCollector.of`.

    IN/OUT parent int32[n_tables]: trees of the tables that links join so far. best float64[n_tables], counts
    int32[n_tables], touched int32[n_tables]: scratch, by referenced table; counts are 0 before and after.
    """
    n_out = 0
    i = 0
    k = dep.shape[0]
    while i < k:
        table = dep_tables[dep[i]]
        n_touched = 0
        while i < k and dep_tables[dep[i]] == table:
            a, b = dep[i], ref[i]
            ref_table = ref_tables[b]
            if ref_table != table:
                both = np.float64(shared[i])
                contained = both / dep_sizes[a]
                cubed = contained * contained * contained * both / ref_sizes[b]
                cubed = cubed * uniqueness[b] * distinctive[a]
                if counts[ref_table] == 0:
                    touched[n_touched] = ref_table
                    n_touched += 1
                    best[ref_table] = cubed
                elif cubed > best[ref_table]:
                    best[ref_table] = cubed
                counts[ref_table] += 1
            i += 1
        least, n_ties = -1.0, n_touched  # ties with the least score, as many as there is room for
        if n_touched > limit:
            scores = np.empty(n_touched, np.float64)
            for j in range(n_touched):
                scores[j] = best[touched[j]]
            scores.sort()
            least, n_ties = scores[n_touched - limit], 0
            for j in range(n_touched - limit, n_touched):
                n_ties += scores[j] == least
        n_unlisted = 0
        for j in range(n_touched):
            ref_table = touched[j]
            strong = best[ref_table] > least
            if best[ref_table] == least and n_ties > 0:
                strong = True
                n_ties -= 1
            x, y = root_of(parent, table), root_of(parent, ref_table)
            if strong or x != y:
                parent[max(x, y)] = min(x, y)
                out_dep[n_out] = table
                out_ref[n_out] = ref_table
                out_n[n_out] = counts[ref_table]
                out_score[n_out] = best[ref_table] ** (1.0 / 3.0)
                n_out += 1
            else:
                n_unlisted += counts[ref_table]
            counts[ref_table] = 0
        if n_unlisted > 0:
            out_dep[n_out] = table
            out_ref[n_out] = table
            out_n[n_out] = n_unlisted
            out_score[n_out] = 0.0
            n_out += 1
    return n_out


class LinkCollector:
    """Collects the links of many inclusions, chunk by chunk."""

    def __init__(self, n_tables: int, limit: int) -> None:
        self._parent = np.arange(n_tables, dtype=np.int32)
        self._best = np.zeros(n_tables, dtype=np.float64)
        self._counts = np.zeros(n_tables, dtype=np.int32)
        self._touched = np.zeros(n_tables, dtype=np.int32)
        self._limit = limit

    def of(
        self,
        dep: I32,
        ref: I32,
        shared: I32,
        dep_side: tuple[I32, F32, I32],
        ref_side: tuple[I32, F32, I32],
    ) -> tuple[I32, I32, I32, F32]:
        """(dep table, ref table, inclusions, best score) of a chunk of inclusions: four arrays of one length.

        dep, ref IN `int32[k]`, sorted by dep: columns; shared IN `int32[k]`: values that both have. dep_side
        IN (sizes `int32`, distinctive `float32`, tables `int32`) of the dependent columns, ref_side (sizes,
        uniqueness, tables) of the referenced ones; tables are numbers below `n_tables`.

        Law: of a table that depends on more than `limit` others in a chunk, the strongest `limit` links are
        given and those that join tables which nothing given so far joins. So the connected components of all
        that was given are those of all inclusions. Inclusions of the others are summed up in a link of the
        table with itself, of score 0. Cost: linear in k.
        """
        k = len(dep)
        out: tuple[Any, ...] = (
            np.empty(k, np.int32),
            np.empty(k, np.int32),
            np.empty(k, np.int32),
            np.empty(k, np.float32),
        )
        n = _linked(
            *map(frozen, (dep, ref, shared, *dep_side, *ref_side)),
            self._parent,
            self._limit,
            self._best,
            self._counts,
            self._touched,
            *out,
        )
        return out[0][:n].copy(), out[1][:n].copy(), out[2][:n].copy(), out[3][:n].copy()


def warm_up() -> None:
    one, share = np.zeros(1, np.int32), np.ones(1, np.float32)
    size = np.ones(1, np.int32)
    LinkCollector(2, 1).of(one, one, size, (size, share, one), (size, share, size))
