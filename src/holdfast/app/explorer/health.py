"""How well a table keeps what people rely on: four words, and why.

- *broken*: a pin of severity error does not hold, or a foreign key that held has orphans now.
- *drifting*: a pin of severity warning does not hold; or a pin holds only within its tolerance; or something
  strong (a foreign key, a primary key, or what had held for long and has a score) broke within the newest
  LATELY versions, and does not hold again.
- *hold*: neither.
- *unwatched*: neither, but nothing is pinned, and nothing was ever found to hold: so nothing could break.

A foreign key that is pinned is judged as a pin, by its terms. Of tables without pins only what `broken.py`
says is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from holdfast.app.explorer.broken import Incident
from holdfast.app.report.texts import dependency_text, pin_text
from holdfast.core.rows.table_state import TableState
from holdfast.core.store.ledger_rows import SHARED
from holdfast.core.words.asking import ask_of
from holdfast.core.words.change import Pin
from holdfast.core.words.ranks import Role
from holdfast.inclusions.generator import GeneratorState

if TYPE_CHECKING:
    from holdfast.workspace import Workspace

Word = Literal["broken", "drifting", "hold", "unwatched"]
WORDS: tuple[Word, ...] = ("broken", "drifting", "hold", "unwatched")  # the worst first
LATELY = 100
# Versions of the workspace that are looked back through for when a pin broke, by and by.
STRIDES = (16, 64, 256, 1024)

PinName = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a table is not as it should be: what does not hold, since when."""

    word: Word
    role: Role
    why: str
    kind: str
    text: str  # of the dependency, as the command line writes it
    ask: str
    since: int | None = None  # a version
    at_least: bool = False  # it is that old, or older

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in Reason.__slots__}


@dataclass
class PinSpells:
    """Since when broken pins do not hold. What is known of one version is not looked for at the next."""

    _since: dict[PinName, tuple[int, bool, int]] = field(default_factory=dict)  # since, at least, looked at

    def since(self, ws: Workspace, pin: Pin, at: int) -> tuple[int, bool]:
        """(version, whether it may be longer): the first version of the spell in which a pin does not hold.

        Cost: the states of its table, newest first, back to the last in which it held, or was not pinned.
        """
        name = name_of(pin)
        known = self._since.get(name)
        until = known[2] + 1 if known is not None else 1
        since, last, at_least = at, at, True
        seen = False  # whether its table was written to in the versions looked at
        for stride in STRIDES:
            first = max(until, last - stride + 1)
            turned, oldest = self._turned(ws, pin, first, last)
            seen = seen or oldest is not None
            since, last = oldest or since, first - 1
            if turned:
                at_least = False
                break
            if last < until:
                if known is not None:
                    since, at_least = known[:2]
                break
        else:
            since = since if seen else last + 1
        self._since[name] = since, at_least, at
        return since, at_least

    def _turned(self, ws: Workspace, pin: Pin, first: int, last: int) -> tuple[bool, int | None]:
        """(turned, oldest): whether there is a version in a range at which it held or was not there, and the
        oldest one after the last such at which its table was written to."""
        slot = pin.table if pin.referenced is None else SHARED
        oldest = None
        for commit in reversed(list(ws.ledger.states(slot, first, last))):
            pins = [p for p in pins_in(ws, slot, commit.state) if name_of(p) == name_of(pin)]
            if not pins or pins[0].holds:
                return True, oldest
            oldest = commit.version
        return False, oldest

    def forget(self, holding: Iterable[Pin]) -> None:
        """These hold: if they break again, that is another spell."""
        for pin in holding:
            self._since.pop(name_of(pin), None)


def name_of(pin: Pin) -> PinName:
    return pin.table, pin.kind, str(pin)


def pins_in(ws: Workspace, slot: str, state: dict[str, Any] | None) -> Sequence[Pin]:
    """The pins that a state has, of a table or of inclusions."""
    if state is None:  # dropped
        return ()
    if slot == SHARED:
        return [pin.pin() for pin in GeneratorState.from_dict(state).pins]
    table = TableState.from_dict(state)
    return [*ws.keys.pins(table), *ws.dcs.pins(table), *ws.checks.pins(table)]


def pin_reasons(ws: Workspace, pins: Iterable[Pin], spells: PinSpells, at: int) -> dict[str, list[Reason]]:
    """What is wrong with pins, by table."""
    reasons: dict[str, list[Reason]] = {}
    for pin in pins:
        if pin.holds and not pin.n_violations:
            continue
        about: Any = {"kind": pin.kind, "text": pin_text(pin), "ask": ask_of(pin.dependency)}
        against = f" ({pin.counted})" if pin.counted else ""
        if pin.holds:
            most = pin.terms.at_most
            reason = Reason(
                "drifting", "pinned", f"pinned: holds within its tolerance of {most}{against}", **about
            )
        elif pin.severity == "info":
            continue
        else:
            word: Word = "broken" if pin.severity == "error" else "drifting"
            since, at_least = spells.since(ws, pin, at)
            severity = "" if word == "broken" else " (warning)"
            why = f"pinned{severity}: does not hold{against}"
            reason = Reason(word, "pinned", why, **about, since=since, at_least=at_least)
        reasons.setdefault(pin.table, []).append(reason)
    spells.forget(p for p in pins if p.holds)
    return reasons


def incident_reasons(incidents: Iterable[Incident], at: int) -> dict[str, list[Reason]]:
    """What is wrong beside pins, by table."""
    reasons: dict[str, list[Reason]] = {}
    for incident in incidents:
        role, dependency = incident.rank.role, incident.dependency
        if incident.again is not None or not incident.strong or role == "pinned":
            continue
        if role == "foreign key":
            word: Word = "broken"
        elif incident.version > at - LATELY:
            word = "drifting"
        else:
            continue
        why = (
            f"{role}: {incident.reason}" if role != "dependency" else f"had held for long: {incident.reason}"
        )
        reason = Reason(
            word,
            role,
            why.strip().removesuffix(":"),
            dependency.kind,
            dependency_text(dependency.to_dict(), with_table=False),
            ask_of(dependency),
            incident.version,
        )
        reasons.setdefault(dependency.table, []).append(reason)
    return reasons


def word_of(reasons: Iterable[Reason], *, is_watched: bool) -> Word:
    """The worst of them; without any, whether something could have broken."""
    default: Word = "hold" if is_watched else "unwatched"
    return min((reason.word for reason in reasons), key=WORDS.index, default=default)
