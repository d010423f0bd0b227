"""Tuples in another table's rows, by definition."""

from __future__ import annotations

from collections.abc import Sequence

OPEN, HAS_NULL = -1, -2
Tuple = tuple[int, ...]


def find(wanted: Sequence[Tuple], found: Sequence[int], rows: Sequence[Tuple | None], stop: int) -> list[int]:
    """What becomes of `found`: the first row with each open tuple. Deleted rows are None; 0 is NULL.

    After `stop` tuples that are not there (0: never) the rest is left alone, and not part of the answer.

    >>> find([(1, 2), (1, 0), (2, 2), (1, 1)], [OPEN] * 4, [None, (1, 1), (1, 2), (1, 2)], 0)
    [2, -2, -1, 1]
    """
    out: list[int] = []
    for one, state in zip(wanted, found, strict=True):
        if state != OPEN:
            out.append(state)
            continue
        at = [r for r, row in enumerate(rows) if row == one]
        out.append(HAS_NULL if 0 in one else at[0] if at else OPEN)
        if stop and sum(new == old == OPEN for new, old in zip(out, found, strict=False)) == stop:
            break
    return out


def look_up(identities: Sequence[tuple[int, int]], wanted: Sequence[tuple[int, int]]) -> list[int]:
    return [identities.index(one) if one in identities else -1 for one in wanted]
