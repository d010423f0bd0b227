"""Muting: what somebody knows to be an accident, or takes no interest in. It is kept exactly as all else is,
and reports only count it.

What is muted is named in the state of its table, an inclusion in that of its dependent one, whatever the
kind, and whether it is listed now or not. So it lasts as long as the table does; `drop` of the referenced
table unmutes an inclusion, too. Nothing is both pinned and muted: pinning unmutes.

Cost: one commit, and no look at rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.commit import Committer
from holdfast.core.rows.asked_conditions import asked_condition
from holdfast.core.rows.table_state import TableState
from holdfast.core.rows.writer import Writer
from holdfast.core.store.ledger_rows import SHARED, CommitRow
from holdfast.core.words.condition import Condition, columns_of, formula_of
from holdfast.core.words.dependency import Dependency, Fd, Ind, Side, Ucc
from holdfast.core.words.notation import inclusion_text
from holdfast.core.words.predicate import Dc
from holdfast.core.words.reliance import Muted, one_line
from holdfast.core.words.row_rule import parse_row_rule
from holdfast.core.words.sameness import DependencySet, said
from holdfast.errors import UsageError, plural
from holdfast.kind import muted_of
from holdfast.kinds import Readers

# What `explain` understands, or what a list has.
Question = str | Sequence[str] | Dependency


@dataclass(frozen=True)
class Mutes:
    """What is muted in a workspace."""

    writer: Writer
    readers: Readers
    committer: Committer

    def mute(self, table: str, question: Question, referenced: Side | None, reason: str | None) -> Muted:
        """Mute what a question asks for; what is muted already has the new reason, if one is given."""
        base, state = self.writer.tables.current(table)
        wanted = Muted(self.asked(table, question, referenced), one_line("reason", reason))
        this = DependencySet([wanted.dependency], lambda _: state.nulls)
        if any(pin.dependency in this for pin in self.readers.pinned(table, base)):
            raise UsageError(
                f"{wanted} of table {table!r} is pinned, so it cannot be muted. Unpin it first, with "
                "'holdfast pin ... --remove'."
            )
        known = next((m for m in muted_of(state) if m.dependency in this), None)
        if known is not None and (reason is None or known.reason == wanted.reason):
            return known
        after, _ = unmuted(state, this)
        self._commit(base, replace(after, muted=(*after.muted, wanted.to_dict())), "mute", wanted)
        return wanted

    def unmute(self, table: str, question: Question, referenced: Side | None) -> Muted:
        """Tell what a question asks for again."""
        base, state = self.writer.tables.current(table)
        dependency = self.asked(table, question, referenced)
        after, gone = unmuted(state, DependencySet([dependency], lambda _: state.nulls))
        if not gone:
            raise UsageError(f"{dependency.name} of table {table!r} is not muted.")
        self._commit(base, after, "unmute", gone[0])
        return gone[0]

    def asked(self, table: str, question: Question, referenced: Side | None) -> Dependency:
        """What a question is about."""
        if not isinstance(question, str | Sequence):
            return question
        return dependency_asked(self.readers, *self.readers.asked(table, question, referenced))

    def _commit(self, base: int, state: TableState, action: str, muted: Muted) -> None:
        detail: dict[str, Any] = {"dependency": said(muted.dependency)}
        commits = [CommitRow(state.table, action, state.to_dict(), detail)]
        if muted.kind == "ind":  # so that nobody drops the other table meanwhile
            fields = self.committer.among("ind", base)[0]
            commits.append(CommitRow(SHARED, action, None if fields is None else dict(fields), {}))
        self.writer.append(base, commits)


def dependency_asked(readers: Readers, reader: Any, asked: tuple[Any, ...]) -> Dependency:
    """What a reader is asked for; nothing is looked up but names and types."""
    if reader is readers.inds:
        return _inclusion(readers, *asked)
    tables, table = readers.writer.tables, asked[0]
    base, state = tables.current(table)
    if reader is readers.keys:
        return Ucc(table, tuple(state.schema.names[p] for p in tables.positions(state, base, asked[1])))
    if reader is readers.fds:
        return Fd(*asked)
    text = asked[1]
    if reader is readers.dcs:
        from holdfast.denial.written_rules import read_rule

        return Dc(table, read_rule(text, state.schema, table, base))
    if reader is readers.row_rules:
        return parse_row_rule(text, state.schema, table=table, version=base)
    if reader is readers.checks:
        node = asked_condition(text, state.schema, table=table, version=base)
        return Condition(table, formula_of(node), columns_of(node))
    dependency: Dependency = reader.explain(*asked).dependency  # of a class from elsewhere
    return dependency


def _inclusion(readers: Readers, dependent: Side, referenced: Side) -> Ind:
    """An inclusion, its columns in the order of the dependent table's schema."""
    if len(dependent.columns) != len(referenced.columns) or not dependent.columns:
        raise UsageError(
            f"{inclusion_text(dependent, referenced)} has {plural(len(dependent.columns), 'column')} on its "
            f"left side and {len(referenced.columns)} on its right one; give as many on each, at least one."
        )
    for side in (dependent, referenced):
        for column in side.columns:
            readers.inds.column_id(Side(side.table, (column,)), None)
    names = readers.writer.tables.state(dependent.table).schema.names
    pairs = sorted(
        zip(dependent.columns, referenced.columns, strict=True), key=lambda pair: names.index(pair[0])
    )
    left, right = tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
    return Ind(Side(dependent.table, left), Side(referenced.table, right))


def unmuted(state: TableState, which: DependencySet) -> tuple[TableState, list[Muted]]:
    """(the state without what is muted of some dependencies, what that was)."""
    gone = [m for m in muted_of(state) if m.dependency in which]
    fields = [m.to_dict() for m in gone]
    return replace(state, muted=tuple(m for m in state.muted if m not in fields)), gone


def without_table(states: Sequence[TableState], dropped: str) -> Iterator[TableState]:
    """Of some tables those that change when another one is dropped: its inclusions are muted no longer."""
    for state in states:
        staying = tuple(
            m for m in state.muted if m["dependency"].get("referenced", {}).get("table") != dropped
        )
        if staying != state.muted:
            yield replace(state, muted=staying)
