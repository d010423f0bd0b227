"""The ranking of denial constraints: measures by definition, bounds that bound, lists that people can use."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Sequence
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
from holdfast.core.words.predicate import Group, PredicateSpace
from holdfast.denial import dc_ranking
from holdfast.denial.dc_ranking import Ranking, rank
from reference import dc_forms as reference

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

    def ranked(self, top: int | None = None, *, counted: bool = True, **more: Any) -> Ranking:
        counts = self.counts if counted else None
        return rank(self.cover, self.space, "t", self.masks, counts, len(self.rows), top=top, **more)


TABLES = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.tuples(*[st.sampled_from([0, 1, 2, None])] * width), min_size=1, max_size=7)
)


def table_of(rows: Rows, across: bool) -> Table:
    names = "abc"[: len(rows[0])]
    return Table(names, rows, [("a", "b")] if across and len(names) > 1 else [])


def sentences(ranking: Ranking) -> list[str]:
    return [d.sentence for d in ranking.dcs]


# -- measures ----------------------------------------------------------------------------------------------


@given(TABLES, st.booleans())
@settings(max_examples=100)
def test_measures_by_definition(rows: Rows, across: bool) -> None:
    table = table_of(rows, across)
    found = table.ranked()
    pairs = dict(table.pairs)
    assert len(found.dcs) == found.n_dcs == len(table.cover)
    assert found.n_measured + found.n_tautologies == found.n_dcs
    assert {d.dc for d in found.dcs} == {
        table.space.dc("t", sum(1 << i for i in positions_of(m))) for m in table.cover
    }
    total = len(rows) * (len(rows) - 1)
    for one in found.dcs:
        dc = frozenset(table.space.number(p) for p in one.dc.predicates)
        assert 0 <= one.score <= one.alone <= 1
        if not dc:
            continue
        columns = {c for p in one.dc.predicates for c in (p.left, p.right)}
        assert one.succinctness == pytest.approx(2 / (len(dc) + len(columns)))
        assert one.coverage == pytest.approx(reference.coverage(dc, pairs))
        if one.tautology:
            assert (one.score, one.surprise) == (0, None)
            continue
        violations, near, by_chance = reference.support(dc, pairs)
        assert (violations, one.near) == (0, near)
        if len(dc) > 1:
            assert one.by_chance == pytest.approx(by_chance)
            assert one.surprise == pytest.approx(math.log1p(by_chance) / math.log1p(total))
        else:
            assert one.by_chance is None


@given(TABLES, st.booleans(), st.booleans())
def test_lists_are_ordered_and_the_same_whatever_is_asked(rows: Rows, across: bool, counted: bool) -> None:
    table = table_of(rows, across)
    whole = table.ranked(counted=counted)
    listed = [d.score for d in whole.dcs if not d.tautology]
    assert listed == sorted(listed, reverse=True)
    assert [d.tautology for d in whole.dcs] == sorted(d.tautology for d in whole.dcs)
    assert whole.n_certain == len(whole.dcs)
    for top in (1, 3):
        assert table.ranked(top, counted=counted).dcs == whole.dcs[:top]
    assert whole.counted == counted
    assert json.loads(json.dumps(whole.to_dict()))["n_dcs"] == len(table.cover)


@given(TABLES.filter(lambda rows: len(rows) > 3), st.integers(0, 60), st.integers(1, 4))
def test_bounds_bound(rows: Rows, tests: int, first_round: int) -> None:
    """With few measured: what is called certain is the same as with all, and bounds are not too low."""
    table = table_of(rows, across=True)
    whole = {d.dc: d for d in table.ranked().dcs}
    in_order = list(whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dc_ranking, "MAX_TESTS", tests)
        patch.setattr(dc_ranking, "ROUND", first_round)
        some = table.ranked()
    event(f"{some.n_certain} certain of {some.n_measured} measured of {some.n_dcs}")
    certain = [d.dc for d in some.dcs[: some.n_certain]]
    assert certain == in_order[: len(certain)]
    assert some.n_measured <= tests // max(1, len(table.masks))
    for one in some.dcs:
        if one.measured or one.tautology:
            assert one.alone == pytest.approx(whole[one.dc].alone)
        else:
            assert one.alone >= whole[one.dc].alone - 1e-12
            assert one.reasons[-1] == "not measured: the score is an upper bound"


def test_witnessed_evidence_counts_kinds_of_pairs() -> None:
    rows = [(i % 2, i % 2, i) for i in range(60)]
    table = Table(["a", "b", "c"], rows)
    found = table.ranked(1 << 10, counted=False)
    # One direction of each pair is enough.
    n_half = len(table.masks) // 2 + 1
    half = rank(table.cover, table.space, "t", table.masks[:n_half], None, len(rows))
    assert len(half.dcs) == len(found.dcs)
    kinds = [r for d in found.dcs for r in d.reasons if "kinds of pairs" in r]
    assert kinds or all(d.by_chance is None or d.by_chance < 20 for d in found.dcs)
    assert not any("kinds of pairs" in r for d in table.ranked().dcs for r in d.reasons)


# -- lists that people can use -----------------------------------------------------------------------------


def test_the_tax_table_of_the_paper() -> None:
    table = Table(NAMES, TAX, [("STX", "CTX")])
    found = table.ranked(10)
    assert found.n_dcs == 40_647
    assert found.n_tautologies == 2
    assert sentences(found) == [
        "no two rows have the same Date",
        "no two rows have the same TXA",
        "rows with the same ZIP have the same ST",
        "rows with the same SSN have the same Name",
        "no row's STX equals another row's CTX while its CTX is lower than the other's",
        "rows with the same Name have the same PH",
        "rows with the same Name have the same ZIP",
        "rows with the same Name have the same ST",
        "rows with the same NUM have the same CH",
        "rows with the same SAL have the same MS",
    ]
    assert found.dcs[0].reasons == ("is a key", "1 predicate on 1 column")
    assert found.dcs[2].reasons[:2] == (
        "is the functional dependency ZIP -> ST",
        "may be an accident: chance would break it 13 times",
    )
    assert found.dcs[2].to_dict()["fd"] == {"lhs": ["ZIP"], "rhs": "ST"}
    assert found.dcs[0].to_dict()["key"] == ["Date"]


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


def test_rules_come_before_accidents_and_synonyms_later() -> None:
    found = payroll(120).ranked()
    assert [d.sentence for d in found.dcs[:5]] == [
        "rows with the same state have the same code",
        "rows with the same code have the same state",
        "of two rows with the same code, the one with the higher rate never has a lower or equal salary",
        "of two rows with the same state, the one with the higher rate never has a lower or equal salary",
        "rows with the same code and salary have the same rate",
    ]
    assert found.dcs[2].reasons == (
        "chance would break it 557 times",
        "6,103 pairs (42.7 %) are one predicate short of breaking it",
        "3 predicates on 3 columns",
    )
    # The other name of a state says nothing new, nor does the other direction.
    for place, like in ((1, 0), (3, 2)):
        again = found.dcs[place]
        assert again.alone == found.dcs[like].alone
        assert again.score == pytest.approx(again.alone / 2)
        assert again.reasons[-1] == f"on the same columns as number {like + 1}"
    assert all(d.reasons[0].startswith(("may be", "is ")) for d in found.dcs[6:])


def test_accidents_come_last() -> None:
    """Of few rows thousands of constraints hold by chance; the rules are still the first to be read."""
    found = payroll(60, n_noisy=6).ranked(6)
    assert found.n_dcs > 1000
    rules = {d.sentence for d in payroll(120).ranked(4).dcs}
    assert rules < set(sentences(found))


def test_stability_counts_mildly() -> None:
    table = payroll(60)
    n = len(table.cover)
    new = table.ranked()
    held = table.ranked(history=Stability(np.full(n, 9), np.full(n, 60)))
    assert [d.dc for d in new.dcs] == [d.dc for d in held.dcs]
    assert held.dcs[0].score > new.dcs[0].score
    assert (held.dcs[0].held_versions, held.dcs[0].changed_rows) == (9, 60)
    assert "held through 9 versions and 60 changed rows" in held.dcs[0].reasons
    assert not any("held" in r for d in new.dcs for r in d.reasons)


def test_within_an_error() -> None:
    """Of two constraints of one shape, the one that is broken more often, beside chance, comes later."""
    draw = random.Random(3)
    rows = [(i % 5, (i % 5) if i else 9, draw.randrange(5)) for i in range(60)]
    table = Table(["a", "b", "c"], rows)
    number = {str(p): i for i, p in enumerate(table.space.predicates)}
    dcs = [["t.a = s.a", "t.b != s.b"], ["t.a = s.a", "t.c != s.c"]]
    sets = [frozenset(number[p] for p in dc) for dc in dcs]
    masks = np.array([mask_of(s, 1) for s in sets], dtype=np.uint64)
    total = len(rows) * (len(rows) - 1)
    told = [reference.support(s, dict(table.pairs)) for s in sets]
    errors = np.array([violations / total for violations, _, _ in told])
    assert errors[0] > 0
    found = rank(masks, table.space, "t", table.masks, table.counts, len(rows), errors=errors)
    assert [d.dc.error for d in found.dcs] == pytest.approx(errors.tolist())
    assert [d.by_chance for d in found.dcs] == pytest.approx([by_chance for _, _, by_chance in told])
    assert [d.near for d in found.dcs] == [near for _, near, _ in told]
    assert [d.coverage for d in found.dcs] == pytest.approx(
        [reference.coverage(s, dict(table.pairs)) for s in sets]
    )
    assert found.dcs[0].alone > 3 * found.dcs[1].alone


# -- edges -------------------------------------------------------------------------------------------------


def test_what_always_holds_comes_last() -> None:
    draw = random.Random(1)
    rows = [(draw.randrange(6), draw.randrange(6)) for _ in range(80)]
    table = Table(["low", "high"], rows, [("low", "high")])
    found = table.ranked()
    assert found.n_tautologies > 0
    last = found.dcs[-found.n_tautologies :]
    assert all(d.tautology for d in last)
    assert {d.reasons for d in last} == {("holds in every table: its comparisons run in a circle",)}
    assert {d.score for d in last} == {0.0}
    assert not any(d.tautology for d in found.dcs[: -found.n_tautologies])


def test_constant_columns_and_keys() -> None:
    table = Table(["id", "unit"], [(i, "kg") for i in range(9)])
    found = table.ranked()
    assert [(d.sentence, d.reasons[0]) for d in found.dcs] == [
        ("no two rows have the same id", "is a key"),
        ("all rows have the same unit", "the column is constant"),
    ]
    assert (found.dcs[0].surprise, found.dcs[1].score) == (1, 0)


@pytest.mark.parametrize("n_rows", [0, 1])
def test_at_most_one_row(n_rows: int) -> None:
    table = Table(["a"], [(1,)] * n_rows)
    found = table.ranked()
    assert [(d.sentence, d.score) for d in found.dcs] == [("there is at most one row", 0.0)]
    nothing = rank(table.cover[:0], table.space, "t", table.masks, table.counts, n_rows)
    assert nothing == Ranking((), 0, 0, 0, 0, True)
