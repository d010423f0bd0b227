"""Conditions: what each row has to keep, with constants: `quantity > 0`, `status in ('open', 'done')`.

    condition   all or all ...                      or, OR, |, ||, ∨
    all         one and one ...                     and, AND, &, &&, ∧
    one         not one, ( condition ), or a test of a column:
                  column operator value             = != < <= > >= and their other spellings
                  column [not] in (constant, ...)
                  column [not] between constant and constant
                  column is [not] null
                  column [not] like 'pattern'       % is any text, _ any character
                  column [not] matches 'regex'      the whole text; RE2's syntax
    value       a constant, or a column that it compares with (see `row_rule`)
    constant    12, -0.5, 1e3, true, false, 'text'; dates and times are written as texts: '2026-01-31'

Names are written as in `rule_text`, with `t.` in front or not. A row violates a condition if it is false: a
test of NULL is neither true nor false, as in SQL's CHECK, but for `is null`. Constants have the type of their
column. Numbers compare exactly, whatever their digits; NaN is greater than all other numbers. Texts are in
the order of their code points.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar

from holdfast.core.words.codec import Coded
from holdfast.core.words.predicate import Operator, written_name
from holdfast.core.words.row_rule import comparison
from holdfast.core.words.rule_text import RuleReader
from holdfast.core.words.schema import NUMBERS, Schema, Type

Constant = Decimal | str | bool | dt.date | dt.time | dt.datetime


@dataclass(frozen=True, slots=True)
class Compared:
    """column op value; the value is a constant, or the name of a column."""

    column: str
    op: Operator
    constant: Constant | None = None
    partner: str | None = None


@dataclass(frozen=True, slots=True)
class Among:
    """column in (constants)."""

    column: str
    constants: tuple[Constant, ...]


@dataclass(frozen=True, slots=True)
class Absent:
    """column is null."""

    column: str


@dataclass(frozen=True, slots=True)
class Like:
    """The whole text of a column is like a pattern: SQL's, or a regular expression."""

    column: str
    pattern: str
    regex: bool


@dataclass(frozen=True, slots=True)
class Not:
    part: Node


@dataclass(frozen=True, slots=True)
class Every:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Some:
    parts: tuple[Node, ...]


Node = Compared | Among | Absent | Like | Not | Every | Some


@dataclass(frozen=True, slots=True, order=True)
class Condition(Coded):
    """What each row of a table has to keep; `formula` is its text, written in one way.

    `error` is the share of rows that violate it, `n_exceptions` counts them.
    """

    kind: ClassVar[str] = "check"
    table: str
    formula: str
    columns: tuple[str, ...] = field(compare=False, default=())
    error: float = field(compare=False, default=0.0)
    n_exceptions: int = field(compare=False, default=0)

    @property
    def name(self) -> str:
        return self.formula

    def __str__(self) -> str:
        return f"{self.table}: {self.formula}" if self.table else self.formula


# -- as text -----------------------------------------------------------------------------------


def formula_of(node: Node) -> str:
    """The text of a condition. Law: what `read_condition` makes of it is the node.

    >>> formula_of(Not(Some((Compared("a", ">", Decimal(5)), Absent("b c")))))
    'not (a > 5 or "b c" is null)'
    """
    match node:
        case Compared(column, op, _, partner) if partner is not None:
            return f"{_named(column)} {op} {_named(partner)}"
        case Compared(column, op, constant):
            return f"{_named(column)} {op} {_written(constant)}"
        case Among(column, constants):
            return f"{_named(column)} in ({', '.join(map(_written, constants))})"
        case Absent(column):
            return f"{_named(column)} is null"
        case Like(column, pattern, regex):
            return f"{_named(column)} {'matches' if regex else 'like'} {_written(pattern)}"
        case Not(Absent(column)):
            return f"{_named(column)} is not null"
        case Not(Among(column, constants)):
            return f"{_named(column)} not in ({', '.join(map(_written, constants))})"
        case Not(Like(column, pattern, regex)):
            return f"{_named(column)} not {'matches' if regex else 'like'} {_written(pattern)}"
        case Not(part):
            return f"not {_inner(part)}"
        case Every(parts):
            return " and ".join(
                _inner(part) if isinstance(part, Some) else formula_of(part) for part in parts
            )
        case Some(parts):
            return " or ".join(map(formula_of, parts))


def _named(column: str) -> str:
    """A column's name as conditions have it.

    >>> _named("a"), _named("not"), _named("t.a"), _named("12")
    ('a', '"not"', '"t.a"', '"12"')
    """
    if column.lower() in _NOT or _OF_ROW.match(column) or _NUMBER.fullmatch(column):
        return '"{}"'.format(column.replace('"', '""'))
    return written_name(column)


def _inner(part: Node) -> str:
    return f"({formula_of(part)})" if isinstance(part, Every | Some | Compared) else formula_of(part)


def _written(constant: Constant | None) -> str:
    """
    >>> _written("it's"), _written(Decimal("1E+3")), _written(True), _written(dt.date(2026, 1, 31))
    ("'it''s'", '1000', 'true', "'2026-01-31'")
    """
    if isinstance(constant, bool):
        return "true" if constant else "false"
    if isinstance(constant, Decimal):
        return f"{constant:f}"
    text = constant if isinstance(constant, str) else constant.isoformat() if constant is not None else ""
    return "'" + text.replace("'", "''") + "'"


def columns_of(node: Node) -> tuple[str, ...]:
    """The columns of a condition, each once, in the order written."""
    return tuple(dict.fromkeys(_columns(node)))


def _columns(node: Node) -> Iterator[str]:
    match node:
        case Compared(column, _, _, partner):
            yield from (column,) if partner is None else (column, partner)
        case Among(column) | Absent(column) | Like(column):
            yield column
        case Not(part):
            yield from _columns(part)
        case Every(parts) | Some(parts):
            for part in parts:
                yield from _columns(part)


# -- reading -----------------------------------------------------------------------------------

_AND, _OR, _NOT = {"and", "&", "&&", "∧"}, {"or", "|", "||", "\u2228"}, {"not", "¬"}
_TEXT = re.compile(r"'((?:[^']|'')*)'")
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,3})?(?!\w)")
_WORD = re.compile(r"[^\W\d]\w*")
_OF_ROW = re.compile(r"[ts]\.", re.IGNORECASE)
_TESTS = ("in", "between", "like", "matches")
OTHER_ROW = re.compile(r"(?<![\w.\"])s\s*\.", re.IGNORECASE)
_SIGNS = re.compile(
    r"\bis\s+(not\s+)?(null|true|false)\b|\bnot\s+null\b|\b(in\s*\(|between\b|like\s*['\"]|matches\s*['\"])|'|[<>=!≤≥≠]",
    re.IGNORECASE,
)
_ALONE = re.compile(
    r'\s*(?:"(?:[^"]|"")*"|[^\s"\'()<>=!≤≥≠]+)\s*[<>=!≤≥≠]+\s*(?:"(?:[^"]|"")*"|[^\s"\'()<>=!≤≥≠\d.+-][^\s"\'()<>=!≤≥≠]*)\s*'
)


def is_condition(text: str) -> bool:
    """Whether a text is meant as a condition: a test of one row that is more than two columns compared.

    >>> texts = "a > 5", "a in ('x')", "b is not null", "not(t.a = 'x' and t.b < 0.5)", "a = b and c = d"
    >>> [is_condition(text) for text in (*texts, "a = null")]
    [True, True, True, True, True, True]
    >>> [is_condition(text) for text in ("a <= b", "not(t.a = s.a)", "a, b", "a -> b")]
    [False, False, False, False]
    """
    if OTHER_ROW.search(text) or "->" in text or _SIGNS.search(text) is None:
        return False
    alone = _ALONE.fullmatch(text)
    return alone is None or re.search(r"(?i)[<>=!≤≥≠]\s*(true|false|null)\s*$", text) is not None


def read_condition(text: str, schema: Schema, *, table: str = "", version: int | None = None) -> Node:
    """The condition that a text says. UsageError where it says none, UnknownColumnError where a column is
    not there; both show the place. Patterns are not looked at: see `asked_condition`.

    >>> from holdfast.core.words.schema import Column
    >>> schema = Schema((Column("a", Type("int")), Column("b", Type("text")), Column("c", Type("date"))))
    >>> formula_of(read_condition("NOT(t.a<5 AND b IN ('x','y'))", schema))
    "not (a < 5 and b in ('x', 'y'))"
    >>> formula_of(read_condition("c between '2026-01-01' and '2026-12-31' or c is null", schema))
    "c >= '2026-01-01' and c <= '2026-12-31' or c is null"
    >>> read_condition("a > 'x'", schema)
    Traceback (most recent call last):
    ...
    holdfast.errors.UsageError: at character 5 of the rule: 'a' is of type int; expected a number.
      a > 'x'
          ^
    """
    reader = ConditionReader(text, schema, table, version)
    node = reader.any()
    if reader.peek():
        reader.fail(f"expected 'and', 'or' or the end; {reader.next_piece()}")
    return node


class ConditionReader(RuleReader):
    """Reads conditions."""

    compares = "a condition compares a column with a constant, or with a column"

    def __init__(self, text: str, schema: Schema, table: str, version: int | None) -> None:
        super().__init__(text, schema.names, table, version)
        self.schema = schema

    def any(self) -> Node:
        parts = [self.all()]
        while self.peek().lower() in _OR:
            self.take()
            parts.append(self.all())
        return parts[0] if len(parts) == 1 else Some(tuple(_flat(parts, Some)))

    def all(self) -> Node:
        parts = [self.one()]
        while self.peek().lower() in _AND:
            self.take()
            parts.append(self.one())
        return parts[0] if len(parts) == 1 else Every(tuple(_flat(parts, Every)))

    def one(self) -> Node:
        sign = self.peek().lower()
        if sign in _NOT:
            self.take()
            if self.peek().lower() == "null" and self.peek() not in self.names:
                self.fail("a test for NULL stands behind its column, as in zip is not null")
            part = self.one()
            return part.part if isinstance(part, Not) else Not(part)
        if sign != "(":
            return self.test()
        opened = self.at
        self.take()
        node = self.any()
        if self.peek() != ")":
            self.fail(
                f"expected 'and', 'or' or ')' for the '(' at character {opened + 1}; {self.next_piece()}"
            )
        self.take()
        return node

    def test(self) -> Node:
        name = self.one_column()
        word = self.peek().lower()
        if word == "is":
            return self.absent(name)
        negated = word in _NOT
        if negated:
            self.take()
            word = self.peek().lower()
        if word not in _TESTS:
            if negated and word == "null":
                self.fail("a test for NULL has an 'is': write is not null")
            if negated:
                self.fail(f"expected 'in', 'between', 'like' or 'matches' behind 'not'; {self.next_piece()}")
            return self.compared(name)
        self.take()
        node: Node
        if word == "in":
            node = Among(name, self.constants(name))
        elif word == "between":
            low = self.constant(name)
            if self.peek().lower() not in _AND:
                self.fail(f"expected 'and' and the other end; {self.next_piece()}")
            self.take()
            node = Every((Compared(name, ">=", low), Compared(name, "<=", self.constant(name))))
        else:
            node = self.like(name, regex=word == "matches")
        return Not(node) if negated else node

    def absent(self, name: str) -> Node:
        self.take()
        negated = self.peek().lower() in _NOT
        if negated:
            self.take()
        word = self.peek().lower()
        if word in ("true", "false"):
            self.fail(f"write {written_name(name)} {'!=' if negated else '='} {word}; only NULL has an 'is'")
        if word != "null":
            self.fail(f"expected 'null' or 'not null' behind 'is'; {self.next_piece()}")
        self.take()
        return Not(Absent(name)) if negated else Absent(name)

    def compared(self, name: str) -> Node:
        self.skip()
        at = self.at
        op = self.operator()
        type_ = self.type_of(name)
        if not self.at_constant():
            at = self.at
            partner = self.one_column()
            how = comparison(type_, self.type_of(partner))
            if how is None or (how == "equality" and op not in ("=", "!=")):
                self.fail(
                    f"{self.with_type(name)} and {partner!r} of type {self.type_of(partner)}, which do not "
                    f"compare{'' if how is None else ' but by = and !='}",
                    at,
                )
            return Compared(name, op, partner=partner)
        if op not in ("=", "!=") and type_.family in ("bool", "binary"):
            self.fail(
                f"{self.with_type(name)}, whose values have no order; compare it by = or !=",
                at,
            )
        return Compared(name, op, self.constant(name))

    def like(self, name: str, *, regex: bool) -> Like:
        if self.type_of(name).family != "text":
            self.fail(f"{self.with_type(name)}, and only texts are like a pattern")
        pattern = self.quoted()
        if pattern is None:
            self.fail(f"expected a pattern in single quotes, such as '%@%'; {self.next_piece()}")
        return Like(name, pattern, regex)

    def constants(self, name: str) -> tuple[Constant, ...]:
        if self.peek() != "(":
            self.fail(f"expected '(' and constants behind 'in'; {self.next_piece()}")
        values = []
        while self.peek() in ("(", ","):
            self.take()
            values.append(self.constant(name))
        if self.peek() != ")":
            self.fail(f"expected ',' or ')'; {self.next_piece()}")
        self.take()
        return tuple(dict.fromkeys(values))

    def one_column(self) -> str:
        """A column, with `t.` in front or not."""
        self.skip()
        word = _WORD.match(self.text, self.at)
        if word is not None and word[0].lower() in ("t", "s") and self.text[word.end() :].lstrip()[:1] == ".":
            if word[0].lower() == "s":
                self.fail("a condition is about one row, t; a rule about two rows has no constants")
            self.at = self.text.index(".", word.end()) + 1
        return self.column_name(
            "a test begins with a column, such as quantity > 0", "expected the name of a column"
        )

    def with_type(self, name: str) -> str:
        """Of which type a column is, for messages."""
        table = f" of table {self.table!r}" if self.table else ""
        return f"{name!r}{table} is of type {self.type_of(name)}"

    def type_of(self, name: str) -> Type:
        return self.schema.types[self.schema.places[name]]

    def at_constant(self) -> bool:
        self.skip()
        word = self.peek().lower()
        quoted, number = _TEXT.match(self.text, self.at), _NUMBER.match(self.text, self.at)
        is_word = word in ("true", "false", "null") and word not in self.names
        return quoted is not None or number is not None or is_word

    def quoted(self) -> str | None:
        self.skip()
        quoted = _TEXT.match(self.text, self.at)
        if quoted is None:
            return None
        self.at = quoted.end()
        return quoted[1].replace("''", "'")

    def constant(self, name: str) -> Constant:
        """A constant of the type of a column."""
        self.skip()
        at, type_ = self.at, self.type_of(name)
        if self.peek().lower() == "null":
            self.fail(f"nothing equals NULL; write {written_name(name)} is null, or is not null")
        text = self.quoted()
        number = None if text is not None else _NUMBER.match(self.text, self.at)
        word = self.peek().lower() if text is None and number is None else ""
        if number is not None:
            self.at = number.end()
        elif word in ("true", "false"):
            self.take()
        try:
            if type_.family in NUMBERS and number is not None:
                return Decimal(number[0])
            if type_.family == "bool" and word in ("true", "false"):
                return word == "true"
            if text is not None:
                constant = _of_text(text, type_)
                if constant is not None:
                    return constant
        except ValueError:
            pass
        self.fail(
            f"{self.with_type(name)}; expected {_EXPECTED.get(type_.family, 'another type')}",
            at,
        )


_EXPECTED = {
    **dict.fromkeys(NUMBERS, "a number"),
    "bool": "true or false",
    "text": "a text in single quotes",
    "date": "a date in single quotes, such as '2026-01-31'",
    "time": "a time in single quotes, such as '18:30'",
    "timestamp": "a point in time in single quotes, such as '2026-01-31 18:30'",
    "binary": "no test but is null",
}


def _of_text(text: str, type_: Type) -> Constant | None:
    """ValueError if the text is no value of the type; None if a text never is."""
    match type_.family:
        case "text":
            return text
        case "date":
            return dt.date.fromisoformat(text)
        case "time":
            return dt.time.fromisoformat(text)
        case "timestamp":
            at = dt.datetime.fromisoformat(text)
            if at.tzinfo is None:
                return at.replace(tzinfo=dt.UTC) if type_.utc else at
            if not type_.utc:
                raise ValueError("a clock has no time zone")
            return at.astimezone(dt.UTC)
    return None


def _flat(parts: list[Node], kind: type[Every] | type[Some]) -> Iterator[Node]:
    for part in parts:
        if isinstance(part, kind):
            yield from part.parts
        else:
            yield part
