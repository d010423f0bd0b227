"""Rules as people write them: `not(t.zip = s.zip and t.state != s.state)`.

    rule        not ( comparisons )           not, NOT, ¬
    comparisons comparison and comparison ... and, AND, &, &&, ∧; parentheses around comparisons are free
    comparison  column operator column        = == != <> ≠ < <= ≤ > >= ≥
    column      t.name or s.name              one side of each row, in any order

A name is written as it is, or in double quotes if it holds white space or a sign that rules are written with;
a quote inside quotes is doubled. White space is free. What cannot be read is pointed at: an error says what
stands where, shows the line, and has a caret under the place.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NoReturn

from holdfast.core.words.predicate import (
    NAME_PATTERN,
    OPERATORS,
    SYMMETRIC,
    Operator,
    Predicate,
    written_name,
)
from holdfast.errors import UnknownColumnError, UsageError, listing, shorten

_EXAMPLE = "not(t.zip = s.zip and t.state != s.state)"
_SPELLINGS: dict[str, Operator] = {op: op for op in OPERATORS}
_SPELLINGS |= {"==": "=", "<>": "!=", "≠": "!=", "≤": "<=", "≥": ">="}
_MEANT: dict[str, Operator] = {
    "=<": "<=",
    "=>": ">=",
    "=!": "!=",
    "><": "!=",
    "!": "!=",
    "===": "=",
    "!==": "!=",
}
_AND, _OR, _NOT = {"and", "&", "&&", "∧"}, {"or", "|", "||", "\u2228"}, {"not", "¬"}
_CALCULATING = set("+-*/%")
_CONSTANT_WORDS = {"null", "true", "false"}

QUOTED_PATTERN = re.compile(r'"([^"]*(?:""[^"]*)*)"')
_WORD = re.compile(r"[^\W\d]\w*")
_COMPARING = re.compile("[=<>!≤≥≠]+")
_SIGN = re.compile(r"&&|\|\||.", re.DOTALL)
_NUMBER = re.compile(r"[-+.]?\d")

WINDOW = 72  # characters of a line that are shown
NEWLINE = "\n"


def located(
    text: str, names: Sequence[str], *, table: str = "", version: int | None = None
) -> list[tuple[Predicate, int]]:
    """The predicates of a rule, in the order written, each with the position of its operator.

    UsageError if the text is no rule, UnknownColumnError if it names a column that is not among `names`.
    `table` and `version` only serve the message. For checks that need more than names, such as types,
    `rule_error` points at a position. Law: the predicates of `located(dc.formula, names)` are those of the
    constraint, if it has any.

    >>> located('NOT (s.low <= t."high way")', ["low", "high way"])
    [(Predicate(left='high way', op='>=', right='low'), 11)]
    >>> located("not(t.low < 5)", ["low"])
    Traceback (most recent call last):
    ...
    holdfast.errors.UsageError: at character 13 of the rule: constants are not supported: a rule compares a \
column of t with a column of s.
      not(t.low < 5)
                  ^
    """
    return RuleReader(text, names, table, version).rule()


def rule_error(text: str, at: int, problem: str) -> UsageError:
    """An error that says and shows where in the text the problem is; `problem` is without its full stop."""
    return UsageError(f"at {place_in(text, at)} of the rule: {problem}.\n{pointed_at(text, at)}")


class RuleReader:
    """Reads a text from left to right; `at` is the position that is read next."""

    compares = "a rule compares a column of t with a column of s"

    def __init__(self, text: str, names: Sequence[str], table: str, version: int | None) -> None:
        self.text, self.at = text, 0
        self.names, self.table, self.version = names, table, version
        self.name_before = ""  # the column that was read last

    def rule(self) -> list[tuple[Predicate, int]]:
        comparisons: list[tuple[Predicate, int]] = []
        if self.peek().lower() not in _NOT:
            self.fail(f"a rule starts with 'not(', such as {_EXAMPLE}; {self.next_piece()}")
        self.take()
        if self.peek() != "(":
            self.fail(f"expected '(' behind 'not'; {self.next_piece()}")
        # Parentheses are counted, not nested: between them there is nothing but "and".
        opened: list[int] = []
        while True:
            while self.peek() == "(":
                opened.append(self.at)
                self.take()
            comparisons.append(self.comparison())
            while opened and self.peek() == ")":
                opened.pop()
                self.take()
            if not opened:
                break
            self.conjunction(opened)
        if self.peek():
            self.fail(f"the rule ends with the ')' that closes 'not('; {self.next_piece()}")
        return comparisons

    def conjunction(self, opened: Sequence[int]) -> None:
        sign = self.peek().lower()
        if sign in _AND:
            self.take()
        elif sign in _OR:
            self.fail("a rule has no 'or': write a rule for each case")
        elif sign == ",":
            self.fail("comparisons are joined with 'and', not with a comma")
        elif not sign:
            where = place_in(self.text, opened[-1])
            self.fail(f"expected 'and' or ')', found the end; the '(' at {where} is not closed")
        else:
            self.fail_behind_column("expected 'and' or ')'")

    def comparison(self) -> tuple[Predicate, int]:
        row, name, start = self.column()
        self.skip()
        at = self.at
        op = self.operator()
        other_row, other_name, _ = self.column()
        if row == other_row:
            self.fail(
                f"both sides are of row {row}. A comparison within one row is a row rule, about each row "
                f"alone; here, compare {row}.{written_name(name)} with "
                f"{'s' if row == 't' else 't'}.{written_name(other_name)}",
                start,
            )
        if row == "t":
            return Predicate(name, op, other_name), at
        return Predicate(other_name, SYMMETRIC[op], name), at

    def operator(self) -> Operator:
        spelt = _COMPARING.match(self.text, self.at)
        if spelt is None:
            self.fail_behind_column(f"expected an operator ({' '.join(OPERATORS)})")
        op = _SPELLINGS.get(spelt[0])
        if op is None:
            hint = f"; {_MEANT[spelt[0]]!r} may be meant" if spelt[0] in _MEANT else ""
            operators = " ".join(OPERATORS)
            self.fail(f"{shorten(spelt[0], 30)} is no operator; there are {operators}{hint}")
        self.at = spelt.end()
        return op

    def column(self) -> tuple[str, str, int]:
        """(row, column, where it starts)."""
        self.skip()
        start = self.at
        word = _WORD.match(self.text, start)
        if word is not None:
            self.at = word.end()
            self.skip()
            if self.text.startswith(".", self.at):
                if word[0].lower() not in ("t", "s"):
                    self.fail(f"the two rows are called t and s, not {shorten(word[0])}", start)
                self.at += 1
                return word[0].lower(), self.name(word[0]), start
            self.at = start
        self.no_column()

    def name(self, row: str) -> str:
        """The name of a column behind `t.` or `s.`."""
        return self.column_name(
            'names are put in double quotes, such as t."zip code"',
            f"expected the name of a column behind '{row}.'",
        )

    def column_name(self, single_quoted: str, expected: str) -> str:
        """The name of a column; the texts say what is wrong with a single quote, and where no name is."""
        self.skip()
        start = self.at
        quoted = QUOTED_PATTERN.match(self.text, start)
        plain = NAME_PATTERN.match(self.text, start)
        if quoted is not None:
            name, self.at = quoted[1].replace('""', '"'), quoted.end()
        elif plain is not None:
            name, self.at = plain[0], plain.end()
        elif self.text.startswith('"', start):
            self.fail("a quote that is not closed; a quote inside a name is doubled")
        elif self.text.startswith("'", start):
            self.fail(single_quoted)
        else:
            self.fail(f"{expected}; {self.next_piece()}")
        if name not in self.names:
            self.fail_at_unknown(name, start, is_quoted=quoted is not None)
        self.name_before = name
        return name

    def fail_at_unknown(self, name: str, start: int, *, is_quoted: bool) -> NoReturn:
        error = UnknownColumnError.from_missing(self.table, self.version, name, self.names)
        hint = f" {self.cut_short(name)}." if not is_quoted and self.cut_short(name) else ""
        where = f"It is at {place_in(self.text, start)} of the rule."
        raise UnknownColumnError(f"{error}{hint} {where}\n{pointed_at(self.text, start)}")

    def no_column(self) -> NoReturn:
        """What stands where a column should be, and what to do about it."""
        sign = self.peek()
        whole = NAME_PATTERN.match(self.text, self.at)
        if sign.lower() in _NOT:
            self.fail("only the whole rule is negated; use the opposite operator, such as != for =")
        if sign == "'" or sign.lower() in _CONSTANT_WORDS or _NUMBER.match(self.text, self.at):
            self.fail(f"constants are not supported: {self.compares}")
        if sign == '"':
            quoted = QUOTED_PATTERN.match(self.text, self.at)
            if quoted is None or quoted[1].replace('""', '"') not in self.names:
                self.fail(f"constants are not supported: {self.compares}")
            self.fail(f"say which row is meant: t.{quoted[0]} or s.{quoted[0]}")
        if whole is not None and whole[0] in self.names:
            self.fail(f"say which row is meant: t.{whole[0]} or s.{whole[0]}")
        self.fail(f"expected a column of a row, such as t.zip or s.zip; {self.next_piece()}")

    def fail_behind_column(self, expected: str) -> NoReturn:
        if self.peek() in _CALCULATING:
            self.fail(f"calculations are not supported: {self.compares}")
        hint = self.cut_short(self.name_before)
        self.fail(f"{expected}; {self.next_piece()}{'. ' if hint else ''}{hint}")

    def cut_short(self, name: str) -> str:
        """A hint, if the name is the beginning of one that needs quotes."""
        longer = [written_name(n) for n in self.names if n.startswith(name) and written_name(n) != n]
        return f"Names that need double quotes: {listing(longer, 3)}" if longer else ""

    def skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def peek(self) -> str:
        """The next word or sign, which is not yet taken; '' at the end."""
        self.skip()
        next_one = _WORD.match(self.text, self.at) or _SIGN.match(self.text, self.at)
        return "" if next_one is None else next_one[0]

    def take(self) -> None:
        word = self.peek()  # first: it skips white space
        self.at += len(word)

    def next_piece(self) -> str:
        """What stands at the position, as errors say it."""
        return f"found {shorten(self.peek(), 30)}" if self.peek() else "found the end"

    def fail(self, problem: str, at: int | None = None) -> NoReturn:
        end = len(self.text.rstrip())  # what is missing at the end is missing behind the last word
        raise rule_error(self.text, min(self.at, end) if at is None else at, problem)


def place_in(text: str, at: int) -> str:
    """A position in words, counted from 1, with its line if there are several.

    >>> place_in("abc", 2), place_in("abc\\nde", 5)
    ('character 3', 'line 2, character 2')
    """
    character = f"character {at - text.rfind(NEWLINE, 0, at)}"
    return f"line {text.count(NEWLINE, 0, at) + 1}, {character}" if NEWLINE in text.strip() else character


def pointed_at(text: str, at: int) -> str:
    """The line, or what of it is near the position, and below it a caret at the position."""
    start, end = text.rfind(NEWLINE, 0, at) + 1, text.find(NEWLINE, at)
    end = len(text) if end < 0 else end
    first = max(start, min(at - WINDOW // 2, end - WINDOW))
    last = min(end, first + WINDOW)
    before = ("..." if first > start else "") + _shown(text[first:at])
    behind = _shown(text[at:last]) + ("..." if last < end else "")
    return f"  {before}{behind}".rstrip() + f"\n  {' ' * sum(map(_width, before))}^"


def _shown(text: str) -> str:
    """One printable character for each: a caret below must find its place.

    >>> _shown("a\\tb\\x1bc")
    'a b�c'
    """
    return "".join(c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in text)


def _width(character: str) -> int:
    """The columns of a terminal that a character takes."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
