"""Rows that a rule compares, sent (`sent_parts.py`) to the part that the values of its equalities fall into.

A row goes to one part as a left row and to one as a right row; these are the same where the rule compares
columns with themselves. Bytes: 9 for each row and part, and 1 to 16 for each column that is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.sent_parts import Sending, in_order, number_of, row_ids_of
from holdfast.core.evidence.shuffled import (
    Blocks,
    Sent,
    grouped,
    identities_in,
    numbered,
    packed_rows,
    segment_of,
)
from holdfast.core.rows.kernels.operators import EQ
from holdfast.core.rows.segments import Segment
from holdfast.core.rows.tasks import Payload
from holdfast.denial.pair_rule import Rule

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

LEFT, RIGHT = 1, 2
# Spreads values over parts.
_ODD = np.uint64(0x9E3779B97F4A7C15)


def asked_of(payload: Payload) -> dict[str, Any] | None:
    """The rule; None if it has no equality: then every row is compared with every other."""
    return {"rule": payload["rule"]} if "n_parts" in payload else None


def families_of(rule: Rule) -> list[list[int]]:
    """The columns that are compared, directly or by way of others: of these values have common codes."""
    families: dict[int, set[int]] = {}
    for a, _, b in rule.predicates:
        joined = families.get(a, {a}) | families.get(b, {b})
        families |= dict.fromkeys(joined, joined)
    return sorted(sorted(family) for family in {frozenset(f) for f in families.values()})


def columns_of(rule: Rule) -> list[int]:
    return sorted({c for a, _, b in rule.predicates for c in (a, b)})


# -- tasks -------------------------------------------------------------------------------------


def send_sides(payload: Payload) -> Sent:
    """The live rows of a segment, to the parts where they are left rows and right ones of each rule."""
    segment, _ = segment_of(payload)
    rows = np.flatnonzero(segment.live)
    for asked in payload["chosen"]:
        rule = Rule.from_dict(asked["rule"])
        equal = [(a, b) for a, op, b in rule.predicates if op == EQ]
        left = _part_of(segment, rows, [a for a, _ in equal], asked["n_parts"])
        right = _part_of(segment, rows, [b for _, b in equal], asked["n_parts"])
        alone = left != right
        part = np.concatenate([left, right[alone]])
        side = np.concatenate([np.where(alone, LEFT, LEFT + RIGHT), np.full(alone.sum(), RIGHT)])
        sent = np.concatenate([rows, rows[alone]])
        for i, at in grouped(part):
            at = at[np.argsort(sent[at])]
            sides = side[at].astype(np.uint8)
            block = packed_rows(segment, sent[at], columns_of(rule), number=number_of(payload), side=sides)
            yield asked["first"] + i, block


class ReceivedSides:
    """Rows that have come from all segments, as `violations.Part`, in the order in which they lie there."""

    def __init__(self, blocks: Blocks, payload: Payload) -> None:
        bundles = in_order(blocks)
        self.rule = Rule.from_dict(payload["rule"])
        columns = columns_of(self.rule)
        self.place = {c: i for i, c in enumerate(columns)}
        alike = [[self.place[c] for c in family] for family in families_of(self.rule)]
        matrix, self.n_codes = numbered(bundles, len(columns), alike)
        self.codes = np.ascontiguousarray(matrix.T)
        side = np.concatenate([np.empty(0, np.uint8), *(bundle.array("side") for bundle in bundles)])
        self.left_rows = np.flatnonzero(side & LEFT)
        self.right = (side & RIGHT) > 0
        self._row_ids = row_ids_of(bundles)

    def row_ids(self, positions: I64) -> I64:
        ids: I64 = self._row_ids[positions]
        return ids


def _part_of(segment: Segment, rows: I64, columns: Sequence[int], n_parts: int) -> I64:
    """The part of each row, by its values."""
    key = np.zeros(len(rows), np.uint64)
    for c in columns:
        keys, _ = identities_in(segment, c)
        key = (key + keys[segment.codes[c][rows]]) * _ODD
        key ^= key >> np.uint64(32)
    return (key % np.uint64(n_parts)).astype(np.int64)


SENDING = Sending(asked_of, send_sides, ReceivedSides)
