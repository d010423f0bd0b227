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
from holdfast.core.words.rule_text import RuleReader, rule_error
from holdfast.core.words.schema import FRACTION_DIGITS, MAX_EXACT_DIGITS, NUMBERS, Schema, Type
from holdfast.core.words.sentences import RELATIONS, display_name

Comparison = Literal["order", "equality"]

_RELATIONS_OF_TIMES: Mapping[Operator, str] = {
    "=": "is",
    "!=": "is not",
    "<": "is before",
    "<=": "is not after",
    ">": "is after",
    ">=": "is not before",
}
_TIMES = ("date", "time", "timestamp")
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
        relation = (_RELATIONS_OF_TIMES if times else RELATIONS)[self.op]
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
    if left.family in NUMBERS and right.family in NUMBERS:
        return "order" if fitting_scale(left) and fitting_scale(right) else None
    same = left.family == right.family and left.family in _TIMES and left.utc == right.utc
    return "order" if same else None


def fraction_digits(type_: Type) -> int:
    """How many digits of the integers behind the values are behind the point; 0 of floats.

    >>> fraction_digits(Type("decimal", 12, 2)), fraction_digits(Type("timestamp", unit="ms"))
    (2, 3)
    """
    return FRACTION_DIGITS[type_.unit] if type_.unit else type_.scale


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

    compares = "a row rule compares two columns"

    def row_rule(self) -> tuple[str, Operator, str, int]:
        """(left, op, right, position of the operator)."""
        if not is_row_rule(self.text):
            self.skip()
            self.fail(f"a row rule compares two columns of one row, such as {_EXAMPLE}; it has no 'not'")
        left = self.column_alone()
        self.skip()
        at = self.at
        op = self.operator()
        self.skip()
        start = self.at
        right = self.column_alone()
        if left == right:
            self.fail(
                f"both sides are {written_name(left)}; a row rule compares two different columns", start
            )
        if self.peek():
            joined = self.peek().lower() in ("and", "or", "&", "&&", "|", "||", "∧", "\u2228", ",", ";")
            hint = "; write a rule for each comparison" if joined else ""
            self.fail(f"the rule ends with its second column{hint}; {self.next_piece()}")
        return left, op, right, at

    def column_alone(self) -> str:
        """The name of a column, without a row."""
        return self.column_name(
            'constants are not supported, and names are put in double quotes, such as "zip code"',
            f"expected the name of a column, such as in {_EXAMPLE}",
        )

    def fail_at_unknown(self, name: str, start: int, *, is_quoted: bool) -> NoReturn:
        if not is_quoted and name[:2].lower() in ("t.", "s.") and name[2:] in self.names:
            self.fail(f"a row rule is about one row: write {written_name(name[2:])}", start)
        if not is_quoted and _is_constant(name):
            self.fail(f"constants are not supported: {self.compares}", start)
        super().fail_at_unknown(name, start, is_quoted=is_quoted)


def _is_constant(text: str) -> bool:
    """
    >>> _is_constant("12.5"), _is_constant("null"), _is_constant("zip")
    (True, True, False)
    """
    return text.lower() in ("null", "true", "false") or text.lstrip("-+.")[:1].isdigit()
