"""The choice of indexes for denial constraints: the paper's examples, and laws on random constraints.

Tables 1 and 2 of the paper are in `test_incdc_paper.py`; here are the constraints of its example 1, and what
algorithm 4 makes of them by its scores and thresholds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from holdfast.core.rows.kernels import order_index
from holdfast.core.rows.kernels.masks import mask_of, n_words_for
from holdfast.core.rows.kernels.operators import EQ, GE, GT, LE, LT, NE, SYMMETRIC
from holdfast.core.words.predicate import OPERATORS, Group, Predicate, PredicateSpace
from holdfast.denial.access import costs as dc_access_costs
from holdfast.denial.access.access import Access, PairSample, Selection, Statistics
from holdfast.denial.access.access import statistics as statistics_of
from holdfast.denial.access.paper_selection import ALPHA, select_index
from holdfast.denial.access.selection import select
from reference.order_index import half_rank
from reference.predicates import satisfied

# --- Constraints and statistics --------------------------------------------------------------------------


def covered(space: PredicateSpace, *dcs: str) -> Any:
    """`covered(space, "a = a, b < b", ...)`: constraints as masks."""
    n_words = n_words_for(space.n_predicates)
    masks = []
    for text in dcs:
        parts = [part.split() for part in text.split(",") if part.strip()]
        masks.append(mask_of([space.number(Predicate(a, op, b)) for a, op, b in parts], n_words))  # type: ignore[arg-type]
    return np.array(masks, dtype=np.uint64).reshape(len(dcs), n_words)


def ordered(*names: str) -> PredicateSpace:
    return PredicateSpace(tuple(Group(name, name, True) for name in names))


def known(
    space: PredicateSpace,
    names: str,
    distinct: dict[str, int],
    n_rows: int,
    r: dict[tuple[str, str], float] | None = None,
) -> Statistics:
    """Statistics as told; without a sample."""
    columns = tuple(names.split())
    correlation = np.eye(len(columns))
    for (a, b), told in (r or {}).items():
        i, j = columns.index(a), columns.index(b)
        correlation[i, j] = correlation[j, i] = told
    return Statistics(
        columns,
        n_rows,
        np.array([distinct.get(c, n_rows) for c in columns]),
        correlation,
        np.ones_like(correlation),
        np.zeros((len(columns), 0), dtype=np.int32),
        None,
    )


def told(selection: Selection) -> list[tuple[str, str]]:
    """(kind, predicates) of each access."""
    space = selection.space
    return [(a.kind, ", ".join(str(space.predicates[p]) for p in a.predicates)) for a in selection.accesses]


# --- Example 1: what algorithm 4 chooses -----------------------------------------------------------------

R1: dict[str, tuple[Any, ...]] = {
    "Name": ("Sadam", "Duparc", "Hannen", "Beke", "Sadam", "Hannen", "Motwani"),
    "Date": (20140410, 20140224, 20140413, 20130403, 20140329, 20130404, 20150324),
    "SSN": (719975883, 303975883, 701178073, 801350874, 719975883, 701178073, 970122634),
    "NUM": (1448, 1401, 1486, 1386, 1427, 1386, 1547),
    "MS": ("S", "M", "M", "M", "S", "S", "M"),
    "ST": ("CO", "CO", "ND", "UT", "CO", "ND", "CO"),
    "ZIP": (80612, 80612, 58671, 84308, 80612, 58671, 80209),
    "SAL": (32000, 50000, 30000, 55000, 7500, 6500, 95000),
    "RATE": (124, 142, 121, 204, 121, 24, 285),
    "TXA": (3000, 1500, 3400, 1300, 0, 900, 1100),
    "STX": (400, 0, 0, 0, 50, 0, 0),
    "CTX": (2000, 0, 0, 40, 0, 1000, 0),
}
TAX = PredicateSpace(
    (
        *(Group(name, name, isinstance(R1[name][0], int)) for name in R1),
        Group("STX", "CTX", True),
        Group("CTX", "STX", True),
    )
)
PHI = (
    "SSN = SSN, Name != Name",
    "ZIP = ZIP, ST != ST",
    "TXA > TXA, SAL < SAL, RATE > RATE",
    "SSN = SSN, Date < Date, NUM >= NUM",
    "STX = STX, STX > CTX, MS != MS",
)


def tax_statistics(n_rows: int = 7) -> Statistics:
    codes = np.array([np.unique(R1[name], return_inverse=True)[1] + 1 for name in R1], dtype=np.int32)
    return statistics_of(TAX, list(R1), codes, codes.max(axis=1), n_rows)


def column(name: str) -> int:
    return list(R1).index(name)


def test_example_1_the_indexes_of_algorithm_4() -> None:
    chosen = select_index(covered(TAX, *PHI), TAX, tax_statistics())
    assert told(chosen) == [
        ("equality", "t.SSN = s.SSN"),
        ("equality", "t.ZIP = s.ZIP"),
        ("equality", "t.STX = s.STX"),
        ("order", "t.SAL < s.SAL, t.RATE > s.RATE"),
    ]
    assert chosen.served.tolist() == [0, 1, 3, 0, 2]
    assert [a.n_served for a in chosen.accesses] == [2, 1, 1, 1]
    scores = [a.score for a in chosen.accesses[:3]]
    assert scores == [pytest.approx(1 - n / 7) for n in (5, 4, 3)]


def test_example_1_the_order_index_follows_the_correlation() -> None:
    """SAL and RATE rise together, and most of the three pairs of phi_3: theirs is the index of least rank."""
    statistics = tax_statistics()
    r = statistics.correlation
    strength = {pair: abs(r[column(pair[0]), column(pair[1])]) for pair in (("SAL", "RATE"), ("SAL", "TXA"))}
    assert strength["SAL", "RATE"] > strength["SAL", "TXA"]
    [access] = select_index(covered(TAX, PHI[2]), TAX, statistics).accesses
    assert access.orders == ((column("SAL"), column("RATE"), False),)
    assert access.score == pytest.approx(1 - strength["SAL", "RATE"])
    assert access.rank is None


def test_example_13() -> None:
    """r(Date, NUM) is 0.88 or so: Index(Date<, NUM<) answers Date < and NUM >=."""
    statistics = tax_statistics()
    assert statistics.correlation[column("Date"), column("NUM")] > ALPHA
    chosen = select_index(covered(TAX, "Date < Date, NUM >= NUM"), TAX, statistics)
    [access] = chosen.accesses
    assert access.orders == ((column("Date"), column("NUM"), False),)
    assert (access.kind, access.ops) == ("order", (LT, GE))
    # t is the batch row: of the old row the symmetric operators are asked, and of the mirror image its own.
    first, second = access.questions
    assert (first.ops, second.ops) == ((GT, LE), (LT, GE))
    assert first.key == second.key == access.orders[0]
    assert chosen.with_ranks({access.orders[0]: 2}).accesses[0].rank == 2


@pytest.mark.parametrize(
    ("r", "falling"), [(0.5, False), (-0.5, True), (0.1, True), (-0.1, True), (0.3, True), (0.31, False)]
)
def test_a_weak_correlation_leaves_the_direction_to_the_operators(r: float, falling: bool) -> None:
    """< and > ask for an index that falls; only |r| > alpha turns it round."""
    space = ordered("a", "b")
    statistics = known(space, "a b", {}, 100, {("a", "b"): r})
    [access] = select_index(covered(space, "a < a, b > b"), space, statistics).accesses
    assert access.orders == ((0, 1, falling),)


# --- Thresholds, coverage, and the order of the steps ----------------------------------------------------


def test_an_equality_below_the_threshold_comes_before_any_order() -> None:
    space = ordered("a", "b", "c")
    dcs = covered(space, "a = a, b < b, c < c")
    r = {("b", "c"): 1.0}
    few = select_index(dcs, space, known(space, "a b c", {"a": 40}, 100, r))
    assert told(few) == [("order", "t.b < s.b, t.c < s.c")]
    many = select_index(dcs, space, known(space, "a b c", {"a": 41}, 100, r))
    assert told(many) == [("equality", "t.a = s.a")]


def test_an_order_of_few_values_comes_after_all_equalities() -> None:
    space = ordered("a", "b", "c")
    dcs = covered(space, "a = a, b < b, c < c")
    few = select_index(dcs, space, known(space, "a b c", {"a": 2, "b": 9}, 100))
    assert told(few) == [("equality", "t.a = s.a")]
    more = select_index(dcs, space, known(space, "a b c", {"a": 2, "b": 10}, 100))
    assert told(more) == [("order", "t.b < s.b, t.c < s.c")]
    alone = select_index(covered(space, "b < b, c < c"), space, known(space, "a b c", {"b": 9}, 100))
    assert told(alone) == [("order", "t.b < s.b, t.c < s.c")]


def test_a_larger_coverage_beats_a_stronger_correlation() -> None:
    space = ordered("a", "b", "c", "d", "e")
    dcs = covered(space, "a < a, b < b, c < c", "b < b, c < c, d < d", "b < b, c < c, e < e")
    r = {("a", "b"): 0.5, ("b", "c"): 0.2}
    chosen = select_index(dcs, space, known(space, "a b c d e", {}, 100, r))
    assert told(chosen) == [("order", "t.b < s.b, t.c < s.c")]
    assert chosen.accesses[0].coverage == 3
    assert chosen.accesses[0].score == pytest.approx(0.8 / 3)
    strong = {("a", "b"): 0.95, ("b", "c"): 0.2}
    chosen = select_index(dcs, space, known(space, "a b c d e", {}, 100, strong))
    assert told(chosen) == [("order", "t.b < s.b, t.c < s.c"), ("order", "t.a < s.a, t.b < s.b")]
    assert chosen.served.tolist() == [1, 0, 0]


def test_one_index_answers_all_operators_of_its_columns() -> None:
    """Four constraints, one index, two questions: one needs no other than a looser one's, one is the mirror
    image of what `!=` asks for. `!=` is not doubled."""
    space = ordered("a", "b")
    dcs = covered(space, "a < a, b > b", "a <= a, b <= b", "a != a, b < b", "a < a, b < b")
    chosen = select_index(dcs, space, known(space, "a b", {}, 100, {("a", "b"): 0.9}))
    assert chosen.orders == ((0, 1, False),)
    assert told(chosen) == [
        ("order", "t.a != s.a, t.b < s.b"),
        ("order", "t.a <= s.a, t.b <= s.b"),
    ]
    assert chosen.served.tolist() == [0, 1, 0, 0]


ACROSS = PredicateSpace(tuple(Group(a, b, True) for a, b in ("aa", "bb", "cc", "dd", "ab", "ba", "cd", "dc")))


def test_across_columns_an_equality_needs_both_lists() -> None:
    dcs = covered(ACROSS, "a = b, c < c")
    chosen = select_index(dcs, ACROSS, known(ACROSS, "a b c d", {}, 100))
    [access] = chosen.accesses
    assert (access.kind, access.columns) == ("equality", (0, 1))
    assert {(q.batch, q.old, q.ops) for q in access.questions} == {((0,), (1,), (EQ,)), ((1,), (0,), (EQ,))}
    # Both columns must have values enough.
    few = select_index(dcs, ACROSS, known(ACROSS, "a b c d", {"b": 5}, 100))
    assert few.accesses[0].score == pytest.approx(0.95)


def test_across_columns_an_order_needs_both_indexes() -> None:
    """Example 8: t.A > s.B and t.C < s.D need Index(A, C) and Index(B, D); these serve more than that."""
    dcs = covered(ACROSS, "a > b, c < d", "a < a, c < c", "b < b, d < d")
    r = {("a", "c"): -0.8, ("b", "d"): 0.9}
    chosen = select_index(dcs[:1], ACROSS, known(ACROSS, "a b c d", {}, 100, r))
    [access] = chosen.accesses
    assert access.orders == ((0, 2, True), (1, 3, False))
    asked = {(q.batch, q.old, q.ops, q.key) for q in access.questions}
    assert asked == {
        ((0, 2), (1, 3), (LT, GT), (1, 3, False)),
        ((1, 3), (0, 2), (GT, LT), (0, 2, True)),
    }
    whole = select_index(dcs, ACROSS, known(ACROSS, "a b c d", {}, 100, {("a", "c"): -0.8, ("b", "d"): 0.9}))
    assert whole.n_indexes == 2
    assert len(whole.accesses) == 3


# --- Constraints of one predicate, and none --------------------------------------------------------------


@pytest.mark.parametrize("chooser", [select_index, select])
def test_nothing_to_serve(chooser: Any) -> None:
    space = ordered("a")
    chosen = chooser(covered(space), space, known(space, "a", {}, 100))
    assert (chosen.accesses, chosen.served.tolist(), chosen.n_indexes, chosen.cost_ns) == ((), [], 0, 0.0)


@pytest.mark.parametrize("chooser", [select_index, select])
@pytest.mark.parametrize("n_rows", [0, 1, 100])
def test_the_empty_constraint_is_scanned(chooser: Any, n_rows: int) -> None:
    space = ordered("a")
    chosen = chooser(covered(space, ""), space, known(space, "a", {}, n_rows))
    assert told(chosen) == [("scan", "")]
    assert chosen.accesses[0].columns == ()


def test_one_predicate_is_looked_up_in_its_column() -> None:
    space = PredicateSpace((Group("a", "a", True), Group("x", "x", False)))
    dcs = covered(space, "a < a", "x != x", "a = a")
    chosen = select_index(dcs, space, known(space, "a x", {"a": 100, "x": 2}, 100))
    assert told(chosen) == [
        ("equality", "t.a = s.a"),
        ("column", "t.a < s.a"),
        ("column", "t.x != s.x"),
    ]
    assert chosen.columns == (0, 1)
    assert [len(a.questions) for a in chosen.accesses] == [1, 2, 1]


def test_no_columns_at_all() -> None:
    space = PredicateSpace(())
    nothing = known(space, "", {}, 10)
    for chooser in (select_index, select):
        assert told(chooser(np.zeros((1, 1), np.uint64), space, nothing)) == [("scan", "")]


# --- The least cost --------------------------------------------------------------------------------------


def sampled(space: PredicateSpace, outcomes: Sequence[tuple[int, ...]], counts: Sequence[int]) -> PairSample:
    n_words = n_words_for(space.n_predicates)
    masks = [space.evidence(told) for told in outcomes]
    words = [[mask >> 64 * w & (1 << 64) - 1 for w in range(n_words)] for mask in masks]
    return PairSample(np.array(words, dtype=np.uint64).reshape(-1, n_words), np.array(counts))


def with_sample(statistics: Statistics, pairs: PairSample, sample: Any = None) -> Statistics:
    return replace(statistics, pairs=pairs, sample=statistics.sample if sample is None else sample)


def test_an_index_of_poor_selectivity_serves_nobody() -> None:
    """By its values column a is as good as a key; but half of the rows share one of them."""
    space = ordered("a", "b")
    dcs = covered(space, "a = a, b != b")
    statistics = known(space, "a b", {"a": 5_000}, 10_000)
    assert told(select(dcs, space, statistics)) == [("equality", "t.a = s.a")]
    skewed = with_sample(statistics, sampled(space, [(1, 0), (0, 0), (2, 2)], [50, 25, 25]))
    assert told(select(dcs, space, skewed)) == [("scan", "")]
    assert told(select_index(dcs, space, skewed)) == [("equality", "t.a = s.a")]
    selective = with_sample(statistics, sampled(space, [(1, 0), (0, 0), (2, 2)], [1, 5_000, 5_000]))
    assert told(select(dcs, space, selective)) == [("equality", "t.a = s.a")]


def test_an_order_index_serves_where_it_lets_little_through() -> None:
    space = ordered("a", "b")
    dcs = covered(space, "a < a, b > b")
    statistics = known(space, "a b", {}, 100_000, {("a", "b"): 0.99})
    rising = with_sample(statistics, sampled(space, [(0, 0), (2, 2), (0, 2), (2, 0)], [4_995, 4_995, 5, 5]))
    [access] = select(dcs, space, rising).accesses
    assert (access.kind, access.orders, access.ops) == ("order", ((0, 1, False),), (LT, GT))
    assert access.selectivity == pytest.approx(0.0005)
    loose = with_sample(statistics, sampled(space, [(0, 0), (2, 2), (0, 2), (2, 0)], [1, 1, 1, 1]))
    assert told(select(dcs, space, loose)) == [("scan", "")]


def test_a_set_of_equalities_serves_what_has_all_of_them() -> None:
    space = ordered("a", "b", "c")
    dcs = covered(space, "a = a, b = b, c < c", "a = a, b = b, c > c")
    each = [(1, 1, 0), (1, 0, 0), (0, 1, 0), (0, 0, 0)]
    statistics = with_sample(
        known(space, "a b c", {"a": 3, "b": 3}, 100_000), sampled(space, each, [900, 2_100, 2_100, 4_900])
    )
    assert told(select(dcs, space, statistics)) == [("equality", "t.a = s.a, t.b = s.b")]
    apart = covered(space, "a = a, c < c", "b = b, c > c")
    assert told(select(apart, space, statistics, compares="equal")) == [("scan", "")]


def test_a_scan_is_cheap_where_rows_fold() -> None:
    """a and b have four combinations in a million rows; c is a key."""
    space = ordered("a", "b", "c")
    dcs = covered(space, "a = a, b != b", "c = c")
    rng = np.random.default_rng(1)
    sample = np.vstack([rng.integers(1, 3, (2, 1_000)), np.arange(1, 1_001)]).astype(np.int32)
    statistics = with_sample(
        known(space, "a b c", {"a": 2, "b": 2, "c": 1_000_000}, 1_000_000),
        sampled(space, [(1, 1, 0), (1, 0, 2), (0, 1, 0), (2, 2, 0)], [25, 25, 25, 25]),
        sample,
    )
    assert statistics.folded((0, 1)) == 4
    assert statistics.folded((0, 1, 2)) == 1_000_000
    chosen = select(dcs, space, statistics)
    assert told(chosen) == [("equality", "t.c = s.c"), ("scan", "")]
    assert chosen.accesses[1].columns == (0, 1)
    assert chosen.cost_ns < 1_000 < chosen.scan_ns
    # Who knows better may say so: then it is as dear as comparing all rows.
    unfolded = select(dcs, space, statistics, folded=lambda columns: 10**6)
    assert unfolded.cost_ns == pytest.approx(unfolded.scan_ns)


def test_more_is_compared_where_the_probe_can() -> None:
    """`=` lets three tenths through, of which hardly any differ in both other columns."""
    space = PredicateSpace((Group("a", "a", True), Group("x", "x", False), Group("y", "y", False)))
    dcs = covered(space, "a = a, x != x, y != y")
    outcomes = [(1, 0, 1), (1, 1, 0), (0, 0, 0), (2, 0, 0)]
    statistics = with_sample(
        known(space, "a x y", {"a": 3}, 100_000), sampled(space, outcomes, [1_500, 1_500, 3_500, 3_500])
    )
    assert told(select(dcs, space, statistics, compares="equal")) == [("scan", "")]
    [access] = select(dcs, space, statistics).accesses
    assert (access.kind, access.groups, access.ops) == ("equality", (0, 1, 2), (EQ, NE, NE))
    [question] = access.questions
    assert (question.n_asked, question.old) == (1, (0, 1, 2))
    assert access.selectivity < 1e-3 < access.source_selectivity


def test_folded_rows_are_estimated_well_enough() -> None:
    """Nearly unique, and saturated: within a third of what is there."""
    rng = np.random.default_rng(0)
    table = rng.integers(1, [[200], [60], [400]], (3, 40_000)).astype(np.int32)
    space = ordered("a", "b", "c")
    sample = table[:, rng.choice(40_000, 4_000, replace=False)]
    statistics = statistics_of(space, "abc", sample, [199, 59, 399], 40_000)
    for columns in ((0,), (0, 1), (1, 2), (0, 2), (0, 1, 2)):
        there = np.unique(table[list(columns)], axis=1).shape[1]
        assert abs(statistics.folded(columns) - there) <= there / 3, columns
    whole = statistics_of(space, "abc", table, [199, 59, 399], 40_000)
    assert whole.folded((0, 1)) == np.unique(table[:2], axis=1).shape[1]


def test_ranks_are_estimated_well_enough() -> None:
    """Of a tenth of the rows: within a factor of two of the rank of all."""
    rng = np.random.default_rng(0)
    a = rng.permutation(20_000).astype(np.int32) + 1
    b = np.argsort(np.argsort(a + rng.normal(0, 2_000, 20_000))).astype(np.int32) + 1
    c = rng.integers(1, 30, 20_000).astype(np.int32)
    table = np.vstack([a, b, 20_001 - b, c])
    space = ordered("a", "b", "d", "c")
    rows = rng.choice(20_000, 2_000, replace=False)
    statistics = statistics_of(space, "abdc", table[:, rows], table.max(axis=1), 20_000)
    for one, other in ((0, 1), (0, 2), (0, 3)):
        falling = statistics.falling(one, other)
        rank = order_index.build(table[one], table[other], GE, LE if falling else GE).rank
        assert rank / 2 <= statistics.ranks[one, other] <= 2 * rank
    assert statistics.falling(0, 2)


# --- Laws ------------------------------------------------------------------------------------------------

SPACE = PredicateSpace(
    (
        Group("a", "a", True),
        Group("a", "b", True),
        Group("b", "a", True),
        Group("b", "b", True),
        Group("n", "n", True),
        Group("x", "x", False),
        Group("x", "y", False),
        Group("y", "x", False),
    )
)
NAMES = ("a", "b", "n", "x", "y")
VALUES = st.sampled_from([None, 0, 1, 2, 3])
ROWS = st.lists(st.tuples(*[VALUES] * len(NAMES)), min_size=1, max_size=7)


@st.composite
def covers(draw: st.DrawFn) -> Any:
    """Constraints with at most one predicate a group."""
    masks = []
    for _ in range(draw(st.integers(0, 8))):
        groups = draw(st.lists(st.integers(0, len(SPACE.groups) - 1), max_size=4, unique=True))
        numbers = [SPACE.first[g] + draw(st.integers(0, len(SPACE.groups[g].operators) - 1)) for g in groups]
        masks.append(mask_of(numbers, 1))
    return np.array(masks, dtype=np.uint64).reshape(-1, 1)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[tuple[Any, ...]], Statistics]:
    """Rows, and statistics of a table of which they are a sample, with or without pairs."""
    rows = draw(ROWS)
    codes = np.array([[0 if v is None else v + 1 for v in column] for column in zip(*rows, strict=True)])
    n_rows = draw(st.sampled_from([len(rows), 1_000, 10**7]))
    pairs = None
    if draw(st.booleans()):
        met = [evidence(t, s) for t, s in permutations(rows, 2)]
        counts = draw(st.lists(st.integers(0, 3_000), min_size=len(met), max_size=len(met)))
        pairs = PairSample(np.array(met, dtype=np.uint64).reshape(-1, 1), np.array(counts, dtype=np.int64))
    distinct = draw(st.lists(st.sampled_from([1, 4, 900, n_rows]), min_size=5, max_size=5))
    return rows, statistics_of(SPACE, NAMES, codes.astype(np.int32), distinct, n_rows, pairs)


def evidence(t: tuple[Any, ...], s: tuple[Any, ...]) -> int:
    values = dict(zip(NAMES, t, strict=True)), dict(zip(NAMES, s, strict=True))
    return SPACE.mask(p for p in SPACE.predicates if satisfied(values[0][p.left], p.op, values[1][p.right]))


def finds(access: Access, batch: tuple[Any, ...], old: tuple[Any, ...]) -> bool:
    """Whether the questions ask for the old row, by definition."""
    if access.kind == "scan":
        return True
    return any(
        all(
            satisfied(old[o], OPERATORS[op], batch[b]) for b, o, op in zip(q.batch, q.old, q.ops, strict=True)
        )
        for q in access.questions
    )


def without_scans(cover: Any, space: PredicateSpace, statistics: Statistics, **options: Any) -> Selection:
    """As if to scan were dear: random constraints are hardly ever worth an index."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dc_access_costs, "SCANNED_NS", 1e6)
        return select(cover, space, statistics, **options)


CHOOSERS: dict[str, Callable[..., Selection]] = {
    "paper": select_index,
    "any": select,
    "equal": partial(select, compares="equal"),
    "any without scans": without_scans,
    "equal without scans": partial(without_scans, compares="equal"),
}


@pytest.mark.parametrize("name", CHOOSERS)
@given(cover=covers(), table=tables())
def test_every_pair_that_violates_a_constraint_is_found(name: str, cover: Any, table: Any) -> None:
    rows, statistics = table
    chosen = CHOOSERS[name](cover, SPACE, statistics)
    assert len(chosen.served) == len(cover)
    for t, s in permutations(rows, 2):
        met = evidence(t, s)
        for dc, number in zip(cover[:, 0].tolist(), chosen.served.tolist(), strict=True):
            if dc & ~met == 0:
                access = chosen.accesses[number]
                event(access.kind)
                assert finds(access, t, s)
                assert finds(access, s, t)


@pytest.mark.parametrize("name", CHOOSERS)
@given(cover=covers(), table=tables())
def test_what_an_access_says_is_so(name: str, cover: Any, table: Any) -> None:
    _, statistics = table
    chosen = CHOOSERS[name](cover, SPACE, statistics)
    for i, (dc, number) in enumerate(zip(cover[:, 0].tolist(), chosen.served.tolist(), strict=True)):
        access = chosen.accesses[number]
        asked = mask_of(access.predicates, 1)[0].item()
        follows = SPACE.closure(dc)
        assert asked & ~follows == 0 or SPACE.mirrored(asked) & ~follows == 0, i
        if access.kind == "scan":
            needed = {NAMES.index(n) for p in SPACE.predicates_of(dc) for n in (p.left, p.right)}
            assert needed <= set(access.columns)
    for number, access in enumerate(chosen.accesses):
        event(access.kind)
        assert set(access.source) <= set(access.predicates)
        assert access.n_served == int((chosen.served == number).sum()) > 0
        assert access.coverage >= access.n_served
        assert 0 <= access.selectivity <= access.source_selectivity + 1e-9 <= 1 + 1e-9
        assert (access.groups, access.ops) == (
            tuple(SPACE.group_of[p] for p in access.predicates),
            tuple(SPACE.op_of[p] for p in access.predicates),
        )
        ops = [SPACE.op_of[p] for p in access.source]
        if access.kind == "order":
            assert len(ops) == 2
            assert EQ not in ops
            assert {q.key for q in access.questions} == set(access.orders)
            assert all(q.key is not None and q.old[:2] == q.key[:2] for q in access.questions)
        else:
            assert access.orders == ()
            assert len(ops) == (access.kind != "scan")
            assert (access.kind == "equality") == (ops == [EQ])
        if "any" not in name:
            assert access.kind == "equality" or access.source == access.predicates
            assert access.kind != "equality" or set(access.ops) == {EQ}
    kinds = [a.kind for a in chosen.accesses]
    assert kinds == sorted(kinds, key=["equality", "order", "column", "scan"].index)
    assert kinds.count("scan") <= 1
    json.dumps(chosen.to_dict())


@pytest.mark.parametrize("compares", ["equal", "any"])
@given(cover=covers(), table=tables())
def test_it_costs_no_more_than_the_paper_or_a_scan_and_is_the_same_again(
    compares: Any, cover: Any, table: Any
) -> None:
    _, statistics = table
    paper = select_index(cover, SPACE, statistics)
    chosen, again = (select(cover, SPACE, statistics, compares=compares) for _ in range(2))
    assert chosen.cost_ns <= min(paper.cost_ns, chosen.scan_ns) * (1 + 1e-9)
    assert chosen.to_dict() == again.to_dict()
    assert chosen.served.tolist() == again.served.tolist()


@given(cover=covers(), table=tables())
def test_mirrored_constraints_are_served_alike(cover: Any, table: Any) -> None:
    """A constraint and its mirror image are one: it is no matter which of them is listed."""
    _, statistics = table
    turned = np.array([SPACE.mirrored(dc) for dc in cover[:, 0].tolist()], dtype=np.uint64).reshape(-1, 1)
    for name in ("equal", "any"):
        one, other = (CHOOSERS[name](dcs, SPACE, statistics) for dcs in (cover, turned))
        assert one.cost_ns == pytest.approx(other.cost_ns)


@given(rows=st.lists(st.tuples(*[VALUES] * 5), min_size=2, max_size=8), table=tables(), cover=covers())
def test_the_order_index_answers_the_questions(rows: Any, table: Any, cover: Any) -> None:
    """Questions as `order_index` takes them: old rows in codes, the batch row as half ranks."""
    _, statistics = table
    for access in select_index(cover, SPACE, statistics).accesses:
        if access.kind in ("equality", "scan"):
            continue
        old, batch = rows[:-1], rows[-1]
        for question in access.questions:
            codes, probes = [], []
            for o, b in zip(question.old, question.batch, strict=True):
                values = sorted({row[o] for row in old if row[o] is not None})
                codes.append(np.array([0 if r[o] is None else values.index(r[o]) + 1 for r in old], np.int32))
                probes.append(np.array([half_rank(batch[b], values)]))
            if question.key is not None:
                index = order_index.build(codes[0], codes[1], GE, LE if question.key[2] else GE)
                hits = order_index.fetch(index, probes[0], probes[1], *question.ops)
            else:
                column_index = order_index.build_column(codes[0], int(codes[0].max()))
                hits = order_index.fetch_column(column_index, probes[0], question.ops[0])
            wanted = [
                all(
                    satisfied(row[o], OPERATORS[op], batch[b])
                    for o, b, op in zip(question.old, question.batch, question.ops, strict=True)
                )
                for row in old
            ]
            assert sorted(hits.rows.tolist()) == np.flatnonzero(wanted).tolist()


def test_operators_are_those_of_the_order_index() -> None:
    assert [OPERATORS[op] for op in (EQ, NE, LT, LE, GT, GE)] == list(OPERATORS)
    assert [OPERATORS[SYMMETRIC[op]] for op in (LT, LE, GT, GE)] == [">", ">=", "<", "<="]
