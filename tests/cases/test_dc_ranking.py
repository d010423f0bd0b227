"""Rankings of rules: what chance would make of them, what follows from others, lists that people can use."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from cases.test_incdc_paper import NAMES, TAX
from holdfast.core.cover.kernels.search import minimal_dcs
from holdfast.core.cover.kernels.vertices import Space
from holdfast.core.cover.stability import Stability
from holdfast.core.rows.kernels.masks import mask_of, n_words_for, positions_of
from holdfast.core.words.predicate import Dc, Group, PredicateSpace
from holdfast.core.words.row_rule import RowRule
from holdfast.denial import dc_chance, dc_ranking
from holdfast.denial.circular_dcs import tautologies
from holdfast.denial.dc_ranking import DcRanking, Folded, RowFacts, rank
from holdfast.denial.row_counts import SATISFYING
from reference import dc_forms as reference
from reference.dc_hitting_sets import Predicates
from reference.predicates import satisfied

Rows = Sequence[Sequence[Any]]


class Table:
    """Rows with their space, evidence and general cover. Texts have no order; all that is alike is compared
    across columns if it is asked for."""

    def __init__(self, names: Sequence[str], rows: Rows, across: Sequence[tuple[str, str]] = ()) -> None:
        self.names, self.rows = list(names), rows
        texts = {n for i, n in enumerate(names) if any(isinstance(row[i], str) for row in rows)}
        pairs = [(n, n) for n in names] + [pair for a, b in across for pair in ((a, b), (b, a))]
        self.space = PredicateSpace(tuple(Group(a, b, a not in texts) for a, b in pairs))
        self.pairs = Counter(self._evidence(t, s) for t, s in permutations(rows, 2))
        self.masks = self._family(self.pairs)
        self.counts = np.array(list(self.pairs.values()), dtype=np.int64)
        space = self.space
        group_of, op_of, mirror = np.array([space.group_of, space.op_of, space.mirror], dtype=np.int32)
        self.cover = minimal_dcs(self.masks, Space(group_of, op_of, mirror, general=True))

    def _evidence(self, t: Sequence[Any], s: Sequence[Any]) -> frozenset[int]:
        at = {n: i for i, n in enumerate(self.names)}
        outcomes = []
        for group in self.space.groups:
            x, y = t[at[group.left]], s[at[group.right]]
            if (x is None) != (y is None):
                outcomes.append(3)
            elif x is None or x == y:
                outcomes.append(1)
            else:
                outcomes.append(0 if x < y else 2)
        mask = self.space.evidence(outcomes)
        return frozenset(i for i in range(self.space.n_predicates) if mask >> i & 1)

    def _family(self, sets: Any) -> Any:
        n_words = n_words_for(self.space.n_predicates)
        return np.array([mask_of(s, n_words) for s in sets], dtype=np.uint64).reshape(-1, n_words)

    def ranked(self, top: int | None = None, *, counted: bool = True, **more: Any) -> DcRanking:
        counts = self.counts if counted else None
        scores = dict.fromkeys(self.names, 0.9)
        given_ = {"rows": self.facts(), "key_scores": scores, **more}
        return rank(self.cover, self.space, "t", self.masks, counts, top=top, **given_)

    def facts(self) -> RowFacts:
        """The tightest rule of each two columns that are compared, and the rows that chance would break."""
        rules, by_chance = [], []
        compared = [(g.left, g.right, g.ordered) for g in self.space.groups if g.left < g.right]
        for a, b, ordered in compared:
            x, y = ([row[self.names.index(c)] for row in self.rows] for c in (a, b))
            both = [(v, w) for v, w in zip(x, y, strict=True) if None not in (v, w)]
            for op in [op for op in SATISFYING if ordered or op in ("=", "!=")]:
                if both and all(satisfied(v, op, w) for v, w in both):
                    rules.append(RowRule("t", a, op, b, n_compared=len(both)))
                    shuffled = [(v, w) for v in x for w in y if None not in (v, w)]
                    against = sum(not satisfied(v, op, w) for v, w in shuffled)
                    by_chance.append(len(both) * against / max(1, len(shuffled)))
                    break
        return RowFacts(rules, np.array(by_chance), self.filled, len(compared), Stability.none(len(rules)))

    @property
    def filled(self) -> frozenset[str]:
        return frozenset(n for i, n in enumerate(self.names) if all(row[i] is not None for row in self.rows))

    def dcs(self) -> list[frozenset[int]]:
        """The DCs of the cover that say something."""
        telling = self.cover[~tautologies(self.cover, self.space)]
        return [frozenset(positions_of(m)) for m in telling]


TABLES = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.tuples(*[st.sampled_from([0, 1, 2, None])] * width), min_size=1, max_size=7)
)


def table_of(rows: Rows, across: bool) -> Table:
    names = "abc"[: len(rows[0])]
    return Table(names, rows, [("a", "b")] if across and len(names) > 1 else [])


def sentences(ranking: DcRanking) -> list[str]:
    return [r.sentence for r in ranking.rules]


def adds_up(found: DcRanking) -> bool:
    n_told = found.n_rules + found.folded.total + found.n_accidents + found.n_open
    return found.n_dcs + found.n_row_rules == n_told


@pytest.fixture
def _nothing_is_an_accident() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dc_chance, "asked_for", lambda *_: -1.0)
        patch.setattr(dc_chance, "WORTH", -1.0)
        patch.setattr(dc_ranking, "log", lambda _: -1.0)
        yield


# -- chance ------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_nothing_is_an_accident")
@given(TABLES, st.booleans())
@settings(max_examples=100)
def test_measures_by_definition(rows: Rows, across: bool) -> None:
    table = table_of(rows, across)
    found = table.ranked()
    pairs, n_rows = dict(table.pairs), len(rows)
    assert adds_up(found)
    assert (found.n_dcs, found.n_accidents, found.n_open) == (len(table.dcs()), 0, 0)
    for one in found.rules:
        if isinstance(one.rule, RowRule):
            assert one.surprise == pytest.approx(math.log1p(one.rows_by_chance or 0) / math.log1p(n_rows))
            assert one.score == pytest.approx(0.85 * one.surprise * 2 / 3)
            continue
        dc = frozenset(table.space.number(p) for p in one.rule.predicates)
        violations, _, by_chance = reference.support(dc, pairs)
        assert violations == 0
        assert one.score == pytest.approx(0.85 * one.succinctness * one.surprise)
        if len(dc) < 2:
            assert (one.by_chance, one.rows_by_chance) == (None, None)
            continue
        columns = {c for p in one.rule.predicates for c in (p.left, p.right)}
        assert one.succinctness == pytest.approx(2 / (len(dc) + len(columns)))
        assert one.by_chance == pytest.approx(by_chance)
        same = [table.space.number(p) for p in one.rule.predicates if p.op == "=" and p.left == p.right]
        agreeing = min((satisfying(pairs, {a, b}) for a in same for b in same), default=sum(pairs.values()))
        in_rows = by_chance / max(1, agreeing / n_rows)
        assert one.rows_by_chance == pytest.approx(in_rows)
        assert one.surprise == pytest.approx(min(1, math.log1p(in_rows) / math.log1p(n_rows)))


def satisfying(pairs: dict[frozenset[int], int], predicates: set[int]) -> int:
    return sum(n for evidence, n in pairs.items() if predicates <= evidence)


@given(TABLES, st.booleans(), st.booleans())
def test_lists_are_ordered_and_the_same_whatever_is_asked(rows: Rows, across: bool, counted: bool) -> None:
    table = table_of(rows, across)
    whole = table.ranked(counted=counted)
    scores = [r.score for r in whole.rules]
    assert scores == sorted(scores, reverse=True)
    assert len(whole.rules) == whole.n_rules
    assert adds_up(whole)
    for top in (1, 3):
        first = table.ranked(top, counted=counted)
        assert (first.rules, first.n_rules) == (whole.rules[:top], whole.n_rules)
    assert whole.counted == counted
    assert json.loads(json.dumps(whole.to_dict()))["n_dcs"] == len(table.dcs())
    for one in whole.rules:  # no accident
        if isinstance(one.rule, Dc) and len(one.rule.predicates) > 1:
            n_sets = math.comb(table.space.n_predicates, len(one.rule.predicates))
            assert one.rows_by_chance is not None
            assert one.rows_by_chance >= math.log(n_sets) - 1e-9


def test_what_is_not_looked_at_is_open() -> None:
    table = payroll(120, n_noisy=4)
    whole = table.ranked()
    n_long = sum(len(dc) > 3 for dc in table.dcs())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dc_chance, "MAX_TESTS", 0)
        some = table.ranked()
    assert 0 < some.n_open <= n_long
    assert adds_up(some)
    assert [r.rule for r in some.rules] == [r.rule for r in whole.rules]  # all of up to three predicates
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dc_ranking, "MAX_PREMISES", 2)
        few = table.ranked()
    assert few.n_open > 0
    assert adds_up(few)
    assert few.rules == whole.rules[:2]


def test_columns_that_have_nothing_to_do_with_each_other() -> None:
    """Grades are from 1 to 9 and ways from 1 to 3: of comparisons of the two some are never true together."""
    draw = random.Random(6)
    rows = [(draw.randrange(1, 10), draw.randrange(1, 4)) for _ in range(300)]
    table = Table(["grade", "way"], rows, [("grade", "way")])
    table.counts *= 900  # as if there were 30 times as many rows

    def shuffled(dcs: Sequence[Dc]) -> Any:
        n = 4000
        at = {c: [draw.choice(rows)[i] for _ in range(2 * n)] for i, c in enumerate(table.names)}

        def violated(dc: Dc, i: int) -> bool:
            return all(satisfied(at[p.left][i], p.op, at[p.right][n + i]) for p in dc.predicates)

        return np.array([sum(violated(dc, i) for i in range(n)) / n for dc in dcs])

    assert [str(r) for r in table.ranked(shuffled=shuffled).rules] == []
    assert table.ranked().n_rules > 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dc_chance, "MAX_ACROSS", 0)
        found = table.ranked(shuffled=shuffled)
    assert found.n_open > 0
    assert adds_up(found)


def test_witnessed_evidence_counts_kinds_of_pairs() -> None:
    rows = [(i % 25, i % 25, i) for i in range(60)]
    table = Table(["a", "b", "c"], rows)
    found = table.ranked(counted=False)
    # One direction of each pair is enough.
    n_half = len(table.masks) // 2 + 1
    half = rank(table.cover, table.space, "t", table.masks[:n_half], None, key_scores={"c": 0.9})
    assert half.n_rules == found.n_rules
    assert adds_up(found)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dc_chance, "asked_for", lambda *_: 0.0)
        kinds = [r for d in table.ranked(counted=False).rules for r in d.reasons if "kinds of rows" in r]
        assert kinds
        assert not any("kinds of rows" in r for d in table.ranked().rules for r in d.reasons)


# -- what follows ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_nothing_is_an_accident")
@given(TABLES, st.booleans())
@settings(max_examples=100)
def test_what_is_folded_follows(rows: Rows, across: bool) -> None:
    """Two rows that violate no rule that is listed violate no DC of the table: by a trial of all values."""
    table = table_of(rows, across)
    found = table.ranked()
    event(f"{found.folded.total} of {found.n_dcs + found.n_row_rules} are folded")
    names = sorted(table.names)
    groups = [(names.index(g.left), names.index(g.right), g.ordered) for g in table.space.groups]
    about_pairs = [r.rule for r in found.rules if isinstance(r.rule, Dc)]
    listed = [frozenset(map(table.space.number, dc.predicates)) for dc in about_pairs]
    about_rows = tuple(
        (names.index(r.rule.left), r.rule.op, names.index(r.rule.right))
        for r in found.rules
        if isinstance(r.rule, RowRule)
    )
    filled = frozenset(names.index(c) for c in table.filled)
    for dc in table.dcs():
        assert reference.implied(Predicates(groups), listed, dc, about_rows, filled)
    # And none of those that are listed says what others say, as far as rules about rows can tell.
    for dc in listed:
        alone = reference.implied(Predicates(groups), [], dc, about_rows, filled)
        assert not (alone and table.filled >= {"a", "b"})


def prices(n: int, n_missing: int = 0) -> Table:
    """Days with the lowest and the highest price, and the last one twice; some highest ones are not known."""
    draw = random.Random(5)
    rows: list[tuple[Any, ...]] = []
    for day in range(n):
        low, last, high = sorted(draw.sample(range(200), 3))
        rows.append((day, low, None if day < n_missing else high, last, last))
    names = ["day", "low", "high", "last", "final"]
    return Table(names, rows, [(a, b) for i, a in enumerate(names[1:]) for b in names[i + 2 :]])


def test_what_follows_from_rules_about_rows_takes_no_place() -> None:
    found = prices(60).ranked()
    assert sorted(str(r) for r in found.rules) == [
        "t: final = last",
        "t: high > last",
        "t: last > low",
        "t: not(t.day = s.day)",
    ]
    # high > low follows from two of them, and what is said of `final` from `last`.
    assert found.n_row_rules == 6
    assert found.folded.row_rules > 90
    assert found.folded.keys == found.folded.fds == 0
    assert adds_up(found)


def test_nulls_hide_what_would_follow() -> None:
    """Without a highest price it is not known to be above the lowest: high > low is no longer folded."""
    assert "t: high > low" not in {str(r) for r in prices(60, 4).ranked().rules}  # last is always there
    rows = [(low, None if i < 9 else low + 1, low + 2) for i, low in enumerate(range(60))]
    table = Table(["a", "b", "c"], rows, [("a", "b"), ("b", "c"), ("a", "c")])
    said = {str(r) for r in table.ranked().rules}
    assert "t: a < c" in said


def test_what_follows_from_keys_and_functional_dependencies_is_counted() -> None:
    draw = random.Random(2)
    cities = [(f"city{i}", f"land{i % 5}", f"part{i % 5 % 2}") for i in range(20)]
    rows = [(i, *draw.choice(cities), draw.randrange(3)) for i in range(300)]
    table = Table(["id", "city", "land", "part", "size"], rows)
    found = table.ranked()
    assert {str(r) for r in found.rules} == {
        "t: not(t.id = s.id)",
        "t: not(t.city = s.city and t.land != s.land)",
        "t: not(t.land = s.land and t.part != s.part)",
    }
    assert found.folded == Folded(fds=1)  # city -> part
    assert "is the functional dependency city -> land" in found.rules[1].reasons
    # The order of two columns implies that one determines the other, where nothing is NULL.
    steps = Table(["a", "b"], [(i, i // 2) for i in range(100)] + [(i, i // 2) for i in range(100)])
    assert [str(r) for r in steps.ranked().rules] == ["t: not(t.a <= s.a and t.b > s.b)"]
    assert steps.ranked().folded.others == 1


def test_what_holds_in_every_table_is_not_counted() -> None:
    draw = random.Random(1)
    rows = [(draw.randrange(6), draw.randrange(6)) for _ in range(80)]
    table = Table(["low", "high"], rows, [("low", "high")])
    found = table.ranked()
    assert len(table.dcs()) < len(table.cover)
    assert found.n_dcs == len(table.dcs())
    assert adds_up(found)


# -- lists that people can use -----------------------------------------------------------------------------


def test_the_tax_table_of_the_paper() -> None:
    """Ten rows are enough to see who is who."""
    table = Table(NAMES, TAX, [("STX", "CTX")])
    found = table.ranked(10, key_scores={"Date": 0.2, "TXA": 0.1})
    assert sentences(found) == [
        "rows with the same SSN have the same Name",
        "rows with the same Name have the same SSN",
        "rows with the same Name have the same PH",
    ]
    assert (found.n_dcs, found.folded) == (40_645, Folded(fds=1))
    assert adds_up(found)
    assert found.rules[0].reasons == (
        "is the functional dependency SSN -> Name",
        "chance would break it 9 times, by 9 rows at least",
        "2 predicates on 2 columns",
    )


def payroll(n: int, n_noisy: int = 2) -> Table:
    """Codes and names of states stand for each other; in a state, who earns more has no lower rate."""
    draw = random.Random(7)
    states = [("CO", "Colorado", 0), ("ND", "Dakota", 2), ("UT", "Utah", 4)]
    rows = []
    for _ in range(n):
        code, name, base = draw.choice(states)
        salary = draw.randrange(100)
        noise = (draw.randrange(4 + i) for i in range(n_noisy))
        rows.append((code, name, salary, base + salary // 20, *noise))
    return Table(["code", "state", "salary", "rate", *(f"noise{i}" for i in range(n_noisy))], rows)


RULES = [
    "rows with the same state have the same code",
    "rows with the same code have the same state",
    "rows with the same salary and rate have the same code",
    "of two rows with the same code, the one with the higher rate never has a lower or equal salary",
]


def test_rules_are_listed_and_accidents_are_not() -> None:
    found = payroll(240).ranked()
    assert sentences(found) == RULES
    # With the other name of a state it is said again, and by the functional dependencies that follow from it.
    assert found.folded.total >= 3
    assert found.rules[3].reasons[1:] == ("3 predicates on 3 columns",)
    assert found.rules[3].reasons[0].startswith("chance would break it ")
    assert found.rules[0].to_dict()["fd"] == {"lhs": ["state"], "rhs": "code"}
    assert found.rules[3].to_dict()["key"] is None


def test_thousands_of_accidents() -> None:
    """Of few rows thousands of constraints hold by chance; the list ends where the rules end."""
    found = payroll(120, n_noisy=6).ranked(20)
    assert found.n_dcs > found.n_accidents > 1000
    assert sorted(sentences(found)) == sorted(RULES)


def test_stability_counts_mildly() -> None:
    table = payroll(120)
    new = table.ranked()

    def history(masks: Any) -> Stability:
        return Stability(np.full(len(masks), 9), np.full(len(masks), 60))

    held = table.ranked(history=history)
    assert [r.rule for r in new.rules] == [r.rule for r in held.rules]
    assert held.rules[0].score > new.rules[0].score
    assert (held.rules[0].held_versions, held.rules[0].changed_rows) == (9, 60)
    assert "held through 9 versions and 60 changed rows" in held.rules[0].reasons
    assert not any("held" in reason for r in new.rules for reason in r.reasons)


# -- edges -------------------------------------------------------------------------------------------------


def test_constant_columns_and_keys() -> None:
    table = Table(["id", "unit", "price"], [(i, "kg", i / 7) for i in range(9)])
    found = table.ranked(key_scores={"id": 0.9, "price": 0.3})
    assert [(r.sentence, r.reasons[0]) for r in found.rules] == [("no two rows have the same id", "is a key")]
    assert found.rules[0].surprise == 0.9
    assert found.rules[0].to_dict()["key"] == ["id"]


@pytest.mark.parametrize("n_rows", [0, 1])
def test_at_most_one_row(n_rows: int) -> None:
    table = Table(["a"], [(1,)] * n_rows)
    found = table.ranked()
    assert (found.rules, found.n_dcs, found.n_accidents) == ((), 1, 1)  # there is at most one row
    nothing = rank(table.cover[:0], table.space, "t", table.masks, table.counts)
    assert nothing == DcRanking((), 0, 0, 0, Folded(), 0, 0, True)
