"""Conditions on each row as SQL: for CHECK constraints and the expressions of tests.

In SQL as here NULL makes a test neither true nor false, so rows with it pass. What a database would not test
as it is meant has no SQL: `Untold` says why. Floats are compared with the float next to a constant, and times
may lose digits, so values that differ may become equal: that does no harm to `>=` and `<=`, by which what
holds here holds there.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from holdfast.app.export.sql import DialectName, spelling_of, sql_type
from holdfast.app.report.texts import name_text
from holdfast.core.words.condition import Absent, Among, Compared, Constant, Every, Like, Node, Not, Some
from holdfast.core.words.schema import NUMBERS, Schema, Type

_ESCAPES = re.compile(r"(?:[^\\]|\\[%_\\])*", re.DOTALL)


class Untold(Exception):
    """Why a condition cannot be said in a dialect."""


@dataclass
class ConditionSql:
    """Conditions of one table in a dialect; `names` are the columns as SQL has them."""

    schema: Schema
    names: Mapping[str, str]
    dialect: DialectName
    remarks: set[str] = field(default_factory=set)  # what else is to be said of what was written

    def written(self, node: Node, *, negated: bool = False) -> str:
        """A condition as SQL; `Untold` if there is none."""
        match node:
            case Compared(column, op, _, partner) if partner is not None:
                self._check(column, op, negated, partner=partner)
                return f"{self._ordered(column, op)} {_sql(op)} {self.names[partner]}"
            case Compared(column, op, constant):
                self._check(column, op, negated, constants=(constant,))
                return f"{self._ordered(column, op)} {_sql(op)} {self._constant(column, constant)}"
            case Among(column, constants):
                self._check(column, "=", negated, constants=constants)
                return f"{self.names[column]} IN ({', '.join(self._constant(column, c) for c in constants)})"
            case Absent(column):
                return f"{self.names[column]} IS NULL"
            case Like(column, pattern, regex):
                return self._like(self.names[column], pattern, regex=regex)
            case Not(Absent(column)):
                return f"{self.names[column]} IS NOT NULL"
            case Not(part):
                return f"NOT ({self.written(part, negated=not negated)})"
            case Every(parts):
                return " AND ".join(f"({self.written(part, negated=negated)})" for part in parts)
            case Some(parts):
                return " OR ".join(f"({self.written(part, negated=negated)})" for part in parts)

    def _type(self, column: str) -> Type:
        return self.schema.types[self.schema.places[column]]

    def _check(
        self,
        column: str,
        op: str,
        negated: bool,
        *,
        partner: str | None = None,
        constants: tuple[Constant | None, ...] = (),
    ) -> None:
        """`Untold` where a database compares otherwise."""
        title = spelling_of(self.dialect).title
        harmless = op in ("<=", ">=") and not negated
        columns = [column, *([partner] if partner is not None else [])]
        types = [self._type(c) for c in columns]
        for name, type_ in zip(columns, types, strict=True):
            written, remark = sql_type(type_, self.dialect)
            if remark and (type_.family in NUMBERS or not harmless):
                raise Untold(f"{name_text(name)} is {written}: {remark}")
        families = {type_.family for type_ in types}
        floats = "float" in families and (len(families) > 1 or not all(map(_is_float, constants)))
        if floats and not harmless:
            raise Untold(
                f"{title} compares {name_text(column)} as floats, so values that differ may be equal"
            )
        if floats:
            self.remarks.add("compared as floats")
        if op not in ("=", "!=") and families == {"text"} and self.dialect == "ansi":
            raise Untold("the order of texts is that of the database's collation")

    def _ordered(self, column: str, op: str) -> str:
        collate = op not in ("=", "!=") and self._type(column).family == "text" and self.dialect == "postgres"
        # Code points, as here.
        return f'{self.names[column]} COLLATE "C"' if collate else self.names[column]

    def _like(self, name: str, pattern: str, *, regex: bool) -> str:
        if regex:
            if self.dialect != "duckdb":
                title = spelling_of(self.dialect).title
                raise Untold(f"regular expressions of {title} are of another kind")
            return f"regexp_matches({name}, {literal(f'^(?:{pattern})$')})"
        if not _ESCAPES.fullmatch(pattern):
            raise Untold("its pattern has a backslash that escapes nothing")
        return f"{name} LIKE {literal(pattern)}" + (" ESCAPE '\\'" if "\\" in pattern else "")

    def _constant(self, column: str, constant: Constant | None) -> str:
        if isinstance(constant, bool):
            return "TRUE" if constant else "FALSE"
        if isinstance(constant, Decimal):
            return f"{constant:f}"
        if isinstance(constant, dt.datetime):
            text = literal(constant.isoformat(sep=" "))
            zone = self._type(column).utc
            return f"CAST({text} AS TIMESTAMP WITH TIME ZONE)" if zone else f"TIMESTAMP {text}"
        if isinstance(constant, dt.date):
            return f"DATE {literal(constant.isoformat())}"
        if isinstance(constant, dt.time):
            return f"TIME {literal(constant.isoformat())}"
        return literal(constant or "")


def literal(text: str) -> str:
    r"""
    >>> print(literal("it's"))
    'it''s'
    """
    if "\0" in text:
        raise Untold("a text of SQL has no NUL in it")
    return "'" + text.replace("'", "''") + "'"


def _sql(op: str) -> str:
    return "<>" if op == "!=" else op


def _is_float(constant: Constant | None) -> bool:
    """Whether a float is exactly this number.

    >>> _is_float(Decimal("0.5")), _is_float(Decimal("0.1")), _is_float(Decimal("1e999"))
    (True, False, False)
    """
    return not isinstance(constant, Decimal) or Decimal(float(constant)) == constant
