"""Reports for people: covers, changes, explanations and the log, on a terminal or in a pipe.

Everything that comes from a user's data (names and cells alike) passes through `safe` or `cell`, and
is printed as literal text, never as markup: a cell with an escape sequence, a line end or `[red]` in it
shows as its escaped self. On a terminal lines are styled and wrapped to its width; in a pipe they are
plain and whole, so that nothing is cut and `grep` finds what it looks for.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from holdfast.errors import shorten
from holdfast.history import Explanation, LogEntry, change_dict
from holdfast.model.change import Change, Pair, Pin, WitnessRow, row_name
from holdfast.model.dependency import Dependency

# A terminal shows this many keys of a table, a report this many of each sort; pipes show all of a cover.
KEYS_ON_A_TERMINAL = 200
KEYS_IN_A_REPORT = 20
KEYS_IN_A_LOG = 5
CELL_WIDTH = 40
PATIENCE_S = 0.3

Part = str | tuple[str, str]  # a text, or a text and its style


def safe(text: str) -> str:
    r"""The text with everything unprintable escaped: control and escape characters, line ends, marks that
    reverse the direction of writing, lone surrogates.

    >>> print(safe("a\x1b[31mb\nc"))
    a\x1b[31mb\nc
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def name_text(name: str) -> str:
    """A column or table name as itself, or quoted where it could be misread in a list.

    >>> print(name_text("day"), name_text("last, first"), name_text(""))
    day 'last, first' ''
    """
    plain = name.isprintable() and name == name.strip() and name and not any(c in name for c in ",[]'\"|")
    return name if plain else repr(name)


def columns_text(columns: Sequence[str]) -> str:
    """Columns as `[a, b]`.

    >>> columns_text(("a", "b"))
    '[a, b]'
    """
    return f"[{', '.join(map(name_text, columns))}]"


def cell(value: Any, limit: int = CELL_WIDTH) -> str:
    """A value as it stands in a table of rows; quoted only where it could be misread.

    >>> print(cell("Lee"), cell(None), cell("NULL"), cell(""), cell(3.5))
    Lee NULL 'NULL' '' 3.5
    """
    if isinstance(value, str) and len(value) <= limit:
        plain = value.isprintable() and value == value.strip() and value not in ("", "NULL")
        if plain and not value.startswith(("'", '"')) and "|" not in value:
            return value
    return shorten(value, limit)


def plural(n: int, noun: str) -> str:
    """
    >>> plural(1, "key"), plural(2500, "key")
    ('1 key', '2,500 keys')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


class Paper:
    """Where a report is written to: a terminal, or anything else."""

    def __init__(self, file: IO[str], *, width: int | None = None, terminal: bool | None = None) -> None:
        self.file = file
        self.console = Console(
            file=file, width=width, force_terminal=terminal, markup=False, highlight=False, emoji=False
        )
        self.is_terminal = self.console.is_terminal

    @property
    def width(self) -> int:
        return self.console.width if self.is_terminal else 1 << 30

    def line(self, *parts: Part, indent: int = 0) -> None:
        """One line; on a terminal it is wrapped, and its continuation is indented too."""
        if not self.is_terminal:
            whole = "".join(p if isinstance(p, str) else p[0] for p in parts)
            self.file.write((" " * indent + whole).rstrip() + "\n")
            return
        text = Text()
        for part in parts:
            text.append(part) if isinstance(part, str) else text.append(*part)
        indent = min(indent, self.width // 3)
        self.console.print(Padding(text, (0, 0, 0, indent), expand=False) if text else "")

    def grid(self, rows: Sequence[Sequence[Part]], indent: int = 0) -> None:
        """Rows of cells in aligned columns; nothing is cut or wrapped on purpose."""
        texts = [[p if isinstance(p, str) else p[0] for p in row] for row in rows]
        widths = [max(map(cell_len, column)) for column in zip(*texts, strict=True)]
        for row, plain in zip(rows, texts, strict=True):
            parts: list[Part] = []
            for i, (part, text) in enumerate(zip(row, plain, strict=True)):
                last = i == len(row) - 1
                parts += [part, "" if last else " " * (widths[i] - cell_len(text) + 2)]
            self.line(*parts, indent=indent)


# --- Covers -----------------------------------------------------------------------------------------------


def print_cover(
    paper: Paper,
    table: str,
    keys: Sequence[Dependency],
    *,
    version: int,
    n_rows: int,
    max_columns: int | None,
    pins: Sequence[Pin] = (),
    non_uniques: Sequence[tuple[str, ...]] | None = None,
    everything: bool = False,
) -> None:
    """A table's minimal keys, smallest first; its pins; its maximal non-uniques when asked."""
    found = plural(len(keys), "minimal key")
    bound = f" of at most {plural(max_columns, 'column')}" if max_columns else ""
    paper.line(
        (name_text(table), "bold"),
        f": {plural(n_rows, 'row')}, {found}{bound} ",
        (f"(version {version})", "dim"),
    )
    if max_columns:
        note = f"wider keys were not looked for: the table is tracked with --max-columns {max_columns}"
        paper.line((note, "yellow"), indent=2)
    if not keys:
        why = "" if max_columns else ": some rows are equal in all columns"
        paper.line((f"no column combination is unique{why}", "yellow"), indent=2)
    _combinations(paper, "minimal key", [k.columns for k in keys], "green", everything)
    if non_uniques is not None:
        paper.line(f"{plural(len(non_uniques), 'maximal non-unique combination')}:", indent=2)
        _combinations(paper, "maximal non-unique", non_uniques, "magenta", everything)
    for pin in pins:
        state = ("holds", "green") if pin.holds else ("DOES NOT HOLD", "bold red")
        paper.line(f"pinned {columns_text(pin.columns)}: ", state, indent=2)


def _combinations(
    paper: Paper, title: str, found: Sequence[tuple[str, ...]], style: str, everything: bool
) -> None:
    if not found:
        return
    if not paper.is_terminal:
        for columns in found:
            paper.file.write(f"  {len(columns):>3}  {_listed(columns)}\n")
        return
    shown = found if everything else found[:KEYS_ON_A_TERMINAL]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column(title, overflow="fold")
    for columns in shown:
        table.add_row(str(len(columns)), Text(_listed(columns), style=style))
    paper.console.print(Padding(table, (0, 0, 0, 2), expand=False))
    if len(found) > len(shown):
        more = len(found) - len(shown)
        paper.line(
            (f"... and {more:,} more, as wide or wider; all with --all, --json or in a pipe", "yellow"),
            indent=2,
        )


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(map(name_text, columns)) or "(no column needed: there is at most one row)"


# --- Changes ----------------------------------------------------------------------------------------------


def print_change(paper: Paper, change: Change) -> None:
    """What a batch did (or would do), and which rows are the reason."""
    if change.repeated:
        what = f"batch {change.batch_id!r} was applied before, as version {change.version}; nothing was done"
        paper.line((name_text(change.table), "bold"), f": {safe(what)}")
        return
    print_headline(paper, change)
    if change.action == "track":
        keys = [c.dependency.columns for c in change.changes]
        for columns in keys[:KEYS_IN_A_REPORT]:
            note = "" if columns else " (no column needed: there is at most one row)"
            paper.line((columns_text(columns), "green"), note, indent=2)
        if len(keys) > KEYS_IN_A_REPORT:
            paper.line(
                (f"... and {len(keys) - KEYS_IN_A_REPORT:,} more; see them with 'holdfast show'", "dim"),
                indent=2,
            )
        if not keys:
            paper.line(("no column combination is unique", "yellow"), indent=2)
        return
    would = change.action == "check"
    changes = [c.to_dict() for c in change.changes]
    print_events(paper, changes, limit=KEYS_IN_A_REPORT, would=would)
    if not changes:
        paper.line(f"the same keys {'would hold' if would else 'hold'} as before", indent=2)
    for pin in change.pins:
        if pin.holds:
            verdict = "would hold" if would else "holds"
            paper.line(f"pinned {columns_text(pin.columns)}: ", (verdict, "green"), indent=2)
        else:
            verdict = "WOULD NOT HOLD" if would else "DOES NOT HOLD"
            paper.line(f"pinned {columns_text(pin.columns)}: ", (verdict, "bold red"), indent=2)


def print_headline(paper: Paper, change: Change) -> None:
    name, rest = change.table, change.headline().removeprefix(change.table)
    paper.line((name_text(name), "bold"), safe(rest))


# What an event is called, its colour, and what it would be called in a check.
EVENTS = {
    "broke": ("broke", "would break", "red"),
    "appeared": ("appeared", "would appear", "green"),
    "implied": ("implied by a narrower key", "would be implied by a narrower key", "cyan"),
    "dropped": ("dropped", "would be dropped", "dim"),
}


def print_events(
    paper: Paper, changes: Sequence[Mapping[str, Any]], *, limit: int, would: bool = False, indent: int = 2
) -> None:
    """Changes in their JSON form, by event; those that the same rows prove stand together."""
    for event, (title, in_a_check, style) in EVENTS.items():
        ours = [c for c in changes if c["change"] == event]
        if not ours:
            continue
        paper.line(
            (f"{in_a_check if would else title}: {plural(len(ours), 'key')}", f"bold {style}"), indent=indent
        )
        for group in _by_witness(ours[:limit]):
            pair = _first_pair(group[0])
            names = [columns_text(c["dependency"]["columns"]) for c in group]
            if pair is None:
                for name, change in zip(names, group, strict=True):
                    paper.line((name, style), f" {safe(change['reason'] or '')}", indent=indent + 2)
                continue
            reason = safe(group[0]["reason"] or "")
            if len(names) == 1:
                paper.line((names[0], style), f" {reason}", indent=indent + 2)
            else:
                for name in names:
                    paper.line((name, style), indent=indent + 2)
                paper.line(f"each {reason}", indent=indent + 2)
            agreed = {column for c in group for column in c["dependency"]["columns"]}
            print_pair(paper, pair, agreed, style, indent=indent + 4)
        if len(ours) > limit:
            more = f"... and {len(ours) - limit:,} more; all with --json"
            paper.line((more, "dim"), indent=indent + 2)


def _first_pair(change: Mapping[str, Any]) -> Pair | None:
    if not change["witnesses"]:
        return None
    first, second = (WitnessRow.from_dict(row) for row in change["witnesses"][0])
    return first, second


def _by_witness(changes: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Changes of one event in groups that one pair of rows proves; those without a pair come last."""
    groups: dict[tuple[int, ...], list[Mapping[str, Any]]] = {}
    for change in changes:
        pair = _first_pair(change)
        groups.setdefault(() if pair is None else tuple(r.row_id for r in pair), []).append(change)
    return [*(g for ids, g in groups.items() if ids), *(g for ids, g in groups.items() if not ids)]


def print_pair(paper: Paper, pair: Pair, agreed: set[str], style: str, *, indent: int) -> None:
    """Two rows that agree on some columns: those first, then as many others as fit, differing ones first."""
    if not pair[0].values:  # a report has values for its first few thousand changes only
        paper.line(f"rows {row_name(pair[0].row_id)} and {row_name(pair[1].row_id)}", indent=indent)
        return
    a, b = (row.values for row in pair)
    own = [c for c in a if c in agreed]
    others = [c for c in a if c not in agreed]
    others.sort(key=lambda c: a[c] == b.get(c))

    def column(name: str, style: str) -> list[Part]:
        return [(name_text(name), "bold"), *((cell(row.values.get(name)), style) for row in pair)]

    columns: list[list[Part]] = [[("row", "dim"), *((row_name(r.row_id), "dim") for r in pair)]]
    columns += [column(c, style) for c in own]
    room = paper.width - indent - sum(_width(c) + 2 for c in columns)
    if room < 0:
        _print_upright(paper, pair, own, others, style, indent)
        return
    shown: list[list[Part]] = []
    left_out = len(others)
    for name in others:
        candidate = column(name, "")
        note = len(f"(+{left_out - 1} more)") + 2 if left_out > 1 else 0
        if room - 3 < _width(candidate) + 2 + note:
            continue
        room -= _width(candidate) + 2
        shown.append(candidate)
        left_out -= 1
    if shown:
        columns += [["|", "|", "|"], *shown]
    if left_out and room >= len(f"(+{left_out} more)"):
        columns.append([(f"(+{left_out} more)", "dim"), "", ""])
    paper.grid(list(zip(*columns, strict=True)), indent=indent)


def _print_upright(
    paper: Paper, pair: Pair, own: Sequence[str], others: Sequence[str], style: str, indent: int
) -> None:
    """The pair with one line per column, for what is too wide to lie side by side."""
    a, b = pair
    rows: list[list[Part]] = [[("row", "dim"), (row_name(a.row_id), "dim"), (row_name(b.row_id), "dim")]]
    rows += [[(name_text(c), "bold"), *((cell(r.values.get(c), 24), style) for r in pair)] for c in own]
    differing = [c for c in others if a.values[c] != b.values.get(c)][:4]
    rows += [[name_text(c), *(cell(r.values.get(c), 24) for r in pair)] for c in differing]
    paper.grid(rows, indent=indent)


def _width(column: Sequence[Part]) -> int:
    return max(cell_len(p if isinstance(p, str) else p[0]) for p in column)


# --- Explanations and the log -----------------------------------------------------------------------------


def print_explanation(paper: Paper, told: Explanation) -> None:
    verdict = ("is unique", "bold green") if told.unique else ("is not unique", "bold red")
    paper.line(
        (name_text(told.table), "bold"),
        f" {columns_text(told.columns)} ",
        verdict,
        (f" (version {told.version})", "dim"),
    )
    if told.since is not None:
        paper.line(f"since version {told.since}" + _turn(told), indent=2)
    if told.pinned:
        paper.line("pinned", indent=2)
    if told.unique and told.minimal:
        paper.line("minimal: without any one of its columns it is not unique", indent=2)
    elif told.keys:
        paper.line(f"not minimal: it contains {plural(len(told.keys), 'key')}", indent=2)
        for key in told.keys[:KEYS_IN_A_REPORT]:
            paper.line((columns_text(key.columns), "green"), indent=4)
        if len(told.keys) > KEYS_IN_A_REPORT:
            paper.line(
                (f"... and {len(told.keys) - KEYS_IN_A_REPORT:,} more; all with --json", "dim"), indent=4
            )
    elif told.unique:
        paper.line("found by a look at the rows: it is wider than --max-columns allows keys to be", indent=2)
    print_events(paper, [change_dict(c) for c in told.turned_by], limit=KEYS_IN_A_LOG)
    shown = {tuple(r["row"] for r in pair) for c in told.turned_by for pair in c.witnesses or ()}
    proofs = [p for p in told.duplicates if tuple(r.row_id for r in p) not in shown]
    if proofs:
        paper.line("rows that agree on it now:" if not shown else "more rows that agree on it now:", indent=2)
        for pair in proofs:
            print_pair(paper, pair, set(told.columns), "red", indent=4)
    elif told.duplicates:
        paper.line("these rows are there still", indent=2)


def _turn(told: Explanation) -> str:
    turn = told.turned
    if turn is None:
        return ", when the table was tracked"
    batch = f" of batch {safe(repr(turn.batch_id))}" if turn.batch_id else ""
    when = f" on {turn.at:%Y-%m-%d at %H:%M:%S} UTC" if turn.at else ""
    return f", by the {turn.action}{batch}{when}"


def print_log(paper: Paper, entries: Sequence[LogEntry], *, everything: bool = False) -> None:
    """What each version did and changed, oldest first."""
    for entry in entries:
        batch = f" batch {entry.batch_id!r}" if entry.batch_id else ""
        paper.line(
            (f"version {entry.version}", "bold"),
            (f"  {entry.at:%Y-%m-%d %H:%M:%S} UTC  ", "dim"),
            f"{entry.action} {name_text(entry.table)}{safe(batch)}{_detail(entry)}",
        )
        counts = {e: [c for c in entry.changes if c.change == e] for e in EVENTS}
        for event, changes in counts.items():
            if not changes or (entry.action in ("track", "drop") and not everything):
                continue
            limit = len(changes) if everything else KEYS_IN_A_LOG
            title, _, style = EVENTS[event]
            names = " ".join(columns_text(c.dependency["columns"]) for c in changes[:limit])
            more = f" ... and {len(changes) - limit:,} more" if len(changes) > limit else ""
            paper.line((f"{title}: ", style), names, (more, "dim"), indent=4)
    if not entries:
        paper.line("nothing was done in this workspace yet")


def _detail(entry: LogEntry) -> str:
    detail = entry.detail
    if "columns" in detail:
        return f" {columns_text(detail['columns'])}"
    if "n_segments" in detail:
        return f": {plural(detail['n_segments'], 'segment')} now"
    if "n_rows" not in detail:
        return ""
    rows = f"{plural(detail['n_rows'], 'row')}, {plural(detail['n_keys'], 'key')}"
    if entry.action == "track":
        return f": {rows}"
    return f": +{detail['n_inserted']:,} -{detail['n_deleted']:,}, now {rows}"


# --- Progress ---------------------------------------------------------------------------------------------


@contextlib.contextmanager
def progress_on(paper: Paper) -> Iterator[Callable[[str, int, int], None] | None]:
    """A hook for `holdfast.open` that shows what is being done; None, and silence, off a terminal."""
    if not paper.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    display = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[count]}", markup=False),
        TimeElapsedColumn(),
        console=paper.console,
        transient=True,
    )
    stage = "preparing"
    task = display.add_task(stage, total=None, count="")

    def show(now: str, done: int, total: int) -> None:
        nonlocal stage
        if now != stage:
            stage = now
            text = f"{now} (a few seconds) ..." if now == "starting Spark" else now
            display.reset(task, description=text, total=None)
        display.update(task, completed=done, total=total or None, count=f"{done}/{total}" if total else "")

    # What is over at once needs no display: it would only flicker.
    begin = threading.Timer(PATIENCE_S, display.start)
    begin.daemon = True
    begin.start()
    try:
        yield show
    finally:
        begin.cancel()
        begin.join()
        display.stop()
