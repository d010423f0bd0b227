"""Rules: the denial constraints of a table, the best of them with reasons, and the rules about each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.app.report.covers import error_text
from holdfast.app.report.paper import Paper, Part
from holdfast.app.report.pins import print_pins
from holdfast.app.report.texts import meaning, name_text, plural, rule_text, safe, share
from holdfast.core.words.change import Pin
from holdfast.core.words.predicate import Dc
from holdfast.core.words.row_rule import RowRule, are_times
from holdfast.core.words.schema import Schema

if TYPE_CHECKING:
    from holdfast.denial.dc_ranking import RankedDc, Ranking

# A terminal shows this many constraints, of two lines each, and this many row rules; a pipe shows all.
ON_A_TERMINAL = 20
ROWS_ON_A_TERMINAL = 40


def print_dcs(
    paper: Paper,
    table: str,
    found: Sequence[Dc] | None,
    *,
    version: int,
    n_rows: int,
    kept: str = "",
    bounds: Sequence[str] = (),
    form: str = "minimal",
    max_error: float = 0.0,
    n_dropped: int = 0,
    complete: bool = True,
    pins: Sequence[Pin] = (),
    everything: bool = False,
) -> None:
    """A table's denial constraints, short ones first, each as formula and sentence; its pinned rules.

    `kept` says from how many predicates and what evidence; `bounds` what the search was restricted to;
    `n_dropped` how many a concise list has left out. Without `found` they are not tracked.
    """
    counted = [plural(n_rows, "row")]
    if found is not None:
        within = f" with an error of at most {share(max_error)}" if max_error else ""
        first = "" if complete else "the first "
        counted.append(f"{first}{plural(len(found), f'{form} denial constraint')}{within}")
    elif pins:
        counted.append(plural(len(pins), "pinned rule"))
    paper.line(
        (name_text(table), "bold"),
        f": {', '.join(counted)} ",
        (f"({kept}{', ' if kept else ''}version {version})", "dim"),
    )
    if bounds:
        paper.line((f"the search was bounded: {', '.join(bounds)}", "yellow"), indent=2)
    if n_dropped:
        paper.line((f"{n_dropped:,} more follow from them, and are left out", "dim"), indent=2)
    if not complete:
        paper.line(("there are more of them; all with --all", "yellow"), indent=2)
    shown = found or ()
    if paper.is_terminal and not everything:
        shown = shown[:ON_A_TERMINAL]
    for dc in shown:
        name: Part = (rule_text(dc), "yellow" if dc.error else "green")
        paper.item((f"{len(dc.predicates):>3}", "dim"), name, error_text(dc.error), indent=2)
        paper.line(f"{'almost: ' if dc.error else ''}{meaning(dc)}", indent=7)
    more = len(found or ()) - len(shown)
    if more:
        what = f"... and {more:,} more; the most telling with --top 20, all with --all, --json or in a pipe"
        paper.line((what, "yellow"), indent=2)
    print_pins(paper, pins)


# --- Ranked -----------------------------------------------------------------------------------------------


def print_dc_ranking(paper: Paper, table: str, ranking: Ranking, *, version: int) -> None:
    """The first denial constraints of a table, best first, each with the reasons for its place."""
    shown = len(ranking.dcs)
    of = "" if shown == ranking.n_dcs else f"the first {shown:,} of "
    paper.line(
        (name_text(table), "bold"),
        f": {of}{plural(ranking.n_dcs, 'denial constraint')}{', best first' if shown else ''} ",
        (f"(version {version})", "dim"),
    )
    for ranked in ranking.dcs:
        _print_ranked(paper, ranked)
    told = []
    if ranking.n_tautologies:
        told.append(f"{ranking.n_tautologies:,} hold in every table and come last")
    candidates = ranking.n_dcs - ranking.n_tautologies
    if ranking.n_measured < candidates:
        told.append(f"{ranking.n_measured:,} of the other {candidates:,} were measured on all pairs of rows")
    if ranking.n_certain < shown:
        certain = f"only the first {ranking.n_certain:,} are" if ranking.n_certain else "no place is"
        told.append(f"{certain} certain: the score of what was not measured is an upper bound")
    for line in told:
        paper.line((line, "dim"), indent=2)


def _print_ranked(paper: Paper, ranked: RankedDc) -> None:
    score = "-" if ranked.tautology else f"{'' if ranked.measured else '<'}{ranked.score:.2f}"
    paper.item((f"{score:>4}", "bold"), (rule_text(ranked.dc), "green"), indent=2)
    paper.line(safe(ranked.sentence), indent=8)
    paper.line((safe("; ".join(ranked.reasons)), "dim"), indent=8)


# --- Rules about each row ---------------------------------------------------------------------------------


def print_row_rules(
    paper: Paper,
    table: str,
    found: Sequence[RowRule],
    schema: Schema,
    *,
    version: int,
    n_rows: int,
    max_error: float = 0.0,
    everything: bool = False,
) -> None:
    """A table's row rules, each with its sentence and how many rows are against it; those apart last."""
    within = f" with an error of at most {share(max_error)}" if max_error else ""
    paper.line(
        (name_text(table), "bold"),
        f": {plural(n_rows, 'row')}, {plural(len(found), 'row rule')}{within} ",
        (f"(version {version})", "dim"),
    )
    shown = found if everything or not paper.is_terminal else found[:ROWS_ON_A_TERMINAL]
    near = [rule for rule in shown if not rule.apart]
    apart = [rule for rule in shown if rule.apart]
    if near:
        paper.grid([_line(rule, schema) for rule in near], indent=2)
    if apart:
        paper.line(("the values of these columns are far apart, so they may say little:", "dim"), indent=2)
        paper.grid([_line(rule, schema) for rule in apart], indent=4)
    if len(found) > len(shown):
        more = f"... and {len(found) - len(shown):,} more; all with --all, --json or in a pipe"
        paper.line((more, "yellow"), indent=2)


def _line(rule: RowRule, schema: Schema) -> list[Part]:
    style = "dim" if rule.apart else "yellow" if rule.n_exceptions else "green"
    said = safe(rule.said(times=are_times(schema, rule)))
    return [(rule_text(rule), style), said, exceptions_text(rule)]


def exceptions_text(rule: RowRule) -> str:
    """How many rows are against a rule; nothing if none is.

    >>> exceptions_text(RowRule("t", "net", "<=", "gross", 0.01, 2, 150))
    'error 0.01, 2 exceptions among 150 rows'
    """
    if not rule.n_exceptions:
        return ""
    exceptions = plural(rule.n_exceptions, "exception")
    return f"error {share(rule.error)}, {exceptions} among {plural(rule.n_compared, 'row')}"
