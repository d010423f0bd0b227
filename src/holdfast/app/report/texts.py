"""Names, values and counts as text: whatever they hold, one line of printable characters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.core.words.change import Pin
from holdfast.core.words.dependency import Fd, Ind, Side
from holdfast.core.words.notation import arrow_text
from holdfast.core.words.predicate import Dc, as_dc, as_fd, as_key, is_trivial
from holdfast.core.words.row_rule import RowRule
from holdfast.core.words.sentences import sentence
from holdfast.errors import shorten
from holdfast.kind import entries

CELL_WIDTH = 40


def safe(text: str) -> str:
    r"""The text with everything unprintable escaped: control and escape characters, line ends, marks that
    reverse the direction of writing, lone surrogates.

    >>> print(safe("a\x1b[31mb\nc"))
    a\x1b[31mb\nc
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def name_text(name: str) -> str:
    """A column or table name as itself, or quoted where it could be misread in a list.

    >>> print(name_text("day"), name_text("last, first"), name_text(""))
    day 'last, first' ''
    """
    plain = name.isprintable() and name == name.strip() and name and not any(c in name for c in ",[]'\"|")
    return name if plain else repr(name)


def columns_text(columns: Sequence[str]) -> str:
    """Columns as `[a, b]`.

    >>> columns_text(("a", "b"))
    '[a, b]'
    """
    return f"[{', '.join(map(name_text, columns))}]"


def side_text(side: Side) -> str:
    """A side of an inclusion, or a key with its table.

    >>> side_text(Side("orders", ("customer", "day")))
    'orders[customer, day]'
    """
    return f"{name_text(side.table)}{columns_text(side.columns)}"


def ind_text(ind: Ind) -> str:
    """
    >>> print(ind_text(Ind(Side("orders", ("customer",)), Side("a,b", ("id",)))))
    orders[customer] in 'a,b'[id]
    """
    return f"{side_text(ind.dependent)} in {side_text(ind.referenced)}"


def fd_text(lhs: Sequence[str], rhs: str) -> str:
    """A functional dependency as `explain` reads it: names are in double quotes where they must be.

    >>> print(fd_text(("zip", "a,b"), "city"), "|", fd_text((), "currency"))
    zip, "a,b" -> city | [] -> currency
    """
    return safe(arrow_text(lhs, rhs))


def rule_text(rule: Dc | RowRule) -> str:
    """A denial constraint or a row rule as `explain` and `pin` read it."""
    return safe(rule.formula)


def meaning(dc: Dc | Fd) -> str:
    """What a denial constraint says; first, whether it is a key or a functional dependency.

    A functional dependency that is no rule about two rows is of a table whose NULLs are distinct.

    >>> from holdfast.core.words.predicate import Predicate
    >>> dc = Dc("t", (Predicate("zip", "=", "zip"), Predicate("state", "!=", "state")))
    >>> meaning(dc)
    'the FD zip -> state: rows with the same zip have the same state'
    >>> meaning(Fd("t", ("zip",), "state"))
    'the FD zip -> state: rows with the same zip have the same state, and no NULL is the same as another'
    >>> meaning(Fd("t", ("zip",), "zip"))
    'holds in every table: its comparisons of zip contradict each other'
    """
    if isinstance(dc, Fd):
        rule = as_dc(dc)
        return meaning(rule) + ("" if is_trivial(rule.predicates) else ", and no NULL is the same as another")
    text = safe(sentence(dc))
    if as_key(dc):
        return f"a key: {text}"
    fd = as_fd(dc)
    return text if fd is None else f"the FD {fd_text(*fd)}: {text}"


def pin_text(pin: Pin, *, with_table: bool = False) -> str:
    """What is pinned: a key as `[a, b]`, with its table if asked for; an inclusion as `t[a] in u[b]`; a rule
    as it was written, with its table if asked for."""
    if pin.rule is not None or pin.condition is not None:
        text = safe(str(pin))
        return f"{name_text(pin.table)}: {text}" if with_table else text
    side = side_text(Side(pin.table, pin.columns))
    if pin.referenced is not None:
        return f"{side} in {side_text(pin.referenced)}"
    return side if with_table else columns_text(pin.columns)


def cell(value: Any, limit: int = CELL_WIDTH) -> str:
    """A value as it stands in a table of rows; quoted only where it could be misread.

    >>> print(cell("Lee"), cell(None), cell("NULL"), cell(""), cell(3.5))
    Lee NULL 'NULL' '' 3.5
    """
    if isinstance(value, str) and len(value) <= limit:
        plain = value.isprintable() and value == value.strip() and value not in ("", "NULL")
        if plain and not value.startswith(("'", '"')) and "|" not in value:
            return value
    return shorten(value, limit)


def dependency_text(fields: Mapping[str, Any], *, with_table: bool = True) -> str:
    """A dependency in its JSON form.

    `[a, b]` or `t[a, b]` for a key, `a -> b` or `t: a -> b` for a functional dependency, `t[a] in u[b]` for
    an inclusion, `not(...)`, `a <= b` or `t: ...` for a rule.
    """
    match fields["kind"]:
        case "ind":
            return ind_text(Ind.from_dict(fields))
        case "ucc":
            return side_text(Side.from_dict(fields)) if with_table else columns_text(fields["columns"])
        case "fd":
            text = fd_text(fields["lhs"], fields["rhs"])
        case kind:
            text = safe(entries()[kind].dependency.from_dict(fields).name)
    return f"{name_text(fields['table'])}: {text}" if with_table else text


def not_kept_text(kind: str, version: int) -> str:
    """What is said where no table is tracked for a kind.

    >>> print(not_kept_text("row", 3))
    no row rules are kept (version 3). Track tables with --kinds ucc,row; dc brings them, too.
    """
    bringing = [entry.kind for entry in entries().values() if kind in entry.brings]
    too = f"; {listed(bringing)} brings them, too" if bringing else ""
    nouns = entries()[kind].nouns[1]
    return f"no {nouns} are kept (version {version}). Track tables with --kinds ucc,{kind}{too}."


def listed(words: Sequence[str], last: str = "and") -> str:
    """
    >>> listed(["a"]), listed(["a", "b", "c"], "or")
    ('a', 'a, b or c')
    """
    *first, end = words
    return f"{', '.join(first)} {last} {end}" if first else end


def share(value: float) -> str:
    """A share in a few digits, never rounded to 0 or 1 if it is neither.

    >>> share(0.0), share(0.25), share(0.99996), share(0.0000123), share(12.345)
    ('0', '0.25', '0.99996', '1.23e-05', '12.3')
    >>> share(0.9997817070508622), share(1.0), share(1 - 2**-53)
    ('0.9998', '1', '0.9999999999999999')
    """
    texts = (f"{value:.{digits}g}" for digits in range(3, 17))
    return next((text for text in texts if text != "1" or value == 1), repr(value))
