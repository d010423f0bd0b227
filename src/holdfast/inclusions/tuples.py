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
from holdfast.core.rows.table_state import SegmentRef
from holdfast.core.store.bundle import unpack
from holdfast.inclusions import tuple_tasks

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
    sides = _Sides()
    work = 0.0
    for (dependent, referenced, everything), numbers in grouped.items():
        left, right = tables[dependent], tables[referenced]
        wanted = 1 if everything else WITNESSES
        share = HOLDING_SHARE if everything else 1.0
        nodes = [(list(looks[i].columns), list(looks[i].partners), wanted) for i in numbers]
        starts = range(0, len(numbers), TASK_NODES)
        of_tasks = [(nodes[i : i + TASK_NODES], numbers[i : i + TASK_NODES]) for i in starts]
        parts: list[tuple[Payload, int]] = []
        for ref in left.relation.segments if everything else left.added:
            if ref.n_live:
                both = {"dependent": sides.of(left, ref), "referenced": sides.of(right)}
                parts.append(({"lost": False, **both}, ref.n_live))
        for n, (ref, at) in enumerate(() if everything else right.deleted):
            if (referenced, n) not in positions:
                positions[referenced, n] = right.relation.stage("positions", positions=at.astype(np.int64))
            both = {"dependent": sides.of(left), "referenced": sides.of(right)}
            gone = {"positions": positions[referenced, n], "gone": sides.of(right, ref)}
            parts.append(({"lost": True, **both, **gone}, len(at)))
        for payload, n_rows in parts:
            work += n_rows * len(numbers) * share
            for some, asked in of_tasks:
                payloads.append({"root": str(left.relation.root), "nodes": some, **payload})
                members.append(asked)
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
    sides = _Sides()
    payloads = [
        {
            "root": str(left.relation.root),
            "columns": list(look.columns),
            "partners": list(look.partners),
            "dependent": sides.of(left, ref),
            "referenced": sides.of(right),
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


def _side(table: TableRows, segments: Sequence[SegmentRef]) -> dict[str, Any]:
    return {
        "schema": table.relation.schema_text,
        "segments": [s.to_dict() for s in segments],
        "as_text": table.as_text,
    }


class _Sides:
    """What the payloads of one job say of tables, and of segments of these: the very same object for all of
    them, so that the job writes each once, however many segments are compared with it."""

    def __init__(self) -> None:
        self._sides: dict[tuple[int, SegmentRef | None], dict[str, Any]] = {}

    def of(self, table: TableRows, segment: SegmentRef | None = None) -> dict[str, Any]:
        """One segment of a table, or all that have live rows. The tables outlive the job."""
        side = self._sides.get((id(table), segment))
        if side is None:
            live = [s for s in table.relation.segments if s.n_live]
            side = self._sides[id(table), segment] = _side(table, live if segment is None else [segment])
        return side


def still_missing(tables: Mapping[str, TableRows], looks: Sequence[Look], row_ids: Sequence[int]) -> Bool:
    """Whether each inclusion's row is still live, and still misses its tuple after what the batch added.

    All of one pair of tables. One row each: on the driver, or by one task of Spark where the rows are far.
    Cost: a binary search for each value; where all of a tuple's values are among the added ones, a lookup
    there.
    """
    left, right = tables[looks[0].dependent], tables[looks[0].referenced]
    concerned = left.relation.that_may_have(np.array(row_ids, dtype=np.int64))
    payload = {
        "root": str(left.relation.root),
        "nodes": [(list(look.columns), list(look.partners)) for look in looks],
        "row_ids": list(row_ids),
        "dependent": _side(left, concerned),
        "referenced": _side(right, [ref for ref in right.added if ref.n_live]),
    }
    [result] = left.relation.look(tuple_tasks.check_known, [payload], concerned)
    return unpack(result).array("missing").astype(np.bool_)
