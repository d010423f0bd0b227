"""All pairs of rows that violate a rule, and the fewest rows to remove.

`violations.py` counts pairs by sorting; here they are listed, or, if they are too many, their rows. Left and
right rows that can be in no pair are left out first: of two rows in one group of the equalities, the first of
which asks for values above (or below) its own in one column, the extreme value of another column among those
tells whether any row is there, n log n for all. Then each left row's range of right rows is looked at: what
is left of a rule with at most two inequalities is little more than the pairs, of more it may be much more.

A rule that is a key or a functional dependency knows its fewest rows by groups (`group_rows.py`); of others
it is a vertex cover of the pairs (`row_removal.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.violating_rows import Removal, ViolatingRows
from holdfast.core.evidence.group_rows import GroupRows, group_rows
from holdfast.core.evidence.sent_parts import answers
from holdfast.core.rows.kernels.masks import mask_of
from holdfast.core.rows.kernels.operators import EQ, GE, GT, LE, LT, NE, SYMMETRIC
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.tasks import Payload
from holdfast.core.store.bundle import pack
from holdfast.core.words.predicate import Dc, as_fd, as_key
from holdfast.denial.constraints import ordered_pairs
from holdfast.denial.row_removal import fewest_rows
from holdfast.denial.sent_sides import SENDING
from holdfast.denial.violations import Part, SegmentPart, parts_of, verify
from holdfast.denial.written_rules import as_rule
from holdfast.errors import UsageError

I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

# Ordered pairs that are listed at most, 64 MB on the driver; and of which the rows are: minutes of a core.
MAX_PAIRS, MAX_COUNTED = 1 << 22, 1 << 32
# Pairs that a task looks at at a time; ns of one core for each.
CHUNK, NS_PAIR = 1 << 20, 20
RANGES = (LT, LE, GT, GE)


def dc_violations(
    rows: Relation, dc: Dc, version: int, limit: int | None, *, as_pairs: bool
) -> ViolatingRows:
    """The rows that violate a rule, each once with `_pairs`, how many ordered pairs it is in; or the pairs,
    as a row for either side, t first.

    Rows in most pairs come first. One job that counts, and one that lists.
    """
    rule = as_rule(dc.predicates, rows.schema)
    [counted] = verify(rows, [rule])
    n_violations, n_rows = counted.n_violations, rows.n_rows
    dc = replace(dc, error=n_violations / max(1, ordered_pairs(n_rows)))
    groups = _as_groups(rows, dc, None if as_pairs else limit) if n_violations else None
    if groups is not None and not as_pairs:
        said = {"pairs": 2 * (groups.group_rows - groups.class_rows), "remove": groups.remove}
        removal = Removal(groups.n_removed, groups.n_removed)
        return ViolatingRows(
            dc, version, n_rows, groups.n_rows, removal, rows, groups.row_ids, said, n_violations=n_violations
        )
    if n_violations > (MAX_PAIRS if as_pairs else MAX_COUNTED):
        raise UsageError(
            f"{n_violations:,} ordered pairs of rows of table {dc.table!r} violate the rule, and at most "
            f"{MAX_PAIRS:,} are listed, the rows of at most {MAX_COUNTED:,}. 'holdfast explain' shows some "
            "of them; a rule with more predicates has fewer."
        )
    if n_violations > MAX_PAIRS:
        ids, degrees, marked = counted_rows(rows, dc)
        removal = Removal(_least_cover(degrees, n_violations), int(marked.sum()))
        return _by_degree(rows, dc, version, limit, ids, degrees, marked, removal, n_violations)
    pairs = all_pairs(rows, dc) if n_violations else counted.pairs
    ids, degrees = np.unique(pairs, return_counts=True)
    if groups is None:
        marked, at_least = fewest_rows(np.searchsorted(ids, pairs), len(ids))
    else:
        marked, at_least = np.isin(ids, groups.row_ids[groups.remove]), groups.n_removed
    removal = Removal(at_least, int(marked.sum()))
    if as_pairs:
        order = np.lexsort((pairs[:, 1], pairs[:, 0]))[:limit]
        listed = pairs[order].reshape(-1)
        said = {
            "pair": np.repeat(np.arange(1, len(order) + 1), 2),
            "side": np.tile(np.array(["t", "s"]), len(order)),
            "remove": marked[np.searchsorted(ids, listed)],
        }
        return ViolatingRows(
            dc, version, n_rows, len(ids), removal, rows, listed, said,
            n_violations=n_violations, n_listed_rows=len(ids) if len(order) == len(pairs) else 0,
        )  # fmt: skip
    return _by_degree(rows, dc, version, limit, ids, degrees, marked, removal, n_violations)


def _by_degree(
    rows: Relation,
    dc: Dc,
    version: int,
    limit: int | None,
    ids: I64,
    degrees: I64,
    marked: Bool,
    removal: Removal,
    n_violations: int,
) -> ViolatingRows:
    """Rows with the pairs that each is in: most pairs first."""
    order = np.lexsort((ids, ~marked, -degrees))[:limit]
    said = {"pairs": degrees[order], "remove": marked[order]}
    return ViolatingRows(
        dc, version, rows.n_rows, len(ids), removal, rows, ids[order], said, n_violations=n_violations
    )


def _as_groups(rows: Relation, dc: Dc, limit: int | None) -> GroupRows | None:
    """The rows that violate a rule that is a key or a functional dependency; None if it is neither."""
    key, fd = as_key(dc), as_fd(dc)
    if key is None and fd is None:
        return None
    at = {name: c for c, name in enumerate(rows.schema.names)}
    lhs = mask_of([at[c] for c in (fd[0] if fd is not None else key or ())], rows.n_words)
    # Of rules NULL is a value like any other.
    return group_rows(replace(rows, nulls="equal"), lhs, -1 if fd is None else at[fd[1]], limit)


def all_pairs(relation: Relation, dc: Dc) -> I64:
    """The ordered pairs (t, s) of different live rows that violate a rule, by id: int64[n, 2]. One job."""
    payloads, work = parts_of(relation, as_rule(dc.predicates, relation.schema))
    results = answers(relation, SENDING, pairs_part, payloads, work + NS_PAIR * relation.n_rows)
    return np.concatenate([np.empty((0, 2), np.int64), *(r.array("pairs").reshape(-1, 2) for r in results)])


def counted_rows(relation: Relation, dc: Dc) -> tuple[I64, I64, Bool]:
    """(ids, pairs of each, which to remove) of the rows that violate a rule, where pairs are too many to be
    listed: the rows on one side of them are enough, and all but one of the rows are. One job."""
    payloads, work = parts_of(relation, as_rule(dc.predicates, relation.schema))
    results = answers(relation, SENDING, degrees_part, payloads, work + NS_PAIR * relation.n_rows)
    degrees = np.concatenate([np.empty((0, 3), np.int64), *(r.array("rows").reshape(-1, 3) for r in results)])
    ids, at = np.unique(degrees[:, 0], return_inverse=True)
    as_t, as_s = (np.bincount(at, weights=degrees[:, i]).astype(np.int64) for i in (1, 2))
    smaller = min((as_t > 0, as_s > 0), key=np.count_nonzero)
    if smaller.all():
        smaller[np.argmin(as_t + as_s)] = False
    return ids, as_t + as_s, smaller


def _least_cover(degrees: I64, n_pairs: int) -> int:
    """How many rows must go at least: so many as those of most pairs need to be in all of them."""
    covered = np.cumsum(np.sort(degrees)[::-1])
    return int(np.searchsorted(covered, n_pairs)) + 1


def pairs_part(payload: Payload, received: Part | None = None) -> bytes:
    """The pairs of one part that violate a rule."""
    part: Part = received or SegmentPart(payload)
    listed = [np.empty((0, 2), dtype=np.int64), *Sides.of(part).in_pairs().pairs()]
    left, right = np.concatenate(listed).T
    pairs = np.stack([part.row_ids(left), part.row_ids(right)], axis=1)
    return pack({"pairs": pairs.reshape(-1)}, {})


def degrees_part(payload: Payload, received: Part | None = None) -> bytes:
    """The rows of one part that violate a rule: their ids, and how many pairs they are t of, and s of."""
    part: Part = received or SegmentPart(payload)
    counts = np.zeros((2, part.codes.shape[1]), dtype=np.int64)
    for pairs in Sides.of(part).in_pairs().pairs():
        for side in (0, 1):
            counts[side] += np.bincount(pairs[:, side], minlength=counts.shape[1])
    at = np.flatnonzero(counts.any(axis=0))
    return pack({"rows": np.stack([part.row_ids(at), *counts[:, at]], axis=1).reshape(-1)}, {})


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """Left and right rows, and what they compare: codes of which 0 is NULL, equal iff the values are.

    `left` and `right` are positions; `groups` number what the equalities compare, of either side.
    """

    left: I64
    right: I64
    left_groups: I64
    right_groups: I64
    ops: tuple[int, ...]  # of what is not an equality, ranges first
    x: tuple[I64, ...]  # by predicate, of each left row
    y: tuple[I64, ...]  # of each right row

    @classmethod
    def of(cls, part: Part) -> Sides:
        left, right = part.left_rows, np.flatnonzero(part.right)
        groups = np.zeros(len(left) + len(right), dtype=np.int64)
        others: list[tuple[int, I64, I64]] = []
        for a, op, b in part.rule.predicates:
            x = part.codes[part.place[a]][left].astype(np.int64)
            y = part.codes[part.place[b]][right].astype(np.int64)
            if op == EQ:
                values = np.concatenate([x, y])
                cells = groups * (int(values.max(initial=0)) + 1) + values
                groups = np.unique(cells, return_inverse=True)[1]
            else:
                others.append((op, x, y))
        others.sort(key=lambda other: other[0] not in RANGES)
        ops, x, y = tuple(zip(*others, strict=True)) or ((), (), ())
        return cls(left, right, groups[: len(left)], groups[len(left) :], ops, x, y)

    @property
    def mirrored(self) -> Sides:
        """The same with left and right exchanged."""
        ops = tuple(SYMMETRIC[op] for op in self.ops)
        return Sides(self.right, self.left, self.right_groups, self.left_groups, ops, self.y, self.x)

    def in_pairs(self) -> Sides:
        """Without rows that are in no pair, as far as these are seen."""
        sides = self
        for _ in range(2):  # what is left out on one side may leave nothing to ask for on the other
            sides = sides.without_lonely().mirrored.without_lonely().mirrored
        return sides

    def without_lonely(self) -> Sides:
        """Without left rows that no right row can make a pair with. Which ones are seen depends on the rule:
        all, where it has at most two predicates besides equalities and no NULL is compared."""
        order, begin, end = self._ranges()
        stays = end > begin
        if len(self.ops) > 1:
            stays[stays] = self._has_extreme(order, begin[stays], end[stays], np.flatnonzero(stays))
        return replace(
            self,
            left=self.left[stays],
            left_groups=self.left_groups[stays],
            x=tuple(x[stays] for x in self.x),
        )

    def _has_extreme(self, order: I64, begin: I64, end: I64, which: I64) -> Bool:
        """Whether the extreme value of the second predicate in a range of right rows is one that is asked
        for. A range ends, or begins, with its group, but for NULLs: these make it wider, never narrower."""
        op, x, y = self.ops[1], self.x[1][which], self.y[1][order]
        g = self.right_groups[order]
        upward = self.ops[0] in (LT, LE, NE)  # the range goes on to the end of its group
        highest = int(y.max(initial=0)) + 2
        at = begin if upward else end - 1
        number = (g.max(initial=0) - g if upward else g) * highest

        def most(values: I64) -> I64:
            keys = number + values
            run = np.maximum.accumulate(keys[::-1])[::-1] if upward else np.maximum.accumulate(keys)
            return (run - number)[at]

        there: Bool
        if op in (LT, LE):
            there = (most(y) >= x + (op == LT)) & (x > 0) | ((x == 0) & (op == LE))
        elif op in (GT, GE):
            least = highest - 1 - most(np.where(y > 0, highest - 1 - y, 0))
            there = (least <= x - (op == GT)) & (x > 0) | ((x == 0) & (op == GE))
        else:
            there = (most(y) != x) | (highest - 1 - most(highest - 1 - y) != x)
        return there

    def _ranges(self) -> tuple[I64, I64, I64]:
        """(order, begin, end): right rows by group and value, and the range of them that each left row asks
        for by its group and the first predicate, if that is an inequality."""
        ranged = bool(self.ops) and self.ops[0] in RANGES
        values = self.y[0] if ranged else np.zeros(len(self.right), dtype=np.int64)
        x = self.x[0] if ranged else np.zeros(len(self.left), dtype=np.int64)
        width = max(int(values.max(initial=0)), int(x.max(initial=0))) + 2
        keys = self.right_groups * width + values
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        low, high = np.zeros_like(x), np.full_like(x, width - 1)  # low <= y < high
        if ranged:
            op = self.ops[0]
            if op in (LT, LE):
                low = x + (op == LT)
            else:
                low, high = np.ones_like(x), x + (op == GE)
            null = x == 0
            low, high = np.where(null, 0, low), np.where(null, int(op in (LE, GE)), high)
        base = self.left_groups * width
        return order, np.searchsorted(keys, base + low), np.searchsorted(keys, base + high)

    def pairs(self) -> Iterator[I64]:
        """The pairs of positions that satisfy everything: int64[n, 2], some at a time."""
        order, begin, end = self._ranges()
        ends = np.cumsum(np.maximum(end - begin, 0))
        start = 0
        while start < len(ends):
            done = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, done + CHUNK, side="right")))
            counts = np.maximum(end - begin, 0)[start:stop]
            i = np.repeat(np.arange(start, stop), counts)
            offsets = np.arange(len(i)) - np.repeat(np.cumsum(counts) - counts, counts)
            j = order[np.repeat(begin[start:stop], counts) + offsets]
            true = self.left[i] != self.right[j]
            for op, x, y in zip(self.ops, self.x, self.y, strict=True):
                true &= compared(op, x[i], y[j])
            yield np.stack([self.left[i[true]], self.right[j[true]]], axis=1)
            start = stop


def compared(op: int, x: I64, y: I64) -> Bool:
    """Where `x op y`, of codes: NULL equals NULL, and is neither above nor below anything."""
    both, null = (x > 0) & (y > 0), (x == 0) & (y == 0)
    true: Bool
    if op == NE:
        true = x != y
    elif op in (LT, LE):
        true = both & (x < y)
    else:
        true = both & (x > y)
    if op in (LE, GE):
        true |= (both & (x == y)) | null
    return true
