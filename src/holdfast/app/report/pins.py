"""What somebody relies on: whether it holds, on which terms, and the rows against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.app.report.muted import muted_text
from holdfast.app.report.paper import Paper, Part
from holdfast.app.report.rows import print_pairs, print_rows
from holdfast.app.report.texts import meaning, pin_text, safe, share
from holdfast.core.words.change import Pin, pairs_text
from holdfast.core.words.reliance import Muted
from holdfast.errors import plural

if TYPE_CHECKING:
    from holdfast.pinning import PinChange

# In the report of a batch, of each rule.
PAIRS_IN_A_REPORT = 2
# A list shows this many pins of which nothing is to be said but that they hold.
HOLDING_IN_A_LIST = 20


def violations_text(n: int) -> str:
    """
    >>> violations_text(1), violations_text(1200)
    ('1 ordered pair of rows violates it', '1,200 ordered pairs of rows violate it')
    """
    return f"{pairs_text(n)} violate{'s' if n == 1 else ''} it"


def print_pinned(
    paper: Paper, pin: Pin, *, version: int, removed: bool, unmuted: Sequence[Muted] = ()
) -> None:
    """What `pin` did."""
    what = pin_text(pin, with_table=True)
    if removed:
        paper.line(f"{what} is no longer pinned (version {version})")
        return
    paper.line(f"pinned {what}{terms_text(pin)}: ", _state(pin, would=False), f" (version {version})")
    _print_reasons(paper, pin, indent=2, limit=len(pin.witnesses))
    print_unmuted(paper, unmuted)


def print_pin_change(
    paper: Paper,
    change: PinChange,
    *,
    dry_run: bool = False,
    reasons: Mapping[tuple[str, str], str] | None = None,
) -> None:
    """What a change of many pins did, or would do; `reasons` say by table and name why one was suggested."""
    for pin in change.pinned:
        print_pin(paper, pin, with_table=True, indent=0, done="would pin" if dry_run else "pinned")
        if reason := (reasons or {}).get((pin.table, str(pin))):
            paper.line((reason, "dim"), indent=2)
    for pin in change.removed:
        paper.line(
            f"{'would no longer be' if dry_run else 'no longer'} pinned: {pin_text(pin, with_table=True)}"
        )
    for pin in change.left_out:
        paper.line(("left out, as it does not hold: ", "yellow"), pin_text(pin, with_table=True))
    print_unmuted(paper, change.unmuted)
    counts = [f"{len(change.pinned):,} pinned", f"{len(change.unchanged):,} as before"]
    counts += [f"{len(pins):,} {what}" for pins, what in _few(change) if pins]
    done = "nothing applied" if dry_run else f"version {change.version}"
    paper.line(f"{'would be: ' if dry_run else ''}{', '.join(counts)} ({done})")


def print_unmuted(paper: Paper, muted: Sequence[Muted]) -> None:
    """What was muted, and is pinned now."""
    for each in muted:
        paper.line((f"it was muted, and is no longer: {muted_text(each)}", "yellow"), indent=2)


def _few(change: PinChange) -> list[tuple[Sequence[Pin], str]]:
    return [(change.removed, "no longer pinned"), (change.left_out, "left out")]


def print_all_pins(paper: Paper, pins: Sequence[Pin], *, version: int, everything: bool = False) -> None:
    """What is pinned in a workspace."""
    broken = sum(not pin.holds for pin in pins)
    if len(pins) == 1:
        state = "it does not hold" if broken else "it holds"
    else:
        state = (
            f"{broken:,} of them do{'es' if broken == 1 else ''} not hold" if broken else "all of them hold"
        )
    head = f"{plural(len(pins), 'pin')}: {state}" if pins else "nothing is pinned"
    paper.line(f"{head} (version {version})")
    print_pins(paper, pins, everything=everything, with_table=True)


def print_pin(
    paper: Paper,
    pin: Pin,
    *,
    would: bool = False,
    with_table: bool = False,
    indent: int = 2,
    done: str = "pinned",
) -> None:
    """A line for what is pinned; of what does not hold, or has a tolerance, also how much is against it."""
    text = f"{done} {pin_text(pin, with_table=with_table)}{terms_text(pin)}: "
    paper.line(text, _state(pin, would=would), indent=indent)
    if not pin.holds:
        _print_reasons(paper, pin, indent=indent + 2, limit=PAIRS_IN_A_REPORT)
    else:
        _print_count(paper, pin, indent=indent + 2)


def print_pins(
    paper: Paper,
    pins: Sequence[Pin],
    *,
    most: int = HOLDING_IN_A_LIST,
    everything: bool = False,
    would: bool = False,
    with_table: bool = False,
) -> None:
    """Pins in order; of those of which nothing is to be said but that they hold, `most` unless all of them
    are asked for, and how many more there are."""
    ordered = sorted(pins, key=Pin.place)
    n_telling = sum(not pin.holds or bool(pin.n_violations) for pin in pins)
    shown = ordered if everything else ordered[: n_telling + most]
    for pin in shown:
        print_pin(paper, pin, would=would, with_table=with_table)
    n = len(ordered) - len(shown)
    if n:
        holds = "would hold" if would else "holds" if n == 1 else "hold"
        more = "more " if len(shown) > n_telling else ""
        where = "; all with --all" if most else ""
        text = f"{'and ' if shown else ''}{n:,} {more}pin{'' if n == 1 else 's'} {holds}{where}"
        paper.line((text, "green"), indent=2)


def terms_text(pin: Pin) -> str:
    """The terms of a pin; nothing of those that are usual.

    >>> from holdfast.core.words.reliance import Terms
    >>> terms_text(Pin("t", ("a",), True, terms=Terms("0.1%", "warning", "of old", "ann")))
    ' (at most 0.1%, warning, owner ann, reason: of old)'
    """
    terms = pin.terms
    texts = [f"at most {terms.at_most}"] if terms.at_most else []
    texts += [terms.severity] if terms.severity != "error" else []
    texts += [f"owner {safe(terms.owner)}"] if terms.owner else []
    texts += [f"reason: {safe(terms.reason)}"] if terms.reason else []
    return f" ({', '.join(texts)})" if texts else ""


def _state(pin: Pin, *, would: bool) -> Part:
    if pin.holds:
        within = " within it" if pin.n_violations else ""
        return (f"would hold{within}" if would else f"holds{within}", "green")
    text = "WOULD NOT HOLD" if would else "DOES NOT HOLD"
    return (text, "bold red") if pin.severity == "error" else (text.lower(), "yellow")


def _print_count(paper: Paper, pin: Pin, *, indent: int) -> None:
    """How much is against what holds within its tolerance, or against a key or an inclusion that does not."""
    if pin.n_violations:
        paper.line(f"{against_text(pin)}{_of_all(pin)}", indent=indent)


def against_text(pin: Pin) -> str:
    """What is against a pin, in words.

    >>> against_text(Pin("t", ("a",), False, n_violations=1))
    '1 row repeats another one'
    """
    n = pin.n_violations or 0
    match pin.kind:
        case "dc" | "fd":
            return violations_text(n)
        case "ind":
            return f"{plural(n, 'row')} ha{'s a value that is' if n == 1 else 've values that are'} missing"
        case "ucc":
            return f"{plural(n, 'row')} repeat{'s' if n == 1 else ''} another one"
        case _:
            return f"{plural(n, 'row')} violate{'s' if n == 1 else ''} it"


def _of_all(pin: Pin) -> str:
    return f" ({share(100 * pin.error)}%)" if pin.error and pin.terms.at_most else ""


def _print_reasons(paper: Paper, pin: Pin, *, indent: int, limit: int) -> None:
    """Of a rule: what it says, how many pairs of rows, or rows, violate it, and some of them."""
    if pin.rule is not None:
        paper.line(meaning(pin.rule), indent=indent)
    shown = pin.witnesses[:limit]
    if not pin.n_violations:
        return
    paper.line(f"{against_text(pin)}{_of_all(pin)}{', such as:' if shown else ''}", indent=indent)
    if pin.rule is not None:
        print_pairs(paper, [(t, s) for t, s in shown], pin.rule, "red", indent=indent + 2)
    elif shown:
        rows = [row for group in shown for row in group]
        print_rows(paper, rows, set(pin.columns), "red", indent=indent + 2)
