"""What matters comes first, everywhere: in the report of a batch, its JSON, lists, the log and the page.

A video shop: every table counts its rows from one, so that nearly every column of ids is included in longer
ones, and one rental of a customer that is not there breaks many inclusions, of which one was meant.
"""

from __future__ import annotations

import io
import shutil
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

import holdfast
from app.shell import Shell
from holdfast.app.explorer.api import Explorer
from holdfast.app.report.chance import CHANCE_SHOWN
from holdfast.app.report.log import print_log
from holdfast.app.report.paper import Paper
from holdfast.app.report.texts import dependency_text
from holdfast.core.store.change_log import LogEntry
from holdfast.core.store.ledger_rows import ChangeRow
from holdfast.core.words.dependency import Ind, Side, Ucc
from holdfast.core.words.ranks import Rank
from holdfast.order import Order

FOREIGN_KEY = "rental[customer_id] in customer[customer_id]"
ORPHAN = "rental_id,customer_id,film_id,day,rate\n901,999,3,2024-03-01,1.50\n"


def csv(header: str, rows: list[tuple[Any, ...]]) -> str:
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Customers 1..100 in films 1..150 in rentals 1..900; days and rates that are a key by chance."""
    random, folder = Random(11), tmp_path_factory.mktemp("videos")
    shell = Shell(folder)
    who = [*range(1, 101), *(random.randint(1, 100) for _ in range(800))]
    rentals = [
        (i + 1, c, random.randint(1, 150), f"2024-01-{1 + i % 28:02}", f"{1 + (i // 28) / 4:.2f}")
        for i, c in enumerate(who)
    ]
    films = [(i, f"film {i}", random.randint(60, 140)) for i in range(1, 151)]
    files = [
        shell.file("customer.csv", csv("customer_id,name", [(i, f"n{i % 80}") for i in range(1, 101)])),
        shell.file("film.csv", csv("film_id,title,length", films)),
        shell.file("rental.csv", csv("rental_id,customer_id,film_id,day,rate", rentals)),
    ]
    assert shell("track-all", *files, "--kinds", "ucc,fd,ind", "--max-lhs", "2").code == 0
    return folder


@pytest.fixture
def shop(tracked: Path, tmp_path: Path) -> Shell:
    return Shell(Path(shutil.copytree(tracked, tmp_path / "work")))


def names(changes: list[dict[str, Any]]) -> list[str]:
    return [dependency_text(c["dependency"], with_table=False) for c in changes]


def told(document: dict[str, Any]) -> list[tuple[str, str]]:
    events = [c["change"] for c in document["changes"]]
    return list(zip(events, names(document["changes"]), strict=True))


def listed(report: str, texts: list[str]) -> list[str]:
    """Those of some dependencies that have a line of a report, in its order."""
    starts = [line.strip() for line in report.splitlines() if line.startswith("    ")]
    found = [next((t for t in texts if line == t or line.startswith(t + " ")), None) for line in starts]
    return [t for t in found if t is not None]


def log_lines(changes: list[dict[str, Any]]) -> list[str]:
    """The lines of the log, by the changes as programs are told them: each event and kind where its first
    change stands, five names of what is no accident, and how many others there are."""
    lines = []
    for event in dict.fromkeys(c["change"] for c in changes):
        of_event = [c for c in changes if c["change"] == event]
        for kind in dict.fromkeys(c["dependency"]["kind"] for c in of_event):
            of_kind = [c for c in of_event if c["dependency"]["kind"] == kind]
            meant = names([c for c in of_kind if c["role"] != "chance"])
            parts = [(" " if kind == "ucc" else "; ").join(meant[:5])] if meant else []
            if len(meant) > 5:
                parts.append(f"{len(meant) - 5} more")
            if len(of_kind) > len(meant):
                what = "between id ranges" if kind == "ind" else "that may be chance"
                parts.append(f"{len(of_kind) - len(meant)} {what}")
            title = (
                f"implied by a narrower {'key' if kind == 'ucc' else 'one'}" if event == "implied" else event
            )
            lines.append(f"    {title}: {' ... and '.join(parts)}")
    return lines


@pytest.mark.parametrize("command", ["check", "apply"])
def test_one_orphan_and_the_foreign_key_is_the_first_line(shop: Shell, command: str) -> None:
    report = shop(command, "rental", "--inserts", shop.file("o.csv", ORPHAN)).out.splitlines()
    verb = "would break" if command == "check" else "broke"
    assert report[1] == f"  {verb}: 1 foreign key"
    assert report[2] == f"    {FOREIGN_KEY} misses 1 value in 1 row: 999"
    # What broke with it is counted: not one of the other ranges of ids is listed.
    others = [line for line in report[3:] if " in " in line and "[customer_id]" in line]
    assert others == []
    counted = [line for line in report if "between id ranges" in line]
    assert len(counted) == 1


def test_programs_are_told_in_the_order_of_the_text(shop: Shell) -> None:
    inserts = shop.file("o.csv", ORPHAN)
    report = shop("check", "rental", "--inserts", inserts).out
    document = shop("check", "rental", "--inserts", inserts, "--json").json()
    broke = [c for c in document["changes"] if c["change"] == "broke"]
    assert (names(broke)[0], broke[0]["role"]) == (FOREIGN_KEY, "foreign key")
    assert {c["role"] for c in broke} >= {"foreign key", "chance"}
    in_text = listed(report.partition("would appear")[0], names(broke))
    assert in_text
    assert in_text == [name for name in names(broke) if name in in_text]
    # What is not listed is what looks like chance, or follows from a key of the report.
    meant = [c for c in broke if c["role"] != "chance" and c["dependency"]["kind"] != "fd"]
    assert set(names(meant)) <= set(in_text)
    applied = shop("apply", "rental", "--inserts", inserts, "--json").json()
    assert told(applied) == told(document)
    log = shop("log", "--json").json()["log"][-1]["changes"]
    assert names(log) == names(applied["changes"])
    assert [c["role"] for c in shop("log", "--json").json()["log"][-1]["changes"]] == [
        c["role"] for c in applied["changes"]
    ]
    lines = shop("log").out.splitlines()[
        -len({(c["change"], c["dependency"]["kind"]) for c in applied["changes"]}) :
    ]
    assert lines == log_lines(applied["changes"])
    n_chance = sum(c["role"] == "chance" and c["dependency"]["kind"] == "ind" for c in broke)
    assert lines[0] == f"    broke: {FOREIGN_KEY} ... and {n_chance} between id ranges"
    with holdfast.open(shop.folder / "my.hold", engine="inline") as ws:
        newest = Explorer(ws).answer("workspace/log", {})["entries"][0]["changes"]
    assert [c["text"] for c in newest] == names(log)


def test_a_change_prints_what_matters(shop: Shell) -> None:
    with holdfast.open(shop.folder / "my.hold", engine="inline") as ws:
        lines = str(ws.check("rental", inserts=shop.file("o.csv", ORPHAN))).splitlines()
    assert lines[1] == f"  would break: {FOREIGN_KEY} misses 1 value in 1 row: 999"
    assert sum("[customer_id] in " in line for line in lines) == 1
    assert any(line.endswith(" more would break") for line in lines)


def test_show_counts_what_looks_like_chance(shop: Shell) -> None:
    document = shop("show", "--json").json()["dependencies"]
    for kind, says in (("ind", "inclusions between id ranges"), ("ucc", "keys that may be chance")):
        those = [d for d in document if d["kind"] == kind and (kind == "ind" or d["table"] == "rental")]
        meant = [d for d in those if d["role"] != "chance"]
        assert len(meant) < len(those) - 1
        asked = ["show", "--kind", kind, *([] if kind == "ind" else ["--table", "rental"])]
        head, *lines, last = shop(*asked).out.splitlines()
        everything = shop(*asked, "--all").out.splitlines()
        assert (head, lines) == (everything[0], everything[1 : len(meant) + 1])
        assert last == f"  ... and {len(those) - len(meant)} {says}; all with 'holdfast show --all'"
        assert len(everything) == len(those) + 1


def test_show_lists_some_chance_if_there_is_nothing_else(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    for name in ("apes", "bees", "cats"):
        rows = "".join(f"{n},{n % 3}\n" for n in range(1, 30))
        source = shell.file(f"{name}.csv", f"{name[0]}x,{name[0]}y\n{rows}")
        assert shell("track", name, source, "--kinds", "ind").code == 0
    inds = [d for d in shell("show", "--json").json()["dependencies"] if d["kind"] == "ind"]
    assert {d["role"] for d in inds} == {"chance"}
    lines = shell("show", "--kind", "ind").out.splitlines()
    assert len(inds) > CHANCE_SHOWN
    assert len(lines) == 1 + CHANCE_SHOWN + 1


def test_lists_have_one_order_too(shop: Shell) -> None:
    text = shop("show", "--kind", "ind", "--all").out.splitlines()
    assert text[0].endswith("inclusions, 2 foreign keys first (version 1)")
    foreign = {line.split("  ")[1] for line in text[1:3]}
    assert foreign == {FOREIGN_KEY, "rental[film_id] in film[film_id]"}
    document = shop("show", "--json").json()["dependencies"]
    inds = [d for d in document if d["kind"] == "ind"]
    assert [line.split("  ")[1] for line in text[1:]] == [dependency_text(d) for d in inds]
    places = [Rank(d["role"], d["score"]).place() for d in inds]
    assert all(a <= b for a, b in pairwise(places))
    keys = [d for d in document if d["kind"] == "ucc" and d["table"] == "rental"]
    assert (keys[0]["columns"], keys[0]["role"]) == (["rental_id"], "primary key")
    shown = shop("show", "--kind", "ucc", "--table", "rental", "--all").out.splitlines()[1:]
    assert [line.split(maxsplit=1)[1] for line in shown] == [", ".join(k["columns"]) for k in keys]
    with holdfast.open(shop.folder / "my.hold", engine="inline") as ws:
        told = Explorer(ws).answer("workspace/dependencies", {"kind": "ind", "table": "rental"})
        ranked = ws.dependencies("ind", "rental", ranked=True)
        everything = ws.dependencies("ind", ranked=True)
    assert [d["text"] for d in told["dependencies"]] == [str(d) for d in ranked]
    assert [dependency_text(d) for d in inds] == [str(d) for d in everything]


def test_an_older_log_has_no_roles(shop: Shell) -> None:
    """Nothing is taken for an accident then; the order is that of the changes."""
    at = datetime(2024, 1, 1, tzinfo=UTC)
    rows = [
        ChangeRow("t", "ind", "broke", Ind(Side("t", ("a",)), Side("u", (name,))).to_dict(), role=role)
        for name, role in (("x", None), ("y", "chance"), ("z", None))
    ]
    rows.insert(1, ChangeRow("t", "ucc", "broke", Ucc("t", ("k",)).to_dict(), role=None))
    rows.append(ChangeRow("t", "ucc", "appeared", Ucc("t", ("a", "b")).to_dict(), role="chance"))
    file = io.StringIO()
    print_log(Paper(file), [LogEntry(2, at, ("t",), "apply", None, ({},), tuple(rows))])
    assert file.getvalue().splitlines()[1:] == [
        "    broke: t[a] in u[x]; t[a] in u[z] ... and 1 between id ranges",
        "    broke: [k]",
        "    appeared: [a, b]",  # there is nothing else
    ]


def test_pins_come_first(shop: Shell) -> None:
    """Even one of an accident: somebody relies on it."""
    assert shop("pin", "rental", "customer_id", "--in", "film.film_id").code == 0
    checked = shop("check", "rental", "--inserts", shop.file("o.csv", ORPHAN))
    pinned = "rental[customer_id] in film[film_id]"
    assert checked.out.splitlines()[1] == f"  pinned {pinned}: WOULD NOT HOLD"
    document = shop("check", "rental", "--inserts", shop.file("o.csv", ORPHAN), "--json").json()
    first, second = document["changes"][:2]
    assert (names([first])[0], first["role"]) == (pinned, "pinned")
    assert FOREIGN_KEY in names(document["changes"])
    assert second["change"] == "broke"
    shown = shop("show", "--kind", "ind").out.splitlines()
    assert shown[1] == f"  pinned {pinned}: holds"
    assert shown[2].startswith(f"  {pinned}  ")


def test_a_pinned_foreign_key_is_told_as_a_foreign_key(shop: Shell) -> None:
    """What is pinned comes first of its section, and is counted in it."""
    for column, other in (("customer_id", "customer.customer_id"), ("rental_id", "film.film_id")):
        shop("pin", "rental", column, "--in", other)
    shop("pin", "rental", "rental_id")
    orphans = shop.file("o.csv", ORPHAN + "1,7,777,2024-03-01,1.50\n")
    for command in ("check", "apply"):
        done = shop(command, "rental", "--inserts", orphans)
        titles = [line for line in done.out.splitlines() if line.startswith(("  broke", "  would break"))]
        assert [title.split(": ")[1] for title in titles][:2] == ["2 foreign keys", "1 primary key"]
        lines = done.out.splitlines()
        assert lines[lines.index(titles[0]) + 1].startswith(f"    {FOREIGN_KEY} misses 1 value")
    shown = shop("show", "--kind", "ind").out
    assert "foreign key" not in shown.splitlines()[0]  # both have orphans now


def test_a_pinned_change_tells_both_its_roles(shop: Shell) -> None:
    shop("pin", "rental", "customer_id", "--in", "customer.customer_id")
    assert shop("show", "--kind", "ind").out.splitlines()[0].endswith("2 foreign keys first (version 2)")
    first, *others = shop("check", "rental", "--inserts", shop.file("o.csv", ORPHAN), "--json").json()[
        "changes"
    ]
    assert (names([first]), first["role"], first["unpinned"]) == ([FOREIGN_KEY], "pinned", "foreign key")
    assert all("unpinned" not in change for change in others)


def test_a_primary_key_stands_above_the_other_keys(shop: Shell) -> None:
    twice = shop.file("t.csv", "rental_id,customer_id,film_id,day,rate\n1,1,1,2024-01-01,1.00\n")
    report = shop("check", "rental", "--inserts", twice).out.splitlines()
    assert report[1] == "  would break: 1 primary key"
    assert report[2] == "    [rental_id] is no longer unique:"
    assert "  would break: 1 key that may be chance; all with --json" in report  # of days and rates


def test_a_column_that_is_mostly_null_is_no_primary_key(tmp_path: Path) -> None:
    """Where NULLs are distinct it is unique; it tells rows apart that have a value."""
    shell = Shell(tmp_path)
    rows = [(f"V{i}" if i % 30 == 0 else "", f"n{i % 120}", i % 2) for i in range(300)]
    file = shell.file("member.csv", csv("voucher,name,town", rows))
    assert shell("track", "member", file, "--kinds", "ucc", "--nulls", "distinct").code == 0
    [key, *_] = shell("show", "--json").json()["dependencies"]
    assert (key["columns"], key["role"]) == (["voucher"], "dependency")
    assert "looks like the primary key" not in shell("pin", "--suggested", "--dry-run").out
    assert "UNIQUE" not in shell("export", "--format", "sql").out
    # In a table without the other rows it is as good a key as any.
    valued = [(f"V{i}", *row[1:]) for i, row in enumerate(rows)]
    file = shell.file("valued.csv", csv("voucher,name,town", valued))
    assert shell("track", "valued", file, "--kinds", "ucc", "--nulls", "distinct").code == 0
    [key, *_] = shell("show", "valued", "--json").json()["dependencies"]
    assert (key["columns"], key["role"]) == (["voucher"], "primary key")


def test_if_there_is_nothing_but_chance_some_of_it_is_shown(shop: Shell) -> None:
    twice = shop.file("t.csv", "rental_id,customer_id,film_id,day,rate\n901,1,1,2024-01-01,1.00\n")
    report = shop("check", "rental", "--inserts", twice).out.splitlines()
    assert report[1:3] == ["  would break: 1 key", "    [day, rate] is no longer unique:"]


def test_reports_choose_as_links_does(shop: Shell) -> None:
    """Without a look at rows, by the state before the batch."""
    with holdfast.open(shop.folder / "my.hold", engine="inline") as ws:
        proposed = {(k.dependent, k.referenced) for k in ws.inds.links().links if k.chosen}
        inds = [d for d in ws.dependencies("ind") if isinstance(d, Ind)]
        ranks = ws.readers.order(None).ranks(inds)
    roles = [rank.role for rank in ranks]
    chosen = {(d.dependent, d.referenced) for d, r in zip(inds, roles, strict=True) if r == "foreign key"}
    assert chosen == proposed
    assert (Side("rental", ("customer_id",)), Side("customer", ("customer_id",))) in chosen


def test_the_order_reads_no_rows(shop: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of lists, nor of reports: and where nothing changed nothing is weighed."""
    with holdfast.open(shop.folder / "my.hold", engine="inline") as ws:

        def opened(*_: object) -> None:
            raise AssertionError("rows are looked at")

        with monkeypatch.context() as patch:
            patch.setattr(type(ws._tables), "rows", opened)
            assert len(ws.dependencies(ranked=True)) == len(ws.dependencies())
        monkeypatch.setattr(Order, "ranks", opened)
        assert ws.check("customer", inserts=shop.file("c.csv", "customer_id,name\n")).changes == ()


def test_row_rules_that_say_little_are_only_counted(tmp_path: Path) -> None:
    """Whether there is anything else or not; and what broke was far apart while it held."""
    shell = Shell(tmp_path)
    rows = [(product, status, code, price, 10 * price) for product, status, code, price in
            (("a", "open", "x1", 10), ("b", "done", "x2", 20), ("c", "open", "x3", 30))]  # fmt: skip
    source = shell.file("o.csv", csv("product,status,code,price,qty", rows))
    tracked = shell("track", "o", source, "--kinds", "row").out.splitlines()
    little = "row rules with != or between columns whose values are far apart"
    assert tracked[1:] == [f"  new: 4 {little}; see them with 'holdfast show --kind row'"]
    odd = shell.file("i.csv", csv("product,status,code,price,qty", [("open", "open", "x1", 1000, 100)]))
    applied = shell("apply", "o", "--inserts", odd).out.splitlines()
    assert applied[1] == f"  broke: 2 {little}; all with --json"
    assert {c["role"] for c in shell("log", "--json").json()["log"][-1]["changes"]} == {"chance"}


def test_what_was_far_apart_comes_behind_what_was_not(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    rows = [(i, i + i % 3, 1000 + i) for i in range(1, 30)]
    source = shell.file("p.csv", csv("low,high,volume", rows))
    shell("track", "p", source, "--kinds", "row")
    odd = shell.file("i.csv", csv("low,high,volume", [(9, 8, 5)]))
    checked = shell("check", "p", "--inserts", odd).out.splitlines()
    assert checked[1] == "  would break: 3 row rules"
    assert checked[2].startswith("    low <= high does not hold any more")
    assert any(line.startswith("    ... and 2 row rules with != or between columns") for line in checked)


def test_one_duplicate_of_a_key_is_not_told_as_many_new_keys(tmp_path: Path) -> None:
    """What is left of a key that broke is counted, then and when it breaks again."""
    shell, random, header = Shell(tmp_path), Random(3), "id,status,code,city,qty"
    rows = [(i, random.choice("ab"), random.randint(1, 60), random.choice("ABC"), random.randint(1, 9))
            for i in range(1, 401)]  # fmt: skip
    shell("track", "t", shell.file("t.csv", csv(header, rows)), "--kinds", "ucc,fd")
    once = shell.file("once.csv", csv(header, [(7, "lost", 99, "Z", 77)]))
    first = shell("check", "t", "--inserts", once)
    lines = first.out.splitlines()
    assert lines[1:3] == ["  would break: 1 primary key", "    [id] is no longer unique:"]
    told = [line for line in lines if line.startswith("  would appear")]
    assert told[0] == "  would appear: 4 keys, each with [id] and more columns"
    assert told[1].startswith("  would appear: ")
    assert told[1].endswith(" functional dependencies, each with [id] and more on the left")
    assert lines[-2:] == told
    shell("apply", "t", "--inserts", once)
    changes = shell("log", "--json").json()["log"][-1]["changes"]
    keys = [(c["change"], c["dependency"]["columns"], c["role"]) for c in changes
            if c["dependency"]["kind"] == "ucc"]  # fmt: skip
    assert keys[0] == ("broke", ["id"], "primary key")
    assert {(event, role) for event, _, role in keys[1:]} == {("appeared", "chance")}
    again = shell.file("again.csv", csv(header, [(7, "lost", 98, "Z", 76)]))
    broke = [c for c in shell("check", "t", "--inserts", again, "--json").json()["changes"]
             if c["change"] == "broke" and c["dependency"]["kind"] == "ucc"]  # fmt: skip
    assert {(*c["dependency"]["columns"], c["role"]) for c in broke} == {
        ("id", "status", "chance"),
        ("id", "city", "chance"),
    }


def test_denial_constraints_that_row_rules_imply_are_counted(tmp_path: Path) -> None:
    """So are accidents, as far as counts of pairs tell; as `--top` has it, in every list and report."""
    shell, random = Shell(tmp_path), Random(5)
    rows = [(i, net, net + random.randint(0, 300), 3 * net, f"{zip_:05}", f"s{zip_ % 5}")
            for i, (net, zip_) in enumerate((random.randint(1, 90), random.randint(1, 40))
                                            for _ in range(300))]  # fmt: skip
    source = shell.file("t.csv", csv("nr,net,gross,triple,zip,state", rows))
    tracked = shell("track", "t", source, "--kinds", "dc", "--max-predicates", "3").out
    top = shell("show", "--kind", "dc", "--top", "500", "--json").json()
    rules = {dependency_text(d) for d in top["dependencies"] if d["kind"] == "dc"}
    document = shell("show", "--kind", "dc", "--json").json()["dependencies"]
    meant = [dependency_text(d) for d in document if d["role"] == "dependency"]
    assert "t: not(t.zip = s.zip and t.state != s.state)" in rules <= {*meant}
    assert len(meant) < len(document) / 4
    assert top["tables"][0]["ranking"]["folded"]["row_rules"] > 0
    shown = shell("show", "--kind", "dc").out
    for text in (dependency_text(d, with_table=False) for d in document if d["role"] == "chance"):
        assert f" {text}\n" not in tracked + shown
    n = len(document) - len(meant)
    end = "implied by row rules, or perhaps chance"
    assert f"... and {n} denial constraints {end}; all with 'holdfast show --all'" in shown
    assert f"... and {n} denial constraints {end}; the most telling with" in tracked
    with holdfast.open(shell.folder / "my.hold", engine="inline") as ws:
        answer = Explorer(ws).answer("workspace/dependencies", {"kind": "dc", "table": "t"})
        appeared = {c.role for c in ws.log()[0].changes if c.kind == "dc"}
    assert [d["role"] for d in answer["dependencies"]] == [d["role"] for d in document][
        : len(answer["dependencies"])
    ]
    assert appeared == {"dependency", "chance"}


def test_denial_constraints_of_versions_whose_evidence_is_gone_are_listed(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    rows = [(i, 7 * i % 5, 3 * i % 4) for i in range(20)]
    shell("track", "t", shell.file("t.csv", csv("a,b,c", rows)), "--kinds", "dc")
    was = shell("show", "--kind", "dc", "--json").json()["dependencies"]
    for i in range(20, 25):
        shell("apply", "t", "--inserts", shell.file("i.csv", csv("a,b,c", [(i, i % 5, i % 3)])))
    for file in (tmp_path / "my.hold").rglob("comparisons-*"):
        if file.stat().st_mtime < max(f.stat().st_mtime for f in file.parent.glob("comparisons-*")):
            file.unlink()
    old = shell("show", "--kind", "dc", "--at", "1", "--json").json()["dependencies"]
    assert {dependency_text(d) for d in old} == {dependency_text(d) for d in was}
    assert shell("drop", "t").code == 0
    assert shell("show", "--kind", "dc", "--at", "1").code == 0
