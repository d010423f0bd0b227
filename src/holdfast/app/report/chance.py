"""What looks like chance: people are told the number of it, and some of it where there is nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TypeVar

from holdfast.app.report.paper import Paper
from holdfast.kind import entries

Anything = TypeVar("Anything")
# Of what looks like chance: so many are shown if there is nothing else.
CHANCE_SHOWN = 3
# Kinds of which none is: the form of a rule, and not a small number of rows, tells that it says little.
ONLY_COUNTED = ("row",)
# How it is said of dependencies of a kind that they look like chance.
BY_CHANCE = defaultdict(
    lambda: "that may be chance",
    ind="between id ranges",
    dc="implied by row rules, or perhaps chance",
    row="with != or between columns whose values are far apart",
)
# How to see what `show` only counts, from elsewhere and from there.
SHOW_ALL = "see them with 'holdfast show --all'"
ALL_OF_IT = "all with 'holdfast show --all'"


def some_by_chance(kind: str, those: Sequence[Anything]) -> Sequence[Anything]:
    """Those of a kind that are shown where all of them look like chance."""
    return () if kind in ONLY_COUNTED else those[:CHANCE_SHOWN]


def print_by_chance(paper: Paper, kind: str, n: int, where: str, *, indent: int = 2) -> None:
    """The line for those that look like chance; none if there are none."""
    if n:
        where = where.replace("see them", "see it") if n == 1 else where
        paper.line((f"... and {entries()[kind].counted(n)} {BY_CHANCE[kind]}; {where}", "dim"), indent=indent)
