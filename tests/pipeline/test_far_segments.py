"""What is looked for in few places of segments is asked of executors where these are far, with one result."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import holdfast
from holdfast.core.engine import distance, session
from holdfast.core.engine.engine import Engine, echo
from holdfast.core.evidence.probe import evidence_of
from holdfast.core.rows import relation as relations
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.row_sample import sample_rows
from holdfast.core.rows.segments import ROW_BITS
from holdfast.core.store import bucket as buckets
from holdfast.core.store.files import FileRef, write_file
from holdfast.core.store.litter import named_files
from holdfast.core.words.dependency import Side
from holdfast.denial import dc_witnessed
from holdfast.inclusions import values
from holdfast.inclusions.missing import find_carriers
from holdfast.profile import value_ranking
from trust.object_store import Faults, Request, Store, through

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

N = 300


def rows(first: int, n: int = N) -> pa.Table:
    numbers = range(first, first + n)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "name": [f"n{i % 70}" if i % 7 else None for i in numbers],
            "price": [i % 40 / 4 if i % 5 else None for i in numbers],
            "nothing": pa.nulls(n, pa.string()),
        }
    )


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Whatever is asked for lies far away; what executors were asked."""
    asked: list[str] = []
    look = Relation.look

    def looked(self: Relation, task: Any, *arguments: Any) -> list[bytes]:
        asked.append(task.__name__)
        return look(self, task, *arguments)

    monkeypatch.setattr(Relation, "are_far", lambda self, segments: bool(segments))
    monkeypatch.setattr(Relation, "look", looked)
    return asked


def facts(folder: Path, spark: SparkSession) -> list[Any]:
    """A history whose deletes are in a merged segment, and what is asked about it."""
    said: list[Any] = []
    with holdfast.open(folder, engine="spark", spark=spark) as ws:
        ws.track("t", rows(0), row_key=["id"], kinds=("ucc", "row", "profile"))
        ws.apply("t", inserts=rows(N))
        ws.merge("t")
        ws.apply("t", inserts=rows(2 * N, 20))
        ws.pin("t", "not(t.name = s.name and t.price != s.price)", at_most="100%")
        gone = pa.table({"id": pa.array([3, 200, N + 1, 2 * N + 5, 9], pa.int64())})
        done = ws.apply("t", deletes=gone)
        said += [done.n_deleted, [pin.n_violations for pin in done.pins], ws.dependencies("ucc", "t")]
        said.append(ws.profiles.of("t").to_dict())
        tables = ws.writer.tables
        with tables.opened(tables.state("t")) as relation:
            assert any(segment.merged for segment in relation.segments)
            for n in (0, 7, 10_000):
                sample = sample_rows(relation, n, seed=5)
                said += [sample.codes.tolist(), sample.row_ids.tolist()]
            said.append(value_ranking.ranked_values(relation, {0: True, 1: True, 2: False}, 4))
            places = relation.positioned(np.array([0, 3, 5, 1 << 32, (1 << 33) + 1]))
            said += [(ref.number, at.tolist()) for ref, at in places]
    return said


def test_far_and_near_say_the_same(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, far: list[str]
) -> None:
    # A column's values are counted range by range.
    monkeypatch.setattr(value_ranking, "RANGE_VALUES", 100)
    monkeypatch.setattr(value_ranking, "SAMPLED", 20)
    by_executors = facts(tmp_path / "far", spark)
    assert {"position_rows", "sample_part", "sample_codes"} <= set(far)
    monkeypatch.undo()
    assert facts(tmp_path / "near", spark) == by_executors


def test_codes_of_a_sample_compare_as_values_do(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", rows(0), row_key=["id"], kinds=("ucc",))
        ws.apply("t", inserts=rows(N), deletes=pa.table({"id": pa.array([1, 2], pa.int64())}))
        tables = ws.writer.tables
        with tables.opened(tables.state("t")) as relation:
            for n in (50, 10_000):
                sample = sample_rows(relation, n)
                assert len(set(sample.row_ids.tolist())) == min(n, 2 * N - 2)
                values = relation.fetch(sample.row_ids)
                for name, codes in zip(values.column_names, sample.codes.tolist(), strict=True):
                    column = values[name].to_pylist()
                    assert [code == 0 for code in codes] == [value is None for value in column]
                    known = sorted({(c, v) for c, v in zip(codes, column, strict=True) if v is not None})
                    assert len({c for c, _ in known}) == len({v for _, v in known}) == len(known)
                    assert name == "name" or known == sorted(known, key=lambda pair: pair[1])


def test_segments_of_which_a_sample_has_no_row_are_left_alone(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with holdfast.open(tmp_path / "w", engine="inline", spark=spark) as ws:
        ws.track("t", rows(0), row_key=["id"], kinds=("ucc",))
        for i in range(1, 4):
            ws.apply("t", inserts=rows(i * N, 20))
        tables = ws.writer.tables
        with tables.opened(tables.state("t")) as relation:
            asked: list[tuple[int, int]] = []
            look = Relation.look

            def looked(self: Relation, task: Any, payloads: Any, segments: Any) -> list[bytes]:
                asked.append((len(payloads), len(segments)))
                return look(self, task, payloads, segments)

            monkeypatch.setattr(Relation, "look", looked)
            samples = [sample_rows(relation, n, seed=3) for n in (0, 1, 2, 40)]
    assert [sample.codes.shape for sample in samples] == [(4, n) for n in (0, 1, 2, 40)]
    concerned = [len(set((sample.row_ids >> ROW_BITS).tolist())) for sample in samples]
    assert asked == [(n, n) for n in concerned]
    assert concerned[:2] == [0, 1]


def ordered_rows(first: int, n: int) -> pa.Table:
    """`low` is less than `high` in all rows, and in any two."""
    ids = range(first, first + n)
    return pa.table(
        {
            "low": [i * 7 % 50 for i in ids],
            "high": [60 + i * 3 % 40 for i in ids],
            "fee": [60 + (i * 3 % 40) // 2 for i in ids],
        }
    )


def ordered_facts(folder: Path, spark: SparkSession) -> list[Any]:
    """What is said of rules about each row, and about two."""
    with holdfast.open(folder, engine="spark", spark=spark) as ws:
        ws.track("t", ordered_rows(0, 60), kinds=("row", "dc"), evidence="witnessed")
        ws.apply("t", inserts=ordered_rows(60, 30))
        done = ws.apply(
            "t", deletes=ordered_rows(0, 5), inserts=pa.table({"low": [99], "high": [70], "fee": [1]})
        )
        said: list[Any] = [sorted(f"{new.event} {new.dependency}" for new in done.changes)]
        ws.apply("t", deletes=pa.table({"low": [99], "high": [70], "fee": [1]}))
        said += [sorted(map(str, ws.dependencies(kind))) for kind in ("row", "dc")]
        chosen = ws.dcs.indexes("t").selection
        assert chosen is not None
        said.append([(access.orders, access.rank) for access in chosen.accesses])
        tables = ws.writer.tables
        with tables.opened(tables.state("t")) as relation:
            ref = ws.dcs.ref("t")
            assert ref is not None
            masks, pairs = evidence_of(
                relation, ref.space, np.array([[1, 7], [1 << 32, 8], [20, (1 << 32) + 4]])
            )
            said += [masks.tolist(), pairs.tolist()]
            assert len(pairs) == 6
    return said


def test_far_rows_have_the_same_order(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, far: list[str]
) -> None:
    monkeypatch.setattr(dc_witnessed, "SCANNED_ROWS", 0)
    by_executors = ordered_facts(tmp_path / "far", spark)
    assert {"find_ends", "order_ranks", "compare_listed"} <= set(far)
    monkeypatch.undo()
    monkeypatch.setattr(dc_witnessed, "SCANNED_ROWS", 0)
    assert ordered_facts(tmp_path / "near", spark) == by_executors


def ind_facts(folder: Path, spark: SparkSession) -> list[Any]:
    """What breaks inclusions of a table of several segments: as a batch says it, and after it."""
    names = pa.table({"name": [f"n{i}" for i in range(70)]})
    prices = pa.table({"price": [i / 4 for i in range(40)]})
    with holdfast.open(folder, engine="spark", spark=spark) as ws:
        ws.track("t", rows(0), kinds=("ind",))
        ws.track("names", names, kinds=("ind",))
        ws.track("prices", prices, kinds=("ind",))
        for i in range(1, 4):
            ws.apply("t", inserts=rows(N * i, 30))
        batches = {
            "t": {"inserts": rows(2 * N, 3)},
            "names": {"deletes": names.slice(5, 40)},
            "prices": {"deletes": prices.slice(11, 2)},
        }
        said: list[Any] = [change.to_dict() for change in ws.apply_all(batches).changes]
        for name in ("name", "price"):
            explained = ws.inds.explain(Side("t", (name,)), Side(f"{name}s", (name,)))
            assert explained.missing
            said += [explained.ind, explained.missing]
    return said


def test_each_far_segment_is_asked_once_who_carries_what_is_missing(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, far: list[str]
) -> None:
    asked: list[int] = []
    look = Relation.look

    def counted(self: Relation, task: Any, payloads: list[Any], *arguments: Any) -> list[bytes]:
        if task is find_carriers:
            asked.append(len(payloads))
        return look(self, task, payloads, *arguments)

    monkeypatch.setattr(Relation, "look", counted)
    by_executors = ind_facts(tmp_path / "far", spark)
    # The newest segment has some of the values; the older ones are asked for all others, of all inclusions.
    assert asked == [1, 4]
    assert far.count("missing_in_segment") == 2
    monkeypatch.undo()
    assert ind_facts(tmp_path / "near", spark) == by_executors


def test_all_classes_ask_once_where_deleted_rows_are(
    tmp_path: Path, spark: SparkSession, far: list[str]
) -> None:
    kinds = ("ucc", "fd", "row", "profile", "dc")
    with holdfast.open(tmp_path / "w", engine="spark", spark=spark) as ws:
        ws.track("t", rows(0), row_key=["id"], kinds=kinds, evidence="witnessed", max_predicates=2)
        ws.apply("t", inserts=rows(N, 10))
        ws.merge("t")
        far.clear()
        ws.apply("t", deletes=pa.table({"id": pa.array([3, 200], pa.int64())}))
    assert far.count("position_rows") == 1


def test_a_batch_leaves_a_far_table_where_it_is(
    tmp_path: Path, spark: SparkSession, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch of one row is no work; it goes to Spark all the same where the table has to be fetched."""
    url, kinds = "s3://box/far-table", ("ucc", "fd", "ind", "row", "profile", "dc")
    other = pa.table({"name": [f"n{i}" for i in range(70)], "price": [i / 4 for i in range(70)]})
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "first"))
    with holdfast.open(url, engine="inline", storage_options=store.options) as ws:
        ws.track("t", rows(0), row_key=["id"], kinds=kinds, evidence="witnessed", max_predicates=2)
        ws.track("other", other, kinds=("ucc", "ind"))
        ws.apply("t", inserts=rows(N, 10))
    buckets.forget()
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "second"))
    monkeypatch.setattr(Engine, "has_cluster", True)
    monkeypatch.setattr(distance, "FAR_BYTES", 0)
    monkeypatch.setattr(distance, "NS_FETCHED", 10**9)
    monkeypatch.setattr(relations, "TABLE_BYTES", 0)
    monkeypatch.setattr(values, "TABLE_BYTES", 0)
    with holdfast.open(url, spark=spark, storage_options=store.options) as ws:
        there, runs = ws.writer.tables.state("t"), ws.inds.generator()
        assert runs is not None
        ws.apply("t", inserts=rows(2 * N, 1))
        ws.apply("t", deletes=rows(3, 1))
        ws.apply("other", deletes=other.slice(3, 1))
        assert ws.n_rows("t") == N + 10
        old = [ref for segment in there.segments for ref in named_files(segment.to_dict())]
        old += [ref for run in runs.runs for ref in run.files()]
        assert len(old) > 2
        here = [ref.name for ref in old if buckets.bucket_of(url).is_near(ref)]
        assert here == []
    buckets.forget()


def test_who_may_only_read_checks_a_batch_of_a_far_table(
    tmp_path: Path, spark: SparkSession, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a batch brings goes along with the jobs; what tasks would write is written here."""
    url, kinds = "s3://box/read-only", ("ucc", "fd", "ind", "row", "profile", "dc")
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "first"))
    batches: list[dict[str, Any]] = [
        {"inserts": rows(2 * N, 3)},
        {"deletes": pa.table({"id": [3, N + 4]})},
        {"updates": pa.table({"id": [5], "name": ["n9"]})},
        {
            "upserts": pa.table(
                {"id": [7, 5 * N], "name": ["n1", "n2"], "price": [1.5, None], "nothing": [None, "x"]}
            )
        },
    ]

    def said(ws: holdfast.Workspace) -> list[Any]:
        checked = [ws.check("t", **batch).to_dict() for batch in batches]
        return [[change[name] for name in ("changes", "tables", "version")] for change in checked]

    with holdfast.open(url, engine="inline", storage_options=store.options) as ws:
        ws.track("t", rows(0), row_key=["id"], kinds=kinds, evidence="witnessed", max_predicates=2)
        ws.apply("t", inserts=rows(N, 10))
        ws.merge("t")
        ws.apply("t", inserts=rows(N + 10, 10))
        expected = said(ws)
    buckets.forget()
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "second"))
    monkeypatch.setattr(Engine, "has_cluster", True)
    monkeypatch.setattr(distance, "FAR_BYTES", 0)
    monkeypatch.setattr(distance, "NS_FETCHED", 10**9)
    monkeypatch.setattr(relations, "TABLE_BYTES", 0)
    monkeypatch.setattr(values, "TABLE_BYTES", 0)
    before = {entry.name for entry in buckets.Bucket(url, store.options).entries("")}
    faults = Faults(lambda request: "denied" if request.method in ("PUT", "POST", "DELETE") else None)
    with (
        through(store, faults) as address,
        holdfast.open(url, spark=spark, create=False, storage_options=store.options_at(address)) as ws,
    ):
        assert said(ws) == expected
        assert ws.writer.engine.jobs > 4
    buckets.forget()
    assert faults.counted("PUT") > 0
    assert {entry.name for entry in buckets.Bucket(url, store.options).entries("")} == before


def test_what_is_weighed(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes that have no copy here, against a job, and a session's start if there is none."""
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "cache"))
    place = buckets.Bucket("s3://box/weighed", store.options)
    here = write_file(place, "tables/t/a.arrow", [b"x" * 1000])
    there = [FileRef(f"tables/t/{i}.arrow", 1 << 30, "") for i in range(40)]
    asked: list[bool] = []
    monkeypatch.setattr(session, "is_there", lambda: asked.append(True) or False)
    for cluster, root, files, far in (
        (True, place, [here], False),
        (True, place, [here, there[0]], True),
        (True, place, there, True),
        (True, tmp_path, there, False),
        (False, place, there, False),
    ):
        monkeypatch.setattr(session, "expects_cluster", lambda cluster=cluster: cluster)
        monkeypatch.setattr(session, "expected_cores", lambda: 64)
        assert distance.are_far(Engine(), root, files) == far
        assert distance.are_far(Engine(), root, files, 1 << 31) == (far and len(files) > 2)
        assert not distance.are_far(Engine(mode="inline"), root, files)
    assert asked


def test_a_table_is_weighed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at each copy of a large table takes longer than a little work; other segments are looked at."""
    asked: list[int] = []

    def weighed(engine: Engine, root: Any, files: Any, least: int) -> bool:
        asked.append(len(list(files)))
        return False

    monkeypatch.setattr(relations, "are_far", weighed)
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", rows(0), row_key=["id"], kinds=("ucc",))
        ws.apply("t", inserts=rows(N, 10))
        tables = ws.writer.tables
        with tables.opened(tables.state("t")) as relation:
            asked.clear()
            for _ in range(3):
                assert relation.run(echo, [], 0) == []
            more = relation.with_segments(relation.segments[:1])
            for _ in range(2):
                assert more.run(echo, [], 0) == []
    assert asked == [2, 3]


def test_deletes_of_many_segments_are_asked_for_side_by_side(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, n = "s3://box/deletes", 6
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "first"))
    with holdfast.open(url, engine="inline", storage_options=store.options) as ws:
        ws.track("t", rows(0, 10), row_key=["id"], kinds=("ucc",))
        for i in range(1, n):
            ws.apply("t", inserts=rows(10 * i, 10))
        ws.apply("t", deletes=pa.table({"id": [10 * i for i in range(n)]}))
    buckets.forget()
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "second"))
    lock, under_way, most = threading.Lock(), [0], [0]

    def began(request: Request) -> str | None:
        if request.method == "GET" and "/deletes-" in request.path:
            with lock:
                under_way[0] += 1
                most[0] = max(most[0], under_way[0])
            return "delay"
        return None

    def ended(request: Request) -> None:
        if request.method == "GET" and "/deletes-" in request.path:
            with lock:
                under_way[0] -= 1

    with (
        through(store, Faults(began, ended)) as address,
        holdfast.open(url, engine="inline", storage_options=store.options_at(address)) as ws,
    ):
        ws.apply("t", deletes=pa.table({"id": [10 * i + 3 for i in range(n)]}))
        assert ws.n_rows("t") == 8 * n
    buckets.forget()
    assert most[0] > 1
