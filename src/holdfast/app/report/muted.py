"""What somebody has muted, and why."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.app.report.paper import Paper
from holdfast.app.report.texts import dependency_text, safe
from holdfast.core.words.reliance import Muted


def print_muted(paper: Paper, muted: Muted, *, version: int, removed: bool) -> None:
    """What `mute` did."""
    what = "no longer muted: " if removed else "muted "
    paper.line(f"{what}{muted_text(muted)} (version {version})")


def print_all_muted(paper: Paper, muted: Sequence[Muted], *, version: int) -> None:
    """What is muted in a workspace."""
    head = f"{len(muted):,} muted" if muted else "nothing is muted"
    paper.line(f"{head} (version {version})")
    for each in muted:
        paper.line(muted_text(each), indent=2)


def muted_text(muted: Muted) -> str:
    """
    >>> from holdfast.core.words.dependency import Fd
    >>> muted_text(Muted(Fd("orders", ("zip",), "city"), "few rows"))
    'orders: zip -> city (reason: few rows)'
    """
    text = dependency_text(muted.dependency.to_dict())
    return f"{text} (reason: {safe(muted.reason)})" if muted.reason else text
