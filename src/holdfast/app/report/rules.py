"""One rule, looked at closely: whether it holds, and which rows are against it; what constraints are made of,
and the indexes by which batches are checked against them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.app.report.changes import print_dependencies
from holdfast.app.report.explanations import (
    print_explanation,
    print_fd_explanation,
    print_ind_explanation,
    print_plain_explanation,
    print_verdict,
)
from holdfast.app.report.paper import Paper, Part
from holdfast.app.report.pins import violations_text
from holdfast.app.report.rows import print_pairs, print_rows
from holdfast.app.report.texts import columns_text, meaning, name_text, rule_text, safe, share
from holdfast.core.words.predicate import Group, PredicateSpace, is_trivial
from holdfast.core.words.row_rule import are_times
from holdfast.core.words.schema import Schema
from holdfast.errors import plural
from holdfast.kind import Explained, Explanation

if TYPE_CHECKING:
    from holdfast.denial.access.access import Access, Selection
    from holdfast.denial.dc_explanation import DcExplanation, IndexReport, RowExplanation


def print_dc_explanation(paper: Paper, answer: DcExplanation, *, n_rows: int | None = None) -> None:
    """Whether no two rows satisfy the predicates of a rule together."""
    from holdfast.denial.circular_dcs import holds_always  # with NumPy

    print_verdict(paper, name_text(answer.table), f": {rule_text(answer.dc)}", answer.holds, answer.version)
    paper.line(meaning(answer.dc), indent=2)
    if is_trivial(answer.dc.predicates):
        return
    if answer.since is not None:
        paper.line(f"since version {answer.since}", indent=2)
    if answer.pinned:
        paper.line("pinned", indent=2)
    if not answer.holds:
        pairs = "" if n_rows is None else f", of {n_rows * (n_rows - 1):,}"
        paper.line(
            f"{violations_text(answer.n_violations)}{pairs} (error {share(answer.dc.error)})", indent=2
        )
    elif holds_always(answer.dc.predicates):
        paper.line("holds in every table: its comparisons run in a circle", indent=2)
    elif answer.minimal:
        paper.line("minimal: none of its predicates can be dropped or loosened", indent=2)
    elif answer.implied_by:
        one = "this says" if len(answer.implied_by) == 1 else "these say"
        paper.line(f"not minimal: {one} as much or more", indent=2)
        print_dependencies(paper, answer.implied_by)
    else:
        paper.line("found by a look at the rows: it is not among the constraints that are kept", indent=2)
    if answer.pairs:
        paper.line("rows that violate it now:", indent=2)
        print_pairs(paper, answer.pairs, answer.dc, "red", indent=4)


def print_row_explanation(paper: Paper, answer: RowExplanation, *, times: bool = False) -> None:
    """Whether every row with both values satisfies a comparison of two of its columns."""
    rule = answer.rule
    print_verdict(paper, name_text(rule.table), f": {rule_text(rule)}", answer.holds, answer.version)
    paper.line(safe(rule.said(times=times)), indent=2)
    if answer.since is not None:
        paper.line(f"since version {answer.since}", indent=2)
    elif answer.holds:
        paper.line("found by a look at the rows: it is not among the row rules that are kept", indent=2)
    compared = plural(rule.n_compared, "row")
    if not rule.n_compared:
        paper.line("no row has both values", indent=2)
    elif answer.holds:
        paper.line(f"in all {compared} with both values", indent=2)
    else:
        verb = "violates" if rule.n_exceptions == 1 else "violate"
        violating = f"{rule.n_exceptions:,} of {compared} with both values {verb} it"
        paper.line(f"{violating} (error {share(rule.error)})", indent=2)
    if rule.apart:
        paper.line(("the values of the columns are far apart, so it may say little", "yellow"), indent=2)
    if answer.exceptions:
        paper.line("exceptions:", indent=2)
        print_rows(paper, answer.exceptions, set(rule.columns), "red", indent=4)
        paper.more(rule.n_exceptions - len(answer.exceptions), indent=4, style="dim")


def print_explained(
    paper: Paper, answer: Explained, *, n_rows: int | None = None, schema: Schema | None = None
) -> None:
    """Whether something holds, whatever it is; `n_rows` and `schema` of its table, where they are known."""
    from holdfast.denial.dc_explanation import DcExplanation, RowExplanation
    from holdfast.functional.fd_explanation import FdExplanation
    from holdfast.functional.key_reading import KeyExplanation
    from holdfast.inclusions.ind_explanation import IndExplanation

    match answer:
        case FdExplanation():
            print_fd_explanation(paper, answer)
        case IndExplanation():
            print_ind_explanation(paper, answer)
        case DcExplanation():
            print_dc_explanation(paper, answer, n_rows=n_rows)
        case RowExplanation():
            print_row_explanation(paper, answer, times=schema is not None and are_times(schema, answer.rule))
        case KeyExplanation():
            print_explanation(paper, answer)
        case Explanation():
            print_plain_explanation(paper, answer)
        case _:
            paper.line(safe(str(answer)))


# --- Predicates -------------------------------------------------------------------------------------------


def print_predicates(
    paper: Paper, table: str, space: PredicateSpace, *, version: int, bounds: Sequence[str] = ()
) -> None:
    """Which columns are compared, by which operators, and why."""
    n_pairs = sum(group.left <= group.right for group in space.groups)
    counted = f"{plural(space.n_comparisons, 'predicate')} in {plural(n_pairs, 'pair')} of columns"
    paper.heading(name_text(table), f": {counted}, as decided when it was tracked", version)
    if bounds:
        paper.line((f"the search was bounded: {', '.join(bounds)}", "yellow"), indent=2)
    alone = [group for group in space.groups if group.left == group.right]
    for ordered in (True, False):
        names = [group.left for group in alone if group.ordered == ordered]
        if names:
            paper.line("each with itself by ", (_operators(ordered), "bold"), ":", indent=2)
            paper.line((columns_text(names), "green"), indent=4)
    # Of (A, B) and (B, A), which come together, one.
    order = {group.left: i for i, group in enumerate(alone)}
    across = [g for g in space.groups if order.get(g.left, 0) < order.get(g.right, 0)]
    enough = "at least 30 % of the values of the one that has more of them"
    if not across:
        paper.line(f"none with another: no two of one type shared {enough}", indent=2)
        return
    paper.line(f"with another of the same type, where they shared {enough}:", indent=2)
    paper.grid([_across(group) for group in across], indent=4)


def _across(group: Group) -> list[Part]:
    return [
        (f"{name_text(group.left)} with {name_text(group.right)}", "green"),
        f"by {_operators(group.ordered)}",
    ]


def _operators(ordered: bool) -> str:
    return " ".join(Group("", "", ordered).operators)


# --- Indexes ----------------------------------------------------------------------------------------------


def print_indexes(paper: Paper, indexes: IndexReport, *, version: int) -> None:
    """How the rows are found that a batch's rows may violate constraints with."""
    chosen = indexes.selection
    start: tuple[Part, ...] = ((name_text(indexes.table), "bold"),)
    end = (f" (version {version})", "dim")
    if chosen is None:
        why = (
            "a batch is compared with all rows"
            if indexes.evidence_kind == "counted"
            else "there is too little to look up"
        )
        paper.line(*start, f": {indexes.evidence_kind} evidence needs no indexes: {why}", end)
        return
    n = len(chosen.accesses)
    lists, orders = len(chosen.columns), len(chosen.orders)
    paper.line(
        *start,
        f": {n:,} access{'' if n == 1 else 'es'} for {plural(len(chosen.served), 'denial constraint')}, by "
        f"{plural(lists, 'posting list')} and {orders:,} order index{'' if orders == 1 else 'es'}",
        end,
    )
    paper.line(
        f"estimated: {_time(chosen.cost_ns)} for each row of a batch; {_time(chosen.scan_ns)} if it were "
        "compared with all rows",
        indent=2,
    )
    header: list[Part] = [
        (title, "dim")
        for title in ("kind", "serves", "coverage", "selectivity", "score", "rank", "cost", "asks for")
    ]
    paper.grid([header, *(_access(access, chosen) for access in chosen.accesses)], indent=2)


def _access(access: Access, chosen: Selection) -> list[Part]:
    """One line: what the index answers, and behind "then" what is compared on the rows that it gives."""
    predicates = chosen.space.predicates
    question = " and ".join(str(predicates[p]) for p in access.source)
    compared = " and ".join(str(predicates[p]) for p in access.predicates if p not in access.source)
    if access.kind == "scan":
        question, compared = f"all rows, on {columns_text([chosen.names[c] for c in access.columns])}", ""
    return [
        (access.kind, "bold"),
        f"{access.n_served:,}",
        f"{access.coverage:,}",
        share(access.selectivity),
        "-" if access.score is None else share(access.score),
        "-" if access.rank is None else f"{access.rank:,}",
        _time(access.cost_ns),
        (safe(f"{question}, then {compared}" if compared else question), "green"),
    ]


def _time(ns: float) -> str:
    """
    >>> _time(850.0), _time(12_345.0), _time(3.2e6), _time(4e9)
    ('850 ns', '12.3 us', '3.2 ms', '4 s')
    """
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"
