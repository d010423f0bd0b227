"""Row rules: two columns of the same row compared, such as `ship_date >= order_date`.

A row has one of four *outcomes* in a pair of columns: less, equal, greater, or NULL on a side. A rule is
violated by rows with both values of which its operator is not true; a row with a NULL neither satisfies nor
violates it, as in a CHECK constraint. Columns compare if their types do (`comparison`):

| left and right | operators |
|---|---|
| numbers (int, uint, float, decimals of at most 18 digits), of whatever types: exactly, by value | six |
| dates; times; timestamps, both with or both without a time zone | six |
| text, binary, bool, wider decimals: of one and the same type | `=` and `!=` |

NaN equals NaN and is greater than all other numbers; -0.0 equals 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, NoReturn

from holdfast.core.words.codec import Coded
from holdfast.core.words.predicate import SYMMETRIC, Operator, written_name
from holdfast.core.words.rule_text import (
    NAME_PATTERN,
    QUOTED_PATTERN,
    RuleReader,
    place_in,
    pointed_at,
    rule_error,
)
from holdfast.core.words.schema import MAX_EXACT_DIGITS, Schema, Type
from holdfast.core.words.sentences import display_name
from holdfast.errors import UnknownColumnError

Comparison = Literal["order", "equality"]

_SAID: Mapping[Operator, str] = {
    "=": "equals",
    "!=": "differs from",
    "<": "is less than",
    "<=": "is at most",
    ">": "is greater than",
    ">=": "is at least",
}
_SAID_OF_TIMES: Mapping[Operator, str] = {
    "=": "is",
    "!=": "is not",
    "<": "is before",
    "<=": "is not after",
    ">": "is after",
    ">=": "is not before",
}
_TIMES = ("date", "time", "timestamp")
_NUMBERS = ("int", "uint", "float", "decimal")
_FRACTION_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_NOT = re.compile(r"\s*(¬|not\s*\()", re.IGNORECASE)
_EXAMPLE = "ship_date >= order_date"


@dataclass(frozen=True, slots=True, order=True)
class RowRule(Coded):
    """`left op right` of every row that has both values.

    `error` is the share of the table's rows that violate it (0 when it holds), `n_exceptions` counts them;
    `n_compared` counts the rows with both values. `apart`: all values of one column are less than all of the
    other, so that the rule says little about rows.

    >>> rule = RowRule("orders", "ship date", ">=", "order_date", 0.01, 2, 200)
    >>> str(rule), rule.mirrored.formula, rule.sentence
    ('orders: "ship date" >= order_date', 'order_date <= "ship date"', '"ship date" is at least order_date')
    """

    kind: ClassVar[str] = "row"
    table: str
    left: str
    op: Operator
    right: str
    error: float = field(default=0.0, compare=False)
    n_exceptions: int = field(default=0, compare=False)
    n_compared: int = field(default=0, compare=False)
    apart: bool = field(default=False, compare=False)

    @property
    def columns(self) -> tuple[str, str]:
        return self.left, self.right

    @property
    def name(self) -> str:
        return self.formula

    @property
    def formula(self) -> str:
        """The rule without its table: `parse_row_rule` reads it."""
        return f"{written_name(self.left)} {self.op} {written_name(self.right)}"

    @property
    def sentence(self) -> str:
        return self.said(times=False)

    def said(self, *, times: bool) -> str:
        """The rule in English; of points in time "is not before" where it "is at least" of numbers.

        >>> RowRule("orders", "shipped", ">=", "ordered").said(times=True)
        'shipped is not before ordered'
        """
        relation = (_SAID_OF_TIMES if times else _SAID)[self.op]
        return f"{display_name(self.left)} {relation} {display_name(self.right)}"

    @property
    def mirrored(self) -> RowRule:
        """The same rule with its columns exchanged."""
        return replace(self, left=self.right, op=SYMMETRIC[self.op], right=self.left)

    def __str__(self) -> str:
        return f"{self.table}: {self.formula}" if self.table else self.formula


# -- which columns compare ----------------------------------------------------------------------


def comparison(left: Type, right: Type) -> Comparison | None:
    """How columns of these types compare with each other; None if they do not.

    >>> comparison(Type("int"), Type("decimal", 12, 2)), comparison(Type("text"), Type("text"))
    ('order', 'equality')
    >>> comparison(Type("date"), Type("timestamp", unit="us")) is None
    True
    """
    if left.hashed or right.hashed or left.family == "bool":
        return "equality" if left == right else None
    if left == right:
        return "order"
    if left.family in _NUMBERS and right.family in _NUMBERS:
        return "order" if fitting_scale(left) and fitting_scale(right) else None
    same = left.family == right.family and left.family in _TIMES and left.utc == right.utc
    return "order" if same else None


def fraction_digits(type_: Type) -> int:
    """How many digits of the integers behind the values are behind the point; 0 of floats.

    >>> fraction_digits(Type("decimal", 12, 2)), fraction_digits(Type("timestamp", unit="ms"))
    (2, 3)
    """
    return _FRACTION_DIGITS[type_.unit] if type_.unit else type_.scale


def fitting_scale(type_: Type) -> bool:
    """Whether a number compares with those of other types: Arrow lets a point stand anywhere."""
    return 0 <= type_.scale <= MAX_EXACT_DIGITS


def are_times(schema: Schema, rule: RowRule) -> bool:
    """Whether the rule is about points in time."""
    position = schema.position(rule.left)
    return position is not None and schema.types[position].family in _TIMES


# -- rules as people write them -----------------------------------------------------------------


def parse_row_rule(text: str, schema: Schema, *, table: str = "", version: int | None = None) -> RowRule:
    """A row rule as it is written: `column operator column`, with names and operators as in `rule_text`.

    UsageError if the text is no row rule, or one whose columns do not compare so; UnknownColumnError if it
    names a column that the table does not have. Both show the place. Law: `parse_row_rule(rule.formula, ...)`
    gives the rule.

    >>> from holdfast.core.words.schema import Column
    >>> columns = Column("low", Type("int")), Column("high way", Type("float")), Column("a", Type("text"))
    >>> schema = Schema(columns)
    >>> parse_row_rule('"high way" ≥ low', schema).formula
    '"high way" >= low'
    >>> parse_row_rule("low <= a", schema)
    Traceback (most recent call last):
    ...
    holdfast.errors.UsageError: at character 5 of the rule: low is int and a is text, which do not compare.
      low <= a
          ^
    """
    reader = _RowReader(text, schema.names, table, version)
    left, op, right, at = reader.row_rule()
    types = dict(zip(schema.names, schema.types, strict=True))
    how = comparison(types[left], types[right])
    if how is None:
        problem = f"{left} is {types[left]} and {right} is {types[right]}, which do not compare"
        raise rule_error(text, at, problem)
    if how == "equality" and op not in ("=", "!="):
        what = f"{left} and {right} are {types[left]}"
        raise rule_error(text, at, f"{what}, which has no order here: compare them with = or !=")
    return RowRule(table, left, op, right)


def is_row_rule(text: str) -> bool:
    """Whether a text is meant as a row rule, and not as `not(...)`, which is about two rows.

    >>> is_row_rule("net <= gross"), is_row_rule("not (t.net > s.gross)"), is_row_rule("not = gross")
    (True, False, True)
    """
    return _NOT.match(text) is None


class _RowReader(RuleReader):
    """Reads `column operator column`."""

    def row_rule(self) -> tuple[str, Operator, str, int]:
        """(left, op, right, position of the operator)."""
        if not is_row_rule(self.text):
            self.skip()
            self.fail(f"a row rule compares two columns of one row, such as {_EXAMPLE}; it has no 'not'")
        left, _ = self.own_column()
        self.skip()
        at = self.at
        op = self.operator()
        right, start = self.own_column()
        if left == right:
            self.fail(
                f"both sides are {written_name(left)}; a row rule compares two different columns", start
            )
        if self.peek():
            joined = self.peek().lower() in ("and", "or", "&", "&&", "|", "||", "∧", "\u2228", ",", ";")
            hint = "; write a rule for each comparison" if joined else ""
            self.fail(f"the rule ends with its second column{hint}; {self.found()}")
        return left, op, right, at

    def own_column(self) -> tuple[str, int]:
        """(name, where it starts)."""
        self.skip()
        start = self.at
        quoted, plain = QUOTED_PATTERN.match(self.text, start), NAME_PATTERN.match(self.text, start)
        if quoted is not None:
            name, self.at = quoted[1].replace('""', '"'), quoted.end()
        elif plain is not None:
            name, self.at = plain[0], plain.end()
        elif self.text.startswith('"', start):
            self.fail("a quote that is not closed; a quote inside a name is doubled")
        elif self.text.startswith("'", start):
            self.fail('constants are not supported, and names are put in double quotes, such as "zip code"')
        else:
            self.fail(f"expected the name of a column, such as in {_EXAMPLE}; {self.found()}")
        if name not in self.names:
            self.unknown(name, start, is_quoted=quoted is not None)
        self.name_before = name
        return name, start

    def unknown(self, name: str, start: int, *, is_quoted: bool) -> NoReturn:
        if not is_quoted and name[:2].lower() in ("t.", "s.") and name[2:] in self.names:
            self.fail(f"a row rule is about one row: write {written_name(name[2:])}", start)
        if not is_quoted and _is_constant(name):
            self.fail("constants are not supported: a row rule compares two columns", start)
        error = UnknownColumnError.from_missing(self.table, self.version, name, self.names)
        hint = f" {self.cut_short(name)}." if not is_quoted and self.cut_short(name) else ""
        where = f"It is at {place_in(self.text, start)} of the rule."
        raise UnknownColumnError(f"{error}{hint} {where}\n{pointed_at(self.text, start)}")

    def fail_behind_column(self, expected: str) -> NoReturn:
        if self.peek() in ("+", "-", "*", "/", "%"):
            self.fail("calculations are not supported: a row rule compares two columns")
        hint = self.cut_short(self.name_before)
        self.fail(f"{expected}; {self.found()}{'. ' if hint else ''}{hint}")


def _is_constant(text: str) -> bool:
    """
    >>> _is_constant("12.5"), _is_constant("null"), _is_constant("zip")
    (True, True, False)
    """
    return text.lower() in ("null", "true", "false") or text.lstrip("-+.")[:1].isdigit()
