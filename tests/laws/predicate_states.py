"""Evidence and cover of denial constraints for the laws, changed as `denial/dc_witnessed.py` does it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import permutations
from typing import Any

import numpy as np

from holdfast.core.evidence.dc_evidence import DcEvidence
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.words.predicate import Group, PredicateSpace
from holdfast.denial.dc_cover import DcCover
from holdfast.denial.dc_state import kernel_space, n_words_of
from reference.keys import Row

Rows = Mapping[int, Row]
Found = dict[int, list[tuple[int, int]]]  # evidence -> ordered pairs


@lru_cache
def space_of(n_columns: int) -> PredicateSpace:
    """Each column with itself, every second one by order; the first two with each other."""
    groups = [Group(f"c{i}", f"c{i}", ordered=i % 2 == 0) for i in range(n_columns)]
    if n_columns > 1:
        groups += [Group("c0", "c1", ordered=False), Group("c1", "c0", ordered=False)]
    return PredicateSpace(tuple(groups))


def _key(cell: Any) -> tuple[str, Any]:
    return type(cell).__name__, cell


def _outcome(t: Any, s: Any, ordered: bool) -> int:
    if (t is None) != (s is None):
        return 3
    if t is None or _key(t) == _key(s):
        return 1
    return (0 if _key(t) < _key(s) else 2) if ordered else 0


def pairs_of(rows: Rows, n_columns: int) -> Found:
    """The evidence of all ordered pairs of rows."""
    space = space_of(n_columns)
    found: Found = {}
    for a, b in permutations(sorted(rows), 2):
        outcomes = [
            _outcome(rows[a][int(g.left[1:])], rows[b][int(g.right[1:])], g.ordered) for g in space.groups
        ]
        found.setdefault(space.evidence(outcomes), []).append((a, b))
    return found


def _masks(found: Mapping[int, Any], n_columns: int) -> np.ndarray:
    n_words = n_words_of(space_of(n_columns))
    words = [[(m >> 64 * w) & (2**64 - 1) for w in range(n_words)] for m in found]
    return np.array(words, dtype=np.uint64).reshape(len(found), n_words)


def _arrays(found: Found, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    witnesses = np.full((len(found), WITNESSES, 2), -1, dtype=np.int64)
    for i, pairs in enumerate(found.values()):
        for j, pair in enumerate(pairs[:WITNESSES]):
            witnesses[i, j] = pair
    return _masks(found, n_columns), witnesses


def evidence(rows: Rows, n_columns: int, nulls: str) -> DcEvidence:
    empty = DcEvidence.empty(n_words_of(space_of(n_columns)), WITNESSES)
    return empty.merged(*_arrays(pairs_of(rows, n_columns), n_columns))


def evidence_grown(state: DcEvidence, old: Rows, new: Rows, n_columns: int, nulls: str) -> DcEvidence:
    """s(R + D) = s(R) + cross(R, D) + s(D)."""
    every = pairs_of({**old, **new}, n_columns)
    fresh = {m: [p for p in pairs if p[0] in new or p[1] in new] for m, pairs in every.items()}
    return state.merged(*_arrays({m: pairs for m, pairs in fresh.items() if pairs}, n_columns))


def evidence_shrunk(state: DcEvidence, left: Rows, gone: Rows, n_columns: int, nulls: str) -> DcEvidence:
    """Dead witnesses go; what has none left is looked up again."""
    after, orphans = state.without_rows(np.array(sorted(gone), dtype=np.int64))
    lost = meaning(orphans)
    again = {m: pairs for m, pairs in pairs_of(left, n_columns).items() if m in lost}
    return after.merged(*_arrays(again, n_columns))


def meaning(state: DcEvidence | DcCover) -> set[int]:
    found = [sum(int(w) << 64 * i for i, w in enumerate(mask)) for mask in state.masks]
    assert len(found) == len(set(found)), "masks are all different"
    return set(found)


def cover(rows: Rows, n_columns: int, nulls: str) -> DcCover:
    return DcCover.of(_masks(pairs_of(rows, n_columns), n_columns), kernel_space(space_of(n_columns)))


def cover_changed(state: DcCover, before: Rows, after: Rows, n_columns: int) -> DcCover:
    was, now = pairs_of(before, n_columns), pairs_of(after, n_columns)
    came = {m: 0 for m in now if m not in was}
    went = {m: 0 for m in was if m not in now}
    return state.repaired(*(_masks(part, n_columns) for part in (now, came, went)))
