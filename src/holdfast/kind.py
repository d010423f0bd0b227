"""The contract of a class of dependencies, and the registry.

A *class* is keys, functional dependencies, denial constraints, row rules: what can hold in one table, how it
is found, how a batch changes it, and how it is told. A class registers itself (`register`); one batch of a
table (`step.py`) and the workspace run over the registry and know none of them by name. So a new class is one
folder and one line.

What a class works out of a table is its *findings*, an immutable value that is exact for the rows it was
computed on. Its files are named by fields of the table's state (`TableState.kept`) that it alone reads. Of a
batch (a `Crossing`) it is told twice: when rows are gone (`shrunk`), and when rows have come (`grown`). All
classes look side by side, and what they ask of Spark in a round is one job; so both are functions of the
findings and the crossing, and look at rows by its relations only. Inclusions are no property of one table:
their class sees the steps of all (`AcrossClass`).
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from holdfast.core.words.change import DependencyChange, Pin, Summary, WitnessRow
from holdfast.core.words.codec import Coded
from holdfast.core.words.dependency import Dependency
from holdfast.core.words.display import SelfExplaining
from holdfast.core.words.reliance import Muted
from holdfast.core.words.sameness import DependencySet
from holdfast.errors import NOTHING_APPLIED, UsageError, listing, shorten

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from holdfast.core.cover.news import News
    from holdfast.core.engine.engine import Engine
    from holdfast.core.rows.encoding import Look
    from holdfast.core.rows.relation import Relation
    from holdfast.core.rows.table_state import OrderKey, SegmentRef, TableState
    from holdfast.core.rows.tables import Tables
    from holdfast.core.rows.writer import Context
    from holdfast.core.store.root import Root

    U64 = NDArray[np.uint64]
    I64 = NDArray[np.int64]

Known = TypeVar("Known")
ELSEWHERE = "HOLDFAST_CLASSES"  # modules that register further classes, by name, with commas between
AS_TRACKED = "holds in the table as tracked"


@dataclass(frozen=True)
class Tracking:
    """A table that is being tracked, as a class is given it to find what holds."""

    context: Context
    state: TableState
    rows: Relation
    options: Any  # as the class made them of what was asked for
    seen: tuple[U64, I64]  # agree sets of sampled rows, and their witnesses

    def looking(self, stage: str) -> Relation:
        """The rows; while they are looked at, that is what goes on."""
        return replace(self.rows, progress=self.context.progress(stage))


@dataclass(frozen=True)
class Crossing:
    """A batch on its way through a table: the rows before it, without what it deletes, and after it."""

    context: Context
    state: TableState  # before
    before: Relation
    remaining: Relation
    after: Relation
    row_ids: I64  # deleted
    added: tuple[SegmentRef, ...]  # inserted, with their indexes
    index_columns: tuple[int, ...] = ()
    deleted: tuple[tuple[SegmentRef, I64], ...] = ()  # the same rows as positions in their segments: see Step
    commit: bool = True  # whether its files are to last

    def by(self, engine: Engine) -> Crossing:
        """The same, looked at by another engine."""
        before, remaining, after = (r.by(engine) for r in (self.before, self.remaining, self.after))
        context = replace(self.context, engine=engine)
        return replace(self, context=context, before=before, remaining=remaining, after=after)


class TableClass(ABC, Generic[Known]):
    """A class of dependencies that each table has by itself. One object, without a state of its own."""

    # -- tracking -----------------------------------------------------------------------------

    def options(self, asked: Mapping[str, Any]) -> Any:
        """What was asked for, checked; `asked` has only what was given, of all options."""
        return None

    def look(self, options: Any) -> Look | None:
        """What to look for in segments while they are encoded; of several, the last class is heard."""
        return None

    @abstractmethod
    def discover(self, tracking: Tracking) -> Known:
        """What holds in a new table."""

    # -- batches ------------------------------------------------------------------------------

    def shrunk(self, known: Known, crossing: Crossing) -> Known:
        """What holds in the remaining rows. Only asked if a batch deletes some."""
        return known

    @abstractmethod
    def grown(self, known: Known, crossing: Crossing) -> Known:
        """What holds after the batch; `known` is what `shrunk` left. Also asked if nothing was inserted."""

    def settled(self, known: Known, crossing: Crossing) -> Known:
        """What is left to do when the cover stands."""
        return known

    def probed(self, known: Known) -> U64 | None:
        """Sets of columns, of each of which one is to be indexed, uint64[n, n_words]; None for none."""
        return None

    def indexes(self, known: Known, rows: Relation) -> tuple[Sequence[int], Sequence[OrderKey]]:
        """Further columns to index, and pairs of them to order."""
        return (), ()

    @abstractmethod
    def news(self, before: Known, after: Known, crossing: Crossing) -> News:
        """What the batch changed, and which rows are the reason."""

    @abstractmethod
    def dependencies(self, known: Known, state: TableState) -> tuple[Sequence[Dependency], int]:
        """(those that hold, how many more): of a table that is being tracked, to be told."""

    def pins(self, known: Known, state: TableState, rows: Relation) -> tuple[Pin, ...]:
        """What of it is pinned, and whether it holds."""
        return ()

    def notes(self, before: Known | None, after: Known, table: str) -> tuple[str, ...]:
        """What is not known any more, in words."""
        return ()

    @abstractmethod
    def summary(self, known: Known, state: TableState, *, tracked: bool) -> Summary | None:
        """How many there are, in words and for programs; None if that is nothing to tell."""

    def keys(
        self, known: Known, state: TableState, widest: int | None = None
    ) -> tuple[tuple[str, ...], ...] | None:
        """The minimal keys, of at most so many columns, if these are what the class is about."""
        return None

    def witnesses(self, known: Known, columns: Sequence[int]) -> tuple[int, int] | None:
        """The ids of two rows that agree on columns, if some are known without a look at the rows."""
        return None

    def stored_keys(self, root: Root, state: TableState) -> tuple[tuple[str, ...], ...] | None:
        """The same of a state."""
        return None

    # -- on disk ------------------------------------------------------------------------------

    @abstractmethod
    def save(self, root: Root, state: TableState, known: Known, before: Known | None) -> Mapping[str, Any]:
        """Write what `before` has not, and the fields of the state that name all of it, as JSON.

        Files that past versions are read from are called `cover`: these are kept for good.
        """

    @abstractmethod
    def load(self, root: Root, state: TableState) -> Known | None:
        """What the state names; None where the class is not tracked."""


@dataclass(frozen=True)
class OtherTables:
    """The tables of the workspace that a batch leaves alone."""

    state: Callable[[str], TableState]
    keys: Callable[[TableState], tuple[tuple[str, ...], ...] | None]  # minimal ones; None where not tracked


@dataclass(frozen=True)
class AcrossStep(Generic[Known]):
    """What holds among tables after a batch, and what it changed."""

    known: Known
    fields: dict[str, Any]  # the state, as JSON
    n: int  # dependencies that hold
    changes: tuple[DependencyChange, ...] = ()
    pins: tuple[Pin, ...] = ()
    accesses: Mapping[str, int] = field(default_factory=dict)  # what was read and written
    notes: tuple[str, ...] = ()  # what is not known, in words


class AcrossClass(ABC, Generic[Known]):
    """A class about several tables: it sees the steps of all, and its state is one more row of the ledger."""

    slot: ClassVar[str]  # the name of that row

    @abstractmethod
    def options(self, asked: Mapping[str, Any]) -> Any:
        """What was asked for, checked."""

    @abstractmethod
    def load(self, root: Root, fields: Mapping[str, Any] | None) -> Known:
        """What the state names; of no state, what a workspace without tables has."""

    def beside(self, known: Known, crossing: Crossing) -> Any:
        """What can be worked out while the classes of a table look at its batch; `take_in` finds it again."""
        return None

    @abstractmethod
    def take_in(
        self,
        context: Context,
        known: Known,
        steps: Sequence[Step],
        others: OtherTables,
        options: Any,
        *,
        commit: bool,
    ) -> AcrossStep[Known]:
        """What holds after the steps of some tables; with options, of tables that are being tracked."""

    @abstractmethod
    def without_table(self, context: Context, known: Known, table: str) -> AcrossStep[Known]:
        """What holds without a table that is dropped."""

    @abstractmethod
    def merged(self, context: Context, known: Known) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """(the state, what the log says) with all its files merged; None where they are."""


@dataclass(frozen=True, slots=True)
class Query:
    """Which dependencies somebody asks for; all of one version."""

    kind: str | None = None  # None: of all kinds
    table: str | None = None
    at: int | None = None
    max_error: float = 0.0  # also what almost holds
    with_empty: bool = False  # inclusions of columns without values, too

    def wants(self, kind: str) -> bool:
        return self.kind in (None, kind)


class ClassReader(Protocol):
    """What a class from elsewhere tells readers of; needs no kernels."""

    def listed(self, state: TableState, max_error: float = 0.0) -> Sequence[Dependency]:
        """What holds in a table."""

    def reads(self, question: str, state: TableState) -> bool:
        """Whether a text asks for one of its dependencies."""

    def explain(self, table: str, question: str) -> Explained:
        """Whether it holds, since when, and why."""


class Explained(Protocol):
    """All about one dependency."""

    def to_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Coded, SelfExplaining):
    """Whether a dependency holds, since when and why: enough for many a class."""

    dependency: Dependency
    version: int
    holds: bool
    since: int | None  # the first version of the spell in which it holds, or does not
    reason: str
    witnesses: tuple[WitnessRow, ...] = ()


# -- the registry ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A line of the registry: enough to know who keeps what, without importing anybody."""

    kind: str
    field: str  # of a table's state: where it is set, the class is tracked
    home: str | TableClass[Any] | AcrossClass[Any]  # the class, or the module that has it as `CLASS`
    nouns: tuple[str, str] = ("", "")  # of one, of several; none where nobody can ask for it
    takes: tuple[str, ...] = ()  # options of `track` that are about it
    brings: tuple[str, ...] = ()  # kinds that go with it
    across: bool = False  # it is about several tables, and the workspace keeps it
    count: str = ""  # what summaries and the log call their number; n_KIND if nothing is said
    implied_by: str = "narrower one"  # what takes the place of one that is not minimal any more
    dependency: Any = None  # the type of its dependencies; their JSON has kind, table and columns
    reader: Callable[[Tables], ClassReader] | None = None  # of a class from elsewhere
    asked_of: str = ""  # of a class that is built in: which of the `Readers` answers for it
    identity: Callable[[Any], tuple[Any, ...]] | None = None  # what it is told of one dependency
    pins: bool = False  # whether its reader knows what of it is pinned

    def counted(self, n: int, which: str = "") -> str:
        """
        >>> entries()["fd"].counted(2500), entries()["ucc"].counted(1, "minimal ")
        ('2,500 functional dependencies', '1 minimal key')
        """
        return f"{n:,} {which}{self.nouns[n != 1]}"

    @cached_property
    def dependency_class(self) -> Any:
        return import_module(self.home).CLASS if isinstance(self.home, str) else self.home


_ENTRIES: dict[str, Entry] = {}


def register(entry: Entry) -> None:
    """From now on tables can be tracked for it. It is told of behind what is built in."""
    import holdfast.kinds  # noqa: F401 - registers what is built in

    _ENTRIES[entry.kind] = entry


def forget(kind: str) -> None:
    """The class of a kind is not there any more: what tables keep for it is left alone."""
    _ENTRIES.pop(kind, None)


def entries() -> Mapping[str, Entry]:
    """The classes by kind, in the order in which they are told of."""
    _bring_in()
    return _ENTRIES


@cache
def _bring_in() -> None:
    """Import those that register classes, once."""
    import holdfast.kinds  # noqa: F401 - registers what is built in

    for module in filter(None, os.environ.get(ELSEWHERE, "").split(",")):
        import_module(module)


def dependency_from(fields: Mapping[str, Any]) -> Dependency:
    """A dependency of any kind from its JSON, as changes of the log have it."""
    dependency: Dependency = entries()[fields["kind"]].dependency.from_dict(fields)
    return dependency


def class_of(kind: str) -> TableClass[Any]:
    cls: TableClass[Any] = entries()[kind].dependency_class
    return cls


def across_of(kinds: Collection[str]) -> dict[str, AcrossClass[Any]]:
    """The classes about several tables, of some kinds."""
    return {k: entry.dependency_class for k, entry in entries().items() if entry.across and k in kinds}


def kinds() -> tuple[str, ...]:
    """What can be asked for; the first of them is what tables are tracked for if nothing is said."""
    return tuple(kind for kind, entry in entries().items() if entry.nouns[0])


def check_kind(kind: str | None) -> None:
    """A kind of dependencies, if one is named."""
    if kind is not None and kind not in kinds():
        raise UsageError(f"dependencies of kind {shorten(kind)} are not known. Kinds: {', '.join(kinds())}.")


def checked_options(kinds: Sequence[str], asked: Mapping[str, Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """(kinds, options by kind): with the kinds that others bring; options about no kind are an error."""
    for kind in kinds:
        check_kind(kind)
    registry = entries()
    for name in asked:
        about = [kind for kind, entry in registry.items() if name in entry.takes]
        if not about:
            taken = sorted({name for entry in registry.values() for name in entry.takes})
            raise UsageError(f"unknown option {shorten(name)}. Options: {', '.join(taken)}.")
        if not {*about} & {*kinds}:
            nouns = " and ".join(registry[kind].nouns[1] for kind in about)
            add = " or ".join(about)
            raise UsageError(
                f"{name} is about {nouns}, but the kinds are {listing(kinds)}. Add the kind {add}."
            )
    kinds = tuple(dict.fromkeys([*kinds, *(more for kind in kinds for more in registry[kind].brings)]))
    return kinds, {kind: e.dependency_class.options(asked) for kind, e in registry.items() if kind in kinds}


def keeping(kind: str, states: Iterable[TableState]) -> list[TableState]:
    """Those of which a class keeps something; for others nobody has to import its reader."""
    return [state for state in states if state.kept.get(entries()[kind].field)]


def kinds_with_state(state: TableState) -> list[str]:
    """The classes that keep something of a table."""
    return [kind for kind, entry in entries().items() if state.kept.get(entry.field) and not entry.across]


def keys_of(root: Root, state: TableState) -> tuple[tuple[str, ...], ...] | None:
    """The minimal keys of a table; None where they are not tracked."""
    keys = (class_of(kind).stored_keys(root, state) for kind in kinds_with_state(state))
    return next((k for k in keys if k is not None), None)


def muted_of(state: TableState) -> tuple[Muted, ...]:
    """What of a table is muted; not what is of a class that this process knows nothing of."""
    types = {kind: entry.dependency for kind, entry in entries().items() if entry.dependency is not None}
    return tuple(
        Muted(types[kind].from_dict(fields["dependency"]), fields["reason"])
        for fields in state.muted
        if (kind := fields["dependency"]["kind"]) in types
    )


def muted_set(*states: TableState) -> DependencySet:
    """What of some tables is muted, to be looked up."""
    nulls = {state.table: state.nulls for state in states}
    return DependencySet((m.dependency for state in states for m in muted_of(state)), nulls.__getitem__)


def load(root: Root, state: TableState) -> dict[str, Any]:
    """What the commit knows of a table, by kind, with its evidence; an error if a class is missing."""
    unknown = [kind for kind in state.kinds if kind not in entries()]
    if unknown:
        raise UsageError(
            f"table {state.table!r} is tracked for {listing(unknown)}, which this process knows nothing of. "
            f"{NOTHING_APPLIED} Name the module that registers it in {ELSEWHERE}."
        )
    return {kind: class_of(kind).load(root, state) for kind in kinds_with_state(state)}


@dataclass(frozen=True)
class Step:
    """A table before and after a batch."""

    before: TableState | None  # None: it is being tracked
    state: TableState  # after, merged, but with what classes kept before: `saved` completes it
    known: Mapping[str, Any]  # findings before, by kind
    findings: Mapping[str, Any]  # after
    rows: Relation  # after, not merged: every row that the batch touched can be fetched from it
    row_ids: I64  # deleted
    added: tuple[SegmentRef, ...]  # inserted
    news: Mapping[str, News]  # by kind
    rounds: int  # of looking at rows, all classes together
    pins: tuple[Pin, ...] = ()
    # The deleted rows as positions in their segments; of tables that take part in something across.
    deleted: tuple[tuple[SegmentRef, I64], ...] = ()
    beside: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)  # by kind: known, worked out from it
    n_updated: int = 0  # rows that were deleted and inserted with other values
    n_unchanged: int | None = None  # rows of a snapshot, or of upserts, that stay as they are
    understood: tuple[str, ...] = ()  # how the sources were read, where they do not say it themselves

    @property
    def table(self) -> str:
        return self.state.table

    @property
    def n_inserted(self) -> int:
        return sum(segment.n_rows for segment in self.added)

    def of(self, findings: Mapping[str, Any]) -> list[tuple[str, TableClass[Any], Any]]:
        """The classes that know something, and what."""
        return [(kind, class_of(kind), findings[kind]) for kind in entries() if kind in findings]

    @property
    def notes(self) -> tuple[str, ...]:
        """How sources were understood, and what is not known any more, in words."""
        known = self.known
        notes = [cls.notes(known.get(kind), now, self.table) for kind, cls, now in self.of(self.findings)]
        return (*(f"{self.table}: {text}" for text in self.understood), *(t for some in notes for t in some))

    @cached_property
    def keys(self) -> tuple[tuple[str, ...], ...] | None:
        """The minimal keys after; None where they are not tracked."""
        return self._keys(self.findings, None)

    @property
    def keys_before(self) -> tuple[tuple[str, ...], ...] | None:
        return self._keys(self.known, None)

    def short_keys(self, widest: int, *, after: bool) -> tuple[tuple[str, ...], ...] | None:
        """The minimal keys of at most so many columns, before or after."""
        return self._keys(self.findings if after else self.known, widest)

    def _keys(self, findings: Mapping[str, Any], widest: int | None) -> tuple[tuple[str, ...], ...] | None:
        keys = (cls.keys(known, self.state, widest) for _, cls, known in self.of(findings))
        return next((k for k in keys if k is not None), None)

    def saved(self, root: Root) -> TableState:
        """The state with covers and evidence written, unless they are what the last commit has."""
        state = self.state
        for kind, cls, now in self.of(self.findings):
            state = state.keeping(**cls.save(root, self.state, now, self.known.get(kind)))
        return state
