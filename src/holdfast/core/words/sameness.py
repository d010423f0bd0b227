"""When two dependencies say the same, of whatever kind, and however they are written.

| said | the same |
|---|---|
| a rule about two rows | with t and s exchanged, or its predicates in another order |
| a key or a functional dependency as such a rule | the key, the functional dependency, if NULLs are equal |
| a row rule | with its columns exchanged, or as a condition |
| a condition that a profile suggests | the condition |

What was measured (errors, counts, scores) does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import fields
from typing import Any

from holdfast.core.words.column_rule import ColumnRule
from holdfast.core.words.condition import Condition
from holdfast.core.words.dependency import Dependency, Fd, Ind, Ucc
from holdfast.core.words.predicate import OPERATORS, Dc, as_fd, as_key, is_trivial, reduced
from holdfast.core.words.row_rule import RowRule
from holdfast.core.words.schema import Nulls


def identity(dependency: Dependency, nulls: Nulls = "equal") -> Hashable:
    """What two dependencies have in common iff they say the same; `nulls` of their table.

    >>> from holdfast.core.words.predicate import Predicate
    >>> rule = Dc("tax", (Predicate("state", "!=", "state"), Predicate("zip", "=", "zip")))
    >>> identity(rule) == identity(Fd("tax", ("zip",), "state"))
    True
    >>> identity(rule, "distinct") == identity(rule.mirrored, "distinct")
    True
    >>> identity(RowRule("t", "a", "<", "b")) == identity(Condition("t", "b > a", ("b", "a")))
    True
    """
    match dependency:
        case Ucc():
            return "ucc", dependency.table, frozenset(dependency.columns)
        case Fd():
            return "fd", dependency.table, frozenset(dependency.lhs), dependency.rhs
        case Ind(dependent=left, referenced=right):
            pairs = frozenset(zip(left.columns, right.columns, strict=True))
            return "ind", left.table, right.table, pairs
        case Dc():
            return _of_rule(dependency, nulls)
        case RowRule():
            mirrored = dependency.mirrored
            sides = [(rule.left, rule.op, rule.right) for rule in (dependency, mirrored)]
            return "row", dependency.table, min(sides)
        case Condition(formula=formula) | ColumnRule(formula=formula):
            rule = _as_row_rule(dependency.table, formula, dependency.columns)
            return ("check", dependency.table, formula) if rule is None else identity(rule)
        case _:
            return dependency.kind, dependency


def _of_rule(dc: Dc, nulls: Nulls) -> Hashable:
    if nulls == "equal":
        key, fd = as_key(dc), as_fd(dc)
        if key is not None:
            return identity(Ucc(dc.table, key))
        if fd is not None:
            return identity(Fd(dc.table, *fd))
    predicates = dc.predicates if is_trivial(dc.predicates) else reduced(dc.predicates)
    either_way = frozenset([frozenset(predicates), frozenset(p.mirrored for p in predicates)])
    return "dc", dc.table, either_way


def _as_row_rule(table: str, formula: str, columns: tuple[str, ...]) -> RowRule | None:
    """The row rule that a condition is, if it compares two columns and says no more."""
    if len(columns) != 2:
        return None
    rules = (RowRule(table, columns[0], op, columns[1]) for op in OPERATORS)
    return next((rule for rule in rules if rule.formula == formula), None)


def said(dependency: Dependency) -> dict[str, Any]:
    """What a dependency says, as JSON that its type reads: nothing that was measured.

    >>> said(Fd("tax", ("zip",), "state", 0.01))
    {'kind': 'fd', 'table': 'tax', 'lhs': ['zip'], 'rhs': 'state'}
    """
    measured = {f.name for f in fields(dependency) if not f.compare} - {"columns"}  # type: ignore[arg-type]
    return {name: value for name, value in dependency.to_dict().items() if name not in measured}


class DependencySet:
    """Some dependencies, to be looked up by what they say. Cost of a look-up: that of a hash; of the few on
    the same columns as one of them, some microseconds."""

    def __init__(self, dependencies: Iterable[Dependency], nulls: Callable[[str], Nulls]) -> None:
        dependencies = list(dependencies)
        self._nulls = nulls
        self._columns = {_columns(d) for d in dependencies}
        self._members: set[Any] = {identity(d, nulls(d.table)) for d in dependencies}

    def __contains__(self, dependency: Dependency) -> bool:
        if not self._members or _columns(dependency) not in self._columns:
            return False
        return identity(dependency, self._nulls(dependency.table)) in self._members

    def __bool__(self) -> bool:
        return bool(self._members)

    def columns(self, table: str) -> list[frozenset[str]]:
        """The sets of columns that those of a table are about."""
        return [columns for name, columns in self._columns if name == table]

    def fds(self, table: str) -> list[tuple[frozenset[str], str]]:
        """(left-hand side, right-hand side) of those that say a functional dependency of a table."""
        fds = (member[2:] for member in self._members if member[:2] == ("fd", table))
        return [(lhs, rhs) for lhs, rhs in fds]


def _columns(dependency: Dependency) -> tuple[str, frozenset[str]]:
    return dependency.table, frozenset(dependency.columns)


NONE = DependencySet((), lambda table: "equal")
