"""Row counts: for pairs of columns, how many rows have <, =, > or a NULL in them.

Kind of state: linear. Law: s(R + D) = s(R) + s(D), so rows that go are subtracted.

What rules hold is read off the counts: a rule is violated by the rows with both values that have an outcome
which its operator does not allow. Reading needs no kernels: `show` uses this.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from holdfast.core.rows.kernels.operators import EQUAL, GREATER, LESS, NULL

I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

Kind = TypeVar("Kind", bound=Hashable)

# The outcomes that satisfy each operator, tightest ones first. Of a pair without order LESS is all that
# differs, and nothing is GREATER: there "!=" is as tight as it gets, and "<" and ">" mean nothing.
SATISFYING: Mapping[str, tuple[int, ...]] = {
    "<": (LESS,),
    "=": (EQUAL,),
    ">": (GREATER,),
    "<=": (LESS, EQUAL),
    ">=": (GREATER, EQUAL),
    "!=": (LESS, GREATER),
}
OPERATORS = tuple(SATISFYING)
# ALLOWED[i, j]: operator number i allows outcome j.
ALLOWED: Bool = np.array([[o in outcomes for o in range(NULL)] for outcomes in SATISFYING.values()])
_N_ALLOWED = ALLOWED.sum(axis=1)
UNORDERED = np.array([op in ("=", "!=") for op in OPERATORS])
# IMPLIES[i, j]: rows that satisfy operator i satisfy operator j.
IMPLIES: Bool = np.asarray((ALLOWED[:, None] <= ALLOWED[None]).all(axis=2))


def where_kinds(kinds: Sequence[Kind], pairs: NDArray[np.int32], test: Callable[[Kind, Kind], bool]) -> Bool:
    """What is true of the kinds (such as types) of each pair of columns: bool[n_pairs].

    IN pairs int32[n_pairs, 2], positions in `kinds`. There are many pairs and few kinds: two kinds are asked
    once.
    """
    different = {kind: i for i, kind in enumerate(dict.fromkeys(kinds))}
    answers = np.array([[test(a, b) for b in different] for a in different], dtype=np.bool_)
    number = np.array([different[kind] for kind in kinds], dtype=np.int64)
    left, right = number[pairs[:, 0]], number[pairs[:, 1]]
    of_pairs: Bool = answers.reshape(len(different), len(different))[left, right]
    return of_pairs


class RowCounts:
    """A value: counts int64[n_pairs, 4], at LESS, EQUAL, GREATER and NULL.

    >>> before = RowCounts(np.array([[5, 1, 0, 2]]))
    >>> after = before.plus(RowCounts(np.array([[0, 0, 1, 0]]))).minus(RowCounts(np.array([[2, 1, 0, 0]])))
    >>> after.counts.tolist(), after.n_rows, after.violations().tolist()
    ([[3, 0, 1, 2]], 6, [[1, 4, 3, 1, 3, 0]])
    """

    __slots__ = ("counts",)

    def __init__(self, counts: I64) -> None:
        self.counts = counts.reshape(-1, 4)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def n_rows(self) -> int:
        """The number of rows; 0 where there are no pairs to tell it."""
        return int(self.counts[0].sum()) if len(self.counts) else 0

    @property
    def n_compared(self) -> I64:
        """How many rows have both values: int64[n_pairs]."""
        compared: I64 = self.counts[:, :NULL].sum(axis=1)
        return compared

    def plus(self, other: RowCounts) -> RowCounts:
        return RowCounts(self.counts + other.counts)

    def minus(self, other: RowCounts) -> RowCounts:
        """Without the rows of `other`; a count below zero is a ValueError: these rows were never counted."""
        counts = self.counts - other.counts
        if (counts < 0).any():
            raise ValueError(
                f"a pair of columns would be left with {int(counts.min()):,} rows: the counts are not those "
                "of these rows. Nothing was changed."
            )
        return RowCounts(counts)

    def violations(self) -> I64:
        """How many rows violate each of OPERATORS: int64[n_pairs, 6]."""
        satisfying = self.counts[:, :NULL] @ ALLOWED.T.astype(np.int64)
        violating: I64 = self.n_compared[:, None] - satisfying
        return violating

    def within(self, ordered: Bool, max_error: float) -> Bool:
        """Which of OPERATORS are within an error: bool[n_pairs, 6].

        IN ordered bool[n_pairs]. At most this share of the rows violates it, and more rows keep than violate
        it: where most are NULL, a small share of all is not enough. Cost: a pass over the counts.
        """
        violations = self.violations()
        # As the error is told, to the last bit.
        within = violations / self._n_rows <= max_error
        within &= ordered[:, None] | UNORDERED
        within &= 2 * violations < self.n_compared[:, None]
        return within

    @property
    def _n_rows(self) -> I64:
        rows: I64 = np.maximum(self.counts.sum(axis=1), 1)[:, None]
        return rows

    def tightest(self, ordered: Bool, max_error: float = 0.0) -> I64:
        """The number in OPERATORS of the tightest rule within an error, int64[n_pairs]; -1 where none is.

        IN ordered bool[n_pairs]. The tightest allows the fewest outcomes; of several, the one with the
        fewest violations, then the first. Where no row has both values there is none. Cost: a pass over the
        counts.
        """
        within = self.within(ordered, max_error)
        rank = self.violations() + _N_ALLOWED * (self._n_rows + 1)
        rank = np.where(within, rank, np.iinfo(np.int64).max)
        return np.where(within.any(axis=1), rank.argmin(axis=1), -1)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {"counts": self.counts}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> RowCounts:
        return cls(arrays["counts"])
