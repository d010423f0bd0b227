"""What a batch costs less: to be looked up in the indexes, or to have all rows looked at once more.

Probing walks pairs of rows: for each row of the batch a list of an index. Validating looks at all rows once
for each pivot, whatever the number of candidates that share it. So candidates are weighed pivot by pivot, and
a batch never costs much more than finding anew does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.refute import pivots_of
from holdfast.core.rows.kernels.masks import popcounts
from holdfast.core.rows.relation import Relation
from holdfast.core.words.column_sets import bits_of

U64 = NDArray[np.uint64]
Bool = NDArray[np.bool_]

# So few pairs are walked anyway: a job more takes as long.
PROBED_ALWAYS = 500_000


def selective(
    relation: Relation, candidates: U64, index_columns: Sequence[int], n_batch: int, pairs_per_row: float
) -> Bool:
    """Which candidates to probe a batch of so many rows for: bool[n]. The empty one, and one without an
    index, never are.

    `pairs_per_row`: how many pairs are walked in the time that validating takes to look at a row for a pivot,
    and for what comes to light by it. Cost: the columns of the candidates.
    """
    distinct = relation.distinct()
    lengths = np.array([relation.n_rows / max(1, distinct[c]) for c in index_columns])
    lists = np.where(bits_of(candidates, len(distinct))[:, list(index_columns)], lengths, np.inf)
    indexed: Bool = np.asarray(np.isfinite(lists).any(axis=1))
    # Of a single column one old row of each value answers, however many there are.
    single = popcounts(candidates) == 1
    listed = indexed & ~single
    if not listed.any():
        return indexed
    pivots = pivots_of(candidates, relation.ranking())
    # Each index that serves candidates of a pivot is walked once for all of them.
    served = np.unique(np.stack([pivots[listed], lists[listed].argmin(axis=1)]), axis=1)
    walked = np.zeros(len(distinct))
    np.add.at(walked, served[0], n_batch * lengths[served[1]])
    if walked.sum() <= PROBED_ALWAYS:
        return indexed
    chosen: Bool = indexed & (single | (walked[pivots] <= pairs_per_row * relation.n_rows))
    return chosen
