"""Rows that prove that a combination is not unique, with their values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.news import plain_rows
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.evidence.refute import validate
from holdfast.core.rows.kernels.masks import first_container, mask_of
from holdfast.core.rows.relation import Relation
from holdfast.core.store.bundle import open_bundle
from holdfast.core.words.change import Pair, WitnessRow
from holdfast.functional.refs import KeyRef

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


def duplicate_pairs(rows: Relation, ref: KeyRef, positions: Sequence[int], limit: int) -> tuple[Pair, ...]:
    """Up to `limit` pairs of rows that agree on the columns; none if the combination is unique.

    Free where the evidence has a pair; else (only under a bound on the size of keys) one validation.
    """
    bundle = open_bundle(rows.root, ref.evidence, "evidence")
    masks, witnesses = bundle.array("masks"), bundle.array("witnesses")
    known = known_pairs(
        rows, masks.reshape(-1, rows.n_words), witnesses.reshape(-1, WITNESSES, 2), positions, limit
    )
    if known:
        return known
    result = validate(rows, mask_of(positions, rows.n_words)[None, :])
    return _with_values(rows, result.witnesses[0][:limit]) if result.refuted[0] else ()


def known_pairs(
    rows: Relation, masks: U64, witnesses: I64, positions: Sequence[int], limit: int
) -> tuple[Pair, ...]:
    """Up to `limit` pairs of rows that agree on the columns, as far as evidence has some.

    IN masks uint64[n, n_words], witnesses int64[n, WITNESSES, 2]. Cost: a pass over the masks; the rows."""
    at = int(first_container(mask_of(positions, rows.n_words)[None, :], masks)[0])
    return _with_values(rows, witnesses[at][:limit]) if at >= 0 else ()


def _with_values(rows: Relation, witnesses: I64) -> tuple[Pair, ...]:
    pairs = witnesses[witnesses[:, 0] >= 0]
    values = plain_rows(rows.fetch(np.asarray(pairs).reshape(-1)))
    shown = [WitnessRow(int(i), v) for i, v in zip(pairs.reshape(-1), values, strict=True)]
    return tuple((shown[i], shown[i + 1]) for i in range(0, len(shown), 2))
