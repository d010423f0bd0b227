"""One combination, functional dependency or inclusion: whether it holds, since when, and why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from holdfast.app.report.changes import print_dependencies
from holdfast.app.report.covers import measures
from holdfast.app.report.events import ROWS_IN_A_REPORT, print_events
from holdfast.app.report.paper import Paper
from holdfast.app.report.rows import print_rows
from holdfast.app.report.texts import cell, columns_text, fd_text, ind_text, name_text, safe, share
from holdfast.core.words.change import WitnessRow
from holdfast.errors import plural
from holdfast.kind import Explanation

if TYPE_CHECKING:
    from holdfast.core.evidence.groups import ViolatingGroup
    from holdfast.core.store.ledger_rows import ChangeRow, CommitRow
    from holdfast.functional.fd_explanation import FdExplanation
    from holdfast.functional.key_reading import KeyExplanation
    from holdfast.inclusions.ind_explanation import IndExplanation

TURNS_SHOWN = 5
VALUES_OF_A_GROUP = 4
# On a terminal, rows are shown of this many groups.
GROUPS_WITH_ROWS = 3


def print_verdict(
    paper: Paper,
    subject: str,
    what: str,
    holds: bool,
    version: int,
    *,
    words: tuple[str, str] = ("holds", "does not hold"),
) -> None:
    """The first line of an explanation."""
    verdict = (words[0], "bold green") if holds else (words[1], "bold red")
    paper.line((subject, "bold"), f"{what} ", verdict, (f" (version {version})", "dim"))


def print_explanation(paper: Paper, answer: KeyExplanation) -> None:
    """Whether columns are unique."""
    words = ("is unique", "is not unique")
    what = columns_text(answer.columns)
    print_verdict(paper, name_text(answer.table), what, answer.unique, answer.version, words=words)
    if answer.since is not None:
        paper.line(f"since version {answer.since}, {_turn(answer.turned, 'the table was')}", indent=2)
    if answer.pinned:
        paper.line("pinned", indent=2)
    if answer.unique and answer.minimal:
        paper.line("minimal: without any one of its columns it is not unique", indent=2)
    elif answer.keys:
        paper.line(f"not minimal: it contains {plural(len(answer.keys), 'key')}", indent=2)
        print_dependencies(paper, answer.keys)
    if answer.unique and not answer.keys:
        paper.line("found by a look at the rows: it is wider than --max-columns allows keys to be", indent=2)
    _print_turns(paper, answer.turned_by)
    shown = {
        tuple(WitnessRow.from_dict(r).row_id for r in p) for c in answer.turned_by for p in c.witnesses or ()
    }
    proofs = [p for p in answer.duplicates if tuple(r.row_id for r in p) not in shown]
    if proofs:
        paper.line("rows that agree on it now:" if not shown else "more rows that agree on it now:", indent=2)
        for pair in proofs:
            print_rows(paper, pair, set(answer.columns), "red", indent=4)
    elif answer.duplicates:
        paper.line("these rows are there still", indent=2)


def print_ind_explanation(paper: Paper, answer: IndExplanation) -> None:
    """Whether columns are included in others."""
    print_verdict(paper, ind_text(answer.ind), "", answer.holds, answer.version)
    if answer.since is not None:
        paper.line(f"since version {answer.since}, {_turn(answer.turned, 'its tables were')}", indent=2)
    if answer.holds and answer.ind.coverage == 0:
        paper.line(f"{columns_text(answer.dependent.columns)} has no value that could be missing", indent=2)
    else:
        paper.line(measures(answer.ind), indent=2)
    if not answer.missing:
        return
    n_more = answer.ind.missing_values - len(answer.missing)
    more = f" and {n_more:,} more" if n_more > 0 else ""
    values = ", ".join(_value(value) for value, _ in answer.missing)
    rows = list({row.row_id: row for _, row in answer.missing}.values())
    paper.line(f"missing: {values}{more}; a row with {'each' if len(rows) > 1 else 'it'}:", indent=2)
    print_rows(paper, rows[:ROWS_IN_A_REPORT], set(answer.dependent.columns), "red", indent=4)
    paper.more(len(rows) - ROWS_IN_A_REPORT, "; all with --json", indent=4, style="dim")


def _value(value: Any) -> str:
    """A value, or the combination of several columns."""
    return f"({', '.join(map(cell, value))})" if isinstance(value, list) else cell(value)


def print_fd_explanation(paper: Paper, answer: FdExplanation) -> None:
    """Whether rows that agree on the left side agree on the right one."""
    what = f": {fd_text(answer.lhs, answer.rhs)}"
    print_verdict(paper, name_text(answer.table), what, answer.holds, answer.version)
    if answer.trivial:
        paper.line(f"always: {name_text(answer.rhs)} is among the columns on the left", indent=2)
        return
    if answer.since is not None:
        paper.line(f"since version {answer.since}, {_turn(answer.turned, 'the table was')}", indent=2)
    if answer.holds:
        _print_standing(paper, answer)
    else:
        pairs = answer.n_rows * (answer.n_rows - 1) // 2
        verb = "violates" if answer.violations == 1 else "violate"
        violating = f"{answer.violations:,} of {plural(pairs, 'pair')} of rows {verb} it"
        paper.line(f"{violating} (g1 {share(answer.error)})", indent=2)
        rows = f"{plural(answer.violating_rows, 'row')} contradict one another"
        least = f"without {plural(answer.rows_to_remove, 'row')} it would hold (g3 {share(answer.g3)})"
        paper.line(f"{rows}; {least}", indent=2)
    _print_turns(paper, answer.turned_by)
    _print_groups(paper, answer)


def _print_standing(paper: Paper, answer: FdExplanation) -> None:
    """Of a dependency that holds: whether it is minimal, and whether a key says as much."""
    if answer.minimal:
        bare = "minimal: without any one of the columns on its left it does not hold"
        paper.line(bare if answer.lhs else "the column is constant", indent=2)
    elif answer.inside:
        paper.line("not minimal: less on the left is enough", indent=2)
        print_dependencies(paper, answer.inside)
    if not answer.inside:
        why = "functional dependencies of the table are not tracked"
        if answer.max_lhs is not None:
            why = f"--max-lhs {answer.max_lhs} keeps dependencies of that many columns"
        paper.line(f"found by a look at the rows: {why}", indent=2)
    if answer.key is not None:
        paper.line(f"it follows from the key {columns_text(answer.key)}", indent=2)


def print_plain_explanation(paper: Paper, answer: Explanation) -> None:
    """Of a class that says no more than whether, since when and why."""
    dependency, since = answer.dependency, "" if answer.since is None else f" since version {answer.since}"
    verdict = ("holds", "green") if answer.holds else ("does not hold", "red")
    subject = (f"{name_text(dependency.table)}: {safe(dependency.name)} ", "bold")
    paper.line(subject, verdict, f"{since}: {safe(answer.reason)} ", (f"(version {answer.version})", "dim"))
    if answer.witnesses:
        print_rows(paper, answer.witnesses, set(dependency.columns), "red", indent=2)


def _print_groups(paper: Paper, answer: FdExplanation) -> None:
    """The rows in violation by their value on the left, the largest groups first."""
    if not answer.groups:
        return
    by = f" by {', '.join(map(name_text, answer.lhs))}" if answer.lhs else ""
    paper.line(f"rows in violation{by}:", indent=2)
    for i, group in enumerate(answer.groups):
        paper.line((_group_text(group, answer.rhs), "bold"), indent=4)
        if paper.is_terminal and i >= GROUPS_WITH_ROWS:
            continue
        print_rows(
            paper,
            sorted(group.rows, key=lambda row: row.row_id),
            {*answer.lhs, answer.rhs},
            "red",
            indent=6,
            marked=lambda _, column: column == answer.rhs,
        )
    n_further = answer.violating_rows - sum(group.n_rows for group in answer.groups)
    if n_further > 0:
        paper.line((f"... and {plural(n_further, 'row')} in smaller groups", "dim"), indent=4)


def _group_text(group: ViolatingGroup, rhs: str) -> str:
    """`zip 10115: 7 rows, 2 values of city: Berlin (6), Bern (1)`."""
    value = ", ".join(f"{name_text(c)} {cell(v)}" for c, v in group.lhs.items())
    shown = [f"{cell(v)} ({n:,})" for v, n in group.values[:VALUES_OF_A_GROUP]]
    more = ", ..." if len(group.values) > len(shown) else ""
    values = f"{plural(group.n_values, 'value')} of {name_text(rhs)}: {', '.join(shown)}{more}"
    return f"{value or 'all rows'}: {plural(group.n_rows, 'row')}, {values}"


def _print_turns(paper: Paper, changes: Iterable[ChangeRow]) -> None:
    from holdfast.core.store.ledger_rows import change_dict

    # Whatever they mean: somebody has asked for them.
    turns = [{name: v for name, v in change_dict(change).items() if name != "role"} for change in changes]
    print_events(paper, turns, limit=TURNS_SHOWN)


def _turn(turned: CommitRow | None, tracked: str) -> str:
    """What made it so."""
    if turned is None:
        return f"when {tracked} tracked"
    batch = f" of batch {safe(repr(turned.batch_id))}" if turned.batch_id else ""
    when = f" on {turned.at:%Y-%m-%d at %H:%M:%S} UTC" if turned.at else ""
    return f"by the {turned.action}{batch}{when}"
