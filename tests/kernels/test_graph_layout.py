"""Drawings: forces equal the definition, nodes have room, circles do not overlap."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.lakes.kernels import circles, graph_layout
from reference import graph as reference

Graph = tuple[int, np.ndarray, np.ndarray]


def graph(n: int, left: object, right: object) -> Graph:
    return n, np.asarray(left, np.int32), np.asarray(right, np.int32)


def star(n: int) -> Graph:
    return graph(n, np.zeros(n - 1), np.arange(1, n))


def chain(n: int) -> Graph:
    return graph(n, np.arange(n - 1), np.arange(1, n))


def ring(n: int) -> Graph:
    return graph(n, np.arange(n), (np.arange(n) + 1) % n)


def clique(n: int) -> Graph:
    return graph(n, *np.triu_indices(n, 1))


def tree(n: int) -> Graph:
    return graph(n, (np.arange(1, n) - 1) // 3, np.arange(1, n))


def beside(n: int, edges: int) -> Graph:
    rng = np.random.default_rng(n)
    return graph(n, rng.integers(0, n, edges), rng.integers(0, n, edges))


def drawn(given: Graph, seed: int = 1) -> np.ndarray:
    n, left, right = given
    return graph_layout.layout(n, left, right, np.ones(len(left)), seed)


def closest(places: np.ndarray) -> np.ndarray:
    """The distance of each point to the nearest other."""
    told = np.hypot(*(places[:, None, :] - places[None, :, :]).transpose(2, 0, 1))
    np.fill_diagonal(told, np.inf)
    return told.min(axis=1)


@given(st.integers(1, 40), st.integers(0, 9), st.sampled_from([1.0, 3.0, np.inf]))
def test_repulsion_of_few(n: int, seed: int, far: float) -> None:
    rng = np.random.default_rng(seed)
    points, masses = rng.normal(size=(n, 2)) * 3, rng.random(n) + 0.5
    found = graph_layout.repulsion(*points.T, masses, far=far)
    told = reference.repulsion([(x, y) for x, y in points.tolist()], masses.tolist(), far)
    assert np.allclose(found, told, rtol=1e-9, atol=1e-9)


def test_repulsion_of_many() -> None:
    rng = np.random.default_rng(3)
    n = 4 * graph_layout.DIRECT
    points, masses = rng.normal(size=(n, 2)) * 10, rng.random(n) + 0.5
    points[: n // 10] = rng.normal(size=(n // 10, 2)) * 1e-3  # a dense spot
    told = np.array(reference.repulsion([(x, y) for x, y in points.tolist()], masses.tolist(), 4.0))
    exact = graph_layout.repulsion(*points.T, masses, theta=0.0, far=4.0)
    assert np.allclose(exact, told, rtol=1e-9, atol=1e-7)
    for theta, error in ((graph_layout.THETA, 0.12), (0.3, 0.02)):
        near = graph_layout.repulsion(*points.T, masses, theta=theta, far=4.0)
        assert np.median(np.hypot(*(near - told).T) / np.hypot(*told.T)) < error


GRAPHS = {
    "star": star(40),
    "great star": star(1500),
    "chain": chain(30),
    "ring": ring(30),
    "clique": clique(40),
    "great clique": clique(150),
    "tree": tree(364),
    "random": beside(300, 500),
    "pairs": graph(100, np.arange(0, 100, 2), np.arange(1, 100, 2)),
    "no edges": graph(500, [], []),
    "loops and repeated edges": graph(3, [0, 0, 1, 1, 1], [0, 1, 2, 2, 1]),
}


@pytest.mark.parametrize("name", list(GRAPHS))
def test_nodes_have_room(name: str) -> None:
    """No two nodes are on one spot, typical neighbours are about 1 apart, and nothing is far off."""
    places = drawn(GRAPHS[name])
    n = len(places)
    assert (places.shape, places.dtype) == ((n, 2), np.float32)
    assert np.isfinite(places).all()
    near = closest(places)
    assert near.min() > 0.5
    assert 0.7 < np.median(near) < 1.4
    assert np.abs(places).max() < (n if name == "chain" else 2.5 * np.sqrt(n) + 2)
    assert np.array_equal(places, drawn(GRAPHS[name]))


def test_a_chain_does_not_cross_itself() -> None:
    places = drawn(chain(30)).astype(np.float64)
    a, b = places[:-1], places[1:]

    def side(p: np.ndarray, q: np.ndarray, r: np.ndarray) -> float:
        return float(np.sign((q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])))

    for i in range(29):
        for j in range(i + 2, 29):
            apart = side(a[i], b[i], a[j]) == side(a[i], b[i], b[j])
            assert apart or side(a[j], b[j], a[i]) == side(a[j], b[j], b[i])


def test_neighbours_are_closer_than_others() -> None:
    n, left, right = tree(364)
    places = drawn((n, left, right))
    linked = np.hypot(*(places[left] - places[right]).T)
    rng = np.random.default_rng(1)
    others = np.hypot(*(places[rng.integers(0, n, 2000)] - places[rng.integers(0, n, 2000)]).T)
    assert np.median(linked) < 0.2 * np.median(others)


def test_many_small_parts() -> None:
    n = 20_000
    left = np.arange(0, n, 2, dtype=np.int32)
    places, parts = graph_layout.layouts(n, left, left + 1, np.ones(n // 2))
    assert np.array_equal(parts, np.repeat(left, 2))
    assert np.allclose(places[0::2], [-0.5, 0])
    assert np.allclose(places[1::2], [0.5, 0])


@given(st.lists(st.floats(0.01, 100), max_size=40))
@example([])
@example([1.0] * 30)
@example([100.0, 100.0, *[0.01] * 30])
def test_packed(radii: list[float]) -> None:
    places = circles.packed(np.array(radii))
    assert (places.shape, places.dtype) == ((len(radii), 2), np.float32)
    assert np.isfinite(places).all()
    # Places are float32: what is far from the middle is rounded by more than a tiny circle.
    rounding = 1e-6 * (np.abs(places).max(initial=0) + 1) / min(radii, default=1)
    assert reference.overlap(places.tolist(), radii) <= rounding
    if radii:
        assert not places[int(np.argmax(radii))].any()


def test_packing_is_dense() -> None:
    rng = np.random.default_rng(2)
    radii = np.sqrt(rng.pareto(1.0, 600) + 1)
    circles.packed(radii[:2])  # compiles it
    started = time.thread_time()
    places = circles.packed(radii)
    assert time.thread_time() - started < 5
    assert reference.overlap(places.tolist(), radii.tolist()) <= 1e-4
    reach = (np.hypot(*places.T) + radii).max()
    assert (radii**2).sum() > 0.4 * reach**2


@given(st.integers(1, 30), st.integers(0, 50))
def test_apart(k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    radii = np.sqrt(rng.pareto(1.0, k) + 1)
    places = circles.apart(rng.normal(size=(k, 2)), radii)
    assert places.dtype == np.float32
    assert reference.overlap(places.tolist(), radii.tolist()) <= 1e-4
