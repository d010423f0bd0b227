"""Changes by event and section: what broke, appeared or is implied, with the rows that prove it.

They come in the order of `core/words/ranks.py`, and stay in it. What is muted is counted, and not listed; nor
is what looks like chance, unless there is nothing else to tell.

A key that breaks takes the functional dependencies along that have it on their left side, and one that
appears brings some. They are counted, and not listed: the key says it all. So with denial constraints that
are keys or functional dependencies of which the same is told (`Mentioned`), and with what appears since a key
broke: several keys with its columns and more, and functional dependencies with these on the left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.app.report.chance import BY_CHANCE, print_by_chance, some_by_chance
from holdfast.app.report.paper import Paper
from holdfast.app.report.rows import PAIR_LABELS, print_rows
from holdfast.app.report.texts import columns_text, dependency_text, meaning, safe
from holdfast.core.words.change import WitnessRow, introducing
from holdfast.core.words.dependency import extended
from holdfast.core.words.predicate import Dc, as_fd, as_key
from holdfast.core.words.ranks import COUNTED, LONG_HELD, SECTIONS, section
from holdfast.errors import plural
from holdfast.kind import entries

# A report shows this many rows for changes that stand together.
ROWS_IN_A_REPORT = 6
# Functional dependencies are many; those that did not break are less urgent, and what is within an error
# changes with nearly every batch.
FDS_IN_A_REPORT = 10
NEAR_IN_A_REPORT = 5
# Denial constraints are many, too, and each has a sentence and a pair of rows.
DCS_IN_A_REPORT = 3
BROKEN_DCS_IN_A_REPORT = 10
# What an event is called, what it would be called in a check, and its colour.
EVENTS = {
    "broke": ("broke", "would break", "red"),
    "appeared": ("appeared", "would appear", "green"),
    "implied": ("implied by a {}", "would be implied by a {}", "cyan"),
    "within": ("within the error now", "would be within the error", "green"),
    "beyond": ("no longer minimal within the error", "would not be minimal within the error", "yellow"),
    "dropped": ("dropped", "would be dropped", "dim"),
}
# Of denial constraints that say nothing new.
ABOVE = "told above as a key or functional dependency"
ChangeFields = Mapping[str, Any]  # a change in its JSON form


def event_title(event: str, kind: str, *, would: bool = False) -> str:
    """
    >>> event_title("implied", "ucc"), event_title("implied", "fd", would=True)
    ('implied by a narrower key', 'would be implied by a narrower one')
    """
    return EVENTS[event][would].format(entries()[kind].implied_by)


@dataclass(frozen=True)
class Mentioned:
    """Keys and functional dependencies of which something is told, of one table."""

    keys: set[frozenset[str]]
    fds: set[tuple[frozenset[str], str]]

    def has(self, dc: Dc) -> bool:
        """Whether a denial constraint says the same as one of them."""
        key, fd = as_key(dc), as_fd(dc)
        if key is not None:
            return frozenset(key) in self.keys
        return fd is not None and (frozenset(fd[0]), fd[1]) in self.fds


@dataclass
class Group:
    """Changes that stand together: the same rows prove them, or the same words tell them."""

    table: str
    changes: list[ChangeFields]
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
    changes: Sequence[ChangeFields],
    *,
    limit: int,
    would: bool = False,
    indent: int = 2,
    with_table: bool = False,
) -> None:
    """Changes in their JSON form, by event and section; those that the same rows prove stand together."""
    for event, (*_, style) in EVENTS.items():
        of_event = [c for c in changes if c["change"] == event]
        of_kind: dict[str, list[ChangeFields]] = defaultdict(list)
        sections: dict[str, list[ChangeFields]] = defaultdict(list)
        for c in of_event:
            kind = c["dependency"]["kind"]
            of_kind[kind].append(c)
            sections[section(c.get("unpinned") or role_of(c), kind)].append(c)
        telling = any(role_of(c) not in COUNTED for c in of_event)
        broken = _broken_keys(changes) if event == "appeared" else {}
        for name, of_section in sections.items():
            kind = of_section[0]["dependency"]["kind"]
            news, most = of_section, limit
            left, more = _left_of_keys(of_section, broken) if kind in ("ucc", "fd") else ([], "")
            if left:
                news = [c for c in of_section if c not in left]
            if kind == "fd":
                news = _without_keys(news, of_kind["ucc"])
                most = limit if event == "broke" else min(limit, FDS_IN_A_REPORT)
            if kind == "dc":
                news = _not_above(of_section, of_kind["ucc"], of_kind["fd"])
                most = min(limit, BROKEN_DCS_IN_A_REPORT if event == "broke" else DCS_IN_A_REPORT)
            if event in ("within", "beyond"):
                most = min(limit, NEAR_IN_A_REPORT)
            loud = [c for c in news if role_of(c) != "muted"]
            meant = [c for c in loud if role_of(c) != "chance"]
            shown = meant if telling else some_by_chance(kind, loud)
            n_above, n_chance = len(of_section) - len(left) - len(news), len(loud) - len(shown)
            n_muted = len(news) - len(loud)
            above = ABOVE if kind == "dc" else "with a key above on the left"
            elsewhere = [(n, text) for n, text in ((n_above, above), (len(left), more)) if n]
            heading = f"{event_title(event, kind, would=would)}: {_counted(name, kind, len(of_section))}"
            if not news and len(elsewhere) == 1:
                heading += f", {'each ' if len(of_section) > 1 else ''}{elsewhere[0][1]}"
            elif not shown and not elsewhere and not (n_chance and n_muted):
                heading += f"{', muted' if n_muted else f' {BY_CHANCE[kind]}'}; all with --json"
            paper.line((heading, f"bold {style}"), indent=indent)
            for group in _grouped(kind, shown[:most]):
                _print_group(paper, group, style, indent=indent + 2, with_table=with_table)
            paper.more(len(shown) - most, "; all with --json", indent=indent + 2, style="dim")
            for n, text in elsewhere if news or len(elsewhere) > 1 else ():
                paper.line((f"{'... and ' if news else ''}{n:,} {text}", "dim"), indent=indent + 2)
            if shown or elsewhere or (n_chance and n_muted):
                print_by_chance(paper, kind, n_chance, "all with --json", indent=indent + 2)
                paper.muted(n_muted, indent=indent + 2)


def role_of(change: ChangeFields) -> str:
    """What a change means; the ledger does not say."""
    return str(change.get("role", "dependency"))


def _counted(name: str, kind: str, n: int) -> str:
    return plural(n, name) if name in SECTIONS else entries()[kind].counted(n)


def _broken_keys(changes: Sequence[ChangeFields]) -> dict[str, list[tuple[str, ...]]]:
    """The keys that broke, by table."""
    broken: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for c in changes:
        if c["change"] == "broke" and c["dependency"]["kind"] == "ucc":
            broken[c["dependency"]["table"]].append(tuple(c["dependency"]["columns"]))
    return broken


def _left_of_keys(
    changes: Sequence[ChangeFields], broken: Mapping[str, Sequence[tuple[str, ...]]]
) -> tuple[list[ChangeFields], str]:
    """(the keys, or functional dependencies, that are there since a key broke, how that is said of them)."""
    left, keys = [], set[tuple[str, ...]]()
    for c in changes:
        d = c["dependency"]
        whole = d["columns"] if d["kind"] == "ucc" else d["lhs"]
        parts = extended(whole, broken.get(d["table"], ())) if role_of(c) != "pinned" else []
        if parts and (d["kind"] == "fd" or role_of(c) in COUNTED):
            left.append(c)
            keys.update(parts)
    where = "on the left" if changes[0]["dependency"]["kind"] == "fd" else "columns"
    name = columns_text(*keys) if len(keys) == 1 else "a key that broke"
    return (left, f"with {name} and more {where}") if len(left) > 1 else ([], "")


def _without_keys(fds: Sequence[ChangeFields], keys: Sequence[ChangeFields]) -> list[ChangeFields]:
    """Functional dependencies but those whose left side is a key of which the same is told."""
    mentioned = {(k["dependency"]["table"], *k["dependency"]["columns"]) for k in keys}
    return [c for c in fds if (c["dependency"]["table"], *c["dependency"]["lhs"]) not in mentioned]


def _not_above(
    dcs: Sequence[ChangeFields], keys: Sequence[ChangeFields], fds: Sequence[ChangeFields]
) -> list[ChangeFields]:
    """Denial constraints but those that are a key or functional dependency of which the same is told."""
    mentioned: defaultdict[str, Mentioned] = defaultdict(lambda: Mentioned(set(), set()))
    for key in (change["dependency"] for change in keys):
        mentioned[key["table"]].keys.add(frozenset(key["columns"]))
    for fd in (change["dependency"] for change in fds):
        mentioned[fd["table"]].fds.add((frozenset(fd["lhs"]), fd["rhs"]))
    parsed = [(c, Dc.from_dict(c["dependency"])) for c in dcs]
    return [c for c, dc in parsed if not mentioned[dc.table].has(dc)]


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


def _reason(change: ChangeFields) -> str:
    """Why, in words; of what broke also for how long it had held."""
    reason = safe(change["reason"] or "")
    held = change.get("held", 0)
    if held >= 2:
        reason = f"{reason}; it had held through {plural(held, 'version')}"
    return introducing(
        reason, change["change"], change["dependency"]["kind"], shown=bool(change["witnesses"])
    )


def _grouped(kind: str, changes: Sequence[ChangeFields]) -> list[Group]:
    """Changes of one section in groups, each where the first of its changes stands."""
    place = {id(c): i for i, c in enumerate(changes)}
    proved = [_group(c) for c in changes if c["witnesses"]]
    groups = _by_rows(proved) if kind == "ind" else _by_pair(proved)
    bare: dict[str, Group] = {}
    for c in changes:
        if not c["witnesses"]:
            # One by one: keys have few words to each, the others have the same ones for many.
            words = str(len(bare)) if kind == "ucc" else _reason(c)
            bare.setdefault(words, Group("", [])).changes.append(c)
    return sorted([*groups, *bare.values()], key=lambda group: place[id(group.changes[0])])


def _group(change: ChangeFields) -> Group:
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
        columns = {row.row_id: names for row, names in zip(rows, compared, strict=True)}
        return Group(
            dependency["table"], [change], {r.row_id: r for r in rows}, columns, set.union(*compared)
        )
    else:
        first = against = set(side["columns"])
    columns = {row.row_id: set(against) for row in rows}
    return Group(side["table"], [change], {row.row_id: row for row in rows}, columns, set(first))


def _by_pair(groups: Sequence[Group]) -> list[Group]:
    """Keys or functional dependencies of a table that one pair of rows proves."""
    pairs: dict[tuple[str, tuple[int, ...]], Group] = {}
    for group in groups:
        first = pairs.setdefault((group.table, tuple(group.rows)), group)
        if first is not group:
            first.absorb(group)
    return list(pairs.values())


def _by_rows(groups: Sequence[Group]) -> list[Group]:
    """Inclusions that have a row in common, directly or by way of others: one bad row breaks many."""
    apart: list[Group] = []
    for group in groups:
        akin = [g for g in apart if g.table == group.table and g.rows.keys() & group.rows.keys()]
        if not akin:
            apart.append(group)
            continue
        first, *absorbed = akin
        for further in [*absorbed, group]:
            first.absorb(further)
        apart = [g for g in apart if all(g is not a for a in absorbed)]
    return apart
