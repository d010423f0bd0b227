"""The dependencies of a table that tell most, best first, each with the reasons for its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from holdfast.app.report.paper import Item, Paper
from holdfast.app.report.texts import fd_text, name_text, plural, rule_text, safe

if TYPE_CHECKING:
    from holdfast.denial import dc_ranking
    from holdfast.functional import fd_ranking


def print_ranking(paper: Paper, table: str, ranking: fd_ranking.Ranking, *, version: int) -> None:
    """The first functional dependencies of a table."""
    n, n_last = ranking.n_fds, ranking.n_key_implied
    _print_list(paper, table, "functional dependency", ranking.fds, n, version, _print_fd)
    _print_doubts(paper, ranking, len(ranking.fds), n, n_last, "follow from keys", "the rows")


def print_dc_ranking(paper: Paper, table: str, ranking: dc_ranking.Ranking, *, version: int) -> None:
    """The first denial constraints of a table."""
    n, n_last = ranking.n_dcs, ranking.n_tautologies
    _print_list(paper, table, "denial constraint", ranking.dcs, n, version, _print_dc)
    _print_doubts(paper, ranking, len(ranking.dcs), n, n_last, "hold in every table", "all pairs of rows")


def _print_list(
    paper: Paper,
    table: str,
    noun: str,
    ranked: Sequence[Item],
    n: int,
    version: int,
    print_one: Callable[[Paper, Item], None],
) -> None:
    of = "" if len(ranked) == n else f"the first {len(ranked):,} of "
    paper.heading(name_text(table), f": {of}{plural(n, noun)}{', best first' if ranked else ''}", version)
    for one in ranked:
        print_one(paper, one)


def _print_doubts(
    paper: Paper,
    ranking: fd_ranking.Ranking | dc_ranking.Ranking,
    shown: int,
    n: int,
    n_last: int,
    why_last: str,
    measured_on: str,
) -> None:
    """What has no place of its own, what was not measured, and which places are certain."""
    lines = []
    if n_last:
        lines.append(f"{n_last:,} {why_last} and come last")
    if ranking.n_measured < n - n_last:
        lines.append(f"{ranking.n_measured:,} of the other {n - n_last:,} were measured on {measured_on}")
    if ranking.n_certain < shown:
        certain = f"only the first {ranking.n_certain:,} are" if ranking.n_certain else "no place is"
        lines.append(f"{certain} certain: the score of what was not measured is an upper bound")
    for line in lines:
        paper.line((line, "dim"), indent=2)


def _print_fd(paper: Paper, ranked: fd_ranking.RankedFd) -> None:
    score = f"{'' if ranked.measured else '<'}{ranked.score:.2f}"
    name = fd_text(ranked.fd.lhs, ranked.fd.rhs)
    if ranked.key is not None:
        paper.item(("   -", "dim"), (name, "cyan"), f"  {safe('; '.join(ranked.reasons[:1]))}", indent=2)
        return
    paper.item((f"{score:>4}", "bold"), (name, "green"), indent=2)
    paper.line((safe("; ".join(ranked.reasons)), "dim"), indent=8)


def _print_dc(paper: Paper, ranked: dc_ranking.RankedDc) -> None:
    score = "-" if ranked.tautology else f"{'' if ranked.measured else '<'}{ranked.score:.2f}"
    paper.item((f"{score:>4}", "bold"), (rule_text(ranked.dc), "green"), indent=2)
    paper.line(safe(ranked.sentence), indent=8)
    paper.line((safe("; ".join(ranked.reasons)), "dim"), indent=8)
