"""Composite inclusions looked up in rows: one job for any number of them.

A *look* asks about one inclusion: in all rows of the dependent table, or only in what a batch changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import open_segment
from holdfast.core.rows.table_state import SegmentRef
from holdfast.inclusions import tuple_tasks
from holdfast.inclusions.kernels.tuple_lookup import OPEN
from holdfast.inclusions.tuple_tasks import Finder, Opened, Rows

I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]
Payload = dict[str, Any]

# What it takes on one core to look up the tuple of a row for an inclusion, in ns.
NS_TUPLE = 80
# Of inclusions about which nothing is known few hold, and the others are refuted by a few rows.
HOLDING_SHARE = 0.05
# Rows that show that an inclusion which held does so no more.
WITNESSES = 4
# Inclusions of one task: they share translated values, so not too few.
TASK_NODES = 64


@dataclass(frozen=True)
class TableRows:
    """A table after a batch, and what the batch changed in it."""

    relation: Relation  # after: live segments
    added: tuple[SegmentRef, ...]  # inserted by this batch; all segments when the table is being tracked
    deleted: tuple[tuple[SegmentRef, I64], ...]  # positions in segments as they were before
    keys: tuple[tuple[str, ...], ...] | None  # the minimal keys; None: not tracked
    as_text: bool

    @property
    def changed(self) -> bool:
        return bool(self.added or self.deleted)

    @property
    def n_deleted(self) -> int:
        return sum(len(at) for _, at in self.deleted)


@dataclass(frozen=True, slots=True)
class Look:
    """One inclusion, by positions of columns, and whether all rows are to be looked at or the batch's."""

    dependent: str
    referenced: str
    columns: tuple[int, ...]
    partners: tuple[int, ...]  # of the referenced table, in the order of `columns`
    everything: bool

    @property
    def pairs(self) -> Iterator[tuple[int, int]]:
        return zip(self.columns, self.partners, strict=True)


def refuting_rows(tables: Mapping[str, TableRows], looks: Sequence[Look]) -> list[list[int]]:
    """For each look the ids of rows of the dependent table that miss their tuple; none where it holds.

    One job, inline where there is little to do. Cost of what a batch changed: a lookup for each added row
    of the dependent table, and for each deleted row of the referenced one. Cost of everything: the rows of
    the dependent table, unless some hundred of them refute it.
    """
    row_ids: list[list[int]] = [[] for _ in looks]
    grouped: dict[tuple[str, str, bool], list[int]] = {}
    for i, look in enumerate(looks):
        grouped.setdefault((look.dependent, look.referenced, look.everything), []).append(i)
    payloads: list[Payload] = []
    members: list[list[int]] = []
    positions: dict[tuple[str, int], dict[str, Any]] = {}
    work = 0.0
    for (dependent, referenced, everything), numbers in grouped.items():
        left, right = tables[dependent], tables[referenced]
        wanted = 1 if everything else WITNESSES
        share = HOLDING_SHARE if everything else 1.0
        nodes = [(list(looks[i].columns), list(looks[i].partners), wanted) for i in numbers]
        parts: list[tuple[Payload, int]] = []
        for ref in left.relation.segments if everything else left.added:
            if ref.n_live:
                parts.append(
                    ({"lost": False, "dependent": _side(left, [ref]), "referenced": _side(right)}, ref.n_live)
                )
        for n, (ref, at) in enumerate(() if everything else right.deleted):
            if (referenced, n) not in positions:
                positions[referenced, n] = right.relation.stage("positions", positions=at.astype(np.int64))
            sides = {"dependent": _side(left), "referenced": _side(right), "gone": _side(right, [ref])}
            parts.append(({"lost": True, "positions": positions[referenced, n], **sides}, len(at)))
        for payload, n_rows in parts:
            work += n_rows * len(numbers) * share
            for start in range(0, len(numbers), TASK_NODES):
                payloads.append(
                    {
                        "root": str(left.relation.root),
                        "nodes": nodes[start : start + TASK_NODES],
                        **payload,
                    }
                )
                members.append(numbers[start : start + TASK_NODES])
    if not payloads:
        return row_ids
    relation = tables[looks[0].dependent].relation
    results = relation.run(tuple_tasks.check_tuples, payloads, NS_TUPLE * work)
    for numbers, result in zip(members, results, strict=True):
        for node, row_id in zip(result.array("node").tolist(), result.array("row_id").tolist(), strict=True):
            row_ids[numbers[node]].append(row_id)
    # A row may miss its tuple as an added one and by a deletion.
    return [list(dict.fromkeys(ids))[:WITNESSES] for ids in row_ids]


@dataclass(frozen=True)
class MissingTuples:
    """The rows of a table whose tuples another one lacks: the first ones, oldest first, and all counted."""

    row_ids: I64
    group: I64  # the number of each row's tuple, from 1, in the order in which the rows have them
    n_rows: int
    n_tuples: int  # different ones that are missing


def missing_tuples(left: TableRows, right: TableRows, look: Look, limit: int | None) -> MissingTuples:
    """All that refutes one inclusion; `limit`: of the first rows only. One job.

    Cost: a lookup of each tuple of a chunk of rows; what is held is a row's id and tuple, and of each missing
    tuple the identities of its values.
    """
    payloads = [
        {
            "root": str(left.relation.root),
            "columns": list(look.columns),
            "partners": list(look.partners),
            "dependent": _side(left, [ref]),
            "referenced": _side(right),
            "limit": limit,
        }
        for ref in left.relation.segments
        if ref.n_live
    ]
    results = left.relation.run(tuple_tasks.orphan_tuples, payloads, NS_TUPLE * left.relation.n_rows)
    n_columns = len(look.columns)
    identities = np.concatenate(
        [np.empty((2 * n_columns, 0), np.uint64)]
        + [
            np.concatenate(
                [r.array(name).astype(np.uint64).reshape(n_columns, -1) for name in ("keys", "checks")]
            )
            for r in results
        ],
        axis=1,
    )
    tuples, number = np.unique(identities, axis=1, return_inverse=True)
    starts = np.cumsum([0, *(len(r.array("keys")) // n_columns for r in results)])
    ids = np.concatenate([np.empty(0, np.int64), *(r.array("row_ids") for r in results)])
    places = [start + r.array("tuple") for start, r in zip(starts.tolist(), results, strict=False)]
    order = np.argsort(ids)[:limit]
    tuple_of_row = number.reshape(-1)[np.concatenate([np.empty(0, np.int64), *places])[order]]
    _, first, which = np.unique(tuple_of_row, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(1, len(first) + 1)
    n_rows = sum(int(r.array("n_rows")[0]) for r in results)
    return MissingTuples(ids[order], rank[which.reshape(-1)], n_rows, tuples.shape[1])


def _side(table: TableRows, segments: Sequence[SegmentRef] | None = None) -> dict[str, Any]:
    relation = table.relation
    chosen = [s for s in relation.segments if s.n_live] if segments is None else segments
    return {
        "schema": relation.schema_text,
        "segments": [s.to_dict() for s in chosen],
        "as_text": table.as_text,
    }


def still_missing(tables: Mapping[str, TableRows], looks: Sequence[Look], row_ids: Sequence[int]) -> Bool:
    """Whether each inclusion's row is still live, and still misses its tuple after what the batch added.

    All of one pair of tables. On the driver: one row each. Cost: a binary search for each value; where all
    of a tuple's values are among the added ones, a lookup there.
    """
    left, right = tables[looks[0].dependent], tables[looks[0].referenced]
    ids = np.array(row_ids, dtype=np.int64)
    missing = np.zeros(len(looks), dtype=np.bool_)
    added = [_opened(right, ref) for ref in right.added if ref.n_live]
    for ref in left.relation.segments:
        here = _opened(left, ref)
        at = here.segment.positions(ids)
        numbers = np.flatnonzero(at >= 0)
        numbers = numbers[here.segment.live[at[numbers]]]
        if not len(numbers):
            continue
        missing[numbers] = True
        rows = Rows(here, at[numbers].astype(np.int64))
        for there in added:
            # A few pairs of columns are in many inclusions.
            pairs = {pair for n in numbers.tolist() for pair in looks[n].pairs}
            everywhere = slice(0, len(numbers))
            codes = {(c, d): rows.wanted((c,), there, (d,), everywhere)[0].tolist() for c, d in pairs}
            for i, n in enumerate(numbers.tolist()):
                if all(codes[pair][i] > 0 for pair in looks[n].pairs):
                    missing[n] &= not _has(rows, i, looks[n], there)
    return missing


def _has(rows: Rows, i: int, look: Look, there: Opened) -> bool:
    """Whether a segment, which has each value of the tuple of one row, has the tuple."""
    row_of = np.full(1, OPEN, dtype=np.int64)
    Finder(there, look.partners, 1, rows_wanted=True).find(rows, look.columns, np.array([i]), row_of, 0)
    return bool(row_of[0] >= 0)


def _opened(table: TableRows, ref: SegmentRef) -> Opened:
    return Opened(open_segment(table.relation.root, ref, table.relation.schema), table.as_text)
