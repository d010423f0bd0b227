"""Rows that prove something: the columns in question first, then as many others as fit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from holdfast.app.report.paper import Paper, Part, width_of
from holdfast.app.report.texts import cell, listed, name_text
from holdfast.core.words.change import Pair, WitnessRow, row_name
from holdfast.core.words.dependency import Fd
from holdfast.core.words.predicate import Dc, as_dc

Mark = Callable[[WitnessRow, str], bool]  # whether a cell is one of those in question
UPRIGHT_ROWS = 2
UPRIGHT_COLUMNS = 4
UPRIGHT_WIDTH = 24
PAIR_LABELS = ("t", "s")  # the two rows of a rule


def print_rows(
    paper: Paper,
    rows: Sequence[WitnessRow],
    subject: Collection[str],
    style: str,
    *,
    indent: int,
    marked: Mark = lambda row, column: True,
    labels: Sequence[str] = (),
) -> None:
    """Rows of one table below each other: the columns in question, then the others, differing ones first.

    A cell of a column of the `subject` is styled if it is `marked`. What is too wide is printed upright, with
    one line per column. `labels` say which row of a rule each of them is.
    """
    names = [row_name(row.row_id) for row in rows]
    if labels:
        names = [f"{label} {name}" for label, name in zip(labels, names, strict=True)]
    if not rows[0].values:  # a report has values for its first few thousand changes only
        paper.line(f"row{'s' if len(names) > 1 else ''} {listed(names)}", indent=indent)
        return
    first = rows[0].values
    in_question = [c for c in first if c in subject]
    others = [c for c in first if c not in subject]
    others.sort(key=lambda c: all(row.values.get(c) == first[c] for row in rows))

    def column(name: str) -> list[Part]:
        cells: list[Part] = []
        for row in rows:
            text = cell(row.values.get(name))
            cells.append((text, style) if name in subject and marked(row, name) else text)
        return [(name_text(name), "bold"), *cells]

    columns: list[list[Part]] = [[("row", "dim"), *((name, "dim") for name in names)]]
    columns += [column(c) for c in in_question]
    room = paper.width - indent - sum(width_of(c) + 2 for c in columns)
    if room < 0:
        _print_upright(paper, rows, names, in_question, others, style, indent, marked)
        return
    shown: list[list[Part]] = []
    left_out = len(others)
    for name in others:
        candidate = column(name)
        note = len(f"(+{left_out - 1} more)") + 2 if left_out > 1 else 0
        if room - 3 < width_of(candidate) + 2 + note:
            continue
        room -= width_of(candidate) + 2
        shown.append(candidate)
        left_out -= 1
    if shown:
        columns += [["|"] * (len(rows) + 1), *shown]
    if left_out and room >= len(f"(+{left_out} more)"):
        columns.append([(f"(+{left_out} more)", "dim"), *[""] * len(rows)])
    paper.grid(list(zip(*columns, strict=True)), indent=indent)


def print_pairs(paper: Paper, pairs: Sequence[Pair], dc: Dc | Fd, style: str, *, indent: int) -> None:
    """Pairs of rows that violate a rule, t first; of either row the cells that the rule compares are marked.

    Of a rule that says the same with t and s exchanged, a pair is shown one way round.
    """
    dc = as_dc(dc) if isinstance(dc, Fd) else dc
    sides = {p.left for p in dc.predicates}, {p.right for p in dc.predicates}
    symmetric = set(dc.predicates) == set(dc.mirrored.predicates)
    shown: set[tuple[int, int]] = set()
    for t, s in pairs:
        if symmetric and (s.row_id, t.row_id) in shown:
            continue
        shown.add((t.row_id, s.row_id))
        against = {row.row_id: columns for row, columns in zip((t, s), sides, strict=True)}
        print_rows(
            paper,
            (t, s),
            set(dc.columns),
            style,
            indent=indent,
            marked=lambda row, column, against=against: column in against[row.row_id],  # type: ignore[misc]
            labels=PAIR_LABELS,
        )


def _print_upright(
    paper: Paper,
    rows: Sequence[WitnessRow],
    names: Sequence[str],
    in_question: Sequence[str],
    others: Sequence[str],
    style: str,
    indent: int,
    marked: Mark,
) -> None:
    """The rows side by side, with one line per column."""
    telling = [c for c in others if len(rows) == 1 or any(r.values.get(c) != rows[0].values[c] for r in rows)]
    for start in range(0, len(rows), UPRIGHT_ROWS):
        some = rows[start : start + UPRIGHT_ROWS]
        shown = names[start : start + UPRIGHT_ROWS]
        lines: list[list[Part]] = [[("row", "dim"), *((name, "dim") for name in shown)]]
        for name in in_question:
            texts = [(cell(r.values.get(name), UPRIGHT_WIDTH), marked(r, name)) for r in some]
            lines.append([(name_text(name), "bold"), *((t, style if m else "") for t, m in texts)])
        for name in telling[:UPRIGHT_COLUMNS]:
            lines.append([name_text(name), *(cell(r.values.get(name), UPRIGHT_WIDTH) for r in some)])
        paper.grid(lines, indent=indent)
