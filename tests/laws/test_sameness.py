"""Dependencies that say the same hold in the same tables; however a rule is written, it is the same."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.words.condition import Condition
from holdfast.core.words.dependency import Dependency, Fd, Ind, Side, Ucc
from holdfast.core.words.predicate import IMPLIED, OPERATORS, OUTCOMES, Dc, Predicate, is_trivial
from holdfast.core.words.row_rule import RowRule
from holdfast.core.words.sameness import NONE, DependencySet, identity, said
from holdfast.kind import entries

NAMES = ("a", "b", "c")
Row = tuple[int | None, ...]
names = st.sampled_from(NAMES)
operators = st.sampled_from(OPERATORS)
predicates = st.builds(Predicate, names, operators, names)
# Of one column with itself more often than by chance: then a rule may be a key, or a functional dependency.
often: st.SearchStrategy[Any] = st.sampled_from(("=", "=", "!=", "<=", ">="))
plain = st.builds(lambda name, op: Predicate(name, op, name), names, often)
written = st.lists(plain | predicates, min_size=1, max_size=3)
rules = st.builds(lambda ps: Dc("t", tuple(dict.fromkeys(ps))), written)
fds = st.builds(lambda left, right: Fd("t", tuple(sorted(left)), right), st.sets(names, max_size=2), names)
keys = st.builds(lambda columns: Ucc("t", tuple(sorted(columns))), st.sets(names, min_size=1, max_size=3))
rows = st.lists(st.tuples(*[st.none() | st.integers(0, 2)] * 3), max_size=5)


def compares(left: int | None, right: int | None) -> int:
    """The outcome of two values of two rows."""
    if (left is None) != (right is None):
        return 3
    if left is None or right is None or left == right:
        return 1
    return 0 if left < right else 2


def satisfied(predicate: Predicate, t: Row, s: Row) -> bool:
    outcome = compares(t[NAMES.index(predicate.left)], s[NAMES.index(predicate.right)])
    return bool(OUTCOMES[outcome] >> OPERATORS.index(predicate.op) & 1)


def holds(dependency: Dependency, table: list[Row]) -> bool:
    """By the definition, NULLs being equal."""

    def of(row: Row, columns: tuple[str, ...]) -> Row:
        return tuple(row[NAMES.index(c)] for c in columns)

    pairs = list(permutations(table, 2))
    match dependency:
        case Ucc(columns=columns):
            return all(of(t, columns) != of(s, columns) for t, s in pairs)
        case Fd(lhs=lhs, rhs=rhs):
            return all(of(t, (rhs,)) == of(s, (rhs,)) for t, s in pairs if of(t, lhs) == of(s, lhs))
        case Dc():
            return not any(all(satisfied(p, t, s) for p in dependency.predicates) for t, s in pairs)
    raise AssertionError(dependency)


@given(rules | fds | keys, rules | fds | keys, rows)
def test_what_says_the_same_holds_in_the_same_tables(
    one: Dependency, other: Dependency, table: list[Row]
) -> None:
    if identity(one) == identity(other):
        assert holds(one, table) == holds(other, table)
        assert {*one.columns} == {*other.columns}  # by which it is looked up


def forms(dc: Dc) -> Iterator[Dc]:
    for predicates in permutations(dc.predicates):
        yield Dc("t", predicates)
        yield Dc("t", predicates).mirrored
        # What follows from a predicate may be said with it.
        first = predicates[0]
        more = tuple(Predicate(first.left, op, first.right) for op in IMPLIED[first.op])
        yield Dc("t", tuple(dict.fromkeys([*predicates, *more])))


@given(rules, st.sampled_from(("equal", "distinct")))
def test_however_a_rule_is_written(rule: Dc, nulls: Any) -> None:
    members = DependencySet([rule], lambda _: nulls)
    assert rule in members
    for form in () if is_trivial(rule.predicates) else forms(rule):
        assert identity(form, nulls) == identity(rule, nulls)
        assert form in members
    assert rule not in NONE
    assert Dc("u", rule.predicates) not in members


@given(fds)
def test_keys_and_functional_dependencies_as_rules(fd: Fd) -> None:
    if fd.rhs in fd.lhs:
        return
    same = tuple(Predicate(c, "=", c) for c in fd.lhs)
    rule = Dc("t", (Predicate(fd.rhs, "!=", fd.rhs), *same))
    assert identity(rule) == identity(fd)
    assert identity(rule, "distinct") != identity(fd, "distinct")  # two NULLs differ there, and not in a rule
    assert identity(Dc("t", same)) == identity(Ucc("t", fd.lhs))


@given(names, operators, names)
def test_row_rules_and_conditions(left: str, op: Any, right: str) -> None:
    if left == right:
        return
    rule = RowRule("t", left, op, right)
    mirrored = rule.mirrored
    for other in (mirrored, *(Condition("t", r.formula, r.columns) for r in (rule, mirrored))):
        assert identity(other) == identity(rule)
    others = [RowRule("t", left, other, right) for other in OPERATORS if other != op]
    assert all(identity(other) != identity(rule) for other in others)


def test_inclusions_of_several_columns() -> None:
    one = Ind(Side("t", ("a", "b")), Side("u", ("x", "y")))
    assert identity(one) == identity(Ind(Side("t", ("b", "a")), Side("u", ("y", "x"))))
    assert identity(one) != identity(Ind(Side("t", ("a", "b")), Side("u", ("y", "x"))))


@given(rules | fds | keys | st.builds(RowRule, st.just("t"), st.just("a"), operators, st.just("b")))
def test_what_is_said_reads_back(dependency: Any) -> None:
    read = entries()[dependency.kind].dependency.from_dict(said(dependency))
    assert read == dependency
    assert "error" not in said(dependency)
