"""Rows that equal given ones, found by their hashes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import frozen

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]


@njit(cache=True, nogil=True)
def _locate(hashes, order, wanted, codes, live, translated, columns):  # type: ignore[no-untyped-def]
    """(queries, rows), int64[*] each, in the order of the queries; see `locate`."""
    queries = np.empty(64, dtype=np.int64)
    rows = np.empty(64, dtype=np.int64)
    n = 0
    for q in range(wanted.shape[0]):
        h = wanted[q]
        low = 0
        high = hashes.shape[0]
        while low < high:
            middle = (low + high) >> 1
            if hashes[middle] < h:
                low = middle + 1
            else:
                high = middle
        while low < hashes.shape[0] and hashes[low] == h:
            r = order[low]
            low += 1
            if not live[r]:
                continue
            same = True
            for j in range(columns.shape[0]):
                c = columns[j]
                if codes[c, r] != translated[c, q]:
                    same = False
                    break
            if not same:
                continue
            if n == rows.shape[0]:
                more_queries = np.empty(2 * n, dtype=np.int64)
                more_queries[:n] = queries
                queries = more_queries
                more_rows = np.empty(2 * n, dtype=np.int64)
                more_rows[:n] = rows
                rows = more_rows
            queries[n] = q
            rows[n] = r
            n += 1
    return queries[:n].copy(), rows[:n].copy()


def locate(
    hashes: U64, order: I32, wanted: U64, codes: I32, live: Bool, translated: I32, columns: I32
) -> tuple[I64, I64]:
    """(query, row): all live rows that equal a query on the given columns.

    IN hashes uint64[n] sorted, order int32[n]: the row hashes of a segment and whose they are; IN
    wanted uint64[q]: the hashes of the queries; IN codes int32[n_columns, n]; IN live bool[n]; IN
    translated int32[n_columns, q]: the queries in the codes of the segment; IN columns int32[*].
    Cost: a binary search a query, and a comparison for each equal hash.
    """
    return _locate(  # type: ignore[no-any-return]
        frozen(hashes), frozen(order), frozen(wanted), frozen(codes), frozen(live), frozen(translated),
        frozen(columns),
    )  # fmt: skip


def warm_up() -> None:
    """Call every kernel once, so that the cache on disk holds them all."""
    codes = np.array([[1, 1, 2], [0, 0, 1]], dtype=np.int32)
    live, hashes = np.ones(3, dtype=np.bool_), np.zeros(3, dtype=np.uint64)
    locate(hashes, np.arange(3, dtype=np.int32), hashes, codes, live, codes, np.zeros(1, np.int32))
