"""What each version did and changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.app.report.chance import BY_CHANCE, some_by_chance
from holdfast.app.report.events import EVENTS, event_title
from holdfast.app.report.paper import Paper
from holdfast.app.report.texts import columns_text, dependency_text, name_text, safe, side_text
from holdfast.core.words.dependency import Side
from holdfast.core.words.sameness import NONE, DependencySet
from holdfast.errors import plural
from holdfast.kind import entries

if TYPE_CHECKING:
    from holdfast.core.store.change_log import LogEntry
    from holdfast.core.store.ledger_rows import ChangeRow

IN_A_LOG = 5


def print_log(
    paper: Paper,
    entries: Sequence[LogEntry],
    *,
    everything: bool = False,
    muted: DependencySet = NONE,
) -> None:
    """What each version did and changed, oldest first: a line for each event and kind, in the order of the
    changes. What is muted is counted, and what looks like chance, unless there is nothing else."""
    for entry in entries:
        _print_version(paper, entry)
        if entry.action in ("track", "drop") and not everything:
            continue
        several = len(entry.tables) > 1
        for event, (*_, style) in EVENTS.items():
            of_event: dict[str, list[ChangeRow]] = defaultdict(list)
            for c in entry.changes:
                if c.change == event:
                    of_event[c.kind].append(c)
            loud = {kind: unmuted(changes, muted) for kind, changes in of_event.items()}
            telling = any(c.role != "chance" for changes in loud.values() for c in changes)
            for kind, changes in loud.items():
                meant = [c for c in changes if c.role != "chance"]
                meant = meant if telling else [*some_by_chance(kind, changes)]
                shown = changes if everything else meant[:IN_A_LOG]
                between = " " if kind == "ucc" else "; "
                names = between.join(dependency_text(c.dependency, with_table=several) for c in shown)
                n_chance = 0 if everything else len(changes) - len(meant)
                rest = (
                    (len(changes) - n_chance - len(shown), "more"),
                    (n_chance, BY_CHANCE[kind]),
                    (len(of_event[kind]) - len(changes), "muted"),
                )
                more = " ... and ".join(["", *(f"{n:,} {what}" for n, what in rest if n)])
                more = more if shown else more.removeprefix(" ... and ")
                paper.line((f"{event_title(event, kind)}: ", style), names, (more, "dim"), indent=4)
    if not entries:
        paper.line("nothing was done in this workspace yet")


def unmuted(changes: Sequence[ChangeRow], muted: DependencySet) -> list[ChangeRow]:
    """Changes but those of dependencies that are muted. Cost: nothing where none is."""
    types = {kind: entry.dependency for kind, entry in entries().items()}
    return [c for c in changes if not muted or types[c.kind].from_dict(c.dependency) not in muted]


def _print_version(paper: Paper, entry: LogEntry) -> None:
    """A line for the version; for several tables a line for each below it."""
    batch = safe(f" batch {entry.batch_id!r}") if entry.batch_id else ""
    start = (
        (f"version {entry.version}", "bold"),
        (f"  {entry.at:%Y-%m-%d %H:%M:%S} UTC  ", "dim"),
        f"{entry.action} ",
    )
    if len(entry.tables) == 1:
        text = _detail(entry.action, entry.details[0]) + _inclusions(entry.details[0], ", ")
        paper.line(*start, f"{name_text(entry.tables[0])}{batch}{text}")
        return
    paper.line(
        *start, f"{plural(len(entry.tables), 'table')}{batch}{_inclusions(entry.details[0], ', now ')}"
    )
    for table, detail in zip(entry.tables, entry.details, strict=True):
        paper.line(f"{name_text(table)}{_detail(entry.action, detail)}", indent=4)


def _inclusions(detail: Mapping[str, Any], before: str) -> str:
    n_inds = detail.get("n_inds")
    return "" if n_inds is None else f"{before}{entries()['ind'].counted(n_inds)}"


def _detail(action: str, detail: Mapping[str, Any]) -> str:
    if "pinned" in detail:
        parts = ((detail["pinned"], "pinned"), (detail["unpinned"], "no longer pinned"))
        return f": {', '.join(f'{len(pins):,} {what}' for pins, what in parts if pins)}"
    if "dependency" in detail:
        return f": {dependency_text(detail['dependency'], with_table=False)}"
    if "rule" in detail:
        return f": {safe(detail['rule'])}"
    if "columns" in detail:
        referenced = detail.get("referenced")
        within = f" in {side_text(Side.from_dict(referenced))}" if referenced else ""
        return f"{columns_text(detail['columns'])}{within}"
    if "n_segments" in detail:
        return f": {plural(detail['n_segments'], 'segment')} now"
    if "n_tables" in detail:
        return f": {plural(detail['n_tables'], 'table')}, {plural(detail['n_columns'], 'column')} now"
    if "n_rows" not in detail:
        return ""
    now = plural(detail["n_rows"], "row")
    for kind, entry in entries().items():
        n = detail.get(entry.count or f"n_{kind}")
        if n is not None and not entry.across:
            now += f", {entry.counted(n)}"
    if action == "track":
        return f": {now}"
    return f": +{detail['n_inserted']:,} -{detail['n_deleted']:,}, now {now}"
