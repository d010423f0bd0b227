"""Links between tables, as the steps of a lake wrote them. Needs no kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.core.store.files import FileRef
from holdfast.core.store.root import Root
from holdfast.lakes.reader.pages import numbers
from holdfast.lakes.state import parquet_batches

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F32 = NDArray[np.float32]
Bool = NDArray[np.bool_]

# Rows that are held at a time.
BATCH_ROWS = 1 << 20


def live_links(root: Root, refs: Sequence[FileRef], dead: Bool) -> Iterator[tuple[I32, I32, I32, F32]]:
    """(dep, ref, n_inds, score) of links between two live tables, batch by batch.

    A link of a table with itself only counts inclusions that no link was kept for. A pair of tables may occur
    in several batches.
    """
    names = ("dep_table", "ref_table", "n_inds", "score")
    for batch in parquet_batches(root, refs, names, BATCH_ROWS):
        dep, ref, n_inds, score = (numbers(batch.column(name)) for name in names)
        live = ~dead[dep] & ~dead[ref]
        if live.any():
            yield dep[live], ref[live], n_inds[live], score[live]


def weigh(weights: I64, dep: I32, ref: I32, n_inds: I32) -> None:
    """Add the inclusions of some links: IN/OUT weights int64[2, n_tables]."""
    n = weights.shape[1]
    weights[0] += np.bincount(dep, n_inds, n).astype(np.int64)
    weights[1] += np.bincount(ref, np.where(dep != ref, n_inds, 0), n).astype(np.int64)
