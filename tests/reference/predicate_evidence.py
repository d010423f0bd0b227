"""Evidence over predicates in plain Python: the slow reference of predicate_evidence.py.

Values are compared as they are, None is NULL, and every operator is asked on its own; masks are ints. A row
is a list of values, a group is (left, right, ordered, first).
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

Row = Sequence[Any]
Group = tuple[int, int, bool, int]

# In the order of predicates; an unordered group has the first two.
OPERATORS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def holds(t: Any, op: str, s: Any) -> bool:
    """Two NULLs are equal; of a NULL and a value only != is true."""
    if t is None and s is None:
        return op in ("=", "<=", ">=")
    if t is None or s is None:
        return op == "!="
    return bool(OPERATORS[op](t, s))


def evidence(t: Row, s: Row, groups: Iterable[Group]) -> int:
    """The predicates that the ordered pair satisfies."""
    return sum(
        1 << first + i
        for left, right, ordered, first in groups
        for i, op in enumerate(OPERATORS)
        if (ordered or i < 2) and holds(t[left], op, s[right])
    )


def evidence_counts(
    old: Sequence[Row], batch: Sequence[Row], groups: Sequence[Group], pairs: Iterable[tuple[int, int]]
) -> Counter[int]:
    """How many ordered pairs have each evidence: (batch row, old row) of `pairs`, in both directions."""
    found: Counter[int] = Counter()
    for j, r in pairs:
        found[evidence(batch[j], old[r], groups)] += 1
        found[evidence(old[r], batch[j], groups)] += 1
    return found
