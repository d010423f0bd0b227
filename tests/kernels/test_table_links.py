"""Links between tables equal the plain-Python reference, and keep components whatever is left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.lakes.kernels import table_links
from holdfast.lakes.kernels.table_links import LinkCollector
from reference import table_links as reference
from reference.table_links import Inclusion, Link, Side

N_TABLES = 9


@st.composite
def sides(draw: st.DrawFn) -> Side:
    """Columns of ascending tables; a few shares only, so that scores tie."""
    tables = sorted(draw(st.lists(st.integers(0, N_TABLES - 1), min_size=1, max_size=14)))
    share = st.sampled_from([0.0, 0.25, 0.5, 1.0])
    return [(draw(st.integers(1, 6)), draw(share), table) for table in tables]


@st.composite
def inclusions(draw: st.DrawFn) -> tuple[list[Inclusion], Side, Side]:
    deps, refs = draw(sides()), draw(sides())
    pair = st.tuples(st.integers(0, len(deps) - 1), st.integers(0, len(refs) - 1))
    pairs = sorted(draw(st.lists(pair, unique=True, max_size=40)))
    some = [(a, b, draw(st.integers(1, min(deps[a][0], refs[b][0])))) for a, b in pairs]
    return some, deps, refs


def arrays_of(side: Side) -> Any:
    sizes, shares, tables = zip(*side, strict=True)
    return np.array(sizes, np.int32), np.array(shares, np.float32), np.array(tables, np.int32)


def links_of(links: LinkCollector, chunk: list[Inclusion], deps: Side, refs: Side) -> list[Link]:
    columns = np.array(chunk, np.int32).reshape(-1, 3).T
    found = links.of(*columns, arrays_of(deps), arrays_of(refs))
    assert [a.dtype for a in found] == [np.int32, np.int32, np.int32, np.float32]
    assert len({a.shape for a in found}) == 1
    return list(zip(*(a.tolist() for a in found), strict=True))


# A table that has given its links once, and then one strong link behind two weak ones.
TIED: tuple[list[Inclusion], Side, Side] = (
    [(0, 0, 1), (0, 1, 1), (0, 2, 1), (1, 0, 1), (1, 1, 1), (1, 2, 2)],
    [(2, 1.0, 0), (2, 1.0, 0)],
    [(2, 1.0, 1), (2, 1.0, 2), (2, 1.0, 3)],
)


@given(inclusions(), st.integers(1, 4), st.integers(1, 50))
@example(TIED, 2, 3)
def test_links(made: tuple[list[Inclusion], Side, Side], limit: int, chunk: int) -> None:
    whole, deps, refs = made
    links = LinkCollector(N_TABLES, limit)
    given_links: list[Link] = []
    all_pairs: list[tuple[int, int]] = []
    n_needed = 0
    for start in range(0, len(whole), chunk):
        some = whole[start : start + chunk]
        found = links_of(links, some, deps, refs)
        for run in reference.all_links(some, deps, refs):
            own, found = found[: _of_run(found, run)], found[_of_run(found, run) :]
            left_out = sum(n for _, _, n, _ in run) - sum(n for _, _, n, _ in own)
            if left_out:  # in a link of the table with itself
                assert found.pop(0) == (run[0][0], run[0][0], left_out, 0.0)
            scores = {other: (n, best) for _, other, n, best in run}
            assert len({other for _, other, _, _ in own}) == len(own)
            for _, other, n, best in own:
                assert (n, pytest.approx(best, abs=1e-6)) == scores[other]
            # The strongest are there; of equal ones any.
            wanted = sorted((best for _, _, _, best in run), reverse=True)[:limit]
            kept = sorted((best for _, _, _, best in own), reverse=True)[: len(wanted)]
            assert kept == pytest.approx(wanted, abs=1e-6)
            n_needed += max(0, len(own) - limit)
            all_pairs += [(table, other) for table, other, _, _ in run]
            given_links += own
        assert found == []
        kept_pairs = [(a, b) for a, b, _, _ in given_links]
        assert reference.components(N_TABLES, kept_pairs) == reference.components(N_TABLES, all_pairs)
    assert n_needed < N_TABLES  # those beyond the limit are a forest


def _of_run(found: list[Link], run: list[Link]) -> int:
    """How many of the links that come first are those of one dependent table."""
    there = {(table, other) for table, other, _, _ in run}
    n = 0
    while n < len(found) and found[n][:2] in there:
        n += 1
    return n


@given(inclusions())
def test_with_room_for_all_the_cut_does_not_matter(made: tuple[list[Inclusion], Side, Side]) -> None:
    """At a dependent table's end a chunk may end: what is given is the same."""
    whole, deps, refs = made
    at_once = links_of(LinkCollector(N_TABLES, N_TABLES), whole, deps, refs)
    links, one_by_one = LinkCollector(N_TABLES, N_TABLES), []
    for table in range(N_TABLES):
        one_by_one += links_of(links, [i for i in whole if deps[i[0]][2] == table], deps, refs)
    assert at_once == one_by_one
    expected = [link for run in reference.all_links(whole, deps, refs) for link in run]
    assert [link[:3] for link in at_once] == [link[:3] for link in expected]
    assert [link[3] for link in at_once] == pytest.approx([link[3] for link in expected], abs=1e-6)


def test_a_table_that_links_to_itself_has_no_link() -> None:
    side: Side = [(1, 1.0, 3), (1, 1.0, 3)]
    assert links_of(LinkCollector(5, 1), [(0, 0, 1), (0, 1, 1), (1, 0, 1)], side, side) == []


def test_a_star_of_many_tables_keeps_one_component() -> None:
    """Of a thousand links of one table the limit is given, and all that hold the component together."""
    n = 1_000
    deps: Side = [(2, 1.0, 0)]
    refs: Side = [(2 + i % 7, 1.0, i + 1) for i in range(n)]
    links = LinkCollector(n + 1, 64)
    first = links_of(links, [(0, i, 2) for i in range(n)], deps, refs)
    assert sorted(other for _, other, _, _ in first) == list(range(1, n + 1))
    *again, rest = links_of(links, [(0, i, 2) for i in range(n)], deps, refs)
    assert len(again) == 64  # all are joined by now
    assert rest == (0, 0, n - 64, 0.0)
    assert all(best == pytest.approx(1.0) for _, _, _, best in again)


def test_read_only_arrays_and_nothing() -> None:
    """Memory maps cannot be written to."""
    side: Side = [(2, 1.0, 0), (2, 0.5, 1)]
    arrays = [np.array(a, np.int32) for a in ([0], [1], [2])]
    sides = [arrays_of(side), arrays_of(side)]
    for array in (*arrays, *sides[0], *sides[1]):
        array.setflags(write=False)
    found = LinkCollector(2, 1).of(*arrays, *sides)
    assert [a.tolist() for a in found[:3]] == [[0], [1], [1]]
    assert found[3].tolist() == pytest.approx([0.5 ** (1 / 3)])
    assert links_of(LinkCollector(2, 1), [], side, side) == []


def test_warm_up() -> None:
    table_links.warm_up()
