"""The calls of a job: what comes out is what went in, by way of JSON; and what is shared is written once."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from holdfast.core.engine.calls import STAGED_BYTES, Calls, calls_of
from holdfast.core.engine.engine import Engine, echo
from holdfast.core.evidence import comparison, shuffled
from holdfast.core.evidence.agree_probe import probe
from holdfast.core.evidence.comparison import compare_inserts
from holdfast.core.evidence.refute import validate
from holdfast.core.rows.differing import difference
from holdfast.core.rows.kernels.masks import mask_of
from holdfast.core.rows.kernels.order_index import LT, NE
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.row_sample import sample_rows
from holdfast.core.rows.table_state import SegmentRef
from holdfast.core.store.bucket import Bucket
from holdfast.core.store.files import FileRef
from holdfast.core.words.schema import Column, Schema, Type
from holdfast.denial.pair_rule import Rule
from holdfast.denial.violations import verify
from holdfast.inclusions.generator import GeneratorState, RunRef, ValueTable
from holdfast.inclusions.missing import orphans
from holdfast.inclusions.tuples import Look, TableRows, missing_tuples, refuting_rows
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
        self.calls = Calls.of(calls)
        self.n_calls, self.n_bytes = len(self.calls), self.calls.n_bytes
        raise StopIteration

    def exchange(self, *steps: Any, relays: Any = (), **_: Any) -> Any:
        produce, payloads, consume, consumers, _progress = steps
        listed = [
            Calls.of([(f.__name__, payload) for payload in some])
            for f, some in ((produce, payloads), *relays, (consume, consumers))
        ]
        self.n_calls, self.n_bytes = sum(map(len, listed)), sum(calls.n_bytes for calls in listed)
        raise StopIteration

    def check_root(self) -> None:
        pass

    @property
    def cores(self) -> int:
        return 400


N_COLUMNS, N_ROWS = 50, 952_382


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


def large(root: Path, engine: Engine, n_segments: int = 1_050) -> Relation:
    schema = Schema(tuple(Column(f"column_{c:02d}", Type.parse("int")) for c in range(N_COLUMNS)))
    segments = references(0, n_segments)
    return Relation(root, "tables/big", "staging/x", schema, "equal", (), segments, engine)


def test_a_round_over_a_billion_rows(tmp_path: Path) -> None:
    """The real builder, on references of a table that there is not: 1,050 segments of 50 columns."""
    engine = Counting(mode="spark")
    candidates = np.stack([mask_of([c, (c + 1) % N_COLUMNS], 1) for c in range(36)])
    with pytest.raises(StopIteration):
        validate(large(tmp_path, engine), candidates)
    assert engine.n_calls > 10_000
    assert engine.n_bytes < 5_000_000


def test_the_same_round_by_shuffle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counting, "shuffles", True)
    monkeypatch.setattr(shuffled, "text_key", lambda root: (1, 2))
    engine = Counting(mode="spark")
    candidates = np.stack([mask_of([c, (c + 1) % N_COLUMNS], 1) for c in range(36)])
    with pytest.raises(StopIteration):
        validate(large(tmp_path, engine), candidates)
    assert engine.n_calls > 2 * 10_000
    assert engine.n_bytes < 10_000_000


def test_a_sample_of_a_billion_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Relation, "are_far", lambda self, segments: True)
    engine = Counting(mode="spark")
    relation = large(tmp_path, engine)
    assert relation.n_rows > 1_000_000_000
    with pytest.raises(StopIteration):
        sample_rows(relation, 2_000)
    assert sum(engine.calls[i][1]["n_rows"] for i in range(engine.n_calls)) == 2_000
    assert engine.n_bytes < 5_000_000


MANY = 300
BATCH = references(MANY, 40)
KEYS = np.stack([mask_of([c, c + 1], 1) for c in range(3)])
LOOKS = [Look("t", "u", columns, (0, 1), everything=True) for columns in combinations(range(N_COLUMNS), 2)]
LACKS = Rule(((0, NE, 1), (2, LT, 3)))


def included(table: Relation, *, deleted: bool = False) -> dict[str, TableRows]:
    """Two tables, of the second of which a batch may have deleted some rows of segments."""
    gone = tuple((ref, np.arange(3)) for ref in BATCH) if deleted else ()
    return {name: TableRows(table, (), gone if name == "u" else (), None, False) for name in ("t", "u")}


def lost(table: Relation) -> object:
    """All inclusions, after deletes in a hundred segments."""
    looks = [replace(look, everything=False) for look in LOOKS]
    return refuting_rows(included(table, deleted=True), looks)


def missing_values(table: Relation) -> object:
    files = tuple(ref.file for ref in references(0, MANY))
    columns = table.schema.names
    of_table = ValueTable("t", 0, columns)
    state = GeneratorState((of_table,), len(columns), (RunRef(10**9, 10, files, append_only=False),))
    return orphans(state, table, of_table, columns[0], 1, None)


# Of each how many calls there are at least, and how many times a segment or a run is written.
PAIRING: dict[str, tuple[int, int, Callable[[Relation], object]]] = {
    "locate": (12_000, 1, lambda table: table.locate(BATCH, range(N_COLUMNS))),
    "difference": (12_000, 1, lambda table: difference(table, BATCH)),
    "probe": (12_000, 1, lambda table: probe(table.with_segments(BATCH), BATCH, KEYS, [1, 2])),
    "compare": (12_000, 1, lambda table: compare_inserts(table.with_segments(BATCH), BATCH)),
    "inclusions": (6_000, 2, lambda table: refuting_rows(included(table), LOOKS)),
    "inclusions that lost rows": (800, 2, lost),
    "missing tuples": (
        300,
        2,
        lambda table: missing_tuples(*included(table).values(), LOOKS[0], None),
    ),
    "missing values": (300, 1, missing_values),
    "rules": (5_600, 1, lambda table: verify(table, [LACKS])),
    "rules that sample": (5_600, 1, lambda table: verify(table, [LACKS], 1_000)),
}


@pytest.mark.parametrize("pairing", list(PAIRING))
def test_a_large_batch_of_a_large_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pairing: str
) -> None:
    """40 segments with each of 300 and, of some, with each other; or these with all of a table: a segment
    is written out once, not for each of 12,000 pairs. A call is some numbers."""
    engine, written = Counting(mode="spark"), 0
    monkeypatch.setattr(comparison, "MAX_PARTS", 1)
    monkeypatch.setattr(Relation, "stage", lambda self, what, **arrays: {"name": f"staging/{what}"})
    n_calls, times, build = PAIRING[pairing]

    def counted(kind: type[SegmentRef | RunRef]) -> None:
        to_dict: Callable[[Any], dict[str, Any]] = kind.to_dict

        def counting(ref: Any) -> dict[str, Any]:
            nonlocal written
            written += 1
            return to_dict(ref)

        monkeypatch.setattr(kind, "to_dict", counting)

    counted(SegmentRef)
    counted(RunRef)
    with pytest.raises(StopIteration):
        build(large(tmp_path, engine, MANY))
    assert engine.n_calls >= n_calls
    assert written <= 2 * times * (len(BATCH) + MANY)
    assert engine.n_bytes < times * 2_000_000 + 100 * engine.n_calls
