"""Order indexes equal the plain-Python reference: chains, rank, and what every probe fetches."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.core.rows.kernels import order_index
from holdfast.core.rows.kernels.operators import GT, LT
from holdfast.core.rows.kernels.order_index import Hits, OrderIndex
from reference import order_index as reference

SIGNS = reference.OPERATORS
NUMBER = {sign: number for number, sign in enumerate(SIGNS)}
INEQUALITIES = ("<", "<=", ">", ">=")

Columns = tuple[list[int], list[int]]

operators = st.sampled_from(SIGNS)
inequalities = st.sampled_from(INEQUALITIES)


@st.composite
def two_columns(draw: st.DrawFn, max_rows: int = 24) -> Columns:
    """Codes of two columns: ties, duplicates and NULLs, or correlated and almost without them; or sparse."""
    n = draw(st.integers(0, max_rows))
    top = draw(st.sampled_from([1, 2, 4, 30]))
    a = draw(st.lists(st.integers(0, top), min_size=n, max_size=n))
    kind = draw(st.sampled_from(["free", "same", "opposite"]))
    if kind == "free":
        b = draw(st.lists(st.integers(0, top), min_size=n, max_size=n))
    else:
        noise = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
        b = [(x if kind == "same" else top - x) + e for x, e in zip(a, noise, strict=True)]
    if draw(st.booleans()):
        a, b = [x * 10_000_000 for x in a], [x * 7_000_000 for x in b]
    return a, b


@st.composite
def probes_of(draw: st.DrawFn, columns: Columns, max_probes: int = 8) -> list[tuple[int, int]]:
    """Half ranks: near the codes of the rows, below and above all of them, NULL."""
    near = [sorted({0, 1, *(2 * x + d for x in column for d in (-1, 0, 1) if x)}) for column in columns]
    pair = st.tuples(*(st.sampled_from(some) for some in near))
    return draw(st.lists(pair, max_size=max_probes))


def int32(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int32)


def halves(probes: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    both = np.array(probes, dtype=np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def built(columns: Columns, op_a: str, op_b: str) -> OrderIndex:
    a, b = columns
    return order_index.build(int32(a), int32(b), NUMBER[op_a], NUMBER[op_b])


def chains_of(index: OrderIndex) -> list[reference.Chain]:
    """An index as the reference writes it; checks types and offsets on the way."""
    assert [array.dtype for array in index[2:]] == [np.int32, np.int32, np.int64, np.int64, np.int32]
    assert not any(array.flags.writeable for array in index[2:])
    assert index.chain_offsets[0] == index.node_offsets[0] == 0
    assert index.chain_offsets[-1] == len(index.node_a) == len(index.node_b) == len(index.node_offsets) - 1
    assert index.node_offsets[-1] == len(index.rows)
    nodes = [
        ((a, b), index.rows[start:stop].tolist())
        for a, b, start, stop in zip(
            index.node_a.tolist(), index.node_b.tolist(), index.node_offsets[:-1], index.node_offsets[1:],
            strict=True,
        )
    ]  # fmt: skip
    return [
        nodes[start:stop]
        for start, stop in zip(index.chain_offsets[:-1], index.chain_offsets[1:], strict=True)
    ]


def fetch_plus(
    indexes: tuple[OrderIndex, OrderIndex],
    probes_bd: tuple[np.ndarray, np.ndarray],
    probes_ac: tuple[np.ndarray, np.ndarray],
    op_1: str,
    op_2: str,
) -> tuple[Hits, Hits]:
    """The rows t such that (s, t), and such that (t, s), satisfies `t.A op_1 s.B` and `t.C op_2 s.D`.

    Indexes are those of (A, C) and of (B, D); probes s.B and s.D for the first, s.A and s.C for the second.
    """
    index_ac, index_bd = indexes
    turned = (NUMBER[reference.SYMMETRIC[op]] for op in (op_1, op_2))
    return (
        order_index.fetch(index_bd, *probes_ac, *turned),
        order_index.fetch(index_ac, *probes_bd, NUMBER[op_1], NUMBER[op_2]),
    )


def pairs_of(hits: Hits) -> list[tuple[int, int]]:
    assert (hits.probes.dtype, hits.rows.dtype) == (np.int32, np.int32)
    return list(zip(hits.probes.tolist(), hits.rows.tolist(), strict=True))


# --- Building --------------------------------------------------------------------------------------------


@given(two_columns(), inequalities, inequalities)
@example(([1, 1, 2], [1, 2, 3]), "<", "<")  # a tie in a strict column: the rows with a = 1 share no chain
@example(([1, 1, 1], [1, 2, 3]), ">", ">=")
@example(([0, 0, 1, 0], [2, 1, 0, 0]), ">", "<")
@example(([], []), "<", "<")
def test_build(columns: Columns, op_a: str, op_b: str) -> None:
    index = built(columns, op_a, op_b)
    chains = chains_of(index)
    assert chains == reference.build(*columns, op_a, op_b)
    ordered = [[node for node, _ in chain] for chain in chains if 0 not in chain[0][0]]
    assert index.rank == len(ordered)
    for chain in ordered:
        for i, x in enumerate(chain):
            assert all(reference.follows(y, x, op_a, op_b) for y in chain[i + 1 :])
    assert sorted(index.rows.tolist()) == list(range(len(columns[0])))


@settings(max_examples=100)
@given(two_columns(max_rows=40), inequalities, inequalities)
def test_the_rank_is_minimal(columns: Columns, op_a: str, op_b: str) -> None:
    assert built(columns, op_a, op_b).rank == reference.smallest_rank(*columns, op_a, op_b)


@settings(max_examples=25)
@given(two_columns(max_rows=8), inequalities, inequalities)
def test_the_smallest_rank_is_the_largest_antichain(columns: Columns, op_a: str, op_b: str) -> None:
    """The oracle of the rank, by definition."""
    assert reference.smallest_rank(*columns, op_a, op_b) == reference.largest_antichain(*columns, op_a, op_b)


@given(two_columns())
def test_weak_operators_never_have_the_higher_rank(columns: Columns) -> None:
    for up_a, up_b in product((True, False), repeat=2):
        strict_a, weak_a = (">", ">=") if up_a else ("<", "<=")
        strict_b, weak_b = (">", ">=") if up_b else ("<", "<=")
        weak = built(columns, weak_a, weak_b).rank
        assert weak <= min(
            built(columns, strict_a, weak_b).rank,
            built(columns, weak_a, strict_b).rank,
            built(columns, strict_a, strict_b).rank,
        )


def test_many_chains() -> None:
    """More chains than the tails start with; the same by counting and by comparison sort."""
    rng = np.random.default_rng(5)
    a, b = (rng.permutation(4000) + 1 for _ in range(2))
    index = order_index.build(a.astype(np.int32), b.astype(np.int32), GT, GT)
    assert index.rank > 64
    sparse = order_index.build((a * 100_000).astype(np.int32), (b * 100_000).astype(np.int32), GT, GT)
    assert (index.rows == sparse.rows).all()
    assert (index.chain_offsets == sparse.chain_offsets).all()


def test_one_chain_where_the_columns_agree() -> None:
    codes = np.arange(1, 101, dtype=np.int32)
    assert order_index.build(codes, codes, LT, LT).rank == 1
    assert order_index.build(codes, codes[::-1], LT, GT).rank == 1
    assert order_index.build(codes, codes, LT, GT).rank == 100


@pytest.mark.parametrize("op", ["=", "!="])
def test_no_index_for_equality(op: str) -> None:
    with pytest.raises(ValueError, match="built for"):
        built(([1], [1]), op, "<")


def test_no_such_operator() -> None:
    with pytest.raises(ValueError, match="no operator number 6"):
        order_index.fetch(built(([1], [1]), "<", "<"), int32([2]), int32([2]), 6, 0)


# --- Fetch -----------------------------------------------------------------------------------------------


@settings(max_examples=200)
@given(st.data(), two_columns(), inequalities, inequalities, operators, operators)
def test_fetch(data: st.DataObject, columns: Columns, of_a: str, of_b: str, op_a: str, op_b: str) -> None:
    """Any index answers any two operators: its own, one turned round, ties left out, = and !=."""
    index = built(columns, of_a, of_b)
    probes = data.draw(probes_of(columns))
    asked = (*halves(probes), NUMBER[op_a], NUMBER[op_b])
    expected = reference.fetch(*columns, probes, op_a, op_b)
    hits = pairs_of(order_index.fetch(index, *asked))
    # Probes ascend, and the rows of a probe stand in the order of the index.
    place = {row: i for i, row in enumerate(index.rows.tolist())}
    assert hits == sorted(expected, key=lambda hit: (hit[0], place[hit[1]]))
    counts = order_index.count(index, *asked)
    assert counts.dtype == np.int64
    assert counts.tolist() == [sum(p == probe for p, _ in expected) for probe in range(len(probes))]


@given(two_columns(), operators, operators, inequalities, inequalities)
def test_rows_that_probe_their_own_index(
    columns: Columns, op_a: str, op_b: str, of_a: str, of_b: str
) -> None:
    """Of the pairs inside one batch either direction tells all: (p, r) hits one way iff (r, p) the other."""
    a, b = (2 * int32(column).astype(np.int64) for column in columns)
    index = built(columns, of_a, of_b)
    left, right = fetch_plus((index, index), (a, b), (a, b), op_a, op_b)
    assert sorted(pairs_of(left)) == sorted((r, p) for p, r in pairs_of(right))


value = st.one_of(st.none(), st.integers(-3, 6))
tuples = st.fixed_dictionaries(dict.fromkeys("ABCD", value))


def dictionary(rows: list[dict[str, int | None]], name: str) -> list[int]:
    return sorted({v for row in rows if (v := row[name]) is not None})


def codes(rows: list[dict[str, int | None]], name: str) -> list[int]:
    return [reference.half_rank(row[name], dictionary(rows, name)) // 2 for row in rows]


def asked(
    rows: list[dict[str, int | None]], name: str, probes: list[dict[str, int | None]], by: str
) -> np.ndarray:
    """The values that the probes have in one column, as half ranks of another column of the rows."""
    values = dictionary(rows, name)
    return np.array([reference.half_rank(probe[by], values) for probe in probes], dtype=np.int64)


names = st.sampled_from("ABCD")


@given(
    st.lists(tuples, max_size=15), st.lists(tuples, max_size=6), names, names, names, names,
    operators, operators, inequalities, inequalities,
)  # fmt: skip
def test_fetch_plus(
    rows: list[dict[str, int | None]], probes: list[dict[str, int | None]], a: str, b: str, c: str, d: str,
    op_1: str, op_2: str, of_1: str, of_2: str,
) -> None:  # fmt: skip
    """On values: `t.A op_1 s.B` and `t.C op_2 s.D`, with any of the columns the same."""
    index_ac = built((codes(rows, a), codes(rows, c)), of_1, of_2)
    index_bd = built((codes(rows, b), codes(rows, d)), of_2, of_1)
    left, right = fetch_plus(
        (index_ac, index_bd),
        (asked(rows, a, probes, b), asked(rows, c, probes, d)),
        (asked(rows, b, probes, a), asked(rows, d, probes, c)),
        op_1,
        op_2,
    )
    expected = reference.pairs(rows, probes, [(a, op_1, b), (c, op_2, d)])
    assert sorted(pairs_of(left)) == sorted(expected[0])
    assert sorted(pairs_of(right)) == sorted(expected[1])


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(0, 20))
def test_blocks(counts: list[int], limit: int) -> None:
    """All probes, in order; as few blocks as the limit allows, a probe beyond it alone."""
    found = order_index.blocks(np.array(counts, dtype=np.int64), limit)
    assert [p for start, stop in found for p in range(start, stop)] == list(range(len(counts)))
    for start, stop in found:
        assert stop - start == 1 or sum(counts[start:stop]) <= limit
        assert stop == len(counts) or sum(counts[start : stop + 1]) > limit


def test_nothing_to_ask_and_nothing_to_find() -> None:
    none = np.empty(0, dtype=np.int64)
    index = built(([1, 2], [1, 2]), "<", "<")
    assert pairs_of(order_index.fetch(index, none, none, 1, 1)) == []
    empty = built(([], []), "<", "<")
    assert pairs_of(order_index.fetch(empty, int32([0, 3]), int32([0, 3]), 1, 1)) == []
    assert order_index.count(empty, int32([0, 3]), int32([0, 3]), 1, 3).tolist() == [0, 0]


# --- One column ------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 6), max_size=20), st.lists(st.integers(0, 15), max_size=8), operators)
def test_fetch_column(column: list[int], probes: list[int], op: str) -> None:
    index = order_index.build_column(int32(column), 6)
    asked = np.array(probes, dtype=np.int64)
    expected = reference.fetch_column(column, probes, op)
    assert pairs_of(order_index.fetch_column(index, asked, NUMBER[op])) == expected
    counts = order_index.count_column(index, asked, NUMBER[op])
    assert counts.dtype == np.int64
    assert counts.tolist() == [sum(p == probe for p, _ in expected) for probe in range(len(probes))]


@given(st.lists(tuples, max_size=12), st.lists(tuples, max_size=6), names, names, operators)
def test_fetch_column_across_columns(
    rows: list[dict[str, int | None]], probes: list[dict[str, int | None]], a: str, b: str, op: str
) -> None:
    index_a = order_index.build_column(int32(codes(rows, a)), len(dictionary(rows, a)))
    index_b = order_index.build_column(int32(codes(rows, b)), len(dictionary(rows, b)))
    turned = NUMBER[reference.SYMMETRIC[op]]
    left = order_index.fetch_column(index_b, asked(rows, b, probes, a), turned)
    right = order_index.fetch_column(index_a, asked(rows, a, probes, b), NUMBER[op])
    expected = reference.pairs(rows, probes, [(a, op, b)])
    assert sorted(pairs_of(left)) == sorted(expected[0])
    assert sorted(pairs_of(right)) == sorted(expected[1])


# --- Correlation -----------------------------------------------------------------------------------------


@given(two_columns())
def test_correlation(columns: Columns) -> None:
    a, b = columns
    assert order_index.correlation(int32(a), int32(b)) == pytest.approx(reference.correlation(a, b), abs=1e-9)


def test_correlation_on_a_sample() -> None:
    rng = np.random.default_rng(3)
    a = rng.integers(1, 1000, 50_000).astype(np.int32)
    b = (a + rng.integers(0, 200, 50_000)).astype(np.int32)
    whole = order_index.correlation(a, b, n_sample=len(a))
    sample = order_index.correlation(a, b, n_sample=2000)
    assert sample == order_index.correlation(a, b, n_sample=2000)
    assert sample == pytest.approx(whole, abs=0.02)
    assert order_index.correlation(a, (1201 - b).astype(np.int32)) < -0.9
