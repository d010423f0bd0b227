"""The dependencies of a table that tell most, best first, each with the reasons for its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from holdfast.app.report.paper import Paper, Part
from holdfast.app.report.texts import fd_text, name_text, rule_text, safe
from holdfast.core.words.sameness import DependencySet
from holdfast.errors import plural
from holdfast.kind import entries

if TYPE_CHECKING:
    from holdfast.denial import dc_ranking
    from holdfast.functional import fd_ranking

Item = TypeVar("Item")
Ranking: TypeAlias = "fd_ranking.FdRanking | dc_ranking.DcRanking"


class _Item(NamedTuple):
    """A dependency in its place."""

    score: Part
    name: Part
    aside: str  # behind the name
    below: tuple[Part, ...]  # lines


def print_ranking(paper: Paper, table: str, ranking: Ranking, *, version: int, n_muted: int = 0) -> None:
    """The first dependencies of a table; then what has no place of its own, and which places are certain.

    `n_muted` of the first ones were muted, and are left out.
    """
    from holdfast.functional.fd_ranking import FdRanking  # with kernels, which were needed to rank

    if isinstance(ranking, FdRanking):
        n = entries()["fd"].counted(ranking.n_fds)
        what = n if len(ranking.fds) == ranking.n_fds else f"the first {len(ranking.fds):,} of {n}"
        items, aside = [_fd_item(fd) for fd in ranking.fds], _aside_of_fds(ranking)
    else:
        n = plural(ranking.n_rules, "rule")
        what = n if len(ranking.rules) == ranking.n_rules else f"the first {len(ranking.rules):,} of {n}"
        of_rows = f" and {entries()['row'].counted(ranking.n_row_rules)}" if ranking.n_row_rules else ""
        what += f" among {entries()['dc'].counted(ranking.n_dcs)}{of_rows}"
        items, aside = [_rule_item(rule) for rule in ranking.rules], _aside_of_rules(ranking)
    paper.heading(name_text(table), f": {what}{', best first' if items else ''}", version)
    for item in items:
        paper.item(item.score, item.name, item.aside, indent=2)
        for line in item.below:
            paper.line(line, indent=8)
    for line in aside:
        paper.line((line, "dim"), indent=2)
    paper.muted(n_muted, "")


def without_muted(ranking: Ranking, muted: DependencySet, top: int) -> tuple[Ranking, int]:
    """(the first of a ranking that are not muted, how many are in front of the last of them).

    Of functional dependencies, those that come first for certain still do.
    """
    from holdfast.functional.fd_ranking import FdRanking

    if isinstance(ranking, FdRanking):
        fds, n_muted = _loud(ranking.fds, [f.fd in muted for f in ranking.fds], top)
        n_certain = sum(f.fd not in muted for f in ranking.fds[: ranking.n_certain])
        return replace(ranking, fds=fds, n_certain=min(n_certain, len(fds))), n_muted
    rules, n_muted = _loud(ranking.rules, [r.rule in muted for r in ranking.rules], top)
    return replace(ranking, rules=rules), n_muted


def _loud(items: Sequence[Item], muted: Sequence[bool], top: int) -> tuple[tuple[Item, ...], int]:
    loud = [i for i, is_muted in enumerate(muted) if not is_muted][:top]
    n_seen = loud[-1] + 1 if len(loud) == top else len(items)
    return tuple(items[i] for i in loud), n_seen - len(loud)


def _aside_of_fds(ranking: fd_ranking.FdRanking) -> list[str]:
    n, n_last, lines = ranking.n_fds, ranking.n_key_implied, []
    if n_last:
        lines.append(f"{n_last:,} follow from keys and come last")
    if ranking.n_measured < n - n_last:
        lines.append(f"{ranking.n_measured:,} of the other {n - n_last:,} were measured on the rows")
    if ranking.n_certain < len(ranking.fds):
        certain = f"only the first {ranking.n_certain:,} are" if ranking.n_certain else "no place is"
        lines.append(f"{certain} certain: the score of what was not measured is an upper bound")
    return lines


def _aside_of_rules(ranking: dc_ranking.DcRanking) -> list[str]:
    folded, lines = ranking.folded, []
    parts = {
        "row rules": folded.row_rules,
        "keys": folded.keys,
        "functional dependencies": folded.fds,
        "other rules": folded.others,
    }
    if folded.total:
        said = [f"{n:,} from {what}" for what, n in parts.items() if n]
        follow = "that follows from" if folded.total == 1 else "that follow from"
        lines.append(f"and {', '.join(said).replace('from', follow, 1)}")
    if ranking.n_accidents:
        what = "looks like an accident" if ranking.n_accidents == 1 else "look like accidents"
        lines.append(f"{ranking.n_accidents:,} more {what} of the rows at hand")
    if ranking.n_open:
        lines.append(f"{ranking.n_open:,} more were not looked at: they are too many")
    return lines


def _fd_item(ranked: fd_ranking.RankedFd) -> _Item:
    name = fd_text(ranked.fd.lhs, ranked.fd.rhs)
    if ranked.key is not None:
        return _Item(("   -", "dim"), (name, "cyan"), f"  {safe('; '.join(ranked.reasons[:1]))}", ())
    return _Item(_score(ranked), (name, "green"), "", (_reasons(ranked),))


def _rule_item(ranked: dc_ranking.RankedRule) -> _Item:
    score: Part = (f"{ranked.score:.2f}", "bold")
    return _Item(score, (rule_text(ranked.rule), "green"), "", (safe(ranked.sentence), _reasons(ranked)))


def _score(ranked: fd_ranking.RankedFd) -> Part:
    return f"{'' if ranked.measured else '<'}{ranked.score:.2f}", "bold"


def _reasons(ranked: fd_ranking.RankedFd | dc_ranking.RankedRule) -> Part:
    return safe("; ".join(ranked.reasons)), "dim"
