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
    from holdfast.functional import best_fds, fd_ranking

Item = TypeVar("Item")
Ranking: TypeAlias = "fd_ranking.FdRanking | best_fds.BestFds | dc_ranking.DcRanking"


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
    from holdfast.functional.best_fds import BestFds  # with kernels, which were needed to rank
    from holdfast.functional.fd_ranking import FdRanking

    if isinstance(ranking, BestFds):
        n = entries()["fd"].counted(len(ranking.fds))
        what = f"the best {n} by {ranking.by}" if ranking.fds else f"{n} but of keys and constants"
        items, aside = [_best_item(fd, ranking.by) for fd in ranking.fds], _aside_of_best(ranking)
    elif isinstance(ranking, FdRanking):
        n = entries()["fd"].counted(ranking.n_fds)
        what = n if len(ranking.fds) == ranking.n_fds else f"the first {len(ranking.fds):,} of {n}"
        items, aside = [_fd_item(fd) for fd in ranking.fds], _aside_of_fds(ranking)
    else:
        n = plural(ranking.n_rules, "rule")
        what = n if len(ranking.rules) == ranking.n_rules else f"the first {len(ranking.rules):,} of {n}"
        of_rows = f" and {entries()['row'].counted(ranking.n_row_rules)}" if ranking.n_row_rules else ""
        what += f" among {entries()['dc'].counted(ranking.n_dcs)}{of_rows}"
        items, aside = [_rule_item(rule) for rule in ranking.rules], _aside_of_rules(ranking)
    best_first = ", best first" if items and not isinstance(ranking, BestFds) else ""
    paper.heading(name_text(table), f": {what}{best_first}", version)
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
    from holdfast.functional.best_fds import BestFds
    from holdfast.functional.fd_ranking import FdRanking

    if isinstance(ranking, BestFds | FdRanking):
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


def _aside_of_best(ranking: best_fds.BestFds) -> list[str]:
    lines = ["none that follows from a key is among them"]
    if ranking.constants:
        n = plural(len(ranking.constants), "column")
        lines.append(f"{n} {'has' if len(ranking.constants) == 1 else 'have'} one value in all rows")
    if ranking.n_certain < len(ranking.fds) or ranking.stopped_at is not None:
        certain = f"only the first {ranking.n_certain:,} are" if ranking.n_certain else "no place is"
        size = plural(ranking.stopped_at or 0, "column")
        lines.append(f"{certain} certain: the time was over at left-hand sides of {size}")
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


def _best_item(ranked: fd_ranking.RankedFd, by: str) -> _Item:
    item = _fd_item(ranked)
    return item if by == "score" else item._replace(score=(f"{ranked.redundancy:,}", "bold"))


def _rule_item(ranked: dc_ranking.RankedRule) -> _Item:
    score: Part = (f"{ranked.score:.2f}", "bold")
    return _Item(score, (rule_text(ranked.rule), "green"), "", (safe(ranked.sentence), _reasons(ranked)))


def _score(ranked: fd_ranking.RankedFd) -> Part:
    return f"{'' if ranked.measured else '<'}{ranked.score:.2f}", "bold"


def _reasons(ranked: fd_ranking.RankedFd | dc_ranking.RankedRule) -> Part:
    return safe("; ".join(ranked.reasons)), "dim"
