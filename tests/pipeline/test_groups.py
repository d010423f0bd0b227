"""Measures of dependencies on the rows of many segments equal the definition; inline and Spark agree."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from holdfast.core.engine.engine import Engine
from holdfast.core.evidence import group_tasks, shuffled
from holdfast.core.evidence import groups as measured
from holdfast.core.evidence.group_rows import group_rows
from holdfast.core.evidence.group_votes import votes_on_doubtful
from holdfast.core.evidence.groups import FdMeasures, column_statistics, measure_fds, violating_groups
from holdfast.core.evidence.identities import identities_of
from holdfast.core.rows import codes
from holdfast.core.rows.kernels.masks import mask_of, n_words_for
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import encode_rows, open_segment, write_segment
from holdfast.core.store.arrow_types import arrow_schema, type_of
from holdfast.core.store.format import create_marker, text_key
from holdfast.core.words.schema import Column, Schema
from pipeline.exchange_here import ExchangeHere
from reference import groups as reference
from reference.keys import Row, canonical_row
from strategies import Shape, shapes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUMS = ("n_groups", "violations", "kept_rows", "violating_rows")
COLUMN_SUMS = ("n_distinct", "n_nulls", "n_groups", "sum_squares", "largest")


@contextmanager
def two_bit_hashes() -> Iterator[None]:
    """Almost all texts share a code."""
    honest = codes.hash_texts
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codes, "hash_texts", lambda texts, key: honest(texts, key) & 3)
        yield


@contextmanager
def small_parts(rows: int) -> Iterator[None]:
    """Parts of so many rows, and tables that are large enough to be sent."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measured, "PART_ROWS", rows)
        patch.setattr(shuffled, "SHUFFLED_ROWS", 0)
        yield


def related(root: Path, batches: Sequence[pa.Table], nulls: Any, engine: Engine) -> Relation:
    """Each batch in a segment of its own (or more, where texts collide)."""
    fields = batches[0].schema
    schema = Schema(tuple(Column(f.name, type_of(f.type, table="t", column=f.name)) for f in fields))
    create_marker(root)
    refs = []
    for batch in batches:
        if len(batch):
            for columns in encode_rows(batch.cast(arrow_schema(schema)), schema, text_key(root)):
                refs.append(write_segment(root, "rows", len(refs), columns, range(len(schema))))
    return Relation(root, "rows", "staging", schema, nulls, tuple(range(len(schema))), tuple(refs), engine)


def live_rows(relation: Relation) -> tuple[list[Row], list[int]]:
    """(rows, ids) in the order of the segments."""
    rows: list[Row] = []
    ids: list[int] = []
    for ref in relation.segments:
        segment = open_segment(relation.root, ref, relation.schema)
        at = np.flatnonzero(segment.live)
        rows += [canonical_row(tuple(row.values())) for row in segment.rows(at).to_pylist()]
        ids += segment.row_ids(at).tolist()
    return rows, ids


def asked(dependencies: Sequence[tuple[Sequence[int], int]], n_columns: int) -> tuple[Any, Any]:
    n_words = n_words_for(n_columns)
    lhs = np.array([mask_of(left, n_words) for left, _ in dependencies], np.uint64).reshape(-1, n_words)
    return lhs, np.array([right for _, right in dependencies], dtype=np.int64)


def check_measures(
    found: FdMeasures, rows: Sequence[Row], dependencies: Sequence[tuple[Sequence[int], int]], nulls: str
) -> None:
    assert found.n_rows == len(rows)
    for i, (lhs, rhs) in enumerate(dependencies):
        expected = reference.measures(rows, lhs, rhs, nulls)
        told = {name: int(getattr(found, name)[i]) for name in SUMS}
        assert told == {name: expected[name] for name in SUMS}, (lhs, rhs)
        assert found.dependence[i] == pytest.approx(float(expected["dependence"]))
        if not expected["violations"]:
            assert found.pdep[i] == 1.0


def check_everything(relation: Relation, dependencies: Sequence[tuple[Sequence[int], int]]) -> None:
    rows, ids = live_rows(relation)
    nulls, n_columns = relation.nulls, len(relation.schema)
    check_measures(measure_fds(relation, *asked(dependencies, n_columns)), rows, dependencies, nulls)
    columns = column_statistics(relation)
    for c in range(n_columns):
        told = {name: int(getattr(columns, name)[c]) for name in COLUMN_SUMS}
        assert told == reference.column(rows, c, nulls)
    for lhs, rhs in dependencies:
        if rhs >= 0:
            check_violating(relation, rows, ids, lhs, rhs)


def check_violating(
    relation: Relation, rows: Sequence[Row], ids: Sequence[int], lhs: Sequence[int], rhs: int
) -> None:
    names = relation.schema.names
    mask = mask_of(lhs, relation.n_words)
    expected = reference.violating_groups(rows, lhs, rhs, relation.nulls)
    for limit, n_shown in ((2, 3), (100, 1)):
        found = violating_groups(relation, mask, rhs, limit, n_shown)
        assert len(found) == min(limit, len(expected))
        for group, (key, n_rows, n_values, counts, members) in zip(found, expected, strict=False):
            assert canonical_row(tuple(group.lhs.values())) == key
            assert list(group.lhs) == [names[c] for c in sorted(lhs)]
            assert (group.n_rows, group.n_values) == (n_rows, n_values)
            assert {canonical_row((v,))[0]: n for v, n in group.values} == counts
            assert [n for _, n in group.values] == sorted(counts.values(), reverse=True)
            assert len(group.rows) == min(n_shown, n_rows)
            shown = [r.row_id for r in group.rows]
            assert len(set(shown)) == len(shown)
            assert set(shown) <= {ids[i] for i in members}
            for row in group.rows:
                assert canonical_row(tuple(row.values.values())) == rows[ids.index(row.row_id)]
            different = {canonical_row((r.values[names[rhs]],)) for r in group.rows}
            assert len(different) == min(n_shown, len(counts)), "as many different values as can be shown"
            assert group.to_dict()["n_rows"] == n_rows


@st.composite
def dependencies_of(draw: st.DrawFn, n_columns: int) -> list[tuple[list[int], int]]:
    column = st.integers(0, n_columns - 1)
    lhs = st.lists(column, unique=True, max_size=4)
    return draw(st.lists(st.tuples(lhs, st.integers(-1, n_columns - 1)), min_size=1, max_size=8))


def drawn_relation(data: st.DataObject, shape: Shape, root: Path, nulls: str, engine: Engine) -> Relation:
    batches = [data.draw(shape.rows(max_size=9)) for _ in range(data.draw(st.integers(1, 3)))]
    relation = related(root, [shape.table(b) for b in batches], nulls, engine)
    ids = live_rows(relation)[1]
    if ids and data.draw(st.booleans()):
        gone = data.draw(st.sets(st.sampled_from(ids)))
        relation = relation.without_rows(np.array(sorted(gone), dtype=np.int64))
    return relation


NULLS = st.sampled_from(["equal", "distinct"])
INLINE = Engine(mode="inline")
# Rows are read from the segments, or sent.
ENGINES = st.sampled_from([INLINE, ExchangeHere(mode="inline")])


@given(shapes(), NULLS, st.sampled_from([1, 3, 1 << 21]), ENGINES, st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_measures(shape: Shape, nulls: str, part_rows: int, engine: Engine, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder, small_parts(part_rows):
        relation = drawn_relation(data, shape, Path(folder), nulls, engine)
        event(f"{len(relation.segments)} segments")
        check_everything(relation, data.draw(dependencies_of(shape.n_columns)))


@given(shapes(), NULLS, st.sampled_from([1, 3, 1 << 21]), st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_rows_that_are_sent_say_the_same(
    shape: Shape, nulls: str, part_rows: int, data: st.DataObject
) -> None:
    """Which rows violate a dependency, which are to go, and what dependencies vote for."""
    with tempfile.TemporaryDirectory() as folder, small_parts(part_rows):
        read = drawn_relation(data, shape, Path(folder), nulls, INLINE)
        sent = read.by(ExchangeHere(mode="inline"))
        dependencies = data.draw(dependencies_of(shape.n_columns))
        for lhs, rhs in dependencies:
            limit = data.draw(st.sampled_from([None, 1, 3]))
            one, other = (group_rows(r, mask_of(lhs, r.n_words), rhs, limit) for r in (read, sent))
            for field in fields(one):
                assert np.array_equal(getattr(one, field.name), getattr(other, field.name)), field.name
        masks, rhs_of = asked([(lhs, rhs) for lhs, rhs in dependencies if rhs >= 0], shape.n_columns)
        votes = [votes_on_doubtful(r, masks, rhs_of) for r in (read, sent)]
        event("votes" if len(votes[0].value) else "no votes")
        names = [field.name for field in fields(votes[0]) if field.name != "value"]
        ballots = [list(zip(*(getattr(v, name).tolist() for name in names), strict=True)) for v in votes]
        assert sorted(ballots[0]) == sorted(ballots[1])
        # A value has another name where rows are sent, and all values of a column have different ones.
        renamed = [
            dict(zip(b, zip(rhs_of[v.dependency].tolist(), v.value.tolist(), strict=True), strict=True))
            for b, v in zip(ballots, votes, strict=True)
        ]
        pairs = {(renamed[0][ballot], renamed[1][ballot]) for ballot in ballots[0]}
        assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


@given(shapes(types=("text", "binary", "wide decimal"), pool_size=6, max_columns=3), NULLS, st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_collisions_change_nothing(shape: Shape, nulls: str, data: st.DataObject) -> None:
    """Equal codes of different texts neither invent a violation nor hide one."""
    part_rows = data.draw(st.sampled_from([2, 1 << 21]))
    with two_bit_hashes(), tempfile.TemporaryDirectory() as folder, small_parts(part_rows):
        relation = drawn_relation(data, shape, Path(folder), nulls, INLINE)
        event(f"{len(relation.segments)} segments")
        check_everything(relation, data.draw(dependencies_of(shape.n_columns)))


def test_a_collision_is_noticed(tmp_path: Path) -> None:
    with two_bit_hashes():
        parts = [pa.table({"x": [f"t{i}"], "a": [i % 2]}) for i in range(8)]
        relation = related(tmp_path, parts, "equal", INLINE)
    segments = tuple(open_segment(tmp_path, ref, relation.schema) for ref in relation.segments)
    assert len(set(np.concatenate([s.dictionary(0) for s in segments]).tolist())) < 8
    assert identities_of(segments).of(0)[1] == 1 + 8  # NULL is 0
    assert measure_fds(relation, *asked([([0], 1)], 2)).violations.tolist() == [0]


@pytest.mark.parametrize("nulls", ["equal", "distinct"])
def test_wide_tables(nulls: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    table = pa.table(
        {f"c{c}": pa.array(rng.integers(0, 3, 30), mask=rng.random(30) < 0.2) for c in range(130)}
    )
    relation = related(tmp_path, [table.slice(0, 11), table.slice(11)], nulls, INLINE)
    rows, _ = live_rows(relation)
    dependencies = [([c, (c * 37) % 130], (c * 11 + 64) % 130) for c in range(0, 130, 7)]
    found = measure_fds(relation, *asked(dependencies, 130))
    check_measures(found, rows, dependencies, nulls)


@pytest.mark.parametrize("nulls", ["equal", "distinct"])
@pytest.mark.parametrize("n_rows", [0, 1, 2])
def test_few_rows(n_rows: int, nulls: str, tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([None] * n_rows, pa.int64()), "a": pa.array([1] * n_rows, pa.int64())})
    relation = related(tmp_path, [table], nulls, INLINE)
    check_everything(relation, [([], 0), ([], 1), ([], -1), ([0], 1), ([1], 0), ([0, 1], -1)])


def test_nothing_is_asked(tmp_path: Path) -> None:
    relation = related(tmp_path, [pa.table({"x": [1, 2]})], "equal", INLINE)
    assert len(measure_fds(relation, *asked([], 1)).n_groups) == 0


def test_many_values_of_one_group(tmp_path: Path) -> None:
    """Only the most frequent ones are told, and how many there are."""
    n = 3 * group_tasks.VALUES_SHOWN
    table = pa.table({"x": [1] * (n + 1), "a": [*range(n), 7]})
    relation = related(tmp_path, [table], "equal", INLINE)
    [group] = violating_groups(relation, mask_of([0], 1), 1)
    assert (group.n_rows, group.n_values, len(group.values)) == (n + 1, n, group_tasks.VALUES_SHOWN)
    assert group.values[0] == (7, 2)
    shown = violating_groups(relation, mask_of([0], 1), 1, plain=lambda t: [{"x": "?", "a": 0}] * len(t))
    assert [g.lhs for g in shown] == [{"x": "?"}]


def test_inline_and_spark_agree(tmp_path: Path, spark: SparkSession) -> None:
    """One job each, whatever is asked."""
    rng = np.random.default_rng(3)
    n = 400
    table = pa.table(
        {
            "x": pa.array([f"v{i}" for i in rng.integers(0, 90, n)], mask=rng.random(n) < 0.05),
            "y": rng.integers(0, 4, n),
            "z": [f"w{i}" for i in rng.integers(0, 3, n)],
        }
    )
    engine = Engine(spark=spark, mode="spark")
    parts = [table.slice(0, 150), table.slice(150)]
    dependencies = [([0], 1), ([0, 1], 2), ([1], 2), ([0, 2], -1), ([], 1), ([], -1)]
    for nulls in ("equal", "distinct"):
        root = tmp_path / nulls
        root.mkdir()
        inline = related(root, parts, nulls, INLINE)
        remote = Relation(root, "rows", "staging", inline.schema, inline.nulls, (), inline.segments, engine)
        before = engine.jobs
        found = measure_fds(remote, *asked(dependencies, 3))
        columns = column_statistics(remote)
        groups = violating_groups(remote, mask_of([0], 1), 2, 5, 3)
        assert engine.jobs - before == 3
        here = measure_fds(inline, *asked(dependencies, 3))
        for name in SUMS:
            assert getattr(found, name).tolist() == getattr(here, name).tolist()
        assert found.dependence == pytest.approx(here.dependence)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(shuffled, "SHUFFLED_ROWS", 0)
            patch.setattr(Engine, "shuffles", True)
            exchanged = measure_fds(remote, *asked(dependencies, 3))
            assert engine.jobs - before == 4
            for name in SUMS:
                assert getattr(exchanged, name).tolist() == getattr(here, name).tolist()
            assert groups == violating_groups(remote, mask_of([0], 1), 2, 5, 3)
            assert engine.jobs - before == 5
        for name in COLUMN_SUMS:
            assert getattr(columns, name).tolist() == getattr(column_statistics(inline), name).tolist()
        assert groups == violating_groups(inline, mask_of([0], 1), 2, 5, 3)
        assert len(groups) == 5
        check_measures(found, live_rows(remote)[0], dependencies, nulls)
