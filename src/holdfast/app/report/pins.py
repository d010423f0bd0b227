"""What somebody relies on: whether it holds, and the pairs of rows against a rule."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.app.report.paper import Paper, Part
from holdfast.app.report.rows import print_pairs, print_rows
from holdfast.app.report.texts import columns_text, meaning, name_text, pin_text
from holdfast.core.words.change import Pin
from holdfast.errors import plural

# In the report of a batch, of each rule.
PAIRS_IN_A_REPORT = 2


def violations_text(n: int) -> str:
    """
    >>> violations_text(1), violations_text(1200)
    ('1 ordered pair of rows violates it', '1,200 ordered pairs of rows violate it')
    """
    return f"{n:,} ordered pair{'' if n == 1 else 's'} of rows violate{'s' if n == 1 else ''} it"


def print_pinned(paper: Paper, pin: Pin, *, version: int, removed: bool) -> None:
    """What `pin` did."""
    if pin.kind != "ucc":
        what = pin_text(pin, with_table=True)
    else:
        what = f"{name_text(pin.table)} {columns_text(pin.columns)}"
    if removed:
        paper.line(f"{what} is no longer pinned (version {version})")
        return
    paper.line(f"pinned {what}: ", _state(pin, would=False), f" (version {version})")
    _print_reasons(paper, pin, indent=2, limit=len(pin.witnesses))


def print_pin(
    paper: Paper, pin: Pin, *, would: bool = False, with_table: bool = False, indent: int = 2
) -> None:
    """A line for what is pinned; of a rule that does not hold also how many pairs of rows are against it."""
    paper.line(f"pinned {pin_text(pin, with_table=with_table)}: ", _state(pin, would=would), indent=indent)
    if not pin.holds:
        _print_reasons(paper, pin, indent=indent + 2, limit=PAIRS_IN_A_REPORT)


def print_pins(paper: Paper, pins: Sequence[Pin], *, indent: int = 2) -> None:
    for pin in pins:
        print_pin(paper, pin, indent=indent)


def _state(pin: Pin, *, would: bool) -> Part:
    if pin.holds:
        return ("would hold" if would else "holds", "green")
    return ("WOULD NOT HOLD" if would else "DOES NOT HOLD", "bold red")


def _print_reasons(paper: Paper, pin: Pin, *, indent: int, limit: int) -> None:
    """Of a rule: what it says, how many pairs of rows, or rows, violate it, and some of them."""
    if pin.condition is not None and not pin.holds:
        rows = [row for group in pin.witnesses[:limit] for row in group]
        verb = "violates" if pin.n_violations == 1 else "violate"
        such = ", such as:" if rows else ""
        paper.line(f"{plural(pin.n_violations, 'row')} {verb} it{such}", indent=indent)
        if rows:
            print_rows(paper, rows, set(pin.columns), "red", indent=indent + 2)
    if pin.rule is None:
        return
    paper.line(meaning(pin.rule), indent=indent)
    if pin.holds:
        return
    pairs = [(t, s) for t, s in pin.witnesses[:limit]]
    paper.line(f"{violations_text(pin.n_violations)}{', such as:' if pairs else ''}", indent=indent)
    print_pairs(paper, pairs, pin.rule, "red", indent=indent + 2)
