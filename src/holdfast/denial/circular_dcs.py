"""Comparisons that run in a circle: denial constraints that nothing can violate. Needs no kernels.

Where each value is at most the next, and the last at most the first, all are equal or all are NULL, and
neither `<` nor `!=` is satisfied between two of them. So a DC that has one of these in such a circle cannot
be violated:

- by its own comparisons (`tautologies`): not(t.a = s.a and t.b = s.b and t.a = s.b and t.b != s.a). It holds
  in every table, says nothing, and is neither counted nor listed;
- by what the rules about each row add to them (`RowOrder`): not(t.low <= s.low and t.low > s.high), where
  low <= high in each row. It follows from these rules alone.

NULL: `=`, `<=` and `>=` are satisfied by two NULLs, so they tell that both sides have a value or neither;
`<` and `>` tell that both have. A row rule says nothing of a row with a NULL: it is taken into account only
between values that are there, since their columns have no NULL, or since the DC's comparisons tell so.

Sound with NULLs, and complete without: comparisons of an unbounded order can be satisfied if and only if
there is no such circle.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.core.words.column_sets import bits_of, masks_of, words_for
from holdfast.core.words.predicate import Group, Operator, Predicate, PredicateSpace
from holdfast.core.words.row_rule import RowRule

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

NEGATED: Mapping[Operator, Operator] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
TIGHTEST: tuple[Operator, ...] = ("=", "<", ">", "<=", ">=", "!=")
# Comparisons of two values of one DC that are held at a time, for all DCs at once.
AT_ONCE = 1 << 22


@dataclass(frozen=True)
class RowOrder:
    """What rules about each row, all of which hold, say together.

    at_most, differs bool[n, n], by the numbers of columns in `names`: one is at most, or is not, the other in
    each row that has both values; filled bool[n]: the columns without NULL. Closed: what follows by way of
    filled columns is there. Cost: the cube of the number of columns, some times.
    """

    names: tuple[str, ...]
    at_most: Bool
    differs: Bool
    filled: Bool

    @classmethod
    def of(cls, names: Sequence[str], rules: Collection[RowRule], filled: Collection[str]) -> RowOrder:
        number = {name: i for i, name in enumerate(names)}
        at_most, differs = np.eye(len(names), dtype=np.bool_), np.zeros((len(names),) * 2, dtype=np.bool_)
        for rule in rules:
            a, b = number[rule.left], number[rule.right]
            at_most[a, b] |= rule.op in ("=", "<", "<=")
            at_most[b, a] |= rule.op in ("=", ">", ">=")
            differs[a, b] |= rule.op in ("!=", "<", ">")
        differs |= differs.T
        through = np.array([name in filled for name in names], dtype=np.bool_)
        n_known = -1
        while n_known != (n_known := int(at_most.sum() + differs.sum())):
            for via in np.flatnonzero(through):
                # a <= via < b, or a < via <= b: they differ as well.
                less = at_most & differs
                differs |= np.outer(less[:, via], at_most[via]) | np.outer(at_most[:, via], less[via])
                same = at_most[:, via] & at_most[via]
                differs |= np.outer(same, differs[via])
                differs |= differs.T
                at_most |= np.outer(at_most[:, via], at_most[via])
        return cls(tuple(names), at_most, differs, through)

    def implies(self, rule: RowRule) -> bool:
        """Whether no row that has both values can violate a rule."""
        a, b = self.names.index(rule.left), self.names.index(rule.right)
        up, down, differs = bool(self.at_most[a, b]), bool(self.at_most[b, a]), bool(self.differs[a, b])
        satisfied = {
            "=": up and down,
            "!=": differs,
            "<": up and differs,
            "<=": up,
            ">": down and differs,
            ">=": down,
        }
        return satisfied[rule.op]


def tautologies(masks: U64, space: PredicateSpace) -> Bool:
    """Which DCs no table can violate, for a reason across groups: bool[k].

    The cover has them where columns are compared with each other: each group on its own could be satisfied,
    so they are not trivial as `PredicateSpace.trivial` has it. With 66 predicates of adult they are 7 of
    468,986, the shortest across columns. Cost: that of `contradictory`, for DCs that may be some.
    """
    circular = np.zeros(len(masks), dtype=np.bool_)
    across = [p.left != p.right for p in space.predicates]
    # Within a group, DCs of a cover are satisfiable. So a circle has two values of t at least, and two of s,
    # that is four comparisons, of which two are of different columns.
    if any(across):
        bits = bits_of(masks, space.n_predicates)
        able = np.flatnonzero((bits[:, across].sum(axis=1) >= 2) & (bits.sum(axis=1) >= 4))
        circular[able] = contradictory(masks[able], space)
    return circular


def telling(masks: U64, space: PredicateSpace) -> U64:
    """The DCs that are no tautologies: what people read, and what is counted."""
    return masks[~tautologies(masks, space)]


def holds_always(predicates: Iterable[Predicate]) -> bool:
    """Whether no two rows of any table satisfy the predicates together.

    >>> circle = [("a", "=", "b"), ("b", "=", "a"), ("a", "=", "a"), ("b", "!=", "b")]
    >>> holds_always(Predicate(*p) for p in circle), holds_always(Predicate(*p) for p in circle[1:])
    (True, False)
    """
    asked = set(predicates)
    groups = dict.fromkeys(
        Group(a, b, True) for p in asked for a, b in ((p.left, p.right), (p.right, p.left))
    )
    space = PredicateSpace(tuple(groups))
    bits = np.array([[p in asked for p in space.predicates]], dtype=np.bool_)
    return bool(contradictory(masks_of(bits, words_for(space.n_predicates)), space)[0])


def following_from_rows(masks: U64, space: PredicateSpace, rows: RowOrder) -> Bool:
    """Which DCs follow from the rules about each row: bool[k]. As `contradictory`, of DCs of a cover."""
    same = rows.at_most & rows.at_most.T  # each column is the same as itself
    twins = {name for name, n in zip(rows.names, same.sum(axis=1), strict=True) if n > 1}
    # A circle leads from t to s by one column and back by another: across columns, or by two that are equal.
    across = [p.left != p.right for p in space.predicates]
    of_twins = [p.left in twins for p in space.predicates]
    bits = bits_of(masks, space.n_predicates)
    able = np.flatnonzero(bits[:, across].any(axis=1) | (bits[:, of_twins].sum(axis=1) >= 2))
    following = np.zeros(len(masks), dtype=np.bool_)
    following[able] = contradictory(masks[able], space, rows)
    return following


def written_out(masks: U64, space: PredicateSpace, rows: RowOrder) -> U64:
    """Each DC with all comparisons that follow from its own if rows keep to `rows` and have no NULL.

    Of each group the tightest. Cost: that of `contradictory` for each predicate of the space.
    """
    n = space.n_predicates
    opposite = [space.number(Predicate(p.left, NEGATED[p.op], p.right)) for p in space.predicates]
    asked = np.repeat(bits_of(masks, n)[:, None, :], n, axis=1)
    asked[:, np.arange(n), opposite] = True
    questions = masks_of(asked.reshape(-1, n), masks.shape[1])
    follows = contradictory(questions, space, rows).reshape(-1, n)
    whole = np.zeros_like(follows)
    for group in range(len(space.groups)):
        said = np.zeros(len(masks), dtype=np.bool_)
        members = [i for i, g in enumerate(space.group_of) if g == group]
        for i in sorted(members, key=lambda i: TIGHTEST.index(space.predicates[i].op)):
            whole[:, i] = follows[:, i] & ~said
            said |= follows[:, i]
    return masks_of(whole, masks.shape[1])


def contradictory(masks: U64, space: PredicateSpace, rows: RowOrder | None = None) -> Bool:
    """Which DCs no two rows can violate, if each of them keeps to `rows`: bool[k].

    Cost: for a DC of m predicates 2 m passes over the square of its 2 m values, all DCs of a size at once.
    """
    names = rows.names if rows is not None else tuple(dict.fromkeys(g.left for g in space.groups))
    number = {name: i for i, name in enumerate(names)}
    ops = np.array([p.op for p in space.predicates], dtype="<U2")
    frame = _Frame(
        np.array([2 * number[p.left] for p in space.predicates], dtype=np.int64),
        np.array([2 * number[p.right] + 1 for p in space.predicates], dtype=np.int64),
        np.isin(ops, ["=", "<", "<="]),
        np.isin(ops, ["=", ">", ">="]),
        np.isin(ops, ["!=", "<", ">"]),
        rows,
    )
    impossible = np.zeros(len(masks), dtype=np.bool_)
    for at, members in _by_size(bits_of(masks, space.n_predicates)):
        impossible[at] = frame.impossible(members)
    return impossible


def _by_size(bits: Bool) -> Iterator[tuple[I64, I64]]:
    """(DCs int64[k], their predicates int64[k, m]) for each m but 0, not too many at once."""
    sizes = bits.sum(axis=1)
    for size in np.unique(sizes[sizes > 0]).tolist():
        of_size = np.flatnonzero(sizes == size)
        n_at_once = max(1, AT_ONCE // (2 * size) ** 2)
        for start in range(0, len(of_size), n_at_once):
            at = of_size[start : start + n_at_once]
            yield at, np.nonzero(bits[at])[1].reshape(len(at), size)


@dataclass(frozen=True)
class _Frame:
    """Predicates as comparisons of numbered values: 2 c is column c of t, 2 c + 1 that of s."""

    left: I64
    right: I64
    up: Bool  # the left value is at most the right one
    down: Bool
    differs: Bool
    rows: RowOrder | None

    def impossible(self, members: I64) -> Bool:
        """Which DCs of m predicates int64[k, m] cannot be violated: bool[k]."""
        k, m = members.shape
        left, right = np.arange(m), np.arange(m, 2 * m)
        values = np.concatenate([self.left[members], self.right[members]], axis=1)
        below = values[:, :, None] == values[:, None, :]
        below[:, left, right] |= self.up[members]
        below[:, right, left] |= self.down[members]
        differs = np.zeros_like(below)
        differs[:, left, right] = self.differs[members]
        if self.rows is not None:
            columns = values // 2
            # `<` and `>` have values on both sides; `=`, `<=` and `>=` on both sides or on none.
            strict = self.differs[members] & (self.up | self.down)[members]
            there = self.rows.filled[columns] | np.concatenate([strict, strict], axis=1)
            alike = below | below.transpose(0, 2, 1)
            for _ in range(2 * m):
                there |= (alike & there[:, None, :]).any(axis=2)
            known = there[:, :, None] & there[:, None, :]
            known &= (values[:, :, None] - values[:, None, :]) % 2 == 0  # of one row
            pair = columns[:, :, None], columns[:, None, :]
            below |= known & self.rows.at_most[pair]
            differs |= known & self.rows.differs[pair]
        for via in range(2 * m):
            below |= below[:, :, via, None] & below[:, None, via, :]
        contradicted: Bool = (differs & below & below.transpose(0, 2, 1)).reshape(k, -1).any(axis=1)
        return contradicted
