"""What somebody wants to rely on, and on which terms: tolerance, severity, reason, owner.

A *tolerance* says how much may be against a pin: a share (`0.1%`, `0.001`) or a number (`5`). What is counted
depends on what is pinned, and every batch keeps it exact:

| pinned | counted | a share of |
|---|---|---|
| condition | rows that violate it | the rows of the table |
| inclusion | rows whose value is missing | the rows of the dependent table |
| key | rows to remove: all but one of those that agree | the rows of the table |
| rule about two rows, functional dependency | ordered pairs of rows that violate it | all such pairs |

A tolerance is a text of one spelling, and compares by exact arithmetic: 29 of 100 rows are within 29%.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, Literal, TypedDict, get_args

from holdfast.core.words.codec import Coded
from holdfast.core.words.column_rule import ColumnRule
from holdfast.core.words.condition import Condition
from holdfast.core.words.dependency import Dependency, Fd, Ind, Side, Ucc
from holdfast.core.words.notation import arrow_text
from holdfast.core.words.predicate import Dc
from holdfast.core.words.row_rule import RowRule
from holdfast.core.words.sameness import said
from holdfast.errors import UsageError, shorten

Severity = Literal["error", "warning", "info"]
# The gravest first.
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
_COUNT = re.compile(r"(\d{1,18})(?:\s*(rows?|pairs?))?")
_DIGITS = Context(prec=50)  # more than a share is written with
_SHARE = re.compile(r"(\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE]-\d{1,2})?")


class PinTerms(TypedDict, total=False):
    """The terms of a pin, as they are given; `Terms` says what each of them means."""

    at_most: str | float | None
    severity: str
    reason: str
    owner: str


@dataclass(frozen=True, slots=True)
class Terms(Coded):
    """On which terms somebody relies on something. What is pinned again has the new ones."""

    at_most: str = ""  # the tolerance; "": nothing may be against it
    severity: Severity = "error"  # `check` fails for errors, unless it is asked to for others
    reason: str = ""
    owner: str = ""

    @classmethod
    def of(cls, pairs: bool, given: PinTerms) -> Terms:
        """The terms that are given, checked; `pairs`: of a rule about pairs of rows.

        >>> Terms.of(False, {"at_most": 0.001, "severity": "warning"})
        Terms(at_most='0.1%', severity='warning', reason='', owner='')
        """
        severity: Any = given.get("severity") or "error"
        check_severity(severity)
        texts = {name: one_line(name, given.get(name)) for name in ("reason", "owner")}
        return cls(tolerance(given.get("at_most"), pairs=pairs), severity, **texts)

    def allows(self, n: int, total: int) -> bool:
        """Whether so many, of all that there are, are within the tolerance.

        >>> Terms("29%").allows(29, 100), Terms("5").allows(6, 1000), Terms().allows(0, 0)
        (True, False, True)
        """
        if self.at_most.endswith("%"):
            return n <= Fraction(Decimal(self.at_most[:-1])) / 100 * total
        return n <= int(self.at_most or 0)

    def to_given(self) -> PinTerms:
        """Only what is not as it is if nothing is said: what files and documents have."""
        given: PinTerms = {}
        if self.at_most:
            given["at_most"] = self.at_most
        if self.severity != "error":
            given["severity"] = self.severity
        if self.reason:
            given["reason"] = self.reason
        if self.owner:
            given["owner"] = self.owner
        return given


USUAL = Terms()


def check_severity(given: object, name: str = "severity") -> None:
    """What is to be a severity, is one."""
    if given not in SEVERITIES:
        raise UsageError(f"{name} is {shorten(given)}; expected {' or '.join(SEVERITIES)}.")


def one_line(name: str, text: object) -> str:
    """A text that is given, on one line; "" for None."""
    if text is None:
        return ""
    if not isinstance(text, str):
        raise UsageError(f"{name} is {shorten(text)}; expected a text.")
    return " ".join(text.split())


def tolerance(given: str | float | None, *, pairs: bool = False) -> str:
    """A tolerance in its one spelling: a whole number counts, anything else is a share.

    >>> [tolerance(t) for t in ("0.1%", 0.001, "0.0010", "5 rows", 5, "0", None, "1e-4", "100%")]
    ['0.1%', '0.1%', '0.1%', '5', '5', '', '', '0.01%', '100%']
    >>> tolerance("5 rows", pairs=True)
    Traceback (most recent call last):
    ...
    holdfast.errors.UsageError: at most '5 rows': of this pin pairs of rows are counted: '5 pairs'.
    """
    text = "" if given is None else given if isinstance(given, str) else repr(given)
    text = text.strip()
    if not text:
        return ""
    count = _COUNT.fullmatch(text)
    if count is not None:
        if count[2] and count[2].startswith("pair") != pairs:
            counted, unit = ("pairs of rows", "pairs") if pairs else ("rows", "rows")
            raise UsageError(
                f"at most {shorten(text)}: of this pin {counted} are counted: '{count[1]} {unit}'."
            )
        return str(int(count[1])) if int(count[1]) else ""
    percent = text.endswith("%")
    number = text[:-1].strip() if percent else text
    share = _DIGITS.scaleb(Decimal(number), 0 if percent else 2) if _SHARE.fullmatch(number) else Decimal(-1)
    if not 0 <= share <= 100:
        raise UsageError(
            f"at most {shorten(text)} is no tolerance; expected a share such as 0.1% or 0.001, or a number "
            f"of {'pairs of ' if pairs else ''}rows such as 5."
        )
    return f"{share.normalize(_DIGITS):f}%" if share else ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody wants to rely on: a key; with `referenced` an inclusion; or a `rule` as it is written: a
    functional dependency, a rule about two rows, or a condition on each row.

    `where` is the place in a file that says so, for errors.
    """

    table: str  # "" of a rule: the only one of the workspace
    columns: tuple[str, ...] = ()
    referenced: Side | None = None
    rule: str = ""
    terms: PinTerms = field(default_factory=PinTerms)
    where: str = field(default="", compare=False)

    @classmethod
    def of(cls, dependency: Dependency, terms: PinTerms) -> Wanted:
        """What a list has, as it is pinned.

        >>> Wanted.of(Fd("orders", ("zip",), "city"), {}).rule
        'zip -> city'
        """
        match dependency:
            case Ucc():
                return cls(dependency.table, dependency.columns, terms=terms)
            case Ind():
                return cls(dependency.table, dependency.columns, dependency.referenced, terms=terms)
            case Fd():
                return cls(dependency.table, rule=arrow_text(dependency.lhs, dependency.rhs), terms=terms)
            case Dc() | RowRule() | Condition() | ColumnRule():
                return cls(dependency.table, rule=dependency.formula, terms=terms)
            case _:
                raise UsageError(
                    f"{dependency.name} of table {dependency.table!r} is of kind {dependency.kind}, of which "
                    "nothing can be pinned. Pin a key, an inclusion, a functional dependency or a rule."
                )


@dataclass(frozen=True, slots=True)
class Muted:
    """A dependency that somebody takes for an accident, or that is of no interest: kept exactly as all others
    are, and in reports only counted. It need not hold."""

    dependency: Dependency
    reason: str = ""

    @property
    def table(self) -> str:
        return self.dependency.table

    @property
    def kind(self) -> str:
        return self.dependency.kind

    def __str__(self) -> str:
        return self.dependency.name

    def to_dict(self) -> dict[str, Any]:
        return {"dependency": said(self.dependency), "reason": self.reason}
