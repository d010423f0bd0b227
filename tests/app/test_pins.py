"""Pins on the command line: terms, gates, many at once, and files of them."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import holdfast
from app.shell import Outcome, Shell
from holdfast import Side
from holdfast.app.pin_file import read_pins, written_pins
from holdfast.core.rows.writer import Writer
from holdfast.core.words.notation import arrow_text
from holdfast.core.words.reliance import SEVERITIES, PinTerms, Wanted

ODD = ("no", "x, y", "p.q", '"q"', "l\nf", "ä", "a: #b", " s.z ", "{%", "- ", "->", "123", "~")
ORDERS = "order_id,customer_id,zip,city,quantity\n" + "".join(
    f"{i},{1 + i * 7 % 120},z{i % 7},c{i % 7},{1 + i % 9}\n" for i in range(1, 301)
)
CUSTOMERS = "customer_id,name\n" + "".join(f"{i},n{i}\n" for i in range(1, 121))
BAD = "order_id,customer_id,zip,city,quantity\n301,1,z1,c1,0\n"


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shell = Shell(tmp_path_factory.mktemp("shop"))
    files = shell.file("customers.csv", CUSTOMERS), shell.file("orders.csv", ORDERS)
    assert shell("track-all", *files, "--kinds", "ucc,ind").code == 0
    return shell.folder


@pytest.fixture
def shop(tracked: Path, tmp_path: Path) -> Shell:
    shutil.copytree(tracked, tmp_path / "work")
    return Shell(tmp_path / "work")


def failed(outcome: Outcome) -> str:
    """The error of a command that changed nothing."""
    assert (outcome.code, outcome.out) == (2, "")
    return outcome.err


# -- terms -------------------------------------------------------------------------------------------------


def test_terms_are_told_everywhere(shop: Shell) -> None:
    terms = ["--at-most", "1%", "--severity", "warning", "--reason", "returns", "--owner", "ann@x"]
    done = shop("pin", "orders", "quantity > 1", *terms)
    text = "quantity > 1 (at most 1%, warning, owner ann@x, reason: returns)"
    assert done.out.splitlines()[:2] == [
        f"pinned orders: {text}: does not hold (version 2)",
        "  33 rows violate it (11%), such as:",
    ]
    document = shop("pin", "orders", "quantity > 0", *terms, "--json").json()
    assert (document["holds"], document["at_most"], document["severity"]) == (True, "1%", "warning")
    assert (document["owner"], document["n_violations"], document["error"]) == ("ann@x", 0, 0)
    assert f"pinned {text}: does not hold" in shop("show").out
    assert shop("pins").out.splitlines()[:2] == [
        "2 pins: 1 of them does not hold (version 3)",
        f"  pinned orders: {text}: does not hold",
    ]
    assert [p["holds"] for p in shop("pins", "orders", "--json").json()["pins"]] == [False, True]
    assert shop("pins", "customers").out == "nothing is pinned (version 3)\n"
    # Pinned again it has the new terms.
    assert shop("pin", "orders", "quantity > 1").out.startswith("pinned orders: quantity > 1: DOES NOT HOLD")
    assert shop("show", "--json").json()["pins"][0]["at_most"] is None


def test_only_errors_close_the_gate(shop: Shell) -> None:
    batch = shop.file("bad.csv", BAD)
    for severity, codes in (("error", (1, 1, 1)), ("warning", (0, 1, 1)), ("info", (0, 0, 1))):
        shop("pin", "orders", "quantity > 0", "--severity", severity)
        for fail_on, code in zip(SEVERITIES, codes, strict=True):
            checked = shop("check", "orders", "--inserts", batch, "--fail-on", fail_on)
            assert checked.code == code
            assert "would not hold" in checked.out.lower()
        assert shop("check", "orders", "--inserts", batch).code == codes[0]
        assert shop("check-all", "--inserts", f"orders={batch}", "--json").code == codes[0]
    [pin] = shop("apply", "orders", "--inserts", batch, "--json").json()["pins"]
    assert (pin["severity"], pin["holds"], pin["n_violations"]) == ("info", False, 1)


@pytest.mark.parametrize("command", ["apply", "apply-all"])
def test_a_gate_that_applies(shop: Shell, command: str) -> None:
    """One run: what would break is told, and nothing is applied; without the option all is as before."""
    batch = shop.file("bad.csv", BAD)
    arguments = ["orders", "--inserts", batch] if command == "apply" else ["--inserts", f"orders={batch}"]
    shop("pin", "orders", "quantity > 0", "--severity", "warning")
    refused = shop(command, *arguments, "--fail-on", "warning", "--batch-id", "b1")
    foretold = shop("check", "orders", "--inserts", batch).out
    assert refused.code == 1
    assert refused.out.splitlines()[1:] == foretold.splitlines()[1:]
    assert refused.out.splitlines()[1] == "  pinned quantity > 0 (warning): would not hold"
    assert "GateError: 1 pin of severity warning or graver would not hold: quantity > 0 of" in refused.err
    assert "Nothing was applied." in refused.err
    document = shop(command, *arguments, "--fail-on", "info", "--json").json()
    assert (document["action"], document["version"]) == ("check", 2)
    assert [pin["holds"] for pin in document["pins"]] == [False]
    assert shop("pins", "--json").json()["version"] == 2
    # A warning closes no gate for errors; an id that was refused is new.
    done = shop(command, *arguments, "--fail-on", "error", "--batch-id", "b1", "--json")
    assert (done.code, done.json()["action"], done.json()["version"]) == (0, "apply", 3)
    assert shop(command, *arguments, "--fail-on", "warning", "--batch-id", "b1").code == 0  # done before
    assert shop(command, *arguments, "--json").json()["version"] == 4


def test_a_gate_judges_what_is_committed_by_then(shop: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """A parent that another writer deletes between the steps of a batch and its commit."""
    place = shop.folder / "my.hold"
    child = {"order_id": [901], "customer_id": [999], "zip": ["z1"], "city": ["c1"], "quantity": [1]}
    new = pa.table({"customer_id": [999], "name": ["n999"]})
    with holdfast.open(place, engine="inline") as ws, holdfast.open(place, engine="inline") as other:
        ws.pin("orders", ["customer_id"], referenced=Side("customers", ("customer_id",)))
        ws.apply("customers", inserts=new)
        append = Writer.append

        def late(self: Writer, *args: Any) -> int:
            if self is ws.writer and other.version == 3:
                other.apply("customers", deletes=new)
            return append(self, *args)

        monkeypatch.setattr(Writer, "append", late)
        with pytest.raises(holdfast.GateError, match="Nothing was applied") as refused:
            ws.apply("orders", inserts=pa.table(child), fail_on="error")
        change = refused.value.change
        assert [str(pin) for pin in change.failing()] == ["orders[customer_id] in customers[customer_id]"]
        assert (ws.version, ws.n_rows("orders"), change.action) == (4, 300, "check")
        with pytest.raises(holdfast.UsageError, match="fail_on is 'bad'; expected error or warning or info"):
            ws.apply("orders", inserts=pa.table(child), fail_on="bad")  # type: ignore[arg-type]


def test_within_its_tolerance_a_pin_holds(shop: Shell) -> None:
    batch = shop.file("bad.csv", BAD)
    shop("pin", "orders", "quantity > 0", "--at-most", "0.4%")
    checked = shop("check", "orders", "--inserts", batch)
    assert checked.code == 0
    assert "quantity > 0 (at most 0.4%): would hold within it\n    1 row violates it (0.332%)" in checked.out
    assert "\n  and " not in checked.out  # there is no other
    shop("pin", "orders", "quantity > 0", "--at-most", "0.3%")
    assert shop("check", "orders", "--inserts", batch).code == 1
    key = shop("pin", "orders", "zip", "--at-most", "293 rows")
    assert "zip" in key.out
    assert key.out.endswith("holds within it (version 4)\n  293 rows repeat another one (97.7%)\n")
    inclusion = shop("pin", "orders", "customer_id", "--in", "customers.customer_id", "--at-most", "1")
    assert inclusion.out == (
        "pinned orders[customer_id] in customers[customer_id] (at most 1): holds (version 5)\n"
    )


def test_what_is_against_a_key_or_a_reference_is_told(shop: Shell) -> None:
    """Without a tolerance as with one: how many rows, and some of them."""
    key = shop("pin", "orders", "zip").out.splitlines()
    assert key[:2] == [
        "pinned orders[zip]: DOES NOT HOLD (version 2)",
        "  293 rows repeat another one, such as:",
    ]
    assert [line.split()[1] for line in key[3:]] == ["z1"] * (len(key) - 3) != []
    reference = shop("pin", "orders", "order_id", "--in", "customers.customer_id").out.splitlines()
    assert reference[1] == "  180 rows have values that are missing, such as:"
    assert all(int(line.split()[1]) > 120 for line in reference[3:])
    shop("pin", "orders", "order_id")
    batch = shop.file("again.csv", BAD.replace("301", "300"))
    checked = shop("check", "orders", "--inserts", batch).out
    assert "pinned [zip]: WOULD NOT HOLD\n    294 rows repeat another one, such as:" in checked
    assert "pinned [order_id]: WOULD NOT HOLD\n    1 row repeats another one, such as:" in checked
    assert "in customers[customer_id]: WOULD NOT HOLD\n    181 rows have values that are missing\n" in checked
    pins = {(p["kind"], p["columns"][0]): p for p in shop("pins", "--json").json()["pins"]}
    assert {name: p["n_violations"] for name, p in pins.items()} == {
        ("ucc", "zip"): 293,
        ("ind", "order_id"): 180,
        ("ucc", "order_id"): 0,
    }
    assert pins["ucc", "zip"]["error"] == 293 / 300


def test_what_does_not_hold_is_not_lost_among_what_does(shop: Shell) -> None:
    """It comes first, the gravest of it; then what only just holds; the others are counted."""
    holding = [Wanted("orders", rule=f"quantity < {n}") for n in range(10, 32)]
    with holdfast.open(shop.folder / "my.hold", engine="inline") as ws:
        ws.pin_all([*holding[:11], Wanted("customers", ("name",)), *holding[11:]])
        ws.pin_rule("zip != 'z1'", table="orders", at_most="20%")
        ws.pin_rule("quantity > 1", table="orders", severity="info")
        ws.pin_rule("quantity > 0", table="orders")
        ws.pin("customers", ["customer_id"])
    batch = shop.file("bad.csv", BAD)
    head = [
        "  pinned quantity > 0: DOES NOT HOLD",
        "  pinned quantity > 1 (info): does not hold",
        "  pinned zip != 'z1' (at most 20%): holds within it",
    ]
    document = shop("check", "orders", "--inserts", batch, "--json").json()
    states = [(p["holds"], p["severity"], bool(p["n_violations"])) for p in document["pins"]]
    assert states == [
        (False, "error", True),
        (False, "info", True),
        (True, "error", True),
        *[(True, "error", False)] * 22,
    ]
    foretold = shop("check", "orders", "--inserts", batch)
    assert foretold.out.splitlines().count("  and 22 pins would hold") == 1
    done = shop("apply", "orders", "--inserts", batch).out.splitlines()
    lines = [line for line in done if line.startswith("  pinned ") or line.endswith(" hold")]
    assert lines == [*head, "  and 22 pins hold"]
    fine = shop("apply", "customers", "--inserts", shop.file("more.csv", "customer_id,name\n121,n121\n"))
    assert fine.out.splitlines()[1] == "  2 pins hold"
    # Lists have some of those that hold.
    told = [line.replace("pinned ", "pinned orders: ", 1) for line in head]
    for arguments, n in (([], 20), (["--all"], 24)):
        listed = shop("pins", *arguments).out.splitlines()
        assert listed[0] == "27 pins: 2 of them do not hold (version 8)"
        lines = [line for line in listed[1:] if line.startswith("  pinned ")]
        assert (lines[:3], len(lines)) == (told, 3 + n)
        assert (listed[-1] == "  and 4 more pins hold; all with --all") == (n == 20)
    order = [(p["holds"], p["severity"]) for p in shop("pins", "--json").json()["pins"]]
    assert order == [(False, "error"), (False, "info"), *[(True, "error")] * 25]
    shown = shop("show").out.splitlines()
    assert [line for line in shown if line.startswith("  pinned ")][2] == head[0]  # of the second table
    assert "  and 2 more pins hold; all with --all" in shown


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ["orders", "zip -> city", "--at-most", "3 rows"],
            "of this pin pairs of rows are counted: '3 pairs'",
        ),
        (["orders", "order_id", "--at-most", "many"], "'many' is no tolerance; expected a share such as"),
        (["orders", "order_id", "--remove", "--owner", "ann"], "--remove takes no terms"),
        (["orders", "order_id", "--remove"], "[order_id] of table 'orders' is not pinned."),
        (["orders", "quantity > 0", "--in", "customers.name"], "leave out --in"),
        (["orders", "zip", "--in", "orders.zip"], "orders[zip] is always included in itself."),
        (["orders", "orders[zip, city] in orders[zip, city]"], "[zip, city] is always included in itself."),
        (
            ["orders", "zip, city -> city"],
            "both sides of zip, city -> city of table 'orders' have the column",
        ),
        (
            ["orders", "[zip, zip]"],
            "the column 'zip' of table 'orders' is there twice; name each column once",
        ),
        ([], "nothing to pin is named"),
        (["--prune"], "--prune goes with --file"),
        (["--suggested", "--from-links"], "give one of them"),
        (["orders", "zip", "--suggested"], "--suggested pins many things at once"),
        (["--suggested", "--remove"], "leave out the rest"),
        (["--suggested", "nope"], "nope"),
        (["--from-links", "nope"], "nope"),
        (["--file", "pins.yml", "--owner", "ann"], "the file says all of it"),
        (["--file", "nowhere.yml"], "cannot read 'nowhere.yml': No such file"),
    ],
)
def test_what_cannot_be_pinned(shop: Shell, arguments: list[str], error: str) -> None:
    assert error in failed(shop("pin", *arguments))
    assert shop("pins").out == "nothing is pinned (version 1)\n"


@pytest.mark.parametrize("nulls", ["equal", "distinct"])
@pytest.mark.parametrize("kinds", [("ind",), ("ucc", "fd"), ("dc",)])
def test_every_pin_is_shown(tmp_path: Path, kinds: tuple[str, ...], nulls: Any) -> None:
    """Of whatever kind a pin is there, and whatever else the table is tracked for."""
    shell = Shell(tmp_path)
    rows = pa.table({"id": [1, 2, 3], "zip": ["8000", "8000", "3000"], "city": ["Zurich", "Bern", None]})
    with holdfast.open(tmp_path / "my.hold", engine="inline") as ws:
        ws.track("t", rows, kinds=kinds, nulls=nulls)
        for question in ("zip -> city", "city is not null"):
            ws.pin("t", question)
        n_pins = len(ws.pins())
    for arguments in ([], ["t"]):
        lines = [line for line in shell("show", *arguments).out.splitlines() if "  pinned " in line]
        assert [line.partition("pinned ")[2] for line in lines if "DOES NOT HOLD" in line]
        assert len(lines) == n_pins == 2


def test_a_pinned_key_stays_the_primary_key(tmp_path: Path) -> None:
    """While it does not hold it is a comment, and nothing is declared in its place."""
    shell = Shell(tmp_path)
    rows = "order_no,placed,code\n" + "".join(f"{n},{9000 + 7 * n % 1009},c{n}\n" for n in range(1, 301))
    assert shell("track", "orders", shell.file("orders.csv", rows), "--kinds", "ucc").code == 0
    batch = shell.file("again.csv", "order_no,placed,code\n300,8000,d1\n")
    shell("pin", "orders", "order_no", "--reason", "the ERP says so")
    assert 'PRIMARY KEY ("order_no")' in shell("export").out
    assert shell("apply", "orders", "--inserts", batch).code == 0
    for dialect in ("ansi", "postgres", "duckdb"):
        text = shell("export", "--dialect", dialect).out
        assert text.count("PRIMARY KEY") == 1
        assert (
            "-- pinned orders[order_no] (the ERP says so): it does not hold: 1 row repeats another one\n"
            '-- ALTER TABLE "orders" ADD CONSTRAINT "orders_pk" PRIMARY KEY ("order_no");\n'
        ) in text
    assert (
        "  # pinned orders[order_no] (the ERP says so): it does not hold"
        in shell("export", "--format", "dbt").out
    )
    shell("pin", "orders", "order_no", "--at-most", "1")
    tolerated = (
        "-- pinned orders[order_no]: it is pinned with a tolerance: at most 1, now 1 row\n-- ALTER TABLE"
    )
    assert tolerated in shell("export").out
    # What is pinned beside it is no primary key either, but what looks more like one is.
    shell("pin", "orders", "code")
    assert 'UNIQUE ("code")' in shell("export").out
    shell("track", "others", shell.file("others.csv", rows + "301,9007,d1\n"), "--kinds", "ucc")
    shell("pin", "others", "placed")
    text = shell("export").out
    assert "-- pinned others[placed]: it does not hold: 1 row repeats another one" in text
    assert '  CONSTRAINT "others_pk" PRIMARY KEY ("code")' in text


# -- many at once ------------------------------------------------------------------------------------------


def test_from_links(shop: Shell) -> None:
    foretold = shop("pin", "--from-links", "--dry-run")
    assert foretold.out.splitlines() == [
        "would pin orders[customer_id] in customers[customer_id]: holds",
        "  it looks like a foreign key, score 1.00",
        "would be: 1 pinned, 0 as before (nothing applied)",
    ]
    assert shop("pins", "--json").json() == {"version": 1, "pins": []}
    assert shop("pin", "--from-links", "orders").out.endswith("1 pinned, 0 as before (version 2)\n")
    assert shop("pin", "--from-links", "customers").out == "0 pinned, 1 as before (version 2)\n"
    shop("pin", "orders", "customer_id", "--in", "customers.customer_id", "--remove")
    # With orphans it is not pinned, unless they are tolerated.
    orphans = shop.file("orphans.csv", BAD.replace("301,1,", "301,999,"))
    assert shop("apply", "orders", "--inserts", orphans).code == 0
    document = shop("pin", "--from-links", "--json").json()
    assert [len(document[part]) for part in ("pinned", "left_out")] == [0, 1]
    document = shop("pin", "--from-links", "--at-most", "1%", "--json").json()
    assert [pin["n_violations"] for pin in document["pinned"]] == [1]


def test_suggested(shop: Shell) -> None:
    assert shop("pin", "--suggested", "orders", "--dry-run").out.splitlines() == [
        "would pin orders[order_id]: holds",
        "  it looks like the primary key",
        "would pin orders: order_id is not null: holds",
        "  a column of a key, without a NULL now",
        "would pin orders[customer_id] in customers[customer_id]: holds",
        "  it looks like a foreign key, score 1.00",
        "would pin orders: zip in ('z0', 'z1', 'z2', 'z3', 'z4', 'z5', 'z6'): holds",
        "  7 values in 300 rows, each in at least 42",
        "would pin orders: city in ('c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6'): holds",
        "  7 values in 300 rows, each in at least 42",
        "would pin orders: quantity >= 1 and quantity <= 9: holds",
        "  9 values in 300 rows, each in at least 33",
        "would pin orders: customer_id is not null: holds",
        "  no row is NULL",
        "would pin orders: zip is not null: holds",
        "  no row is NULL",
        "would pin orders: city is not null: holds",
        "  no row is NULL",
        "would pin orders: quantity is not null: holds",
        "  no row is NULL",
        "would be: 10 pinned, 0 as before (nothing applied)",
    ]
    shop("pin", "orders", "order_id", "--owner", "ann")
    document = shop("pin", "--suggested", "--json").json()
    assert document["version"] == 3
    assert [p["owner"] for p in document["unchanged"]] == ["ann"]  # on no terms it keeps its own
    assert {(p["kind"], p["table"]) for p in document["pinned"]} == {
        ("ucc", "customers"),
        ("check", "customers"),
        ("check", "orders"),
        ("ind", "orders"),
    }
    log = shop("log").out.splitlines()
    assert log[-3].endswith("pin 2 tables")
    assert log[-1] == "    orders: 9 pinned"
    changed = shop("pin", "--suggested", "--owner", "bob", "--json").json()
    assert {p["owner"] for p in changed["pinned"]} == {"bob"}


def test_what_is_not_worth_a_suggestion(tmp_path: Path) -> None:
    """One value for all rows; lists of values; what follows from a condition that is pinned."""
    flags = ['"{a,b}"', "{a}", "{b}", "{}"]
    rows = "".join(
        f"{i},2006,{flags[i % 4]},2005-0{1 + i % 9}-01,2005-0{1 + i % 9}-02,{i % 3}\n" for i in range(1, 41)
    )
    shell = Shell(tmp_path)
    films = shell.file("film.csv", "film_id,release_year,special,paid,updated,rating\n" + rows)
    assert shell("track", "film", films, "--kinds", "ucc,profile").code == 0

    def suggested() -> list[str]:
        pins = shell("pin", "--suggested", "--dry-run", "--json").json()["pinned"]
        return [pin["formula"] for pin in pins if "formula" in pin and " null" not in pin["formula"]]

    bounds = ["paid >= '2000-01-01'", "updated >= '2000-01-01'"]
    assert suggested() == ["rating >= 0 and rating <= 2", *bounds]
    shell("pin", "film", "paid >= '2005-01-01'")
    shell("pin", "film", "rating in (0, 1, 2)")
    assert suggested() == bounds[1:]
    shell("pin", "film", bounds[0])  # itself it may be, as before
    assert [
        pin["formula"] for pin in shell("pin", "--suggested", "--dry-run", "--json").json()["unchanged"]
    ] == [bounds[0]]
    told = " ".join(shell("pin", "--help").out.replace("│", " ").split())
    assert "the accepted values, ranges and patterns" in told


def test_what_was_pinned_reads_back_as_it_was_typed(shop: Shell) -> None:
    rule = "not(t.zip = s.zip and t.quantity != s.quantity)"
    for n, (typed, arguments) in enumerate(
        [("zip -> city", []), (rule, ["--at-most", "100%"]), ("zip, customer_id -> city", [])]
    ):
        done = shop("pin", "orders", typed, *arguments).out
        kept = (
            "customer_id, zip -> city" if "," in typed and "->" in typed else typed
        )  # as the table has them
        assert done.startswith(f"pinned orders: {kept}")
        assert f"pinned orders: {kept}" in shop("pins").out
        assert f"pinned {kept}" in shop("show").out
        assert shop("log").out.splitlines()[-1].endswith(f"pin orders: {kept}")
        assert len(shop("pins", "--json").json()["pins"]) == n + 1
    twice = shop.file("b.csv", "order_id,customer_id,zip,city,quantity\n301,1,z1,c2,1\n")
    assert "  pinned zip -> city: WOULD NOT HOLD" in shop("check", "orders", "--inserts", twice).out
    shop("apply", "orders", "--inserts", twice)
    assert "  pinned orders: zip -> city: DOES NOT HOLD" in shop("pins").out
    assert shop("pin", "orders", "zip -> city", "--owner", "ann").out.startswith(
        "pinned orders: zip -> city (owner"
    )
    assert shop("pin", "orders", "zip -> city", "--remove").out.startswith("orders: zip -> city is no longer")


# -- files -------------------------------------------------------------------------------------------------

PINS = """\
# What is relied on; 'holdfast pin --file' applies it.
version: 1
tables:
  customers:
    - key: customer_id
      reason: "no two: ever"
  orders:
    - key: [order_id, zip]
      severity: info
    - fd: zip -> city
      at_most: 0.1%
    - rule: not(t.zip = s.zip and t.city != s.city and t.quantity < s.quantity)
    - check: quantity > 0
      at_most: 5
      severity: warning
      owner: ann@x
    - reference: customer_id -> customers.customer_id
"""


def test_a_file_is_written_as_it_was_read(shop: Shell) -> None:
    path = shop.file("pins.yml", PINS)
    foretold = shop("pin", "--file", path, "--dry-run", "--json").json()
    assert (len(foretold["pinned"]), foretold["dry_run"], shop("pins", "--json").json()["pins"]) == (
        6,
        True,
        [],
    )
    assert shop("pin", "--file", path).out.endswith("\n6 pinned, 0 as before (version 2)\n")
    assert shop("pin", "--file", path).out == "0 pinned, 6 as before (version 2)\n"
    assert shop("pins", "-o", "-").out == PINS
    again = str(shop.folder / "again.yml")
    assert shop("pins", "-o", again).out == f"{again}: 6 pins (version 2)\n"
    assert Path(again).read_text() == PINS
    assert shop("pins", "customers", "-o", "-").out == PINS[: PINS.index("  orders:")]
    assert yaml.safe_load(PINS)["tables"]["orders"][1] == {"fd": "zip -> city", "at_most": "0.1%"}


def test_a_file_updates_and_prunes(shop: Shell) -> None:
    shop("pin", "--file", shop.file("pins.yml", PINS))
    shop("pin", "customers", "name")
    changed = PINS.replace("      at_most: 5\n", "").replace(
        "    - fd: zip -> city\n      at_most: 0.1%\n", ""
    )
    path = shop.file("pins.yml", changed)
    done = shop("pin", "--file", path, "--json").json()
    assert [len(done[part]) for part in ("pinned", "unchanged", "removed")] == [1, 4, 0]
    foretold = shop("pin", "--file", path, "--prune", "--dry-run").out
    assert foretold.splitlines() == [
        "would no longer be pinned: customers[name]",
        "would no longer be pinned: orders: zip -> city",
        "would be: 0 pinned, 5 as before, 2 no longer pinned (nothing applied)",
    ]
    assert shop("pin", "--file", path, "--prune").out.endswith("2 no longer pinned (version 5)\n")
    assert shop("pins", "-o", "-").out == changed
    assert shop("pin", "--file", path, "--prune").out == "0 pinned, 5 as before (version 5)\n"
    nothing = shop.file("none.yml", "version: 1\ntables: {}\n")
    assert shop("pin", "--file", nothing, "--prune").code == 0
    assert shop("pins", "-o", "-").out.endswith("version: 1\ntables: {}\n")


def test_other_ways_to_write_a_file(shop: Shell) -> None:
    text = """\
tables:
  orders:
    - {key: "order_id, zip"}
    - reference: {columns: [customer_id], table: customers, to: customer_id}
      at_most: 0.01
    - check: t.quantity>0
      reason: |
        two
        lines
  customers:
version: 1
"""
    done = shop("pin", "--file", shop.file("pins.yml", text), "--json").json()
    assert [pin["columns"] for pin in done["pinned"]] == [["order_id", "zip"], ["customer_id"], ["quantity"]]
    assert [pin["at_most"] for pin in done["pinned"]] == [None, "1%", None]
    assert done["pinned"][2]["reason"] == "two lines"


@pytest.mark.parametrize(
    ("entries", "error"),
    [
        (
            "- chek: a > 0",
            "line 4: table 'orders': unknown field 'chek'; known: key, reference, fd, rule, check",
        ),
        ("- severity: info", "line 4: table 'orders': an entry says not what is pinned; expected one of key"),
        ("- {key: zip, fd: zip -> city}", "line 4: table 'orders': an entry has key and fd"),
        ("- key: nope", "line 4, table 'orders', key: table 'orders' (version 1) has no column 'nope'"),
        (
            "- key: zip\n    - key: [zip]",
            "line 5, table 'orders', key: [zip] of table 'orders' is there twice, ",
        ),
        ("- check: quantity > 'x'", "line 4, table 'orders', check: at character 12 of the rule: 'quantity'"),
        ("- {check: quantity > 0, at_most: lots}", "check: at most 'lots' is no tolerance"),
        ("- {check: quantity > 0, severity: bad}", "severity is 'bad'; expected error or warning or info"),
        (
            "- {check: quantity > 0, owner: [a]}",
            "table 'orders', check, owner: expected a text, and not a seq",
        ),
        ("- check: [quantity > 0]", "line 4: table 'orders', check: expected a text"),
        ("- reference: customer_id", "reference: 'customer_id' has no arrow; expected 'customer_id -> cust"),
        (
            "- reference: customer_id -> nowhere.id",
            "line 4, table 'orders', reference: the workspace has no table 'nowhere'",
        ),
        (
            "- reference: {columns: zip, to: name}",
            "line 4: table 'orders', reference: expected columns, table",
        ),
        ("- fd: zip, city", "line 4, table 'orders', fd:"),
        ("- key: []", "line 4, table 'orders', key: no column of table 'orders' is named"),
        ("- key: zip\n      key: city", "line 5: table 'orders': 'key' is there twice"),
        ("key: zip", "line 4: table 'orders': expected a list of pins"),
        ("- just a text", "line 4: table 'orders': expected fields with names"),
        ("- key: [zip", "is no YAML"),
        (
            "- check: name = 'x: y'",
            "mapping values are not allowed here. Next step: mend the line; a text with",
        ),
    ],
)
def test_a_file_with_an_error(shop: Shell, entries: str, error: str) -> None:
    """It names the line and the entry, and nothing is applied."""
    text = f"version: 1\ntables:\n  orders:\n    {entries}\n  customers:\n    - key: name\n"
    path = shop.file("pins.yml", text)
    err = failed(shop("pin", "--file", path))
    assert error in err
    assert repr(path)[1:-1] in err
    assert shop("pins").out == "nothing is pinned (version 1)\n"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "is empty. Expected 'version: 1'"),
        ("version: 2\ntables: {}", "line 1: the version is not 1"),
        ("tables: {}", "the version is not 1"),
        ("version: 1", "there is nothing under 'tables'"),
        ("[]", "line 1: expected fields with names. Expected 'version: 1'"),
        ("version: 1\ntables:\n  elsewhere:\n    - key: id", "elsewhere"),
    ],
)
def test_a_file_that_is_none(shop: Shell, text: str, error: str) -> None:
    assert error in failed(shop("pin", "--file", shop.file("pins.yml", text)))


TERMS = st.fixed_dictionaries(
    {},
    optional={
        "at_most": st.sampled_from(["0.1%", "7", 0.25]),
        "severity": st.sampled_from(SEVERITIES),
        "reason": st.text(max_size=12),
        "owner": st.sampled_from(["ann@x", "no", "#1", "a: b", "'", '"', "- x", "null", "1"]),
    },
)


@given(st.data())
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_written_is_read(data: st.DataObject) -> None:
    """Whatever tables and columns are called: it is pinned already, on the same terms."""
    # A few at a time: all are included in all others.
    chosen = data.draw(st.lists(st.sampled_from(ODD), min_size=3, max_size=4, unique=True))
    values: dict[str, Any] = {name: [1, 2, 3] for name in chosen}
    nulls = data.draw(st.sampled_from(["equal", "distinct"]))
    names = data.draw(st.sampled_from([("t", "u"), ("no", "x.y"), ("a: b", '"'), ("t.p", "t")]))
    with tempfile.TemporaryDirectory() as folder, holdfast.open(f"{folder}/w", engine="inline") as ws:
        ws.track_all(dict.fromkeys(names, pa.table(values)), kinds=("ucc", "ind"), nulls=nulls, max_arity=1)
        columns = st.sampled_from(chosen)
        some = st.lists(columns, min_size=1, max_size=2, unique=True)
        wanted: dict[Any, Wanted] = {}
        for _ in range(data.draw(st.integers(1, 6))):
            kind, terms = data.draw(st.sampled_from(["key", "ind", "check", "rule", "fd"])), data.draw(TERMS)
            left, right = data.draw(some), data.draw(columns)
            if kind == "key":
                each = Wanted(names[0], tuple(left), terms=PinTerms(**terms))
                identity: Any = (kind, *sorted(left))
            elif kind == "ind":
                each = Wanted(names[0], (left[0],), Side(names[1], (right,)), terms=PinTerms(**terms))
                identity = (kind, left[0], right)
            else:
                a, b = (f'"{name.replace(chr(34), chr(34) * 2)}"' for name in (left[0], right))
                rule = f"not(t.{a} = s.{a} and t.{b} != s.{b})" if kind == "rule" else f"{a} > 1"
                rule = arrow_text(left[:1], right) if kind == "fd" else rule
                if (kind in ("rule", "fd") and left[0] == right) or not readable(ws, names[0], rule):
                    continue
                each = Wanted(names[0], rule=rule, terms=PinTerms(**terms))
                # Where NULLs are equal a functional dependency is a rule about two rows.
                identity = (kind, rule) if kind == "check" or nulls == "distinct" else (left[0], right)
            wanted[identity] = each
        ws.pin_all(list(wanted.values()))
        path = Path(folder, "pins.yml")
        path.write_text(written_pins(ws, ws.pins(), ws.version), encoding="utf-8")
        done = ws.pin_all(read_pins(ws, path), prune=True)
        assert (done.pinned, done.removed, len(done.unchanged)) == ((), (), len(wanted))
        assert yaml.safe_load(path.read_text(encoding="utf-8"))["version"] == 1


def readable(ws: holdfast.Workspace, table: str, rule: str) -> bool:
    """Some names, such as one with an arrow in it, make another rule of a text."""
    try:
        ws.explain(table, rule)
    except holdfast.HoldfastError:
        return False
    return True
