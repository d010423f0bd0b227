"""What the server may be asked, and what each question may be given: checked here, so answers need not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.errors import HoldfastError, UsageError, shorten

_LARGEST = (1 << 31) - 1
_LONGEST = 10_000
_SHARE = re.compile(r"[01](\.[0-9]{1,20})?")


class NotFoundError(HoldfastError):
    """There is no such route, or nothing that it could tell of."""


class ReadOnlyError(HoldfastError):
    """The server was not started to change anything."""


class ForeignError(HoldfastError):
    """A request to change something that is not from the page."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number within bounds; needed unless it has a default."""

    name: str
    default: int | None = None
    least: int = 0
    most: int = _LARGEST

    def read(self, text: str | None) -> int:
        """
        >>> Whole("limit", 50, 1, 1000).read(None), Whole("id").read("7")
        (50, 7)
        """
        if text is None:
            if self.default is None:
                raise UsageError(f"the parameter {self.name!r} is missing; expected a whole number.")
            return self.default
        # int() takes more: signs, spaces, underscores, digits of all scripts.
        plain = text.isascii() and text.isdigit() and len(text) <= 12
        if not plain or not self.least <= int(text) <= self.most:
            raise UsageError(
                f"the parameter {self.name!r} is {shorten(text)}; expected a whole number from "
                f"{self.least:,} to {self.most:,}."
            )
        return int(text)


@dataclass(frozen=True, slots=True)
class Share:
    """A number from 0 to 1."""

    name: str
    default: float = 0.0

    def read(self, text: str | None) -> float:
        """
        >>> Share("score").read("0.25"), Share("score").read(None)
        (0.25, 0.0)
        """
        if text is None:
            return self.default
        if not _SHARE.fullmatch(text) or not float(text) <= 1:
            raise UsageError(
                f"the parameter {self.name!r} is {shorten(text)}; expected a number from 0 to 1."
            )
        return float(text)


@dataclass(frozen=True, slots=True)
class Text:
    """A text, perhaps one of a few."""

    name: str
    choices: tuple[str, ...] = ()
    default: str | None = None
    needed: bool = False

    def read(self, text: str | None) -> str | None:
        """
        >>> Text("kind", ("ucc", "fd")).read(""), Text("q").read("Ada")
        (None, 'Ada')
        """
        if not text and not self.needed:
            return self.default
        if text is None:
            raise UsageError(f"the parameter {self.name!r} is missing.")
        if self.choices and text not in self.choices:
            raise UsageError(
                f"the parameter {self.name!r} is {shorten(text)}; expected one of {', '.join(self.choices)}."
            )
        if len(text) > _LONGEST:
            raise UsageError(f"the parameter {self.name!r} is longer than {_LONGEST:,} characters.")
        return text


@dataclass(frozen=True, slots=True)
class Download:
    """A file instead of JSON, piece by piece; `name` has letters, digits and signs that a header takes."""

    name: str
    content_type: str
    pieces: Iterator[bytes]


@dataclass(frozen=True, slots=True)
class Route:
    method: Callable[..., dict[str, Any] | Download]
    parameters: tuple[Whole | Share | Text, ...] = ()

    def read(self, fields: Mapping[str, str]) -> dict[str, Any]:
        names = [p.name for p in self.parameters]
        for name in fields:
            if name not in names:
                there = f"Known: {', '.join(names)}." if names else "There is none."
                raise UsageError(f"the parameter {shorten(name)} is not known. {there}")
        return {p.name: p.read(fields.get(p.name)) for p in self.parameters}


def fields_of_body(body: bytes) -> dict[str, str]:
    """The parameters of an action: a JSON object of texts; null is left out.

    >>> fields_of_body(b'{"table": "orders", "reason": null}')
    {'table': 'orders'}
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise UsageError("the body is no JSON object.")
    for name, value in document.items():
        if not isinstance(value, str | None):
            raise UsageError(f"the parameter {shorten(name)} is {shorten(value)}; expected a text.")
    return {name: value for name, value in document.items() if value is not None}
