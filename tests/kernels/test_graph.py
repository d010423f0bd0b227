"""Components, forests and communities equal the plain-Python reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.lakes.kernels import graph_parts as graph
from reference import graph as reference

Edges = list[tuple[int, int]]


def ends(edges: Edges) -> tuple[np.ndarray, np.ndarray]:
    pairs = np.array(edges, np.int32).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


@st.composite
def graphs(draw: st.DrawFn, max_edges: int = 30) -> tuple[int, Edges]:
    n = draw(st.integers(1, 14))
    node = st.integers(0, n - 1)
    return n, draw(st.lists(st.tuples(node, node), max_size=max_edges))


@given(graphs())
@example((0, []))
def test_components_and_forests(drawn: tuple[int, Edges]) -> None:
    n, edges = drawn
    found = graph.components(n, *ends(edges))
    assert (found.dtype, found.tolist()) == (np.int32, reference.components(n, edges))
    left, right = graph.forest(n, *ends(edges))
    assert list(zip(left.tolist(), right.tolist(), strict=True)) == reference.forest(n, edges)
    assert left.dtype == right.dtype == np.int32


def test_components_of_a_long_chain() -> None:
    n = 50_000
    chain = np.arange(n - 1, dtype=np.int32)[::-1]
    assert not graph.components(n, chain + 1, chain).any()
    assert graph.spanning(n, chain, chain + 1).all()


@given(graphs(), st.data(), st.integers(0, 3), st.integers(2, 8))
def test_communities(drawn: tuple[int, Edges], data: st.DataObject, seed: int, largest: int) -> None:
    n, edges = drawn
    steps = data.draw(st.lists(st.integers(1, graph.STEPS), min_size=len(edges), max_size=len(edges)))
    if steps:
        steps[0] = graph.STEPS  # the largest weight is this many steps, so the others are as given
    smallest = data.draw(st.integers(1, largest))
    found = graph.communities(n, *ends(edges), np.array(steps) / 10, seed, largest=largest, smallest=smallest)
    sizes = np.bincount(found)
    assert found.dtype == np.int32
    assert sizes.max() <= largest
    assert (np.diff(sizes) <= 0).all()
    assert found.tolist() == reference.communities(n, edges, steps, seed, largest, smallest)


@pytest.mark.parametrize("n", [6000, 30_000])
def test_a_great_star_falls_into_few_communities(n: int) -> None:
    found = graph.communities(n, np.zeros(n - 1, np.int32), np.arange(1, n, dtype=np.int32), np.ones(n - 1))
    sizes = np.bincount(found)
    assert sizes.max() <= graph.LARGEST
    assert len(sizes) <= 2 + 2 * n // graph.LARGEST


def test_dense_groups_are_found() -> None:
    rng = np.random.default_rng(5)
    n, width = 6000, 300
    left = rng.integers(0, n, 8 * n)
    right = np.where(
        rng.random(8 * n) < 0.95, left // width * width + rng.integers(0, width, 8 * n), left - 1
    )
    found = graph.communities(n, left.astype(np.int32), np.abs(right).astype(np.int32), np.ones(8 * n))
    assert len(np.bincount(found)) == n // width
    assert all(len(set(found[i : i + width].tolist())) == 1 for i in range(0, n, width))
