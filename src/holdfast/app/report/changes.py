"""What a batch did, or would do: what broke and appeared, and which rows are the reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.app.report.paper import Paper
from holdfast.app.report.rows import print_rows
from holdfast.app.report.texts import columns_text, name_text, pin_text, plural, safe, side_text
from holdfast.model.change import Change, Pin, TableChange, WitnessRow
from holdfast.model.dependency import Side, Ucc

# A report shows this many dependencies of each sort, and this many rows for those that stand together.
IN_A_REPORT = 20
ROWS_IN_A_REPORT = 6

# What an event is called, what it would be called in a check, and its colour.
EVENTS = {
    "broke": ("broke", "would break", "red"),
    "appeared": ("appeared", "would appear", "green"),
    "implied": ("implied by a narrower key", "would be implied by a narrower key", "cyan"),
    "dropped": ("dropped", "would be dropped", "dim"),
}
NOUNS = {"ucc": "key", "ind": "inclusion"}

Told = Mapping[str, Any]  # a change in its JSON form


def print_change(paper: Paper, change: Change) -> None:
    """What a batch did (or would do), and which rows are the reason."""
    if change.action == "track":
        _print_tracked(paper, change)
        return
    print_headlines(paper, change)
    if change.repeated:
        return
    several = len(change.tables) > 1
    would = change.action == "check"
    changes = [c.to_dict() for c in change.changes]
    print_events(paper, changes, limit=IN_A_REPORT, would=would, with_table=several)
    if not changes:
        paper.line(f"the same {change.nouns()} {'would hold' if would else 'hold'} as before", indent=2)
    for pin in change.pins:
        _print_pin(paper, pin, would=would, with_table=several)


def _print_pin(paper: Paper, pin: Pin, *, would: bool, with_table: bool) -> None:
    if pin.holds:
        state = ("would hold" if would else "holds", "green")
    else:
        state = ("WOULD NOT HOLD" if would else "DOES NOT HOLD", "bold red")
    paper.line(f"pinned {pin_text(pin, with_table=with_table)}: ", state, indent=2)


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


def _print_tracked(paper: Paper, change: Change) -> None:
    """The keys below their tables; below the last one, what is included in what."""
    keys: dict[str, list[tuple[str, ...]]] = {t.table: [] for t in change.tables}
    inclusions = []
    for c in change.changes:
        if isinstance(c.dependency, Ucc):
            keys[c.dependency.table].append(c.dependency.columns)
        else:
            inclusions.append(c.to_dict())
    for part, headline in _headlines(change):
        _print_headline(paper, part, headline)
        found = keys[part.table]
        for columns in found[:IN_A_REPORT]:
            note = "" if columns else " (no column needed: there is at most one row)"
            paper.line((columns_text(columns), "green"), note, indent=2)
        _print_more(paper, len(found) - IN_A_REPORT, "see them with 'holdfast show'", indent=2)
        if part.n_keys == 0:
            paper.line(("no column combination is unique", "yellow"), indent=2)
    if inclusions:
        paper.line((f"new: {plural(len(inclusions), 'inclusion')}", "bold green"), indent=2)
        for told in inclusions[:IN_A_REPORT]:
            paper.line((dependency_text(told["dependency"]), "green"), indent=4)
        _print_more(paper, len(inclusions) - IN_A_REPORT, "see them with 'holdfast show'", indent=4)


def _print_more(paper: Paper, n: int, where: str, *, indent: int) -> None:
    if n > 0:
        paper.line((f"... and {n:,} more; {where}", "dim"), indent=indent)


def dependency_text(fields: Mapping[str, Any], *, with_table: bool = True) -> str:
    """A dependency in its JSON form: `[a, b]` or `t[a, b]` for a key, `t[a] in u[b]` for an inclusion."""
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
    columns: dict[int, set[str]] = field(default_factory=dict)  # row -> the columns in question

    def absorb(self, other: Group) -> None:
        self.changes += other.changes
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
    for event, (title, in_a_check, style) in EVENTS.items():
        for kind, noun in NOUNS.items():
            ours = [c for c in changes if c["change"] == event and c["dependency"]["kind"] == kind]
            if not ours:
                continue
            heading = f"{in_a_check if would else title}: {plural(len(ours), noun)}"
            paper.line((heading, f"bold {style}"), indent=indent)
            for group in _grouped(kind, ours[:limit]):
                _print_group(paper, group, style, indent=indent + 2, with_table=with_table)
            _print_more(paper, len(ours) - limit, "all with --json", indent=indent + 2)


def _print_group(paper: Paper, group: Group, style: str, *, indent: int, with_table: bool) -> None:
    reasons = [safe(c["reason"] or "") for c in group.changes]
    names = [dependency_text(c["dependency"], with_table=with_table) for c in group.changes]
    if len(names) > 1 and len(set(reasons)) == 1:
        for name in names:
            paper.line((name, style), indent=indent)
        paper.line(f"each {reasons[0]}", indent=indent)
    else:
        for name, reason in zip(names, reasons, strict=True):
            paper.line((name, style), f" {reason}", indent=indent)
    if not group.rows:
        return
    rows = list(group.rows.values())
    own = {column for columns in group.columns.values() for column in columns}
    print_rows(
        paper,
        rows[:ROWS_IN_A_REPORT],
        own,
        style,
        indent=indent + 2,
        marked=lambda row, column: column in group.columns[row.row_id],
    )
    _print_more(paper, len(rows) - ROWS_IN_A_REPORT, "all with --json", indent=indent + 2)


def _grouped(kind: str, changes: Sequence[Told]) -> list[Group]:
    """Changes of one event and kind in groups; those without rows come last."""
    proved = [_group(c) for c in changes if c["witnesses"]]
    groups = _by_pair(proved) if kind == "ucc" else _by_rows(proved)
    bare: dict[str, Group] = {}
    for c in changes:
        if not c["witnesses"]:
            # One by one: keys have few words to each, inclusions have the same ones for many.
            words = str(c["reason"]) if kind == "ind" else str(len(bare))
            bare.setdefault(words, Group("", [])).changes.append(c)
    return [*groups, *bare.values()]


def _group(change: Told) -> Group:
    """A change by itself: a key with its first pair, an inclusion with all of its rows."""
    dependency = change["dependency"]
    side = dependency if dependency["kind"] == "ucc" else dependency["dependent"]
    groups = change["witnesses"][: 1 if dependency["kind"] == "ucc" else None]
    rows = [WitnessRow.from_dict(row) for group in groups for row in group]
    columns = {row.row_id: set(side["columns"]) for row in rows}
    return Group(side["table"], [change], {row.row_id: row for row in rows}, columns)


def _by_pair(groups: Sequence[Group]) -> list[Group]:
    """Keys of a table that one pair of rows proves."""
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
