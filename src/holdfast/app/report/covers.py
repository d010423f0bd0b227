"""What holds: the minimal keys of a table, the inclusions of a workspace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.app.report.chance import ALL_OF_IT, print_by_chance
from holdfast.app.report.paper import ALL, Paper
from holdfast.app.report.pins import print_pins
from holdfast.app.report.texts import ind_text, name_text, safe, share, side_text
from holdfast.core.words.change import Pin
from holdfast.core.words.dependency import Dependency, Ind, Ucc
from holdfast.errors import plural
from holdfast.kind import entries

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

# A terminal shows this many keys of a table, and this many inclusions; pipes show all.
ON_A_TERMINAL = 200


def print_cover(
    paper: Paper,
    table: str,
    keys: Sequence[Dependency] | None,
    *,
    version: int,
    n_rows: int,
    max_columns: int | None,
    max_error: float = 0.0,
    pins: Sequence[Pin] = (),
    non_uniques: Sequence[tuple[str, ...]] | None = None,
    everything: bool = False,
    n_chance: int = 0,
    n_muted: int = 0,
) -> None:
    """Its pins; a table's minimal keys, as they are given; its maximal non-uniques when asked.

    Without `keys` they are not tracked, which is said. With a `max_error` they are those within it. Here as
    in all lists `n_muted` more are only counted, and `n_chance` that look like chance.
    """
    counts = [plural(n_rows, "row")]
    if keys is not None:
        bound = f" of at most {plural(max_columns, 'column')}" if max_columns else ""
        counted = entries()["ucc"].counted(len(keys) + n_chance + n_muted, "minimal ")
        counts.append(counted + bound + within_text(max_error))
    paper.heading(name_text(table), f": {', '.join(counts)}", version)
    print_pins(paper, pins, everything=everything)
    if keys is None:
        paper.line(("its keys are not tracked", "yellow"), indent=2)
        return
    if max_columns:
        note = f"wider keys were not looked for: the table is tracked with --max-columns {max_columns}"
        paper.line((note, "yellow"), indent=2)
    if not keys and not n_muted:
        why = "" if max_columns or max_error else ": some rows are equal in all columns"
        paper.line((f"no column combination is unique{why}", "yellow"), indent=2)
    uccs = [k for k in keys if isinstance(k, Ucc)]
    errors = [k.error for k in uccs]
    _print_combinations(paper, "minimal key", [k.columns for k in uccs], "green", everything, errors)
    print_by_chance(paper, "ucc", n_chance, ALL_OF_IT)
    paper.muted(n_muted)
    if non_uniques is not None:
        paper.line(f"{plural(len(non_uniques), 'maximal non-unique combination')}:", indent=2)
        exact = [0.0] * len(non_uniques)
        _print_combinations(paper, "maximal non-unique", non_uniques, "magenta", everything, exact)


def _print_combinations(
    paper: Paper,
    title: str,
    combinations: Sequence[tuple[str, ...]],
    style: str,
    everything: bool,
    errors: Sequence[float],
) -> None:
    if not combinations:
        return
    if not paper.is_terminal:
        for columns, error in zip(combinations, errors, strict=True):
            paper.file.write(f"  {len(columns):>3}  {_listed(columns)}{error_text(error)}\n")
        return
    from rich.text import Text

    shown = paper.first(combinations, ON_A_TERMINAL, everything)
    table = _grid()
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column(title, overflow="fold")
    for columns, error in zip(shown, errors, strict=False):
        line = Text(_listed(columns), style="yellow" if error else style)
        table.add_row(str(len(columns)), line.append(error_text(error), style="default"))
    paper.render(table)
    paper.more(len(combinations) - len(shown), ALL)


def error_text(error: float) -> str:
    """What is said behind a dependency that almost holds.

    >>> error_text(0.25), error_text(0.0)
    ('  error 0.25', '')
    """
    return f"  error {share(error)}" if error else ""


def within_text(max_error: float) -> str:
    """What is said behind the number of dependencies that hold up to an error.

    >>> within_text(0.25), within_text(0.0)
    (' with an error of at most 0.25', '')
    """
    return f" with an error of at most {share(max_error)}" if max_error else ""


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(map(name_text, columns)) or "(no column needed: there is at most one row)"


def print_inds(
    paper: Paper,
    inds: Sequence[Ind],
    *,
    version: int,
    table: str | None = None,
    max_error: float = 0.0,
    pins: Sequence[Pin] = (),
    notes: Sequence[str] = (),
    n_foreign: int = 0,
    everything: bool = False,
    counted: Sequence[Ind] = (),
    n_chance: int = 0,
) -> None:
    """The pinned inclusions; then those that hold or almost do, as they are given, `n_foreign` foreign keys
    first. Others are only `counted`: `n_chance` that look like chance, and those that are muted."""
    n_whole = sum(ind.missing_values == 0 for ind in (*inds, *counted))
    subject = "" if table is None else f" of {name_text(table)}"
    n_near = len(inds) + len(counted) - n_whole
    more = f", {n_near:,} more with an error of at most {share(max_error)}" if max_error else ""
    foreign = f", {plural(n_foreign, 'foreign key')} first" if n_foreign else ""
    paper.heading(entries()["ind"].counted(n_whole), f"{subject}{more}{foreign}", version)
    print_pins(paper, pins, everything=everything)
    for text in notes:
        paper.line((safe(text), "yellow"), indent=2)
    shown = paper.first(inds, ON_A_TERMINAL, everything)
    grid = _inds_grid(shown) if paper.is_terminal and shown else None
    if grid is not None and 2 + paper.console.measure(grid).maximum <= paper.width:
        paper.render(grid)
    else:  # names must not be broken into the lines of narrow columns
        for ind in shown:
            style = "yellow" if ind.missing_values else "green"
            paper.line((ind_text(ind), style), f"  {measures(ind)}", indent=2)
    paper.more(len(inds) - len(shown), ALL)
    print_by_chance(paper, "ind", n_chance, ALL_OF_IT)
    paper.muted(len(counted) - n_chance)


def print_listed(
    paper: Paper,
    table: str,
    kind: str,
    dependencies: Sequence[Dependency],
    *,
    version: int,
    everything: bool = False,
    n_muted: int = 0,
) -> None:
    """What holds in a table, of a class that has no form of its own: a line for each."""
    paper.heading(name_text(table), f": {entries()[kind].counted(len(dependencies) + n_muted)}", version)
    shown = paper.first(dependencies, ON_A_TERMINAL, everything)
    for dependency in shown:
        paper.line((safe(dependency.name), "green"), indent=2)
    paper.more(len(dependencies) - len(shown), ALL)
    paper.muted(n_muted)


def measures(ind: Ind) -> str:
    """How much of an inclusion is missing, and how much of its referenced side it covers.

    >>> from holdfast.core.words.dependency import Side
    >>> measures(Ind(Side("a", ("x",)), Side("b", ("y",)), 0.02, 3, 5, 0.5))
    'error 0.02, misses 3 values in 5 rows, coverage 0.5'
    >>> measures(Ind(Side("a", ("x",)), Side("b", ("y",))))
    'coverage 1'
    >>> measures(Ind(Side("a", ("x", "y")), Side("b", ("x", "y")), coverage=None))
    ''
    """
    texts = []
    if ind.missing_values:
        rows = "" if ind.missing_rows is None else f" in {plural(ind.missing_rows, 'row')}"
        texts += [f"error {share(ind.error)}", f"misses {plural(ind.missing_values, 'value')}{rows}"]
    if ind.coverage is not None:
        texts.append(f"coverage {share(ind.coverage)}")
    return ", ".join(texts)


def _inds_grid(inds: Sequence[Ind]) -> Table:
    from rich.text import Text

    partial = any(ind.missing_values for ind in inds)
    table = _grid()
    table.add_column("dependent", overflow="fold")
    table.add_column("in referenced", overflow="fold")
    table.add_column("coverage", justify="right", no_wrap=True)
    if partial:
        for title in ("error", "missing", "in rows"):
            table.add_column(title, justify="right", no_wrap=True)
    for ind in inds:
        style = "yellow" if ind.missing_values else "green"
        cells: list[str | Text] = [
            Text(side_text(ind.dependent), style=style),
            Text(side_text(ind.referenced), style=style),
            "" if ind.coverage is None else share(ind.coverage),
        ]
        if ind.missing_values:
            rows = "?" if ind.missing_rows is None else f"{ind.missing_rows:,}"
            cells += [share(ind.error), f"{ind.missing_values:,}", rows]
        table.add_row(*cells)
    return table


def _grid() -> Table:
    from rich.table import Table

    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
