"""Rules that people write: every spelling, every mistake with its place, and the law of the inverse."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.core.words.predicate import OPERATORS, Dc, Predicate
from holdfast.core.words.rule_text import located, rule_error
from holdfast.errors import HoldfastError, UnknownColumnError, UsageError

NAMES = ["zip", "state", "zip code", "low", "high", "capital-gain", "and", "t", "2nd", "größe", "a.b", 'q"']
ZIP_STATE = (Predicate("zip", "=", "zip"), Predicate("state", "!=", "state"))


def parse_rule(
    text: str, names: list[str], *, table: str = "", version: int | None = None
) -> tuple[Predicate, ...]:
    """The predicates of a rule, each once."""
    return tuple(dict.fromkeys(p for p, _ in located(text, names, table=table, version=version)))


@pytest.mark.parametrize(
    "text",
    [
        "not(t.zip = s.zip and t.state != s.state)",
        "NOT (t.zip == s.zip AND t.state <> s.state)",
        "¬(t.zip=s.zip∧t.state≠s.state)",
        "Not(s.zip = t.zip & s.state != t.state)",
        "not(T.zip = S.zip && t.state != s.state)",
        "  not  (\n  t.zip = s.zip\n  and t.state\t!=\ts.state\n)\n",
        "not((t.zip = s.zip) and ((t.state != s.state)))",
        "not((t.zip = s.zip and t.state != s.state))",
        'not(t."zip" = s . zip and t. "state" != s .state)',
        "not(t.zip = s.zip and t.state != s.state and s.zip = t.zip)",
    ],
)
def test_spellings(text: str) -> None:
    assert parse_rule(text, NAMES) == ZIP_STATE


@pytest.mark.parametrize(
    ("comparison", "predicate"),
    [
        ("t.low < s.high", Predicate("low", "<", "high")),
        ("s.low < t.high", Predicate("high", ">", "low")),
        ("s.low<=t.high", Predicate("high", ">=", "low")),
        ("s.low ≤ t.high", Predicate("high", ">=", "low")),
        ("t.low ≥ s.high", Predicate("low", ">=", "high")),
        ("s.low = t.high", Predicate("high", "=", "low")),
        ("s.low <> t.high", Predicate("high", "!=", "low")),
        ('t."zip code" > s.capital-gain', Predicate("zip code", ">", "capital-gain")),
        ("t.and = s.t", Predicate("and", "=", "t")),
        ("t.t = s.2nd", Predicate("t", "=", "2nd")),
        ("t.größe = s.a.b", Predicate("größe", "=", "a.b")),
        ('t."q""" = s.low', Predicate('q"', "=", "low")),
    ],
)
def test_comparisons(comparison: str, predicate: Predicate) -> None:
    assert parse_rule(f"not({comparison})", NAMES) == (predicate,)


# The caret stands below the character that is at fault; the words are part of the message.
MISTAKES = [
    ("", "^", "a rule starts with 'not(', such as"),
    ("   ", "^", "found the end"),
    ("t.zip = s.zip", "^", "a rule starts with 'not('"),
    ("not t.zip = s.zip", "    ^", "expected '(' behind 'not'; found 't'"),
    ("not", "   ^", "expected '(' behind 'not'; found the end"),
    ("not()", "    ^", "expected a column of a row, such as t.zip or s.zip; found ')'"),
    ("not(", "    ^", "found the end"),
    ("not(t.zip = s.zip", "                 ^", "found the end; the '(' at character 4 is not closed"),
    ("not(t.zip = s.zip  ", "                 ^", "found the end; the '(' at character 4 is not closed"),
    ("not((t.zip = s.zip)", "                   ^", "the '(' at character 4 is not closed"),
    (
        "not(t.zip = s.zip) and",
        "                   ^",
        "the rule ends with the ')' that closes 'not('; found 'and'",
    ),
    ("not(t.zip = s.zip))", "                  ^", "the rule ends"),
    ("not(t.zip = s.zip and)", "                     ^", "expected a column of a row"),
    ("not(t.zip = s.zip or t.low < s.low)", "                  ^", "a rule has no 'or'"),
    ("not(t.zip = s.zip || t.low < s.low)", "                  ^", "a rule has no 'or'"),
    ("not(t.zip = s.zip, t.low < s.low)", "                 ^", "joined with 'and', not with a comma"),
    ("not(t.zip = s.zip t.low < s.low)", "                  ^", "expected 'and' or ')'; found 't'"),
    ("not(t.zip s.zip)", "          ^", "expected an operator (= != < <= > >=); found 's'"),
    ("not(t.zip code = s.zip)", "          ^", 'Names that need double quotes: "zip code"'),
    ("not(t.zip is s.zip)", "          ^", "found 'is'"),
    (
        "not(t.low =< s.low)",
        "          ^",
        "'=<' is no operator; there are = != < <= > >=; '<=' may be meant",
    ),
    ("not(t.low <=> s.low)", "          ^", "'<=>' is no operator; there are = != < <= > >=."),
    ("not(t.low < 5)", "            ^", "constants are not supported"),
    ("not(t.low < -5)", "            ^", "constants are not supported"),
    ("not(t.low < .5)", "            ^", "constants are not supported"),
    ("not('x' = t.low)", "    ^", "constants are not supported"),
    ('not(t.low = "x")', "            ^", "constants are not supported"),
    ("not(t.low = NULL)", "            ^", "constants are not supported"),
    ('not(t.low = "zip code")', "            ^", 'say which row is meant: t."zip code" or s."zip code"'),
    ("not(zip = s.zip)", "    ^", "say which row is meant: t.zip or s.zip"),
    ("not(t.capital-gain < capital-gain)", "                     ^", "t.capital-gain or s.capital-gain"),
    ("not(t.zip = u.zip)", "            ^", "the two rows are called t and s, not 'u'"),
    ("not(t1.zip = t2.zip)", "    ^", "the two rows are called t and s, not 't1'"),
    ("not(t.low < t.high)", "    ^", "both sides are of row t. A comparison within one row is a row rule"),
    ("not(s.low < S.high)", "    ^", "compare s.low with t.high"),
    ("not(t.low < s.)", "              ^", "expected the name of a column behind 's.'; found ')'"),
    ("not(t. = s.zip)", "       ^", "expected the name of a column behind 't.'; found '='"),
    ('not(t."zip = s.zip)', "      ^", "a quote that is not closed"),
    ("not(t.'zip' = s.zip)", "      ^", "double quotes"),
    ("not(t.low + 1 < s.low)", "          ^", "calculations are not supported"),
    ("not(t.low < s.low - 1)", "                  ^", "calculations are not supported"),
    ("not(not(t.low = s.low))", "    ^", "only the whole rule is negated"),
    ("not(t.zip = s.zip and ¬(t.low = s.low))", "                      ^", "only the whole rule is negated"),
]


@pytest.mark.parametrize(("text", "caret", "words"), MISTAKES)
def test_mistakes_are_pointed_at(text: str, caret: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_rule(text, NAMES)
    message, line, below = str(caught.value).split("\n")
    assert (line, below) == (f"  {text}".rstrip(), f"  {caret}")
    assert message.startswith(f"at character {len(caret)} of the rule: ")
    assert words in message
    assert message.endswith(".")
    assert not message.endswith("..")


def test_an_unknown_column_comes_with_a_suggestion() -> None:
    with pytest.raises(UnknownColumnError) as caught:
        parse_rule("not(t.zip = s.zip and t.stat != s.state)", NAMES[:2], table="tax", version=7)
    assert str(caught.value) == (
        "table 'tax' (version 7) has no column 'stat'. Columns: zip, state. Did you mean 'state'? "
        "It is at character 25 of the rule.\n"
        "  not(t.zip = s.zip and t.stat != s.state)\n"
        "                          ^"
    )
    with pytest.raises(UnknownColumnError, match='Names that need double quotes: "zip code"'):
        parse_rule("not(t.zip code = s.state)", ["zip code", "state"])


def test_the_line_at_fault_is_shown() -> None:
    with pytest.raises(UsageError) as caught:
        parse_rule("not(\n  t.zip = s.zip and\r\n  t.low < 5\n)", NAMES)
    message, line, below = str(caught.value).split("\n")
    assert message.startswith("at line 3, character 11 of the rule: constants")
    assert (line, below) == ("    t.low < 5", "            ^")


def test_long_lines_are_cut_around_the_place() -> None:
    text = "not(" + " and ".join(["t.zip = s.zip"] * 50 + ["t.zip ~ s.zip"] + ["t.zip = s.zip"] * 50) + ")"
    with pytest.raises(UsageError) as caught:
        parse_rule(text, NAMES)
    message, line, below = str(caught.value).split("\n")
    assert message.startswith(f"at character {text.index('~') + 1} of the rule")
    assert line[below.index("^")] == "~"
    assert len(line) < 90
    assert line.strip().startswith("...")
    assert line.endswith("...")


def test_the_caret_allows_for_wide_and_unprintable_characters() -> None:
    with pytest.raises(UsageError) as caught:
        parse_rule("not(t.\u90f5\u4fbf\t< 5)", ["\u90f5\u4fbf"])
    _, line, below = str(caught.value).split("\n")
    assert line == "  not(t.\u90f5\u4fbf < 5)"
    assert below == "  " + " " * (6 + 4 + 3) + "^"


def test_many_parentheses() -> None:
    assert parse_rule("not" + "(" * 5000 + "t.low < s.low" + ")" * 5000, NAMES) == (
        Predicate("low", "<", "low"),
    )


def test_positions_of_predicates_for_further_checks() -> None:
    text = "not(t.zip = s.zip and s.low < t.high)"
    (_, first), (second, at) = located(text, NAMES)
    assert (text[first], text[at], second) == ("=", "<", Predicate("high", ">", "low"))
    assert str(rule_error(text, at, "no order")) == (
        f"at character 29 of the rule: no order.\n  {text}\n  {' ' * at}^"
    )


ANY_NAME = st.one_of(
    st.sampled_from(NAMES),
    st.text(max_size=4),
    st.text(alphabet="ab.-\"'()<>=!&|∧¬≤ \n\t,;+*", max_size=4),
)


@given(
    st.lists(st.tuples(ANY_NAME, st.sampled_from(OPERATORS), ANY_NAME), min_size=1, max_size=4, unique=True)
)
@example([("", "=", ""), ('"', "<", "\n"), ("a\x1cb", "<=", "\u2028"), ("and", ">", "not")])
def test_a_formula_is_read_as_its_predicates(chosen: list[tuple[str, str, str]]) -> None:
    predicates = tuple(Predicate(*p) for p in chosen)  # type: ignore[arg-type]
    names = sorted({name for a, _, b in chosen for name in (a, b)})
    text = Dc("t", predicates).formula
    assert parse_rule(text, names) == predicates
    swapped = tuple(p.mirrored for p in predicates)
    assert tuple(p.mirrored for p in parse_rule(Dc("t", swapped).formula, names)) == predicates


PIECES = [
    "not",
    "(",
    ")",
    "t.",
    "s.",
    "zip",
    "low",
    '"',
    "and",
    "=",
    "<",
    "≤",
    " ",
    "\n",
    "5",
    "'",
    ",",
    "or",
    "¬",
    ".",
]


@given(st.one_of(st.text(max_size=30), st.lists(st.sampled_from(PIECES), max_size=12).map("".join)))
def test_whatever_is_written_is_a_rule_or_a_mistake_with_a_place(text: str) -> None:
    for whole in (text, f"not({text})", f"not(t.zip = s.zip {text}"):
        try:
            found = parse_rule(whole, NAMES)
        except HoldfastError as error:
            *_, line, below = str(error).split("\n")
            assert below.strip() == "^"
            assert len(below) <= max(2, len(line)) + 1 or not line.isascii()
        else:
            assert parse_rule(Dc("t", found).formula, NAMES) == found
