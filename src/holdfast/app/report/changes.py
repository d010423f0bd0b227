"""What a batch did, or would do: what broke and appeared, and which rows are the reason.

A key that breaks takes the functional dependencies along that have it on their left side, and one that
appears brings some. They are counted, and not listed: the key says it all. So with denial constraints that
are keys or functional dependencies of which the same is told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.app.report.paper import Paper
from holdfast.app.report.pins import print_pin
from holdfast.app.report.rows import PAIR_LABELS, print_rows
from holdfast.app.report.texts import (
    columns_text,
    fd_text,
    listed,
    meaning,
    name_text,
    plural,
    rule_text,
    safe,
    side_text,
)
from holdfast.core.words.change import Change, TableChange, WitnessRow, introducing
from holdfast.core.words.dependency import Dependency, Fd, Ind, Side, Ucc
from holdfast.core.words.predicate import Dc, as_fd, as_key
from holdfast.core.words.row_rule import RowRule
from holdfast.kind import entries, kinds

# A report shows this many dependencies of each sort, and this many rows for those that stand together.
IN_A_REPORT = 20
ROWS_IN_A_REPORT = 6
# Functional dependencies are many; those that did not break are less urgent, and what is within an error
# changes with nearly every batch.
FDS_IN_A_REPORT = 10
NEAR_IN_A_REPORT = 5
# Denial constraints are many, too, and each has a sentence and a pair of rows.
DCS_IN_A_REPORT = 3
NEW_DCS_IN_A_REPORT = 5
BROKEN_DCS_IN_A_REPORT = 10
# A functional dependency that had held through so many versions was hardly an accident.
LONG_HELD = 5

# What an event is called, what it would be called in a check, and its colour.
EVENTS = {
    "broke": ("broke", "would break", "red"),
    "appeared": ("appeared", "would appear", "green"),
    "implied": ("implied by a {}", "would be implied by a {}", "cyan"),
    "within": ("within the error now", "would be within the error", "green"),
    "beyond": ("no longer minimal within the error", "would not be minimal within the error", "yellow"),
    "dropped": ("dropped", "would be dropped", "dim"),
}
# What says as much and more.
IMPLYING = {"ucc": "narrower key", "dc": "more general one", "row": "tighter one"}

Told = Mapping[str, Any]  # a change in its JSON form


def event_title(event: str, kind: str, *, would: bool = False) -> str:
    """
    >>> event_title("implied", "ucc"), event_title("implied", "fd", would=True)
    ('implied by a narrower key', 'would be implied by a narrower one')
    """
    return EVENTS[event][would].format(IMPLYING.get(kind, "narrower one"))


def print_change(paper: Paper, change: Change, bounds: Mapping[str, Sequence[str]] | None = None) -> None:
    """What a batch did (or would do), and which rows are the reason.

    `bounds` says of new tables what the search for denial constraints was restricted to.
    """
    if change.action == "track":
        _print_tracked(paper, change, bounds or {})
        return
    print_headlines(paper, change)
    _print_notes(paper, change)
    if change.repeated:
        return
    several = len(change.tables) > 1
    would = change.action == "check"
    changes = [c.to_dict() for c in change.changes]
    print_events(paper, changes, limit=IN_A_REPORT, would=would, with_table=several)
    unlisted = sum(t.unlisted for t in change.tables)
    if unlisted:
        what = f"{plural(unlisted, 'more change')} of {_many(change.tables)}: too many to list"
        paper.line((what, "yellow"), indent=2)
    if not changes and not unlisted:
        kinds = {s.kind for t in change.tables for s in t.kept}
        nouns = _nouns(kinds | ({"ind"} if change.n_inds is not None else set()), "and", "rules")
        paper.line(f"the same {nouns} {'would hold' if would else 'hold'} as before", indent=2)
    for pin in change.pins:
        print_pin(paper, pin, would=would, with_table=several)


def _print_notes(paper: Paper, change: Change) -> None:
    """What is not known, since the search for it met a bound of its own."""
    for text in change.notes:
        paper.line((safe(text), "yellow"), indent=2)


def _many(tables: Sequence[TableChange]) -> str:
    """What there may be too many of to list."""
    return _nouns({s.kind for t in tables for s in t.kept} - {"ucc"}, "or", "dependencies")


def _nouns(kinds: Collection[str], last: str, otherwise: str) -> str:
    """The dependencies of some kinds by name.

    >>> _nouns({"ucc", "ind", "fd"}, "and", "rules")
    'keys, functional dependencies and inclusions'
    """
    return listed([e.nouns[1] for kind, e in entries().items() if kind in kinds] or [otherwise], last)


def print_long_held(paper: Paper, n: int, held: int) -> None:
    """What a check with `--held` found; n of those listed are among it."""
    what = plural(n, "functional dependency") if n else "a functional dependency (not listed)"
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
    keys: dict[str, list[tuple[str, ...]]] = {t.table: [] for t in change.tables}
    fds: dict[str, list[Fd]] = {t.table: [] for t in change.tables}
    dcs: dict[str, list[Dc]] = {t.table: [] for t in change.tables}
    rows: dict[str, list[RowRule]] = {t.table: [] for t in change.tables}
    elsewhere: dict[tuple[str, str], list[Dependency]] = defaultdict(list)
    inclusions = []
    for c in change.changes:
        match c.dependency:
            case Ucc(table, columns):
                keys[table].append(columns)
            case Fd(table):
                fds[table].append(c.dependency)
            case Dc(table):
                dcs[table].append(c.dependency)
            case RowRule(table):
                rows[table].append(c.dependency)
            case Ind():
                inclusions.append(c.dependency)
            case other:
                elsewhere[other.table, other.kind].append(other)
    for part, headline in _headlines(change):
        _print_headline(paper, part, headline)
        if bounds.get(part.table):
            what = f"denial constraints were looked for with {', '.join(bounds[part.table])}"
            paper.line((what, "yellow"), indent=2)
        found = keys[part.table]
        for columns in found[:IN_A_REPORT]:
            note = "" if columns else " (no column needed: there is at most one row)"
            paper.line((columns_text(columns), "green"), note, indent=2)
        paper.more(len(found) - IN_A_REPORT, "; see them with 'holdfast show'", style="dim")
        if part.n("ucc") == 0:
            paper.line(("no column combination is unique", "yellow"), indent=2)
        _print_new_fds(paper, part, fds[part.table], set(found))
        _print_new_dcs(paper, part, dcs[part.table], found, fds[part.table])
        _print_new_row_rules(paper, part, rows[part.table])
        for (table, kind), others in elsewhere.items():
            if table == part.table:
                where = f"see them with 'holdfast show --kind {kind}'"
                _print_new(paper, kind, len(others), others, IN_A_REPORT, where)
    _print_notes(paper, change)
    _print_new(paper, "ind", len(inclusions), inclusions, IN_A_REPORT, "see them with 'holdfast show'")


def _print_new(
    paper: Paper,
    kind: str,
    n: int,
    shown: Sequence[Dependency],
    most: int,
    where: str,
    *,
    rest: str = "",
    others: tuple[int, str] = (0, ""),
) -> None:
    """What is new of a kind: how many (`rest` says what of them), the first of those shown, what is not."""
    if not n:
        return
    paper.line((f"new: {plural(n, entries()[kind].nouns[0])}{rest}", "bold green"), indent=2)
    print_dependencies(paper, shown, most, where)
    if shown and others[0]:
        paper.line((f"... and {others[0]:,} {others[1]}", "dim"), indent=4)


def print_dependencies(
    paper: Paper, dependencies: Sequence[Dependency], most: int = IN_A_REPORT, where: str = "all with --json"
) -> None:
    """The first of some dependencies, one a line; of a denial constraint also what it means."""
    for dependency in dependencies[:most]:
        paper.line((dependency_text(dependency.to_dict(), with_table=False), "green"), indent=4)
        if isinstance(dependency, Dc):
            paper.line(meaning(dependency), indent=6)
    paper.more(len(dependencies) - most, f"; {where}", indent=4, style="dim")


def _print_new_fds(paper: Paper, part: TableChange, found: Sequence[Fd], keys: set[tuple[str, ...]]) -> None:
    """The functional dependencies of a table, those that do not have a key on the left."""
    shown = [fd for fd in found if fd.lhs not in keys]
    rest = ""
    if not found:
        rest = ": too many to list, but see 'holdfast show --top 20'"
    elif not shown:
        rest = f", all with {'a key' if len(keys) > 1 else 'the key'} on the left"
    where = "the most telling with 'holdfast show --top 20'"
    others = len(found) - len(shown), "with a key on the left"
    _print_new(paper, "fd", part.n("fd") or 0, shown, FDS_IN_A_REPORT, where, rest=rest, others=others)


def _print_new_dcs(
    paper: Paper,
    part: TableChange,
    found: Sequence[Dc],
    keys: Sequence[tuple[str, ...]],
    fds: Sequence[Fd],
) -> None:
    """The denial constraints of a table, those that are not keys or functional dependencies above."""
    known = _Told({frozenset(k) for k in keys}, {(frozenset(fd.lhs), fd.rhs) for fd in fds})
    shown = sorted((dc for dc in found if not known.has(dc)), key=_complexity)
    above = len(found) - len(shown)
    rest = ""
    if not found:
        rest = ": too many to list, but see 'holdfast show --kind dc --top 20'"
    elif not shown:
        rest = f", {ABOVE.format('all ' if above > 1 else '')}"
    where = "the most telling with 'holdfast show --kind dc --top 20'"
    others = above, ABOVE.format("")
    _print_new(paper, "dc", part.n("dc") or 0, shown, NEW_DCS_IN_A_REPORT, where, rest=rest, others=others)


def _print_new_row_rules(paper: Paper, part: TableChange, found: Sequence[RowRule]) -> None:
    """The rules about each row that say something."""
    shown = [rule for rule in found if not rule.apart and rule.op != "!="]
    n = part.n("row") or 0
    poor = n - len(shown)
    rest = f", {'all ' if poor > 1 else ''}{POOR}" if not shown else ""
    where = "see them with 'holdfast show --kind row'"
    _print_new(paper, "row", n, shown, IN_A_REPORT, where, rest=rest, others=(poor, POOR))


# Of row rules, and of denial constraints that say nothing new.
POOR = "with != or between columns whose values are far apart"
ABOVE = "{}told above as a key or functional dependency"


@dataclass(frozen=True)
class _Told:
    """Keys and functional dependencies of which something is told, of one table."""

    keys: set[frozenset[str]]
    fds: set[tuple[frozenset[str], str]]

    def has(self, dc: Dc) -> bool:
        """Whether a denial constraint says the same as one of them."""
        key, fd = as_key(dc), as_fd(dc)
        if key is not None:
            return frozenset(key) in self.keys
        return fd is not None and (frozenset(fd[0]), fd[1]) in self.fds


def dependency_text(fields: Mapping[str, Any], *, with_table: bool = True) -> str:
    """A dependency in its JSON form.

    `[a, b]` or `t[a, b]` for a key, `a -> b` or `t: a -> b` for a functional dependency, `t[a] in u[b]` for
    an inclusion, `not(...)`, `a <= b` or `t: ...` for a rule.
    """
    elsewhere = entries()[fields["kind"]].dependency
    if elsewhere is not None:
        name = safe(elsewhere.from_dict(fields).name)
        return f"{name_text(fields['table'])}: {name}" if with_table else name
    if fields["kind"] in ("dc", "row"):
        rule = Dc.from_dict(fields) if fields["kind"] == "dc" else RowRule.from_dict(fields)
        return f"{name_text(rule.table)}: {rule_text(rule)}" if with_table else rule_text(rule)
    if fields["kind"] == "fd":
        table = f"{name_text(fields['table'])}: " if with_table else ""
        return f"{table}{fd_text(fields['lhs'], fields['rhs'])}"
    if fields["kind"] == "ind":
        sides = (Side.from_dict(fields[side]) for side in ("dependent", "referenced"))
        return " in ".join(map(side_text, sides))
    if with_table:
        return side_text(Side.from_dict(fields))
    return columns_text(fields["columns"])


# --- Events -----------------------------------------------------------------------------------------------


@dataclass
class Group:
    """Changes that stand together: the same rows prove them, or the same words tell them."""

    table: str
    changes: list[Told]
    rows: dict[int, WitnessRow] = field(default_factory=dict)
    columns: dict[int, set[str]] = field(default_factory=dict)  # row -> the columns that speak against it
    first: set[str] = field(default_factory=set)  # all columns in question

    def absorb(self, other: Group) -> None:
        self.changes += other.changes
        self.first |= other.first
        self.rows |= {i: row for i, row in other.rows.items() if i not in self.rows}
        for i, columns in other.columns.items():
            self.columns.setdefault(i, set()).update(columns)


def print_events(
    paper: Paper,
    changes: Sequence[Told],
    *,
    limit: int,
    would: bool = False,
    indent: int = 2,
    with_table: bool = False,
) -> None:
    """Changes in their JSON form, by event and kind; those that the same rows prove stand together."""
    for event, (*_, style) in EVENTS.items():
        by_kind = {
            kind: [c for c in changes if c["change"] == event and c["dependency"]["kind"] == kind]
            for kind in kinds()
        }
        for kind, ours in by_kind.items():
            if not ours:
                continue
            shown, most = ours, limit
            if kind == "fd":
                # What had held through many versions comes first; else the order stays.
                shown = sorted(_without_keys(ours, by_kind["ucc"]), key=lambda c: -c.get("held", 0))
                most = limit if event == "broke" else min(limit, FDS_IN_A_REPORT)
            if kind == "dc":
                shown = _not_above(ours, by_kind["ucc"], by_kind["fd"])
                most = min(limit, BROKEN_DCS_IN_A_REPORT if event == "broke" else DCS_IN_A_REPORT)
            if event in ("within", "beyond"):
                most = min(limit, NEAR_IN_A_REPORT)
            n_above = len(ours) - len(shown)
            above = ABOVE if kind == "dc" else "{}with a key above on the left"
            noun = entries()[kind].nouns[0]
            heading = f"{event_title(event, kind, would=would)}: {plural(len(ours), noun)}"
            if not shown:
                heading += f", {above.format('each ' if n_above > 1 else '')}"
            paper.line((heading, f"bold {style}"), indent=indent)
            for group in _grouped(kind, shown[:most]):
                _print_group(paper, group, style, indent=indent + 2, with_table=with_table)
            paper.more(len(shown) - most, "; all with --json", indent=indent + 2, style="dim")
            if shown and n_above:
                paper.line((f"... and {n_above:,} {above.format('')}", "dim"), indent=indent + 2)


def _without_keys(fds: Sequence[Told], keys: Sequence[Told]) -> list[Told]:
    """Functional dependencies but those whose left side is a key of which the same is told."""
    told = {(k["dependency"]["table"], *k["dependency"]["columns"]) for k in keys}
    return [c for c in fds if (c["dependency"]["table"], *c["dependency"]["lhs"]) not in told]


def _not_above(dcs: Sequence[Told], keys: Sequence[Told], fds: Sequence[Told]) -> list[Told]:
    """Denial constraints but those that are a key or functional dependency of which the same is told; simple
    ones first."""
    told: defaultdict[str, _Told] = defaultdict(lambda: _Told(set(), set()))
    for key in (change["dependency"] for change in keys):
        told[key["table"]].keys.add(frozenset(key["columns"]))
    for fd in (change["dependency"] for change in fds):
        told[fd["table"]].fds.add((frozenset(fd["lhs"]), fd["rhs"]))
    parsed = [(c, Dc.from_dict(c["dependency"])) for c in dcs]
    parsed.sort(key=lambda pair: _complexity(pair[1]))
    return [c for c, dc in parsed if not told[dc.table].has(dc)]


def _complexity(dc: Dc) -> tuple[int, int]:
    """Denial constraints with few predicates come first, and of these those with few across columns."""
    return len(dc.predicates), sum(p.left != p.right for p in dc.predicates)


def _print_group(paper: Paper, group: Group, style: str, *, indent: int, with_table: bool) -> None:
    reasons = [_reason(c) for c in group.changes]
    names = [
        (
            dependency_text(c["dependency"], with_table=with_table),
            f"bold {style}" if c.get("held", 0) >= LONG_HELD else style,
        )
        for c in group.changes
    ]
    together = len(names) > 1 and len(set(reasons)) == 1
    for c, name, reason in zip(group.changes, names, reasons, strict=True):
        paper.line(name, "" if together else f" {reason}", indent=indent)
        if c["dependency"]["kind"] == "dc":
            paper.line(meaning(Dc.from_dict(c["dependency"])), indent=indent + 2)
    if together:
        paper.line(f"each {reasons[0]}", indent=indent)
    if not group.rows:
        return
    rows = list(group.rows.values())
    print_rows(
        paper,
        rows[:ROWS_IN_A_REPORT],
        group.first,
        style,
        indent=indent + 2,
        marked=lambda row, column: column in group.columns[row.row_id],
        labels=PAIR_LABELS if group.changes[0]["dependency"]["kind"] == "dc" else (),
    )
    paper.more(len(rows) - ROWS_IN_A_REPORT, "; all with --json", indent=indent + 2, style="dim")


def _reason(change: Told) -> str:
    """Why, in words; of what broke also for how long it had held."""
    reason = safe(change["reason"] or "")
    held = change.get("held", 0)
    if held >= 2:
        reason = f"{reason}; it had held through {plural(held, 'version')}"
    return introducing(
        reason, change["change"], change["dependency"]["kind"], shown=bool(change["witnesses"])
    )


def _grouped(kind: str, changes: Sequence[Told]) -> list[Group]:
    """Changes of one event and kind in groups; those without rows come last."""
    proved = [_group(c) for c in changes if c["witnesses"]]
    groups = _by_rows(proved) if kind == "ind" else _by_pair(proved)
    bare: dict[str, Group] = {}
    for c in changes:
        if not c["witnesses"]:
            # One by one: keys have few words to each, the others have the same ones for many.
            words = str(len(bare)) if kind == "ucc" else _reason(c)
            bare.setdefault(words, Group("", [])).changes.append(c)
    return [*groups, *bare.values()]


def _group(change: Told) -> Group:
    """A change by itself: a key or functional dependency with its first pair, an inclusion with all its rows.

    Of a functional dependency the right side speaks against it: there the rows differ. The first row of a
    denial constraint's pair is t.
    """
    dependency = change["dependency"]
    kind = dependency["kind"]
    side = dependency["dependent"] if kind == "ind" else dependency
    groups = change["witnesses"][: None if kind == "ind" else 1]
    rows = [WitnessRow.from_dict(row) for group in groups for row in group]
    if kind == "fd":
        rows.sort(key=lambda row: row.row_id)
        first, against = {*dependency["lhs"], dependency["rhs"]}, {dependency["rhs"]}
    elif kind == "row":
        first = against = {dependency["left"], dependency["right"]}
    elif kind == "dc":
        compared = [{p[row] for p in dependency["predicates"]} for row in ("left", "right")]
        columns = {row.row_id: own for row, own in zip(rows, compared, strict=True)}
        return Group(
            dependency["table"], [change], {r.row_id: r for r in rows}, columns, set.union(*compared)
        )
    else:
        first = against = set(side["columns"])
    columns = {row.row_id: set(against) for row in rows}
    return Group(side["table"], [change], {row.row_id: row for row in rows}, columns, set(first))


def _by_pair(groups: Sequence[Group]) -> list[Group]:
    """Keys or functional dependencies of a table that one pair of rows proves."""
    found: dict[tuple[str, tuple[int, ...]], Group] = {}
    for group in groups:
        known = found.setdefault((group.table, tuple(group.rows)), group)
        if known is not group:
            known.absorb(group)
    return list(found.values())


def _by_rows(groups: Sequence[Group]) -> list[Group]:
    """Inclusions that have a row in common, directly or by way of others: one bad row breaks many."""
    found: list[Group] = []
    for group in groups:
        akin = [g for g in found if g.table == group.table and g.rows.keys() & group.rows.keys()]
        if not akin:
            found.append(group)
            continue
        first, *others = akin
        for other in [*others, group]:
            first.absorb(other)
        found = [g for g in found if all(g is not o for o in others)]
    return found
