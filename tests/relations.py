"""What a relation has, read at once: for tables that are small; and what is kept of it, as it is on disk."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast import Workspace
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import open_segment
from holdfast.kind import load


def live_ids(relation: Relation) -> NDArray[np.int64]:
    """The ids of the live rows, segment after segment."""
    opened = [open_segment(relation.root, ref, relation.schema) for ref in relation.segments if ref.n_live]
    ids = [segment.row_ids(np.flatnonzero(segment.live)) for segment in opened]
    return np.concatenate([np.empty(0, np.int64), *ids])


def live_rows(relation: Relation) -> pa.Table:
    """The live rows, segment after segment."""
    return relation.fetch(live_ids(relation))


def check_evidence(ws: Workspace, table: str) -> None:
    """The evidence that the next process reads is that of this one, and no row that is gone proves any."""
    state = ws.writer.tables.state(table)
    known, read = ws._committer.findings(state), load(ws.root, state)
    assert known.keys() == read.keys()
    ids = live_ids(ws.writer.tables.rows(state))
    for kind, findings in known.items():
        if hasattr(findings, "evidence"):
            there = _by_mask(read[kind].evidence)
            assert there == _by_mask(findings.evidence), kind
            witnesses = getattr(findings.evidence, "witnesses", np.empty((0, 1, 2), np.int64))
            assert (witnesses[:, 0] >= 0).all(), kind
            assert np.isin(witnesses[witnesses >= 0], ids).all(), kind


def _by_mask(evidence: Any) -> dict[tuple[int, ...], Any]:
    told = evidence.witnesses if hasattr(evidence, "witnesses") else evidence.counts
    masks = list(map(tuple, evidence.masks.tolist()))
    assert len(set(masks)) == len(masks)
    return dict(zip(masks, told.tolist(), strict=True))
