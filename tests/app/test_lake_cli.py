"""The commands of a lake as a user and as a program meet them: link, joins, overlaps, show, log, verify."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import holdfast
from app.shell import Outcome, Shell

FILES = {
    "cities.csv": "city,note\nRome,\nOslo,?\nBern,-\n",
    "customers.csv": "name,city,rank\nann,Rome,1\nbob,Oslo,2\ncy,Rome,3\n",
    "sales/orders.csv": "id,customer,n\no1,ann,1\no2,bob,2\no3,ann,3\n",
    "alone.csv": "x\nnothing\nelse\n",
}
FILTERS = ["null", "integer", "non-unique", "coverage"]
CITY = "customers.csv[city] in cities.csv[city]"
CUSTOMER = "sales/orders.csv[customer] in customers.csv[name]"
# A file may be called so; nothing of it may reach a terminal as it is.
EVIL = "[red]x[/red]\x1b]0;owned\x07\n\u202e'\"|,.csv"
RAW = ("\x1b", "\x07", "\u202e", "\x9b", "x[/red]\n")


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut is no matter here, and syncing would take most of the time."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def files(folder: Path, contents: dict[str, str]) -> str:
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return str(folder)


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a lake at version 1; tests work on copies."""
    folder = tmp_path_factory.mktemp("linked")
    outcome = Shell(folder)("link", files(folder / "lake", FILES))
    assert outcome.code == 0, outcome.err
    return folder


@pytest.fixture
def shell(linked: Path, tmp_path: Path) -> Shell:
    shutil.copytree(linked, tmp_path / "work")
    return Shell(tmp_path / "work")


@pytest.fixture
def fresh(tmp_path: Path) -> Shell:
    files(tmp_path / "lake", FILES)
    return Shell(tmp_path)


def ok(outcome: Outcome) -> Outcome:
    assert (outcome.code, outcome.err) == (0, "")
    return outcome


def shown(shell: Shell, *args: str) -> list[str]:
    """The inclusions that `show` lists, without their measures."""
    lines = ok(shell("show", "--kind", "ind", *args)).out.splitlines()[1:]
    return sorted(line.strip().split("  ")[0] for line in lines)


def version(shell: Shell) -> int:
    with holdfast.open(shell.folder / "my.hold", engine="inline", create=False) as ws:
        return ws.version


# --- link -------------------------------------------------------------------------------------------------


def test_link(fresh: Shell) -> None:
    files(fresh.folder / "lake", {"open.csv": 'a\n"never closed\n', "no.parquet": "PAR1"})
    lines = ok(fresh("link", str(fresh.folder / "lake"))).out.splitlines()
    assert lines[:3] == [
        "lake: 4 tables, 9 columns, 2 inclusions (version 1)",
        "  4 tables added",
        "  3 tables in 1 component, 1 linked to no other",
    ]
    assert lines[3] == "  2 inclusions kept out by filters:"
    assert [line.split()[:2] for line in lines[4:8]] == [
        ["0", f] if f != "integer" else ["2", f] for f in FILTERS
    ]
    assert lines[8] == "  2 files were left out:"
    assert lines[9].startswith(f"    {fresh.folder}/lake/no.parquet: ")
    assert (
        lines[10] == f"    {fresh.folder}/lake/open.csv: has a quote that is never closed, opened in record 2"
    )
    assert re.fullmatch(
        r"  [\d.]+ s, candidates by index: reading tables [\d.]+ s, indexing values [\d.]+ s, "
        r"matching columns [\d.]+ s, connecting tables [\d.]+ s",
        lines[11],
    )
    assert shown(fresh) == [CITY, CUSTOMER]


def test_links_lead_nowhere_unless_wanted(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    lake = files(tmp_path / "lake", FILES)
    secret = files(tmp_path / "private", {"people.csv": "name\nann\nbob\ncy\n"})
    (tmp_path / "lake" / "notes.csv").symlink_to(f"{secret}/people.csv")
    (tmp_path / "lake" / "more").symlink_to(secret)
    lines = ok(shell("link", lake)).out.splitlines()
    assert lines[1] == "  4 tables added"
    why = "is a symbolic link, which is not followed (--follow-symlinks)"
    assert [line.strip() for line in lines[-4:-1]] == [
        "2 files were left out:",
        f"{lake}/more: {why}",
        f"{lake}/notes.csv: {why}",
    ]
    told = ok(shell("link", "--anew", "--follow-symlinks", "--json", lake)).json()
    assert (told["added"], told["n_bad"]) == (6, 0)


def test_equal_names_are_told_as_bad_files_are(tmp_path: Path) -> None:
    """Names are relative to the folders: of two equal ones only the first table is there."""
    shell = Shell(tmp_path)
    first = files(tmp_path / "2023", {"orders.csv": "id\na\nb\n", "open.csv": 'a\n"never closed\n'})
    second = files(tmp_path / "2024", {"orders.csv": "id\nc\nd\n", "items.csv": "item\nx\n"})
    told = ok(shell("link", first, second, "--json")).json()
    assert (told["added"], told["n_bad"]) == (2, 2)
    assert told["bad"] == [
        {"source": f"{first}/open.csv", "reason": "has a quote that is never closed, opened in record 2"},
        {
            "source": f"{second}/orders.csv",
            "reason": f"another table of this name was read before it: {first}/orders.csv",
        },
    ]
    lines = ok(shell("link", "--anew", first, second)).out.splitlines()
    assert "  2 files were left out:" in lines
    assert lines[-2].strip() == (
        f"{second}/orders.csv: another table of this name was read before it: {first}/orders.csv"
    )


def test_files_that_are_too_large(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    lake = files(tmp_path / "lake", {**FILES, "large.csv": "a\n" + "x" * 2_000})
    Path(lake, "bomb.csv.gz").write_bytes(gzip.compress(b"a\n" + b"x" * 1_000_000))
    told = ok(shell("link", lake, "--max-file-bytes", "1000", "--json")).json()
    assert told["added"] == 4
    why = "has more than 1,000 bytes (--max-file-bytes)"
    assert told["bad"] == [{"source": f"{lake}/{n}", "reason": why} for n in ("bomb.csv.gz", "large.csv")]
    assert ok(shell("link", "--anew", lake, "--json")).json()["added"] == 6
    outcome = shell("link", "--anew", lake, "--max-file-bytes", "0")
    assert outcome.code == 2


def test_link_as_json(fresh: Shell) -> None:
    files(fresh.folder / "lake", {"open.csv": 'a\n"never closed\n'})
    told = ok(fresh("link", str(fresh.folder / "lake"), "--json")).json()
    assert told.pop("elapsed_s") > 0
    phases = told.pop("phases")
    assert [p["name"] for p in phases] == [
        "reading tables",
        "indexing values",
        "matching columns",
        "connecting tables",
    ]
    assert all(p["seconds"] >= 0 for p in phases)
    [bad] = told.pop("bad")
    assert "never closed" in json.dumps(bad)
    assert told == {
        "action": "link",
        "version": 1,
        "n_tables": 4,
        "n_columns": 9,
        "n_inds": 2,
        "n_components": 1,
        "n_isolated": 1,
        "added": 4,
        "replaced": 0,
        "dropped": 0,
        "known": 0,
        "n_bad": 1,
        "removed": {"null": 0, "integer": 2, "non-unique": 0, "coverage": 0},
        "proposer": "index",
        "filters": FILTERS,
    }


def test_add_replace_drop_and_anew(shell: Shell) -> None:
    new = shell.file("towns.csv", "town\nRome\nOslo\n")
    told = ok(shell("link", "--add", new)).out.splitlines()
    assert told[:2] == ["lake: 5 tables, 10 columns, 4 inclusions (version 2)", "  1 table added"]
    towns = ["customers.csv[city] in towns.csv[town]", "towns.csv[town] in cities.csv[city]"]
    assert set(towns) <= set(shown(shell))
    again = ok(shell("link", "--add", new)).out
    assert "no table was added or dropped" in again
    assert "1 table left out: the lake has these names (--replace)" in again
    assert again.splitlines()[0].endswith("(version 2)")

    shell.file("towns.csv", "town\nBern\n")
    told = ok(shell("link", "--replace", new, "--json")).json()
    assert (told["version"], told["added"], told["replaced"], told["n_inds"]) == (3, 0, 1, 3)
    assert shown(shell) == [CITY, CUSTOMER, "towns.csv[town] in cities.csv[city]"]

    told = ok(shell("link", "--drop", "towns.csv", "--drop", "alone.csv")).out.splitlines()
    assert told[:3] == [
        "lake: 3 tables, 8 columns, 2 inclusions (version 4)",
        "  2 tables dropped",
        "  3 tables in 1 component",
    ]
    assert shown(shell) == [CITY, CUSTOMER]

    told = ok(shell("link", "--anew", new, "--tau", "0.5", "--json")).json()
    assert (told["version"], told["n_tables"], told["n_inds"]) == (5, 1, 0)
    assert shown(shell) == []
    actions = [entry["action"] for entry in ok(shell("log", "--json")).json()["log"]]
    assert actions == ["link", "link --add", "link --replace", "link --drop", "link"]


@pytest.mark.parametrize(
    ("options", "n_inds", "removed"),
    [
        ([], 2, [0, 2, 0, 0]),
        (["--all-inds"], 4, []),
        (["--no-filter", "integer"], 4, [0, 0, 0]),
        (["--no-filter", "integer", "--no-filter", "coverage", "--no-filter", "null"], 4, [0]),
        (["--tau", "0.7"], 0, [0, 2, 0, 2]),
        (["--null-value", "ann", "--null-value", "bob"], 1, [1, 2, 0, 0]),
        (["--proposer", "signatures"], 2, [0, 2, 0, 0]),
        (["--proposer", "signatures", "--strategy", "ref2deps", "--passes", "1"], 2, [0, 2, 0, 0]),
        (["--signature-bits", "8", "--hashes", "1", "--proposer", "signatures"], 2, [0, 2, 0, 0]),
    ],
)
def test_what_is_listed(fresh: Shell, options: list[str], n_inds: int, removed: list[int]) -> None:
    told = ok(fresh("link", str(fresh.folder / "lake"), *options, "--json")).json()
    assert told["n_inds"] == n_inds == len(shown(fresh))
    assert list(told["removed"].values()) == removed
    if "--proposer" in options:
        assert told["proposer"] == options[options.index("--proposer") + 1]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ([], []),
        (["--trim"], ["trim.csv[c] in plain.csv[c]"]),
        (["--fold-case"], ["fold.csv[c] in plain.csv[c]"]),
        (["--unicode"], ["unicode.csv[c] in plain.csv[c]"]),
    ],
)
def test_normalisation(tmp_path: Path, options: list[str], found: list[str]) -> None:
    spelt = {"plain": "cat\ndog", "trim": "' cat'", "fold": "CAT", "unicode": "\uff43\uff41\uff54"}
    lake = files(
        tmp_path / "lake", {f"{n}.csv": "c\n" + text.replace("'", '"') + "\n" for n, text in spelt.items()}
    )
    shell = Shell(tmp_path)
    ok(shell("link", lake, *options))
    assert [ind for ind in shown(shell) if "plain" in ind] == found


def test_partial_inclusions(tmp_path: Path) -> None:
    lake = files(tmp_path / "lake", {"a.csv": "x\na\nb\nc\nd\nq\n", "b.csv": "y\na\nb\nc\nd\n"})
    shell = Shell(tmp_path)
    ok(shell("link", lake, "--max-error", "0.2", "--min-values", "5"))
    assert shown(shell) == ["a.csv[x] in b.csv[y]", "b.csv[y] in a.csv[x]"]
    assert "a.csv[x] in b.csv[y]  misses 1 value, coverage 1" in ok(shell("show")).out
    told = {d["dependent"]["table"]: d["error"] for d in ok(shell("show", "--json")).json()["dependencies"]}
    assert told == {"a.csv": 0.2, "b.csv": 0.0}
    assert "4 of 5 values match, all of the 4 referenced ones" in ok(shell("joins", "a.csv")).out


def test_how_files_are_read(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    lake = files(tmp_path / "lake", {"a.csv": "x+y\nz+w\n", "b.csv": "z\nx\nq\n"})
    ok(shell("link", lake, "--no-header", "--delimiter", "+"))
    assert shown(shell) == ["a.csv[column_1] in b.csv[column_1]"]
    document = {"who": "mine", "h": ["p"], "body": [[{"v": "x"}], [{"v": "z"}]]}
    file = shell.file("t.jsonl", json.dumps(document))
    fields = ["--json-name", "who", "--json-headers", "h", "--json-rows", "body", "--json-text", "v"]
    told = ok(shell("link", "--add", file, *fields, "--json")).json()
    assert (told["n_tables"], told["n_inds"]) == (3, 4)
    assert "mine[p] in a.csv[column_1]" in shown(shell)
    (tmp_path / "latin.csv").write_bytes("ä\nx\n".encode("utf-16-le"))
    ok(shell("link", "--anew", str(tmp_path / "latin.csv"), "--encoding", "utf-16-le"))
    assert ok(shell("joins", "latin.csv.ä", "--json")).json()["column"] == "ä"


# --- joins ------------------------------------------------------------------------------------------------


def test_joins(shell: Shell) -> None:
    headline, *rest = ok(shell("joins", "customers.csv")).out.splitlines()
    assert headline == "2 joins with customers.csv (version 1)"
    scores = [line.split()[0] for line in rest[::3]]
    assert all(re.fullmatch(r"0\.\d\d", score) for score in scores)
    assert rest == [
        f"  {scores[0]}  city -> cities.csv[city]",
        "        all 2 values match, 66.7% of the 3 referenced ones; these are unique",
        "        both have: Oslo | Rome",
        f"  {scores[1]}  name <- sales/orders.csv[customer]",
        "        all 2 values match, 66.7% of the 3 referenced ones; these are unique",
        "        both have: ann | bob",
    ]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["customers.csv"], {CITY, CUSTOMER}),
        (["customers.csv.city"], {CITY}),
        (["customers.csv[name]"], {CUSTOMER}),
        (["orders.csv"], {CUSTOMER}),
        (["customers.csv", "--direction", "out"], {CITY}),
        (["customers.csv", "--direction", "in"], {CUSTOMER}),
        (["customers.csv", "--min-score", "0.99"], set()),
        (["alone.csv"], set()),
        (["customers.csv.rank"], set()),
    ],
)
def test_joins_as_json(shell: Shell, options: list[str], found: set[str]) -> None:
    told = ok(shell("joins", *options, "--json")).json()
    sides = [(j["dependent"], j["referenced"]) for j in told["joins"]]
    assert {f"{a['table']}[{a['column']}] in {b['table']}[{b['column']}]" for a, b in sides} == found
    assert (told["version"], told["n_joins"]) == (1, len(found))
    for join in told["joins"]:
        assert 0 < join["score"] <= 1
        assert join["samples"]
    if not found:
        assert ok(shell("joins", *options)).out.startswith("nothing joins with ")


def test_the_best_joins(shell: Shell) -> None:
    told = ok(shell("joins", "customers.csv", "--top", "1", "--json")).json()
    assert (len(told["joins"]), told["n_joins"]) == (1, 2)
    assert (
        ok(shell("joins", "customers.csv", "--top", "1"))
        .out.rstrip()
        .endswith("more, with lower scores; see --top")
    )
    every = ok(shell("joins", "customers.csv", "--json")).json()["joins"]
    assert [j["score"] for j in every] == sorted((j["score"] for j in every), reverse=True)
    assert told["joins"] == every[:1]


# --- overlaps ---------------------------------------------------------------------------------------------


def test_overlaps_of_a_file(shell: Shell) -> None:
    file = shell.file("new.csv", "town,rank,who\nRome,1,\nOslo,7,-\nKiel,8,dan\n")
    assert ok(shell("overlaps", file)).out.splitlines() == [
        "5 overlaps of the file new.csv (version 1)",
        "  town: 3 values",
        "    2  cities.csv[city]  66.7% of the 3, 66.7% of the 3 there, Jaccard 0.5",
        "    2  customers.csv[city]  66.7% of the 3, all of the 2 there, Jaccard 0.667",
        "  rank: 3 values",
        "    1  customers.csv[rank]  33.3% of the 3, 33.3% of the 3 there, Jaccard 0.2",
        "    1  sales/orders.csv[n]  33.3% of the 3, 33.3% of the 3 there, Jaccard 0.2",
        "  who: 3 values",
        "    2  cities.csv[note]  66.7% of the 3, 66.7% of the 3 there, Jaccard 0.5",
    ]
    lines = ok(shell("overlaps", f"{file}.rank", "--top", "1")).out.splitlines()
    assert lines[1:] == [
        "  rank: 3 values",
        "    1  customers.csv[rank]  33.3% of the 3, 33.3% of the 3 there, Jaccard 0.2",
        "    the best 1; more with --top",
    ]
    assert ok(shell("overlaps", f"{file}[rank]", "--top", "1")).out.splitlines() == lines
    shell.file("new.csv", "town\nNowhere\n")
    assert ok(shell("overlaps", file)).out.splitlines() == [
        "0 overlaps of the file new.csv (version 1)",
        "  town: 1 value, none of which the lake has",
    ]
    shell.file("new.csv", "Rome;1\nOslo;2\n")
    told = ok(shell("overlaps", file, "--no-header", "--delimiter", ";", "--json")).json()
    assert [c["column"] for c in told["columns"]] == ["column_1", "column_2"]


def test_overlaps_of_a_table_of_the_lake(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file goes before a table of the lake, unless that is meant: it is not compared with itself."""

    def found(*args: str) -> list[str]:
        told = ok(shell("overlaps", *args, "--json")).json()
        assert (told["version"], told["table"]) == (1, "customers.csv")
        for o in told["overlaps"]:
            union = o["asked"]["n_values"] + o["n_other"] - o["shared"]
            assert o["containment"] == o["shared"] / o["asked"]["n_values"]
            assert (o["coverage"], o["jaccard"]) == (o["shared"] / o["n_other"], o["shared"] / union)
        return [
            f"{o['asked']['column']} {o['shared']} {o['other']['table']}[{o['other']['column']}]"
            for o in told["overlaps"]
        ]

    in_others = ["name 2 sales/orders.csv[customer]", "city 2 cities.csv[city]", "rank 3 sales/orders.csv[n]"]
    assert found("customers.csv") == in_others
    assert found("customers.csv.city") == in_others[1:2]
    monkeypatch.chdir(shell.folder / "lake")
    assert found("customers.csv", "--linked") == in_others
    assert found("customers.csv.city", "--linked") == in_others[1:2]
    assert found("customers.csv.city") == ["city 2 cities.csv[city]", "city 2 customers.csv[city]"]
    assert ok(shell("overlaps", "customers.csv.city")).out.startswith("2 overlaps of the file customers.csv ")
    assert ok(shell("overlaps", "orders.csv", "--linked")).out.startswith("2 overlaps of sales/orders.csv ")


@pytest.mark.ordinary_user
def test_overlaps_need_no_right_to_write(shell: Shell, tmp_path: Path) -> None:
    file = shell.file("new.csv", "town\nRome\n")
    everything = [shell.folder, *shell.folder.rglob("*")]
    for path in everything:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert "1  cities.csv[city]" in ok(shell("overlaps", file)).out
        assert "2  cities.csv[city]" in ok(shell("overlaps", "customers.csv.city")).out
    finally:
        for path in everything:
            path.chmod(0o755)


# --- show, log, verify ------------------------------------------------------------------------------------


def test_show(shell: Shell) -> None:
    lines = ok(shell("show")).out.splitlines()
    assert lines == [
        "2 inclusions (version 1)",
        f"  {CITY}  coverage 0.667",
        f"  {CUSTOMER}  coverage 0.667",
    ]
    assert ok(shell("show", "--kind", "ind")).out.splitlines() == lines
    assert shown(shell, "--table", "cities.csv") == [CITY]
    assert shown(shell, "--table", "customers.csv.name") == [CUSTOMER]
    assert shown(shell, "--table", "alone.csv") == []


def test_show_as_json(shell: Shell) -> None:
    told = ok(shell("show", "--kind", "ind", "--json", "--table", "cities.csv")).json()
    [ind] = told["dependencies"]
    assert told["version"] == 1
    assert 0 < ind.pop("score") < 1
    assert ind.pop("coverage") == pytest.approx(2 / 3)
    assert ind == {
        "kind": "ind",
        "dependent": {"table": "customers.csv", "columns": ["city"]},
        "referenced": {"table": "cities.csv", "columns": ["city"]},
        "error": 0.0,
    }
    assert len(ok(shell("show", "--json")).json()["dependencies"]) == 2
    assert ok(shell("show", "--json", "--table", "alone.csv")).json()["dependencies"] == []


def test_tables_beside_a_lake(shell: Shell) -> None:
    """What is tracked is shown as ever, and the lake in a few lines below it."""
    ok(shell("track", "people", shell.file("people.csv", "name,phone\nLee,1\nKim,2\nLee,3\n")))
    lines = ok(shell("show")).out.splitlines()
    assert lines[:2] == ["people: 3 rows, 1 minimal key (version 2)", "    1  phone"]
    assert "lake: 4 tables, 9 columns, 2 inclusions (version 2)" in lines
    assert ok(shell("show", "--table", "people")).out.splitlines() == lines[:2]
    assert "lake" not in ok(shell("show", "--kind", "ucc")).out
    assert shown(shell) == [CITY, CUSTOMER]
    assert [d["kind"] for d in ok(shell("show", "--json")).json()["dependencies"]] == ["ucc"]
    assert "lake" not in ok(shell("show", "--at", "2")).out
    told = ok(shell("link", "--drop", "alone.csv", "--json")).json()
    assert told["version"] == 3
    assert ok(shell("show", "--table", "people")).out.startswith("people: 3 rows, 1 minimal key (version 3)")
    assert [e["action"] for e in ok(shell("log", "--json")).json()["log"]] == ["link", "track", "link --drop"]
    ok(shell("verify"))
    ok(shell("drop", "people"))
    assert shown(shell) == [CITY, CUSTOMER]


def test_log(shell: Shell) -> None:
    ok(shell("link", "--drop", "alone.csv"))
    first, second = ok(shell("log")).out.splitlines()
    assert re.match(r"version 1 .* link the lake: 4 tables, 9 columns now, 2 inclusions", first)
    assert re.match(r"version 2 .* link --drop the lake: .*3 tables, 8 columns now, 2 inclusions", second)
    told = ok(shell("log", "--json")).json()
    assert [entry["n_tables"] for entry in told["log"]] == [4, 3]
    assert told["log"][1]["dropped"] == 1


def test_verify(shell: Shell) -> None:
    assert re.fullmatch(r"\d+ files, all as committed \(version 1\)\n", ok(shell("verify")).out)
    [path, *_] = sorted((shell.folder / "my.hold" / "lake").glob("postings-*"))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    outcome = shell("verify")
    assert outcome.code != 0
    assert path.name in outcome.err
    assert "Traceback" not in outcome.err


# --- errors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["link"], "no source is named"),
        (["link", "--anew", "nowhere"], "does not exist.*Nothing was applied"),
        (["link", "LAKE"], r"has a lake of 4 tables: add to it \(--add\)"),
        (["link", "--add"], "no source is named"),
        (["link", "--add", "nowhere"], "does not exist.*Nothing was applied"),
        (["link", "--add", "--anew", "LAKE"], "one of add, replace and anew"),
        (["link", "--add", "LAKE", "--tau", "0.5"], "fixed by the first link"),
        (["link", "--add", "LAKE", "--all-inds"], "fixed by the first link"),
        (["link", "--replace", "LAKE", "--trim"], "fixed by the first link"),
        (["link", "--add", "LAKE", "--max-error", "0.1"], "fixed by the first link"),
        (["link", "--add", "LAKE", "--null-value", "nil"], "fixed by the first link"),
        (["link", "--anew", "LAKE", "--tau", "2"], "tau is 2"),
        (["link", "--anew", "LAKE", "--max-error", "1"], "max_error is 1"),
        (["link", "--anew", "LAKE", "--no-filter", "nulls"], "no filter 'nulls'"),
        (["link", "--anew", "LAKE", "--no-filter", "null", "--all-inds"], "leave out --no-filter"),
        (["link", "--anew", "LAKE", "--proposer", "magic"], "magic"),
        (["link", "--anew", "LAKE", "--strategy", "magic"], "magic"),
        (["link", "--anew", "LAKE", "--delimiter", "abc"], "delimiter"),
        (["link", "--anew", "LAKE", "--encoding", "klingon"], "klingon"),
        (["link", "--drop", "alone.csv", "LAKE"], "without sources"),
        (["link", "--drop", "alone.csv", "--add"], "without sources"),
        (["link", "--drop", "aloen.csv"], "Did you mean 'alone.csv'"),
        (["link", "--drop", "cities.csv", "--drop", "nope"], "no table 'nope'"),
        (["joins"], "Missing argument"),
        (["joins", "custmers.csv"], "Did you mean 'customers.csv'"),
        (["joins", "customers.csv.cty"], "no column 'cty'.*Did you mean 'city'"),
        (["joins", "customers.csv", "--top", "0"], "top"),
        (["joins", "customers.csv", "--direction", "up"], "up"),
        (["overlaps"], "Missing argument"),
        (
            ["overlaps", "custmers.csv"],
            "no file 'custmers.csv', and the lake .* Did you mean 'customers.csv'",
        ),
        (["overlaps", "customers.csv.cty"], "no column 'cty'.*Did you mean 'city'"),
        (["overlaps", "customers.csv", "--top", "0"], "top"),
        (["overlaps", "LAKE"], "more than one table"),
        (["overlaps", "customers.csv", "--no-header"], "no file is read: leave out .*header"),
        (["show", "--table", "custmers.csv"], "Did you mean 'customers.csv'"),
        (["show", "--json", "--table", "custmers.csv"], "Did you mean 'customers.csv'"),
    ],
    ids=lambda arg: " ".join(arg) if isinstance(arg, list) else "",
)
def test_errors(linked: Path, args: list[str], told: str) -> None:
    """They say what to do, on standard error alone; nothing is applied."""
    shell, lake = Shell(linked), linked / "my.hold" / "lake"
    there = sorted(lake.iterdir())
    outcome = shell(*(str(shell.folder / "lake") if arg == "LAKE" else arg for arg in args))
    assert outcome.code == 2
    assert outcome.out == ""
    assert re.search(told, " ".join(outcome.err.split()))
    assert "Traceback" not in outcome.err
    assert version(shell) == 1
    assert sorted(lake.iterdir()) == there


@pytest.mark.parametrize(
    "args",
    [
        ["joins", "x"],
        ["overlaps", "x"],
        ["overlaps", "LAKE"],
        ["link", "--add", "LAKE"],
        ["link", "--replace", "LAKE"],
        ["link", "--drop", "x"],
    ],
)
def test_without_a_lake(tmp_path: Path, args: list[str]) -> None:
    shell = Shell(tmp_path)
    lake = files(tmp_path / "lake", FILES)
    given = [lake if arg == "LAKE" else arg for arg in args]
    outcome = shell(*given)  # not even a workspace
    assert outcome.code != 0
    assert not (tmp_path / "my.hold").exists()
    ok(shell("track", "people", shell.file("people.csv", "a\n1\n")))
    outcome = shell(*given)
    assert outcome.code != 0
    assert re.search(r"has no lake: link one first, with 'holdfast link", outcome.err)
    assert (outcome.out, version(shell)) == ("", 1)


def test_a_failed_first_link_leaves_no_lake(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    assert shell("link", str(tmp_path / "nowhere")).code == 2
    assert shell("joins", "x").code != 0
    ok(shell("link", files(tmp_path / "lake", FILES)))
    assert version(shell) == 1


# --- hostile names ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake whose names and values are all meant to fool a terminal."""
    folder = tmp_path_factory.mktemp("hostile")
    cell = EVIL.replace('"', '""')
    content = f'"{cell}","a"\n"{cell}",p\n"b",q\n'
    lake = files(folder / "lake", {EVIL: content, f"b{EVIL}": content, f"bad{EVIL}": '"never closed'})
    outcome = Shell(folder)("link", lake)
    assert outcome.code == 0
    (folder / "told.txt").write_text(outcome.out, encoding="utf-8")
    return folder


def clean(text: str) -> bool:
    return not any(raw in text for raw in RAW) and text.isascii() | all(
        c.isprintable() or c == "\n" for c in text
    )


def test_hostile_names_are_only_text(hostile: Path, tmp_path: Path) -> None:
    shutil.copytree(hostile, tmp_path / "work")
    shell = Shell(tmp_path / "work")
    assert clean((hostile / "told.txt").read_text(encoding="utf-8"))
    assert "1 file was left out" in (hostile / "told.txt").read_text(encoding="utf-8")
    outputs: list[Any] = [
        ["show"],
        ["show", "--kind", "ind", "--table", EVIL],
        ["joins", EVIL],
        ["joins", f"{EVIL}.{EVIL[:-4]}"],
        ["overlaps", EVIL],
        ["overlaps", str(shell.folder / "lake" / EVIL)],
        ["log"],
        ["verify"],
    ]
    for args in outputs:
        outcome = shell(*args)
        assert clean(outcome.out), args
        assert clean(outcome.err), args
    assert "4 joins with" in shell("joins", EVIL).out
    for args in (["joins", f"no{EVIL}"], ["link", "--drop", f"no{EVIL}"], ["link", "--anew", f"no{EVIL}"]):
        outcome = shell(*args)
        assert outcome.code == 2
        assert clean(outcome.err), args
    names = {d["dependent"]["table"] for d in ok(shell("show", "--json")).json()["dependencies"]}
    assert names == {EVIL, f"b{EVIL}"}
    told = ok(shell("joins", EVIL, "--json")).json()
    assert told["table"] == EVIL
    assert EVIL in {sample for join in told["joins"] for sample in join["samples"]}
    dropped = ok(shell("link", "--drop", f"b{EVIL}", "--json")).json()
    assert dropped["n_tables"] == 1
    assert clean(ok(shell("show")).out)


# --- what is imported -------------------------------------------------------------------------------------

READING = [
    ["show"],
    ["show", "--kind", "ind", "--json"],
    ["show", "--table", "cities.csv"],
    ["joins", "customers.csv"],
    ["joins", "customers.csv.city", "--json"],
    ["overlaps", "customers.csv"],
    ["log"],
    ["verify"],
]


def test_reading_imports_neither_spark_nor_numba_nor_pandas(linked: Path) -> None:
    """All reading commands in one process: each would be seen."""
    code = (
        "import sys\n"
        "from holdfast.app.cli import main\n"
        "given = sys.argv\n"
        f"for command in {READING!r}:\n"
        "    sys.argv = [*given, *command]\n"
        "    try:\n        main()\n"
        "    except SystemExit as end:\n        assert not end.code, command\n"
        "print([m for m in ('pyspark', 'numba', 'pandas') if m in sys.modules], file=sys.stderr)\n"
    )
    outcome = Shell(linked).process(code=code)
    assert (outcome.code, outcome.err) == (0, "[]\n")
    assert outcome.out.count(CITY) == 2
    assert "all as committed" in outcome.out
