"""Pins as a YAML file that lies in a repository: written, and read.

    version: 1
    tables:
      orders:
        - key: id
        - reference: customer_id -> customers.id
          at_most: 0.1%
        - fd: zip -> city
        - rule: not(t.zone = s.zone and t.weight_kg < s.weight_kg and t.fee > s.fee)
        - check: quantity > 0
          severity: warning
          reason: returns are booked elsewhere
          owner: ann@example.com

An entry has one of `key`, `reference`, `fd`, `rule` and `check`, and terms. Columns are a text (`a, b`) or a
list; a reference is a text, or, where names have dots or commas, `{columns: [...], table: ..., to: [...]}`.
`fd`, `rule` and `check` have what `holdfast pin` takes. Law: what is written and read again is the same.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn, cast

import holdfast
from holdfast.app.calls import named_side
from holdfast.app.export.yaml import scalar
from holdfast.app.options import columns_of
from holdfast.core.words.change import Pin
from holdfast.core.words.dependency import Fd, Side
from holdfast.core.words.notation import ARROW, arrow_text
from holdfast.core.words.predicate import as_fd
from holdfast.core.words.reliance import PinTerms, Wanted
from holdfast.core.words.schema import Nulls
from holdfast.errors import HoldfastError, UsageError, shorten, shorten_path

VERSION = "1"
TARGETS = ("key", "reference", "fd", "rule", "check")
TERMS = ("at_most", "severity", "reason", "owner")
SIDES = ("columns", "table", "to")
_EXPECTED = "Expected 'version: 1' and 'tables:', as 'holdfast pins -o FILE' writes them."
# A text that YAML takes as it stands. What it takes for a truth value or for nothing is quoted, see `scalar`.
_PLAIN = re.compile(r"[^\W\d_]([\w .,@/()'\"<>=!+%*-]*[\w.)'\"%*])?")
_NAME = re.compile(r"\w+")


# -- written -----------------------------------------------------------------------------------


def written_pins(ws: holdfast.Workspace, pins: Sequence[Pin], version: int) -> str:
    """Pins as a file, by table: as they are, whether they hold or not."""
    tables: dict[str, list[Pin]] = {}
    for pin in pins:
        tables.setdefault(pin.table, []).append(pin)
    lines = ["# What is relied on; 'holdfast pin --file' applies it."]
    lines += [f"version: {VERSION}", "tables:" if tables else "tables: {}"]
    for table in sorted(tables):
        lines.append(f"  {_text(table)}:")
        nulls = ws.writer.tables.state(table, version).nulls
        for pin in tables[table]:
            target, value = _target(pin, nulls)
            lines.append(f"    - {target}: {value}")
            lines += [f"      {name}: {_term(name, str(v))}" for name, v in pin.terms.to_given().items()]
    return "\n".join(lines) + "\n"


def _target(pin: Pin, nulls: Nulls) -> tuple[str, str]:
    if pin.condition is not None:
        return "check", _text(pin.condition.formula)
    if isinstance(pin.rule, Fd):
        return "fd", _text(arrow_text(pin.rule.lhs, pin.rule.rhs))
    if pin.rule is not None:
        # Where NULLs are distinct a functional dependency is no rule about two rows.
        fd = as_fd(pin.rule) if nulls == "equal" else None
        return ("rule", _text(pin.rule.formula)) if fd is None else ("fd", _text(arrow_text(*fd)))
    if pin.referenced is None:
        return "key", _columns(pin.columns)
    to = pin.referenced
    if all(map(_NAME.fullmatch, (*pin.columns, to.table, *to.columns))):
        return "reference", f"{', '.join(pin.columns)} {ARROW} {to.table}.{', '.join(to.columns)}"
    sides = {"columns": _columns(pin.columns), "table": _text(to.table), "to": _columns(to.columns)}
    return "reference", f"{{{', '.join(f'{name}: {value}' for name, value in sides.items())}}}"


def _columns(columns: Sequence[str]) -> str:
    """A column, or a list of them; a name that may be read as several columns is a list, too."""
    if len(columns) == 1 and _NAME.fullmatch(columns[0]):
        return _text(columns[0])
    return f"[{', '.join(map(scalar, columns))}]"


def _term(name: str, value: str) -> str:
    return value if name == "at_most" else _text(value)


def _text(text: str) -> str:
    r"""
    >>> [_text(t) for t in ("quantity > 0", "no", "a: b", "#1", "x ")]
    ['quantity > 0', '"no"', '"a: b"', '"#1"', '"x "']
    """
    # Of one word `scalar` knows whether it means something else.
    return text if _PLAIN.fullmatch(text) and not _NAME.fullmatch(text) else scalar(text)


# -- read --------------------------------------------------------------------------------------


def read_pins(ws: holdfast.Workspace, path: Path) -> list[Wanted]:
    """What a file wants to be pinned, in its order. An error names the line, the table and the entry."""
    reader = _Reader(ws, "standard input" if str(path) == "-" else shorten_path(str(path)))
    return list(reader.pins(_source(path)))


def _source(path: Path) -> str:
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text in UTF-8"
        raise UsageError(f"cannot read {shorten_path(str(path))}: {reason}.") from error


class _Reader:
    """Reads YAML by its nodes: a text is a text, whatever it looks like, and every node knows its line."""

    def __init__(self, ws: holdfast.Workspace, name: str) -> None:
        self.ws, self.name = ws, name

    def pins(self, text: str) -> Iterator[Wanted]:
        import yaml  # late: no other command needs it

        try:
            root = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.YAMLError as error:
            mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
            line = f", line {mark.line + 1}" if mark else ""
            raise UsageError(
                f"{self.name}{line} is no YAML: {problem or error}. Next step: mend the line; a text with a "
                "colon in it, or a quote at its beginning, is quoted as a whole: \"name = 'x: y'\"."
            ) from None
        if root is None:
            raise UsageError(f"{self.name} is empty. {_EXPECTED}")
        fields = self.mapping(root, "", ("version", "tables"))
        if "version" not in fields or self.scalar(fields["version"], "version") != VERSION:
            self.fail(fields.get("version", root), f"the version is not {VERSION}. {_EXPECTED}")
        if "tables" not in fields:
            self.fail(root, f"there is nothing under 'tables'. {_EXPECTED}")
        if self.is_empty(fields["tables"]):
            return
        for table, entries in self.mapping(fields["tables"], "tables").items():
            if self.is_empty(entries):
                continue
            if entries.id != "sequence":
                self.fail(entries, f"table {table!r}: expected a list of pins, each behind a '-'.")
            for entry in entries.value:
                yield self.entry(table, entry)

    def entry(self, table: str, node: Any) -> Wanted:
        where = f"table {table!r}"
        fields = self.mapping(node, where, (*TARGETS, *TERMS))
        targets = [name for name in fields if name in TARGETS]
        if len(targets) != 1:
            have = f"has {' and '.join(targets)}" if targets else "says not what is pinned"
            self.fail(node, f"{where}: an entry {have}; expected one of {', '.join(TARGETS)}.")
        [target] = targets
        where += f", {target}"
        given = {name: self.scalar(fields[name], f"{where}, {name}") for name in TERMS if name in fields}
        terms = cast(PinTerms, given)
        place = f"{self.name}, line {node.start_mark.line + 1}, {where}"
        said = self.said(fields[target], where, sides=target == "reference")
        if target not in ("key", "reference"):
            if not isinstance(said, str):
                self.fail(node, f"{where}: expected a text.")
            return Wanted(table, rule=said, terms=terms, where=place)
        try:
            if target == "key":
                return Wanted(table, self.columns(table, said), terms=terms, where=place)
            return Wanted(table, *self.reference(table, said), terms=terms, where=place)
        except HoldfastError as error:
            raise type(error)(f"{place}: {error}") from None

    def said(self, node: Any, where: str, *, sides: bool) -> Any:
        """What a node says: a text, a list of texts, or the sides of a reference."""
        if node.id == "sequence":
            return [self.scalar(item, where) for item in node.value]
        if node.id != "mapping" or not sides:
            return self.scalar(node, where)
        fields = self.mapping(node, where, SIDES)
        if len(fields) < len(SIDES):
            self.fail(node, f"{where}: expected {', '.join(SIDES)}.")
        return {name: self.said(value, where, sides=False) for name, value in fields.items()}

    def columns(self, table: str, said: str | list[str]) -> tuple[str, ...]:
        if not said:
            raise UsageError(f"no column of table {table!r} is named.")
        names = self.ws.schema(table).names
        return tuple(columns_of(table, names, [said]) if isinstance(said, str) else said)

    def reference(self, table: str, said: Any) -> tuple[tuple[str, ...], Side]:
        if isinstance(said, dict):
            to = str(said["table"])
            return self.columns(table, said["columns"]), Side(to, self.columns(to, said["to"]))
        left, arrow, right = said.partition(ARROW) if isinstance(said, str) else ("", "", "")
        if not arrow:
            raise UsageError(f"{shorten(said)} has no arrow; expected 'customer_id -> customers.id'.")
        otherwise = "write {columns: [...], table: ..., to: [...]}"
        to_side = named_side(self.ws, right.strip(), "the reference", otherwise)
        return self.columns(table, left.strip()), to_side

    # -- nodes --

    def mapping(self, node: Any, where: str, known: Iterable[str] | None = None) -> Mapping[str, Any]:
        """The fields of a mapping by name, each once and one of those that are known."""
        before = f"{where}: " if where else ""
        if node.id != "mapping":
            self.fail(node, f"{before}expected fields with names. {'' if where else _EXPECTED}".rstrip())
        fields: dict[str, Any] = {}
        names = None if known is None else list(known)
        for key, value in node.value:
            name = self.scalar(key, where or "the file")
            if name in fields:
                self.fail(key, f"{before}{shorten(name)} is there twice.")
            if names is not None and name not in names:
                near = get_close_matches(name, names, n=1)
                hint = f" Did you mean {near[0]}?" if near else ""
                self.fail(key, f"{before}unknown field {shorten(name)}; known: {', '.join(names)}.{hint}")
            fields[name] = value
        return fields

    def scalar(self, node: Any, where: str) -> str:
        if node.id != "scalar":
            self.fail(node, f"{where}: expected a text, and not a {node.id}.")
        return str(node.value)

    def is_empty(self, node: Any) -> bool:
        return not node.value or (node.id == "scalar" and node.value in ("null", "~"))

    def fail(self, node: Any, problem: str) -> NoReturn:
        raise UsageError(f"{self.name}, line {node.start_mark.line + 1}: {problem}")
