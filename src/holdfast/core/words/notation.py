"""Dependencies without a formula, as people write them: `zip, street -> city`, `[zip, street]`,
`orders[customer] in customers[id]`.

A name is written as it is. In double quotes it may hold what else would end it: a comma, an arrow, spaces
at its ends; a quote inside quotes is doubled. A quote that does not start a name means itself. `[] -> city`
and `-> city` say that a column is constant; a column that is called `[]` is quoted. Between brackets, and in
front of them, a name with a bracket is quoted, too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from holdfast.core.words.dependency import Side
from holdfast.errors import UnknownColumnError, UsageError, shorten

ARROW = "->"
_EXPECTED = "Expected columns, an arrow and one column, such as 'zip, street -> city'."


def parse_fd(
    text: str, names: Sequence[str], *, table: str = "", version: int | None = None
) -> tuple[tuple[str, ...], str]:
    """(lhs, rhs) of a text; the left-hand side once each, in the order of `names`.

    UsageError if the text is no dependency, UnknownColumnError if it names another column. `table` and
    `version` only serve the message. Law: `parse_fd(arrow_text(lhs, rhs), names)` gives both back.

    >>> parse_fd("b, a -> c", ["a", "b", "c"]), parse_fd("[] -> c", ["c"])
    ((('a', 'b'), 'c'), ((), 'c'))
    >>> parse_fd('"x, y" -> "p -> q"', ["x, y", "p -> q"])
    (('x, y',), 'p -> q')
    """
    sides = _sides(text)
    if len(sides) != 2:
        problem = "has no arrow" if len(sides) < 2 else f"has {len(sides) - 1} arrows"
        hint = " Put a name that contains '->' in double quotes." if len(sides) > 2 else ""
        raise UsageError(f"{shorten(text)} {problem}. {_EXPECTED}{hint}")
    lhs, rhs = sides
    if not rhs:
        raise UsageError(f"{shorten(text)} has no column on its right side. {_EXPECTED}")
    if len(rhs) > 1:
        raise UsageError(
            f"{shorten(text)} has {len(rhs)} columns on its right side; ask for each of them on its own. "
            "Put a name that contains a comma in double quotes."
        )
    for name in (*lhs, *rhs):
        if name not in names:
            raise UnknownColumnError.from_missing(table, version, name, names)
    return tuple(sorted(set(lhs), key=list(names).index)), rhs[0]


def arrow_text(lhs: Sequence[str], rhs: str) -> str:
    """A dependency as `parse_fd` reads it: names are quoted where they must be.

    >>> arrow_text(["a", "b,c"], 'd "e"'), arrow_text([], "x")
    ('a, "b,c" -> d "e"', '[] -> x')
    """
    return f"{', '.join(map(_quoted, lhs)) or '[]'} {ARROW} {_quoted(rhs)}"


def _quoted(name: str) -> str:
    plain = name == name.strip() and name not in ("", "[]") and not name.startswith('"')
    return name if plain and "," not in name and ARROW not in name else _in_quotes(name)


def _in_quotes(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


# -- in brackets -------------------------------------------------------------------------------

_PLAIN = r'[^"\[\],\s](?:[^\[\],]*[^\[\],\s])?'
_NAME = rf'(?:"(?:[^"]|"")*"|{_PLAIN})'
_LIST = rf"\[\s*(?:{_NAME}(?:\s*,\s*{_NAME})*)?\s*\]"
_KEY = re.compile(rf"\s*({_LIST})\s*")
_INCLUSION = re.compile(rf"\s*({_NAME})\s*({_LIST})\s*(?:\bin\b|⊆)\s*({_NAME})\s*({_LIST})\s*", re.IGNORECASE)


def bracketed(columns: Sequence[str]) -> str:
    """Columns as `parse_key` reads them.

    >>> bracketed(["a", "b,c"]), bracketed([])
    ('[a, "b,c"]', '[]')
    """
    return f"[{', '.join(map(_in_brackets, columns))}]"


def inclusion_text(dependent: Side, referenced: Side) -> str:
    """An inclusion as `parse_inclusion` reads it.

    >>> inclusion_text(Side("orders", ("customer",)), Side("all[1]", ("id",)))
    'orders[customer] in "all[1]"[id]'
    """
    sides = (f"{_in_brackets(side.table)}{bracketed(side.columns)}" for side in (dependent, referenced))
    return " in ".join(sides)


def parse_key(text: str) -> tuple[str, ...] | None:
    """The columns between brackets, in the order written; None if the text is not these alone.

    >>> parse_key('[a, "b,c"]'), parse_key("[]"), parse_key("[a] -> b")
    (('a', 'b,c'), (), None)
    """
    match = _KEY.fullmatch(text)
    return None if match is None else _listed(match[1])


def parse_inclusion(text: str) -> tuple[Side, Side] | None:
    """(dependent, referenced) of a text; None if it is no inclusion.

    >>> parse_inclusion('orders[customer] in "all[1]"[id]')
    (Side(table='orders', columns=('customer',)), Side(table='all[1]', columns=('id',)))
    """
    match = _INCLUSION.fullmatch(text)
    if match is None:
        return None
    left, right = (Side(_unquoted(match[i]), _listed(match[i + 1])) for i in (1, 3))
    return left, right


def _in_brackets(name: str) -> str:
    return name if re.fullmatch(_PLAIN, name) and ARROW not in name else _in_quotes(name)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(_unquoted(name) for name in re.findall(_NAME, text[1:-1]))


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


# -- with an arrow -----------------------------------------------------------------------------


def _sides(text: str) -> list[list[str]]:
    """The lists of names between arrows."""
    sides: list[list[str]] = []
    names: list[str] = []
    at = 0
    while True:
        name, at = _name(text, at)
        ends_side = at >= len(text) or text.startswith(ARROW, at)
        if name is not None:
            names.append(name)
        elif names or not ends_side:
            raise UsageError(f"{shorten(text)} has a comma without a column beside it. {_EXPECTED}")
        if not ends_side:
            at += 1  # the comma
            continue
        sides.append(names)
        if at >= len(text):
            return sides
        names, at = [], at + len(ARROW)


def _name(text: str, at: int) -> tuple[str | None, int]:
    """(name, where it ends): up to a comma, an arrow or the end; None where there is none."""
    while at < len(text) and text[at].isspace():
        at += 1
    if not text.startswith('"', at):
        stops = [p for p in (text.find(",", at), text.find(ARROW, at)) if p >= 0]
        end = min(stops, default=len(text))
        name = text[at:end].strip()
        return (None if name in ("", "[]") else name), end
    parts, start = [], at
    while True:
        end = text.find('"', at + 1)
        if end < 0:
            raise UsageError(f"{shorten(text)} has a quote that is not closed: {shorten(text[start:])}.")
        parts.append(text[at + 1 : end])
        at = end + 1
        if not text.startswith('"', at):
            break
    while at < len(text) and text[at].isspace():
        at += 1
    if at < len(text) and text[at] != "," and not text.startswith(ARROW, at):
        raise UsageError(
            f"{shorten(text)} goes on behind a closed quote: {shorten(text[at:])}. Double a quote that "
            "belongs to a name."
        )
    return '"'.join(parts), at
