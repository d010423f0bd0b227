"""Violations of a rule in plain Python: the slow reference of denial/kernels/rule_violations.py.

By value a rule is a list of (left column, op, right column), a row a sequence of values, None is NULL. By
code the left side is a half rank, the right side a code, and 0 is NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from typing import Any

from reference.predicate_evidence import holds

# By number.
SIGNS = ("=", "!=", "<", "<=", ">", ">=")

Row = Sequence[Any]
Rule = Sequence[tuple[int, int, int]]


def violates(t: Row, s: Row, rule: Rule) -> bool:
    return all(holds(t[left], SIGNS[op], s[right]) for left, op, right in rule)


def violations(rows: Mapping[int, Row], rule: Rule) -> set[tuple[int, int]]:
    """The ordered pairs of numbers of different rows that violate a rule."""
    return {(t, s) for t, s in permutations(rows, 2) if violates(rows[t], rows[s], rule)}


def with_distinct_nulls(rows: Mapping[int, Row]) -> dict[int, list[Any]]:
    """The same rows where no NULL equals another: each is a value of its own."""
    return {number: [object() if v is None else v for v in row] for number, row in rows.items()}


def matches(
    half_ranks: Sequence[Sequence[int]],
    ops: Sequence[int],
    codes: Sequence[Sequence[int]],
    columns: Sequence[int],
    rows: Iterable[int],
    twins: Sequence[int],
) -> set[tuple[int, int]]:
    """(left row, right row) of all matches; half_ranks and codes are columns."""
    return {
        (i, row)
        for i, twin in enumerate(twins)
        for row in rows
        if row != twin
        and all(
            holds(half_ranks[p][i] or None, SIGNS[op], 2 * codes[columns[p]][row] or None)
            for p, op in enumerate(ops)
        )
    }
