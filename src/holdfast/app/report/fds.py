"""Functional dependencies: the cover of a table, and when each held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.app.report.covers import error_text, within_text
from holdfast.app.report.paper import ALL, MOST_TELLING, Paper, Part
from holdfast.app.report.texts import fd_text, name_text
from holdfast.core.words.dependency import Fd
from holdfast.core.words.ranks import LONG_HELD
from holdfast.errors import plural
from holdfast.kind import entries

if TYPE_CHECKING:
    from holdfast.core.cover.history import Spell
    from holdfast.functional.fd_past import FdHistory

# A terminal shows this many lines of dependencies, and in a log this many of either sort; a pipe shows all.
ON_A_TERMINAL = 40
IN_A_LOG = 20


def print_fds(
    paper: Paper,
    table: str,
    fds: Sequence[Fd],
    *,
    version: int,
    n_rows: int,
    evidence: str,
    max_lhs: int | None,
    max_error: float = 0.0,
    everything: bool = False,
    n_muted: int = 0,
) -> None:
    """A table's minimal functional dependencies, as they are given.

    A pipe gets one a line, as `explain` takes it. On a terminal those that hold and have one left side are
    one line where the first of them stands, `a -> b, c`: a key has all other columns on its right.
    """
    bound = f" of at most {max_lhs} on the left" if max_lhs else ""
    counted = entries()["fd"].counted(len(fds) + n_muted, "minimal ") + bound + within_text(max_error)
    paper.heading(name_text(table), f": {plural(n_rows, 'row')}, {counted}", version, evidence)
    if max_lhs:
        note = f"wider left sides were not looked for: the table is tracked with --max-lhs {max_lhs}"
        paper.line((note, "yellow"), indent=2)
    if not paper.is_terminal:
        for fd in fds:
            paper.file.write(f"  {len(fd.lhs):>3}  {fd_text(fd.lhs, fd.rhs)}{error_text(fd.error)}\n")
        paper.muted(n_muted)
        return
    groups: dict[Fd | tuple[str, ...], list[Fd]] = {}
    for fd in fds:
        groups.setdefault(fd if fd.error else fd.lhs, []).append(fd)
    lines = [_line(group) for group in groups.values()]
    shown = paper.first(lines, ON_A_TERMINAL, everything)
    for size, _, parts in shown:
        paper.item((f"{size:>3}", "dim"), *parts, indent=2)
    paper.more(len(fds) - sum(n for _, n, _ in shown), MOST_TELLING)
    paper.muted(n_muted)


def _line(fds: Sequence[Fd]) -> tuple[int, int, list[Part]]:
    """(columns on the left, dependencies, text) of dependencies with one left side."""
    first = fds[0]
    text = fd_text(first.lhs, first.rhs)
    for fd in fds[1:]:
        text += ", " + fd_text((), fd.rhs).removeprefix("[] -> ")
    return len(first.lhs), len(fds), [(text, "yellow" if first.error else "green"), error_text(first.error)]


# --- Over time --------------------------------------------------------------------------------------------


def print_fd_log(
    paper: Paper, table: str, histories: Sequence[FdHistory], *, version: int, everything: bool = False
) -> None:
    """When each dependency of a table held: broken ones first, and on top those that had held for long."""
    broken = sorted((h for h in histories if not h.holds), key=lambda h: -h.n_held)
    holding = sorted((h for h in histories if h.holds), key=lambda h: (-h.n_held, not h.minimal))
    versions = f" in {plural(histories[0].n_versions, 'version')} of the table" if histories else ""
    counted = f"{entries()['fd'].counted(len(histories))}{versions}, {len(broken):,} of them broken"
    paper.heading(name_text(table), f": {counted}", version)
    for title, listed, style in (("broken:", broken, "red"), ("holding:", holding, "green")):
        if not listed:
            continue
        paper.line((title, f"bold {style}"), indent=2)
        shown = paper.first(listed, IN_A_LOG, everything)
        header: list[Part] = [(h, "dim") for h in ("held", "at versions", "outlived rows", "dependency")]
        paper.grid([header, *(_history(h, style) for h in shown)], indent=4)
        paper.more(len(listed) - len(shown), ALL, indent=4)


def _history(history: FdHistory, style: str) -> list[Part]:
    long_held = not history.holds and history.n_held >= LONG_HELD
    name = fd_text(history.fd.lhs, history.fd.rhs)
    note = "" if history.minimal or not history.holds else "  (a narrower one holds)"
    return [
        (f"{history.n_held:,} of {history.n_versions:,}", "bold" if long_held else ""),
        ", ".join(map(spell_text, history.spells)),
        f"+{history.n_inserted:,} -{history.n_deleted:,}",
        (name + note, f"bold {style}" if long_held else style),
    ]


def spell_text(spell: Spell) -> str:
    """Versions at which a dependency held: `1-4`, `6`, or `6-` if it holds still."""
    if spell.last is None:
        return f"{spell.first}-"
    return str(spell.first) if spell.first == spell.last else f"{spell.first}-{spell.last}"
