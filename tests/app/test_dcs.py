"""Rules on the command line: denial constraints, rules about each row, and rules that people write."""

from __future__ import annotations

import io
import json
import random
import re
import shutil
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from app.parts import part
from app.shell import WHAT_IS_IMPORTED, Outcome, Shell
from holdfast.app.report.changes import print_change
from holdfast.app.report.dcs import print_dcs, print_row_rules
from holdfast.app.report.paper import Paper
from holdfast.app.report.rankings import print_ranking
from holdfast.app.report.rules import print_dc_explanation, print_indexes
from holdfast.core.words.change import Change, DependencyChange, Pair, Pin, WitnessRow
from holdfast.core.words.dependency import Fd, Ucc
from holdfast.core.words.predicate import Dc, Operator, Predicate
from holdfast.core.words.row_rule import RowRule
from holdfast.core.words.schema import Column, Schema, Type
from holdfast.denial.dc_ranking import DcRanking, Folded, RankedRule
from holdfast.denial.dc_reading import DcExplanation, IndexReport

TAX = """zip,state,salary,rate,net
Z1,NY,50,5,45
Z1,NY,60,6,54
Z2,CA,50,4,48
Z2,CA,70,8,62
Z3,CA,60,7,53
Z3,CA,80,8,72
Z4,NY,70,6,64
Z4,NY,50,5,
"""
HARMLESS = "zip,state,salary,rate,net\nZ5,NY,90,9,82\n"
# Of another state than the other rows of its zip code; and more net than gross.
BREAKS = "zip,state,salary,rate,net\nZ1,CA,90,9,91\n"
RULE = "not(t.zip = s.zip and t.state != s.state)"
PROGRESSIVE = "not(t.state = s.state and t.salary <= s.salary and t.rate > s.rate)"
SAID = "of two rows with the same state, the one with the higher rate never has a lower or equal salary"
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def track(folder: Path, *options: str, kinds: str = "dc") -> Shell:
    folder.mkdir(exist_ok=True)
    shell = Shell(folder)
    outcome = shell("track", "tax", shell.file("tax.csv", TAX), "--kinds", kinds, *options)
    assert outcome.code == 0, outcome.err
    return shell


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tax")
    track(folder)
    return folder


@pytest.fixture
def shell(tracked: Path, tmp_path: Path) -> Shell:
    """The table `tax` at version 1, with denial constraints and row rules alone; a copy."""
    shutil.copytree(tracked, tmp_path / "work")
    return Shell(tmp_path / "work")


@pytest.fixture(scope="module")
def with_keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("both")
    track(folder, kinds="ucc,fd,dc")
    return folder


def denied(outcome: Outcome, error: str) -> None:
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(error), outcome.err


# --- Tracking ---------------------------------------------------------------------------------------------


def test_track_says_what_it_found_and_how_it_is_kept(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    outcome = shell("track", "tax", shell.file("tax.csv", TAX), "--kinds", "dc")
    assert (outcome.code, outcome.err) == (0, "")
    headline, *rest = outcome.out.splitlines()
    assert headline.startswith(
        "tax: 8 rows, 14 minimal denial constraints (22 predicates, counted evidence), 4 row rules (version"
    )
    assert rest[:5] == [
        "  new: 14 denial constraints",
        "    not(t.net = s.net)",
        "      a key: no two rows have the same net",
        "    not(t.zip = s.zip and t.state != s.state)",
        "      the FD zip -> state: rows with the same zip have the same state",
    ]
    # Of eight rows all may be chance; then three of them are shown.
    assert rest[7:] == [
        "    ... and 11 denial constraints implied by row rules, or perhaps chance; the most telling with "
        "'holdfast show --kind dc --top 20'",
        "  new: 4 row rules",
        "    salary > net",
        "    ... and 3 row rules with != or between columns whose values are far apart; see them with "
        "'holdfast show --kind row'",
    ]


def test_what_keys_and_dependencies_say_is_not_said_again(with_keys: Path) -> None:
    shell = Shell(with_keys)
    told = shell("log", "--json").json()["log"][0]["changes"]
    assert {c["dependency"]["kind"] for c in told} == {"ucc", "fd", "dc", "row"}
    change = Change(
        "track",
        1,
        (part("t", 8, 0, 8, 1, n_fds=1, n_dcs=3, n_row_rules=1),),
        tuple(
            DependencyChange("appeared", d, "")
            for d in (
                Ucc("t", ("a", "b")),
                Fd("t", ("a",), "c"),
                dc("t.b = s.b", "t.a = s.a"),
                dc("t.a = s.a", "t.c != s.c"),
                dc("t.b = s.b", "t.c != s.c"),
                RowRule("t", "a", "<", "b", apart=True),
            )
        ),
        0.1,
    )
    assert printed(change).splitlines()[1:] == [
        "  [a, b]",
        "  new: 1 functional dependency",
        "    a -> c",
        "  new: 3 denial constraints",
        "    not(t.b = s.b and t.c != s.c)",
        "      the FD b -> c: rows with the same b have the same c",
        "    ... and 2 told above as a key or functional dependency",
        "  new: 1 row rule",
        "    a < b",
    ]


def test_too_many_to_list() -> None:
    table = part("t", 9, 0, 9, None, n_dcs=59_291, n_row_rules=0, unlisted=59_291)
    assert printed(Change("track", 1, (table,), (), 0.1)).splitlines()[1:] == [
        "  new: 59,291 denial constraints: too many to list, but see 'holdfast show --kind dc --top 20'"
    ]
    told = printed(Change("apply", 2, (table,), (), 0.1))
    assert told.endswith("  59,291 more changes of denial constraints or row rules: too many to list\n")


def test_what_bounds_the_search_is_said(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    source = shell.file("tax.csv", TAX)
    bounds = ["--max-predicates", "2", "--operators", "=, !=", "--exclude", "net"]
    outcome = shell("track", "tax", source, "--kinds", "dc", *bounds)
    assert outcome.code == 0, outcome.err
    assert "4 minimal denial constraints of at most 2 predicates (8 predicates" in outcome.out
    one = shell("track", "one", source, "--kinds", "dc", "--max-predicates", "1")
    assert "of at most 1 predicate (" in one.out
    assert shell("drop", "one").code == 0
    bounded = (
        "at most 2 predicates (--max-predicates), only the operators = != (--operators), "
        "only the columns [zip, state, salary, rate] (--columns, --exclude)\n"
    )
    assert f"\n  denial constraints were looked for with {bounded}" in outcome.out
    assert f"\n  the search was bounded: {bounded}" in shell("show", "--kind", "dc").out
    assert f"\n  the search was bounded: {bounded}" in shell("explain", "tax", "--predicates").out
    [table] = shell("show", "--kind", "dc", "--json").json()["tables"]
    assert table["dcs"] == {
        "evidence": "counted",
        "n_predicates": 8,
        "max_predicates": 2,
        "max_error": None,
        "operators": ["=", "!="],
        "columns": ["zip", "state", "salary", "rate"],
        "within_columns": False,
        "limits": {"seconds": 60.0, "max_dcs": 1_000_000},
        "stopped": False,
    }
    less = shell(
        "track-all", f"b={source}", "--kinds", "dc", "--operators", "<", "--columns", "s*,rate", "--json"
    )
    assert less.code == 0, less.err
    assert less.json()["bounds"] == [
        "only the operators < > (--operators)",
        "only the columns [state, salary, rate] (--columns, --exclude)",
    ]
    assert less.json()["tables"][0]["bounds"] == less.json()["bounds"]
    assert "bounds" not in shell("track", "c", source, "--json").json()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--max-predicates", "2"], "--max-predicates is about denial constraints, which are not to"),
        (["--kinds", "fd", "--operators", "="], "--operators is about denial constraints"),
        (["--kinds", "ind", "--evidence", "counted"], "--evidence is about functional dependencies and"),
        (["--kinds", "ucc", "--exclude", "a"], "--exclude is about inclusions, denial constraints and"),
        (["--kinds", "ucc", "--max-error", "0.1"], "--max-error is about functional dependencies, denial"),
        (["--kinds", "dc", "--operators", "=,~"], "'~' is no operator of predicates. Operators: ="),
        (["--kinds", "dc", "--operators", ""], "no operator is given. Operators: = != < <= > >=."),
        (["--kinds", "dc", "--max-error", "1"], "max_error is 1.0; expected a share between 0 and 1"),
        (["--kinds", "dc", "--evidence", "witnessed", "--max-error", "0.1"], "errors are known from counted"),
    ],
)  # fmt: skip
def test_options_for_what_is_not_kept(tmp_path: Path, options: list[str], error: str) -> None:
    shell = Shell(tmp_path)
    denied(shell("track", "t", shell.file("t.csv", TAX), *options), f"UsageError: {error}")


# --- Showing ----------------------------------------------------------------------------------------------


def test_show_denial_constraints(shell: Shell) -> None:
    few = shell("show", "--kind", "dc").out.splitlines()
    outcome = shell("show", "--kind", "dc", "--all")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert few == [
        *lines[:7],
        "  ... and 11 denial constraints implied by row rules, or perhaps chance; all with "
        "'holdfast show --all'",
    ]
    assert lines[:5] == [
        "tax: 8 rows, 14 minimal denial constraints (22 predicates, counted evidence, version 1)",
        "    1  not(t.net = s.net)",
        "       a key: no two rows have the same net",
        "    2  not(t.zip = s.zip and t.state != s.state)",
        "       the FD zip -> state: rows with the same zip have the same state",
    ]
    at = lines.index(f"    3  {PROGRESSIVE}")
    assert lines[at + 1] == f"       {SAID}"
    assert len(lines) == 1 + 2 * 14


def test_show_row_rules(shell: Shell) -> None:
    assert shell("show", "--kind", "row").out.splitlines() == [
        "tax: 8 rows, 4 row rules (version 1)",
        "  salary > net  salary is greater than net",
        "  zip != state  zip differs from state",
        "  the values of these columns are far apart, so they may say little:",
        "    salary > rate  salary is greater than rate",
        "    rate < net     rate is less than net",
    ]
    assert shell("apply", "tax", "--inserts", shell.file("b.csv", BREAKS)).code == 0
    assert (
        "  salary > net  salary is greater than net  error 0.111, 1 exception among 8 rows\n"
        in shell("show", "--kind", "row", "--max-error", "0.2").out
    )
    assert "  salary != net  salary differs from net\n" in shell("show", "--kind", "row").out


def test_show_of_all_kinds(with_keys: Path) -> None:
    shell = Shell(with_keys)
    headings = [line for line in shell("show").out.splitlines() if not line.startswith(" ") and line]
    assert [re.sub(" [(].*", "", h) for h in headings] == [
        "tax: 8 rows, 3 minimal keys",
        "tax: 8 rows, 11 minimal functional dependencies",
        "tax: 8 rows, 14 minimal denial constraints",
        "tax: 8 rows, 4 row rules",
    ]
    assert "not(" not in shell("show", "--kind", "ucc").out + shell("show", "--kind", "fd").out
    # Without a kind, functional dependencies are ranked.
    assert "functional dependencies, best first" in shell("show", "--top", "2").out


def test_show_as_json(shell: Shell) -> None:
    document = shell("show", "--kind", "dc", "--json").json()
    assert document["version"] == 1
    [found] = [
        d
        for d in document["dependencies"]
        if len(d["predicates"]) == 2 and d["fd"] and d["fd"]["lhs"] == ["zip"]
    ]
    assert found == {
        "kind": "dc",
        "table": "tax",
        "predicates": [
            {"left": "zip", "op": "=", "right": "zip"},
            {"left": "state", "op": "!=", "right": "state"},
        ],
        "error": 0.0,
        "sentence": "rows with the same zip have the same state",
        "key": None,
        "fd": {"lhs": ["zip"], "rhs": "state"},
        "role": "chance",
        "muted": False,
        "score": 0.5,
    }
    assert document["dependencies"][0]["key"] == ["net"]
    rules = shell("show", "--kind", "row", "--json").json()["dependencies"]
    assert (rules[0]["sentence"], rules[0]["apart"]) == ("salary is greater than net", False)
    assert {d["kind"] for d in shell("show", "--json").json()["dependencies"]} == {"dc", "row"}


def test_show_at_a_version_and_within_an_error(shell: Shell) -> None:
    assert shell("apply", "tax", "--inserts", shell.file("b.csv", BREAKS)).code == 0
    formula = f"    2  {RULE}"
    assert formula not in shell("show", "--kind", "dc").out.splitlines()
    assert formula in shell("show", "--kind", "dc", "--at", "1").out.splitlines()
    near = shell("show", "--kind", "dc", "--max-error", "0.1").out.splitlines()
    assert "minimal denial constraints with an error of at most 0.1 (22 predicates" in near[0]
    assert any(line.startswith("    ") and "error 0.0" in line for line in near)
    assert any(line.startswith("       almost: ") for line in near)
    denied(
        shell("show", "--kind", "dc", "--max-error", "0.1", "--at", "1"),
        "UsageError: errors of denial constraints of older versions",
    )
    both = shell("show", "--max-error", "0.1", "--at", "1")
    assert both.code == 0
    assert both.err.startswith("note: exact ones are shown: errors of denial constraints of older versions")


def test_other_forms(shell: Shell) -> None:
    concise = shell("show", "--kind", "dc", "--concise")
    heading, dropped, *lines = concise.out.splitlines()
    n = int(re.match(r"tax: 8 rows, (\d+) concise denial constraints", heading)[1])  # type: ignore[index]
    assert n < 14
    assert dropped == f"  {14 - n} more follow from them, and are left out"
    assert len(lines) == 2 * n
    [table] = shell("show", "--kind", "dc", "--concise", "--json").json()["tables"]
    assert (table["dcs"]["form"], table["dcs"]["n_dropped"]) == ("concise", 14 - n)
    many = shell("show", "--kind", "dc", "--set-minimal").out.splitlines()
    assert int(re.match(r"tax: 8 rows, (\d+) set-minimal denial constraints", many[0])[1]) > 14  # type: ignore[index]
    assert shell("show", "--kind", "dc", "--set-minimal", "--all").out.splitlines() == many


def prices(n: int = 80) -> str:
    """Days of a stock: low <= last <= high in each row, last twice; each market has one currency."""
    draw = random.Random(4)
    lines = ["day,market,currency,low,last,high,final"]
    for day in range(n):
        low, last, high = sorted(draw.sample(range(300), 3))
        market = draw.randrange(12)
        lines.append(f"{day},m{market},c{market % 5},{low},{last},{high},{last}")
    return "\n".join(lines) + "\n"


def test_ranked(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    assert shell("track", "prices", shell.file("prices.csv", prices()), "--kinds", "dc").code == 0
    outcome = shell("show", "--kind", "dc", "--top", "20")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    expected = (
        r"prices: 5 rules among ([\d,]+) denial constraints and (\d+) row rules, best first \(version 1\)"
    )
    heading = re.fullmatch(expected, lines[0])
    assert heading
    rules = {line[8:] for line in lines if re.match(r"  \d\.\d\d  ", line)}
    assert rules == {
        "not(t.day = s.day)",
        "last = final",
        "low < last",
        "last < high",
        "not(t.market = s.market and t.currency != s.currency)",
    }
    assert not any(line.startswith("       a key: ") for line in lines)  # the reasons say so
    assert re.fullmatch(r"  and [\d,]+ that follow from row rules(, .*)?", lines[-2])
    assert re.fullmatch(r"  [\d,]+ more look like accidents of the rows at hand", lines[-1])
    # A ranking is concise, asked or not.
    assert shell("show", "--kind", "dc", "--top", "20", "--concise").out == outcome.out
    document = shell("show", "--kind", "dc", "--top", "3", "--concise", "--json").json()
    assert len(document["dependencies"]) == 3
    by_kind = {d["kind"]: d for d in document["dependencies"]}
    assert {"predicates", "sentence", "score", "reasons", "key", "fd"} <= by_kind["dc"].keys()
    assert {"left", "op", "right", "sentence", "score", "reasons"} <= by_kind["row"].keys()
    ranking = document["tables"][0]["ranking"]
    assert f"{ranking['n_dcs']:,}" == heading[1]
    assert f"{ranking['n_row_rules']:,}" == heading[2]
    n_folded = sum(ranking["folded"].values())
    assert ranking["n_dcs"] + ranking["n_row_rules"] == (
        ranking["n_rules"] + n_folded + ranking["n_accidents"] + ranking["n_open"]
    )
    assert "form" not in document["tables"][0]["dcs"]


def test_a_ranking_says_what_it_left_out() -> None:
    def ranked(name: str) -> RankedRule:
        return RankedRule(dc(f"t.{name} = s.{name}"), 0.5, 1.0, 0.5, None, None, 1, 0, ("why",))

    def printed(ranking: DcRanking) -> list[str]:
        file = io.StringIO()
        print_ranking(Paper(file), "t", ranking, version=1)
        return file.getvalue().splitlines()

    folded = Folded(row_rules=1200, keys=3, others=1)
    assert printed(DcRanking((ranked("a"),), 2, 9000, 1, folded, 7000, 795, True)) == [
        "t: the first 1 of 2 rules among 9,000 denial constraints and 1 row rule, best first (version 1)",
        "  0.50  not(t.a = s.a)",
        "        no two rows have the same a",
        "        why",
        "  and 1,200 that follow from row rules, 3 from keys, 1 from other rules",
        "  7,000 more look like accidents of the rows at hand",
        "  795 more were not looked at: they are too many",
    ]
    assert printed(DcRanking((), 0, 1, 0, Folded(), 1, 0, True)) == [
        "t: 0 rules among 1 denial constraint (version 1)",
        "  1 more looks like an accident of the rows at hand",
    ]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--kind", "dcs"], "dependencies of kind 'dcs' are not known. Kinds: ucc, fd, ind, dc, row, "),
        (["--kind", "dc", "--top", "3", "--at", "1"], "--top ranks what holds now: leave out --at."),
        (["--kind", "row", "--top", "3"], "--top ranks functional dependencies, or denial constraints:"),
        (["--kind", "dc", "--top", "3", "--max-error", "0.1"], "--top ranks denial constraints that hold"),
        (["--kind", "fd", "--concise"], "--concise is about denial constraints: give --kind dc in place of"),
        (["--set-minimal"], "--set-minimal is about denial constraints: give --kind dc."),
        (["--kind", "dc", "--concise", "--set-minimal"], "--concise lists fewer denial constraints,"),
        (["--kind", "dc", "--set-minimal", "--top", "3"], "--set-minimal and --top do not go together"),
        (["--kind", "dc", "--set-minimal", "--max-error", "0.1"], "--set-minimal and --max-error do not go"),
        (["--kind", "dc", "--with-empty"], "--with-empty says nothing about dependencies of kind dc"),
        (["--kind", "row", "--non-uniques"], "--non-uniques says nothing about dependencies of kind row"),
    ],
)  # fmt: skip
def test_show_of_what_cannot_be(shell: Shell, options: list[str], error: str) -> None:
    denied(shell("show", *options), f"UsageError: {error}")


def test_what_is_not_kept_is_said(tmp_path: Path) -> None:
    shell = track(tmp_path, kinds="ucc")
    assert shell("show", "--kind", "dc").out.startswith("no denial constraints are kept (version 1). Track")
    assert shell("show", "--kind", "row").out.startswith("no row rules are kept (version 1). Track")
    denied(
        shell("explain", "tax", "--predicates"),
        "UsageError: denial constraints of table 'tax' are not tracked",
    )
    denied(
        shell("explain", "tax", "--indexes"), "UsageError: denial constraints of table 'tax' are not tracked"
    )
    # A rule can be asked for all the same: it is verified on the rows.
    told = shell("explain", "tax", "net < salary").out
    assert told.startswith("tax: net < salary holds (version 1)\n  net is less than salary\n")
    assert "found by a look at the rows: it is not among the row rules that are kept" in told
    told = shell("explain", "tax", RULE).out
    assert told.startswith(f"tax: {RULE} holds (version 1)\n  the FD zip -> state: ")
    assert "found by a look at the rows: it is not among the constraints that are kept" in told


def test_row_rules_alone(tmp_path: Path) -> None:
    shell = track(tmp_path, "--max-error", "0.2", "--columns", "salary,net", kinds="row")
    assert shell("show").out.splitlines() == [
        "tax: 8 rows, 1 row rule (version 1)",
        "  salary > net  salary is greater than net",
    ]
    told = shell("apply", "tax", "--inserts", shell.file("b.csv", BREAKS)).out
    assert "salary > net does not hold any more: 1 row of 8 violates it (error 0.1111, within 0.2):" in told
    assert shell("show", "--kind", "dc").out.startswith("no denial constraints are kept")


def test_witnessed_evidence(tmp_path: Path) -> None:
    shell = track(tmp_path, "--evidence", "witnessed")
    heading = "tax: 8 rows, 14 minimal denial constraints (22 predicates, witnessed evidence, version 1)\n"
    assert shell("show", "--kind", "dc").out.startswith(heading)
    denied(
        shell("show", "--kind", "dc", "--max-error", "0.1"),
        "UsageError: table 'tax' keeps witnessed evidence",
    )
    told = shell("explain", "tax", "--indexes").out.splitlines()
    assert told[0].startswith(
        "tax: 1 access for 14 denial constraints, by 0 posting lists and 0 order indexes"
    )
    assert told[2:] == [
        "  kind  serves  coverage  selectivity  score  rank  cost   asks for",
        "  scan  14      14        1            -      -     32 ns  "
        "all rows, on [zip, state, salary, rate, net]",
    ]
    assert shell("explain", "tax", "--indexes", "--json").json()["accesses"][0]["kind"] == "scan"


def test_reading_imports_neither_spark_nor_numba_nor_pandas(shell: Shell) -> None:
    assert shell("pin", RULE).code == 0
    for command in (
        ["show"],
        ["show", "--kind", "dc", "--json"],
        ["explain", "tax", "--predicates"],
        ["log"],
    ):
        outcome = shell.process(*command, code=WHAT_IS_IMPORTED)
        assert (outcome.code, outcome.err) == (0, "[]\n"), command


# --- Explaining -------------------------------------------------------------------------------------------


def test_explain_a_rule_that_holds(shell: Shell) -> None:
    assert shell("explain", "tax", PROGRESSIVE).out.splitlines() == [
        f"tax: {PROGRESSIVE} holds (version 1)",
        f"  {SAID}",
        "  since version 1",
        "  minimal: none of its predicates can be dropped or loosened",
    ]
    looser = "not(t.state = s.state and t.salary < s.salary and t.rate > s.rate)"
    assert shell("explain", "tax", looser).out.splitlines() == [
        f"tax: {looser} holds (version 1)",
        "  of two rows with the same state, the one with the higher salary never has the lower rate",
        "  since version 1",
        "  not minimal: this says as much or more",
        f"    {PROGRESSIVE}",
        f"      {SAID}",
    ]
    trivial = shell("explain", "tax", "not(t.rate < s.rate and t.rate > s.rate)").out
    assert trivial.endswith("  holds in every table: its comparisons of rate contradict each other\n")
    circle = "not(t.salary = s.net and t.net = s.salary and t.net = s.net and t.salary != s.salary)"
    told = shell("explain", "tax", circle).out
    assert told.startswith(f"tax: {circle} holds (version 1)\n")
    assert told.endswith("\n  holds in every table: its comparisons run in a circle\n")


def test_explain_a_rule_that_does_not_hold(shell: Shell) -> None:
    assert shell("apply", "tax", "--inserts", shell.file("b.csv", BREAKS)).code == 0
    outcome = shell("explain", "tax", RULE)
    assert outcome.out.splitlines() == [
        f"tax: {RULE} does not hold (version 2)",
        "  the FD zip -> state: rows with the same zip have the same state",
        "  since version 2",
        "  4 ordered pairs of rows violate it, of 72 (error 0.0556)",
        "  rows that violate it now:",
        "    row    zip  state  |  salary  rate  net",
        "    t 0.0  Z1   NY     |  50      5     45",
        "    s 1.0  Z1   CA     |  90      9     91",
        "    row    zip  state  |  salary  rate  net",
        "    t 0.1  Z1   NY     |  60      6     54",
        "    s 1.0  Z1   CA     |  90      9     91",
    ]
    document = shell("explain", "tax", RULE, "--json").json()
    assert (document["holds"], document["n_violations"], document["error"]) == (False, 4, 4 / 72)
    assert document["sentence"] == "rows with the same zip have the same state"
    assert [row["row"] for row in document["pairs"][0]] == ["0.0", "1.0"]


def test_explain_a_row_rule(shell: Shell) -> None:
    assert shell("explain", "tax", "salary>net").out.splitlines() == [
        "tax: salary > net holds (version 1)",
        "  salary is greater than net",
        "  since version 1",
        "  in all 7 rows with both values",
    ]
    apart = shell("explain", "tax", "rate <= salary").out
    assert "the values of the columns are far apart, so it may say little" in apart
    assert shell("apply", "tax", "--inserts", shell.file("b.csv", BREAKS)).code == 0
    assert shell("explain", "tax", "net < salary").out.splitlines() == [
        "tax: net < salary does not hold (version 2)",
        "  net is less than salary",
        "  since version 2",
        "  1 of 8 rows with both values violates it (error 0.111)",
        "  exceptions:",
        "    row  salary  net  |  zip  state  rate",
        "    1.0  90      91   |  Z1   CA     9",
    ]
    assert shell("explain", "tax", "net < salary", "--json").json()["exceptions"][0]["row"] == "1.0"


def test_times_are_before_and_after(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    rows = "ordered,shipped\n2024-01-01,2024-01-02\n2024-01-05,2024-01-05\n2024-01-03,\n"
    assert shell("track", "t", shell.file("t.csv", rows), "--kinds", "row").code == 0
    assert "  ordered <= shipped  ordered is not after shipped\n" in shell("show").out
    assert "\n  shipped is not before ordered\n" in shell("explain", "t", "shipped >= ordered").out
    [rule] = shell("show", "--json").json()["dependencies"]
    assert rule["sentence"] == "ordered is not after shipped"


def test_explain_predicates(shell: Shell, tmp_path: Path) -> None:
    assert shell("explain", "tax", "--predicates").out.splitlines() == [
        "tax: 22 predicates in 5 pairs of columns, as decided when it was tracked (version 1)",
        "  each with itself by = != < <= > >=:",
        "    [salary, rate, net]",
        "  each with itself by = !=:",
        "    [zip, state]",
        "  none with another: no two of one type shared at least 30 % of the values of the one that has more "
        "of them",
    ]
    rows = "low,high,a,b\n1,2,x,y\n2,3,y,x\n3,1,x,x\n"
    assert shell("track", "t", shell.file("t.csv", rows), "--kinds", "dc").code == 0
    assert shell("explain", "t", "--predicates").out.splitlines()[5:] == [
        "  with another of the same type, where they shared at least 30 % of the values of the one that has "
        "more of them:",
        "    low with high  by = != < <= > >=",
        "    a with b       by = !=",
    ]
    document = shell("explain", "t", "--predicates", "--json").json()
    assert document["n_predicates"] == 3 * 6 + 3 * 2  # across columns: of both directions one
    assert {
        "left": "high",
        "right": "low",
        "ordered": True,
        "operators": ["=", "!=", "<", "<=", ">", ">="],
    } in (document["groups"])


def test_counted_evidence_needs_no_indexes(shell: Shell) -> None:
    told = shell("explain", "tax", "--indexes").out
    assert told == "tax: counted evidence needs no indexes: a batch is compared with all rows (version 1)\n"


def test_many_constraints_say_as_much() -> None:
    implying = tuple(dc(f"t.c{i} = s.c{i}") for i in range(25))
    told = DcExplanation("t", dc("t.a = s.a"), 3, True, 0, (), False, implying, None, True)
    file = io.StringIO()
    print_dc_explanation(Paper(file), told, n_rows=9)
    lines = file.getvalue().splitlines()
    assert lines[2:4] == ["  pinned", "  not minimal: these say as much or more"]
    assert lines[-1] == "    ... and 5 more; all with --json"
    file = io.StringIO()
    print_indexes(Paper(file), IndexReport("t", "witnessed", None), version=2)
    assert (
        file.getvalue()
        == "t: witnessed evidence needs no indexes: there is too little to look up (version 2)\n"
    )


@pytest.mark.parametrize(
    ("rule", "error", "caret"),
    [
        ("not(t.zip = s.zp)", "UnknownColumnError: table 'tax' (version 1) has no column 'zp'", 14),
        ("not(t.zip ~ s.zip)", "UsageError: at character 11 of the rule: expected an operator", 10),
        ("not(t.zip = t.state and t.a = s.a)", "UsageError: at character 5 of the rule: both sides are", 4),
        ("not(t.zip = s.zip or t.rate = s.rate)", "UsageError: at character 19 of the rule: a rule has", 18),
        ("not(t.zip = s.zip", "UsageError: at character 18 of the rule: expected 'and' or ')', found", 17),
        ("t.zip = s.zip", "UsageError: at character 1 of the rule: a rule starts with 'not('", 0),
        ("not(t.state < s.state)", "UsageError: at character 13 of the rule: 'state' is of type text", 12),
        ("not(t.zip = s.rate)", "UsageError: at character 11 of the rule: 'zip' is of type text", 10),
        ("not(t.rate > 5 and t.a = s.a)", "UsageError: at character 14 of the rule: constants are not", 13),
        ("zip < state", "UsageError: at character 5 of the rule: zip and state are text", 4),
        ("salary = zip", "UsageError: at character 8 of the rule: salary is int and zip is text", 7),
        ("salary >= 'x'", "UsageError: at character 11 of the rule: 'salary' of table 'tax' is of", 10),
        ("salary >= nett", "UnknownColumnError: table 'tax' (version 1) has no column 'nett'", 10),
        ("salary >= salary", "UsageError: at character 11 of the rule: both sides are salary", 10),
        ("salary >< net", "UsageError: at character 8 of the rule: '><' is no operator", 7),
    ],
)  # fmt: skip
def test_errors_point_at_the_place(shell: Shell, rule: str, error: str, caret: int) -> None:
    outcome = shell("explain", "tax", rule)
    assert (outcome.code, outcome.out) == (2, "")
    message, shown, pointer = outcome.err.splitlines()
    assert message.startswith(error)
    assert shown == f"  {rule}"
    assert pointer == "  " + " " * caret + "^"


def test_a_long_rule_is_not_wrapped(shell: Shell) -> None:
    rule = "not(" + "t.zip = s.zip and " * 12 + "t.zip ~ s.zip)"
    _, shown, pointer = shell("explain", "tax", rule).err.splitlines()
    assert shown[len(pointer) - 1] == "~"
    # A rule of several lines: the line in question.
    _, shown, pointer = shell("pin", "tax", "not(t.zip = s.zip\n  and t.zip ~ s.zip)").err.splitlines()
    assert (shown, shown[len(pointer) - 1]) == ("    and t.zip ~ s.zip)", "~")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "nothing of table 'tax' is asked for: name columns, a functional dependency or a rule"),
        (["zip", RULE], "put the whole rule in one argument"),
        (["zip", "is", "not", "null"], "put the whole rule in one argument: 'zip is not null'."),
        (["net >= 0", "zip >= '1'"], "one rule is given at a time, and here are 2: net >= 0, zip >= '1'."),
        (["zip -> state", "state -> zip"], "one functional dependency is given at a time, and here are 2: "),
        ([RULE, "--in", "tax.zip"], "a rule is about one table: leave out --in."),
        (["zip", "--predicates"], "--predicates and --indexes are about all denial constraints of a table"),
        (["--predicates", "--indexes"], "--predicates and --indexes are two questions"),
    ],
)
def test_explain_of_what_is_none(shell: Shell, arguments: list[str], error: str) -> None:
    denied(shell("explain", "tax", *arguments), f"UsageError: {error}")


@pytest.mark.parametrize(
    ("asked", "name", "hint"),
    [
        ("tax.salary > 0", "tax.salary", "Did you mean 'salary'? It is at"),
        ("zip -> tax.state", "tax.state", "Did you mean 'state'?"),
        ("zip → state", "zip → state", "An arrow is written ->."),
        ("zip --> state", "zip -", "An arrow is written ->."),
    ],
)
def test_what_people_write_otherwise_is_hinted_at(shell: Shell, asked: str, name: str, hint: str) -> None:
    error = shell("violations", "tax", asked).err.splitlines()[0]
    assert f"has no column '{name}'. Columns: zip, state, " in error
    assert f". {hint}" in error


def test_odd_names_can_be_copied(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    odd = shell.file("odd.csv", 'low bound,a<b,"x ""y"""\n1,2,p\n2,3,p\n2,2,q\n')
    assert shell("track", "odd", odd, "--kinds", "ucc,dc").code == 0
    for kind, start in (("dc", 7), ("row", 2)):
        for line in shell("show", "--kind", kind).out.splitlines()[1:]:
            rule = re.split(" {2,}", line[start:])[0]
            if line[start - 1] == " " and line[start] != " " and ("not(" in rule) == (kind == "dc"):
                assert shell("explain", "odd", rule).out.startswith(f"odd: {rule} "), rule
    assert shell("explain", "odd", "a<b").out.startswith("odd[a<b] is not unique")  # a column as it is
    assert shell("explain", "odd", "a<b, low bound").out.startswith("odd[low bound, a<b] is unique")


# --- Pinning ----------------------------------------------------------------------------------------------


def test_pin_a_rule(shell: Shell) -> None:
    outcome = shell("pin", RULE)  # there is one table
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines() == [
        f"pinned tax: {RULE}: holds (version 2)",
        "  the FD zip -> state: rows with the same zip have the same state",
    ]
    assert shell("explain", "tax", RULE).out.splitlines()[3] == "  pinned"
    assert f"  pinned {RULE}: holds\n" in shell("show", "--kind", "dc").out
    assert RULE not in shell("show", "--kind", "row").out
    harmless, breaks = shell.file("h.csv", HARMLESS), shell.file("b.csv", BREAKS)
    fine = shell("check", "tax", "--inserts", harmless)
    assert (fine.code, fine.out.splitlines()[1]) == (0, "  1 pin would hold")
    bad = shell("check", "tax", "--inserts", breaks)
    assert bad.code == 1
    assert bad.out.splitlines()[1:10] == [
        f"  pinned {RULE}: WOULD NOT HOLD",
        "    the FD zip -> state: rows with the same zip have the same state",
        "    4 ordered pairs of rows violate it, such as:",
        "      row    zip  state  |  salary  rate  net",
        "      t 1.0  Z1   CA     |  90      9     91",
        "      s 0.0  Z1   NY     |  50      5     45",
        "      row    zip  state  |  salary  rate  net",
        "      t 1.0  Z1   CA     |  90      9     91",
        "      s 0.1  Z1   NY     |  60      6     54",
    ]
    assert shell("apply", "tax", "--inserts", breaks, "--json").json()["pins"][0]["n_violations"] == 4
    shown = shell("show", "--kind", "dc").out.splitlines()
    assert shown[1:4] == [
        f"  pinned {RULE}: DOES NOT HOLD",
        "    the FD zip -> state: rows with the same zip have the same state",
        "    4 ordered pairs of rows violate it",
    ]
    gone = shell("pin", "tax", "not(t.state != s.state and t.zip = s.zip)", "--remove")  # the same rule
    assert gone.out == f"tax: {RULE} is no longer pinned (version 4)\n"
    assert "pinned" not in shell("show").out
    actions = [line for line in shell("log").out.splitlines() if "pin" in line]
    assert [line.split("UTC  ")[1] for line in actions] == [f"pin tax: {RULE}", f"unpin tax: {RULE}"]


def test_pin_where_nothing_else_is_discovered(tmp_path: Path) -> None:
    shell = track(tmp_path, "--append-only", kinds="ind")
    rule = "not(t.state = s.state and t.salary < s.salary and t.rate >= s.rate)"
    pinned = shell("pin", "tax", rule, "--json").json()
    assert (pinned["holds"], pinned["pinned"], pinned["n_violations"]) == (False, True, 2)
    assert pinned["formula"] == rule
    assert [[row["values"]["salary"] for row in pair] for pair in pinned["witnesses"]] == [
        [60, 70],
        [70, 80],
    ]
    told = shell("pin", "tax", rule).out.splitlines()
    assert told[0] == f"pinned tax: {rule}: DOES NOT HOLD (version 2)"  # as it was: no new version
    assert told[2] == "  2 ordered pairs of rows violate it, such as:"
    assert told[3:6] == [
        "    row    state  salary  rate  |  zip  net",
        "    t 0.1  NY     60      6     |  Z1   54",
        "    s 0.6  NY     70      6     |  Z4   64",
    ]
    shown = shell("show", "--kind", "dc").out.splitlines()
    assert shown[0] == "tax: 8 rows, 1 pinned rule (version 2)"
    assert shown[1] == f"  pinned {rule}: DOES NOT HOLD"
    assert shell("check", "tax", "--inserts", shell.file("h.csv", HARMLESS)).code == 1
    assert rule in shell("show").out


def test_which_table_is_meant(shell: Shell) -> None:
    assert shell("track", "more", shell.file("tax.csv", TAX)).code == 0
    denied(shell("pin", RULE), "UsageError: the workspace has 2 tables: say which one the rule")
    assert shell("pin", "more", RULE).out.startswith(f"pinned more: {RULE}: holds")
    denied(shell("pin", "less", RULE), "UnknownTableError: the workspace has no table 'less'")
    denied(shell("pin", "more", "zip", RULE), "UsageError: put the whole rule in one argument")
    denied(shell("pin", "more", RULE, "--in", "tax.zip"), "UsageError: a rule is about one table")
    denied(
        shell("pin", "tax", RULE, "--remove"), f"UsageError: the rule {RULE!r} of table 'tax' is not pinned."
    )
    denied(
        shell("pin", "more", "t.zip = s.zip"), "UsageError: at character 1 of the rule: a rule starts with"
    )
    denied(shell("pin", "more"), "UsageError: nothing of table 'more' is asked for: name columns")


# --- Batches ----------------------------------------------------------------------------------------------


def test_a_batch_breaks_rules(with_keys: Path) -> None:
    shell = Shell(with_keys)
    outcome = shell("check", "tax", "--inserts", shell.file("b.csv", BREAKS))
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    headings = [line.strip() for line in lines if re.match("  would", line)]
    # What says most comes first: of each event, keys and functional dependencies.
    assert [re.sub(r"(, .*|: [\d,]+)", "", h) for h in headings] == [
        "would break functional dependency",
        "would break row rule",
        "would break denial constraint",
        "would appear functional dependency",
        "would appear row rule with != or between columns whose values are far apart; all with --json",
    ]
    assert "    zip -> state does not hold any more:" in lines
    assert "told above as a key or functional dependency" in outcome.out
    at = lines.index("    salary > net does not hold any more: 1 row of 8 violates it (error 0.1111):")
    assert lines[at + 1 : at + 3] == [
        "      row  salary  net  |  zip  state  rate",
        "      1.0  90      91   |  Z1   CA     9",
    ]


def test_a_pair_proves_that_a_rule_broke(shell: Shell) -> None:
    # A higher rate for a lower salary.
    odd = shell.file("odd.csv", "zip,state,salary,rate,net\nZ9,CA,55,9,52\n")
    told = shell("apply", "tax", "--inserts", odd).out.splitlines()
    at = told.index(f"    {PROGRESSIVE} does not hold any more:")
    assert told[at + 1] == f"      {SAID}"
    assert told[at + 2].split()[:4] == ["row", "state", "salary", "rate"]
    t, s = (line.split() for line in told[at + 3 : at + 5])
    assert t[:5] == ["t", "1.0", "CA", "55", "9"]
    assert (s[0], s[2]) == ("s", "CA")
    assert int(s[3]) >= 55
    assert int(s[4]) < 9
    gone = shell("apply", "tax", "--deletes", odd).out
    assert "  appeared: " in gone
    assert f"    {PROGRESSIVE} holds now; rows that violated it are gone, such as:\n" in gone
    same = shell("apply", "tax", "--inserts", shell.file("n.csv", "zip,state,salary,rate,net\n"))
    assert "  the same denial constraints and row rules hold as before\n" in same.out


def test_log(shell: Shell) -> None:
    assert shell("apply", "tax", "--inserts", shell.file("b.csv", BREAKS)).code == 0
    whole = shell("log").out
    assert "track tax: 8 rows, 14 denial constraints" in whole
    assert "    broke: 1 implied by row rules, or perhaps chance\n" in whole
    assert "    broke: salary > net\n" in whole
    rules = shell("log", "--kind", "dc").out
    assert "    broke: not(" in rules
    assert "salary > net" not in rules
    assert "not(" not in shell("log", "--kind", "row").out
    assert "    broke: salary > net\n" in shell("log", "--kind", "row").out
    entry = shell("log", "--kind", "row", "--json").json()["log"][1]
    assert {c["dependency"]["kind"] for c in entry["changes"]} == {"row"}


# --- Exporting --------------------------------------------------------------------------------------------


def test_row_rules_are_exported_as_checks(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    head = "id,ordered,shipped,net,gross\n"
    rows = f"{head}101,2024-01-01,2024-01-02,5,6\n102,2024-01-05,2024-01-05,3,3\n103,2024-01-03,,7,8\n"
    assert shell("track", "o", shell.file("o.csv", rows), "--kinds", "ucc,row").code == 0
    script = shell("export", "--dialect", "duckdb").out
    assert '  CONSTRAINT "o_ordered_shipped_ck" CHECK ("ordered" <= "shipped")' in script
    assert '  CONSTRAINT "o_net_gross_ck" CHECK ("net" <= "gross")\n);' in script
    left_out = "-- row rules of o that are not declared here, with <> or about values that are far apart: 2\n"
    assert left_out in script
    assert 'CHECK ("id" > "net")' in shell("export", "--all-keys").out
    database = duckdb.connect()
    database.execute(script)
    database.execute("INSERT INTO o VALUES (1, '2024-01-01', NULL, 5, 6)")
    with pytest.raises(duckdb.ConstraintException):
        database.execute("INSERT INTO o VALUES (2, '2024-01-01', NULL, 7, 6)")
    assert "CHECK" not in shell("export", "--format", "dbt").out
    late = shell.file("late.csv", f"{head}4,2024-02-01,2024-01-31,1,1\n")
    assert shell("apply", "o", "--inserts", late).code == 0
    assert '"ordered" <= "shipped"' not in shell("export").out
    near = shell("export", "--max-error", "0.3").out
    assert "-- o: ordered <= shipped: it does not hold: 1 of 3 rows violates it\n" in near
    assert '-- ALTER TABLE "o" ADD CONSTRAINT "o_ordered_shipped_ck" CHECK ("ordered" <= "shipped");' in near


# --- On paper ---------------------------------------------------------------------------------------------


def dc(*predicates: str, error: float = 0.0, table: str = "t") -> Dc:
    found = []
    for text in predicates:
        left, op, right = text.split()
        found.append(Predicate(left[2:], as_operator(op), right[2:]))
    return Dc(table, tuple(found), error)


def as_operator(text: str) -> Operator:
    operators: dict[str, Operator] = {"=": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
    return operators[text]


def row(row_id: int, **values: object) -> WitnessRow:
    return WitnessRow(row_id, values)


def printed(change: Change, *, terminal: bool = False, width: int = 100) -> str:
    file = io.StringIO()
    print_change(Paper(file, terminal=terminal, width=width), change)
    return ANSI.sub("", file.getvalue())


def test_few_of_many_broken_constraints_are_listed() -> None:
    pair: Pair = (row(1, a=1, b=2), row(2, a=3, b=4))
    many = [dc("t.a < s.a", f"t.c{i} = s.c{i}") for i in range(30)]
    broke = tuple(DependencyChange("broke", d, "does not hold any more", (pair,)) for d in many)
    came = tuple(DependencyChange("appeared", d, "holds now") for d in many)
    crossing = DependencyChange("broke", dc("t.a < s.b", "t.c = s.c"), "is last:", score=-0.1)
    simple = DependencyChange("broke", dc("t.x = s.x"), "is first:", score=1.0)
    table = part("t", 1, 0, 9, None, n_dcs=9)
    lines = printed(Change("apply", 2, (table,), (crossing, *broke, simple, *came), 0.1)).splitlines()
    assert lines[1] == "  broke: 32 denial constraints"
    assert "    ... and 22 more; all with --json" in lines
    assert "    ... and 27 more; all with --json" in lines
    assert sum(line.startswith("    not(t.a") for line in lines) == 9 + 3
    assert not any("is last:" in line for line in lines)  # with few columns compared with others first
    assert "    not(t.x = s.x) is first:" in lines
    # One pair proves nine of them: it is shown once.
    assert sum(line.startswith("      t 0.1  1") for line in lines) == 1


def test_what_a_rule_compares_is_marked() -> None:
    pair: Pair = (row(1, low=5, high=6), row(2, low=7, high=8))
    change = DependencyChange("broke", dc("t.low < s.high"), "does not hold any more", (pair,))
    file = io.StringIO()
    paper = Paper(file, terminal=True, width=80)
    print_change(paper, Change("apply", 2, (part("t", 1, 0, 9, None, n_dcs=9),), (change,), 0.1))
    assert "\x1b[31m5" in file.getvalue()
    assert "\x1b[31m8" in file.getvalue()
    assert "\x1b[31m6" not in file.getvalue()
    assert "\x1b[31m7" not in file.getvalue()


def test_long_lists_are_cut_on_a_terminal_only() -> None:
    found = [dc(f"t.c{i} = s.c{i}", "t.x != s.x") for i in range(50)]
    rules = [RowRule("t", f"c{i}", "<", "x") for i in range(50)]
    schema = Schema((Column("x", Type("int")),))

    def shown(*, terminal: bool, everything: bool) -> tuple[list[str], list[str]]:
        files = io.StringIO(), io.StringIO()
        papers = [Paper(file, terminal=terminal, width=100) for file in files]
        print_dcs(papers[0], "t", found, version=1, n_rows=9, evidence="kept", everything=everything)
        print_row_rules(papers[1], "t", rules, schema, version=1, n_rows=9, everything=everything)
        a, b = (ANSI.sub("", file.getvalue()).splitlines() for file in files)
        return a, b

    dcs, rows = shown(terminal=True, everything=False)
    assert len(dcs) == 1 + 2 * 20 + 1
    assert dcs[-1].startswith("  ... and 30 more; the most telling with --top 20, all with --all")
    assert len(rows) == 1 + 40 + 1
    assert rows[-1].startswith("  ... and 10 more; all with --all")
    for terminal in (True, False):
        dcs, rows = shown(terminal=terminal, everything=True)
        assert (len(dcs), len(rows)) == (1 + 2 * 50, 1 + 50)
    assert len(shown(terminal=False, everything=False)[0]) == 1 + 2 * 50
    file = io.StringIO()
    print_dcs(Paper(file), "t", found, version=1, n_rows=9, form="set-minimal", complete=False)
    assert file.getvalue().splitlines()[:2] == [
        "t: 9 rows, the first 50 set-minimal denial constraints (version 1)",
        "  there are more of them; all with --all",
    ]


def test_nothing_of_a_rule_reaches_the_terminal_unescaped() -> None:
    evil = Dc("t", (Predicate("a\x1b[31m", "=", "a\x1b[31m"),))
    pair: Pair = (WitnessRow(1, {"a\x1b[31m": "\x1b]0;x"}), WitnessRow(2, {"a\x1b[31m": "\n"}))
    pin = Pin("t", evil.columns, False, rule=evil, n_violations=2, witnesses=(pair, (pair[1], pair[0])))
    change = DependencyChange("broke", evil, "does not hold any more", (pair,))
    table = part("t", 1, 0, 9, None, n_dcs=9, n_row_rules=1)
    text = printed(Change("apply", 2, (table,), (change,), 0.1, pins=(pin,)))
    rule = DependencyChange("broke", RowRule("t", "b\x1b[31m", "<", "c"), "does not hold any more")
    text += printed(Change("apply", 2, (table,), (rule,), 0.1))
    file = io.StringIO()
    print_row_rules(Paper(file), "t", [RowRule("t", "b\x1b[31m", "<", "c")], Schema(()), version=1, n_rows=1)
    assert "\x1b" not in text + file.getvalue()
    assert "\\x1b[31m" in text
    assert text.count("t 0.1") == 2  # once for what broke, once for the pin: (s, t) says the same


def test_several_tables_are_named() -> None:
    parts = tuple(part(name, 1, 0, 9, None, n_dcs=9) for name in ("t", "u"))
    change = DependencyChange("appeared", dc("t.a = s.a", table="u"), "holds now")
    pin = Pin("t", ("a",), True, rule=dc("t.a = s.a"))
    lines = printed(Change("apply", 2, parts, (change,), 0.1, pins=(pin,))).splitlines()
    assert "    u: not(t.a = s.a) holds now" in lines
    assert "  1 pin holds" in lines
    lines = printed(Change("apply", 2, parts, (), 0.1, pins=(replace(pin, holds=False),))).splitlines()
    assert "  pinned t: not(t.a = s.a): DOES NOT HOLD" in lines


def test_json_of_a_check_is_one_document(shell: Shell) -> None:
    assert shell("pin", RULE).code == 0
    outcome = shell("check", "tax", "--inserts", shell.file("b.csv", BREAKS), "--json")
    assert outcome.code == 1
    document = json.loads(outcome.out)
    assert (document["pins"][0]["holds"], document["pins"][0]["formula"]) == (False, RULE)
    broke = [c for c in document["changes"] if c["change"] == "broke" and c["dependency"]["kind"] == "dc"]
    assert all(len(c["witnesses"][0]) == 2 for c in broke)
