"""Runs, clusters and pair counts on disk: what is written comes back, as narrow as it fits, in any parts."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.store.bundle import open_bundle, write_bundle
from holdfast.core.store.files import FileRef, check_file
from holdfast.core.store.litter import named_files
from holdfast.core.words.dependency import Side
from holdfast.errors import DamagedFileError
from holdfast.inclusions import value_tasks
from holdfast.inclusions.generator import (
    FOLDER,
    GeneratorState,
    PinnedInd,
    RunRef,
    SumRef,
    ValueTable,
    read_pairs,
)
from holdfast.inclusions.kernels.clusters import Clusters, no_clusters
from holdfast.inclusions.kernels.sorted_runs import Entries, no_entries
from holdfast.inclusions.runs import (
    entries_in_range,
    in_range,
    key_range,
    open_part,
    read_clusters,
    write_clusters,
    write_part,
)
from reference import clusters as cluster_reference
from reference import runs as reference
from reference.runs import Entry

LAST = 2**64 - 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


def entries_of(listed: Sequence[Entry]) -> Entries:
    columns = list(zip(*listed, strict=True)) or [(), (), (), ()]
    types = (np.uint64, np.uint32, np.uint32, np.int64)
    return Entries(*(np.array(c, dtype=t) for c, t in zip(columns, types, strict=True)))


def listed(entries: Entries) -> list[Entry]:
    assert [a.dtype for a in entries.arrays()] == [np.uint64, np.uint32, np.uint32, np.int64]
    return list(zip(*(a.tolist() for a in entries.arrays()), strict=True))


def stored(root: Path, ref: FileRef) -> dict[str, str]:
    """The types of the arrays as they are in the file."""
    bundle = open_bundle(root, ref, "run")
    names = ("directory", "keys", "checks", "columns", "counts")
    return {name: bundle.array(name).dtype.name for name in names if name in bundle}


KEYS = st.sampled_from([0, 1, 2**63, LAST - 1, LAST]) | st.integers(0, LAST)
COLUMNS = st.integers(0, 3) | st.sampled_from([2**16 - 1, 2**16, 2**32 - 1])
COUNTS = st.sampled_from([1, 1, 1, -1, 2, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**50])
RUNS = st.lists(st.tuples(KEYS, st.sampled_from([0, 1, 2**32 - 1]), COLUMNS, COUNTS), max_size=40).map(
    reference.consolidated
)


def written(root: Path, run: Sequence[Entry], bits: int, *, append_only: bool = False) -> RunRef:
    """A run of parts, each with its range of keys."""
    parts = []
    for i in range(1 << bits):
        first, last = key_range(bits, i)
        own = entries_of([e for e in run if first <= e[0] <= last])
        parts.append(write_part(root, FOLDER, own, bits, i))
    return RunRef(len(run), bits, tuple(parts), append_only)


# -- one part ----------------------------------------------------------------------------------------------


@given(RUNS)
def test_a_part_comes_back(folder: Path, run: list[Entry]) -> None:
    ref = write_part(folder, FOLDER, entries_of(run))
    if not run:
        assert ref is None
        return
    part = open_part(folder, ref)
    assert len(part) == len(run)
    assert listed(part.between(0, len(run))) == run
    assert listed(part.between(len(run) // 2, len(run))) == run[len(run) // 2 :]
    assert listed(part.between(0, 0)) == []
    at = np.arange(len(run))[::-1]
    assert part.columns(at).tolist() == [e[2] for e in reversed(run)]
    assert part.counts(at).tolist() == [e[3] for e in reversed(run)]
    assert (part.columns(at).dtype, part.counts(at).dtype) == (np.uint32, np.int64)
    wanted = sorted({e[:2] for e in run} | {(0, 5), (LAST, 5)})
    keys, checks = np.array([w[0] for w in wanted], np.uint64), np.array([w[1] for w in wanted], np.uint32)
    starts, ends, _ = part.find(keys, checks)
    assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == reference.places(run, wanted)


@pytest.mark.parametrize(
    ("column", "stored_as"), [(0, "uint16"), (2**16 - 1, "uint16"), (2**16, "uint32"), (2**32 - 1, "uint32")]
)
def test_columns_are_as_narrow_as_they_can(tmp_path: Path, column: int, stored_as: str) -> None:
    ref = write_part(tmp_path, FOLDER, entries_of([(5, 0, 0, 1), (5, 0, column, 1)][-1:]))
    assert ref is not None
    assert stored(tmp_path, ref)["columns"] == stored_as
    assert listed(open_part(tmp_path, ref).between(0, 1)) == [(5, 0, column, 1)]


@pytest.mark.parametrize(
    ("counts", "stored_as"),
    [
        ([1, 1], None),
        ([1, 2], "int32"),
        ([-1, 1], "int32"),
        ([2**31 - 1, 1], "int32"),
        ([-(2**31) + 1, 1], "int32"),
        ([2**31, 1], "int64"),
        ([-(2**31), 1], "int64"),
        ([2**62, -(2**62)], "int64"),
    ],
)
def test_counts_are_left_out_or_as_narrow_as_they_can(
    tmp_path: Path, counts: list[int], stored_as: str | None
) -> None:
    run = [(i, 0, 0, n) for i, n in enumerate(counts)]
    ref = write_part(tmp_path, FOLDER, entries_of(run))
    assert ref is not None
    assert stored(tmp_path, ref).get("counts") == stored_as
    part = open_part(tmp_path, ref)
    assert listed(part.between(0, 2)) == run
    assert part.counts(np.array([1, 0])).tolist() == counts[::-1]


def test_nothing_is_not_written(tmp_path: Path) -> None:
    assert write_part(tmp_path, FOLDER, no_entries()) is None
    assert not list(tmp_path.iterdir())


def test_a_part_is_opened_once(tmp_path: Path) -> None:
    ref = write_part(tmp_path, FOLDER, entries_of([(1, 0, 0, 1)]))
    assert ref is not None
    assert open_part(tmp_path, ref) is open_part(tmp_path, ref)


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    ref = write_part(tmp_path, FOLDER, entries_of([(1, 0, 0, 1)]))
    assert ref is not None
    other = write_clusters(tmp_path, FOLDER, no_clusters()).file
    with pytest.raises(DamagedFileError, match=rf"{other.name}.* should be a run, but is a clusters"):
        open_part(tmp_path, other)
    os.truncate(tmp_path / ref.name, 100)
    with pytest.raises(DamagedFileError, match=ref.name):
        open_part(tmp_path, ref)


# -- several parts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [0, 1, 3, 8])
def test_ranges_of_parts_divide_all_keys(bits: int) -> None:
    ranges = [key_range(bits, i) for i in range(1 << bits)]
    assert ranges[0][0] == 0
    assert ranges[-1][1] == LAST
    assert all(before[1] + 1 == after[0] for before, after in itertools.pairwise(ranges))
    assert {last - first for first, last in ranges} == {(1 << (64 - bits)) - 1}


@given(RUNS, st.integers(0, 5), KEYS, KEYS)
def test_a_range_of_a_run(folder: Path, run: list[Entry], bits: int, one: int, other: int) -> None:
    """Whatever the run's parts are: the entries of a range, in order, each once."""
    first, last = sorted((one, other))
    ref = written(folder, run, bits)
    assert listed(entries_in_range(folder, ref, 0, LAST)) == run
    assert listed(entries_in_range(folder, ref, first, last)) == [e for e in run if first <= e[0] <= last]
    assert listed(entries_in_range(folder, ref, first, first)) == [e for e in run if e[0] == first]
    for part, start, end in in_range(folder, ref, first, last):
        assert 0 <= start < end <= len(part)


@given(RUNS, st.integers(0, 4), st.integers(0, 4))
def test_parts_of_one_run_read_by_parts_of_another(
    folder: Path, run: list[Entry], bits: int, other_bits: int
) -> None:
    """So a merge reads runs of any number of parts: all ranges together are the run."""
    ref = written(folder, run, bits)
    ranges = [key_range(other_bits, i) for i in range(1 << other_bits)]
    parts = [listed(entries_in_range(folder, ref, first, last)) for first, last in ranges]
    assert [e for part in parts for e in part] == run
    for (first, last), part in zip(ranges, parts, strict=True):
        assert all(first <= e[0] <= last for e in part)


def test_only_the_parts_of_a_range_are_opened(tmp_path: Path) -> None:
    run = [(i << 60, 0, 0, 1) for i in range(16)]
    ref = written(tmp_path, run, 4)
    for file in ref.files()[:4] + ref.files()[8:]:
        (tmp_path / file.name).unlink()
    assert listed(entries_in_range(tmp_path, ref, 4 << 60, (8 << 60) - 1)) == run[4:8]
    with pytest.raises(DamagedFileError, match=r"values/run-.*is missing"):
        entries_in_range(tmp_path, ref, 4 << 60, 8 << 60)


def test_a_file_is_read_again_wherever_a_range_of_it_is_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks of other ranges may read another copy; those of one process read it again once for a job."""
    run = [(i << 60, 0, 0, 1) for i in range(16)]
    refs = [written(tmp_path, run, bits) for bits in (0, 2)]
    checked: list[str] = []

    def check(root: Path, ref: FileRef, **how: bool) -> Path:
        assert how == {"deep": True, "fresh": True}
        checked.append(ref.name)
        return check_file(root, ref, **how)

    monkeypatch.setattr(value_tasks, "check_file", check)
    live, counted = np.ones(1, np.bool_), np.zeros(1, np.bool_)

    def merged(part: int, job: str) -> list[Entry]:
        first, last = key_range(3, part)
        return listed(value_tasks.merged_range(tmp_path, refs, live, counted, first, last, job))

    assert merged(6, "one") == [(key << 60, 0, 0, 2) for key in (12, 13)]
    assert merged(7, "one") == [(key << 60, 0, 0, 2) for key in (14, 15)]
    whole, last = refs[0].files()[0], refs[1].files()[3]
    assert checked == [whole.name, last.name]
    content = (tmp_path / whole.name).read_bytes()
    (tmp_path / whole.name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(DamagedFileError, match="has been altered"):
        merged(6, "another")


def test_empty_parts_have_no_file(tmp_path: Path) -> None:
    ref = written(tmp_path, [(1, 0, 0, 1), (LAST, 0, 0, 1)], 3)
    assert [part is None for part in ref.parts] == [False, *[True] * 6, False]
    assert len(ref.files()) == 2 == len(list((tmp_path / FOLDER).iterdir()))
    assert listed(entries_in_range(tmp_path, ref, 2, LAST - 1)) == []


# -- clusters and pairs ------------------------------------------------------------------------------------


def clusters_of(clusters: Sequence[cluster_reference.Cluster]) -> Clusters:
    return Clusters(
        np.cumsum([0, *(len(columns) for columns, _, _ in clusters)]).astype(np.int64),
        np.array([c for columns, _, _ in clusters for c in columns], np.uint32),
        np.array([size for _, size, _ in clusters], np.int64),
        np.array([n for _, _, rows in clusters for n in rows], np.int64),
    )


def cluster_list(clusters: Clusters) -> list[cluster_reference.Cluster]:
    assert [a.dtype for a in clusters] == [np.int64, np.uint32, np.int64, np.int64]
    bounds = itertools.pairwise(clusters.offsets.tolist())
    return [
        (tuple(clusters.columns[a:b].tolist()), size, tuple(clusters.rows[a:b].tolist()))
        for (a, b), size in zip(bounds, clusters.sizes.tolist(), strict=True)
    ]


SETS = st.frozensets(st.sampled_from([0, 1, 2, 2**16, 2**32 - 1]), min_size=1, max_size=3)


@st.composite
def tallied(draw: st.DrawFn) -> list[cluster_reference.Cluster]:
    found = []
    for columns in draw(st.lists(SETS, max_size=6)):
        rows = draw(st.lists(st.integers(-2, 2), min_size=len(columns), max_size=len(columns)))
        found.append((tuple(sorted(columns)), draw(st.integers(-2, 2)), tuple(rows)))
    return cluster_reference.tallied(found)


@given(st.lists(tallied(), max_size=4))
def test_clusters_come_back_summed(folder: Path, parts: list[list[cluster_reference.Cluster]]) -> None:
    """A state names several files of signed counts: together they are the clusters."""
    refs = [write_clusters(folder, FOLDER, clusters_of(p)) for p in parts]
    assert [ref.n for ref in refs] == [len(p) for p in parts]
    expected = cluster_reference.tallied([c for p in parts for c in p])
    assert cluster_list(read_clusters(folder, refs)) == expected


def test_no_clusters_come_back_as_none(tmp_path: Path) -> None:
    assert cluster_list(read_clusters(tmp_path, [])) == []
    assert cluster_list(read_clusters(tmp_path, [write_clusters(tmp_path, FOLDER, no_clusters())])) == []


def test_damaged_clusters_are_named(tmp_path: Path) -> None:
    ref = write_clusters(tmp_path, FOLDER, clusters_of([((1, 2), 1, (1, 1))]))
    (tmp_path / ref.file.name).unlink()
    with pytest.raises(DamagedFileError, match=ref.file.name):
        read_clusters(tmp_path, [ref])


def test_pairs_come_back_one_by_one(tmp_path: Path) -> None:
    refs = []
    for i in range(3):
        arrays = {
            "pairs": np.array([i << 32, LAST], np.uint64),
            "values": np.array([i, -(2**62)], np.int64),
            "rows": np.array([2**62, -i], np.int64),
        }
        file = write_bundle(tmp_path, f"{FOLDER}/cover-{i:012x}.arrow", arrays, {"holdfast": "pairs"})
        refs.append(SumRef(file, 2))
    found = [{name: a.tolist() for name, a in part.items()} for part in read_pairs(tmp_path, refs)]
    assert found == [
        {"pairs": [i << 32, LAST], "values": [i, -(2**62)], "rows": [2**62, -i]} for i in range(3)
    ]
    (tmp_path / refs[1].file.name).unlink()
    with pytest.raises(DamagedFileError, match=refs[1].file.name):
        list(read_pairs(tmp_path, refs))


# -- the state ---------------------------------------------------------------------------------------------

NAMES = st.text(min_size=1, max_size=5)
FILES = st.builds(
    FileRef,
    NAMES.map(lambda n: f"values/run-{n}.arrow"),
    st.integers(0, 2**40),
    st.integers(0, LAST).map(lambda n: f"{n:016x}"),
)
SIDES = st.builds(Side, NAMES, st.lists(NAMES, min_size=1, max_size=2).map(tuple))
SUMS = st.builds(SumRef, FILES, st.integers(0, 2**40))


@st.composite
def runs_of_parts(draw: st.DrawFn) -> RunRef:
    bits = draw(st.integers(0, 3))
    parts = draw(st.lists(st.none() | FILES, min_size=1 << bits, max_size=1 << bits))
    return RunRef(draw(st.integers(0, 2**40)), bits, tuple(parts), draw(st.booleans()))


@st.composite
def states(draw: st.DrawFn) -> GeneratorState:
    tables, next_id = [], 0
    for name in draw(st.lists(NAMES, unique=True, max_size=3)):
        next_id += draw(st.integers(0, 3))  # ids of tables that were dropped
        columns = tuple(draw(st.lists(NAMES, unique=True, max_size=4)))
        tables.append(ValueTable(name, next_id, columns, draw(st.booleans()), draw(st.booleans())))
        next_id += len(columns)
    return GeneratorState(
        tables=tuple(tables),
        next_id=next_id + draw(st.integers(0, 2)),
        runs=tuple(draw(st.lists(runs_of_parts(), max_size=3))),
        n_dead=draw(st.integers(0, 9)),
        clusters=tuple(draw(st.lists(SUMS, max_size=3))),
        pairs=tuple(draw(st.lists(SUMS, max_size=3))),
        max_arity=draw(st.integers(1, 5)),
        composites=draw(st.none() | FILES),
        pins=tuple(draw(st.lists(st.builds(PinnedInd, SIDES, SIDES, st.booleans()), max_size=2))),
    )


@given(states())
def test_a_state_comes_back_from_json(state: GeneratorState) -> None:
    told: dict[str, Any] = json.loads(json.dumps(state.to_dict()))
    found = GeneratorState.from_dict(told)
    assert found == state
    assert found.to_dict() == told


@given(states())
def test_what_a_state_says_of_its_columns(state: GeneratorState) -> None:
    names = state.names()
    assert list(names.values()) == [(t.table, c) for t in state.tables for c in t.columns]
    assert [i for i, live in enumerate(state.live()) if live] == sorted(names)
    append_only = {t.table for t in state.tables if t.append_only}
    assert [i for i, a in enumerate(state.append_only()) if a] == [
        i for i, (table, _) in sorted(names.items()) if table in append_only
    ]
    for t in state.tables:
        assert state.table(t.table) == t
        assert [names[i] for i in t.ids] == [(t.table, c) for c in t.columns]
    assert state.table("no such table") is None


@given(states())
def test_a_state_names_all_its_files(state: GeneratorState) -> None:
    """As `verify` and tidying find them, in whatever the state says."""

    def names(value: Any) -> list[str]:
        if isinstance(value, dict):
            own = [value["name"]] if "checksum" in value else []
            return own + [n for v in value.values() for n in names(v)]
        return [n for v in value for n in names(v)] if isinstance(value, list) else []

    files = list(named_files(state.to_dict()))
    assert sorted(f.name for f in files) == sorted(names(state.to_dict()))
    covers = [*(s.file for s in state.pairs), *([state.composites] if state.composites else [])]
    assert {f.name for f in covers} <= {f.name for f in files}
