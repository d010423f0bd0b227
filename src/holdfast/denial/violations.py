"""Rules that are watched: how many ordered pairs of rows violate a denial constraint, and a few of them.

`verify` counts all ordered pairs of live rows: by sorting, n log n. Where a rule has an equality, parts of
the values are tasks; else pairs of parts of the segments. A task returns a number and a few pairs; one job
for all rules. What a batch changes of these counts: `violation_changes.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.evidence.sent_parts import answers
from holdfast.core.rows.codes import texts_differ
from holdfast.core.rows.kernels.operators import EQ
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import Segment
from holdfast.core.rows.table_state import SegmentRef, payloads_of
from holdfast.core.rows.tasks import Payload, all_opened, parsed_schema
from holdfast.core.store.bundle import pack
from holdfast.denial.kernels.rule_violations import Compared, chosen, count_matches, expected_cost
from holdfast.denial.pair_rule import NOTHING, Rule, Violations
from holdfast.denial.sent_sides import SENDING, columns_of, families_of

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

# Rows of one part of a verification at most, and at least where it is divided among the cores.
PART_ROWS = 1 << 22
DIVIDE_ROWS = 1 << 17
# Spreads codes over parts.
_ODD = np.int64(0x9E3779B1)


def verify(
    relation: Relation, rules: Sequence[Rule], sample: int = 0, *, any_pair: bool = False
) -> list[Violations]:
    """The violations of each rule among all ordered pairs of different live rows; one job.

    Cost: n log n for rules with at most two predicates beside equalities; each further `!=` doubles it, and
    further inequalities multiply it by log n.
    `sample`: of so many left rows of each part alone, unless it is 0. `any_pair`: all that counts is whether
    there are some, so a part ends with its first ones.
    """
    payloads: list[Payload] = []
    of_rule: list[int] = []
    work = 0.0
    for i, rule in enumerate(rules):
        parts, cost = parts_of(relation, rule, sample)
        payloads += [{**part, "any_pair": any_pair} for part in parts]
        of_rule += [i] * len(parts)
        work += cost
    totals, pairs = [0] * len(rules), [NOTHING.pairs for _ in rules]
    for i, result in zip(of_rule, answers(relation, SENDING, count_part, payloads, work), strict=True):
        totals[i] += int(result.array("counts")[0])
        pairs[i] = np.concatenate([pairs[i], result.array("pairs").reshape(-1, 3)[:, 1:]])
    return [Violations(n, chosen(p)) for n, p in zip(totals, pairs, strict=True)]


def parts_of(relation: Relation, rule: Rule, sample: int = 0) -> tuple[list[Payload], float]:
    """(what tasks compare, nanoseconds): every ordered pair of rows that may violate a rule is in one part.

    Nothing where no pair can. Parts of the values of its equalities, or pairs of parts of the segments.
    """
    reduced, n_rows = rule.reduced, relation.n_rows
    if reduced is None or n_rows < 2:
        return [], 0.0
    live = [s for s in relation.segments if s.n_live]
    fields: list[Payload] = []
    work = 0.0
    if EQ in reduced.ops and not sample:
        n_parts = -(-n_rows // PART_ROWS)
        n_parts = max(n_parts, min(relation.engine.cores, n_rows // DIVIDE_ROWS))
        fields = [{"segments": relation.live, "part": p, "n_parts": n_parts} for p in range(n_parts)]
        work = n_parts * expected_cost(n_rows // n_parts, n_rows // n_parts, reduced.ops)
    else:
        named = payloads_of(live)
        # The very same list for all payloads that name a bin.
        bins = [([named[s.number] for s in refs], sum(s.n_live for s in refs)) for refs in _bins(live)]
        for left, n_left in bins:
            for right, n_right in bins:
                others = {} if left is right else {"others": right}
                fields.append({"segments": left, **others, "sample": sample})
                work += expected_cost(sample or n_left, n_right, reduced.ops)
    said = reduced.to_dict()
    return [relation.payload(**f, rule=said) for f in fields], work


def _bins(segments: Sequence[SegmentRef]) -> list[list[SegmentRef]]:
    """Segments that are compared together: PART_ROWS rows, or one segment with more."""
    bins: list[list[SegmentRef]] = []
    room = 0
    for ref in sorted(segments, key=lambda s: s.n_rows):
        if room < ref.n_rows:
            bins.append([])
            room = PART_ROWS
        bins[-1].append(ref)
        room -= ref.n_rows
    return bins


class Part(Protocol):
    """Rows that a task compares: of column c they have codes[place[c]], common to all columns compared."""

    rule: Rule
    codes: I32
    place: dict[int, int]
    n_codes: I64  # codes are below it
    left_rows: I64
    right: NDArray[np.bool_]  # whether a row is a right one

    def row_ids(self, positions: I64) -> I64:
        """The ids of rows, numbered as they lie."""
        ...


class SegmentPart:
    """The rows of some segments, segment after segment.

    A part of the values of a rule's equalities; or left rows of some segments with right rows of others, or,
    if there are no others, of the same. `sample`: only so many left rows, evenly spread.
    """

    def __init__(self, payload: Payload) -> None:
        n_left, others = len(payload["segments"]), payload.get("others", [])
        both = {**payload, "segments": [*payload["segments"], *others]}
        self.segments = segments = all_opened(both, parsed_schema(payload["schema"]))
        self.rule = rule = Rule.from_dict(payload["rule"])
        self.codes, self.place, self.n_codes = codes, place, _ = common_codes(segments, rule)
        self._starts = starts = np.cumsum([0, *(s.ref.n_rows for s in segments)])
        left = right = np.concatenate([s.live for s in segments])
        if others:
            first = np.arange(starts[-1]) < starts[n_left]
            left, right = left & first, right & ~first
        if payload.get("n_parts", 1) > 1:
            # A row's left values are in one part, its right values perhaps in another.
            equal = [(place[a], place[b]) for a, op, b in rule.predicates if op == EQ]
            left = left & (_part_of(codes, [a for a, _ in equal], payload["n_parts"]) == payload["part"])
            right = right & (_part_of(codes, [b for _, b in equal], payload["n_parts"]) == payload["part"])
        self.right = right
        self.left_rows = np.flatnonzero(left)
        if payload.get("sample") and len(self.left_rows) > payload["sample"]:
            spread = np.linspace(0, len(self.left_rows) - 1, payload["sample"])
            self.left_rows = self.left_rows[spread.astype(np.int64)]

    def row_ids(self, positions: I64) -> I64:
        ids = np.empty(len(positions), dtype=np.int64)
        at = np.searchsorted(self._starts, positions, side="right") - 1
        for k in np.unique(at).tolist():
            ids[at == k] = self.segments[k].row_ids(positions[at == k] - self._starts[k])
        return ids


def count_part(payload: Payload, received: Part | None = None) -> bytes:
    """The violations of one rule, on a part of the rows of some segments."""
    part: Part = received or SegmentPart(payload)
    codes, place, left_rows, right = part.codes, part.place, part.left_rows, part.right
    columns = [place[b] for _, _, b in part.rule.predicates]
    half_ranks = np.empty((len(columns), len(left_rows)), dtype=np.int32)
    for p, (a, _, _) in enumerate(part.rule.predicates):
        np.multiply(codes[place[a]][left_rows], 2, out=half_ranks[p])
    n_codes = part.n_codes[columns].astype(np.int64)
    asked = part.rule.asked(half_ranks)
    compared = Compared(asked, part.rule.ops, codes, np.array(columns, dtype=np.int64), n_codes)
    rows = None if right.all() else np.flatnonzero(right).astype(np.int32)
    itself = np.where(right[left_rows], left_rows, -1)
    twins = itself if (itself >= 0).any() else None
    matches = count_matches(compared, rows, twins, any_pair=payload.get("any_pair", False))
    ids = np.zeros((len(matches.pairs), 3), dtype=np.int64)
    ids[:, 1], ids[:, 2] = part.row_ids(left_rows[matches.pairs[:, 0]]), part.row_ids(matches.pairs[:, 1])
    return pack({"counts": np.array([matches.total]), "pairs": ids}, {})


def _part_of(codes: I32, columns: Sequence[int], n_parts: int) -> I64:
    """The part of each row, by its values."""
    key = np.zeros(codes.shape[1], dtype=np.int64)
    for c in columns:
        key = (key + codes[c]) * _ODD
    return (key >> np.int64(16)) % n_parts


def common_codes(segments: Sequence[Segment], rule: Rule) -> tuple[I32, dict[int, int], I64]:
    """(codes, place, n_codes): the rows of all segments, in codes that are common to all columns compared.

    codes int32[k, n]: row place[c] has column c; n_codes int64[k]: codes are below it. Cost: a sort of the
    distinct values, and a pass; nothing for one segment and columns compared with themselves.
    """
    families, columns = families_of(rule), columns_of(rule)
    if len(segments) == 1 and len(families) == len(columns):
        only = segments[0]
        sizes = [len(only.dictionary(c)) + 1 if c in columns else 0 for c in range(len(only.schema))]
        return only.codes, {c: c for c in columns}, np.array(sizes)
    place = {c: i for i, c in enumerate(columns)}
    starts = np.cumsum([0, *(s.ref.n_rows for s in segments)])
    codes = np.empty((len(columns), starts[-1]), dtype=np.int32)
    n_codes = np.zeros(len(columns), dtype=np.int64)
    for family in families:
        parts = [(s, c) for s in range(len(segments)) for c in family]
        dictionaries = [segments[s].dictionary(c) for s, c in parts]
        ends = np.cumsum([0, *map(len, dictionaries)])
        distinct, first, numbers = np.unique(
            np.concatenate(dictionaries), return_index=True, return_inverse=True
        )
        size = len(distinct)
        texts = [segments[s].texts(c) for s, c in parts]
        if texts[0] is not None:
            everything = pa.concat_arrays(texts)
            if texts_differ(everything, everything.take(pa.array(first[numbers]))).any():
                encoded = everything.dictionary_encode()  # two texts share a code
                numbers, size = encoded.indices.to_numpy(), len(encoded.dictionary)
        for k, (s, c) in enumerate(parts):
            table = np.zeros(len(dictionaries[k]) + 1, dtype=np.int32)
            table[1:] = numbers[ends[k] : ends[k + 1]] + 1
            codes[place[c], starts[s] : starts[s + 1]] = table[segments[s].codes[c]]
            n_codes[place[c]] = size + 1
    return codes, place, n_codes
