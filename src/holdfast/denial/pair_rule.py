"""A rule of two rows, by the positions of its columns; its violations; the indexes that it wants.

A rule is a set of predicates (left column, operator, right column) that no two different rows t, s may
satisfy together: `t.left op s.right`. How they are counted: `violations.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from holdfast.core.rows.kernels.operators import EQ, GE, GT, NE, SYMMETRIC
from holdfast.core.rows.table_state import OrderKey
from holdfast.core.words.codec import Coded
from holdfast.core.words.predicate import OUTCOMES
from holdfast.core.words.schema import Nulls, Schema

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Predicate = tuple[int, int, int]

# A column of so few values has long lists; an order index with it has no more chains than values.
FEW_VALUES = 64

# By operator, the outcomes of comparing two values that satisfy it, a bit each. What two operators leave is
# what one says, or nothing.
_OUTCOMES = {op: sum(1 << i for i, ops in enumerate(OUTCOMES) if ops >> op & 1) for op in range(6)}
_OPERATORS = {outcomes: op for op, outcomes in _OUTCOMES.items()}


@dataclass(frozen=True, slots=True)
class Rule(Coded):
    """What no two different rows t, s satisfy together: predicates (left, operator number, right).

    Columns are positions; operators are numbered as in `kernels.order_index`. Without predicates every
    ordered pair of rows violates it. Where NULLs are distinct it has `=` and `!=` alone, as a functional
    dependency has.
    """

    predicates: tuple[Predicate, ...]
    nulls: Nulls = "equal"

    def __post_init__(self) -> None:
        if self.nulls == "distinct" and not {EQ, NE}.issuperset(self.ops):
            raise ValueError(f"a rule of distinct NULLs with an order: {self.predicates}")

    def asked(self, half_ranks: I32) -> I32:
        """What left rows ask for, of their half ranks int32[n_predicates, n].

        Where NULLs are distinct NULL is a value that no right row has: `=` asks for no row, `!=` for all.
        """
        return np.where(half_ranks == 0, np.int32(-1), half_ranks) if self.nulls == "distinct" else half_ranks

    @property
    def mirrored(self) -> Rule:
        """The rule with t and s exchanged."""
        return replace(
            self, predicates=tuple((right, SYMMETRIC[op], left) for left, op, right in self.predicates)
        )

    @property
    def reduced(self) -> Rule | None:
        """The same with one predicate for each pair of columns; None if no two values satisfy those of one.

        >>> from holdfast.core.rows.kernels.operators import LE, LT
        >>> Rule(((0, LE, 1), (0, NE, 1))).reduced == Rule(((0, LT, 1),))
        True
        >>> Rule(((0, LT, 0), (0, GT, 0))).reduced
        """
        possible: dict[tuple[int, int], int] = {}
        for a, op, b in self.predicates:
            possible[a, b] = possible.get((a, b), 0b1111) & _OUTCOMES[op]
        if not all(possible.values()):
            return None
        predicates = tuple((a, _OPERATORS[outcomes], b) for (a, b), outcomes in possible.items())
        return replace(self, predicates=predicates)

    @property
    def ops(self) -> tuple[int, ...]:
        return tuple(op for _, op, _ in self.predicates)


@dataclass(frozen=True, slots=True, eq=False)
class Violations:
    """n_violations: the number of ordered pairs that violate a rule; pairs int64[k, 2]: row ids (t, s) of
    up to SAMPLES of them, of none only if there is none."""

    n_violations: int
    pairs: I64


NOTHING = Violations(0, np.empty((0, 2), dtype=np.int64))


def wanted_indexes(
    rules: Sequence[Rule], schema: Schema, distinct: Sequence[int]
) -> tuple[tuple[int, ...], tuple[OrderKey, ...]]:
    """(columns, orders): the indexes that make batches cheap: equality indexes of columns, order indexes.

    IN distinct: about how many values each column has. A rule with an equality wants the lists of the one
    with most values, on both sides. One or two predicates are counted by an order index of their columns,
    where lists would be long: its direction is the one that has few chains when the rule holds, or almost.
    More predicates than two are scanned for.
    """
    columns: set[int] = set()
    orders: set[OrderKey] = set()
    for rule in rules:
        reduced = rule.reduced
        if reduced is None or not reduced.predicates:
            continue
        predicates = reduced.predicates
        if not all(0 <= c < len(schema) for a, _, b in predicates for c in (a, b)):
            raise ValueError(f"a rule of columns that a table of {len(schema)} has not: {predicates}")
        values = [(min(distinct[a], distinct[b]), a, b) for a, op, b in predicates if op == EQ]
        most, a, b = max(values, default=(0, 0, 0))
        if most > FEW_VALUES or (values and len(predicates) > 2):
            columns |= {a, b}
        elif len(predicates) <= 2:
            first, last = predicates[0], predicates[-1]
            rising = [op in (GT, GE) for _, op, _ in (first, last)]
            falling = rising[0] == rising[1] and not {EQ, NE} & {first[1], last[1]}
            for side in (0, 2):
                x, y = sorted((first[side], last[side]))
                orders.add((x, y, falling and x != y))
    return tuple(sorted(columns)), tuple(sorted(orders))
