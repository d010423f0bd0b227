"""The columns that share the most values, against the definition: every pair of columns, in plain Python.

Whether postings are read to the end or some columns are looked at one by one is a matter of cost: limits and
costs are patched so that small lakes go either way.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
import lake_maker
from holdfast.errors import SourceError, UnknownColumnError, UnknownTableError, UsageError, WorkspaceError
from holdfast.lakes.reader import overlaps as lake_overlaps
from holdfast.lakes.reader.lake_reader import LakeReader
from holdfast.lakes.reader.overlaps import LakeOverlaps
from holdfast.lakes.state import LakeOptions
from lake_maker import as_table, judge_options, make_lake
from lake_tables import POOLS, write_json_lines
from reference import lake as ref

# Steps of one posting or more, and what a posting and a value are said to cost: read all, or look soon.
COSTS = [(1, 1, 10**9), (1, 10**9, 1), (1, 4, 1), (1 << 20, 15, 150)]
NAMES = ["z", "t10", "t2", "ä", "T", "x/y"]
Told = list[tuple[ref.Column, int, int]]


@contextmanager
def costing(step: int, ns_posting: int, ns_value: int) -> Iterator[None]:
    with patch.multiple(lake_overlaps, STEP=step, NS_POSTING=ns_posting, NS_VALUE=ns_value):
        yield


def told_of(overlaps: LakeOverlaps, position: int, columns: dict[str, Sequence[str]]) -> Told:
    """The overlaps of one of the columns that were asked about, as the reference has them; ids are right."""
    return [
        ((o.other.table, columns[o.other.table].index(o.other.column)), o.shared, o.n_other)
        for o in overlaps
        if o.asked.position == position
    ]


def check(reader: LakeReader, live: Sequence[ref.Table], judge: ref.Options, top: int) -> None:
    """All columns of all live tables."""
    headers = {t.name: t.header for t in live}
    for table in live:
        found = reader.overlaps(table.name, top)
        assert (found.table, found.version) == (table.name, reader.version)
        assert [c.column for c in found.columns] == list(table.header)
        for position, cells in enumerate(table.columns):
            values = ref.facts(cells, judge).values
            assert found.columns[position].n_values == len(values)
            expected = ref.overlaps(values, live, judge, top, (table.name, position))
            assert told_of(found, position, headers) == expected
        for o in found:
            assert reader.catalogue.sides(np.array([o.other.id])) == [o.other]
            both = o.asked.n_values + o.n_other - o.shared
            assert (o.containment, o.coverage) == (o.shared / o.asked.n_values, o.shared / o.n_other)
            assert o.jaccard == o.shared / both


# -- lakes at random ---------------------------------------------------------------------------------------


def random_lake(seed: int) -> tuple[list[list[ref.Table]], list[str], LakeOptions]:
    """Some parts; a later table may have the name of an earlier one, which is dropped then. Others go too."""
    rng = random.Random(seed)
    cells = ["a", "b", "c", "d", "e", "f", "A ", "", "n/a", "1", "2", None][: rng.choice((3, 6, 12))]
    parts: list[list[ref.Table]] = []
    held: set[str] = set()
    dropped: list[str] = []
    for _ in range(rng.randrange(4)):
        part = []
        for name in rng.sample(NAMES, rng.randrange(5)):
            n_columns, n_rows = rng.randrange(4), rng.choice((0, 1, 3, 9))
            columns = [tuple(rng.choices(cells, k=n_rows)) for _ in range(n_columns)]
            part.append(as_table((name, [f"c{c}" for c in range(n_columns)], columns)))
            dropped += [name] if name in held else []
            held.add(name)
        parts.append(part)
    dropped += rng.sample(sorted(held), min(len(held), rng.randrange(3)))
    return parts, dropped, LakeOptions(normalise=rng.choice(((), ("trim", "fold"))))


def live_of(parts: Sequence[Sequence[ref.Table]], dropped: Sequence[str]) -> list[ref.Table]:
    live = [table for part in parts for table in part]
    for name in dropped:
        live.remove(next(table for table in live if table.name == name))
    return live


@given(
    seed=st.integers(0, 10**6),
    costs=st.sampled_from(COSTS),
    top=st.sampled_from([1, 2, 3, 20]),
    short=st.booleans(),
)
def test_every_column_has_the_overlaps_of_the_definition(
    tmp_path_factory: pytest.TempPathFactory, seed: int, costs: tuple[int, int, int], top: int, short: bool
) -> None:
    parts, dropped, options = random_lake(seed)
    root = tmp_path_factory.mktemp("lake")
    honest = lake_maker._Writer.hashed

    def two_bits(self: Any, text: str) -> tuple[int, int]:
        """Nearly all values share their first hash."""
        low, high = honest(self, text)
        return low & 3 << 62, high

    with patch.object(lake_maker._Writer, "hashed", two_bits if short else honest), costing(*costs):
        state = make_lake(root, *parts, options=options, dropped=dropped)
        check(LakeReader(root, state, 3), live_of(parts, dropped), judge_options(options), top)


# -- frequent values ---------------------------------------------------------------------------------------


def with_frequent_values(seed: int, n: int) -> list[ref.Table]:
    """Columns of values that nearly all have beside some that few have; few columns are long."""
    rng = random.Random(seed)
    frequent = [f"{i}" for i in range(40)]
    tables = []
    for i in range(n):
        size = 60 if i % 4 == 0 else rng.randrange(1, 9)
        rare = [f"v{rng.randrange(3 * n)}" for _ in range(rng.randrange(size + 1))]
        tables.append(as_table((f"t{i}", ["a"], [(*rare, *rng.sample(frequent, min(size, 39)))])))
    return tables


@pytest.mark.parametrize("top", [1, 5, 10, 11])
def test_frequent_values_are_not_read_where_few_columns_can_win(tmp_path: Path, top: int) -> None:
    """Ten columns have the twenty rare values; the others are too small to share so many."""
    rng = random.Random(top)
    rare, frequent = [f"v{i}" for i in range(20)], [f"{i}" for i in range(30)]
    cells = {f"alike{i}": (*rare, *rng.sample(frequent, i)) for i in range(10)}
    cells |= {f"other{i}": tuple(rng.sample(frequent, 15)) for i in range(100)}
    tables = [as_table((name, ["a"], [values])) for name, values in cells.items()]
    asked = as_table(("asked", ["a"], [(*rare, *frequent)]))
    state = make_lake(tmp_path, [asked, *tables[:70]], tables[70:], options=LakeOptions(filters=()))
    expected = ref.overlaps(frozenset([*rare, *frequent]), tables, top=top)
    with costing(1, 8, 8), patch.object(lake_overlaps, "_add_shared", wraps=lake_overlaps._add_shared) as add:
        found = LakeReader(tmp_path, state, 1).overlaps("asked", top)
    assert [((o.other.table, 0), o.shared, o.n_other) for o in found] == expected
    looked = [call.args[1].tolist() for call in add.call_args_list]
    assert looked == ([list(range(1, 11))] if top <= 10 else [])


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), costs=st.sampled_from(COSTS), top=st.integers(1, 30))
def test_frequent_values_at_random(
    tmp_path_factory: pytest.TempPathFactory, seed: int, costs: tuple[int, int, int], top: int
) -> None:
    tables = with_frequent_values(seed, 30)
    root = tmp_path_factory.mktemp("lake")
    state = make_lake(root, tables[:3], tables[3:20], tables[20:], options=LakeOptions(filters=()))
    with costing(*costs):
        check(LakeReader(root, state, 1), tables, ref.Options(filters=()), top)


# -- files -------------------------------------------------------------------------------------------------


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[holdfast.Workspace]:
    monkeypatch.setattr("os.fsync", lambda _: None)
    with holdfast.open(tmp_path / "w", engine="inline") as opened:
        yield opened


def drawn(rng: random.Random, names: Sequence[str]) -> list[ref.Table]:
    """Tables of texts of all kinds, some missing, some columns without any."""
    tables = []
    for name in names:
        n_rows = rng.choice((0, 1, 4, 12))
        columns = []
        for _ in range(rng.randrange(1, 4)):
            pool = (*POOLS[rng.choice(list(POOLS))], None)
            columns.append(tuple(rng.choice(pool) for _ in range(n_rows)))
        tables.append(ref.Table(name, tuple(f"c{i}" for i in range(len(columns))), tuple(columns)))
    return tables


@pytest.mark.parametrize("seed", range(4))
def test_files_and_tables_while_a_lake_changes(ws: holdfast.Workspace, tmp_path: Path, seed: int) -> None:
    """Tables come, are replaced, go and come again; parts are merged meanwhile."""
    rng = random.Random(seed)
    options = ref.Options(normalise=((), ("trim", "fold"))[seed % 2])
    held: dict[str, ref.Table] = {}
    steps: list[tuple[str, Sequence[str]]] = [
        ("anew", [f"t{i}" for i in range(12)]),
        ("add", ["a0", "a1", "a2"]),
        ("drop", ["t1", "a1", "t5"]),
        ("replace", ["t0", "a0", "t7"]),
        ("add", ["t1", "b0"]),
        ("add", ["a1"]),
        ("drop", ["t1", "b0"]),
    ]
    for number, (step, names) in enumerate(steps):
        tables = drawn(rng, names)
        if step == "drop":
            ws.unlink(*names)
            held = {name: table for name, table in held.items() if name not in names}
        else:
            file = write_json_lines(tables, tmp_path / f"{number}.jsonl")
            chosen = {"normalise": options.normalise} if step == "anew" else {}
            ws.link(file, json_name="name", **{step: True}, **chosen)
            held |= {table.name: table for table in tables}
        reader = ws.lake()
        assert reader is not None
        live, headers = list(held.values()), {name: table.header for name, table in held.items()}
        with costing(*COSTS[number % len(COSTS)]):
            check(reader, live, options, 3)
            (asked,) = drawn(rng, ["asked"])
            file = write_json_lines([asked], tmp_path / "asked.jsonl")
            found = ws.lakes.overlaps(file, top=4, json_name="name")
            alone = ws.lakes.overlaps(str(file), "c0", top=4, json_name="name")
        assert (found.table, found.version) == ("asked", ws.version)
        assert [o for o in found if o.asked.position == 0] == alone
        for position, cells in enumerate(asked.columns):
            values = ref.facts(cells, options).values
            assert found.columns[position].n_values == len(values)
            assert told_of(found, position, headers) == ref.overlaps(values, live, options, 4)


def test_one_value_and_none(ws: holdfast.Workspace, tmp_path: Path) -> None:
    """An empty text is a value, a missing cell is none; filters of the lake leave nothing out."""
    lake = [
        ref.Table("b", ("x", "x"), (("", "1"), (None, None))),
        ref.Table("a", ("n",), (("1", "2", "3"),)),
        ref.Table("c", ("n",), (("-",),)),
    ]
    ws.link(write_json_lines(lake, tmp_path / "lake.jsonl"), json_name="name")

    def ask(*cells: str | None) -> list[str]:
        file = write_json_lines([ref.Table("q", ("v",), (cells,))], tmp_path / "q.jsonl")
        return [f"{o.shared} {o.other}" for o in ws.lakes.overlaps(file, json_name="name")]

    assert ask("") == ["1 b[x]"]
    assert ask(None) == ask() == ask("nowhere") == []
    assert ask("-", "1", "1") == ["1 a[n]", "1 b[x]", "1 c[n]"]
    assert ask("", "1", "2") == ["2 a[n]", "2 b[x]"]


def test_the_answer_prints_and_goes_on(ws: holdfast.Workspace, tmp_path: Path) -> None:
    lake = [ref.Table("cities", ("city", "n"), (("Rome", "Oslo", "Bern"), ("1", "2", "3")))]
    ws.link(write_json_lines(lake, tmp_path / "lake.jsonl"), json_name="name")
    (tmp_path / "new.csv").write_text("town,town,x\nRome,1,-\nBern,2,-\nKiel,9,-\n")
    found = ws.lakes.overlaps(tmp_path / "new.csv")
    assert repr(found) == "2 overlaps\n  2 of 3  town with cities[city]\n  2 of 3  town_2 with cities[n]"
    told = found.to_dict()
    assert json.loads(json.dumps(told)) == told
    assert told["columns"] == [
        {"position": i, "column": name, "n_values": n}
        for i, name, n in ((0, "town", 3), (1, "town_2", 3), (2, "x", 1))
    ]
    assert told["overlaps"][0] == {
        "asked": {"position": 0, "column": "town", "n_values": 3},
        "other": {"id": 0, "table_id": 0, "table": "cities", "column": "city"},
        "shared": 2,
        "n_other": 3,
        "containment": 2 / 3,
        "coverage": 2 / 3,
        "jaccard": 0.5,
    }
    assert found.to_arrow().select(["column", "other_column", "shared"]).to_pylist() == [
        {"column": "town", "other_column": "city", "shared": 2},
        {"column": "town_2", "other_column": "n", "shared": 2},
    ]
    assert found.to_pandas()["jaccard"].tolist() == [0.5, 0.5]
    assert ws.lakes.overlaps(tmp_path / "new.csv", "x").to_arrow().num_rows == 0


def test_bad_questions_say_so(ws: holdfast.Workspace, tmp_path: Path) -> None:
    lake = [ref.Table("t", ("a",), (("x",),)), ref.Table("u", ("a",), (("x",),))]
    source = write_json_lines(lake, tmp_path / "lake.jsonl")
    good, bad = tmp_path / "q.csv", tmp_path / "bad.csv"
    good.write_text("town\nRome\n")
    bad.write_text('town\n"never closed\n')
    with pytest.raises(WorkspaceError, match="has no lake: link one first"):
        ws.lakes.overlaps(good)
    with holdfast.open(ws.root, engine="inline") as another:  # what it links is seen here
        another.link(source, json_name="name")
    version = ws.version
    with pytest.raises(
        UnknownColumnError, match=r"'q.csv' has no column 'tow'. Columns: town. Did you mean 'town'"
    ):
        ws.lakes.overlaps(good, "tow")
    with pytest.raises(SourceError, match=r"more than one table: 't', 'u'.* Give a file of one table"):
        ws.lakes.overlaps(source, json_name="name")
    with pytest.raises(SourceError, match=r"bad.csv'? has a quote that is never closed"):
        ws.lakes.overlaps(bad)
    with pytest.raises(SourceError, match="does not exist"):
        ws.lakes.overlaps(tmp_path / "nowhere.csv")
    with pytest.raises(UsageError, match="how are the files to be read"):
        ws.lakes.overlaps(good, colour="red")
    for linked, table in ((False, str(good)), (True, "t")):
        with pytest.raises(UsageError, match="the best 0 overlaps are none"):
            ws.lakes.overlaps(table, top=0, linked=linked)
    with pytest.raises(UnknownTableError, match=r"has no table 'q.csv'"):
        ws.lakes.overlaps("q.csv", linked=True)
    with pytest.raises(UnknownColumnError, match=r"'t' .* has no column 'b'"):
        ws.lakes.overlaps("t", "b", linked=True)
    with pytest.raises(UsageError, match="'t' is a table of the lake, and no file is read: leave out header"):
        ws.lakes.overlaps("t", linked=True, header=False)
    assert [str(o.other) for o in ws.lakes.overlaps("t", "a", linked=True)] == ["u[a]"]
    with holdfast.open(ws.root, engine="inline") as another:
        another.unlink("u")
    assert ws.lakes.overlaps("t", "a", linked=True) == []
    version += 1
    assert ws.version == version
