"""The ranking of functional dependencies: measures by definition, keys by closures, a sensible order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from holdfast.core.engine.engine import Engine
from holdfast.core.evidence.groups import column_statistics
from holdfast.core.rows.kernels.masks import mask_of, n_words_for
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import encode_rows, write_segment
from holdfast.core.store.arrow_types import arrow_schema, type_of
from holdfast.core.store.format import create_marker, text_key
from holdfast.core.words.schema import Column, Schema
from holdfast.functional import fd_ranking
from holdfast.functional.fd_ranking import (
    Dependencies,
    FdRanking,
    Measured,
    Stability,
    candidates,
    key_implied,
    measured_at,
    mu_plus,
    rank,
    rank_relation,
    surprise,
)
from reference import groups as reference

Cover = list[tuple[frozenset[int], int]]


def arrays(fds: Cover, n_columns: int) -> tuple[Any, Any]:
    n_words = n_words_for(n_columns)
    masks = np.array([mask_of(lhs, n_words) for lhs, _ in fds], dtype=np.uint64).reshape(-1, n_words)
    return masks, np.array([rhs for _, rhs in fds], dtype=np.int64)


def related(root: Path, table: pa.Table, nulls: Any = "equal") -> Relation:
    schema = Schema(tuple(Column(f.name, type_of(f.type, table="t", column=f.name)) for f in table.schema))
    everything = tuple(range(len(schema)))
    create_marker(root)
    encoded = encode_rows(table.cast(arrow_schema(schema)), schema, text_key(root)) if len(table) else []
    refs = tuple(write_segment(root, "rows", i, c, everything) for i, c in enumerate(encoded))
    return Relation(root, "rows", "staging", schema, nulls, everything, refs, Engine(mode="inline"))


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(c.to_pylist() for c in table.columns), strict=True))


def cover_of(table: pa.Table, nulls: str = "equal") -> Cover:
    found = reference.minimal_fds(rows_of(table), table.num_columns, nulls)
    return sorted(found, key=lambda fd: (len(fd[0]), sorted(fd[0]), fd[1]))


def ranking_of(root: Path, table: pa.Table, top: int | None = None, **given_: Any) -> FdRanking:
    masks, rhs = arrays(cover_of(table), table.num_columns)
    return rank_relation(related(root, table), "t", masks, rhs, top=top, **given_)


@contextmanager
def small_rounds(in_one: int, at_most: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fd_ranking, "ROUND", in_one)
        patch.setattr(fd_ranking, "MAX_MEASURED", at_most)
        yield


# -- measures ----------------------------------------------------------------------------------------------


def pdep(x: Sequence[int], a: Sequence[int]) -> float:
    told = reference.measures(list(zip(x, a, strict=True)), {0}, 1, "equal")
    return float(told["dependence"]) / len(x)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=6))
@settings(max_examples=30)
def test_surprise_is_what_shuffled_columns_violate(rows: list[tuple[int, int]]) -> None:
    x, a = [r[0] for r in rows], [r[1] for r in rows]
    shuffled = [pdep(x, other) for other in permutations(a)]
    expected = 1 - sum(shuffled) / len(shuffled)
    pdep_rhs, n_groups = np.array([pdep([0] * len(a), a)]), np.array([len(set(x))])
    found = surprise(pdep_rhs, n_groups, len(rows))
    assert found[0] == pytest.approx(expected, abs=1e-12)
    mu = mu_plus(np.array([pdep(x, a)]), pdep_rhs, n_groups, len(rows))[0]
    assert 0 <= mu <= 1
    if expected > 1e-9:
        assert mu == pytest.approx(max(0.0, 1 - (1 - pdep(x, a)) / expected), abs=1e-9)
    if pdep(x, a) == 1:
        assert mu == 1


# -- keys --------------------------------------------------------------------------------------------------

TABLES = st.integers(1, 5).flatmap(
    lambda width: st.lists(st.tuples(*[st.sampled_from([0, 1, 2, None])] * width), min_size=0, max_size=9)
)


@given(
    TABLES, st.sampled_from(["equal", "distinct"]), st.sampled_from([None, 1, 2]), st.sampled_from([-1, 1, 8])
)
def test_key_implied_is_a_closure(
    rows: list[tuple[Any, ...]], nulls: str, max_lhs: int | None, subsets: int
) -> None:
    """Also under a bound on left-hand sides, where the cover is not complete; by subsets and by scans."""
    n_columns = len(rows[0]) if rows else 3
    whole = reference.minimal_fds(rows, n_columns, nulls)
    cover = [fd for fd in whole if max_lhs is None or len(fd[0]) <= max_lhs]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fd_ranking, "SUBSETS", subsets)
        found = key_implied(*arrays(cover, n_columns), n_columns)
    expected = [reference.superkey(whole, lhs, n_columns) for lhs, _ in cover]
    event("some" if 0 < sum(expected) < len(expected) else "all alike")
    assert found.tolist() == expected


@pytest.mark.parametrize("subsets", [-1, 8])
def test_key_implied_of_wide_tables(subsets: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns beyond the first word: 70 -> everything, {3, 66} -> everything, 5 -> 69 only."""
    monkeypatch.setattr(fd_ranking, "SUBSETS", subsets)
    n = 72
    cover: Cover = [(frozenset({70}), c) for c in range(n) if c != 70]
    cover += [(frozenset({3, 66}), c) for c in range(n) if c not in (3, 66, 69)]
    cover += [(frozenset({66}), 69), (frozenset({5}), 69)]
    found = key_implied(*arrays(cover, n), n)
    assert found.tolist() == [len(lhs) == 2 or 70 in lhs for lhs, _ in cover]


def test_no_dependencies(tmp_path: Path) -> None:
    assert key_implied(np.empty((0, 1), np.uint64), np.empty(0, np.int64), 3).tolist() == []
    empty = rank_relation(
        related(tmp_path, pa.table({"a": [1, 2]})), "t", np.empty((0, 1), np.uint64), np.empty(0, np.int32)
    )
    assert (empty.fds, empty.n_fds, empty.n_certain) == ((), 0, 0)


# -- order -------------------------------------------------------------------------------------------------


def addresses(n: int = 200) -> pa.Table:
    """zip -> city is meant; id is a key, stamp nearly one; flag is nearly constant, unit is constant."""
    rng = np.random.default_rng(2)
    zips = rng.integers(0, 20, n)
    stamp = np.arange(n)
    stamp[1] = stamp[0]
    flag = np.zeros(n, dtype=np.int64)
    flag[:2] = 1
    names = [f"name {k}" for k in rng.integers(0, n // 2, n)]
    names[1] = names[0]
    zips[1] = zips[0]
    return pa.table(
        {
            "id": np.arange(n),
            "zip": zips,
            "city": [f"city {z // 3}" for z in zips],
            "stamp": stamp,
            "flag": flag,
            "name": names,
            "unit": ["kg"] * n,
        }
    )


def test_the_meant_dependency_comes_first(tmp_path: Path) -> None:
    table = addresses()
    ranking = ranking_of(tmp_path, table)
    first, *rest = ranking.fds
    assert first.fd.name == "zip -> city"
    assert first.score > 2 * rest[0].score
    assert first.reasons == ("explains 180 redundant values", "left-hand side of 1 column")
    assert (first.n_groups, first.redundancy, first.mu_plus, first.measured) == (20, 180, 1.0, True)
    by_arrow = {r.fd.name: r for r in ranking.fds}
    assert "left-hand side nearly unique: may be chance" in by_arrow["stamp -> city"].reasons
    assert "right-hand side nearly constant: may be chance" in by_arrow["stamp -> flag"].reasons
    assert by_arrow["stamp -> flag"].score < by_arrow["stamp -> city"].score < first.score
    constant = by_arrow["[] -> unit"]
    assert (constant.score, constant.reasons[0]) == (0, "the column is constant")
    scores = [r.score for r in ranking.fds]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= s <= 1 for s in scores)


def test_keys_come_last(tmp_path: Path) -> None:
    ranking = ranking_of(tmp_path, addresses())
    implied = [r.key is not None for r in ranking.fds]
    assert implied == sorted(implied)
    assert ranking.n_key_implied == sum(implied) > 0
    last = [r for r in ranking.fds if r.key == ("id",)]
    assert {r.fd.rhs for r in last} == {"zip", "city", "stamp", "flag", "name"}
    assert all(r.reasons[0] == "follows from the key [id]" and r.score == 0 for r in last)
    assert {r.fd.lhs for r in ranking.fds if r.key is None} & {("id",)} == set()


def test_stability_counts_mildly(tmp_path: Path) -> None:
    table = pa.table({"a": [0, 0, 1, 1, 2, 2], "b": [0, 0, 1, 1, 2, 2], "c": [3, 4, 5, 6, 7, 8]})
    masks, rhs = arrays([(frozenset({0}), 1), (frozenset({1}), 0)], 3)
    flags = np.zeros(2, dtype=np.bool_)
    history = Stability(np.array([1, 13]), np.array([0, 40_300]))
    relation = related(tmp_path, table)
    ranking = rank_relation(relation, "t", masks, rhs, implied=flags, history=history)
    first, second = ranking.fds
    assert (first.fd.name, second.fd.name) == ("b -> a", "a -> b")
    assert second.score * (1 / (1 - fd_ranking.STABILITY_SHARE)) >= first.score > second.score
    assert first.reasons[-1] == "held through 13 versions and 40,300 changed rows"
    assert (first.versions, first.changed_rows, second.versions) == (13, 40_300, 1)
    assert not any("held" in reason for reason in second.reasons)


def test_approximate_ones(tmp_path: Path) -> None:
    """mu+ tells a dependency with a few errors from one that is hardly any."""
    rng = np.random.default_rng(6)
    n = 300
    x = rng.integers(0, 12, n)
    good, poor = x // 2, rng.integers(0, 6, n)
    good[:5] = 9
    table = pa.table({"x": x, "good": good, "poor": poor})
    relation = related(tmp_path, table)
    masks, rhs = arrays([(frozenset({0}), 2), (frozenset({0}), 1)], 3)
    rows = rows_of(table)
    total = n * (n - 1) // 2
    errors = np.array([reference.measures(rows, {0}, a, "equal")["violations"] / total for a in (2, 1)])
    ranking = rank_relation(relation, "t", masks, rhs, errors=errors)
    first, second = ranking.fds
    assert (first.fd.rhs, second.fd.rhs) == ("good", "poor")
    assert first.mu_plus is not None
    assert second.mu_plus is not None
    assert first.mu_plus > 0.8 > 0.1 > second.mu_plus
    assert first.fd.error == errors[1] > 0
    kept = reference.measures(rows, {0}, 1, "equal")["kept_rows"]
    assert first.reasons[0] == f"explains {kept - 12:,} of {n - 12:,} redundant values"
    assert any("mu+" in reason for reason in first.reasons)
    assert ranking.n_measured == 2


# -- what is measured --------------------------------------------------------------------------------------


def many_dependencies() -> pa.Table:
    rng = np.random.default_rng(11)
    columns = {f"c{i}": rng.integers(0, k, 60) for i, k in enumerate((3, 4, 5, 8, 15, 30, 4))}
    return pa.table({**columns, "sum": columns["c0"] * 4 + columns["c1"]})


def test_bounds_hold_and_the_first_are_certain(tmp_path: Path) -> None:
    """Measured in rounds until the first places are settled: the same as with everything measured."""
    table = many_dependencies()
    masks, rhs = arrays(cover_of(table), table.num_columns)
    relation = related(tmp_path, table)
    fds = Dependencies.of("t", relation.schema.names, masks, rhs, column_statistics(relation))
    nothing = Measured.of_columns(masks, fds.exact, fds.columns)
    everything = candidates(fds, nothing, 10**6)
    assert set(everything.tolist()) == set(np.flatnonzero(~fds.implied & ~nothing.known).tolist())
    all_known = measured_at(relation, fds, nothing, everything)
    assert (fds.scores(nothing) >= fds.scores(all_known) - 1e-12).all()
    whole = rank(fds, all_known)
    assert whole.n_certain == len(whole.fds) == len(masks)
    for top in (1, 3, 10):
        with small_rounds(in_one=3, at_most=10**6):
            found = rank_relation(relation, "t", masks, rhs, top=top)
        assert found.n_certain == top
        assert [r.score for r in found.fds] == [r.score for r in whole.fds[:top]]
        assert found.n_fds == len(masks)
        assert found.n_measured <= whole.n_measured
    assert rank_relation(relation, "t", masks, rhs, top=0).fds == ()


def test_what_is_not_measured_says_so(tmp_path: Path) -> None:
    table = many_dependencies()
    with small_rounds(in_one=2, at_most=2):
        ranking = ranking_of(tmp_path, table)
    open_ = [r for r in ranking.fds if not r.measured and r.key is None]
    assert open_
    assert ranking.n_certain < len(ranking.fds)
    for r in open_:
        assert r.reasons[-1] == "not measured: the score is an upper bound"
        assert (r.n_groups, r.redundancy, r.surprise, r.mu_plus) == (None, None, None, None)
    places = [(r.key is not None, not r.measured) for r in ranking.fds if r.key is None]
    assert places == sorted(places)
    assert ranking.n_measured == sum(r.measured for r in ranking.fds if r.key is None)


def test_candidates_are_the_highest_bounds(tmp_path: Path) -> None:
    table = many_dependencies()
    masks, rhs = arrays(cover_of(table), table.num_columns)
    relation = related(tmp_path, table)
    fds = Dependencies.of("t", relation.schema.names, masks, rhs, column_statistics(relation))
    nothing = Measured.of_columns(masks, fds.exact, fds.columns)
    bounds = fds.scores(nothing)
    chosen = candidates(fds, nothing, 5)
    lhs = {masks[i].tobytes() for i in chosen.tolist()}
    assert len(lhs) == 5
    others = [i for i in np.flatnonzero(~fds.implied & ~nothing.known) if masks[i].tobytes() not in lhs]
    best = {key: max(bounds[i] for i in chosen if masks[i].tobytes() == key) for key in lhs}
    assert min(best.values()) >= max(bounds[i] for i in others)


@pytest.mark.parametrize("n_rows", [0, 1, 2])
def test_few_rows(n_rows: int, tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([1] * n_rows, pa.int64()), "b": pa.array(["x"] * n_rows, pa.string())})
    ranking = ranking_of(tmp_path, table)
    assert {r.fd.name for r in ranking.fds} == {"[] -> a", "[] -> b"}
    assert all(r.score == 0 and r.key == () for r in ranking.fds)


def test_to_dict(tmp_path: Path) -> None:
    told = json.loads(json.dumps(ranking_of(tmp_path, addresses(), top=3).to_dict()))
    assert len(told["fds"]) == 3
    assert told["fds"][0]["lhs"] == ["zip"]
    assert told["fds"][0]["key"] is None
    assert set(told) == {"fds", "n_fds", "n_key_implied", "n_measured", "n_certain"}
