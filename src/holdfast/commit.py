"""From a call to a version: the steps of tables, what holds among them, the report, and the one commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

from holdfast.core.rows.table_state import TableState
from holdfast.core.rows.writer import COMMIT_ATTEMPTS, Context, Writer
from holdfast.core.store.ledger_rows import ChangeRow, CommitRow
from holdfast.core.words.change import Change, DependencyChange, Pin, TableChange, pass_gate
from holdfast.core.words.reliance import SEVERITIES, Severity, check_severity
from holdfast.errors import NOTHING_APPLIED, ConflictError, TableExistsError, UsageError, listing, shorten
from holdfast.kind import AcrossStep, OtherTables, Step, across_of, class_of, keys_of, load
from holdfast.kinds import Readers


@dataclass
class Committer:
    """Commits steps, and holds what the newest commits of this process know, open."""

    writer: Writer
    readers: Readers
    _tables: dict[str, tuple[TableState, dict[str, Any]]] = field(default_factory=dict)  # findings by table
    _across: dict[str, tuple[Mapping[str, Any] | None, Any]] = field(default_factory=dict)  # by kind

    def forget(self) -> None:
        self._tables.clear()
        self._across.clear()

    def findings(self, state: TableState) -> dict[str, Any]:
        """What is known of a table, as the commit names it, by kind."""
        newest, findings = self._tables.get(state.table, (None, {}))
        if newest is not None and newest.folder == state.folder and newest.kept == state.kept:
            return findings
        return load(self.writer.root, state)

    def among(self, kind: str, at: int | None) -> tuple[Mapping[str, Any] | None, Any]:
        """(state as JSON, what it names) of a class about several tables; no state before the first table."""
        cls = across_of([kind])[kind]
        version = self.writer.ledger.heads(at).get(cls.slot)
        fields = None if version is None else self.writer.ledger.commit_row(version, cls.slot).state
        if kind not in self._across or self._across[kind][0] != fields:
            self._across[kind] = fields, cls.load(self.writer.root, fields)
        return self._across[kind]

    def beside(self, state: TableState, base: int) -> dict[str, Any]:
        """What classes about several tables know, for a batch of one table, by kind."""
        return {kind: self.among(kind, base)[1] for kind in across_of(state.kinds)}

    def track(self, sources: Mapping[str, Any], how: Mapping[str, Any]) -> Change:
        """Read tables, find what holds in them, and commit: `step.track` for each, then `commit`."""
        from holdfast import step

        started = time.perf_counter()
        wanted, across = step.wanted(sources, how)
        base = self.writer.ledger.version
        heads = self.writer.ledger.heads(base)
        for table in sources:
            if table in heads:
                raise TableExistsError(
                    f"table {table!r} is tracked already (version {base}). Nothing was changed. Feed it "
                    "batches with 'holdfast apply', or drop it first with 'holdfast drop'."
                )
        with self.writer.context(base) as context:
            steps = [step.track(context, table, source, wanted) for table, source in sources.items()]
            step.check_patterns([step.state for step in steps], how)
            return self.commit(context, base, "track", steps, across, None, started, commit=True)

    def apply(
        self,
        given: Mapping[str, Mapping[str, Any]],
        batch_id: str | None,
        options: Mapping[str, Any] | None,
        *,
        commit: bool = True,
        fail_on: Severity | None = None,
    ) -> Change:
        """What batches of some tables change, committed if that is wanted: `step.apply` for each, then
        `commit`. A batch that was applied before is not applied again."""
        from holdfast import step
        from holdfast.core.rows.batch import batches_of
        from holdfast.core.sources import ReadOptions

        started = time.perf_counter()
        check_severity(fail_on or SEVERITIES[0], "fail_on")
        batches, writer = batches_of(given), self.writer
        base = writer.ledger.version
        states = {table: writer.tables.state(table, base or None) for table in batches}
        if batch_id is not None and (earlier := self.earlier(batches, batch_id)) is not None:
            return self.repeated(list(states.values()), earlier)
        with writer.context(base, commit=commit) as context:
            steps = []
            for table, batch in batches.items():
                state, findings = states[table], self.findings(states[table])
                reading = ReadOptions.checked({**state.options, **(options or {})})
                across = self.beside(state, base) if len(batches) == 1 else {}
                steps.append(
                    step.apply(context, state, base, findings, batch, reading, across, commit=commit)
                )
            action = "apply" if commit else "check"
            change = self.commit(
                context, base, action, steps, {}, batch_id, started, commit=commit, fail_on=fail_on
            )
        if commit:
            writer.tidy_when_due()
        return replace(change, elapsed_s=time.perf_counter() - started)

    def commit(
        self,
        context: Context,
        base: int,
        action: str,
        steps: Sequence[Step],
        options: Mapping[str, Any],
        batch_id: str | None,
        started: float,
        *,
        commit: bool,
        fail_on: Severity | None = None,
    ) -> Change:
        """The change that steps make, committed if that is wanted; a GateError if `fail_on` closes the gate.

        `options` are those of classes about several tables, if tables are being tracked. Tables share what
        holds among them. So if another table's batch was committed meanwhile, it is worked out again on top
        of that; the tables' own steps stand as they are.
        """
        writer = self.writer
        states = [step.saved(writer.root) for step in steps] if commit else []
        heads_before = writer.ledger.heads(base)
        for attempt in range(COMMIT_ATTEMPTS):
            state = cache(partial(writer.tables.state, at=base))  # of tables that the steps leave alone
            across = self._taken_in(context, base, steps, state, options, commit=commit)
            change = self._change(base, action, steps, state, across, batch_id, started, commit=commit)
            if not commit:
                return change
            if fail_on is not None:
                pass_gate(replace(change, action="check", version=base), fail_on)
            commits = [
                CommitRow(state.table, action, state.to_dict(), _detail(change, part, step.rounds), batch_id)
                for state, part, step in zip(states, change.tables, steps, strict=True)
            ]
            for kind, step in across.items():
                detail = {"n_inds": step.n, **step.accesses}
                commits.append(CommitRow(across_of([kind])[kind].slot, action, step.fields, detail, batch_id))
            try:
                change = replace(change, version=writer.append(base, commits, change_rows(change)))
                break
            except ConflictError:
                base = writer.ledger.version
                heads = writer.ledger.heads(base)
                moved = any(heads.get(step.table) != heads_before.get(step.table) for step in steps)
                if moved or not across or attempt == COMMIT_ATTEMPTS - 1:
                    raise
        self._tables = {s.table: (s, dict(step.findings)) for s, step in zip(states, steps, strict=True)}
        self._across |= {kind: (step.fields, step.known) for kind, step in across.items()}
        return change

    def earlier(self, tables: Iterable[str], batch_id: str) -> CommitRow | None:
        """The newest commit of a batch id, if all of these tables know it; None if none does."""
        rows = self.writer.ledger.find_batch(tables, batch_id)
        versions = {table: row.version for table, row in rows.items() if row is not None}
        if versions and len(versions) < len(rows):
            applied = [f"{table} (version {version})" for table, version in versions.items()]
            missing = [table for table in rows if table not in versions]
            raise UsageError(
                f"the batch {shorten(batch_id)} was applied before to {listing(applied)}, but not to "
                f"{listing(missing)}. {NOTHING_APPLIED} Apply what is left under an id of its own, or all of "
                "it under a new one."
            )
        return max((row for row in rows.values() if row is not None), key=lambda r: r.version, default=None)

    def _taken_in(
        self,
        context: Context,
        base: int,
        steps: Sequence[Step],
        state: Callable[[str], TableState],
        options: Mapping[str, Any],
        *,
        commit: bool,
    ) -> dict[str, AcrossStep[Any]]:
        """What holds among tables after the steps, on top of a version, by kind."""
        others = OtherTables(state, partial(keys_of, self.writer.root))
        taken = {}
        for kind, cls in across_of({kind for step in steps for kind in step.state.kinds}).items():
            known = self.among(kind, base)[1]
            taken[kind] = cls.take_in(context, known, steps, others, options.get(kind), commit=commit)
        return taken

    def _change(
        self,
        base: int,
        action: str,
        steps: Sequence[Step],
        state: Callable[[str], TableState],
        across: Mapping[str, AcrossStep[Any]],
        batch_id: str | None,
        started: float,
        *,
        commit: bool,
    ) -> Change:
        spells = [self._spells(step, base, commit=commit) for step in steps]
        listed = [c for changes, _ in spells for c in changes]
        listed += [c for step in across.values() for c in step.changes]
        pins = [*(p for s in steps for p in s.pins), *(p for s in across.values() for p in s.pins)]
        known = {kind: (self.among(kind, base)[1], step.known) for kind, step in across.items()}
        return Change(
            action=action,
            version=base + 1 if commit else base,
            tables=tuple(_part(step, longest) for step, (_, longest) in zip(steps, spells, strict=True)),
            changes=self.readers.ranked(listed, base, steps, known, pins, state),
            elapsed_s=time.perf_counter() - started,
            batch_id=batch_id,
            pins=tuple(sorted(pins, key=Pin.place)),
            n_inds=next((step.n for step in across.values()), None),
            accesses={name: n for step in across.values() for name, n in step.accesses.items()},
            notes=(*(n for s in steps for n in s.notes), *(n for s in across.values() for n in s.notes)),
        )

    def _spells(self, step: Step, base: int, *, commit: bool) -> tuple[list[DependencyChange], int]:
        """(changes, longest): the changes of a step, those that broke with how long they had held.

        `longest` is the longest of those listed; of a check, which may gate on it, of all that broke.
        """
        changes: list[DependencyChange] = []
        longest = 0
        for kind, news in step.news.items():
            if news.broken is None or not len(news.broken):
                changes += news.changes
                continue
            n_listed = sum(c.event == "broke" for c in news.changes)
            questions = news.broken[:n_listed] if commit else news.broken
            held = self.readers.held_versions(kind, step.table, questions, base + 1)
            spells = iter(held.tolist())
            changes += [replace(c, held=next(spells)) if c.event == "broke" else c for c in news.changes]
            longest = max(longest, int(held.max(initial=0)))
        return changes, longest

    def repeated(self, states: Sequence[TableState], earlier: CommitRow) -> Change:
        """What is said of a batch that was applied before."""
        parts = []
        for state in states:
            findings = self.findings(state)
            summaries = (class_of(kind).summary(now, state, tracked=False) for kind, now in findings.items())
            parts.append(TableChange(state.table, 0, 0, state.n_rows, tuple(s for s in summaries if s)))
        batch_id = earlier.batch_id
        return Change("apply", earlier.version, tuple(parts), (), 0.0, batch_id, repeated=True)


def _part(step: Step, longest: int) -> TableChange:
    findings = step.of(step.findings)
    summaries = (cls.summary(now, step.state, tracked=step.before is None) for _, cls, now in findings)
    return TableChange(
        step.table,
        step.n_inserted,
        len(step.row_ids),
        step.rows.n_rows,
        tuple(s for s in summaries if s is not None),
        sum(news.unlisted for news in step.news.values()),
        longest,
        step.n_updated,
        step.n_unchanged,
    )


def _detail(change: Change, part: TableChange, rounds: int) -> dict[str, Any]:
    """What the log says of one table of a commit."""
    counts = {name: n for name, n in part.fields.items() if name.startswith("n_") and name != "n_predicates"}
    return {
        "n_inserted": part.n_inserted,
        "n_deleted": part.n_deleted,
        "n_updated": part.n_updated,
        "n_rows": part.n_rows,
        **counts,
        "n_inds": change.n_inds,
        "n_changes": len(change.changes) + part.unlisted,
        "rounds": rounds,
        "elapsed_s": round(change.elapsed_s, 4),
    }


def change_rows(change: Change) -> list[ChangeRow]:
    """The changes as the ledger keeps them."""
    rows = []
    for c in change.changes:
        witnesses = [[r.stored() for r in group] for group in c.witnesses] or None
        dependency = c.dependency
        fields = dependency.to_dict()
        table, kind = dependency.table, dependency.kind
        rows.append(ChangeRow(table, kind, c.event, fields, c.reason, witnesses, c.role))
    return rows
