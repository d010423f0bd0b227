"""What the groups of dependencies X -> A say of single rows: a vote of each for the value that most have.

A group votes for the value that two thirds of its rows have, and at least two rows, in all of its rows: one
that is divided has nothing to say. NULL is no value to learn from: rows with NULL in X are in no group, and
those with NULL in A do not count.

Two jobs: one finds the rows that some dependency contradicts; one asks all of them about these rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.group_rows import classes_of
from holdfast.core.evidence.group_tasks import Part, SegmentPart, walked
from holdfast.core.evidence.groups import run_many
from holdfast.core.evidence.kernels import group_counts as kernel
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.tasks import Payload
from holdfast.core.store.bundle import pack

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Votes:
    """One entry for each row and dependency that has a vote on it."""

    dependency: I64  # its number
    row_ids: I64
    differs: I64  # whether the row has another value
    value: I64  # which one is voted for: equal values of a column have equal ones
    carrier: I64  # a row that has it
    n_for: I64  # rows of the group that have it
    n_rows: I64  # of the group that have a value


def votes_on_doubtful(relation: Relation, lhs: U64, rhs: I64) -> Votes:
    """The votes of dependencies lhs[i] -> rhs[i] on the cells that at least one of them contradicts.

    Cost: two passes over the rows for each dependency, and what is doubtful on the driver.
    """
    relation = replace(relation, nulls="distinct")
    against = _voted(relation, lhs, rhs, None)
    column = rhs[against.dependency]
    doubtful = [[int(c), np.unique(against.row_ids[column == c]).tolist()] for c in np.unique(column)]
    return _voted(relation, lhs, rhs, doubtful) if doubtful else against


def _voted(relation: Relation, lhs: U64, rhs: I64, among: Sequence[Sequence[object]] | None) -> Votes:
    results = run_many(relation, votes_part, lhs, rhs, among=among)
    arrays: dict[str, list[I64]] = {f.name: [np.empty(0, np.int64)] for f in fields(Votes)}
    for numbers, result in results:
        for name, parts in arrays.items():
            array = result.array(name)
            parts.append(np.array(numbers, dtype=np.int64)[array] if name == "dependency" else array)
    return Votes(**{name: np.concatenate(parts) for name, parts in arrays.items()})


def votes_part(payload: Payload, received: Part | None = None) -> bytes:
    """The votes of some dependencies on rows of a part: on those that `among` names by column, or, without
    it, on all that have another value."""
    part: Part = received or SegmentPart.of(payload)
    among = None if payload["among"] is None else {c: np.array(ids) for c, ids in payload["among"]}
    listed: dict[str, list[I64]] = {f.name: [np.empty(0, np.int64)] for f in fields(Votes)}
    for i, groups in enumerate(walked(part, payload["sequences"])):
        rhs = payload["rhs"][i]
        if not groups.n_groups or (among is not None and rhs not in among):
            continue
        numbers = part.numbers(rhs)
        if among is None:
            chosen = kernel.inspect(groups, numbers, True)[2]
        else:
            chosen = np.zeros(groups.n_groups, dtype=np.bool_)
            chosen[groups.group[np.isin(part.row_ids(groups.rows), among[rhs])]] = True
        at = np.flatnonzero(chosen[groups.group])
        rows, group = groups.rows[at], groups.group[at]
        ids, present = part.row_ids(rows), numbers[rows].astype(np.int64)  # 0 is NULL
        classes = classes_of(group, present, ids, nulls_distinct=True)
        n_rows = np.bincount(group[present > 0], minlength=groups.n_groups)[group]
        votes = (classes.votes > 1) & (3 * classes.votes >= 2 * n_rows)
        votes &= ~classes.stays if among is None else np.isin(ids, among[rhs])
        ballots = {
            "dependency": np.full(len(ids), i),
            "row_ids": ids,
            "differs": (present != present[classes.leader]).astype(np.int64),
            "value": part.values(rhs, rows[classes.leader]),
            "carrier": ids[classes.leader],
            "n_for": classes.votes,
            "n_rows": n_rows,
        }
        for name, array in ballots.items():
            listed[name].append(array[votes])
    return pack({name: np.concatenate(parts) for name, parts in listed.items()}, {})
