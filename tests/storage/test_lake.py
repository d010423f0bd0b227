"""Lakes on disk: what a commit says of one, its arrays, its Parquet files, and what can be relied on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.core.store.files import FileRef, check_file, new_file, unique_name
from holdfast.core.store.format import text_key
from holdfast.core.store.litter import named_files
from holdfast.errors import DamagedFileError
from holdfast.lakes import signing
from holdfast.lakes.state import (
    COLUMNS_SCHEMA,
    FILTERS,
    INDS_SCHEMA,
    INTEGER_COLUMN,
    NORMALISATIONS,
    NULL_COLUMN,
    TABLES_SCHEMA,
    UNIQUE_COLUMN,
    GraphRef,
    LakeOptions,
    LakeState,
    Part,
    PartRef,
    join_arrays,
    open_array,
    parquet_batches,
    read_parquet,
    write_array,
)
from lake_maker import make_lake
from lake_tables import chain, without_values, write_json_lines
from reference import lake as oracle
from reference.lake import Table
from reference.siphash import siphash


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut is no matter here."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


# -- states ------------------------------------------------------------------------------------------------


@given(
    st.builds(
        LakeOptions,
        filters=st.sets(st.sampled_from(FILTERS)).map(tuple),
        tau=st.floats(0, 1),
        null_values=st.lists(st.text(), unique=True).map(tuple),
        normalise=st.sets(st.sampled_from(NORMALISATIONS)).map(tuple),
        m=st.integers(1, 10_000),
        k=st.integers(1, 64),
        p=st.integers(1, 64),
        max_error=st.floats(0, 0.99),
        min_values=st.integers(1, 100),
    )
)
def test_options_come_back(options: LakeOptions) -> None:
    assert LakeOptions.from_dict(json.loads(json.dumps(options.to_dict()))) == options
    assert options.n_bits == options.m * options.p
    assert [name for i, name in enumerate(FILTERS) if options.filter_bits >> i & 1] == [
        name for name in FILTERS if name in options.filters
    ]


def test_states_come_back(tmp_path: Path) -> None:
    lakes = [
        LakeState(LakeOptions()),
        make_lake(tmp_path, chain(3).tables),
        make_lake(tmp_path, chain(3).tables, [Table("new", ("a",), (("v0",),))], dropped=["t1"]),
    ]
    for state in lakes:
        assert LakeState.from_dict(json.loads(json.dumps(state.to_dict()))) == state
        names = [ref.name for ref in named_files(state.to_dict())]
        assert len(set(names)) == len(names)
    assert lakes[2].dropped in list(named_files(lakes[2].to_dict()))
    assert {"components", "weights"} == set(lakes[2].graph.files)  # type: ignore[union-attr]
    assert (lakes[0].next_table, lakes[0].next_column) == (0, 0)
    assert (lakes[2].next_table, lakes[2].next_column) == (4, 4)
    every = {ref for refs in lakes[2].graph.files.values() for ref in refs}  # type: ignore[union-attr]
    every |= {ref for part in lakes[2].parts for ref in named_files(part.to_dict())}
    assert every <= set(named_files(lakes[2].to_dict()))


def test_a_graph_and_a_part_come_back() -> None:
    file = FileRef("lake/x-000000000000.npy", 7, "0" * 16)
    graph = GraphRef({"components": (file,), "weights": (file, file)}, 3, 2)
    assert GraphRef.from_dict(json.loads(json.dumps(graph.to_dict()))) == graph
    part = PartRef(1, 2, 3, 4, 5, 6, {"offsets": file}, (file,), (file, file))
    assert PartRef.from_dict(json.loads(json.dumps(part.to_dict()))) == part
    assert list(named_files(part.to_dict())) == [file] * 4


# -- arrays ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(0,), (1,), (1000,), (0, 3), (3, 0), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("dtype", [np.uint64, np.int32, np.float32, np.uint8])
def test_arrays_come_back(tmp_path: Path, shape: tuple[int, ...], dtype: Any) -> None:
    array = (np.arange(np.prod(shape, dtype=np.int64)) * 7 % 251).astype(dtype).reshape(shape)
    ref = write_array(tmp_path, "lake", "some", array)
    found = open_array(tmp_path, ref)
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert (found == array).all()
    assert np.array_equal(np.load(tmp_path / ref.name), array)  # any reader opens it
    assert check_file(tmp_path, ref, deep=True, fresh=True)
    # Piece by piece, some of them empty.
    pieces = [array[:0], *(array[i : i + 1] for i in range(shape[0])), array[:0]]
    joined = join_arrays(tmp_path, "lake", "other", shape, dtype, iter(pieces))
    assert (joined.length, joined.checksum) == (ref.length, ref.checksum)
    assert (tmp_path / joined.name).read_bytes() == (tmp_path / ref.name).read_bytes()


@pytest.mark.parametrize(
    "pieces",
    [
        [np.arange(3)],
        [np.arange(5)],
        [np.arange(2), np.arange(2, dtype=np.int32)],
        [np.zeros((2, 2), int)] * 2,
    ],
)
def test_pieces_that_do_not_make_the_array(tmp_path: Path, pieces: list[Any]) -> None:
    """Neither too few nor too many items nor others; and nothing stays."""
    with pytest.raises(AssertionError):
        join_arrays(tmp_path, "lake", "some", (4,), np.int64, pieces)
    assert not list((tmp_path / "lake").iterdir())


def test_arrays_of_any_layout_come_back(tmp_path: Path) -> None:
    array = np.arange(24, dtype=np.int32).reshape(4, 6)
    for view in (array.T, array[::2], array[:, ::-1], np.asfortranarray(array)):
        assert np.array_equal(open_array(tmp_path, write_array(tmp_path, "lake", "some", view)), view)


def test_what_is_open_cannot_be_written(tmp_path: Path) -> None:
    found = open_array(tmp_path, write_array(tmp_path, "lake", "some", np.arange(9)))
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 1


@pytest.mark.parametrize("length", [0, 1, 9, 64, 127])
def test_an_array_that_was_cut_is_named(tmp_path: Path, length: int) -> None:
    ref = write_array(tmp_path, "lake", "some", np.arange(99))
    os.truncate(tmp_path / ref.name, length)
    with pytest.raises(DamagedFileError, match=ref.name):
        open_array(tmp_path, ref)


@pytest.mark.parametrize("at", range(0, 128, 3))
def test_an_array_with_a_damaged_header_is_named(tmp_path: Path, at: int) -> None:
    """Of the right length but with a byte of the header changed: an error, never a crash.

    Only `verify` reads what the header does not tell.
    """
    ref = write_array(tmp_path, "lake", "some", np.arange(99))
    content = bytearray((tmp_path / ref.name).read_bytes())
    content[at] ^= 0xFF
    (tmp_path / ref.name).write_bytes(content)
    with pytest.raises(DamagedFileError, match=ref.name):
        open_array(tmp_path, ref)


def test_an_array_of_objects_is_never_unpickled(tmp_path: Path) -> None:
    name = unique_name("lake", "evil", ".npy")
    with new_file(tmp_path, name) as file:
        np.save(file, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(DamagedFileError, match="evil"):
        open_array(tmp_path, file.ref)


# -- Parquet -----------------------------------------------------------------------------------------------


def _rows(root: Path, rows: list[tuple[int, int, int]]) -> FileRef:
    name = unique_name("lake", "inds", ".parquet")
    with new_file(root, name) as file:
        arrays = [pa.array([row[i] for row in rows], pa.int32()) for i in range(3)]
        pq.write_table(pa.table(arrays, schema=INDS_SCHEMA), file)
    return file.ref


def test_rows_of_several_files_in_their_order(tmp_path: Path) -> None:
    refs = [_rows(tmp_path, rows) for rows in ([(3, 1, 1), (4, 1, 1)], [], [(1, 2, 3)])]
    whole = read_parquet(tmp_path, refs, INDS_SCHEMA)
    assert whole.schema == INDS_SCHEMA
    assert whole["dependent"].to_pylist() == [3, 4, 1]
    some = read_parquet(tmp_path, refs, INDS_SCHEMA, ["shared", "dependent"])
    assert some.column_names == ["shared", "dependent"]
    assert some["shared"].to_pylist() == [1, 1, 3]
    assert read_parquet(tmp_path, [], INDS_SCHEMA).num_rows == 0
    batches = list(parquet_batches(tmp_path, refs, ["dependent"], rows=1))
    assert [batch["dependent"].to_pylist() for batch in batches if len(batch)] == [[3], [4], [1]]


@pytest.mark.parametrize("damage", ["cut", "gone", "overwritten"])
def test_rows_of_a_damaged_file_are_none(tmp_path: Path, damage: str) -> None:
    good, ref = _rows(tmp_path, [(1, 1, 1)]), _rows(tmp_path, [(3, 1, 1), (4, 1, 1)])
    path = tmp_path / ref.name
    if damage == "cut":
        os.truncate(path, 20)
    elif damage == "gone":
        path.unlink()
    else:
        path.write_bytes(b"?" * path.stat().st_size)
    with pytest.raises(DamagedFileError, match=ref.name):
        read_parquet(tmp_path, [good, ref], INDS_SCHEMA)
    with pytest.raises(DamagedFileError, match=ref.name):
        list(parquet_batches(tmp_path, [good, ref], ["dependent"]))


# -- a part that was linked --------------------------------------------------------------------------------

TABLES = [
    *chain(5).tables,
    *without_values().tables,
    Table("odd", ("n", "m", "k"), (("1", "2", "?"), ("-", "", "-"), ("x", "x", None))),
    Table("long", ("a",), (("y" * 2_000,),)),
]


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, LakeState]:
    """A lake of one part, with signatures, m = 70, p = 2."""
    folder = tmp_path_factory.mktemp("lake")
    with holdfast.open(folder / "w", engine="inline") as ws:
        ws.link(
            write_json_lines(TABLES, folder / "t.jsonl"),
            json_name="name",
            proposer="signatures",
            m=70,
            k=2,
            p=2,
        )
        state = ws.lakes.state()
    assert state is not None
    return folder / "w", state


def hashes(text: str, root: Path) -> tuple[int, int]:
    key = text_key(root)
    assert key is not None
    return siphash(text.encode(), key)


def test_the_arrays_of_a_part(linked: tuple[Path, LakeState]) -> None:
    root, state = linked
    [ref] = state.parts
    part = Part(root, ref)
    assert set(ref.arrays) == {
        "offsets", "values", "checks", "flags", "table_of", "n_rows", "keys", "key_checks", "postings",
        "active", "signatures", "matrix", "pivots", "rarity", "frequent",
    }  # fmt: skip
    facts = [oracle.facts(cells) for table in TABLES for cells in table.columns]
    n = len(facts)
    assert (ref.n_tables, ref.n_columns, ref.n_entries) == (len(TABLES), n, sum(len(f.values) for f in facts))
    offsets, values, checks = (part.array(name) for name in ("offsets", "values", "checks"))
    table_of = [t for t, table in enumerate(TABLES) for _ in table.columns]
    assert part.array("table_of").tolist() == table_of
    assert part.array("n_rows").tolist() == [f.n_rows for f in facts]
    assert part.sizes.tolist() == [len(f.values) for f in facts]
    entries = []
    for i, fact in enumerate(facts):
        own = sorted(hashes(text, root) for text in fact.values)
        at = slice(offsets[i], offsets[i + 1])
        assert list(zip(values[at].tolist(), checks[at].tolist(), strict=True)) == own
        entries += [(*pair, i) for pair in own]
        flags = int(part.array("flags")[i])
        assert bool(flags & NULL_COLUMN) == (fact.null and bool(fact.values))
        assert bool(flags & INTEGER_COLUMN) == fact.integer
        assert bool(flags & UNIQUE_COLUMN) == fact.unique
        pivot, rare = int(part.array("pivots")[i]), float(part.array("rarity")[i])
        assert pivot in ({h for h, _ in own} or {0})
        assert rare == pytest.approx(oracle.rarity(TABLES)[_named(i)], abs=1e-6)
    index = [part.array(name).tolist() for name in ("keys", "key_checks", "postings")]
    assert list(zip(*index, strict=True)) == sorted(entries)


def _named(column: int) -> oracle.Column:
    return [(table.name, p) for table in TABLES for p in range(len(table.columns))][column]


def test_signatures_are_made_for_the_proposer_that_needs_them(tmp_path: Path) -> None:
    """Of the parts that lack them, when it is asked for; they stay with their parts."""
    first, second, third = (write_json_lines([t], tmp_path / f"{t.name}.jsonl") for t in TABLES[:3])
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.link(first, json_name="name")
        assert not [p for p in ws.lakes.state().parts if signing.is_signed(p)]  # type: ignore[union-attr]
        ws.link(second, json_name="name", add=True, proposer="signatures")
        parts = ws.lakes.state().parts  # type: ignore[union-attr]
        assert [signing.is_signed(p) for p in parts] == [True, True]
        ws.link(third, json_name="name", add=True)
        after = ws.lakes.state().parts  # type: ignore[union-attr]
        assert [signing.is_signed(p) for p in after] == [True, True, False]
        assert after[:2] == parts


def test_the_signatures_of_a_part(linked: tuple[Path, LakeState]) -> None:
    root, state = linked
    part = Part(root, state.parts[0])
    facts = [oracle.facts(cells) for table in TABLES for cells in table.columns]
    active = part.array("active")
    assert active.tolist() == [i for i, f in enumerate(facts) if f.values and not f.null and not f.integer]
    signatures, matrix = part.array("signatures"), part.array("matrix")
    assert (signatures.shape, matrix.shape[1]) == ((len(active), 3), 140)
    bits = np.unpackbits(signatures.view(np.uint8), axis=1, bitorder="little")[:, :140]
    for row, column in enumerate(active.tolist()):
        for other, contains in enumerate(active.tolist()):
            if facts[column].values <= facts[contains].values:
                assert (bits[row] <= bits[other]).all()
        word, bit = divmod(row, 64)
        assert ((matrix[0, :, word] >> np.uint64(bit)) & np.uint64(1)).tolist() == bits[row].tolist()
    assert bits.any(axis=1).all()


def test_the_parquet_files_of_a_part(linked: tuple[Path, LakeState]) -> None:
    root, state = linked
    part = state.parts[0]
    tables = read_parquet(root, part.tables, TABLES_SCHEMA)
    assert tables.schema == TABLES_SCHEMA
    assert tables["name"].to_pylist() == [t.name for t in TABLES]
    assert tables["n_rows"].to_pylist() == [t.n_rows for t in TABLES]
    assert tables["n_columns"].to_pylist() == [len(t.columns) for t in TABLES]
    shown = [[tuple(cell and cell[:1000] for cell in row) for row in t.rows] for t in TABLES]
    assert [[tuple(row) for row in rows] for rows in tables["rows"].to_pylist()] == shown
    columns = read_parquet(root, part.columns, COLUMNS_SCHEMA)
    assert columns.schema == COLUMNS_SCHEMA
    facts = [oracle.facts(cells) for table in TABLES for cells in table.columns]
    assert columns["table"].to_pylist() == open_array(root, part.arrays["table_of"]).tolist()
    assert columns["name"].to_pylist() == [name for table in TABLES for name in table.header]
    assert columns["position"].to_pylist() == [p for t in TABLES for p in range(len(t.columns))]
    for name in ("n_rows", "n_missing", "n_null_like"):
        assert columns[name].to_pylist() == [getattr(f, name) for f in facts]
    assert columns["n_values"].to_pylist() == [len(f.values) for f in facts]
    expected = [[v[:1000] for v in sorted(f.values, key=lambda text: hashes(text, root))] for f in facts]
    assert columns["texts"].to_pylist() == expected
    assert read_parquet(root, part.columns, COLUMNS_SCHEMA, ["name"]).column_names == ["name"]


def test_other_programs_read_a_lake(linked: tuple[Path, LakeState]) -> None:
    root, state = linked
    with duckdb.connect() as db:
        db.sql(f"CREATE VIEW inds AS FROM read_parquet({[str(root / f.name) for f in state.inds]})")
        files = [str(root / f.name) for f in state.parts[0].columns]
        db.sql(f"CREATE VIEW columns AS SELECT *, row_number() OVER () - 1 AS id FROM read_parquet({files})")
        found = db.sql("""
            SELECT a.name, b.name, len(list_intersect(a.texts, b.texts)) = shared AND shared = a.n_values
            FROM inds JOIN columns a ON a.id = dependent JOIN columns b ON b.id = referenced
        """).fetchall()
    assert len(found) == state.n_inds == len(oracle.inds(TABLES))
    assert all(right for _, _, right in found)
