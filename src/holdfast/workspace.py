"""The facade: a workspace of tables whose dependencies are kept true.

    ws = holdfast.open("my.hold")
    ws.track("orders", "orders.parquet")
    change = ws.apply("orders", inserts=new_rows, deletes=old_rows)
    print(change)

A batch runs through the pipeline in a visible row of steps: of each table resolve (read, type, encode,
locate), delete, insert, index, merge (`step.py`); then the inclusions among all tables
(`inclusions/inds.py`); then commit. Everything before the commit only writes files that nothing names; the
commit is one ledger append, whatever the number of tables. So a crash at any point loses nothing
committed, and a rejected batch leaves nothing behind but litter, which `tidy` removes.

Reading (`dependencies`, `log`, most of `explain`) imports neither Spark nor Numba.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.core.rows.table_state import TableState
from holdfast.core.store import litter
from holdfast.core.store.files import FileRef, check_file, stamp_files
from holdfast.core.store.ledger_rows import LAKE, SHARED, ChangeRow, CommitRow
from holdfast.core.store.places import local_path
from holdfast.core.words.change import Change
from holdfast.core.words.dependency import Dependency
from holdfast.core.words.options import EvidenceKind
from holdfast.core.words.schema import Nulls
from holdfast.errors import TableExistsError, UnknownColumnError, UsageError, WorkspaceError, shorten
from holdfast.history import Explanation, LogEntry
from holdfast.inclusions.generator import GeneratorState
from holdfast.inspection import IndExplanation
from holdfast.kind import asked_options
from holdfast.kind import kinds as known_kinds
from holdfast.lakes.lake_workspace import Linker
from holdfast.lakes.state import LakeState
from holdfast.writing import ProgressHook

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from holdfast.core.engine.engine import Mode
    from holdfast.core.rows.batch import Batch


def open(
    path: str | Path,
    *,
    spark: SparkSession | None = None,
    engine: Mode = "auto",
    create: bool = True,
    progress: ProgressHook | None = None,
) -> Workspace:
    """Open the workspace at a path or file:// URL; make it if there is none and `create` is true.

    `engine` says where work runs: "auto" (small work inline, the rest on Spark), "inline" or
    "spark". Spark is started when it is first needed, unless a session is given.
    """
    path = Path(local_path(path, "workspace", WorkspaceError))
    return Workspace(path, spark=spark, engine=engine, create=create, progress=progress)


class Workspace(Linker):
    """Tables, their dependencies, and how they came to be."""

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- changing -----------------------------------------------------------------------------

    def track(self, table: str, source: Any, **options: Any) -> Change:
        """Start to track a table: read it, find its dependencies, commit. See `track_all` for the options."""
        return self.track_all({table: source}, **options)

    def track_all(
        self,
        sources: Mapping[str, Any],
        *,
        kinds: Sequence[str] = ("ucc",),
        nulls: Nulls = "equal",
        row_key: Sequence[str] = (),
        max_columns: int | None = None,
        options: Mapping[str, Any] | None = None,
        append_only: bool = False,
        as_text: bool = False,
        columns: Sequence[str] | None = None,
        exclude: Sequence[str] = (),
        max_arity: int | None = None,
        max_lhs: int | None = None,
        max_error: float | None = None,
        evidence: EvidenceKind | None = None,
        max_predicates: int | None = None,
        operators: Sequence[str] | None = None,
        within_columns: bool = False,
        dc_seconds: float | None = None,
        max_dcs: int | None = None,
        **more: Any,
    ) -> Change:
        """Start to track tables: each is read once, and all of them are one commit.

        `options` says how files are read (format, header, delimiter, quote, encoding, null_values,
        types). Batches are read the same way unless they say otherwise. `append_only` tables take no
        deletes, which makes their state smaller. For inclusions (kind "ind"): `as_text` compares columns by
        their text; `columns` and `exclude` are patterns that choose the columns that take part; `max_arity`
        bounds inclusions of several columns (4 unless said otherwise; it is the workspace's).

        For functional dependencies (kind "fd"): `max_lhs` bounds their left-hand sides; `max_error` also
        keeps the minimal approximate dependencies and keys of which at most that share of the pairs of rows
        is in violation; `evidence` says what is kept of the rows: "counted" (all agree sets with their
        numbers of pairs: every error is known, batches are compared with all rows) or "witnessed" (only what
        matters: for tall tables). By default a cost model chooses.

        For denial constraints (kind "dc"): `max_predicates` bounds their size; `operators` (= != < <= > >=)
        are those they are written with; `columns` and `exclude` choose the columns that take part;
        `max_error` and `evidence` as above, errors being shares of the ordered pairs of rows.
        `within_columns` compares each column with itself only. The search, now and at every batch, ends after
        `dc_seconds` (60 unless said otherwise), or at more than `max_dcs` (a million): then constraints are
        known up to a number of predicates, which is that of the table from then on, and the change notes it.
        """
        asked = {
            "max_columns": max_columns,
            "as_text": as_text or None,
            "columns": columns,
            "exclude": tuple(exclude) or None,
            "max_arity": max_arity,
            "max_lhs": max_lhs,
            "max_error": max_error,
            "evidence": evidence,
            "max_predicates": max_predicates,
            "operators": operators,
            "within_columns": within_columns or None,
            "dc_seconds": dc_seconds,
            "max_dcs": max_dcs,
            **more,
        }
        started = time.perf_counter()
        if not sources:
            raise UsageError("no table is given to track.")
        for table in sources:
            _check_track(table, kinds, nulls)
        kinds, by_class = asked_options(kinds, {name: v for name, v in asked.items() if v is not None})
        if max_arity is not None and max_arity < 1:
            raise UsageError(f"max_arity is {max_arity}; expected at least 1, which is single columns only.")
        base = self.ledger.version
        heads = self.ledger.heads(base)
        for table in sources:
            if table in heads:
                raise TableExistsError(
                    f"table {table!r} is tracked already (version {base}). Nothing was changed. Feed it "
                    "batches with 'holdfast apply', or drop it first with 'holdfast drop'."
                )
        from holdfast import step
        from holdfast.inclusions import inds

        reading = _read_options(options)
        wanted = step.TableOptions(kinds, nulls, tuple(row_key), append_only, reading, by_class)
        with self._context(base) as context:
            tracked = [step.track(context, table, source, wanted) for table, source in sources.items()]
            _check_patterns([step.state for step in tracked], (*(columns or ()), *exclude))

            def join(generator: GeneratorState) -> GeneratorState:
                generator = replace(generator, max_arity=max_arity or generator.max_arity)
                for step in tracked:
                    chosen = inds.chosen_columns(generator, step.state, columns, exclude, as_text=as_text)
                    generator = inds.joined(generator, chosen)
                return generator

            takes_part = join if "ind" in kinds else None
            return self._finish(context, base, "track", tracked, takes_part, None, started, commit=True)

    def apply(
        self,
        table: str,
        *,
        inserts: Any = None,
        deletes: Any = None,
        updates: Any = None,
        before: Any = None,
        after: Any = None,
        batch_id: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Change:
        """Apply a batch: deletes first, then inserts, one commit, one report of the net change.

        `updates` are rows with the row key and new values; `before` and `after` are full rows.
        With a `batch_id` a batch is applied once: a second time is a no-op that says so. An id belongs to
        one life of a table: after `drop` and `track` it is a new one.
        """
        from holdfast.core.rows.batch import Batch

        batch = Batch(inserts, deletes, updates, before, after)
        return self._run({table: batch}, batch_id, options, commit=True)

    def apply_all(
        self,
        batches: Mapping[str, Mapping[str, Any]],
        *,
        batch_id: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Change:
        """Apply batches to several tables as one commit and one change: a parent with its children.

        `batches` maps a table to what `apply` takes: inserts, deletes, updates, before, after. If only some
        of the tables know the `batch_id`, it is an error, and nothing is applied.
        """
        return self._run(_batches(batches), batch_id, options, commit=True)

    def check(
        self,
        table: str,
        *,
        inserts: Any = None,
        deletes: Any = None,
        updates: Any = None,
        before: Any = None,
        after: Any = None,
        options: Mapping[str, Any] | None = None,
    ) -> Change:
        """What a batch would change; nothing is applied."""
        from holdfast.core.rows.batch import Batch

        batch = Batch(inserts, deletes, updates, before, after)
        return self._run({table: batch}, None, options, commit=False)

    def check_all(
        self, batches: Mapping[str, Mapping[str, Any]], *, options: Mapping[str, Any] | None = None
    ) -> Change:
        """What batches to several tables would change together; nothing is applied."""
        return self._run(_batches(batches), None, options, commit=False)

    def _run(
        self,
        batches: Mapping[str, Batch],
        batch_id: str | None,
        options: Mapping[str, Any] | None,
        *,
        commit: bool,
    ) -> Change:
        from holdfast import step

        started = time.perf_counter()
        base = self.ledger.version
        states = {table: self._current(table, base or None)[1] for table in batches}
        if batch_id is not None and (earlier := self._applied_before(batches, batch_id)) is not None:
            return self._repeated(list(states.values()), earlier)
        with self._context(base, commit=commit) as context:
            done = [
                step.apply(
                    context,
                    states[table],
                    base,
                    self._load(states[table]),
                    batch,
                    _read_options({**states[table].options, **(options or {})}),
                    commit=commit,
                )
                for table, batch in batches.items()
            ]
            takes_part = any(s.tracks("ind") for s in states.values())
            join = (lambda generator: generator) if takes_part else None
            action = "apply" if commit else "check"
            change = self._finish(context, base, action, done, join, batch_id, started, commit=commit)
        if commit:
            self._tidy_when_due()
        return replace(change, elapsed_s=time.perf_counter() - started)

    def drop(self, table: str) -> int:
        """Stop tracking a table; its history stays. Returns the new version."""
        base, state = self._current(table)
        gone = [
            ChangeRow(table, d.kind, "dropped", d.to_dict(), "the table was dropped")
            for d in self.dependencies(table=table)
        ]
        commits = [CommitRow(table, "drop", None, None)]
        generator = self._generator(base) if state.tracks("ind") else None
        if generator is None:
            return self._append(base, commits, gone)
        from holdfast.inclusions.inclusions import without_table

        with self._context(base) as context:
            known = self._load_inclusions(generator)
            after = without_table(self._values(context, generator), known, table)
            told = {"n_inds": after.n_inds}
            commits.append(CommitRow(SHARED, "shrink", after.state.to_dict(), told))
            version = self._append(base, commits, gone)
        self._inclusions = after
        return version

    def merge(self, table: str) -> int:
        """Merge all segments of a table into one, and the value runs; what holds stays as it is."""
        base, state = self._current(table)
        with self._context(base) as context:
            relation = context.relation(state, state.folder, "merging")
            columns = state.indexed_columns
            merged, number = relation.tidied(state.next_number, columns, state.orders, everything=True)
            commits = []
            if merged.segments != state.segments:
                detail = {"n_segments": len(merged.segments)}
                state = replace(state, segments=merged.segments, next_number=number)
                commits.append(CommitRow(table, "merge", state.to_dict(), detail))
            generator = self._generator(base) if state.tracks("ind") else None
            if generator is not None:
                after = self._values(context, generator).tidied(everything=True)
                if after.runs != generator.runs:
                    if not commits:
                        detail = {"n_segments": len(state.segments)}
                        commits.append(CommitRow(table, "merge", state.to_dict(), detail))
                    commits.append(CommitRow(SHARED, "merge", after.to_dict(), {"n_runs": len(after.runs)}))
            return self._append(base, commits, []) if commits else base

    def verify(self) -> int:
        """Check every file that the workspace needs against its checksum; how many there are.

        Needed are the files of the newest states, the covers of all versions (for time travel) and
        the ledger's. The first one that is missing or altered is named in a DamagedFileError.
        """
        n_ledger = self.ledger.verify()
        heads = self.ledger.heads()
        files: dict[str, FileRef] = {}
        for commit in self.ledger.states():
            if commit.state is None:
                continue
            newest = heads.get(commit.table) == commit.version
            if commit.table == SHARED:
                generator = GeneratorState.from_dict(commit.state)
                refs = generator.files() if newest else generator.covers()
            elif commit.table == LAKE:
                refs = LakeState.from_dict(commit.state).files() if newest else []
            else:
                refs = [ref for ref in litter.named_files(commit.state) if newest or litter.is_cover(ref)]
            files |= {ref.name: ref for ref in refs}
        for ref in files.values():
            check_file(self.root, ref, deep=True, fresh=True)
        stamp_files(self.root, files.values())
        return n_ledger + len(files)

    def tidy(self, *, grace_s: float = litter.GRACE_S) -> int:
        """Remove files that nothing needs any more; how many. See `core/store/litter.py` for the rule."""
        return litter.remove_litter(self.root, self.ledger, grace_s=grace_s)


def _batches(batches: Mapping[str, Mapping[str, Any]]) -> dict[str, Batch]:
    from holdfast.core.rows.batch import Batch

    if not batches:
        raise UsageError("no batch is given: map tables to their inserts, deletes or updates.")
    known = ("inserts", "deletes", "updates", "before", "after")
    for table, parts in batches.items():
        for name in parts:
            if name not in known:
                raise UsageError(
                    f"the batch of table {table!r} has an unknown part {shorten(name)}. "
                    f"Parts: {', '.join(known)}."
                )
    return {table: Batch(*(parts.get(name) for name in known)) for table, parts in batches.items()}


def _check_patterns(states: Sequence[TableState], patterns: Sequence[str]) -> None:
    """Every pattern names a column of one of the tables."""
    names = list(dict.fromkeys(name for state in states for name in state.schema.names))
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            tables = ", ".join(state.table for state in states)
            raise UnknownColumnError.from_missing(tables, None, pattern, names)


def _check_track(table: str, kinds: Sequence[str], nulls: str) -> None:
    if not table or len(table) > 200 or any(ord(c) < 32 for c in table):
        raise UsageError(f"{shorten(table)} cannot name a table: give 1 to 200 printable characters.")
    if not kinds:
        raise UsageError(
            f"no kind of dependency is given for table {table!r}. Kinds: {', '.join(known_kinds())}."
        )
    if nulls not in ("equal", "distinct"):
        raise UsageError(f"nulls is {shorten(nulls)}; expected 'equal' or 'distinct'.")


def _read_options(options: Mapping[str, Any] | None) -> Any:
    from holdfast.core.sources import ReadOptions

    known = [name for name in ReadOptions.__slots__ if name != "spellings"]
    for name in options or {}:
        if name not in ReadOptions.__slots__:
            raise UsageError(f"unknown reading option {shorten(name)}. Options: {', '.join(known)}.")
    given = dict(options or {})  # not by the codec: what is wrong with them is for people
    if "null_values" in given:
        given["null_values"] = tuple(given["null_values"])
    return ReadOptions(**given)


__all__ = ["Dependency", "Explanation", "IndExplanation", "LogEntry", "Workspace", "open"]
