"""Tuples of several columns: which of them occur in another table's rows.

Tuples that are looked for are `wanted` int32[k, m], k columns of m tuples in the local codes of the segment
that they are looked for in: 0 is NULL, -1 a value that the segment does not have. What is known of them is
`row_of` int64[m]: OPEN, HAS_NULL, or the position of a row that has the tuple. Tuples are compared code by
code, never by a hash.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import factorize, frozen

U64 = NDArray[np.uint64]
U32 = NDArray[np.uint32]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

OPEN = -1
HAS_NULL = -2


@njit(cache=True, nogil=True)
def _find(wanted, row_of, codes, columns, live, offsets, positions, stop):  # type: ignore[no-untyped-def]
    width = wanted.shape[0]
    n_missing = 0
    for i in range(wanted.shape[1]):
        if row_of[i] != -1:
            continue
        absent = False
        null = False
        for j in range(width):
            if wanted[j, i] == 0:
                null = True
                break
            if wanted[j, i] < 0:
                absent = True
        if null:
            row_of[i] = -2
            continue
        if not absent:
            v = wanted[0, i]
            for p in range(offsets[v], offsets[v + 1]):
                r = positions[p]
                same = True
                for j in range(1, width):
                    if codes[columns[j], r] != wanted[j, i]:
                        same = False
                        break
                if same and live[r]:
                    row_of[i] = r
                    break
        if row_of[i] == -1:
            n_missing += 1
            if n_missing == stop:
                return i + 1
    return wanted.shape[1]


def find(
    wanted: I32,
    row_of: I64,
    codes: I32,
    columns: I32,
    live: Bool,
    offsets: I32,
    positions: I32,
    stop: int = 0,
) -> int:
    """Look for the open tuples in a segment; how many tuples were looked at.

    IN wanted int32[k, m]; OUT row_of int64[m], of which the open ones are looked for; IN codes
    int32[n_columns, n], live bool[n]: the segment; IN columns int32[k]: its columns that are compared, the
    first of which the postings (`offsets`, `positions`) are of. After `stop` tuples that are not there the
    rest is left alone (0: never). Cost: the list of each tuple's first value, up to the row that has it.
    """
    return int(
        _find(
            frozen(wanted),
            row_of,
            frozen(codes),
            frozen(columns),
            frozen(live),
            frozen(offsets),
            frozen(positions),
            np.int64(stop),
        )
    )


@njit(cache=True, nogil=True)
def _mark(marks, codes, columns, sizes, live):  # type: ignore[no-untyped-def]
    for r in range(live.shape[0]):
        if not live[r]:
            continue
        cell = np.int64(0)
        null = False
        for j in range(columns.shape[0]):
            v = codes[columns[j], r]
            if v == 0:
                null = True
                break
            cell = cell * sizes[j] + (v - 1)
        if not null:
            marks[cell] = True


def mark(codes: I32, columns: I32, sizes: I64, live: Bool) -> Bool:
    """A table of all tuples that the values of some columns could form: which of them live rows have.

    IN codes int32[n_columns, n], live bool[n]; IN columns int32[k]; IN sizes int64[k]: how many values each
    of them has; their product is the size of the table. Cost: a pass over the rows.
    """
    marks = np.zeros(int(np.prod(sizes)), dtype=np.bool_)
    _mark(marks, frozen(codes), frozen(columns), frozen(sizes), frozen(live))
    return marks


@njit(cache=True, nogil=True)
def _find_marked(wanted, row_of, marks, sizes, stop):  # type: ignore[no-untyped-def]
    n_missing = 0
    for i in range(wanted.shape[1]):
        if row_of[i] != -1:
            continue
        cell = np.int64(0)
        absent = False
        null = False
        for j in range(wanted.shape[0]):
            v = wanted[j, i]
            if v == 0:
                null = True
                break
            if v < 0:
                absent = True
            cell = cell * sizes[j] + (v - 1)
        if null:
            row_of[i] = -2
        elif not absent and marks[cell]:
            row_of[i] = 0
        else:
            n_missing += 1
            if n_missing == stop:
                return i + 1
    return wanted.shape[1]


def find_marked(wanted: I32, row_of: I64, marks: Bool, sizes: I64, stop: int = 0) -> int:
    """As `find`, in the table of `mark`; which row has a tuple is not known here, so `row_of` becomes 0.

    Cost: one access a tuple. For columns of so few values that lists would be long.
    """
    return int(_find_marked(frozen(wanted), row_of, frozen(marks), frozen(sizes), np.int64(stop)))


def distinct_tuples(columns: I32) -> I64:
    """Positions of tuples, one of each: int32[k, m] of codes of 0 or more. No order is promised.

    Cost: that of `numbered_tuples`.
    """
    return numbered_tuples(columns)[0]


def numbered_tuples(columns: I32) -> tuple[I64, I64]:
    """(positions of tuples, one of each; which of these each tuple equals): of int32[k, m], codes from 0 on.

    Columns are combined two at a time and numbered anew in between, so nothing overflows. Cost: k - 1 hash
    probes a tuple.
    """
    joint = columns[0].astype(np.uint64)
    numbers = columns[0]
    for column in columns[1:]:
        size = np.uint64(int(column.max(initial=0)) + 1)
        _, numbers = factorize(joint * size + column.astype(np.uint64), None)
        joint = numbers.astype(np.uint64)
    first = np.full(int(numbers.max(initial=0)) + 1, -1, dtype=np.int64)
    first[numbers[::-1]] = np.arange(columns.shape[1] - 1, -1, -1)
    there = first >= 0
    return first[there], (np.cumsum(there) - 1)[numbers]


@njit(cache=True, nogil=True)
def _look_up(keys, checks, wanted_keys, wanted_checks, out):  # type: ignore[no-untyped-def]
    for i in range(wanted_keys.shape[0]):
        key = wanted_keys[i]
        check = wanted_checks[i]
        low = 0
        high = keys.shape[0]
        while low < high:
            middle = (low + high) >> 1
            if keys[middle] < key or (keys[middle] == key and checks[middle] < check):
                low = middle + 1
            else:
                high = middle
        out[i] = low if low < keys.shape[0] and keys[low] == key and checks[low] == check else -1


def look_up(keys: U64, checks: U32, wanted_keys: U64, wanted_checks: U32) -> I64:
    """Where each wanted identity stands among those that are sorted by (key, check); -1 for nowhere.

    IN keys uint64[n], checks uint32[n]; IN wanted_keys uint64[m], wanted_checks uint32[m].
    """
    out = np.empty(len(wanted_keys), dtype=np.int64)
    _look_up(frozen(keys), frozen(checks), frozen(wanted_keys), frozen(wanted_checks), out)
    return out


def warm_up() -> None:
    codes = np.array([[1, 2, 1], [1, 1, 2]], dtype=np.int32)
    columns, live = np.arange(2, dtype=np.int32), np.ones(3, dtype=np.bool_)
    offsets, positions = np.array([0, 0, 2, 3], np.int32), np.array([0, 2, 1], np.int32)
    find(codes, np.full(3, OPEN), codes, columns, live, offsets, positions)
    sizes = np.array([2, 2], dtype=np.int64)
    find_marked(codes, np.full(3, OPEN), mark(codes, columns, sizes, live), sizes)
    distinct_tuples(codes)
    keys, checks = np.arange(2, dtype=np.uint64), np.zeros(2, dtype=np.uint32)
    look_up(keys, checks, keys, checks)
