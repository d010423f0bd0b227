"""`holdfast violations` and `holdfast repairs`: what they print, write and refuse."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from app.shell import Shell

PEOPLE = "id,zip,city,net,gross\n" + "".join(
    f"{i},{10 + i % 3},{'Bxrn' if i == 4 else ('Berlin', 'Bern', 'Bonn')[i % 3]},{i},{5 if i == 9 else 20}\n"
    for i in range(30)
)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "cities.csv").write_text("name\nBerlin\nBern\nBonn\n")
    shell = Shell(tmp_path)
    tracked = shell(
        "track-all", str(tmp_path / "people.csv"), str(tmp_path / "cities.csv"), "--kinds", "ucc,ind"
    )
    assert tracked.code == 0, tracked.err
    return shell


def test_the_first_rows_and_the_totals(shell: Shell) -> None:
    outcome = shell("violations", "people", "zip -> city", "--limit", "2")
    assert outcome.code == 0
    assert outcome.out.splitlines() == [
        "people: zip -> city does not hold (version 1)",
        "  10 of 30 rows violate it, in 9 pairs; 1 left-hand value",
        "  without 1 row it holds",
        "    row  _group  _remove  _suggested  zip  city  |  id  net  gross",
        "    0.4  1       True     Bern        11   Bxrn  |  4   4    20",
        "    0.1  1       False    NULL        11   Bern  |  1   1    20",
        "    ... and 8 more; all with --all, or in a file with --all -o rows.parquet",
    ]
    whole = shell("violations", "people", "zip -> city", "--all").out
    assert len(whole.splitlines()) == 4 + 10
    document = shell("violations", "people", "zip -> city", "--json").json()
    assert document["remove"] == {"at_least": 1, "at_most": 1}
    assert document["complete"]
    assert len(document["rows"]) == document["n_violating"] == 10
    assert document["rows"][0]["_suggested"] == "Bern"


def test_every_kind_is_understood(shell: Shell) -> None:
    def first(*question: str) -> list[str]:
        outcome = shell("violations", "people", *question)
        assert outcome.code == 0, outcome.err
        return outcome.out.splitlines()[:3]

    assert first("net", "gross") == ["people[net, gross] holds (version 1)"]
    assert first("zip,city")[1:] == [
        "  29 of 30 rows violate it, in 126 pairs; 3 duplicated values",
        "  without 26 rows it holds",
    ]
    assert first("net <= gross")[1:] == ["  10 of 30 rows violate it", "  without 10 rows it holds"]
    assert first("city", "--in", "cities.name") == [
        "people[city] in cities[name] does not hold (version 1)",
        "  1 of 30 rows violate it; 1 missing value",
        "  without 1 row it holds",
    ]
    rule = "not(t.net < s.net and t.gross > s.gross)"
    assert first(rule)[1:] == ["  10 of 30 rows violate it, in 9 ordered pairs", "  without 1 row it holds"]
    pairs = shell("violations", "people", rule, "--pairs", "--json").json()["rows"]
    assert len(pairs) == 18
    assert {(r["_side"], r["gross"]) for r in pairs} == {("t", 20), ("s", 5)}


@pytest.mark.parametrize("end", ["parquet", "csv"])
def test_rows_go_to_a_file(shell: Shell, end: str) -> None:
    file = shell.folder / f"rows.{end}"
    outcome = shell("violations", "people", "zip -> city", "--all", "-o", str(file))
    assert (outcome.code, outcome.out) == (0, f"{file}: 10 rows (version 1)\n")
    rows = pq.read_table(file) if end == "parquet" else pa_csv.read_csv(file)
    assert rows.column_names[:2] == ["_row", "_group"]
    assert rows.column("id").to_pylist() == [4, *(i for i in range(1, 30, 3) if i != 4)]
    some = shell("violations", "people", "zip -> city", "--limit", "3", "-o", str(file))
    assert "3 rows of 10; --all writes all of them" in some.out
    assert not shell("violations", "people", "zip -> city", "-o", str(file), "--json").json().get("rows")
    assert sorted(p.name for p in shell.folder.iterdir() if p.name.startswith(".holdfast")) == []
    holds = shell("violations", "people", "id", "--all", "-o", str(file))
    assert holds.out == f"{file}: 0 rows (version 1)\n"


ALL = set(range(30))


@pytest.mark.parametrize(
    ("question", "violating", "removed"),
    [
        (["zip,city"], ALL - {4}, ALL - {0, 1, 2, 4}),
        (["city", "--in", "cities.name"], {4}, {4}),
        (["net > 4"], {0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}),
        (["zip -> city"], {*range(1, 30, 3)}, {4}),
        (["[] -> gross"], ALL, {9}),
        (["not(t.net < s.net and t.gross > s.gross)"], {*range(10)}, {9}),
        (["net <= gross"], {9, *range(21, 30)}, {9, *range(21, 30)}),
    ],
    ids=["key", "inclusion", "condition", "fd", "constant", "dc", "row"],
)
def test_every_kind_goes_to_files(
    shell: Shell, question: list[str], violating: set[int], removed: set[int]
) -> None:
    """Both files have the rows that hands count."""
    files = {end: shell.folder / f"rows.{end}" for end in ("parquet", "csv")}
    for file in files.values():
        outcome = shell("violations", "people", *question, "--all", "-o", str(file))
        n = len(violating)
        assert outcome.out == f"{file}: {n} row{'' if n == 1 else 's'} (version 1)\n"
    rows = pq.read_table(files["parquet"])
    names = rows.column_names
    assert names[-5:] == ["id", "zip", "city", "net", "gross"]
    listed = rows.to_pylist()
    assert sorted(r["id"] for r in listed) == sorted(violating)
    assert {r["id"] for r in listed if r["_remove"]} == removed
    as_texts = pa_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
    )
    texts = pa_csv.read_csv(files["csv"], convert_options=as_texts).to_pylist()
    assert texts == [
        {
            name: "" if v is None else str(v).lower() if isinstance(v, bool) else str(v)
            for name, v in r.items()
        }
        for r in listed
    ]
    totals = shell("violations", "people", *question, "--json").json()
    assert (totals["n_violating"], totals["remove"]["at_most"]) == (len(violating), len(removed))


def test_texts_that_are_odd_go_to_csv(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    pq.write_table(
        pa.table({"k": [1, 1], "b": [b"\xff", None], "t": ['a "b",\n', ""]}), tmp_path / "odd.parquet"
    )
    assert shell("track", "odd", str(tmp_path / "odd.parquet")).code == 0
    assert shell("violations", "odd", "k", "--all", "-o", str(tmp_path / "rows.csv")).code == 0
    rows = pa_csv.read_csv(
        tmp_path / "rows.csv", parse_options=pa_csv.ParseOptions(newlines_in_values=True)
    ).to_pylist()
    assert [(r["b"], r["t"]) for r in rows] == [("", ""), ("ff", 'a "b",\n')]


def test_bytes_that_are_no_text_are_escaped_in_csv(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    texts = pa.array([b"caf\xe9", b"\x1b[31m"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"k": [1, 1], "t": texts}), tmp_path / "odd.parquet")
    tracked = shell("track", "odd", str(tmp_path / "odd.parquet"))
    assert tracked.code == 0, tracked.err
    outcome = shell("violations", "odd", "k", "--all", "-o", "-")
    assert outcome.code == 0
    assert outcome.out.splitlines()[0] == '"_row","_group","_group_rows","_remove","k","t"'
    assert sorted(outcome.out.splitlines()[1:]) == [
        '"0.0",1,2,false,1,"caf\\xe9"',
        '"0.1",1,2,true,1,"\x1b[31m"',
    ]
    for end in ("csv", "parquet"):
        assert shell("violations", "odd", "k", "--all", "-o", str(tmp_path / f"rows.{end}")).code == 0
    assert b"caf\\xe9" in (tmp_path / "rows.csv").read_bytes()


def test_repairs(shell: Shell) -> None:
    outcome = shell("repairs", "people")
    assert outcome.out.splitlines() == [
        "people: 1 repair proposed by 2 functional dependencies (version 1)",
        "  confidence  row  column  is    should be  votes",
        "  0.45        0.4  city    Bxrn  Bern       1 of 1",
    ]
    script = shell("repairs", "people", "zip -> city", "--format", "sql").out.splitlines()
    assert script[0].startswith(
        "-- holdfast, version 1 of the workspace: 1 repair of 1 row of people, proposed by 1"
    )
    assert script[1] == "-- row 0.4, city: confidence 0.45, 1 of 1 votes: zip -> city"
    assert script[2] == """UPDATE "people" SET "city" = 'Bern' WHERE "id" = 4 AND "city" = 'Bxrn';"""
    assert shell("repairs", "people", "--format", "csv").out.splitlines()[1] == (
        '"0.4","city","Bxrn","Bern",1,1,9,0.45,"zip -> city"'
    )
    document = shell("repairs", "people", "zip -> city", "--json").json()
    assert document["repairs"][0]["dependencies"] == ["zip -> city"]
    for name in ("r.sql", "r.csv", "r.parquet"):
        written = shell("repairs", "people", "-o", str(shell.folder / name))
        assert written.out == f"{shell.folder / name}: 1 repair (version 1)\n"
    assert pq.read_table(shell.folder / "r.parquet").to_pylist()[0]["suggested"] == "Bern"
    assert shell("repairs", "people", "--min-confidence", "0.5", "--json").json()["n_repairs"] == 0
    assert "no column almost determines another one" in shell("repairs", "cities").out


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("violations", "people"), "nothing of table 'people' is asked for"),
        (("violations", "people", "zip -> cyty"), "no column 'cyty'"),
        (("violations", "peple", "zip"), "no table 'peple'"),
        (("violations", "people", "zip", "--all", "--limit", "3"), "give one of them"),
        (("violations", "people", "zip", "-o", "rows.txt"), "ends in .parquet or .csv"),
        (("violations", "people", "zip", "-o", "/no/such/folder/rows.csv"), "cannot write to"),
        (("violations", "people", "zip -> city", "--pairs"), "rules about two rows"),
        (("repairs", "people", "zip"), "->"),
        (("repairs", "people", "--json", "--format", "sql"), "leave out --format"),
        (("repairs", "people", "--dialect", "duckdb"), "--dialect is for SQL"),
        (("repairs", "people", "--format", "parquet"), "-o repairs.parquet"),
        (("repairs", "people", "-o", "list.txt"), "does not say what to write"),
        (("repairs", "people", "--format", "sql", "-o", "list.csv"), "does not go with"),
        (("repairs", "people", "--min-confidence", "2"), "--min-confidence"),
    ],
)
def test_bad_input_is_one_error(shell: Shell, args: tuple[str, ...], said: str) -> None:
    outcome = shell(*args)
    assert outcome.code == 2
    assert said in outcome.err
    assert outcome.out == ""
