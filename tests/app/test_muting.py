"""What is muted: counted in every report, listed for programs, and never proposed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import holdfast
from app.shell import Shell
from holdfast import Side
from holdfast.errors import ConflictError, UnknownColumnError, UsageError

ORDERS = "id,zip,city,person_id\n" + "".join(f"{i},z{i % 4},{'xy'[i % 2]},{1 + i % 3}\n" for i in range(40))
PEOPLE = "person_id,name\n" + "".join(f"{i},n{i}\n" for i in range(1, 8))
LINK = "orders[person_id] -> people[person_id]"
BROKEN = "id,zip,city,person_id\n40,z0,y,9\n0,z1,y,1\n"
INCLUSION = "orders[person_id] in people[person_id]"


@pytest.fixture
def shop(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    files = [shell.file("orders.csv", ORDERS), shell.file("people.csv", PEOPLE)]
    assert shell("track-all", *files, "--kinds", "ucc,fd,ind,row,profile").code == 0
    return shell


def lists(report: str, text: str) -> bool:
    """Whether a dependency has a line of a report."""
    return any(re.match(rf"\s+(\d+\s+)?{re.escape(text)}(\s|$)", line) for line in report.splitlines())


def muted(shop: Shell) -> list[str]:
    with holdfast.open(shop.folder / "my.hold", engine="inline") as ws:
        return [str(m) for m in ws.muted()]


def test_the_commands(shop: Shell) -> None:
    assert shop("muted").out == "nothing is muted (version 1)\n"
    assert shop("mute", "orders", "zip -> city", "--reason", "few zips").out == (
        "muted orders: zip -> city (reason: few zips) (version 2)\n"
    )
    document = shop("mute", "orders", "person_id", "--in", "people.person_id", "--json").json()
    assert (document["muted"], document["version"], document["reason"]) == (True, 3, "")
    assert document["dependency"]["dependent"] == {"table": "orders", "columns": ["person_id"]}
    # Again it is as it was, unless there is another reason.
    assert shop("mute", "orders", "zip -> city").out.endswith("(reason: few zips) (version 3)\n")
    assert shop("mute", "orders", "zip -> city", "--reason", "so").out.endswith("(reason: so) (version 4)\n")
    listed = shop("muted", "--json").json()
    assert [m["reason"] for m in listed["muted"]] == ["", "so"]
    assert shop("muted", "people").out == "nothing is muted (version 4)\n"
    assert shop("mute", "orders", "zip -> city", "--remove").out.startswith("no longer muted: orders: zip")
    assert muted(shop) == [INCLUSION]
    log = shop("log").out
    assert "mute orders: zip -> city" in log
    assert f"mute orders: {INCLUSION}" in log
    assert "unmute orders: zip -> city" in log
    for arguments in (["orders"], ["orders", "zip -> nothing"], ["orders", "id", "--remove"]):
        assert shop("mute", *arguments).code == 2
    assert shop("mute", "orders", "zip", "--remove", "--reason", "x").code == 2


@pytest.mark.parametrize("command", ["check", "apply"])
def test_the_report_of_a_batch_counts_it(shop: Shell, command: str) -> None:
    inserts = shop.file("broken.csv", BROKEN)
    loud = shop("check", "orders", "--inserts", inserts)
    for text in (INCLUSION, "zip -> city", "[id]"):
        assert lists(loud.out, text)
    shop("mute", "orders", "zip -> city")
    shop("mute", "orders", "person_id", "--in", "people.person_id")
    shop("mute", "orders", "id")
    document = shop("check", "orders", "--inserts", inserts, "--json").json()
    told = {(c["role"], c["muted"]) for c in document["changes"]}
    assert ("muted", True) in told
    assert all(is_muted == (role == "muted") for role, is_muted in told)
    broke = [c for c in document["changes"] if c["change"] == "broke"]
    assert sum(c["muted"] for c in broke) == 3
    with holdfast.open(shop.folder / "my.hold", engine="inline") as ws:
        lines = str(ws.check("orders", inserts=inserts)).splitlines()
    assert "  ... and 3 muted would break" in lines
    report = shop(command, "orders", "--inserts", inserts).out
    for text in (INCLUSION, "zip -> city", "[id]"):
        assert not lists(report, text)
    assert "foreign key" not in report
    verb = "would break" if command == "check" else "broke"
    assert f"  {verb}: 1 key, muted; all with --json\n" in report
    if command == "apply":
        log = shop("log").out.partition("apply orders")[2].splitlines()[1:]
        names = [name.partition(" ...")[0] for line in log for name in line.partition(": ")[2].split("; ")]
        assert not {INCLUSION, "zip -> city", "[id]"} & {*names}
        assert sum(line.endswith(("and 1 muted", ": 1 muted")) for line in log) == 3
        history = shop("log", "--kind", "fd").out
        assert not any(line.endswith("  zip -> city") for line in history.splitlines())
        assert "... and 1 muted" in history


def test_lists_count_it(shop: Shell) -> None:
    kinds_told = ("ucc", "fd", "ind", "row", "profile")
    before = {kind: shop("show", "--kind", kind, "--all").out.splitlines() for kind in kinds_told}
    document = shop("show", "--json").json()
    assert not any(d["muted"] for d in document["dependencies"])
    kinds: dict[str, int] = {}
    with holdfast.open(shop.folder / "my.hold", engine="inline") as ws:
        for kind in before:
            listed = ws.dependencies(kind)
            kinds[kind] = len(listed)
            for dependency in listed[:2]:
                ws.mute(dependency.table, dependency)
    for kind, lines in before.items():
        now = shop("show", "--kind", kind, "--all").out.splitlines()
        n_muted = min(2, kinds[kind])
        # The same numbers in the headings, but for what the log counts; the lists are as much shorter.
        told = [
            line for line in now if line.startswith("  ... and ") and line.endswith("muted; all with --json")
        ]
        assert sum(int(line.split()[2]) for line in told) == n_muted, kind
        assert len(now) - len(told) == len(lines) - n_muted, kind
    document = shop("show", "--json").json()
    of_muted = [d for d in document["dependencies"] if d["muted"]]
    assert len(of_muted) == sum(min(2, n) for n in kinds.values())
    assert {d["role"] for d in of_muted} == {"muted"}


def test_a_ranking_leaves_it_out(shop: Shell) -> None:
    first = shop("show", "--top", "1", "--json").json()["dependencies"]
    [best] = [d for d in first if d["table"] == "orders"]
    shop("mute", "orders", f"{', '.join(best['lhs'])} -> {best['rhs']}")
    [other] = [
        d for d in shop("show", "--top", "1", "--json").json()["dependencies"] if d["table"] == "orders"
    ]
    assert (other["lhs"], other["rhs"]) != (best["lhs"], best["rhs"])
    assert "... and 1 muted" in shop("show", "--top", "1").out


def test_it_is_no_primary_key_and_no_reference(shop: Shell) -> None:
    assert LINK in shop("links").out
    assert 'PRIMARY KEY ("id")' in shop("export", "--format", "sql").out
    suggested = shop("pin", "--suggested", "--dry-run").out
    assert INCLUSION in suggested
    for arguments in (
        ["orders", "id"],
        ["orders", "person_id", "--in", "people.person_id"],
        ["people", "name is not null"],
    ):
        assert shop("mute", *arguments).code == 0
    assert LINK not in shop("links", "--all").out
    sql = shop("export", "--format", "sql").out
    assert "REFERENCES" not in sql
    assert '("id")' not in sql
    suggested = shop("pin", "--suggested", "--dry-run").out
    for text in (INCLUSION, "orders[id]", "name is not null"):
        assert text not in suggested
    roles = {d["role"] for d in shop("show", "--json").json()["dependencies"]}
    assert "foreign key" not in roles


def test_pinning_unmutes_and_says_so(shop: Shell) -> None:
    shop("mute", "orders", "zip -> city", "--reason", "few zips")
    told = shop("pin", "orders", "not(t.zip = s.zip and t.city != s.city)").out
    assert "it was muted, and is no longer: orders: zip -> city (reason: few zips)" in told
    assert muted(shop) == []
    refused = shop("mute", "orders", "zip -> city")
    assert (refused.code, "is pinned" in refused.err, "--remove" in refused.err) == (2, True, True)
    shop("mute", "orders", "id")
    document = shop("pin", "orders", "id", "--json").json()
    assert [m["dependency"]["columns"] for m in document["unmuted"]] == [["id"]]


def test_the_file_for_people_counts_it(shop: Shell) -> None:
    shop("mute", "orders", "zip -> city")
    shop("apply", "orders", "--inserts", shop.file("broken.csv", BROKEN))
    html = shop("report").out
    assert "and 1 muted" in html
    assert "<code>zip -&gt; city</code>" not in html


# --- How long it lasts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["orders", "people"])
def test_an_inclusion_goes_with_either_table(shop: Shell, table: str) -> None:
    shop("mute", "orders", "person_id", "--in", "people.person_id")
    shop("mute", "orders", "zip -> city")
    shop("mute", "people", "name")
    assert shop("drop", table).code == 0
    assert muted(shop) == (["[name]"] if table == "orders" else ["zip -> city"])
    file = shop.file("again.csv", ORDERS if table == "orders" else PEOPLE)
    assert shop("track", table, file, "--kinds", "ucc,fd,ind").code == 0
    assert INCLUSION not in muted(shop)


def test_it_comes_again_as_it_was(shop: Shell) -> None:
    """Muted before it holds, while it does not, and when it does again."""
    shop("apply", "orders", "--inserts", shop.file("broken.csv", BROKEN))
    shop("mute", "orders", "zip -> city")
    assert not lists(shop("show").out, "zip -> city")
    report = shop("apply", "orders", "--deletes", shop.file("broken.csv", BROKEN)).out
    assert not lists(report, "zip -> city")
    assert muted(shop) == ["zip -> city"]
    with holdfast.open(shop.folder / "my.hold", engine="inline") as ws:
        ws.merge("orders")
        assert [str(m) for m in ws.muted(at=3)] == ["zip -> city"]
        assert ws.muted(at=2) == []
        for question, error in (("zip -> nothing", UnknownColumnError), ("zip ~ city", UsageError)):
            with pytest.raises(error):
                ws.mute("orders", question)
        with pytest.raises(UsageError, match="2 columns on its left side and 1 on its right one"):
            ws.mute("orders", ["zip", "city"], Side("people", ("person_id",)))
        assert [str(m) for m in ws.muted()] == ["zip -> city"]


@pytest.mark.parametrize("question", ["zip -> city", ["id"], "person_id > 0"])
def test_of_two_writers_one_is_told(shop: Shell, question: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = shop.folder / "my.hold"
    with holdfast.open(path, engine="inline") as one, holdfast.open(path, engine="inline") as other:
        append = one.writer.append

        def late(*arguments: Any) -> int:
            other.pin("orders", ["person_id"])
            return append(*arguments)

        monkeypatch.setattr(one.writer, "append", late)
        with pytest.raises(ConflictError):
            one.mute("orders", question)
        monkeypatch.undo()
        assert one.muted() == other.muted() == []
        assert str(one.mute("orders", question)) in muted(shop)
