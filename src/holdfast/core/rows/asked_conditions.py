"""Conditions as people ask for them: `read_condition`, and a look at the patterns by what will run them.

Arrow's regular expressions (RE2) are neither a part of Python's nor the other way round: `(?=R)` is none of
them, and `\\p{Ll}` is. So nobody but Arrow says what is a pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.core.words.condition import Every, Like, Node, Not, Some, read_condition
from holdfast.core.words.rule_text import rule_error
from holdfast.core.words.schema import Schema


def asked_condition(text: str, schema: Schema, *, table: str = "", version: int | None = None) -> Node:
    """The condition that a text says; UsageError, too, where a pattern cannot be run."""
    node = read_condition(text, schema, table=table, version=version)
    for pattern in dict.fromkeys(_patterns(node)):
        problem = pattern_problem(pattern)
        if problem is not None:
            written = "'" + pattern.replace("'", "''") + "'"
            place = re.search(rf"(?i)matches\s*(?={re.escape(written)})", text)
            at = text.index(written) if place is None else place.end()
            raise rule_error(text, at, f"the pattern is no regular expression: {problem}")
    return node


def whole_text(pattern: str) -> str:
    """The pattern of texts that a pattern is like from end to end."""
    return f"^(?:{pattern})$"


def pattern_problem(pattern: str) -> str | None:
    r"""What Arrow says of a pattern that it cannot run; None if it can.

    >>> pattern_problem(r"[A-Z]\p{Ll}+"), pattern_problem("(?=R)R"), pattern_problem("a)|(b")
    (None, 'invalid perl operator: (?=', 'unexpected ): a)|(b')
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for tried in (pattern, whole_text(pattern)):
        try:
            pc.match_substring_regex(pa.array([""], pa.large_string()), tried)  # of none it says nothing
        except pa.ArrowInvalid as error:
            return str(error).removeprefix("Invalid regular expression: ")
    return None


def _patterns(node: Node) -> Iterator[str]:
    match node:
        case Like(_, pattern, regex) if regex:
            yield pattern
        case Not(part):
            yield from _patterns(part)
        case Every(parts) | Some(parts):
            for part in parts:
                yield from _patterns(part)
