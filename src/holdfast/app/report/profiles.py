"""Column profiles: a line for each column, or all that is known of some."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.app.report.paper import Paper, Part
from holdfast.app.report.texts import cell, name_text, safe, share
from holdfast.errors import plural
from holdfast.profile.column_profile import ColumnProfile, Counted

if TYPE_CHECKING:
    from holdfast.profile.profile_reading import TableProfile

# A line shows this many values or patterns, and this much of each that is a text.
IN_A_LINE = 3
VALUE_WIDTH = 20
CUT = ("text", "binary")
# Values are told if the first one is in more than this share of the rows.
FREQUENT = 0.05


def print_profile(paper: Paper, profile: TableProfile) -> None:
    """A line for each column."""
    _print_heading(paper, profile)
    heads = ("column", "type", "NULLs", "distinct", "min", "max", "most frequent, or patterns")
    rows: list[list[Part]] = [[(head, "dim") for head in heads]]
    for column in profile:
        nulls = f"{column.n_nulls:,}"
        rows.append(
            [
                (name_text(column.column), "bold"),
                column.type,
                (nulls, "yellow") if column.n_nulls else nulls,
                column.distinct_text,
                _value(column.low, column.type),
                _value(column.high, column.type),
                _in_a_line(column),
            ]
        )
    paper.grid(rows, indent=2)


def print_column(paper: Paper, profile: TableProfile) -> None:
    """All that is known of columns."""
    _print_heading(paper, profile)
    for column in profile:
        paper.line((name_text(column.column), "bold"), f" ({column.type})", indent=2)
        of_rows = f" ({share(column.n_nulls / column.n_rows)} of the rows)" if column.n_nulls else ""
        paper.line(f"NULLs: {column.n_nulls:,}{of_rows}", indent=4)
        paper.line(f"distinct values: {column.distinct_text}", indent=4)
        if column.low is not None:
            paper.line(f"from {cell(column.low)} to {cell(column.high)}", indent=4)
        if column.lengths is not None:
            lengths, unit = column.lengths, "bytes" if column.type == "binary" else "characters"
            span = f"{lengths.low:,} to {lengths.high:,} {unit}"
            paper.line(f"lengths: {span}, {lengths.mean:,.1f} on average", indent=4)
        if column.top and (column.top[0].n_rows > 1 or len(column.top) == column.n_distinct):
            _print_counted(paper, "most frequent", column.top, column.n_distinct)
        _print_counted(paper, "patterns", column.patterns, column.n_patterns)
        for rule in column.rules:
            paper.item(("rule", "green"), safe(rule.formula), (f"  {safe(rule.reason)}", "dim"), indent=4)


def _print_heading(paper: Paper, profile: TableProfile) -> None:
    counted = f": {plural(profile.n_rows, 'row')}, {plural(len(profile), 'column')}"
    paper.heading(name_text(profile.table), counted, profile.version)
    if not profile.tracked:
        note = "counted just now: with --kinds ucc,profile 'holdfast track' keeps it, and tells what changes"
        paper.line((note, "yellow"), indent=2)


def _print_counted(paper: Paper, title: str, items: tuple[Counted, ...] | None, n: int | None) -> None:
    """Values, or patterns, with the rows that have them."""
    if not items:
        return
    paper.line(f"{title}:", indent=4)
    paper.grid([[cell(item.value), plural(item.n_rows, "row")] for item in items], indent=6)
    paper.more((n or 0) - len(items), indent=6, style="dim")


def _value(value: object, type_: str) -> str:
    return "" if value is None else _short(value, type_)


def _short(value: object, type_: str) -> str:
    """A value in a line: texts are cut, and no others, of which a part would be another value."""
    return cell(value, VALUE_WIDTH) if type_ in CUT else cell(value)


def _in_a_line(column: ColumnProfile) -> str:
    """The most frequent values; of a column in which hardly one occurs twice its patterns, if it has some."""
    if column.top and column.top[0].n_rows > max(1, FREQUENT * column.n_values):
        return _listed(column.top, column.n_distinct, column.type)
    return _listed(column.patterns, column.n_patterns, "text") if column.patterns else ""


def _listed(items: tuple[Counted, ...], n: int | None, type_: str) -> str:
    shown = [f"{_short(item.value, type_)} ({item.n_rows:,})" for item in items[:IN_A_LINE]]
    return ", ".join(shown) + (", ..." if (n or 0) > len(shown) else "")
