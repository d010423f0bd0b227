"""Rows that prove that a combination is not unique, with their values."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from holdfast.core.cover.news import plain_rows
from holdfast.core.engine.engine import Engine
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.evidence.refute import validate
from holdfast.core.rows.kernels.masks import first_container, mask_of, n_words_for
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.table_state import TableState
from holdfast.core.store.bundle import open_bundle
from holdfast.core.store.files import STAGING
from holdfast.core.words.change import Pair, WitnessRow


def duplicate_pairs(
    root: Path, state: TableState, positions: Sequence[int], limit: int, engine: Engine
) -> tuple[Pair, ...]:
    """Up to `limit` pairs of rows that agree on the columns; none if the combination is unique.

    Free where the evidence has a pair; else (only under a bound on the size of keys) one validation.
    """
    n_words = n_words_for(len(state.schema))
    staging = f"{STAGING}/{secrets.token_hex(6)}"
    relation = Relation(
        root, staging, staging, state.schema, state.nulls, tuple(state.locator), state.segments, engine
    )
    assert state.evidence is not None
    bundle = open_bundle(root, state.evidence, "evidence")
    wanted = mask_of(positions, n_words)[None, :]
    at = int(first_container(wanted, bundle.array("masks").reshape(-1, n_words))[0])
    if at >= 0:
        witnesses = bundle.array("witnesses").reshape(-1, WITNESSES, 2)[at]
    else:
        try:
            found = validate(relation, wanted)
        finally:
            shutil.rmtree(root / staging, ignore_errors=True)
        if not found.refuted[0]:
            return ()
        witnesses = found.witnesses[0]
    pairs = witnesses[witnesses[:, 0] >= 0][:limit]
    values = plain_rows(relation.fetch(np.asarray(pairs).reshape(-1)))
    rows = [WitnessRow(int(i), v) for i, v in zip(pairs.reshape(-1), values, strict=True)]
    return tuple((rows[i], rows[i + 1]) for i in range(0, len(rows), 2))
