"""What one command takes, the others take: `explain`, `violations`, `mute` and `pin` read one language."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from app.shell import Shell
from holdfast.app.report.texts import dependency_text

ORDERS = "order_id,customer_id,zip,city,net,gross,email,x y\n" + "".join(
    f"{i},{1 + i % 20},z{i % 7},c{i % 7},{i}.0,{i + 1}.5,{f'a{i}@b.c' if i % 9 else ''},{i % 3}\n"
    for i in range(1, 101)
)
CUSTOMERS = "id,name\n" + "".join(f"{i},n{i}\n" for i in range(1, 21))
RULE = "not(t.zip = s.zip and t.city != s.city and t.net < s.net)"


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shell = Shell(tmp_path_factory.mktemp("questions"))
    files = shell.file("customers.csv", CUSTOMERS), shell.file("orders.csv", ORDERS)
    assert shell("track-all", *files, "--kinds", "ucc,fd,ind,row").code == 0
    return shell.folder


@pytest.fixture
def shop(tracked: Path, tmp_path: Path) -> Shell:
    return Shell(Path(shutil.copytree(tracked, tmp_path / "work")))


# What is typed behind the table, and what it asks for.
QUESTIONS = [
    (["order_id"], "[order_id]"),
    (["zip", "net"], "[zip, net]"),
    (["zip, net"], "[zip, net]"),
    (["x y"], "[x y]"),
    (["[zip, net]"], "[zip, net]"),
    (["orders[zip, net]"], "[zip, net]"),
    (["customer_id", "--in", "customers.id"], "orders[customer_id] in customers[id]"),
    (["customer_id", "--in-table", "customers", "--in-column", "id"], "orders[customer_id] in customers[id]"),
    (["orders[customer_id] in customers[id]"], "orders[customer_id] in customers[id]"),
    (["zip -> city"], "zip -> city"),
    (["orders: net, zip -> city"], "zip, net -> city"),
    (["[] -> city"], "[] -> city"),
    ([RULE], RULE),
    ([f"orders: {RULE}"], RULE),
    (["net <= gross"], "net <= gross"),
    (["net > 0"], "net > 0"),
    (["orders: net > 0"], "net > 0"),
    (["email is not null"], "email is not null"),
    (["email like '%@%'"], "email like '%@%'"),
    (['"x y" in (0, 1)'], '"x y" in (0, 1)'),
    (['{"kind": "fd", "lhs": ["zip"], "rhs": "city"}'], "zip -> city"),
]


@pytest.mark.parametrize(("question", "asked"), QUESTIONS, ids=[" ".join(q)[:40] for q, _ in QUESTIONS])
def test_every_question_to_every_command(shop: Shell, question: list[str], asked: str) -> None:
    for command in ("explain", "violations"):
        answer = shop(command, "orders", *question)
        assert (answer.code, answer.err) == (0, ""), answer.err
    muted = shop("mute", "orders", *question, "--json").json()
    assert dependency_text(muted["dependency"], with_table=False) == asked
    # It is the same for both: pinning unmutes.
    pinned = shop("pin", "orders", *question, "--json").json()
    assert [each["dependency"] for each in pinned["unmuted"]] == [muted["dependency"]]
    assert "pinned, so it cannot be muted" in shop("mute", "orders", *question).err
    assert shop("pin", "orders", *question, "--remove").code == 0
    assert shop("pins").out.startswith("nothing is pinned")


@pytest.mark.parametrize("command", ["explain", "violations", "mute", "pin"])
@pytest.mark.parametrize(
    ("question", "error"),
    [
        (['email like "%@%"'], "at character 12 of the rule: expected a pattern in single quotes"),
        (["email not null"], "at character 11 of the rule: a test for NULL has an 'is': write is not null"),
        (["email = null"], "at character 9 of the rule: nothing equals NULL; write email is null"),
        (["orders[zip] in nowhere[id]"], "has no table 'nowhere'"),
        (["[zip, nope]"], "has no column 'nope'"),
        (["nope"], "has no column 'nope'"),
        ([], "nothing of table 'orders' is asked for"),
    ],
)
def test_what_is_no_question(shop: Shell, command: str, question: list[str], error: str) -> None:
    answer = shop(command, "orders", *question)
    assert (answer.code, answer.out) == (2, "")
    assert error in answer.err


@pytest.mark.parametrize(
    "question",
    ["orders[zip, net]", "orders: zip -> city", "orders: net > 0", "orders[customer_id] in customers[id]"],
)
def test_what_a_report_prints_stands_alone(shop: Shell, question: str) -> None:
    """It begins with its table."""
    for command in ("explain", "violations", "mute", "pin"):
        alone, behind = shop(command, question, "--json"), shop(command, "orders", question, "--json")
        assert (alone.code, alone.err) == (0, ""), command
        assert {**alone.json(), "version": 0, "unmuted": []} == {**behind.json(), "version": 0, "unmuted": []}
    # Keys are printed as they are asked for.
    assert shop("explain", "orders[zip, net]").out.startswith("orders[zip, net] is unique")
    assert shop("pin", "orders[zip, net]").out.startswith("pinned orders[zip, net]: holds")
    assert "no table 'nowhere'" in shop("explain", "nowhere[id] in orders[zip]").err
    assert "no table 'ordres: net > 0'" in shop("explain", "ordres: net > 0").err


def test_the_longest_name_is_the_table(shop: Shell) -> None:
    assert shop("track", "orders: x", shop.file("x.csv", "net\n1\n-2\n")).code == 0
    assert shop("explain", "orders: x: net > 0").out.startswith("orders: x: net > 0 does not hold")
    assert shop("explain", "orders: net > 0").out.startswith("orders: net > 0 holds")


def test_several_columns_of_another_table(shop: Shell) -> None:
    """With commas, or by --in-column again; --in again is an error, and not the last one alone."""
    other = ["--in-table", "orders", "--in-column"]
    for named in (
        ["--in", "orders.net,gross"],
        [*other, "net,gross"],
        [*other, "net", "--in-column", "gross"],
    ):
        muted = shop("mute", "orders", "net,gross", *named, "--json").json()
        assert muted["dependency"]["referenced"] == {"table": "orders", "columns": ["net", "gross"]}
        itself = shop("explain", "orders", "net,gross", *named)
        assert "orders[net, gross] is always included in itself" in itself.err
    explained = shop("explain", "orders", "net,gross", "--in", "orders.gross,net")
    assert explained.out.startswith("orders[net, gross] in orders[gross, net] does not hold (version 2)")
    assert "missing: (1.0, 2.5), (2.0, 3.5), (3.0, 4.5), (4.0, 5.5) and 96 more" in explained.out
    fewer = shop("explain", "orders", "net,gross", "--in", "orders.net")
    assert (fewer.code, "have different numbers of columns" in fewer.err) == (2, True)
    twice = shop("explain", "orders", "net,gross", "--in", "orders.net", "--in", "orders.gross")
    assert (twice.code, twice.out) == (2, "")
    assert "--in is given 2 times; give it once: several columns of one table have commas" in twice.err


@pytest.mark.parametrize("command", ["show", "log", "links"])
def test_a_table_is_named_as_everywhere(shop: Shell, command: str) -> None:
    by_name, by_option = shop(command, "orders"), shop(command, "--table", "orders")
    assert (by_name.code, by_name.out) == (0, by_option.out)
    assert command == "links" or by_name.out != shop(command).out  # all its links are of both tables
    assert shop(command, "orders", "--table", "orders").out == by_name.out
    both = shop(command, "orders", "--table", "customers")
    assert (both.code, both.out) == (2, "")
    assert "TABLE is 'orders', and --table 'customers': give one of them." in both.err
    assert "no table 'ordres'" in shop(command, "ordres").err


def test_a_pin_of_an_inclusion_names_its_tables(shop: Shell) -> None:
    text = "orders[customer_id] in customers[id]"
    assert shop("pin", text).out == f"pinned {text}: holds (version 2)\n"
    assert "2 tables: say which one the rule 'net > 0' is about" in shop("pin", "net > 0").err
    assert "no table 'nope'" in shop("pin", "nope").err


def test_every_help_says_what_can_be_asked() -> None:
    shell = Shell(Path())
    for command in ("explain", "violations", "mute", "pin"):
        told = " ".join(shell(command, "--help").out.replace("│", " ").split())
        for form in ("'[id, day]'", "'zip -> city'", "'orders[customer] in customers[id]'", "'net <= gross'"):
            assert form in told, (command, form)
