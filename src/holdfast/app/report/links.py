"""Foreign-key candidates, ranked, with what speaks for and against them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.app.report.paper import Paper
from holdfast.app.report.texts import safe, share, side_text
from holdfast.errors import plural

if TYPE_CHECKING:
    from holdfast.inclusions.links.scored import Link, Linkage

REASONS_SHOWN = 3
REASONS_OF_UNCHOSEN = 1
TELLING = 0.25  # points below which a reason is hardly one


def print_links(
    paper: Paper, linkage: Linkage, *, version: int | None, reasons: bool = False, everything: bool = False
) -> None:
    """The proposed foreign keys, best first; how many candidates were left out, or (`everything`) which."""
    chosen = [link for link in linkage.links if link.chosen]
    unchosen = [link for link in linkage.links if not link.chosen]
    among = f" among {plural(len(linkage.links), 'candidate')}"
    paper.heading(plural(len(chosen), "foreign key"), among, version)
    for link in chosen:
        _print_link(paper, link, "green", None if reasons else REASONS_SHOWN)
    if unchosen and not everything:
        paper.line((f"left out: {plural(len(unchosen), 'candidate')}; see why with --all", "dim"))
    elif unchosen:
        paper.line(("left out:", "bold"))
        for link in unchosen:
            _print_link(paper, link, "yellow", None if reasons else REASONS_OF_UNCHOSEN)


def _print_link(paper: Paper, link: Link, style: str, limit: int | None) -> None:
    name = f"{side_text(link.dependent)} -> {side_text(link.referenced)}"
    missing = ""
    if link.missing_values:
        missing = f"  misses {plural(link.missing_values, 'value')} (error {share(link.error)})"
    if not link.proved:
        missing = "  unproved: by name, the column has no value"
    paper.item((f"{link.score:.2f}", "bold"), (name, style), missing, indent=2)
    for points, text in _shown(link, limit):
        paper.item((f"{points:+.1f}", "dim"), safe(text), indent=8)


def _shown(link: Link, limit: int | None) -> Sequence[tuple[float, str]]:
    """The reasons that weigh most; of a candidate that was not chosen, those against it."""
    reasons = sorted(link.reasons, key=lambda r: -abs(r.points))
    if limit is not None:
        reasons = [r for r in reasons if r.name != "prior"]  # it is the same for all
        reasons = [r for r in reasons if (link.chosen and r.points >= TELLING) or r.points <= -TELLING]
    return [(r.points, r.text) for r in reasons[:limit]]
