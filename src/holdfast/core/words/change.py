"""What a batch did to the dependencies of tables, and which rows are the reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from holdfast.core.words.condition import Condition
from holdfast.core.words.dependency import Dependency, Fd, Ind, Side, Ucc
from holdfast.core.words.display import Displayed
from holdfast.core.words.notation import arrow_text
from holdfast.core.words.predicate import Dc, as_fd
from holdfast.core.words.ranks import COUNTED, Role
from holdfast.core.words.reliance import SEVERITIES, USUAL, Severity, Terms
from holdfast.errors import NOTHING_APPLIED, HoldfastError, listing, plural, shorten

Event = Literal["appeared", "broke", "implied", "within", "beyond", "dropped"]
ROWS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class WitnessRow:
    """A row that proves something: its id, and its values as they were."""

    row_id: int
    values: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """For programs: the row's name is that which people are shown."""
        return {"row": row_name(self.row_id), "values": dict(self.values)}

    def stored(self) -> dict[str, Any]:
        """For the ledger: the row's id is a number there."""
        return {"row": self.row_id, "values": dict(self.values)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> WitnessRow:
        """Of both forms.

        >>> WitnessRow.from_dict({"row": "1.7", "values": {}}) == WitnessRow((1 << 32) + 7, {})
        True
        """
        row = fields["row"]
        if isinstance(row, str):
            segment, _, position = row.partition(".")
            row = (int(segment) << 32) + int(position)
        return cls(row, fields.get("values", {}))


Pair = tuple[WitnessRow, WitnessRow]


@dataclass(frozen=True, slots=True)
class DependencyChange:
    """A dependency that entered or left the cover.

    - `appeared`: it is minimal now. For a key: duplicates went, or a narrower one broke. For an inclusion:
      the last missing value came, or went.
    - `broke`: it does not hold any more; the witnesses are the rows that broke it: pairs for a key, for an
      inclusion one row for each of the first missing values, which `values` lists.
    - `implied`: it holds still, but a narrower one appeared, so it left the cover.
    - `within`, `beyond`: an approximate one entered or left the minimal ones within the tracked error.
    - `dropped`: it is not looked for any more, since there are too many of its size; it may hold.

    `held` counts the versions through which a dependency that broke had held. `role` and `score` say what it
    means (`ranks.py`): changes are told in the order of that.
    """

    event: Event
    dependency: Dependency
    reason: str
    witnesses: tuple[tuple[WitnessRow, ...], ...] = ()
    values: tuple[Any, ...] = ()
    held: int = 0
    role: Role = "dependency"
    score: float = 0.0
    unpinned: Role | None = None  # of what is pinned: the role that it has by itself

    @property
    def meant(self) -> Role:
        return self.unpinned or self.role

    def to_dict(self) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "change": self.event,
            "dependency": self.dependency.to_dict(),
            "reason": self.reason,
            "witnesses": [[row.to_dict() for row in group] for group in self.witnesses],
            "role": self.role,
            "muted": self.role == "muted",
            "score": round(self.score, 4),
        }
        if self.dependency.kind == "ind":
            fields["values"] = list(self.values)
        if self.held:
            fields["held"] = self.held
        if self.unpinned:
            fields["unpinned"] = self.unpinned
        return fields


@dataclass(frozen=True, slots=True)
class Pin:
    """What somebody relies on, on which terms, and whether it holds: a key, inclusion, rule or condition.

    It holds if no more is against it than its tolerance allows (`reliance.py` says what is counted):
    `n_violations`, which is a share `error` of all that there is; None where nobody has counted, of keys and
    inclusions that an earlier release pinned. The witnesses are a few of the rows, or pairs of rows.
    """

    table: str
    columns: tuple[str, ...]
    holds: bool
    referenced: Side | None = None  # of an inclusion
    rule: Dc | Fd | None = None
    n_violations: int | None = None
    witnesses: tuple[tuple[WitnessRow, ...], ...] = ()
    condition: Condition | None = None
    terms: Terms = USUAL
    error: float | None = None
    arrow: bool = False  # a rule that was written as a functional dependency, and reads back as one

    @property
    def kind(self) -> str:
        if self.condition is not None:
            return "check"
        if self.rule is not None:
            return self.rule.kind
        return "ucc" if self.referenced is None else "ind"

    @property
    def dependency(self) -> Dependency:
        """What is relied on."""
        if self.referenced is not None:
            return Ind(Side(self.table, self.columns), self.referenced)
        return self.rule or self.condition or Ucc(self.table, self.columns)

    @property
    def severity(self) -> Severity:
        return self.terms.severity

    def place(self) -> tuple[int, int]:
        """Where it stands in reports, the smallest first: what does not hold, then what holds only within
        its tolerance, then the others; the gravest first.

        >>> from holdfast.core.words.reliance import Terms
        >>> mild = Pin("t", ("a",), False, terms=Terms(severity="info"))
        >>> near = Pin("t", ("b",), True, n_violations=1, terms=Terms("5"))
        >>> pins = [Pin("t", ("c",), True), near, mild, Pin("t", ("d",), False)]
        >>> [str(pin) for pin in sorted(pins, key=Pin.place)]
        ['[d]', '[a]', '[b]', '[c]']
        """
        state = 0 if not self.holds else 1 if self.n_violations else 2
        return state, SEVERITIES.index(self.severity)

    @property
    def counted(self) -> str:
        """What is against it, in words: `3 rows`, `1 ordered pair of rows`; "" where nobody counts, or where
        no row is against what does not hold, as its column has no value."""
        if self.n_violations is None or not (self.holds or self.n_violations):
            return ""
        return plural(self.n_violations, "row") if self.rule is None else pairs_text(self.n_violations)

    def __str__(self) -> str:
        """The dependency, without its table where that is clear.

        >>> str(Pin("t", ("a", "b"), True)), str(Pin("t", ("a",), True, Side("u", ("b",))))
        ('[a, b]', 't[a] in u[b]')
        """
        if self.condition is not None:
            return self.condition.formula
        if isinstance(self.rule, Fd):
            return arrow_text(self.rule.lhs, self.rule.rhs)
        if self.rule is not None:
            fd = as_fd(self.rule) if self.arrow else None
            return self.rule.formula if fd is None else arrow_text(*fd)
        columns = f"[{', '.join(self.columns)}]"
        return columns if self.referenced is None else f"{self.table}{columns} in {self.referenced}"

    def to_dict(self) -> dict[str, Any]:
        fields = {"kind": self.kind, "table": self.table, "columns": list(self.columns), "holds": self.holds}
        fields |= {"at_most": self.terms.at_most or None, "severity": self.severity}
        fields |= {"reason": self.terms.reason or None, "owner": self.terms.owner or None}
        if self.n_violations is not None:
            fields |= {"n_violations": self.n_violations, "error": self.error}
            fields["witnesses"] = [[row.to_dict() for row in group] for group in self.witnesses]
        written = self.condition if self.rule is None else self.rule
        if written is not None:
            formula = str(self) if isinstance(written, Fd) else written.formula
            return {**fields, "rule": written.to_dict(), "formula": formula}
        return fields if self.referenced is None else {**fields, "referenced": self.referenced.to_dict()}


def pairs_text(n: int) -> str:
    """
    >>> pairs_text(1), pairs_text(1200)
    ('1 ordered pair of rows', '1,200 ordered pairs of rows')
    """
    return f"{plural(n, 'ordered pair')} of rows"


# What programs are told of classes that a table is not tracked for.
ABSENT: Mapping[str, Any] = {
    "n_keys": None,
    "max_columns": None,
    "n_fds": None,
    "max_lhs": None,
    "evidence": None,
    "max_error": None,
    "n_dcs": None,
    "max_predicates": None,
    "dc_evidence": None,
    "n_predicates": 0,
    "n_row_rules": None,
    "n_column_rules": None,
    "n_columns_with_nulls": None,
}


@dataclass(frozen=True, slots=True)
class Summary:
    """How many dependencies of a kind there are, in words and for programs."""

    kind: str
    n: int
    text: str  # "3 minimal keys"
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TableChange:
    """What a batch did to one table, and what there is after it."""

    table: str
    n_inserted: int
    n_deleted: int
    n_rows: int
    kept: tuple[Summary, ...] = ()  # of the classes that it is tracked for
    unlisted: int = 0  # changes of one sort that are too many to list
    longest: int = 0  # versions through which one that broke had held at most; of a check, listed or not
    n_updated: int = 0  # of those inserted and deleted: the same row with other values
    n_unchanged: int | None = None  # rows of a snapshot, or of upserts, that were there as they are

    def n(self, kind: str) -> int | None:
        """How many dependencies of a kind there are; None where they are not tracked."""
        return next((summary.n for summary in self.kept if summary.kind == kind), None)

    @property
    def fields(self) -> dict[str, Any]:
        """What programs are told of the classes."""
        fields = dict(ABSENT)
        for summary in self.kept:
            fields |= {name: v for name, v in summary.fields.items() if v is not None or name not in fields}
        return fields

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "n_inserted": self.n_inserted,
            "n_deleted": self.n_deleted,
            "n_updated": self.n_updated,
            "n_unchanged": self.n_unchanged,
            "n_rows": self.n_rows,
            **self.fields,
            "unlisted": self.unlisted,
            "longest_held": self.longest,
        }


@dataclass(frozen=True, slots=True, repr=False)
class Change(Displayed):
    """The net change of one batch (or of tracking tables): one version of the workspace."""

    action: str  # "track", "apply", "check"
    version: int  # of the workspace, after; for a check, the version it was checked against
    tables: tuple[TableChange, ...]  # one, unless a batch concerns several tables
    changes: tuple[DependencyChange, ...]
    elapsed_s: float
    batch_id: str | None = None
    repeated: bool = False  # the batch id was applied before: nothing was done
    pins: tuple[Pin, ...] = ()  # of the tables, in the order of `Pin.place`
    n_inds: int | None = None  # in the workspace; None: none of the tables takes part in inclusions
    accesses: Mapping[str, int] = field(default_factory=dict)  # of the generator: what was read and written
    notes: tuple[str, ...] = ()  # how sources were understood; what a search with a bound left unknown

    @property
    def table(self) -> str:
        """The table, or the tables with commas between."""
        return ", ".join(t.table for t in self.tables)

    @property
    def n_inserted(self) -> int:
        return sum(t.n_inserted for t in self.tables)

    @property
    def n_deleted(self) -> int:
        return sum(t.n_deleted for t in self.tables)

    @property
    def n_rows(self) -> int:
        return sum(t.n_rows for t in self.tables)

    @property
    def broke(self) -> list[DependencyChange]:
        return [c for c in self.changes if c.event == "broke"]

    @property
    def appeared(self) -> list[DependencyChange]:
        return [c for c in self.changes if c.event == "appeared"]

    @property
    def broken_pins(self) -> list[Pin]:
        """Those that do not hold, the gravest first."""
        return sorted((p for p in self.pins if not p.holds), key=Pin.place)

    def failing(self, fail_on: Severity = "error") -> list[Pin]:
        """The broken pins of a severity, and of graver ones: what a gate is closed by."""
        worst = SEVERITIES.index(fail_on)
        return [p for p in self.broken_pins if SEVERITIES.index(p.severity) <= worst]

    def to_dict(self) -> dict[str, Any]:
        one = self.tables[0].to_dict() if len(self.tables) == 1 else {}
        return {
            **one,
            "tables": [t.to_dict() for t in self.tables],
            "action": self.action,
            "version": self.version,
            "batch_id": self.batch_id,
            "repeated": self.repeated,
            "n_inds": self.n_inds,
            "elapsed_s": round(self.elapsed_s, 4),
            "changes": [c.to_dict() for c in self.changes],
            "pins": [p.to_dict() for p in self.pins],
            "accesses": dict(self.accesses),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        events = f"{len(self.broke):,} broke, {len(self.appeared):,} appeared"
        return f"<Change: {'; '.join(self.headlines())}; {events}>"

    def lines(self, limit: int = 10) -> Iterator[str]:
        """The change in words; at most `limit` changes of each sort, and those that look like chance only if
        there are no others of it."""
        if self.repeated:
            before = f"was applied before, as version {self.version}; nothing was done"
            yield f"{self.table}: batch {self.batch_id!r} {before}"
            return
        yield from self.headlines()
        notes = [f"  {text}" for text in self.notes]
        for pin in self.broken_pins:
            n = f" ({pin.counted})" if pin.counted else ""
            severity = "" if pin.severity == "error" else f" ({pin.severity})"
            yield f"  PINNED{severity}, does not hold: {pin}{n}"
            for pair in pin.witnesses[:1]:
                for row in pair:
                    yield f"      {row_text(row, pin.columns)}"
        if self.action == "track":
            yield from notes
            return
        for title, changes in (
            ("would break" if self.action == "check" else "broke", self.broke),
            ("would appear" if self.action == "check" else "appeared", self.appeared),
            ("implied by a narrower one", [c for c in self.changes if c.event == "implied"]),
            ("within the error now", [c for c in self.changes if c.event == "within"]),
            ("beyond the error now", [c for c in self.changes if c.event == "beyond"]),
            ("no longer listed", [c for c in self.changes if c.event == "dropped"]),
        ):
            yield from _described(title, changes, limit)
        unlisted = sum(t.unlisted for t in self.tables)
        if unlisted:
            yield f"  ... and {unlisted:,} more changes"
        if not self.changes:
            yield "  nothing changed: the same dependencies hold"
        yield from notes

    def headlines(self) -> Iterator[str]:
        """A line for each table; the last one says the version, the inclusions and the time."""
        for i, part in enumerate(self.tables):
            yield self._headline(part, last=i == len(self.tables) - 1)

    def _headline(self, part: TableChange, *, last: bool) -> str:
        counted = [f"{part.n_rows:,} row{'' if part.n_rows == 1 else 's'}"]
        counted += [summary.text for summary in part.kept]
        if last and self.n_inds is not None:
            counted.append(f"{self.n_inds:,} inclusion{'' if self.n_inds == 1 else 's'} in the workspace")
        now = ", ".join(counted)
        what = f"+{part.n_inserted:,} -{part.n_deleted:,} rows"
        if part.n_unchanged is not None:
            new, gone = part.n_inserted - part.n_updated, part.n_deleted - part.n_updated
            what += f" ({new:,} inserted, {gone:,} deleted, {part.n_updated:,} updated, "
            what += f"{part.n_unchanged:,} left as they were)"
        if self.action == "check":
            end = f" ({self.elapsed_s:.2f} s; nothing applied)" if last else ""
            return f"{part.table}: {what} would leave {now}{end}"
        end = f" (version {self.version}, {self.elapsed_s:.2f} s)" if last else ""
        if self.action == "track":
            return f"{part.table}: {now}{end}"
        return f"{part.table}: {what}, now {now}{end}"


def _described(title: str, changes: Sequence[DependencyChange], limit: int) -> Iterator[str]:
    listed = [c for c in changes if c.role != "muted"]
    meant = [c for c in listed if c.role not in COUNTED] or listed
    for change in meant[:limit]:
        dependency = change.dependency
        reason = introducing(change.reason, change.event, dependency.kind, shown=bool(change.witnesses))
        yield f"  {title}: {dependency.name} {reason}"
        for group in change.witnesses[:1]:
            for row in group:
                yield f"      {row_text(row, dependency.columns)}"
    for n, what in ((len(listed) - len(meant[:limit]), "more"), (len(changes) - len(listed), "muted")):
        if n:
            yield f"  ... and {n:,} {what} {title}"


class GateError(HoldfastError):
    """Something pinned would not hold after a batch, so nothing was applied; `change` is what the batch would
    have changed, as `check` tells it."""

    def __init__(self, message: str, change: Change) -> None:
        super().__init__(message)
        self.change = change


def pass_gate(change: Change, fail_on: Severity) -> None:
    """A GateError if a pin of a severity, or of a graver one, would not hold after a change."""
    failing = change.failing(fail_on)
    if failing:
        which = listing([f"{pin} of table {pin.table!r}" for pin in failing], 3)
        raise GateError(
            f"{plural(len(failing), 'pin')} of severity {fail_on} or graver would not hold: {which}. "
            f"{NOTHING_APPLIED} Mend the batch, or apply it without a gate.",
            change,
        )


def introducing(reason: str, event: str, kind: str, *, shown: bool) -> str:
    """A reason as it stands above the rows that show it; that of an inclusion has their values in it.

    >>> introducing("is no longer unique", "broke", "ucc", shown=True)
    'is no longer unique:'
    """
    if not shown or kind == "ind":
        return reason
    return f"{reason}, such as:" if event == "appeared" else f"{reason}:"


def row_name(row_id: int) -> str:
    """A row id as `segment.position`: which batch brought the row, and its place in it.

    >>> row_name((1 << 32) + 7)
    '1.7'
    """
    segment, place = place_of(row_id)
    return f"{segment}.{place}"


def place_of(row_id: int) -> tuple[int, int]:
    """(number of the segment that a row was first written to, its place there)."""
    return row_id >> 32, row_id & 0xFFFFFFFF


def row_text(row: WitnessRow, first: Sequence[str], limit: int = 8) -> str:
    """A witness as `row 0.17: name='Lee' | phone=345, age=20`: the dependency's columns first."""
    leading = [f"{c}={shorten(row.values.get(c), 40)}" for c in first if c in row.values]
    following = [f"{c}={shorten(v, 24)}" for c, v in row.values.items() if c not in first]
    room = max(0, limit - len(leading))
    shown = following[:room] + (["..."] if len(following) > room else [])
    text = ", ".join(leading) + (" | " if leading and shown else "") + ", ".join(shown)
    name = f"row {row_name(row.row_id)}"
    return f"{name}: {text}" if row.values else name
