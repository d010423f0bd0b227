"""Rows that violate something, and values that look wrong: `violations`, `repairs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.app.report.explanations import print_verdict
from holdfast.app.report.paper import Paper, Part
from holdfast.app.report.rows import print_rows
from holdfast.app.report.texts import cell, dependency_text, name_text, share
from holdfast.core.words.change import WitnessRow, row_name
from holdfast.errors import plural
from holdfast.kind import entries

if TYPE_CHECKING:
    from holdfast.core.cover.violating_rows import ViolatingRows
    from holdfast.functional.repairs import Repairs


def print_violations(
    paper: Paper, answer: ViolatingRows, records: Sequence[Mapping[str, Any]], *, everything: bool = False
) -> None:
    """How many rows violate it, the fewest to remove, and the rows that are listed."""
    text = dependency_text(answer.dependency.to_dict())
    print_verdict(paper, text, "", answer.holds, answer.version)
    if answer.holds:
        return
    pairs = ""
    if answer.n_violations is not None:
        ordered = "ordered " if answer.dependency.kind == "dc" else ""
        pairs = f", in {plural(answer.n_violations, f'{ordered}pair')}"
    groups = "" if answer.n_groups is None else f"; {plural(answer.n_groups, answer.noun)}"
    paper.line(
        f"{answer.n_violating:,} of {plural(answer.n_rows, 'row')} violate it{pairs}{groups}", indent=2
    )
    exact = "" if answer.removal.exact else " (as few as were found)"
    paper.line(f"without {answer.removal} it holds{exact}", indent=2)
    names, table = list(records[0]), set(answer.relation.schema.names)
    marks = [name for name in names if name not in table]
    said_by_others = ("_group_rows", "_votes", "_majority", "_deviates")
    hidden = {marks[0], *(name for name in marks if name.endswith(said_by_others))}
    flag = next(name for name in marks if name.endswith("_remove"))
    rows = [
        WitnessRow(int(i), {n: v for n, v in r.items() if n not in hidden})
        for i, r in zip(answer.row_ids, records, strict=True)
    ]
    concerned = set(answer.dependency.columns)
    print_rows(
        paper,
        rows,
        {*marks, *concerned},
        "red",
        indent=4,
        marked=lambda row, column: bool(row.values[flag]) and column in concerned,
    )
    if not everything:
        n = answer.n_violating - answer.n_listed
        paper.more(n, "; all with --all, or in a file with --all -o rows.parquet", indent=4, style="dim")


def print_repairs(paper: Paper, answer: Repairs, values: tuple[Sequence[Any], Sequence[Any]]) -> None:
    """The cells that look wrong, those of which the dependencies are surest first; of the first ones the
    values before and after."""
    from holdfast.core.cover.news import plain

    by = f": {plural(len(answer), 'repair')} proposed by {entries()['fd'].counted(len(answer.fds))}"
    paper.heading(name_text(answer.table), by, answer.version)
    if not answer.fds:
        paper.line(
            "no column almost determines another one. Name dependencies that should hold, such as "
            "'zip, street -> city'; 'holdfast show --kind fd --max-error 0.01' lists those that almost do "
            "where they are tracked.",
            indent=2,
        )
    old, suggested = values
    shown, names = len(old), answer.relation.schema.names
    if not shown:
        return
    lines: list[list[Part]] = [
        [(h, "bold") for h in ("confidence", "row", "column", "is", "should be", "votes")]
    ]
    for i in range(shown):
        lines.append(
            [
                share(float(answer.confidence[i])),
                (row_name(int(answer.row_ids[i])), "dim"),
                name_text(names[answer.columns[i]]),
                (cell(plain(old[i])), "red"),
                (cell(plain(suggested[i])), "green"),
                f"{answer.votes[i]} of {answer.voters[i]}",
            ]
        )
    paper.grid(lines, indent=2)
    paper.more(len(answer) - shown, "; all with --all, or as SQL with -o repairs.sql", indent=2)
