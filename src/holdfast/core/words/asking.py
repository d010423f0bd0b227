"""Questions about one dependency as one text: what people type, and what an address carries.

A *form* is how a text is read; it does not depend on a table. `[a, b]` is a key, `t[a] in u[b]` an inclusion,
`zip -> city` a functional dependency, `not(...)` a rule about two rows, `net <= gross` one about each row,
`quantity > 0` a condition. Some names make a text that reads as something else; such a dependency is asked
for by its JSON: `{"kind": "fd", "lhs": ["not(a"], "rhs": "b"}`.

Law: `asked(ask_of(d))` is d again, whatever its columns are called.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, Literal

from holdfast.core.words.condition import Condition, is_condition
from holdfast.core.words.dependency import Dependency, Fd, Ind, Ucc
from holdfast.core.words.notation import (
    ARROW,
    arrow_text,
    bracketed,
    inclusion_text,
    parse_fd,
    parse_inclusion,
    parse_key,
)
from holdfast.core.words.predicate import Dc
from holdfast.core.words.row_rule import is_row_rule
from holdfast.core.words.rule_text import located
from holdfast.errors import HoldfastError

Form = Literal["json", "key", "inclusion", "condition", "rule", "fd", "row"]
# Nothing else looks like these.
WHOLE: tuple[Form, ...] = ("json", "key", "inclusion")


def form_of(text: str) -> Form:
    """How a text is read.

    >>> texts = "[a, b]", "t[a] in u[b]", "a -> b", "not(t.a = s.a)", "a <= b", "a > 5", '{"kind": "fd"}'
    >>> [form_of(text) for text in texts]
    ['key', 'inclusion', 'fd', 'rule', 'row', 'condition', 'json']
    """
    if identity_in(text) is not None:
        return "json"
    if parse_key(text) is not None:
        return "key"
    if parse_inclusion(text) is not None:
        return "inclusion"
    if is_condition(text):
        return "condition"
    if not is_row_rule(text):
        return "rule"
    return "fd" if ARROW in text else "row"


def ask_of(dependency: Dependency) -> str:
    """A dependency as people write it, if that reads back as the very same; else as JSON.

    >>> ask_of(Fd("t", ("zip", "a,b"), "city")), ask_of(Ucc("t", ("x", "y")))
    ('zip, "a,b" -> city', '[x, y]')
    >>> ask_of(Fd("t", ("not(a",), "b"))
    '{"kind": "fd", "lhs": ["not(a"], "rhs": "b"}'
    """
    text = _written(dependency)
    # What cannot be seen cannot be typed either, and a field of a form drops the ends of lines.
    if text.isprintable() and _reads_back(text, dependency):
        return text
    return json.dumps(identity_of(dependency))


def identity_of(dependency: Dependency) -> dict[str, Any]:
    """What makes a dependency the one it is, as JSON; without its table, where that is its only one."""
    compared = {"kind", *(f.name for f in dataclasses.fields(dependency) if f.compare)} - {"table"}  # type: ignore[arg-type]
    return {name: value for name, value in dependency.to_dict().items() if name in compared}


def identity_in(text: str) -> Mapping[str, Any] | None:
    """The identity that a text is the JSON of; None if it is none."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) and isinstance(fields.get("kind"), str) else None


def _written(dependency: Dependency) -> str:
    match dependency:
        case Ucc():
            return bracketed(dependency.columns)
        case Ind():
            return inclusion_text(dependency.dependent, dependency.referenced)
        case Fd():
            return arrow_text(dependency.lhs, dependency.rhs)
        case _:
            return dependency.name


def _reads_back(text: str, dependency: Dependency) -> bool:
    form, names = form_of(text), list(dict.fromkeys(dependency.columns))
    try:
        match dependency:
            case Ucc():
                return form == "key" and parse_key(text) == dependency.columns
            case Ind():
                sides = dependency.dependent, dependency.referenced
                return form == "inclusion" and parse_inclusion(text) == sides
            case Fd():
                return form == "fd" and parse_fd(text, names) == (dependency.lhs, dependency.rhs)
            case Dc():
                predicates = tuple(p for p, _ in located(text, names))
                return form == "rule" and predicates == dependency.predicates
            case Condition():
                return form == "condition"
            case _ if dependency.kind in ("row", "profile"):
                return form == ("row" if dependency.kind == "row" else "condition")
            case _:  # of a class from elsewhere, which reads its texts itself
                return form not in WHOLE
    except HoldfastError:
        return False
