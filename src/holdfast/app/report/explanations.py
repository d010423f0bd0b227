"""One combination, or one inclusion: whether it holds, since when, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.app.report.changes import IN_A_REPORT, ROWS_IN_A_REPORT, print_events
from holdfast.app.report.covers import measures
from holdfast.app.report.paper import Paper
from holdfast.app.report.rows import print_rows
from holdfast.app.report.texts import cell, columns_text, ind_text, name_text, plural, safe
from holdfast.history import Explanation, change_dict
from holdfast.model.dependency import Ucc

if TYPE_CHECKING:
    from holdfast.inspection import IndExplanation
    from holdfast.storage.ledger_rows import CommitRow

TURNS_SHOWN = 5


def print_explanation(paper: Paper, told: Explanation) -> None:
    """Whether columns are unique."""
    verdict = ("is unique", "bold green") if told.unique else ("is not unique", "bold red")
    paper.line(
        (name_text(told.table), "bold"),
        f" {columns_text(told.columns)} ",
        verdict,
        (f" (version {told.version})", "dim"),
    )
    if told.since is not None:
        paper.line(f"since version {told.since}, {_turn(told.turned, 'the table was')}", indent=2)
    if told.pinned:
        paper.line("pinned", indent=2)
    if told.unique and told.minimal:
        paper.line("minimal: without any one of its columns it is not unique", indent=2)
    elif told.keys:
        paper.line(f"not minimal: it contains {plural(len(told.keys), 'key')}", indent=2)
        inside = [key.columns for key in told.keys if isinstance(key, Ucc)]
        for columns in inside[:IN_A_REPORT]:
            paper.line((columns_text(columns), "green"), indent=4)
        if len(inside) > IN_A_REPORT:
            paper.line((f"... and {len(inside) - IN_A_REPORT:,} more; all with --json", "dim"), indent=4)
    elif told.unique:
        paper.line("found by a look at the rows: it is wider than --max-columns allows keys to be", indent=2)
    print_events(paper, [change_dict(c) for c in told.turned_by], limit=TURNS_SHOWN)
    shown = {tuple(r["row"] for r in pair) for c in told.turned_by for pair in c.witnesses or ()}
    proofs = [p for p in told.duplicates if tuple(r.row_id for r in p) not in shown]
    if proofs:
        paper.line("rows that agree on it now:" if not shown else "more rows that agree on it now:", indent=2)
        for pair in proofs:
            print_rows(paper, pair, set(told.columns), "red", indent=4)
    elif told.duplicates:
        paper.line("these rows are there still", indent=2)


def print_ind_explanation(paper: Paper, told: IndExplanation) -> None:
    """Whether columns are included in others."""
    verdict = ("holds", "bold green") if told.holds else ("does not hold", "bold red")
    paper.line((ind_text(told.ind), "bold"), " ", verdict, (f" (version {told.version})", "dim"))
    if told.since is not None:
        paper.line(f"since version {told.since}, {_turn(told.turned, 'its tables were')}", indent=2)
    if told.holds and told.ind.coverage == 0:
        paper.line(f"{columns_text(told.dependent.columns)} has no value that could be missing", indent=2)
    else:
        paper.line(measures(told.ind), indent=2)
    if not told.missing:
        return
    n_more = told.ind.missing_values - len(told.missing)
    more = f" and {n_more:,} more" if n_more > 0 else ""
    values = ", ".join(cell(value) for value, _ in told.missing)
    rows = list({row.row_id: row for _, row in told.missing}.values())
    paper.line(f"missing: {values}{more}; a row with {'each' if len(rows) > 1 else 'it'}:", indent=2)
    print_rows(paper, rows[:ROWS_IN_A_REPORT], set(told.dependent.columns), "red", indent=4)
    if len(rows) > ROWS_IN_A_REPORT:
        paper.line((f"... and {len(rows) - ROWS_IN_A_REPORT:,} more; all with --json", "dim"), indent=4)


def _turn(turned: CommitRow | None, tracked: str) -> str:
    """What made it so."""
    if turned is None:
        return f"when {tracked} tracked"
    batch = f" of batch {safe(repr(turned.batch_id))}" if turned.batch_id else ""
    when = f" on {turned.at:%Y-%m-%d at %H:%M:%S} UTC" if turned.at else ""
    return f"by the {turned.action}{batch}{when}"
