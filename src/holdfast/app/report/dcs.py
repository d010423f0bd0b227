"""Rules: the denial constraints of a table, and the rules about each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.app.report.chance import ALL_OF_IT, print_by_chance
from holdfast.app.report.covers import error_text, within_text
from holdfast.app.report.paper import ALL, MOST_TELLING, Paper, Part
from holdfast.app.report.pins import print_pins
from holdfast.app.report.texts import meaning, name_text, rule_text, safe, share
from holdfast.core.words.change import Pin
from holdfast.core.words.predicate import Dc, as_fd, as_key
from holdfast.core.words.row_rule import RowRule, are_times
from holdfast.core.words.schema import Schema
from holdfast.core.words.sentences import sentence
from holdfast.errors import plural
from holdfast.kind import entries

# A terminal shows this many constraints, of two lines each, and this many row rules; a pipe shows all.
ON_A_TERMINAL = 20
ROWS_ON_A_TERMINAL = 40


def print_dcs(
    paper: Paper,
    table: str,
    dcs: Sequence[Dc] | None,
    *,
    version: int,
    n_rows: int,
    evidence: str = "",
    bounds: Sequence[str] = (),
    form: str = "minimal",
    max_error: float = 0.0,
    n_dropped: int = 0,
    complete: bool = True,
    pins: Sequence[Pin] = (),
    everything: bool = False,
    n_chance: int = 0,
    n_muted: int = 0,
) -> None:
    """Its pinned rules; a table's denial constraints, as they are given, each as formula and sentence.

    `evidence` says from how many predicates and what evidence; `bounds` what the search was restricted to;
    `n_dropped` how many a concise list has left out. Without `dcs` they are not tracked.
    """
    counts = [plural(n_rows, "row")]
    if dcs is not None:
        first = "" if complete else "the first "
        counted = entries()["dc"].counted(len(dcs) + n_chance + n_muted, f"{form} ")
        counts.append(f"{first}{counted}{within_text(max_error)}")
    elif pins:
        counts.append(plural(len(pins), "pinned rule"))
    paper.heading(name_text(table), f": {', '.join(counts)}", version, evidence)
    print_pins(paper, pins, everything=everything)
    if bounds:
        paper.line((f"the search was bounded: {', '.join(bounds)}", "yellow"), indent=2)
    if n_dropped:
        paper.line((f"{n_dropped:,} more follow from them, and are left out", "dim"), indent=2)
    if not complete:
        paper.line(("there are more of them; all with --all", "yellow"), indent=2)
    shown = paper.first(dcs or (), ON_A_TERMINAL, everything)
    for dc in shown:
        name: Part = (rule_text(dc), "yellow" if dc.error else "green")
        paper.item((f"{len(dc.predicates):>3}", "dim"), name, error_text(dc.error), indent=2)
        paper.line(f"{'almost: ' if dc.error else ''}{meaning(dc)}", indent=7)
    paper.more(len(dcs or ()) - len(shown), MOST_TELLING)
    print_by_chance(paper, "dc", n_chance, ALL_OF_IT)
    paper.muted(n_muted)


def dc_dict(dc: Dc) -> dict[str, Any]:
    """A denial constraint for programs, with its sentence; as a key or functional dependency if it is one."""
    key, fd = as_key(dc), as_fd(dc)
    return {
        **dc.to_dict(),
        "sentence": sentence(dc),
        "key": None if key is None else list(key),
        "fd": None if fd is None else {"lhs": list(fd[0]), "rhs": fd[1]},
    }


# --- Rules about each row ---------------------------------------------------------------------------------


def print_row_rules(
    paper: Paper,
    table: str,
    rules: Sequence[RowRule],
    schema: Schema,
    *,
    version: int,
    n_rows: int,
    max_error: float = 0.0,
    everything: bool = False,
    n_muted: int = 0,
) -> None:
    """A table's row rules, each with its sentence and how many rows are against it; those apart last."""
    counted = f"{entries()['row'].counted(len(rules) + n_muted)}{within_text(max_error)}"
    paper.heading(name_text(table), f": {plural(n_rows, 'row')}, {counted}", version)
    shown = paper.first(rules, ROWS_ON_A_TERMINAL, everything)
    near = [rule for rule in shown if not rule.apart]
    apart = [rule for rule in shown if rule.apart]
    if near:
        paper.grid([_line(rule, schema) for rule in near], indent=2)
    if apart:
        paper.line(("the values of these columns are far apart, so they may say little:", "dim"), indent=2)
        paper.grid([_line(rule, schema) for rule in apart], indent=4)
    paper.more(len(rules) - len(shown), ALL)
    paper.muted(n_muted)


def _line(rule: RowRule, schema: Schema) -> list[Part]:
    style = "dim" if rule.apart else "yellow" if rule.n_exceptions else "green"
    sentence = safe(rule.said(times=are_times(schema, rule)))
    return [(rule_text(rule), style), sentence, exceptions_text(rule)]


def exceptions_text(rule: RowRule) -> str:
    """How many rows are against a rule; nothing if none is.

    >>> exceptions_text(RowRule("t", "net", "<=", "gross", 0.01, 2, 150))
    'error 0.01, 2 exceptions among 150 rows'
    """
    if not rule.n_exceptions:
        return ""
    exceptions = plural(rule.n_exceptions, "exception")
    return f"error {share(rule.error)}, {exceptions} among {plural(rule.n_compared, 'row')}"
