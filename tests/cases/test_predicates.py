"""Predicates, denial constraints and what they say about each other; and the sentences, word by word."""

from __future__ import annotations

import json
import re
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.words.predicate import (
    IMPLIED,
    INVERSE,
    OPERATORS,
    OUTCOMES,
    SYMMETRIC,
    Dc,
    Group,
    Predicate,
    PredicateSpace,
    as_fd,
    as_key,
    is_trivial,
    numbers_of,
    reduced,
)
from holdfast.core.words.sentences import sentence
from reference import predicates as oracle
from reference.predicates import Words

# Two comparable columns, one alone with order, one without.
GROUPS = (
    Group("a", "a", True),
    Group("a", "b", True),
    Group("b", "a", True),
    Group("b", "b", True),
    Group("n", "n", True),
    Group("x", "x", False),
    Group("x", "y", False),
    Group("y", "x", False),
)
SPACE = PredicateSpace(GROUPS)
PREDICATES = st.sampled_from(SPACE.predicates)
DCS = st.lists(PREDICATES, max_size=5, unique=True).map(lambda ps: Dc("t", tuple(ps)))
VALUES = st.sampled_from([None, 0, 1, 2])
ROWS = st.lists(st.fixed_dictionaries(dict.fromkeys("abnxy", VALUES)), max_size=5)


def words(predicates: object) -> list[Words]:
    return [(p.left, p.op, p.right) for p in predicates]  # type: ignore[attr-defined]


def dc(*texts: str, table: str = "t") -> Dc:
    """`dc("a < a", "b = c")`."""
    return Dc(table, tuple(Predicate(a, op, b) for a, op, b in map(str.split, texts)))  # type: ignore[arg-type]


# -- operators ------------------------------------------------------------------------------------


def test_operators_are_the_papers_table_4() -> None:
    for op in OPERATORS:
        for x, y in oracle.SIDES:
            holds = oracle.satisfied(x, op, y)
            assert oracle.satisfied(y, SYMMETRIC[op], x) == holds
            if (x is None) == (y is None):
                assert oracle.satisfied(x, INVERSE[op], y) != holds
            else:
                assert not (oracle.satisfied(x, INVERSE[op], y) and holds)
        follows = [q for q in OPERATORS if oracle.follows(("a", q, "b"), [("a", op, "b")])]
        assert list(IMPLIED[op]) == follows
        assert INVERSE[INVERSE[op]] == op == SYMMETRIC[SYMMETRIC[op]]


def test_outcomes_are_all_that_values_can_do() -> None:
    seen = {
        sum(1 << i for i, op in enumerate(OPERATORS) if oracle.satisfied(x, op, y)) for x, y in oracle.SIDES
    }
    assert seen == set(OUTCOMES)


# -- the space ------------------------------------------------------------------------------------


def test_predicates_are_numbered_group_by_group() -> None:
    assert SPACE.n_predicates == 5 * 6 + 3 * 2 == len(SPACE.predicates)
    assert SPACE.first == (0, 6, 12, 18, 24, 30, 32, 34)
    for i, p in enumerate(SPACE.predicates):
        group = GROUPS[SPACE.group_of[i]]
        assert (p.left, p.right) == (group.left, group.right)
        assert p.op == OPERATORS[SPACE.op_of[i]]
        assert SPACE.first[SPACE.group_of[i]] + SPACE.op_of[i] == i == SPACE.number(p)
        assert SPACE.predicates[SPACE.mirror[i]] == p.mirrored
        assert SPACE.mirror[SPACE.mirror[i]] == i
    assert Predicate("x", "<", "x") not in SPACE
    assert Predicate("n", "<", "n") in SPACE
    assert PredicateSpace.from_dict(json.loads(json.dumps(SPACE.to_dict()))) == SPACE


def test_no_groups_is_a_space() -> None:
    empty = PredicateSpace(())
    assert (empty.n_predicates, empty.mirrored(0), empty.closure(0), empty.evidence([])) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("groups", "problem"),
    [
        ([Group("a", "a", True), Group("a", "a", True)], "twice"),
        ([Group("a", "b", True)], "mirror"),
        ([Group("a", "b", True), Group("b", "a", False)], "mirror"),
    ],
)
def test_a_space_is_closed_under_exchanging_the_rows(groups: list[Group], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        PredicateSpace(tuple(groups))


@given(st.sets(PREDICATES))
def test_masks_and_predicates(chosen: set[Predicate]) -> None:
    mask = SPACE.mask(chosen)
    assert set(SPACE.predicates_of(mask)) == chosen
    assert numbers_of(mask) == tuple(sorted(map(SPACE.number, chosen)))
    assert SPACE.dc("t", mask, 0.5) == Dc("t", SPACE.predicates_of(mask))
    assert set(SPACE.predicates_of(SPACE.mirrored(mask))) == {p.mirrored for p in chosen}
    assert SPACE.mirrored(SPACE.mirrored(mask)) == mask


@given(st.lists(PREDICATES, max_size=6))
def test_trivial_and_closure_by_definition(chosen: list[Predicate]) -> None:
    mask = SPACE.mask(chosen)
    assert is_trivial(chosen) == oracle.trivial(words(chosen))
    closure = {p for p in SPACE.predicates if oracle.follows((p.left, p.op, p.right), words(chosen))}
    assert set(SPACE.predicates_of(SPACE.closure(mask))) == closure


def test_trivial_and_reduced_for_all_sets_of_one_group() -> None:
    """64 sets of six operators: each is trivial, or says the same as one operator."""
    for size in range(1, 7):
        for ops in combinations(OPERATORS, size):
            chosen = [Predicate("a", op, "b") for op in ops]
            values = [(x, y) for x, y in oracle.SIDES if all(oracle.satisfied(x, op, y) for op in ops)]
            assert is_trivial(chosen) == (not values)
            if values:
                (p,) = reduced(chosen)
                assert [(x, y) for x, y in oracle.SIDES if oracle.satisfied(x, p.op, y)] == values
            else:
                with pytest.raises(ValueError, match="trivial"):
                    reduced(chosen)


def outcome(x: int | None, y: int | None) -> int:
    if x is None or y is None:
        return 1 if x is y else 3
    return 0 if x < y else 1 if x == y else 2


@given(ROWS)
def test_evidence_of_outcomes(rows: list[dict[str, int | None]]) -> None:
    for t, s in product(rows, rows):
        found = SPACE.evidence([outcome(t[g.left], s[g.right]) for g in GROUPS])
        assert set(words(SPACE.predicates_of(found))) == oracle.evidence(t, s, words(SPACE.predicates))
        back = SPACE.evidence([outcome(s[g.left], t[g.right]) for g in GROUPS])
        assert SPACE.mirrored(found) == back


# -- constraints ----------------------------------------------------------------------------------


def test_a_constraint_as_text_and_as_json() -> None:
    rule = dc("zip = zip", "state != state", table="tax")
    assert rule.formula == "not(t.zip = s.zip and t.state != s.state)"
    assert str(rule) == "tax: not(t.zip = s.zip and t.state != s.state)"
    assert str(Dc("", rule.predicates)) == rule.formula
    assert str(Dc("tax", (Predicate('5" disk', "<=", "a b"),))) == 'tax: not(t."5"" disk" <= s."a b")'
    told = json.loads(json.dumps(Dc("tax", rule.predicates, 0.25).to_dict()))
    assert told == {
        "kind": "dc",
        "table": "tax",
        "predicates": [
            {"left": "zip", "op": "=", "right": "zip"},
            {"left": "state", "op": "!=", "right": "state"},
        ],
        "error": 0.25,
    }
    assert Dc.from_dict(told) == rule
    assert Dc.from_dict(told).error == 0.25
    told["predicates"][0]["op"] = "=="
    with pytest.raises(ValueError, match="=="):
        Dc.from_dict(told)


@given(DCS, ROWS)
def test_the_symmetric_constraint_holds_in_the_same_tables(
    one: Dc, rows: list[dict[str, int | None]]
) -> None:
    assert oracle.holds(words(one.mirrored.predicates), rows) == oracle.holds(words(one.predicates), rows)
    assert one.mirrored.mirrored == one
    if not is_trivial(one.predicates):
        assert oracle.holds(words(reduced(one.predicates)), rows) == oracle.holds(words(one.predicates), rows)


def test_keys_and_functional_dependencies_are_recognised() -> None:
    assert as_key(dc("a = a", "b = b")) == ("a", "b")
    assert as_key(dc()) == ()
    assert as_key(dc("a <= a", "a >= a")) == ("a",)
    assert as_fd(dc("a = a", "c != c", "b = b")) == (("a", "b"), "c")
    assert as_fd(dc("c != c")) == ((), "c")
    for other in (
        dc("a = b"),
        dc("a < a"),
        dc("a = a", "b <= b"),
        dc("a = a", "a != a"),
        dc("a = a", "a = b"),
        dc("b != b", "c != c"),
        dc("a = a", "b != c"),
    ):
        assert as_key(other) is None
        assert as_fd(other) is None
    assert as_key(dc("a = a", "b != b")) is None
    assert as_fd(dc("a = a")) is None


# -- sentences ------------------------------------------------------------------------------------

SENTENCES = {
    # keys, functional dependencies, and their kin
    "": "there is at most one row",
    "a = a": "no two rows have the same a",
    "a = a, b = b": "no two rows have the same a and b",
    "a = a, b = b, c = c": "no two rows have the same a, b and c",
    "a <= a, a >= a": "no two rows have the same a",
    "a != a": "all rows have the same a",
    "zip = zip, state != state": "rows with the same zip have the same state",
    "state != state, zip = zip, street = street": "rows with the same zip and street have the same state",
    "a != a, b != b": "any two rows have the same a or the same b",
    "a = a, b != b, c != c, d != d": "any two rows with the same a have the same b, the same c or the same d",
    # one column that is higher or lower
    "a < a": "no row has a higher a than another row",
    "a > a": "no row has a higher a than another row",
    "a <= a, a != a": "no row has a higher a than another row",
    "a >= a": "no row's a is higher than or equal to another row's",
    "a = a, b < b": "of two rows with the same a, neither has a higher b than the other",
    "a = a, b <= b": "of two rows with the same a, neither one's b is higher than or equal to the other's",
    "a != a, b < b": "of two rows that differ in a, neither has a higher b than the other",
    "a = a, b = b, c != c, d != d, e > e": (
        "of two rows with the same a and b that differ in both c and d, neither has a higher e than the other"
    ),
    "a != a, b != b, c != c, d < d": (
        "of two rows that differ in all of a, b and c, neither has a higher d than the other"
    ),
    # several
    "ST = ST, SAL < SAL, RATE > RATE": (
        "of two rows with the same ST, the one with the higher SAL never has the lower RATE"
    ),
    "SAL > SAL, RATE < RATE": "of two rows, the one with the higher SAL never has the lower RATE",
    "SAL > SAL, RATE > RATE": "of two rows, the one with the higher SAL never has the higher RATE",
    "SAL < SAL, RATE >= RATE": "of two rows, the one with the higher SAL never has a lower or equal RATE",
    "SAL <= SAL, RATE > RATE": "of two rows, the one with the higher RATE never has a lower or equal SAL",
    "SAL <= SAL, AGE <= AGE": "of two rows, one with a higher or equal SAL never has a higher or equal AGE",
    "TXA > TXA, SAL < SAL, RATE > RATE": (
        "of two rows, the one with the higher TXA and the lower SAL never has the higher RATE"
    ),
    "CH != CH, TXA < TXA, SAL <= SAL, RATE > RATE": (
        "of two rows that differ in CH, the one with the higher TXA and a higher or equal SAL never has the "
        "lower RATE"
    ),
    "a >= a, b > b, c <= c": (
        "of two rows, the one with the higher b and a higher or equal a never has a lower or equal c"
    ),
    # across columns
    "STX > CTX": "no row's STX is greater than another row's CTX",
    "a < b": "no row's a is less than another row's b",
    "a <= b": "no row's a is at most another row's b",
    "a >= b": "no row's a is at least another row's b",
    "a = b": "no row's a equals another row's b",
    "a != b": "no row's a differs from another row's b",
    "a >= b, a != b": "no row's a is greater than another row's b",
    "ST = ST, STX > CTX": "of two rows with the same ST, neither one's STX is greater than the other's CTX",
    "ST != ST, STX = CTX": "of two rows that differ in ST, neither one's STX equals the other's CTX",
    "STX > CTX, CTX < STX": (
        "no row's STX is greater than another row's CTX while its CTX is less than the other's STX"
    ),
    "SAL < SAL, STX > CTX": (
        "no row's STX is greater than another row's CTX while its SAL is lower than the other's"
    ),
    "ST = ST, STX > CTX, a >= a, b != c": (
        "of two rows with the same ST, neither one's STX is greater than the other's CTX while its a is "
        "higher than or equal to the other's and its b differs from the other's c"
    ),
    # what holds anyhow
    "a < a, b = b, a > a": "holds in every table: its comparisons of a contradict each other",
    "a = b, a != b": "holds in every table: its comparisons of a with b contradict each other",
}


@pytest.mark.parametrize("text", SENTENCES)
def test_sentences(text: str) -> None:
    assert sentence(dc(*filter(None, text.split(", ")))) == SENTENCES[text]


def test_names_in_sentences_are_quoted_where_they_would_be_misread() -> None:
    rule = Dc(
        "t", tuple(Predicate(c, "=", c) for c in ("zip code", "and", "capital-gain", "", 'x"y', "größe"))
    )
    assert sentence(rule) == 'no two rows have the same "zip code", "and", capital-gain, "", "x""y" and größe'


NAMES = [
    "a",
    "b",
    "zip code",
    "and",
    "while",
    "the same",
    "than",
    "higher",
    "other",
    "its",
    'q"',
    "x, y",
    "never",
]
SENTENCE_DCS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(OPERATORS), st.sampled_from(NAMES), st.booleans()).map(
        lambda p: Predicate(p[0], p[1], p[0] if p[3] else p[2])
    ),
    max_size=6,
    unique=True,
).map(lambda ps: Dc("t", tuple(ps)))


@given(SENTENCE_DCS)
def test_a_sentence_says_what_the_predicates_say(one: Dc) -> None:
    """Read back by another hand, it is the constraint or its symmetric one: nothing is lost."""
    said = sentence(one)
    if is_trivial(one.predicates):
        assert "contradict" in said
        return
    back = read_back(said)
    assert len(back) == len(set(back))
    sides = (words(reduced(one.predicates)), words(reduced(one.mirrored.predicates)))
    assert set(back) in [set(side) for side in sides]


NAME = r'(?:"(?:[^"]|"")*"|[^\s",]+)'
ACROSS = {
    "equals": "=",
    "differs from": "!=",
    "is less than": "<",
    "is at most": "<=",
    "is greater than": ">",
    "is at least": ">=",
}


def plain(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def names_in(listed: str) -> list[str]:
    """Of `a, b and c`, with `or` for `and`, and `the same` before each."""
    parts = re.findall(rf"(?:^|, | and | or )(?:the same )?({NAME})", listed)
    assert parts
    return [plain(p) for p in parts]


def equals(columns: list[str], op: str = "=") -> list[Words]:
    return [(c, op, c) for c in columns]


def read_back(text: str) -> list[Words]:
    """The predicates of a sentence."""
    some = rf"{NAME}(?:, {NAME})*(?: and {NAME})?"
    if text == "there is at most one row":
        return []
    if m := re.fullmatch(rf"no two rows have the same ({some})", text):
        return equals(names_in(m[1]))
    if m := re.fullmatch(rf"all rows have the same ({NAME})", text):
        return equals([plain(m[1])], "!=")
    if m := re.fullmatch(rf"rows with the same ({some}) have the same ({NAME})", text):
        return equals(names_in(m[1])) + equals([plain(m[2])], "!=")
    each = rf"the same {NAME}(?:, the same {NAME})* or the same {NAME}"
    if m := re.fullmatch(rf"any two rows(?: with the same ({some}))? have ({each})", text):
        return (equals(names_in(m[1])) if m[1] else []) + equals(names_in(m[2]), "!=")
    found: list[Words] = []
    preamble = (
        rf"of two rows(?: with the same ({some}))?(?: that differ in (?:both |all of )?({some}))?, (.*)"
    )
    if m := re.fullmatch(preamble, text, re.DOTALL):
        found += equals(names_in(m[1])) if m[1] else []
        found += equals(names_in(m[2]), "!=") if m[2] else []
        text = m[3]
    if m := re.fullmatch(rf"(?:no row|neither) has a higher ({NAME}) than (?:another row|the other)", text):
        return [*found, (plain(m[1]), ">", plain(m[1]))]
    one, other = "(?:no row's|neither one's|its)", "(?:another row's|the other's)"
    if m := re.fullmatch(rf"{one} ({NAME}) is higher than or equal to {other}", text):
        return [*found, (plain(m[1]), ">=", plain(m[1]))]
    part = rf"(?:the (?:higher|lower)|a (?:higher|lower) or equal) {NAME}"
    listed = rf"{part}(?:, {part})*(?: and {part})?"
    if m := re.fullmatch(rf"(?:the one|one) with ({listed}) never has ({part})", text):
        for word, weak, name in re.findall(
            rf"(?:the|a) (higher|lower)( or equal)? ({NAME})", f"{m[1]} {m[2]}"
        ):
            found.append(
                (plain(name), (">" if word == "higher" else "<") + ("=" if weak else ""), plain(name))
            )
        return found
    across = "|".join(ACROSS)
    than = "(?:higher|lower) than(?: or equal to)?"
    clause = rf"(?:{one} {NAME} (?:{across}) {other} {NAME}|its {NAME} is {than} {other})"
    assert re.fullmatch(rf"{clause}(?: while {clause}(?:, {clause})*(?: and {clause})?)?", text), text
    for a, op, b in re.findall(rf"{one} ({NAME}) ({across}) {other} ({NAME})", text):
        found.append((plain(a), ACROSS[op], plain(b)))
    for name, word, weak in re.findall(rf"its ({NAME}) is (higher|lower) than( or equal to)? {other}", text):
        found.append((plain(name), (">" if word == "higher" else "<") + ("=" if weak else ""), plain(name)))
    return found
