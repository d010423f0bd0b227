"""The dependencies of a table that tell most, best first, each with the reasons for its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from holdfast.app.report.paper import Paper, Part
from holdfast.app.report.texts import fd_text, name_text, rule_text, safe
from holdfast.kind import entries

if TYPE_CHECKING:
    from holdfast.denial import dc_ranking
    from holdfast.functional import fd_ranking

Ranking: TypeAlias = "fd_ranking.Ranking | dc_ranking.Ranking"


class _Item(NamedTuple):
    """A dependency in its place."""

    score: Part
    name: Part
    aside: str  # behind the name
    below: tuple[Part, ...]  # lines


def print_ranking(paper: Paper, table: str, ranking: Ranking, *, version: int) -> None:
    """The first dependencies of a table; then what has no place of its own, and which places are certain."""
    from holdfast.functional.fd_ranking import Ranking as FdRanking  # with kernels, which were needed to rank

    if isinstance(ranking, FdRanking):
        kind, n, n_last = "fd", ranking.n_fds, ranking.n_key_implied
        why_last, measured_on = "follow from keys", "the rows"
        items = [_fd_item(fd) for fd in ranking.fds]
    else:
        kind, n, n_last = "dc", ranking.n_dcs, ranking.n_tautologies
        why_last, measured_on = "hold in every table", "all pairs of rows"
        items = [_dc_item(dc) for dc in ranking.dcs]
    of = "" if len(items) == n else f"the first {len(items):,} of "
    order = ", best first" if items else ""
    paper.heading(name_text(table), f": {of}{entries()[kind].counted(n)}{order}", version)
    for item in items:
        paper.item(item.score, item.name, item.aside, indent=2)
        for line in item.below:
            paper.line(line, indent=8)
    doubts = []
    if n_last:
        doubts.append(f"{n_last:,} {why_last} and come last")
    if ranking.n_measured < n - n_last:
        doubts.append(f"{ranking.n_measured:,} of the other {n - n_last:,} were measured on {measured_on}")
    if ranking.n_certain < len(items):
        certain = f"only the first {ranking.n_certain:,} are" if ranking.n_certain else "no place is"
        doubts.append(f"{certain} certain: the score of what was not measured is an upper bound")
    for doubt in doubts:
        paper.line((doubt, "dim"), indent=2)


def _fd_item(ranked: fd_ranking.RankedFd) -> _Item:
    name = fd_text(ranked.fd.lhs, ranked.fd.rhs)
    if ranked.key is not None:
        return _Item(("   -", "dim"), (name, "cyan"), f"  {safe('; '.join(ranked.reasons[:1]))}", ())
    return _Item(_score(ranked), (name, "green"), "", (_reasons(ranked),))


def _dc_item(ranked: dc_ranking.RankedDc) -> _Item:
    score: Part = ("   -", "bold") if ranked.tautology else _score(ranked)
    return _Item(score, (rule_text(ranked.dc), "green"), "", (safe(ranked.sentence), _reasons(ranked)))


def _score(ranked: fd_ranking.RankedFd | dc_ranking.RankedDc) -> Part:
    return f"{'' if ranked.measured else '<'}{ranked.score:.2f}", "bold"


def _reasons(ranked: fd_ranking.RankedFd | dc_ranking.RankedDc) -> Part:
    return safe("; ".join(ranked.reasons)), "dim"
