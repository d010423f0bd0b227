"""Segments: what is encoded comes back, row ids last, a merge is the live rows encoded anew.

And collisions: with texts hashed to two bits, equalities and whole workspaces must still be exact.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.core.rows import codes, relation, tasks
from holdfast.core.rows.deletes import write_deletes
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import (
    CodeCollisionError,
    Segment,
    encode_rows,
    merge_segments,
    open_segment,
    write_index,
    write_segment,
)
from holdfast.core.rows.table_state import SegmentRef, agreeing_pairs, values_at_most
from holdfast.core.store.arrow_types import arrow_schema, type_of
from holdfast.core.store.files import FileRef
from holdfast.core.store.format import create_marker, text_key
from holdfast.core.words.schema import Column, Nulls, Schema
from reference import encode as reference
from reference import keys as oracle
from reference.keys import Row, canonical_row
from strategies import TYPES, Filled, Shape, filled, shapes

FOLDER = "tables/t"


@contextmanager
def two_bit_hashes() -> Iterator[None]:
    """Almost all texts share a code."""
    honest = codes.hash_texts
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codes, "hash_texts", lambda texts, key: honest(texts, key) & 3)
        yield


def schema_of(table: pa.Table) -> Schema:
    return Schema(tuple(Column(f.name, type_of(f.type, table="t", column=f.name)) for f in table.schema))


def typed(shape: Shape, rows: Sequence[Row]) -> tuple[pa.Table, Schema]:
    """Rows in the canonical types of their columns, as sources hand them over."""
    table = shape.table(rows)
    schema = schema_of(table)
    return table.cast(arrow_schema(schema)), schema


def plain(table: pa.Table) -> list[Row]:
    return [canonical_row(tuple(row.values())) for row in table.to_pylist()]


class Store:
    """Segments in a folder of their own."""

    def __init__(self, root: Path, shape: Shape) -> None:
        create_marker(root)
        self.root, self.shape, self.number = root, shape, 0
        self.schema = typed(shape, [])[1]
        self.locator = list(range(shape.n_columns))

    def add(self, rows: Sequence[Row]) -> list[Segment]:
        found = []
        for columns in encode_rows(typed(self.shape, rows)[0], self.schema, text_key(self.root)):
            ref = write_segment(self.root, FOLDER, self.number, columns, self.locator)
            found.append(open_segment(self.root, ref, self.schema))
            self.number += 1
        return found

    def without(self, segment: Segment, positions: Sequence[int]) -> Segment:
        ref = write_deletes(self.root, FOLDER, segment.ref, positions)
        return open_segment(self.root, ref, self.schema)

    def merged(self, segments: Sequence[Segment]) -> Segment:
        ref = merge_segments(self.root, FOLDER, self.number, segments, self.locator)
        self.number += 1
        return open_segment(self.root, ref, self.schema)


@contextmanager
def store(shape: Shape) -> Iterator[Store]:
    with tempfile.TemporaryDirectory(prefix="holdfast-segments-") as folder:
        yield Store(Path(folder), shape)


def live_rows(segment: Segment) -> dict[int, Row]:
    """Row id -> row."""
    positions = np.flatnonzero(segment.live)
    return dict(zip(segment.row_ids(positions).tolist(), plain(segment.rows(positions)), strict=True))


def drawn_deletes(data: st.DataObject, segment: Segment) -> list[int]:
    return sorted(data.draw(st.sets(st.integers(0, segment.ref.n_rows - 1))))


@pytest.mark.parametrize("name", TYPES)
@given(data=st.data())
@settings(max_examples=20)
def test_values_come_back(name: str, data: st.DataObject) -> None:
    case = data.draw(filled(min_columns=1, max_columns=1, types=(name,)))
    if not case.rows:
        return
    with store(case.shape) as s:
        [segment] = s.add(case.rows)
        everything = np.arange(len(case.rows))
        assert plain(segment.rows(everything)) == plain(typed(case.shape, case.rows)[0])
        some = data.draw(st.lists(st.integers(0, len(case.rows) - 1)))
        assert plain(segment.rows(np.array(some, dtype=np.int64))) == [
            plain(typed(case.shape, case.rows)[0])[i] for i in some
        ]


@given(filled(), st.data())
def test_invariants_of_a_segment(case: Filled, data: st.DataObject) -> None:
    if not case.rows:
        return
    with store(case.shape) as s:
        [segment] = s.add(case.rows)
        assert (key := text_key(s.root)) is not None
        n_rows = len(case.rows)
        for c in range(case.shape.n_columns):
            dictionary = segment.dictionary(c)
            assert (np.diff(dictionary.astype(object)) > 0).all(), "sorted, all different"
            assert segment.ref.distinct[c] == len(dictionary)
            used = set(segment.codes[c].tolist()) - {0}
            assert used == set(range(1, len(dictionary) + 1)), "every entry is some row's"
            counts = Counter(segment.codes[c].tolist())
            assert segment.ref.nulls[c] == counts.pop(0, 0)
            assert segment.ref.equal_pairs[c] == sum(n * (n - 1) // 2 for n in counts.values())
        assert (np.diff(segment.row_hashes.astype(object)) >= 0).all()
        assert sorted(segment.row_order.tolist()) == list(range(n_rows))
        for h, position in zip(segment.row_hashes.tolist(), segment.row_order.tolist(), strict=True):
            local = [int(segment.codes[c][position]) for c in range(case.shape.n_columns)]
            values = [int(segment.dictionary(c)[v - 1]) if v else None for c, v in enumerate(local)]
            assert h == reference.row_hash(values, key[0])
        ids = segment.row_ids(np.arange(n_rows))
        assert ids.tolist() == list(range(n_rows)), "number << 32 | position"
        assert segment.positions(np.array([0, n_rows, -1, 1 << 32])).tolist() == [0, -1, -1, -1]
        column = data.draw(st.integers(0, case.shape.n_columns - 1))
        indexed = open_segment(s.root, write_index(s.root, FOLDER, segment, [column]), s.schema)
        offsets, positions = indexed.index(column)
        told = offsets.tolist(), positions.tolist()
        assert told == reference.postings(segment.codes[column].tolist(), len(segment.dictionary(column)))


@given(shapes(), st.data())
def test_merge_is_the_live_rows_encoded_anew(shape: Shape, data: st.DataObject) -> None:
    """Same rows under the same ids, ascending; values that only deleted rows had are gone."""
    with store(shape) as s:
        segments = []
        for _ in range(data.draw(st.integers(1, 3))):
            for segment in s.add(data.draw(shape.rows(min_size=1, max_size=6))):
                segments.append(s.without(segment, drawn_deletes(data, segment)))
        if data.draw(st.booleans()) and len(segments) > 1 and segments[-1].live.any():
            segments = [s.merged(segments[1:]), segments[0]]  # merged ones are merged again, in any order
            segments[0] = s.without(segments[0], drawn_deletes(data, segments[0]))
        expected = {i: row for segment in segments for i, row in live_rows(segment).items()}
        if not expected:
            return
        merged = s.merged(segments)
        assert live_rows(merged) == expected
        ids = merged.row_ids(np.arange(merged.ref.n_rows))
        assert ids.tolist() == sorted(expected)
        asked = np.array([*expected, 77 << 32], dtype=np.int64)
        back = merged.positions(asked)
        assert back[-1] == -1
        assert merged.row_ids(back[:-1]).tolist() == asked[:-1].tolist()
        rows = merged.rows(np.arange(merged.ref.n_rows))
        [anew] = [Segment(s.root, r, s.schema) for r in [_written(s, rows)]]
        for c in range(shape.n_columns):
            assert merged.dictionary(c).tolist() == anew.dictionary(c).tolist()
            assert merged.codes[c].tolist() == anew.codes[c].tolist()
            texts, fresh = merged.texts(c), anew.texts(c)
            assert (texts is None) == (fresh is None)
            assert texts is None or texts.to_pylist() == fresh.to_pylist()
        assert merged.row_hashes.tolist() == anew.row_hashes.tolist()
        assert merged.ref.distinct == anew.ref.distinct
        assert (merged.ref.equal_pairs, merged.ref.nulls) == (anew.ref.equal_pairs, anew.ref.nulls)


@pytest.mark.parametrize("nulls", ["equal", "distinct"])
def test_columns_are_ranked_by_the_pairs_that_agree(tmp_path: Path, nulls: Nulls) -> None:
    """Many values do not help where half of the rows are NULL; what was not counted is estimated."""
    rows = {"few": [1, 1, 2, 2, 3, 3], "sparse": [None, None, None, 1, 2, 3], "same": [7] * 6}
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", pa.table({name: pa.array(v, pa.int64()) for name, v in rows.items()}), nulls=nulls)
        state = ws.writer.tables.state("t")
    segments = state.segments
    by_nulls = {"equal": [3, 3, 15], "distinct": [3, 0, 15]}
    assert agreeing_pairs(segments, 3, nulls_distinct=nulls == "distinct") == by_nulls[nulls]
    older = [replace(s, equal_pairs=(), nulls=()) for s in segments]
    assert agreeing_pairs(older, 3, nulls_distinct=True) == [5, 5, 15]


CELLS = st.lists(st.tuples(st.none() | st.integers(0, 1), st.none(), st.integers(0, 1)), max_size=6)


@given(st.lists(st.tuples(CELLS, st.data()), max_size=3))
def test_who_has_a_value_is_known_as_far_as_deletes_allow(batches: list[tuple[Any, st.DataObject]]) -> None:
    """All of them, some without, or nobody knows: never the one where it is the other."""
    segments, live = [], []
    for number, (rows, data) in enumerate(batches):
        gone = data.draw(st.sets(st.sampled_from(range(len(rows))))) if rows else set()
        nulls = tuple(sum(row[c] is None for row in rows) for c in range(3))
        file = FileRef("s", 0, "")
        segments.append(SegmentRef(number, len(rows), file, (0, 0, 0), n_deleted=len(gone), nulls=nulls))
        live += [row for i, row in enumerate(rows) if i not in gone]
    for c, at_most in enumerate(values_at_most(segments, 3)):
        n_values = sum(row[c] is not None for row in live)
        if not any(s.n_deleted for s in segments):
            assert at_most == n_values
        assert at_most is None or n_values <= at_most <= len(live)
        assert at_most != len(live) or n_values == len(live)
    older = [replace(s, nulls=()) for s in segments]
    assert values_at_most(older, 3) == ([None] * 3 if older else [0] * 3)


def _written(s: Store, rows: pa.Table):  # type: ignore[no-untyped-def]
    [columns] = encode_rows(rows, s.schema, text_key(s.root))
    return write_segment(s.root, FOLDER, 99, columns, s.locator)


def check_translated(mine: Segment, theirs: Segment, nulls_distinct: bool) -> None:
    """Local codes of `mine` for the rows of `theirs`: exactly where the values are equal."""
    n_columns = len(mine.schema)
    found = mine.translated(theirs, range(n_columns), nulls_distinct)
    left = plain(mine.rows(np.arange(mine.ref.n_rows)))
    right = plain(theirs.rows(np.arange(theirs.ref.n_rows)))
    rule = "distinct" if nulls_distinct else "equal"
    for c in range(n_columns):
        for b, row in enumerate(right):
            code = int(found[c, b])
            for a, other in enumerate(left):
                equal = oracle.same(other[c], row[c], rule)
                assert (int(mine.codes[c][a]) == code) == equal


@given(shapes(), st.booleans(), st.data())
def test_translated(shape: Shape, nulls_distinct: bool, data: st.DataObject) -> None:
    with store(shape) as s:
        [mine] = s.add(data.draw(shape.rows(min_size=1, max_size=6)))
        [theirs] = s.add(data.draw(shape.rows(min_size=1, max_size=6)))
        check_translated(mine, theirs, nulls_distinct)
        check_translated(mine, mine, nulls_distinct)


HASHED = ("text", "binary", "wide decimal")


@given(shapes(types=HASHED, pool_size=6), st.booleans(), st.data())
def test_collisions_never_look_like_equalities(
    shape: Shape, nulls_distinct: bool, data: st.DataObject
) -> None:
    rows = [data.draw(shape.rows(min_size=1, max_size=8)) for _ in range(2)]
    with two_bit_hashes(), store(shape) as s:
        segments = [segment for part in rows for segment in s.add(part)]
        event(f"{len(segments)} segments for 2 batches")
        found = Counter(row for segment in segments for row in live_rows(segment).values())
        assert found == Counter(row for part in rows for row in plain(typed(shape, part)[0]))
        for segment in segments:  # within a segment two values never share a code
            for c in range(shape.n_columns):
                texts = segment.texts(c)
                assert len(set(texts.to_pylist())) == len(texts) == len(segment.dictionary(c))
        for mine in segments:
            for theirs in segments:
                check_translated(mine, theirs, nulls_distinct)
        try:
            merged = s.merged(segments)
        except CodeCollisionError:
            event("merge refused")
        else:
            assert Counter(live_rows(merged).values()) == found


def test_merged_segments_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one task writes does not grow with the table; merging again finds nothing to do."""
    monkeypatch.setattr(relation, "MERGED_ROWS", 100)
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", pa.table({"a": range(60)}))
        for start, n in ((60, 60), (120, 30), (150, 10), (160, 90), (250, 20)):
            ws.apply("t", inserts=pa.table({"a": range(start, start + n)}))
        ws.apply("t", deletes=pa.table({"a": range(5)}))
        version = ws.merge("t")
        sizes = [s.n_rows for s in ws.writer.tables.state("t").segments]
        assert sizes == [55, 100, 90, 20]
        assert ws.merge("t") == version
        rows = ws.writer.tables.rows(ws.writer.tables.state("t"))
        opened = [open_segment(rows.root, ref, rows.schema) for ref in rows.segments]
        values = [v for s in opened for v in s.rows(np.arange(s.ref.n_rows))["a"].to_pylist()]
        assert sorted(values) == list(range(5, 270))


@pytest.mark.parametrize("largest", [30, 1_000])
def test_merges_leave_a_table_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, largest: int) -> None:
    """One task never writes more than its share of the table, and segments never become many."""
    monkeypatch.setattr(relation, "MERGED_FEW", 1)
    monkeypatch.setattr(relation, "SMALLEST_TIER", 1)
    monkeypatch.setattr(relation, "MERGED_ROWS" if largest > 30 else "MERGED_CELLS", largest)
    merged: list[int] = []
    merge = tasks.merge_run

    def noted(payload: Mapping[str, Any]) -> bytes:
        merged.append(sum(s["n_rows"] - s["n_deleted"] for s in payload["segments"]))
        return merge(payload)

    noted.__qualname__ = merge.__qualname__
    noted.__module__ = merge.__module__
    monkeypatch.setattr(tasks, "merge_run", noted)
    with holdfast.open(tmp_path / "w", engine="inline") as ws:

        def sizes() -> list[int]:
            return [s.n_live for s in ws.writer.tables.state("t").segments]

        with monkeypatch.context() as patch:
            patch.setattr(relation, "MERGE_FANOUT", 99)
            ws.track("t", pa.table({"a": range(10)}))
            for i in range(1, 32):
                ws.apply("t", inserts=pa.table({"a": range(10 * i, 10 * i + 10)}))
        assert sizes() == [10] * 32
        ws.apply("t", inserts=pa.table({"a": [-1]}))
        share = min(largest, 321 // relation.MERGED_SHARE)
        whole = share // 10  # the last ones have room for others
        n_left = 32 % whole or whole
        assert sorted(sizes()) == sorted([10 * whole] * ((32 - n_left) // whole) + [10] * n_left + [1])
        end = 320
        for n in np.random.default_rng(7).integers(1, 12, 150).tolist():
            ws.apply("t", inserts=pa.table({"a": range(end, end + n)}))
            end += n
            assert max(merged) <= min(largest, (end + 1) // relation.MERGED_SHARE)
            assert len(sizes()) <= 2 * (end // share) + relation.MERGE_FANOUT
        assert sum(sizes()) == end + 1
        # Segments of which most is gone are written again side by side.
        runs: list[int] = []
        run = Relation.run
        monkeypatch.setattr(
            Relation, "run", lambda r, t, p, *a, **k: runs.append(t is noted) or run(r, t, p, *a, **k)
        )
        ws.apply("t", deletes=pa.table({"a": [i for i in range(320) if i % 10]}))
        assert sum(runs) <= 3
        assert sum(sizes()) == end + 1 - 288


def reads_ahead(path: Path) -> bool:
    """Whether the system reads ahead where this process has mapped a file."""
    maps = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", Path("/proc/self/smaps").read_text(), flags=re.MULTILINE)
    [of_file] = [text for text in maps if str(path) in text.partition("\n")[0]]
    flags = re.search(r"^VmFlags:(.*)$", of_file, flags=re.MULTILINE)
    assert flags is not None
    return "rr" not in flags[1].split()


@pytest.mark.skipif(sys.platform != "linux", reason="the advice on a map is read in /proc")
def test_a_row_that_is_looked_up_reads_its_pages_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected: list[int] = []
    expect = Segment.expect

    def noted(segment: Segment, n: int) -> None:
        expected.append(n)
        expect(segment, n)

    monkeypatch.setattr(Segment, "expect", noted)
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", pa.table({"a": range(50), "b": [i % 7 for i in range(50)]}))
        for n in (1, 20):
            expected.clear()
            ws.check("t", inserts=pa.table({"a": range(40, 40 + n), "b": [1] * n}))
            assert expected[-1] == n
        state = ws.writer.tables.state("t")
    shutil.copytree(tmp_path / "w", tmp_path / "copy")  # of a file of which there is one map
    segment = open_segment(tmp_path / "copy", state.segments[0], state.schema)
    assert segment.codes.shape == (2, 50)
    path = tmp_path / "copy" / segment.ref.file.name
    for n, ahead in ((50, True), (1, False), (20, True), (0, False)):
        segment.expect(n)
        assert reads_ahead(path) == ahead


@given(filled(types=(*HASHED, "int"), pool_size=6, max_columns=4, max_rows=12), st.data())
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_workspaces_are_exact_under_collisions(case: Filled, data: st.DataObject) -> None:
    """Discovery, probes, validation and merging; the state machine goes further (machines/)."""
    nulls = data.draw(st.sampled_from(["equal", "distinct"]))
    rows, shape = list(case.rows), case.shape
    with two_bit_hashes(), tempfile.TemporaryDirectory() as folder:
        ws = holdfast.open(folder + "/w", engine="inline")
        ws.track("t", case.table, nulls=nulls)
        event(f"{len(ws.writer.tables.state('t').segments)} segments")
        for step in range(3):
            if step:
                new = data.draw(shape.rows(max_size=5))
                gone = data.draw(st.integers(0, len(rows)))
                ws.apply("t", deletes=shape.table(rows[:gone]), inserts=shape.table(new))
                rows = [*rows[gone:], *new]
            if step == 2:
                ws.merge("t")
            keys = {d.columns for d in ws.dependencies(table="t")}
            names = shape.names
            assert keys == {
                tuple(names[c] for c in sorted(k))
                for k in oracle.minimal_uniques(rows, shape.n_columns, nulls)
            }
            assert set(ws.keys.non_uniques("t")) == {
                tuple(names[c] for c in sorted(k))
                for k in oracle.maximal_non_uniques(rows, shape.n_columns, nulls)
            }
        ws.close()
