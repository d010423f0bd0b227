"""The rows that violate a key or a functional dependency, with what their groups say of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from holdfast.core.cover.violating_rows import Removal, ViolatingRows
from holdfast.core.evidence.group_rows import group_rows
from holdfast.core.rows.kernels.masks import mask_of
from holdfast.core.rows.relation import Relation
from holdfast.core.words.column_sets import n_pairs
from holdfast.core.words.dependency import Fd, Ucc
from holdfast.functional.refs import PinnedKey


def fd_violations(
    rows: Relation, table: str, version: int, lhs: Sequence[int], rhs: int, limit: int | None
) -> ViolatingRows:
    """Of `lhs -> rhs`: `_majority` is the value that more rows of the group have than any other, in `_votes`
    of them, and `_suggested` the same where a row has another value: where it `_deviates`, for the value may
    be NULL."""
    names = rows.schema.names
    # Of a trivial dependency groups cannot vary.
    groups = group_rows(rows, mask_of(lhs, rows.n_words), rhs, limit)
    deviates = groups.remove & (groups.votes > 0)
    suggested = np.where(deviates, groups.majority, -1)
    return ViolatingRows(
        Fd(table, tuple(names[c] for c in lhs), names[rhs], groups.n_pairs / max(1, n_pairs(rows.n_rows))),
        version,
        rows.n_rows,
        groups.n_rows,
        Removal(groups.n_removed, groups.n_removed),
        rows,
        groups.row_ids,
        {
            "group": groups.group,
            "group_rows": groups.group_rows,
            "votes": groups.votes,
            "remove": groups.remove,
            "deviates": deviates,
        },
        {"majority": (names[rhs], groups.majority), "suggested": (names[rhs], suggested)},
        n_groups=groups.n_groups,
        n_violations=groups.n_pairs,
        noun="left-hand value" if lhs else "group",
    )


def key_violations(
    rows: Relation, table: str, version: int, columns: Sequence[int], limit: int | None
) -> ViolatingRows:
    """Of the key: rows that agree on the columns are a group, and the oldest of them stays."""
    names = rows.schema.names
    groups = group_rows(rows, mask_of(columns, rows.n_words), -1, limit)
    return ViolatingRows(
        Ucc(table, tuple(names[c] for c in columns), groups.n_pairs / max(1, n_pairs(rows.n_rows))),
        version,
        rows.n_rows,
        groups.n_rows,
        Removal(groups.n_removed, groups.n_removed),
        rows,
        groups.row_ids,
        {"group": groups.group, "group_rows": groups.group_rows, "remove": groups.remove},
        n_groups=groups.n_groups,
        n_violations=groups.n_pairs,
        noun="duplicated value",
    )


def settled_pin(rows: Relation, pin: PinnedKey, unique: bool) -> PinnedKey:
    """A pinned key as it is now. If it is not unique, the rows to remove are counted: by two passes over the
    table."""
    n = 0
    if not unique:
        columns = [rows.schema.names.index(c) for c in pin.columns]
        n = group_rows(rows, mask_of(columns, rows.n_words), -1, 0).n_removed
    return replace(pin, holds=pin.terms.allows(n, rows.n_rows), n_violations=n)
