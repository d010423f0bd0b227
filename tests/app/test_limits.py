"""Searches that end at a bound of their own: what the command line says of them, and how they are bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.shell import Shell
from holdfast.inclusions import composite_state as composites

NUMBERS = "a,b,c,d\n" + "".join(f"{i},{i},{i},{i}\n" for i in range(6))
MEASURES = "length,width,height\n" + "".join(f"{i * 7 % 9},{i * 5 % 9},{i * 4 % 9}\n" for i in range(12))
ONE_MORE = "length,width,height\n3,3,8\n"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_too_many_denial_constraints(shell: Shell) -> None:
    source = shell.file("boxes.csv", MEASURES)
    outcome = shell("track", "boxes", source, "--kinds", "dc", "--max-dcs", "20")
    assert outcome.code == 0, outcome.err
    assert "the denial constraints of 'boxes' are known up to " in outcome.out
    assert "met its limits, 60 s or 20 constraints. To go on, drop the table and track it" in outcome.out
    listed = shell("show", "--kind", "dc")
    assert "(the limits: 60 s or 20 constraints)" in listed.out
    [told] = shell("show", "--kind", "dc", "--json").json()["tables"]
    assert told["dcs"]["stopped"]
    assert told["dcs"]["limits"] == {"seconds": 60.0, "max_dcs": 20}
    assert told["dcs"]["max_predicates"] >= 1
    outcome = shell("apply", "boxes", "--inserts", shell.file("more.csv", ONE_MORE), "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.json()["max_predicates"] <= told["dcs"]["max_predicates"]


def test_within_columns(shell: Shell) -> None:
    source = shell.file("boxes.csv", MEASURES)
    outcome = shell("track", "boxes", source, "--kinds", "dc", "--within-columns")
    assert "each column compared with itself only (--within-columns)" in outcome.out
    found = shell("show", "--kind", "dc", "--json").json()["dependencies"]
    assert found
    assert all(p["left"] == p["right"] for dc in found for p in dc["predicates"])


def test_too_many_combinations(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    source = shell.file("t.csv", NUMBERS)
    monkeypatch.setattr(composites, "MAX_NODES", 43)
    outcome = shell("track", "t", source, "--kinds", "ucc,ind")
    assert outcome.code == 0, outcome.err
    note = "composite inclusions of 't' in 't' are listed up to 2 columns: more than 43 combinations of 3"
    assert note in outcome.out
    assert note in shell("show", "--kind", "ind").out
    assert shell("show", "--json").json()["notes"] == [note]
    gone = shell.file("gone.csv", "a,b,c,d\n1,1,1,1\n")
    outcome = shell("apply", "t", "--deletes", gone)
    assert outcome.code == 0, outcome.err
    assert note in outcome.out


def test_max_arity(shell: Shell) -> None:
    source = shell.file("t.csv", NUMBERS)
    assert shell("track", "t", source, "--kinds", "ucc,ind", "--max-arity", "2").code == 0
    found = shell("show", "--kind", "ind", "--json").json()["dependencies"]
    assert max(len(d["dependent"]["columns"]) for d in found) == 2


@pytest.mark.parametrize(
    ("option", "kind"),
    [("--max-arity=2", "ind"), ("--within-columns", "dc"), ("--dc-seconds=9", "dc"), ("--max-dcs=9", "dc")],
)
def test_options_of_what_is_not_kept(shell: Shell, option: str, kind: str) -> None:
    outcome = shell("track", "t", shell.file("t.csv", NUMBERS), option)
    assert outcome.code == 2
    assert f"add {kind} to --kinds" in outcome.err
