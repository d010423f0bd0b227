"""`show --top N --by ORDER`: the best functional dependencies of any table, on paper and for programs."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from app.shell import Shell
from holdfast.app.report.paper import Paper
from holdfast.app.report.rankings import print_ranking
from holdfast.functional.best_fds import BestFds

PLACES = (
    "id,zip,city,state,land\n1,10,Ulm,BW,x\n2,10,Ulm,BW,x\n3,20,Bern,BE,x\n4,30,Bern,BE,x\n5,30,Bern,BE,x\n"
)


def tracked(folder: Path, *options: str) -> Shell:
    folder.mkdir(exist_ok=True)
    shell = Shell(folder)
    outcome = shell("track", "places", shell.file("places.csv", PLACES), *options)
    assert outcome.code == 0, outcome.err
    return shell


@pytest.mark.parametrize(
    "options", [["--kinds", "ucc"], ["--kinds", "fd", "--max-lhs", "1"], ["--kinds", "ind"]]
)
def test_whatever_is_tracked(tmp_path: Path, options: list[str]) -> None:
    shell = tracked(tmp_path, *options)
    outcome = shell("show", "--top", "3", "--by", "redundancy")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines() == [
        "places: the best 3 functional dependencies by redundancy (version 1)",
        "  3  state -> city",
        "        explains 3 redundant values; left-hand side of 1 column",
        "  3  city -> state",
        "        explains 3 redundant values; left-hand side of 1 column",
        "  2  zip -> city",
        "        explains 2 redundant values; left-hand side of 1 column",
        "  none that follows from a key is among them",
        "  1 column has one value in all rows",
    ]
    lines = shell("show", "--top", "9", "--by", "score", "--table", "places").out.splitlines()
    assert lines[0] == "places: the best 4 functional dependencies by score (version 1)"
    assert re.fullmatch(r"  0\.\d\d  \w+ -> \w+", lines[1])


def test_for_programs(tmp_path: Path) -> None:
    shell = tracked(tmp_path, "--kinds", "ucc")
    document = shell("show", "--top", "2", "--by", "redundancy", "--json").json()
    assert [(d["lhs"], d["rhs"], d["redundancy"]) for d in document["dependencies"]] == [
        (["state"], "city", 3), (["city"], "state", 3),
    ]  # fmt: skip
    assert document["tables"][0]["ranking"] == {
        "by": "redundancy", "constants": ["land"], "n_certain": 2, "max_lhs": None, "stopped_at": None,
    }  # fmt: skip


def test_without_muted_ones(tmp_path: Path) -> None:
    shell = tracked(tmp_path, "--kinds", "fd")
    assert shell("mute", "places", "state -> city").code == 0
    lines = shell("show", "--top", "1", "--by", "redundancy").out.splitlines()
    assert lines[1] == "  3  city -> state"
    assert "muted" in lines[-1]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--by", "score"], "--by orders what --top lists"),
        (["--by", "size", "--top", "3"], "--by size is not known. Orders: score, redundancy."),
        (["--by", "score", "--top", "3", "--kind", "dc"], "--by orders functional dependencies"),
        (["--by", "score", "--top", "3", "--kind", "ucc"], "--top ranks functional dependencies"),
        (
            ["--by", "score", "--top", "3", "--max-error", "0.1"],
            "--by looks for dependencies that hold exactly",
        ),
    ],
)
def test_what_cannot_be(tmp_path: Path, options: list[str], error: str) -> None:
    outcome = tracked(tmp_path, "--kinds", "ucc")("show", *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"UsageError: {error}")


@pytest.mark.parametrize(
    ("best", "lines"),
    [
        (
            BestFds("score", (), ("a", "b"), 0, None, 7),
            [
                "t: 0 functional dependencies but of keys and constants (version 1)",
                "  none that follows from a key is among them",
                "  2 columns have one value in all rows",
                "  no place is certain: the time was over at left-hand sides of 7 columns",
            ],
        ),
    ],
)
def test_a_search_that_was_stopped(best: BestFds, lines: list[str]) -> None:
    file = io.StringIO()
    print_ranking(Paper(file), "t", best, version=1)
    assert file.getvalue().splitlines() == lines
