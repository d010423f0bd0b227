"""The classes of dependencies that holdfast brings: a line for each, in the order in which they are told of.

And what each of them offers to readers, beyond what all have: `ws.keys`, `ws.fds`, `ws.dcs` ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.stability import Stability
from holdfast.core.rows.writer import Writer
from holdfast.core.store.ledger_rows import SHARED, CommitRow
from holdfast.core.words.asking import form_of, identity_in
from holdfast.core.words.change import DependencyChange, Pin
from holdfast.core.words.column_rule import ColumnRule
from holdfast.core.words.condition import Condition
from holdfast.core.words.dependency import Dependency, Fd, Ind, Side, Ucc
from holdfast.core.words.notation import parse_fd, parse_inclusion, parse_key
from holdfast.core.words.predicate import Dc, as_dc
from holdfast.core.words.row_rule import RowRule
from holdfast.errors import DamagedFileError, UsageError, shorten
from holdfast.kind import (
    ClassReader,
    Entry,
    Query,
    Step,
    entries,
    keeping,
    keys_of,
    muted_set,
    register,
)

if TYPE_CHECKING:
    from holdfast.core.cover.violating_rows import ViolatingRows
    from holdfast.core.rows.table_state import TableState
    from holdfast.core.rows.tables import Tables
    from holdfast.core.words.sameness import DependencySet
    from holdfast.denial.check_reading import CheckReader
    from holdfast.denial.dc_reading import DcReader
    from holdfast.denial.joint_counts import JointCounts
    from holdfast.denial.row_reading import RowRuleReader
    from holdfast.functional.fd_reading import FdReader
    from holdfast.functional.key_reading import KeyReader
    from holdfast.inclusions.ind_reading import IndReader
    from holdfast.inclusions.links.references import Combinations, References
    from holdfast.lakes.lake_keeper import LakeKeeper
    from holdfast.order import Order
    from holdfast.profile.profile_reading import ProfileReader

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

COLUMNS = ("columns", "exclude")
LIMITS = ("within_columns", "dc_seconds", "max_dcs")


def _profile_reader(tables: Tables) -> ProfileReader:
    from holdfast.profile.profile_reading import ProfileReader

    return ProfileReader(tables)


register(
    Entry(
        "ucc",
        "cover",
        "holdfast.functional.key_class",
        ("key", "keys"),
        ("max_columns",),
        dependency=Ucc,
        count="n_keys",
        implied_by="narrower key",
        asked_of="keys",
        identity=lambda d: (d.table, d.columns),
        pins=True,
    )
)
register(
    Entry(
        "fd",
        "fds",
        "holdfast.functional.fd_class",
        ("functional dependency", "functional dependencies"),
        ("max_lhs", "max_error", "evidence"),
        dependency=Fd,
        count="n_fds",
        asked_of="fds",
        identity=lambda d: (d.table, d.lhs, d.rhs),
    )
)
register(
    Entry(
        "ind",
        "",
        "holdfast.inclusions.ind_class",
        ("inclusion", "inclusions"),
        ("as_text", "max_arity", *COLUMNS),
        dependency=Ind,
        across=True,
        asked_of="inds",
        identity=lambda d: (d.dependent, d.referenced),
        pins=True,
    )
)
register(
    Entry(
        "dc",
        "dcs",
        "holdfast.denial.dc_class",
        ("denial constraint", "denial constraints"),
        ("max_predicates", "max_error", "evidence", "operators", *LIMITS, *COLUMNS),
        dependency=Dc,
        brings=("row",),  # rules about two rows, and about one
        count="n_dcs",
        implied_by="more general one",
        asked_of="dcs",
        identity=lambda d: (d.table, d.formula),
    )
)
register(
    Entry(
        "row",
        "row_rules",
        "holdfast.denial.row_class",
        ("row rule", "row rules"),
        ("max_error", *COLUMNS),
        dependency=RowRule,
        count="n_row_rules",
        implied_by="tighter one",
        asked_of="row_rules",
        identity=lambda d: (d.table, d.formula),
    )
)
register(
    Entry(
        "profile",
        "profile",
        "holdfast.profile.profile_class",
        ("column rule", "column rules"),
        dependency=ColumnRule,
        count="n_column_rules",
        implied_by="tighter one",
        reader=_profile_reader,
    )
)
register(Entry("rule", "rules", "holdfast.denial.pinned_class", asked_of="dcs", pins=True))
register(
    Entry("check", "checks", "holdfast.denial.checks", dependency=Condition, asked_of="checks", pins=True)
)


class Readers:
    """The readers of all classes, one of each, and what runs over all of them."""

    def __init__(self, writer: Writer) -> None:
        self.writer, self._tables = writer, writer.tables

    @cached_property
    def keys(self) -> KeyReader:
        from holdfast.functional.key_reading import KeyReader

        return KeyReader(self._tables)

    @cached_property
    def fds(self) -> FdReader:
        from holdfast.functional.fd_reading import FdReader

        def pinned_since(
            version: int, state: TableState, fd: Fd, now: bool
        ) -> tuple[int | None, CommitRow | None]:
            return self.dcs.pinned_since(version, state, as_dc(fd).predicates, state.nulls, now=now)

        return FdReader(self._tables, self.keys, pinned_since)

    @cached_property
    def dcs(self) -> DcReader:
        from holdfast.denial.dc_reading import DcReader

        return DcReader(self._tables)

    @cached_property
    def row_rules(self) -> RowRuleReader:
        from holdfast.denial.row_reading import RowRuleReader

        return RowRuleReader(self._tables)

    @cached_property
    def checks(self) -> CheckReader:
        from holdfast.denial.check_reading import CheckReader

        return CheckReader(self._tables)

    @cached_property
    def profiles(self) -> ProfileReader:
        return _profile_reader(self._tables)

    @cached_property
    def inds(self) -> IndReader:
        from holdfast.inclusions.ind_reading import IndReader

        return IndReader(self._tables, self.keys.combinations)

    @cached_property
    def lakes(self) -> LakeKeeper:
        from holdfast.lakes.lake_keeper import LakeKeeper

        return LakeKeeper(self.writer)

    @cached_property
    def elsewhere(self) -> dict[str, ClassReader]:
        """The readers of classes that have nothing but what the contract says; those of others among them."""
        return {kind: e.reader(self._tables) for kind, e in entries().items() if e.reader is not None}

    def of(self, entry: Entry) -> Any:
        """Who answers for a class."""
        return getattr(self, entry.asked_of) if entry.asked_of else self.elsewhere.get(entry.kind)

    def listed(self, query: Query) -> Iterator[Dependency]:
        """What holds, or almost: keys and functional dependencies of each table, then the other kinds."""
        states = self._tables.chosen(query.table, query.at)
        for state in states:
            near = query.max_error and (query.wants("ucc") or query.wants("fd"))
            if near and self.fds.approximates(state, query.kind):
                yield from self.fds.approximate(state, query.at, query.kind, query.max_error)
                continue
            if query.wants("ucc"):
                yield from self.keys.listed(state)
            if query.wants("fd"):
                yield from self.fds.listed(state)
        if query.wants("dc"):
            for state in keeping("dc", states):
                yield from self.dcs.listed(state, query.at, query.max_error, asked=query.kind == "dc")
        if query.wants("row"):
            for state in keeping("row", states):
                yield from self.row_rules.listed(state, query.max_error)
        if query.wants("ind") and self._has_inclusions(query.at):
            empty = query.with_empty
            yield from self.inds.listed(query.table, query.at, query.max_error, with_empty=empty)
        for kind, entry in entries().items():
            if entry.reader is not None and query.wants(kind):
                for state in keeping(kind, states):
                    yield from self.elsewhere[kind].listed(state, query.max_error)

    def _has_inclusions(self, at: int | None) -> bool:
        """Whether tables take part in inclusions: where none does, nothing that tells of them is needed."""
        return SHARED in self._tables.ledger.heads(at)

    def asked(
        self, table: str, question: str | Sequence[str], referenced: Side | None
    ) -> tuple[Any, tuple[Any, ...]]:
        """(reader, arguments): who knows what a question asks for, and how it is told."""
        if referenced is not None:
            columns = (question,) if isinstance(question, str) else tuple(question)
            return self.inds, (Side(table, columns), referenced)
        if not isinstance(question, str):
            return self.keys, (table, question)
        if question in self._tables.state(table).schema.names and self.reader_of(table, question) is None:
            return self.keys, (table, [question])
        return self.read(table, question)

    def read(self, table: str, text: str) -> tuple[Any, tuple[Any, ...]]:
        """(reader, arguments) of a text that is no column's name; see `core/words/asking.py`."""
        version, state = self._tables.current(table)
        form = form_of(text)
        if form == "json":
            return self._identified(state, text)
        if form == "key":
            return self.keys, (table, parse_key(text))
        if form == "inclusion":
            return self.inds, parse_inclusion(text) or ()
        elsewhere = self.reader_of(table, text)
        if elsewhere is not None:
            return elsewhere, (table, text)
        if form == "fd":
            return self.fds, (table, *parse_fd(text, state.schema.names, table=table, version=version))
        readers = {"condition": self.checks, "rule": self.dcs, "row": self.row_rules}
        return readers[form], (table, text)

    def _identified(self, state: TableState, text: str) -> tuple[Any, tuple[Any, ...]]:
        """(reader, arguments) of a dependency whose identity is written as JSON."""
        fields, table = identity_in(text) or {}, state.table
        entry = entries().get(str(fields.get("kind")))
        try:
            if entry is None or entry.dependency is None:
                raise ValueError(
                    f"its kind is none of {', '.join(k for k, e in entries().items() if e.dependency)}"
                )
            named = entry.dependency.from_dict({"table": table, **fields})
            columns: tuple[Any, ...] = (named.table, *named.columns)
            columns += (named.referenced.table, *named.referenced.columns) if isinstance(named, Ind) else ()
            if not all(isinstance(name, str) for name in (*columns, named.name)):
                raise ValueError("names are texts")
            if named.table != table:
                raise ValueError(f"it is about table {named.table!r}, not {table!r}")
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise UsageError(
                f"{shorten(text)} names no dependency: {shorten(str(error), 120)[1:-1]}."
            ) from None
        if entry.identity is not None:
            return self.of(entry), entry.identity(named)
        reader = self.reader_of(table, named.name)
        return self.checks if reader is None else reader, (table, named.name)

    def violating(
        self, reader: Any, asked: tuple[Any, ...], limit: int | None, *, as_pairs: bool = False
    ) -> ViolatingRows:
        """The rows that violate what is asked of a reader."""
        if as_pairs and reader is not self.dcs:
            raise UsageError(
                "only rules about two rows, such as 'not(t.zip = s.zip and t.city != s.city)', are violated "
                "by pairs that are listed: leave them out."
            )
        if not hasattr(reader, "violations"):
            raise UsageError(f"{type(reader).__name__} does not list the rows that violate a dependency.")
        pairs = {"as_pairs": True} if as_pairs else {}
        rows: ViolatingRows = reader.violations(*asked, limit=limit, **pairs)
        return rows

    def reader_of(self, table: str, question: str) -> ClassReader | None:
        """The class from elsewhere that a question is for."""
        state = self._tables.state(table)
        readers = (reader for reader in self.elsewhere.values() if reader.reads(question, state))
        return next(readers, None)

    def pinned(self, table: str | None, at: int | None) -> Iterator[Pin]:
        """What is pinned, and whether it holds."""
        pinning = [entry for entry in entries().values() if entry.pins]
        for state in self._tables.chosen(table, at):
            for entry in pinning:
                if not entry.across and keeping(entry.kind, [state]):
                    yield from self.of(entry).pins(state)
        for entry in pinning:
            if entry.across and self._has_inclusions(at):
                yield from self.of(entry).pins(table, at)

    def since(
        self, table: str, dependencies: Sequence[Dependency], at: int | None = None
    ) -> list[int | None]:
        """Since which version each of some dependencies of a table, which hold at one, has held.

        None where its class does not tell. For the few that are shown: of each kind covers, newest first.
        """
        version, state = self._tables.current(table, at)
        first: list[int | None] = [None] * len(dependencies)
        for kind in {d.kind for d in dependencies}:
            those = [i for i, d in enumerate(dependencies) if d.kind == kind]
            reader = self.of(entries()[kind])
            if hasattr(reader, "since"):
                versions = reader.since(state, [dependencies[i] for i in those], version)
                for i, since in zip(those, versions.tolist(), strict=True):
                    first[i] = since or None
        return first

    def muted_at(self, at: int | None) -> DependencySet:
        """What is muted at a version, in all tables, to be looked up."""
        return muted_set(*self._tables.chosen(None, at))

    def order(self, at: int | None) -> Order:
        """What dependencies mean at a version: the order in which they are told."""
        from holdfast.order import Order

        state = cache(partial(self._tables.state, at=at))

        def keys(table: str) -> Combinations | None:
            return self.keys.combinations(state(table))

        def references() -> References | None:
            counted = self.inds.counted(at) if self._has_inclusions(at) else None
            if counted is None:
                return None
            from holdfast.inclusions.links.references import References

            return References(*counted, state, keys)

        def outlived(table: str, asked: Sequence[tuple[str, ...]]) -> Stability:
            return self.keys.outlived(state(table), asked, self._tables.version if at is None else at)

        def rows(table: str) -> tuple[Sequence[RowRule], frozenset[str]]:
            return self.row_rules.known(state(table))

        def joint(table: str) -> JointCounts | None:
            from holdfast.denial.constraints import dc_ref
            from holdfast.denial.joint_counts import JointCounts

            ref = dc_ref(state(table))
            # Evidence is kept for the newest version only.
            newest = [dc_ref(s) for s in self._tables.chosen(None, None) if s.table == table]
            try:
                return JointCounts.read(self._tables.root, state(table)) if ref in newest else None
            except DamagedFileError:  # another writer has come by; what holds is known without it
                return None

        return Order(state, keys, outlived, list(self.pinned(None, at)), references, rows, joint)

    def ranked(
        self,
        changes: Sequence[DependencyChange],
        base: int,
        steps: Sequence[Step],
        across: Mapping[str, tuple[Any, Any]],
        pins: Sequence[Pin],
        other: Callable[[str], TableState],
    ) -> tuple[DependencyChange, ...]:
        """The changes of some steps on top of a version with what they mean, as they are told. `across` is
        what was and is known among tables, by kind; `other` tables are as they are."""
        if not changes:
            return ()
        from holdfast.inclusions.links.references import References
        from holdfast.order import WIDEST, Order, ranked

        step_of = {step.table: step for step in steps}

        def order(after: bool) -> Order:
            def state(table: str) -> TableState:
                if table not in step_of:
                    return other(table)
                step = step_of[table]
                if step.before is not None and not after:
                    return step.before
                # Not merged: what a check foretells is what comes.
                return replace(step.state, segments=step.rows.segments)

            @cache
            def keys(table: str) -> Combinations | None:
                if table not in step_of:
                    return keys_of(self._tables.root, state(table))
                return step_of[table].short_keys(WIDEST, after=after)

            def references() -> References | None:
                if "ind" not in across:
                    return None
                unary = across["ind"][after].unary
                return References(unary.state, unary.pairs, state, keys)

            def outlived(table: str, asked: Sequence[tuple[str, ...]]) -> Stability:
                step = step_of.get(table)
                if step is not None and step.before is None:
                    return Stability.none(len(asked))
                history = self.keys.outlived(state(table), asked, base)
                if step is None or not after:
                    return history
                return history.through(step.n_inserted + len(step.row_ids))

            def rows(table: str) -> tuple[Sequence[RowRule], frozenset[str]]:
                if table not in step_of:
                    return self.row_rules.known(state(table))
                from holdfast.denial.row_rule_list import rules_and_filled

                known = (step_of[table].findings if after else step_of[table].known).get("row")
                return ((), frozenset()) if known is None else rules_and_filled(known, state(table))

            def joint(table: str) -> JointCounts | None:
                from holdfast.denial.joint_counts import JointCounts

                if table not in step_of:
                    return JointCounts.read(self._tables.root, state(table))
                known = (step_of[table].findings if after else step_of[table].known).get("dc")
                if known is None or not hasattr(known.evidence, "counts"):
                    return None
                return JointCounts.of(known.space, known.evidence.masks, known.evidence.counts)

            return Order(state, keys, outlived, pins, references, rows, joint)

        def remainders(table: str, asked: Sequence[tuple[str, ...]]) -> NDArray[np.bool_]:
            before = step_of[table].before
            return (
                np.zeros(len(asked), np.bool_)
                if before is None
                else self.keys.remainders(before, asked, base)
            )

        return ranked(changes, order(after=False), order(after=True), remainders)

    def held_versions(self, kind: str, table: str, questions: U64, before: int) -> I64:
        """For how many versions each of some dependencies had held, as its class keeps them: int64[n]."""
        held: I64 = self.of(entries()[kind]).held_versions(table, questions, before)
        return held
