"""Rows that prove that a combination is not unique, with their values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from holdfast.core.cover.news import plain_rows
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.evidence.refute import validate
from holdfast.core.rows.kernels.masks import first_container, mask_of
from holdfast.core.rows.relation import Relation
from holdfast.core.store.bundle import open_bundle
from holdfast.core.words.change import Pair, WitnessRow
from holdfast.functional.refs import KeyRef


def duplicate_pairs(rows: Relation, ref: KeyRef, positions: Sequence[int], limit: int) -> tuple[Pair, ...]:
    """Up to `limit` pairs of rows that agree on the columns; none if the combination is unique.

    Free where the evidence has a pair; else (only under a bound on the size of keys) one validation.
    """
    bundle = open_bundle(rows.root, ref.evidence, "evidence")
    wanted = mask_of(positions, rows.n_words)[None, :]
    at = int(first_container(wanted, bundle.array("masks").reshape(-1, rows.n_words))[0])
    if at >= 0:
        witnesses = bundle.array("witnesses").reshape(-1, WITNESSES, 2)[at]
    else:
        result = validate(rows, wanted)
        if not result.refuted[0]:
            return ()
        witnesses = result.witnesses[0]
    pairs = witnesses[witnesses[:, 0] >= 0][:limit]
    values = plain_rows(rows.fetch(np.asarray(pairs).reshape(-1)))
    shown = [WitnessRow(int(i), v) for i, v in zip(pairs.reshape(-1), values, strict=True)]
    return tuple((shown[i], shown[i + 1]) for i in range(0, len(shown), 2))
