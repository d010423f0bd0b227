"""Denial constraints: what no two rows of a table may satisfy together (IncDC, section 3).

A *predicate* compares a column of one row with a column of another: `t.left op s.right`. A *denial
constraint* (DC) is a set of predicates that no pair of different rows satisfies together. A *group* is a
pair of columns that may be compared; two rows have one of four *outcomes* in it, and the outcome decides
all of the group's predicates at once:

| outcome | of an ordered group: satisfied | else |
|---|---|---|
| 0: less | `!=` `<` `<=` | `!=` |
| 1: equal, or NULL on both sides | `=` `<=` `>=` | `=` |
| 2: greater | `!=` `>` `>=` | `!=` |
| 3: NULL on one side | `!=` | `!=` |

What follows from what is read off this table, so NULL needs no rule of its own. Outcome 3 is where we depart
from the paper: there, one of `<` and `>=` always holds.

Sets of predicates are masks (Python integers; bit i is predicate i of a `PredicateSpace`) or tuples.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from holdfast.core.words.codec import Coded
from holdfast.core.words.dependency import Fd

Operator = Literal["=", "!=", "<", "<=", ">", ">="]

# The order is that of the bits in a group; a group without order has the first two.
OPERATORS: tuple[Operator, ...] = ("=", "!=", "<", "<=", ">", ">=")
# Table 4 of the paper. `t.a op s.b` is `s.b SYMMETRIC[op] t.a`.
INVERSE: Mapping[Operator, Operator] = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
SYMMETRIC: Mapping[Operator, Operator] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
IMPLIED: Mapping[Operator, tuple[Operator, ...]] = {
    "=": ("=", "<=", ">="),
    "!=": ("!=",),
    "<": ("!=", "<", "<="),
    "<=": ("<=",),
    ">": ("!=", ">", ">="),
    ">=": (">=",),
}

_BIT: Mapping[Operator, int] = {op: 1 << i for i, op in enumerate(OPERATORS)}
_ALL, _UNORDERED = 0b111111, 0b11
# The predicates of a group that each outcome satisfies.
OUTCOMES: tuple[int, ...] = (
    _BIT["!="] | _BIT["<"] | _BIT["<="],
    _BIT["="] | _BIT["<="] | _BIT[">="],
    _BIT["!="] | _BIT[">"] | _BIT[">="],
    _BIT["!="],
)


def _implied(state: int) -> int:
    """The predicates that every outcome satisfies that satisfies those of `state`."""
    implied = _ALL
    for outcome in OUTCOMES:
        if state & ~outcome == 0:
            implied &= outcome
    return implied


# By the chosen predicates of one group: is there no outcome for them; which ones follow from them; which one
# says the same as all of them. There always is one: six sets of outcomes can be told, and six operators.
_TRIVIAL = tuple(all(state & ~outcome for outcome in OUTCOMES) for state in range(64))
_IMPLIED = tuple(_implied(state) for state in range(64))
_SAME_AS: Mapping[int, Operator] = {_IMPLIED[bit]: op for op, bit in _BIT.items()}


# Characters that end a name without quotes: white space, and what a rule is written with.
_NAME_ENDS = r"""\s()"'<>=!≤≥≠∧¬&|,;+*""" + "\u2228"  # the last one is a logical or
NAME_PATTERN = re.compile(f"[^{_NAME_ENDS}]+")


@dataclass(frozen=True, slots=True, order=True)
class Predicate(Coded):
    """`t.left op s.right`, for two different rows t and s.

    >>> str(Predicate("low", "<", "high")), str(Predicate("low", "<", "high").mirrored)
    ('t.low < s.high', 't.high > s.low')
    """

    left: str
    op: Operator
    right: str

    @property
    def mirrored(self) -> Predicate:
        """The predicate that (s, t) satisfies iff (t, s) satisfies this one."""
        return Predicate(self.right, SYMMETRIC[self.op], self.left)

    @property
    def inverse(self) -> Predicate:
        """The opposite: no pair satisfies both, and every pair one of them if neither side is NULL.

        With NULL on one side neither `<` nor `>=` holds; `=` and `!=` are always opposites.
        """
        return Predicate(self.left, INVERSE[self.op], self.right)

    def __str__(self) -> str:
        return f"t.{written_name(self.left)} {self.op} s.{written_name(self.right)}"


def written_name(name: str) -> str:
    """A column's name as rules have it: in double quotes where it must be, a quote inside doubled.

    >>> written_name("zip"), written_name("zip code"), written_name('5" disk')
    ('zip', '"zip code"', '"5"" disk"')
    """
    return name if NAME_PATTERN.fullmatch(name) else '"{}"'.format(name.replace('"', '""'))


@dataclass(frozen=True, slots=True, order=True)
class Dc(Coded):
    """A denial constraint: no two different rows t, s satisfy all of its predicates.

    Without predicates it holds in a table of at most one row. `error` is the share of the ordered pairs of
    rows that violate it (0 when it holds).

    >>> dc = Dc("tax", (Predicate("zip", "=", "zip"), Predicate("state", "!=", "state")))
    >>> str(dc)
    'tax: not(t.zip = s.zip and t.state != s.state)'
    """

    kind: ClassVar[str] = "dc"
    table: str
    predicates: tuple[Predicate, ...]
    error: float = field(default=0.0, compare=False)

    @property
    def name(self) -> str:
        return self.formula

    @property
    def formula(self) -> str:
        """The constraint without its table."""
        return f"not({' and '.join(map(str, self.predicates))})"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is about, each once."""
        return tuple(dict.fromkeys(name for p in self.predicates for name in (p.left, p.right)))

    @property
    def mirrored(self) -> Dc:
        """The symmetric constraint, t and s exchanged: it holds iff this one does."""
        return Dc(self.table, tuple(p.mirrored for p in self.predicates), self.error)

    def __str__(self) -> str:
        return f"{self.table}: {self.formula}" if self.table else self.formula


@dataclass(frozen=True, slots=True, order=True)
class Group(Coded):
    """Two columns that are compared: `t.left op s.right` with six operators, or two if not `ordered`."""

    left: str
    right: str
    ordered: bool

    @property
    def operators(self) -> tuple[Operator, ...]:
        return OPERATORS if self.ordered else OPERATORS[:2]


@dataclass(frozen=True, slots=True)
class PredicateSpace:
    """All predicates of some groups, numbered: group g has the numbers from first[g] on.

    With a group (A, B) there is (B, A), so that the space is closed under exchanging t and s: `mirror[i]` is
    the number of predicate i's symmetric one. Masks are Python integers of `n_predicates` bits.

    >>> space = PredicateSpace((Group("a", "a", ordered=True), Group("b", "b", ordered=False)))
    >>> space.n_predicates, space.first
    (8, (0, 6))
    >>> mask = space.mask([Predicate("a", ">", "a"), Predicate("b", "!=", "b")])
    >>> bin(mask), bin(space.mirrored(mask))
    ('0b10010000', '0b10000100')
    """

    groups: tuple[Group, ...]
    predicates: tuple[Predicate, ...] = field(init=False, repr=False, compare=False)
    first: tuple[int, ...] = field(init=False, repr=False, compare=False)
    group_of: tuple[int, ...] = field(init=False, repr=False, compare=False)
    op_of: tuple[int, ...] = field(init=False, repr=False, compare=False)  # position in OPERATORS
    mirror: tuple[int, ...] = field(init=False, repr=False, compare=False)
    _numbers: dict[Predicate, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ordered = {(g.left, g.right): g.ordered for g in self.groups}
        if len(ordered) < len(self.groups):
            raise ValueError("a predicate space has a group twice")
        for group in self.groups:
            if ordered.get((group.right, group.left)) != group.ordered:
                raise ValueError(f"a predicate space with {group} lacks its mirror image")
        first, group_of, op_of = [], [], []
        predicates: list[Predicate] = []
        for number, group in enumerate(self.groups):
            first.append(len(predicates))
            for i, op in enumerate(group.operators):
                predicates.append(Predicate(group.left, op, group.right))
                group_of.append(number)
                op_of.append(i)
        numbers = {p: i for i, p in enumerate(predicates)}
        # Frozen, and asked for all the time: worked out once.
        object.__setattr__(self, "predicates", tuple(predicates))
        object.__setattr__(self, "first", tuple(first))
        object.__setattr__(self, "group_of", tuple(group_of))
        object.__setattr__(self, "op_of", tuple(op_of))
        object.__setattr__(self, "mirror", tuple(numbers[p.mirrored] for p in predicates))
        object.__setattr__(self, "_numbers", numbers)

    @property
    def n_predicates(self) -> int:
        return len(self.predicates)

    @property
    def n_comparisons(self) -> int:
        """The predicates, those of two columns counted once: `t.a = s.b` is `t.b = s.a` for (s, t)."""
        return sum(len(g.operators) for g in self.groups if g.left <= g.right)

    def __contains__(self, predicate: object) -> bool:
        return predicate in self._numbers

    def number(self, predicate: Predicate) -> int:
        """The number of a predicate; KeyError if the space does not have it."""
        return self._numbers[predicate]

    def mask(self, predicates: Iterable[Predicate]) -> int:
        mask = 0
        for predicate in predicates:
            mask |= 1 << self._numbers[predicate]
        return mask

    def predicates_of(self, mask: int) -> tuple[Predicate, ...]:
        """The predicates of a mask, in the order of their numbers."""
        return tuple(self.predicates[i] for i in numbers_of(mask))

    def dc(self, table: str, mask: int, error: float = 0.0) -> Dc:
        return Dc(table, self.predicates_of(mask), error)

    def evidence(self, outcomes: Sequence[int]) -> int:
        """The mask of what a pair satisfies that has these outcomes, one for each group."""
        mask = 0
        for group, first, outcome in zip(self.groups, self.first, outcomes, strict=True):
            mask |= (OUTCOMES[outcome] & (_ALL if group.ordered else _UNORDERED)) << first
        return mask

    def mirrored(self, mask: int) -> int:
        """t and s exchanged: the evidence of (s, t) from that of (t, s), the symmetric DC of a DC."""
        exchanged = 0
        for i in numbers_of(mask):
            exchanged |= 1 << self.mirror[i]
        return exchanged

    def closure(self, mask: int) -> int:
        """The predicates that follow from those of each group, themselves among them.

        All of a group's predicates follow from those that no outcome satisfies.
        """
        closed = 0
        for group, first in zip(self.groups, self.first, strict=True):
            of_group = _ALL if group.ordered else _UNORDERED
            closed |= (_IMPLIED[mask >> first & of_group] & of_group) << first
        return closed

    def to_dict(self) -> list[dict[str, Any]]:
        return [g.to_dict() for g in self.groups]

    @classmethod
    def from_dict(cls, groups: Iterable[Mapping[str, Any]]) -> PredicateSpace:
        return cls(tuple(Group.from_dict(g) for g in groups))


def numbers_of(mask: int) -> tuple[int, ...]:
    """The numbers of a mask's bits, ascending.

    >>> numbers_of(0b10110)
    (1, 2, 4)
    """
    numbers = []
    while mask:
        lowest = mask & -mask
        numbers.append(lowest.bit_length() - 1)
        mask ^= lowest
    return tuple(numbers)


# -- what constraints say about each other --------------------------------------------------------


def _grouped(predicates: Iterable[Predicate]) -> dict[tuple[str, str], int]:
    """Groups, in the order of their first predicates, with their predicates as bits.

    Whether a group is ordered makes no difference to what follows from what.
    """
    states: dict[tuple[str, str], int] = {}
    for p in predicates:
        states[p.left, p.right] = states.get((p.left, p.right), 0) | _BIT[p.op]
    return states


def is_trivial(predicates: Iterable[Predicate]) -> bool:
    """Whether no pair of rows of any table can satisfy the predicates, for a reason within a group.

    Hereditary: what contains a trivial set is trivial.

    >>> is_trivial([Predicate("a", "<", "a"), Predicate("a", ">", "a")])
    True
    """
    return contradiction(predicates) is not None


def contradiction(predicates: Iterable[Predicate]) -> tuple[str, str] | None:
    """The first two columns whose comparisons no pair of rows satisfies together, if there are any."""
    trivial = (columns for columns, state in _grouped(predicates).items() if _TRIVIAL[state])
    return next(trivial, None)


def same_rule(first: Iterable[Predicate], second: Iterable[Predicate]) -> bool:
    """Whether two rules have the same predicates, in whatever order, or with t and s exchanged."""
    predicates = set(second)
    return set(first) in (predicates, {p.mirrored for p in predicates})


def reduced(predicates: Iterable[Predicate]) -> tuple[Predicate, ...]:
    """The same, said with one predicate for each group; ValueError if it is trivial.

    >>> [str(p) for p in reduced([Predicate("a", "<=", "b"), Predicate("a", "!=", "b")])]
    ['t.a < s.b']
    """
    states = _grouped(predicates)
    if any(_TRIVIAL[state] for state in states.values()):
        raise ValueError("a trivial constraint cannot be reduced")
    return tuple(Predicate(a, _SAME_AS[_IMPLIED[state]], b) for (a, b), state in states.items())


def as_key(dc: Dc) -> tuple[str, ...] | None:
    """The columns, if the constraint says that they are a key: only `=`, of columns with themselves.

    As `as_fd` it looks at what is said: `<=` and `>=` of one column together are `=`.

    >>> as_key(Dc("t", (Predicate("a", "=", "a"), Predicate("b", "=", "b"))))
    ('a', 'b')
    """
    columns = _same_and_differing(dc)
    return columns[0] if columns is not None and not columns[1] else None


def as_fd(dc: Dc) -> tuple[tuple[str, ...], str] | None:
    """(lhs, rhs), if the constraint is a functional dependency: `=` of columns with themselves and one `!=`.

    >>> as_fd(Dc("t", (Predicate("a", "=", "a"), Predicate("b", "!=", "b"))))
    (('a',), 'b')
    """
    columns = _same_and_differing(dc)
    return (columns[0], columns[1][0]) if columns is not None and len(columns[1]) == 1 else None


def as_dc(fd: Fd) -> Dc:
    """A functional dependency as the rule about two rows that it is where NULLs are equal.

    Law: `as_fd` gives it back, unless it holds in every table.

    >>> print(as_dc(Fd("t", ("a",), "b")))
    t: not(t.a = s.a and t.b != s.b)
    """
    same = [Predicate(c, "=", c) for c in fd.lhs]
    return Dc(fd.table, (*same, Predicate(fd.rhs, "!=", fd.rhs)), fd.error)


def _same_and_differing(dc: Dc) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """(columns with `=`, columns with `!=`), if there is nothing else and each is compared with itself."""
    if is_trivial(dc.predicates):
        return None
    predicates = reduced(dc.predicates)
    if any(p.left != p.right or p.op not in ("=", "!=") for p in predicates):
        return None
    return tuple(p.left for p in predicates if p.op == "="), tuple(p.left for p in predicates if p.op == "!=")
