"""Every type of state, and how to grow and shrink it: what the laws are run over.

A new state type registers here, and `test_delta_law.py` holds it to its law. `small` rows are tuples;
a row's id is its place in the list of all rows ever, so a pair of ids names two rows for good.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from holdfast.kernels.masks import mask_of, maximal_masks, n_words_for, positions_of
from holdfast.kernels.pairs import WITNESSES
from holdfast.state.cover import Cover
from holdfast.state.evidence import WitnessedEvidence
from reference.keys import Combination, Row, agree_set

Rows = Mapping[int, Row]  # row id -> row
Pairs = dict[Combination, list[tuple[int, int]]]


def pairs_of(rows: Rows, nulls: str, among: Callable[[int, int], bool] = lambda a, b: True) -> Pairs:
    """The agree sets of some pairs of rows, with the pairs."""
    found: Pairs = {}
    for a, b in combinations(sorted(rows), 2):
        if among(a, b):
            found.setdefault(agree_set(rows[a], rows[b], nulls), []).append((a, b))
    return found


def arrays_of(pairs: Pairs, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """(masks, witnesses) as the kernels give them; at most WITNESSES pairs per mask."""
    n_words = n_words_for(n_columns)
    masks = np.array([mask_of(s, n_words) for s in pairs], dtype=np.uint64).reshape(len(pairs), n_words)
    witnesses = np.full((len(pairs), WITNESSES, 2), -1, dtype=np.int64)
    for i, known in enumerate(pairs.values()):
        for j, pair in enumerate(known[:WITNESSES]):
            witnesses[i, j] = pair
    return masks, witnesses


def sets_of(masks: np.ndarray) -> set[Combination]:
    found = [frozenset(positions_of(m)) for m in masks]
    assert len(found) == len(set(found)), "masks are all different"
    return set(found)


@dataclass(frozen=True)
class StateType:
    """A type of state: how it is computed from rows, and repaired when rows come or go.

    `meaning` is what must be equal, however the state was reached.
    """

    kind: str  # linear, quadratic or derived
    type: type
    scratch: Callable[[Rows, int, str], Any]
    grown: Callable[[Any, Rows, Rows, int, str], Any]  # state, old rows, new rows
    shrunk: Callable[[Any, Rows, Rows, int, str], Any]  # state, rows left, rows gone
    meaning: Callable[[Any], Any]


def _evidence(rows: Rows, n_columns: int, nulls: str) -> WitnessedEvidence:
    empty = WitnessedEvidence.empty(n_words_for(n_columns), WITNESSES)
    return empty.merged(*arrays_of(pairs_of(rows, nulls), n_columns))


def _evidence_grown(
    state: WitnessedEvidence, old: Rows, new: Rows, n_columns: int, nulls: str
) -> WitnessedEvidence:
    """s(R + D) = s(R) + cross(R, D) + s(D)."""
    cross = pairs_of({**old, **new}, nulls, lambda a, b: (a in old) != (b in old))
    own = pairs_of(new, nulls)
    return state.merged(*arrays_of(cross, n_columns)).merged(*arrays_of(own, n_columns))


def _evidence_shrunk(
    state: WitnessedEvidence, left: Rows, gone: Rows, n_columns: int, nulls: str
) -> WitnessedEvidence:
    """Dead witnesses go; what has none left is looked up again, as `discovery/keys.py` does."""
    after, _ = state.without_rows(np.array(sorted(gone), dtype=np.int64))
    known = sets_of(state.masks)
    again = {s: p for s, p in pairs_of(left, nulls).items() if s in known}
    return after.merged(*arrays_of(again, n_columns))


def _cover(rows: Rows, n_columns: int, nulls: str) -> Cover:
    return Cover.of(arrays_of(pairs_of(rows, nulls), n_columns)[0], n_columns)


def _cover_grown(state: Cover, old: Rows, new: Rows, n_columns: int, nulls: str) -> Cover:
    everything = {**old, **new}
    added = pairs_of(everything, nulls, lambda a, b: not (a in old and b in old))
    return state.repaired(
        arrays_of(added, n_columns)[0], arrays_of(pairs_of(everything, nulls), n_columns)[0]
    )


def _cover_shrunk(state: Cover, left: Rows, gone: Rows, n_columns: int, nulls: str) -> Cover:
    rest = pairs_of(left, nulls)
    removed = {s: p for s, p in pairs_of({**left, **gone}, nulls).items() if s not in rest}
    return state.relaxed(arrays_of(removed, n_columns)[0], arrays_of(rest, n_columns)[0])


STATES = [
    StateType(
        "quadratic",
        WitnessedEvidence,
        _evidence,
        _evidence_grown,
        _evidence_shrunk,
        lambda state: sets_of(state.masks[maximal_masks(state.masks)]),
    ),
    StateType("derived", Cover, _cover, _cover_grown, _cover_shrunk, lambda state: sets_of(state.masks)),
]
