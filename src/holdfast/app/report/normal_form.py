"""A decomposition into normal form: the proposed tables, what is lost, the reasoning, what was set aside."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from holdfast.app.report.paper import Paper
from holdfast.app.report.texts import columns_text, fd_text, name_text, safe
from holdfast.errors import plural

if TYPE_CHECKING:
    from holdfast.functional.normal_forms.proposal import Decomposition, Part, SetAside, Why

# On a terminal, and off `--all`; a pipe shows all.
KEYS_SHOWN = 3
LOST_SHOWN = 10
ASIDE_SHOWN = 10

WHY: dict[Why, str] = {
    "constant": "of a constant column",
    "nulls": "with NULL on the left",
    "wide": "with a wide left-hand side",
    "unranked": "without a score",
    "weak": "with a low score",
}


def print_normal_form(
    paper: Paper, proposed: Decomposition, *, version: int, everything: bool = False
) -> None:
    """The proposed tables, the main one first; then how they came about."""
    form = proposed.form.upper()
    respect = "" if proposed.complete else ", with respect to the FDs used"
    tables = plural(len(proposed.parts), "table") if proposed.splits else "one table, as it is,"
    paper.line(
        (name_text(proposed.table), "bold"),
        ": ",
        (tables, "bold"),
        f" in {form}{respect} ",
        (f"(version {version})", "dim"),
    )
    everything = everything or not paper.is_terminal
    for part in proposed.parts:
        _print_part(paper, part, everything)
    if proposed.has_duplicates:
        note = f"{name_text(proposed.table)} has equal rows, so it has no key: the tables hold each row once"
        paper.line((note, "yellow"), indent=2)
    _print_lost(paper, proposed, everything)
    paper.line(("reasoning:", "bold"))
    for i, step in enumerate(proposed.steps, 1):
        paper.item((f"{i:>2}.", "dim"), safe(step), indent=2)
    _print_aside(paper, proposed.set_aside, everything)


def _print_part(paper: Paper, part: Part, everything: bool) -> None:
    paper.line((name_text(part.name), "green"), columns_text(part.columns), indent=2)
    key = columns_text(part.primary_key) if part.primary_key else "none needed: there is at most one row"
    limit = len(part.other_keys) if everything else KEYS_SHOWN
    keys = [columns_text(k) for k in part.other_keys[:limit]]
    if part.more_keys or len(part.other_keys) > limit:
        keys.append("...")
    paper.item(("key", "dim"), key, f"; also {', '.join(keys)}" if keys else "", indent=6)
    for reference in part.references:
        text = f"{columns_text(reference.columns)} to {name_text(reference.table)}"
        paper.item(("refers", "dim"), text, indent=6)
    score = "" if part.score is None else f" (score {part.score:.2f})"
    paper.item(("why", "dim"), safe(part.reason), score, indent=6)


def _print_lost(paper: Paper, proposed: Decomposition, everything: bool) -> None:
    lost = [fd_text(fd.lhs, fd.rhs) for fd in proposed.lost]
    lost += [f"the key {columns_text(key)}" for key in proposed.lost_keys]
    if not lost:
        return
    paper.line(("not guarded by any of the tables:", "bold yellow"), indent=2)
    shown = lost if everything else lost[:LOST_SHOWN]
    for text in shown:
        paper.line((text, "yellow"), indent=4)
    paper.more(len(lost) - len(shown), "; all with --json or in a pipe", indent=4)


def _print_aside(paper: Paper, set_aside: tuple[SetAside, ...], everything: bool) -> None:
    if not set_aside:
        return
    counts = Counter(aside.why for aside in set_aside)
    reasons = ", ".join(f"{counts[why]:,} {text}" for why, text in WHY.items() if counts[why])
    usable = "; --all uses them" if len(set_aside) > counts["nulls"] else ""
    paper.line((f"set aside: {plural(len(set_aside), 'FD')}", "bold"), f" ({reasons}){usable}")
    shown = set_aside if everything else set_aside[:ASIDE_SHOWN]
    for aside in shown:
        score = "   -" if aside.score is None else f"{aside.score:.2f}"
        paper.item(
            (score, "dim"), (fd_text(aside.fd.lhs, aside.fd.rhs), "yellow"), f"  {safe(aside.text)}", indent=2
        )
    paper.more(len(set_aside) - len(shown), "; all with --json or in a pipe")
