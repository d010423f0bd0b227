"""What a batch did, or would do, and what was found in new tables: a line a table, then the changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.app.report.chance import BY_CHANCE, SHOW_ALL, print_by_chance, some_by_chance
from holdfast.app.report.events import ABOVE, FDS_IN_A_REPORT, Mentioned, print_events
from holdfast.app.report.paper import Paper
from holdfast.app.report.pins import print_pins
from holdfast.app.report.texts import columns_text, dependency_text, listed, meaning, name_text, safe
from holdfast.core.words.change import Change, DependencyChange, TableChange
from holdfast.core.words.dependency import Dependency, Fd
from holdfast.core.words.predicate import Dc
from holdfast.core.words.ranks import COUNTED, SECTIONS, in_order, section
from holdfast.errors import plural
from holdfast.kind import entries

# A report shows this many dependencies of each sort; fewer of those that have a sentence each.
IN_A_REPORT = 20
NEW_DCS_IN_A_REPORT = 5


def print_change(paper: Paper, change: Change, bounds: Mapping[str, Sequence[str]] | None = None) -> None:
    """What a batch did (or would do), and which rows are the reason; notes come behind what broke.

    `bounds` says of new tables what the search for denial constraints was restricted to.
    """
    if change.action == "track":
        _print_tracked(paper, change, bounds or {})
        return
    print_headlines(paper, change)
    if change.repeated:
        return
    several = len(change.tables) > 1
    would = change.action == "check"
    print_pins(paper, change.pins, most=0, would=would, with_table=several)
    changes = [c.to_dict() for c in in_order(change.changes)]
    print_events(paper, changes, limit=IN_A_REPORT, would=would, with_table=several)
    unlisted = sum(t.unlisted for t in change.tables)
    if unlisted:
        what = f"{plural(unlisted, 'more change')} of {_many(change.tables)}: too many to list"
        paper.line((what, "yellow"), indent=2)
    if not changes and not unlisted:
        kinds = {s.kind for t in change.tables for s in t.kept}
        nouns = _nouns(kinds | ({"ind"} if change.n_inds is not None else set()), "and", "rules")
        paper.line(f"the same {nouns} {'would hold' if would else 'hold'} as before", indent=2)
    _print_notes(paper, change)


def _print_notes(paper: Paper, change: Change) -> None:
    """What is not known, since the search for it met a bound of its own."""
    for text in change.notes:
        paper.line((safe(text), "yellow"), indent=2)


def _many(tables: Sequence[TableChange]) -> str:
    """What there may be too many of to list."""
    return _nouns({s.kind for t in tables if t.unlisted for s in t.kept}, "or", "dependencies")


def _nouns(kinds: Collection[str], last: str, otherwise: str) -> str:
    """The dependencies of some kinds by name.

    >>> _nouns({"ucc", "ind", "fd"}, "and", "rules")
    'keys, functional dependencies and inclusions'
    """
    return listed([e.nouns[1] for kind, e in entries().items() if kind in kinds] or [otherwise], last)


def print_long_held(paper: Paper, n: int, held: int) -> None:
    """What a check with `--held` found; n of those listed are among it."""
    what = entries()["fd"].counted(n) if n else "a functional dependency (not listed)"
    what = f"{what} that had held through at least {plural(held, 'version')}"
    paper.line((f"{what} WOULD BREAK", "bold red"), indent=2)


def print_headlines(paper: Paper, change: Change) -> None:
    """A line for each table; one for all if the batch was applied before."""
    if change.repeated:
        what = f"batch {change.batch_id!r} was applied before, as version {change.version}; nothing was done"
        names = ", ".join(name_text(t.table) for t in change.tables)
        paper.line((names, "bold"), f": {safe(what)}")
        return
    for part, headline in _headlines(change):
        _print_headline(paper, part, headline)


def _headlines(change: Change) -> Iterator[tuple[TableChange, str]]:
    return zip(change.tables, change.headlines(), strict=True)


def _print_headline(paper: Paper, part: TableChange, headline: str) -> None:
    paper.line((name_text(part.table), "bold"), safe(headline.removeprefix(part.table)))


def _print_tracked(paper: Paper, change: Change, bounds: Mapping[str, Sequence[str]]) -> None:
    """What was found below its table; below the last one, what is included in what."""
    new: dict[tuple[str, str], _New] = defaultdict(lambda: _New([]))  # by kind and table
    inclusions: dict[str, _New] = {"foreign key": _New([]), "ind": _New([])}
    for c in change.changes:
        kind = c.dependency.kind
        news = inclusions[section(c.meant, kind)] if kind == "ind" else new[kind, c.dependency.table]
        news.changes.append(c)
    for part, headline in _headlines(change):
        _print_headline(paper, part, headline)
        if bounds.get(part.table):
            what = f"denial constraints were looked for with {', '.join(bounds[part.table])}"
            paper.line((what, "yellow"), indent=2)
        keys = [key.columns for key in new["ucc", part.table].every]
        _print_new_keys(paper, part, new["ucc", part.table])
        fds = new["fd", part.table]
        _print_new_fds(paper, part, fds, set(keys))
        _print_new_dcs(paper, part, new["dc", part.table], keys, fds.every)
        n_rules, where = part.n("row") or 0, "see them with 'holdfast show --kind row'"
        _print_new(paper, "row", n_rules, new["row", part.table], IN_A_REPORT, where)
        for kind in (kind for kind, entry in entries().items() if entry.reader is not None):
            news, where = new[kind, part.table], f"see them with 'holdfast show --kind {kind}'"
            _print_new(paper, kind, len(news.every), news, IN_A_REPORT, where)
    _print_notes(paper, change)
    for name, news in inclusions.items():
        where, noun = SHOW_ALL, name if name in SECTIONS else ""
        _print_new(paper, "ind", len(news.every), news, IN_A_REPORT, where, noun=noun)


@dataclass
class _New:
    """What was found, as it is told."""

    changes: list[DependencyChange]

    @property
    def every(self) -> list[Any]:
        return [c.dependency for c in self.changes]

    @property
    def shown(self) -> list[Any]:
        """What means something; some of what looks like chance if there is nothing else."""
        meant = [c.dependency for c in self.changes if c.role not in COUNTED]
        loud = [c.dependency for c in self.changes if c.role != "muted"]
        return meant or [*some_by_chance(loud[0].kind if loud else "", loud)]

    def without(self, elsewhere: Callable[[Any], bool]) -> _New:
        """But for dependencies that are told elsewhere."""
        return _New([c for c in self.changes if not elsewhere(c.dependency)])

    @property
    def n_muted(self) -> int:
        return sum(c.role == "muted" for c in self.changes)

    @property
    def n_folded(self) -> int:
        return len(self.changes) - len(self.shown) - self.n_muted


def _print_new_keys(paper: Paper, part: TableChange, keys: _New) -> None:
    for key in keys.shown[:IN_A_REPORT]:
        note = "" if key.columns else " (no column needed: there is at most one row)"
        paper.line((columns_text(key.columns), "green"), note, indent=2)
    where = SHOW_ALL
    unlisted = max(0, (part.n("ucc") or 0) - len(keys.every))
    paper.more(max(0, len(keys.shown) - IN_A_REPORT) + unlisted, f"; {where}", style="dim")
    print_by_chance(paper, "ucc", keys.n_folded, where, indent=2)
    paper.muted(keys.n_muted)
    if part.n("ucc") == 0:
        paper.line(("no column combination is unique", "yellow"), indent=2)


def _print_new(
    paper: Paper,
    kind: str,
    n: int,
    news: _New,
    most: int,
    where: str,
    *,
    noun: str = "",
    remark: str = "",
    unlisted: tuple[int, str] = (0, ""),
) -> None:
    """What is new of a kind: how many, with a remark; the first of those shown; how many of what are not."""
    if not n:
        return
    counted = plural(n, noun) if noun else entries()[kind].counted(n)
    if n == news.n_folded:
        paper.line((f"new: {counted} {BY_CHANCE[kind]}; {where}", "bold green"), indent=2)
        return
    paper.line((f"new: {counted}{remark}", "bold green"), indent=2)
    print_dependencies(paper, news.shown, most, where)
    if news.shown and unlisted[0]:
        paper.line((f"... and {unlisted[0]:,} {unlisted[1]}", "dim"), indent=4)
    print_by_chance(paper, kind, news.n_folded, where, indent=4)
    paper.muted(news.n_muted, indent=4)


def print_dependencies(
    paper: Paper, dependencies: Sequence[Dependency], most: int = IN_A_REPORT, where: str = "all with --json"
) -> None:
    """The first of some dependencies, one a line; of a denial constraint also what it means."""
    for dependency in dependencies[:most]:
        paper.line((dependency_text(dependency.to_dict(), with_table=False), "green"), indent=4)
        if isinstance(dependency, Dc):
            paper.line(meaning(dependency), indent=6)
    paper.more(len(dependencies) - most, f"; {where}", indent=4, style="dim")


def _print_new_fds(paper: Paper, part: TableChange, fds: _New, keys: set[tuple[str, ...]]) -> None:
    """The functional dependencies of a table, those that do not have a key on the left."""
    others = fds.without(lambda fd: fd.lhs in keys)
    remark = ""
    if not fds.every:
        remark = ": too many to list, but see 'holdfast show --top 20'"
    elif not others.every:
        remark = f", all with {'a key' if len(keys) > 1 else 'the key'} on the left"
    where = "the most telling with 'holdfast show --top 20'"
    unlisted = len(fds.every) - len(others.every), "with a key on the left"
    n = part.n("fd") or 0
    _print_new(paper, "fd", n, others, FDS_IN_A_REPORT, where, remark=remark, unlisted=unlisted)


def _print_new_dcs(
    paper: Paper,
    part: TableChange,
    dcs: _New,
    keys: Sequence[tuple[str, ...]],
    fds: Sequence[Fd],
) -> None:
    """The denial constraints of a table, those that are not keys or functional dependencies above."""
    mentioned = Mentioned({frozenset(k) for k in keys}, {(frozenset(fd.lhs), fd.rhs) for fd in fds})
    others = dcs.without(mentioned.has)
    n_above = len(dcs.every) - len(others.every)
    remark = ""
    if not dcs.every:
        remark = ": too many to list, but see 'holdfast show --kind dc --top 20'"
    elif not others.every:
        remark = f", {'all ' if n_above > 1 else ''}{ABOVE}"
    where = "the most telling with 'holdfast show --kind dc --top 20'"
    unlisted = n_above, ABOVE
    n = part.n("dc") or 0
    _print_new(paper, "dc", n, others, NEW_DCS_IN_A_REPORT, where, remark=remark, unlisted=unlisted)
