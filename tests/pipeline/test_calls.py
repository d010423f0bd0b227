"""The calls of a job: what comes out is what went in, by way of JSON; and what is shared is written once."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from holdfast.core.engine.calls import STAGED_BYTES, Calls, calls_of
from holdfast.core.engine.engine import Engine, echo
from holdfast.core.evidence import comparison
from holdfast.core.evidence.agree_probe import probe
from holdfast.core.evidence.comparison import compare_inserts
from holdfast.core.evidence.refute import validate
from holdfast.core.rows.differing import difference
from holdfast.core.rows.kernels.masks import mask_of
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.table_state import SegmentRef
from holdfast.core.store.bucket import Bucket
from holdfast.core.store.files import FileRef
from holdfast.core.words.schema import Column, Schema, Type
from trust.object_store import Faults, Store, through

leaves = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.floats(allow_nan=False))
values = st.recursive(
    leaves, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=3), v, max_size=3)
)
payloads = st.dictionaries(st.text(max_size=4), values, max_size=4)


def test_a_schema_from_another_process_is_the_schema() -> None:
    """Hashes of texts differ between processes, so a schema must not bring its own along."""
    schema = Schema((Column("id", Type("int")), Column("name", Type("text"))))
    made = (
        "import pickle, sys; from holdfast.core.words.schema import Column, Schema, Type; "
        "schema = Schema((Column('id', Type('int')), Column('name', Type('text')))); "
        "sys.stdout.buffer.write(pickle.dumps(schema))"
    )
    command = [sys.executable, "-c", made]
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(command, env=environment, capture_output=True, check=True)
        other = pickle.loads(done.stdout)
        assert other == schema
        assert hash(other) == hash(schema)
        assert other.position("name") == 1


@given(st.lists(st.tuples(st.sampled_from(["m:f", "m:g"]), payloads), max_size=6))
def test_what_comes_out_is_what_went_in(calls: list[tuple[str, dict[str, Any]]]) -> None:
    listed = Calls.of(calls)
    assert len(listed) == len(calls)
    plain = [(function, json.loads(json.dumps(payload))) for function, payload in calls]
    assert [listed[i] for i in range(len(listed))] == plain
    carried = pickle.loads(pickle.dumps(listed))
    assert [carried[i] for i in range(len(listed))] == plain
    assert list(listed.functions()) == list(dict.fromkeys(function for function, _ in calls))


def test_in_a_file(tmp_path: Path) -> None:
    shared = {"segments": [{"name": f"segment {i}"} for i in range(1_000)]}
    calls = [("m:f", {"shared": shared, "n": i, "text": "x" * (i % 3)}) for i in range(500)]
    listed = Calls.of(calls)
    ref = listed.staged(tmp_path, "staging/a/calls.arrow")
    again = calls_of((str(tmp_path), ref))
    assert [again[i] for i in (0, 17, 499)] == [calls[i] for i in (0, 17, 499)]
    assert again[3][1]["shared"] is again[4][1]["shared"]  # parsed once
    assert ref.length < listed.n_bytes < 60_000


def test_many_calls_travel_as_a_file(spark: SparkSession, tmp_path: Path) -> None:
    engine = Engine(spark, "spark", root=tmp_path)
    payloads = [{"n": i, "text": f"{i:0200}"} for i in range(2_000)]
    assert Calls.of([("f", p) for p in payloads]).n_bytes > STAGED_BYTES
    results = engine.run(echo, payloads, where="spark")
    assert [json.loads(r) for r in results] == payloads
    assert engine.jobs == 1
    assert not list(tmp_path.rglob("*.arrow"))


def many_calls(engine: Engine) -> None:
    payloads = [{"n": i, "text": f"{i:0200}"} for i in range(2_000)]
    assert [json.loads(r) for r in engine.run(echo, payloads, where="spark")] == payloads


def test_many_calls_travel_with_the_job_of_who_may_not_put_objects(
    spark: SparkSession, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "cache"))
    faults = Faults(lambda request: "denied" if request.method != "GET" else None)
    with through(store, faults) as address:
        many_calls(Engine(spark, "spark", root=Bucket("s3://box/ws", store.options_at(address))))
    assert faults.counted("PUT") == 1
    assert list((tmp_path / "cache" / "under-way").iterdir()) == []


@pytest.mark.ordinary_user
def test_many_calls_travel_with_the_job_of_who_may_not_write(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir(mode=0o555)
    many_calls(Engine(spark, "spark", root=tmp_path / "w"))


class Counting(Engine):
    """Does not run anything: counts what a job would carry."""

    def run_job(self, calls: Any, progress: Any) -> Any:
        listed = Calls.of(calls)
        self.n_calls, self.n_bytes = len(listed), listed.n_bytes
        raise StopIteration

    def check_root(self) -> None:
        pass

    @property
    def cores(self) -> int:
        return 400


N_COLUMNS, N_ROWS = 50, 952_381


def references(first: int, n: int) -> tuple[SegmentRef, ...]:
    """Of segments that there are not."""
    n_columns, n_rows = N_COLUMNS, N_ROWS
    return tuple(
        SegmentRef(
            number=i,
            n_rows=n_rows,
            file=FileRef(f"tables/big-0a1b2c/segment-{i:012x}.arrow", 365_000_000, f"{i:016x}"),
            distinct=tuple(range(100_000 + i, 100_000 + i + n_columns)),
            equal_pairs=tuple(range(10**9 + i, 10**9 + i + n_columns)),
            nulls=tuple(range(10_000 + i, 10_000 + i + n_columns)),
            indexes=(
                ((1, 2, 3), FileRef(f"tables/big-0a1b2c/index-{i:012x}.arrow", 9_000_000, f"{i:016x}")),
            ),
        )
        for i in range(first, first + n)
    )


def large(root: Path, engine: Engine) -> Relation:
    schema = Schema(tuple(Column(f"column_{c:02d}", Type.parse("int")) for c in range(N_COLUMNS)))
    segments = references(0, 1_050)
    return Relation(root, "tables/big", "staging/x", schema, "equal", (), segments, engine)


def test_a_round_over_a_billion_rows(tmp_path: Path) -> None:
    """The real builder, on references of a table that there is not: 1,050 segments of 50 columns."""
    engine = Counting(mode="spark")
    candidates = np.stack([mask_of([c, (c + 1) % N_COLUMNS], 1) for c in range(36)])
    with pytest.raises(StopIteration):
        validate(large(tmp_path, engine), candidates)
    assert engine.n_calls > 10_000
    assert engine.n_bytes < 5_000_000


BATCH = references(1_050, 250)
KEYS = np.stack([mask_of([c, c + 1], 1) for c in range(3)])
PAIRING: dict[str, Callable[[Relation], object]] = {
    "locate": lambda table: table.locate(BATCH, range(N_COLUMNS)),
    "difference": lambda table: difference(table, BATCH),
    "probe": lambda table: probe(table.with_segments(BATCH), BATCH, KEYS, [1, 2]),
    "compare": lambda table: compare_inserts(table.with_segments(BATCH), BATCH),
}


@pytest.mark.parametrize("pairing", list(PAIRING))
def test_a_large_batch_of_a_large_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pairing: str
) -> None:
    """250 segments with each of 1,050 and, of some, with each other: a segment is written out once, not for
    each of 262,500 pairs. A call is some numbers."""
    engine, written = Counting(mode="spark"), 0
    monkeypatch.setattr(comparison, "MAX_PARTS", 1)
    to_dict = SegmentRef.to_dict

    def counted(ref: SegmentRef) -> dict[str, Any]:
        nonlocal written
        written += 1
        return to_dict(ref)

    monkeypatch.setattr(SegmentRef, "to_dict", counted)
    with pytest.raises(StopIteration):
        PAIRING[pairing](large(tmp_path, engine))
    assert engine.n_calls >= 250 * 1_050
    assert written <= 2 * (250 + 1_050)
    assert engine.n_bytes < 5_000_000 + 100 * engine.n_calls
