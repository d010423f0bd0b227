"""YAML, as much of it as an export needs: mappings, lists, texts, numbers, truth values, comments.

Texts are plain where nobody could read them as anything else, and in double quotes with escapes everywhere
else, so no name of a user's column can break out of its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*|ref\('[A-Za-z0-9_]+'\)")
# What YAML 1.1 or 1.2 takes for a truth value or for nothing, whatever its case.
_WORDS = {"true", "false", "yes", "no", "on", "off", "y", "n", "null"}


class Comment(str):
    """A line of its own, in a list."""


Value: TypeAlias = "str | int | bool | Sequence[Value] | Mapping[str, Value]"


def scalar(value: str | int | bool) -> str:
    r"""One line for one value.

    >>> print(scalar("orders"), scalar("no"), scalar("12"), scalar("a: b\n"), scalar(True))
    orders "no" "12" "a: b\x0a" true
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return '"' + "".join(map(_escaped, value)) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 1 << 8 else f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"


def lines(value: Value, indent: int = 0) -> list[str]:
    """A mapping or a list as a block of lines; empty ones are `{}` and `[]`.

    >>> print("\\n".join(lines({"a": [Comment("why"), {"b": 1, "c": ["d"]}]})))
    a:
      # why
      - b: 1
        c:
          - d
    """
    margin = " " * indent
    if isinstance(value, str | int):
        return [margin + scalar(value)]
    if not value:
        return [margin + ("{}" if isinstance(value, Mapping) else "[]")]
    written = []
    if isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(item, str | int) or not item:
                written.append(f"{margin}{scalar(key)}: {lines(item)[0]}")
            else:
                written += [f"{margin}{scalar(key)}:", *lines(item, indent + 2)]
        return written
    for item in value:
        if isinstance(item, Comment):
            written += [f"{margin}# {line}" for line in item.splitlines()]
        else:
            first, *further = lines(item, indent + 2)
            written += [f"{margin}- {first[indent + 2 :]}", *further]
    if all(isinstance(item, Comment) for item in value):
        written.append(f"{margin}[]")  # comments alone would read as nothing, not as an empty list
    return written
