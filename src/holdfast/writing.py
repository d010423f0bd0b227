"""What changing a workspace takes: an engine, staged files, the commit. `workspace.py` is the public face.

Everything before the commit only writes files that nothing names; the commit is one ledger append, whatever
the number of tables. So a crash at any point loses nothing committed, and a rejected batch leaves nothing
behind but litter.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.core.rows.table_state import TableState
from holdfast.core.store import format as marker
from holdfast.core.store import leases, litter
from holdfast.core.store.files import STAGING, STAMPS, FileRef, check_file, needs_stamp, stamp_files
from holdfast.core.store.ledger import Ledger
from holdfast.core.store.ledger_rows import SHARED, ChangeRow, CommitRow
from holdfast.core.words.change import Change, DependencyChange, Pin, TableChange
from holdfast.core.words.dependency import Ind
from holdfast.errors import (
    NOTHING_APPLIED,
    AbsentRowError,
    ConflictError,
    DamagedFileError,
    HoldfastError,
    UsageError,
    WorkspaceError,
    listing,
    shorten,
)
from holdfast.inclusions.generator import FOLDER as VALUES
from holdfast.inclusions.generator import GeneratorState
from holdfast.inspection import Inspector
from holdfast.kind import Context, Step, class_of, load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from holdfast.core.engine.engine import Engine, Mode
    from holdfast.inclusions.inclusions import InclusionStep, Known
    from holdfast.inclusions.values import Values

ProgressHook = Callable[[str, int, int], None]
Join = Callable[[GeneratorState], GeneratorState]
# Writers of other tables do not disturb this one: its commit is tried again on top of theirs.
COMMIT_ATTEMPTS = 20


class Writer(Inspector):
    """The writing half of a workspace, without its public methods."""

    def __init__(
        self,
        root: Path,
        *,
        spark: SparkSession | None = None,
        engine: Mode = "auto",
        create: bool = True,
        progress: ProgressHook | None = None,
    ) -> None:
        root = root.absolute()
        if create and not (root / marker.MARKER).exists():
            marker.create_marker(root)
        else:
            marker.check_marker(root)
        # Not `open`: a creator that was killed behind the marker has left a workspace without a ledger.
        super().__init__(root, Ledger.create(root))
        self._spark, self._mode, self._hook = spark, engine, progress
        self._engine: Engine | None = None
        self._known: dict[str, tuple[TableState, dict[str, Any]]] = {}  # table -> state, what it names, open
        self._inclusions: Known | None = None  # the newest that this process has worked out

    def close(self) -> None:
        """Let go of the engine. A Spark session that holdfast started lives until the process ends."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None
        self._known.clear()
        self._inclusions = None

    @property
    def engine(self) -> Engine:
        if self._engine is None:
            from holdfast.core.engine.engine import Engine

            starting = self._progress("starting Spark")
            on_start = None if starting is None else lambda: starting(0, 0)
            self._engine = Engine(self._spark, self._mode, on_start, self.root)
        return self._engine

    def _engine_for_reading(self) -> Engine:
        return self.engine

    def _finish(
        self,
        context: Context,
        base: int,
        action: str,
        done: Sequence[Step],
        join: Join | None,
        batch_id: str | None,
        started: float,
        *,
        commit: bool,
    ) -> Change:
        """From the steps of all tables: the inclusions among them, the report, and the commit.

        `join` adds the tables that are being tracked to the generator; None: no table takes part in
        inclusions. Tables that do share the generator. So if another table's batch was committed meanwhile,
        the inclusions are worked out again on top of it; the tables' own steps stand as they are.
        """
        states = [step.saved(self.root) for step in done] if commit else []
        seen = self.ledger.heads(base)
        for attempt in range(COMMIT_ATTEMPTS):
            inclusions = None if join is None else self._taken_in(context, base, join, done, commit=commit)
            change = self._change(base, action, done, inclusions, batch_id, started, commit=commit)
            if not commit:
                return change
            commits = [
                CommitRow(state.table, action, state.to_dict(), _detail(change, part, step.rounds), batch_id)
                for state, part, step in zip(states, change.tables, done, strict=True)
            ]
            if inclusions is not None:
                told = {"n_inds": change.n_inds, **change.accesses}
                commits.append(CommitRow(SHARED, action, inclusions.after.state.to_dict(), told, batch_id))
            try:
                change = replace(change, version=self._append(base, commits, _change_rows(change)))
                break
            except ConflictError:
                base = self.ledger.version
                heads = self.ledger.heads(base)
                moved = any(heads.get(step.table) != seen.get(step.table) for step in done)
                if moved or inclusions is None or attempt == COMMIT_ATTEMPTS - 1:
                    raise
        self._known.clear()
        for state, step in zip(states, done, strict=True):
            self._known[state.table] = state, dict(step.findings)
        if inclusions is not None:
            self._inclusions = inclusions.after
        return change

    def _change(
        self,
        base: int,
        action: str,
        done: Sequence[Step],
        inclusions: InclusionStep | None,
        batch_id: str | None,
        started: float,
        *,
        commit: bool,
    ) -> Change:
        spells = [self._spells(step, base, commit=commit) for step in done]
        own = [c for changes, _ in spells for c in changes]
        parts = [_summary(step, longest) for step, (_, longest) in zip(done, spells, strict=True)]
        return Change(
            action=action,
            version=base + 1 if commit else base,
            tables=tuple(parts),
            changes=(*own, *(inclusions.changes if inclusions is not None else ())),
            elapsed_s=time.perf_counter() - started,
            batch_id=batch_id,
            pins=(*(p for step in done for p in step.pins), *_ind_pins(inclusions, done)),
            n_inds=inclusions.after.n_inds if inclusions is not None else None,
            accesses=inclusions.accesses if inclusions is not None else {},
            notes=(
                *(text for step in done for text in step.notes),
                *(inclusions.notes if inclusions is not None else ()),
            ),
        )

    def _spells(self, step: Step, base: int, *, commit: bool) -> tuple[Sequence[DependencyChange], int]:
        """(changes, longest): the changes of a step, those that broke with how long they had held.

        `longest` is the longest of those listed; of a check, which may gate on it, of all that broke.
        """
        changes: list[DependencyChange] = []
        longest = 0
        for kind, news in step.news.items():
            broke = [c for c in news.changes if c.event == "broke"]
            if news.broken is None or not len(news.broken):
                changes += news.changes
                continue
            asked = news.broken[: len(broke)] if commit else news.broken
            held = self.held_versions(step.table, kind, asked, base + 1)
            spells = iter(held.tolist())
            changes += [replace(c, held=next(spells)) if c.event == "broke" else c for c in news.changes]
            longest = max(longest, int(held.max(initial=0)))
        return changes, longest

    def _taken_in(
        self, context: Context, base: int, join: Join, done: Sequence[Step], *, commit: bool
    ) -> InclusionStep:
        """The inclusions after the steps, on top of a version."""
        from holdfast.inclusions.inclusions import OtherTables, take_in

        generator = self._generator(base) or GeneratorState()
        known = self._load_inclusions(generator)
        others = OtherTables(lambda table: self._current(table, base)[1], self._keys_of)
        values = self._values(context, join(generator), commit=commit)
        return take_in(context, values, known, done, others, commit=commit)

    def _values(self, context: Context, state: GeneratorState, *, commit: bool = True) -> Values:
        from holdfast.inclusions.values import Values

        folder = VALUES if commit else context.staging
        return Values(
            context.root, folder, context.staging, state, self.engine, self._progress("finding inclusions")
        )

    def _load_inclusions(self, state: GeneratorState) -> Known:
        from holdfast.inclusions.inclusions import Known

        if self._inclusions is None or self._inclusions.state != state:
            self._inclusions = Known.load(self.root, state)
        return self._inclusions

    @contextlib.contextmanager
    def _context(self, base: int, *, commit: bool = True) -> Iterator[Context]:
        """What a step on top of a version works with; its staging folder is removed after it.

        A step that commits nothing needs no right to write: it is staged elsewhere then.
        """
        with contextlib.ExitStack() as job:
            root = self.root
            if not commit and not _writable(root):
                root = job.enter_context(_shadow(root))
            staging = job.enter_context(self._staging(base, root))
            try:
                yield Context(root, staging, self.engine, self._progress)
            except (LookupError, ValueError, AbsentRowError):
                # Perhaps of a file that was opened by its stamp and is not what it was.
                self._check_states(base)
                raise

    def _check_states(self, base: int) -> None:
        """Raise if a file of the states at a version is not what was written; once in a process."""
        for table, version in self.ledger.heads(base).items():
            for ref in litter.named_files(self.ledger.commit_row(version, table).state):
                check_file(self.root, ref, deep=True)

    def _tidy_when_due(self) -> None:
        """Remove litter, at most once an hour and workspace; never fails the commit before it."""
        with contextlib.suppress(HoldfastError, OSError):
            if litter.due(self.root):
                litter.remove_litter(self.root, self.ledger)

    def _progress(self, stage: str) -> Callable[[int, int], None] | None:
        hook = self._hook
        return None if hook is None else lambda done, total: hook(stage, done, total)

    @contextlib.contextmanager
    def _staging(self, base: int, root: Path | None = None) -> Iterator[str]:
        """A folder for the files of one job on top of a version, removed after it; while it is there, nobody
        takes the job's files for litter."""
        root = self.root if root is None else root
        name = f"{STAGING}/{secrets.token_hex(6)}"
        with contextlib.ExitStack() as lease:
            try:
                (root / name).mkdir(parents=True)
                lease.enter_context(leases.held(root / name, base))
            except OSError as error:
                shutil.rmtree(root / name, ignore_errors=True)
                raise WorkspaceError(
                    f"cannot write to the workspace {str(root)!r}: {error.strerror}. {NOTHING_APPLIED} "
                    "Check the disk's space and your rights, then run it again."
                ) from error
            try:
                yield name
            finally:
                shutil.rmtree(root / name, ignore_errors=True)

    def _load(self, state: TableState) -> dict[str, Any]:
        """What is known of a table, as the commit names it, by kind."""
        kept, findings = self._known.get(state.table, (None, {}))
        if kept is not None and kept.folder == state.folder and kept.kept == state.kept:
            return findings
        return load(self.root, state)

    def _append(self, base: int, commits: Sequence[CommitRow], changes: list[ChangeRow]) -> int:
        """Append to the ledger; on top of commits to other tables if there were any meanwhile."""
        names = [c.table for c in commits]
        heads = self.ledger.heads(base)
        seen = [heads.get(name) for name in names]
        files = {ref.name: ref for commit in commits for ref in litter.named_files(commit.state)}
        for _ in range(COMMIT_ATTEMPTS):
            self._check_named(files.values())
            try:
                version = self.ledger.append(base, commits, changes)
            except ConflictError:
                newest = self.ledger.version
                heads = self.ledger.heads(newest)
                if newest == base or [heads.get(name) for name in names] != seen:
                    raise
                base = newest
            else:
                with contextlib.suppress(HoldfastError, OSError):  # the commit stands
                    self._stamp(files, {name: heads[name] for name in names if name in heads})
                return version
        raise ConflictError(
            f"other writers kept the workspace busy for {COMMIT_ATTEMPTS} attempts. {NOTHING_APPLIED} "
            "Run it again."
        )

    def _check_named(self, files: Iterable[FileRef]) -> None:
        """Raise if a file that a commit is to name is not there, with its length. Cost: a `stat` for each."""
        for ref in files:
            try:
                check_file(self.root, ref, deep=False)
            except DamagedFileError:
                raise DamagedFileError(
                    f"the file {ref.name!r} of the workspace {str(self.root)!r}, which the new version would "
                    f"name, is gone or cut short. {NOTHING_APPLIED} Run it again; if the file is an older "
                    "one, 'holdfast verify' says so, and it has to come from a backup."
                ) from None

    def _stamp(self, files: Mapping[str, FileRef], heads: Mapping[str, int]) -> None:
        """Stamp the large files that a commit has just named first, and those that were hashed for it."""
        large = [ref for ref in files.values() if needs_stamp(self.root, ref)]
        if large:
            rows = (self.ledger.commit_row(version, table) for table, version in heads.items())
            older = {ref.name for row in rows for ref in litter.named_files(row.state)}
            stamp_files(self.root, large, files.keys() - older)

    def _applied_before(self, tables: Iterable[str], batch_id: str) -> CommitRow | None:
        """The newest commit of a batch id, if all of these tables know it; None if none does."""
        rows = {table: self.ledger.find_batch(table, batch_id) for table in tables}
        versions = {table: row.version for table, row in rows.items() if row is not None}
        if versions and len(versions) < len(rows):
            applied = [f"{table} (version {version})" for table, version in versions.items()]
            rest = [table for table in rows if table not in versions]
            raise UsageError(
                f"the batch {shorten(batch_id)} was applied before to {listing(applied)}, but not to "
                f"{listing(rest)}. {NOTHING_APPLIED} Apply what is left under an id of its own, or all of it "
                "under a new one."
            )
        return max((row for row in rows.values() if row is not None), key=lambda r: r.version, default=None)

    def _repeated(self, states: Sequence[TableState], earlier: CommitRow) -> Change:
        parts = []
        for state in states:
            known = self._load(state)
            summaries = (class_of(kind).summary(known[kind], state, tracked=False) for kind in known)
            parts.append(TableChange(state.table, 0, 0, state.n_rows, tuple(s for s in summaries if s)))
        return Change(
            action="apply",
            version=earlier.version,
            tables=tuple(parts),
            changes=(),
            elapsed_s=0.0,
            batch_id=earlier.batch_id,
            repeated=True,
        )


def _writable(root: Path) -> bool:
    """Whether jobs can be staged in a workspace."""
    folder = root / STAGING
    return os.access(folder if folder.is_dir() else root, os.W_OK)


@contextlib.contextmanager
def _shadow(root: Path) -> Iterator[Path]:
    """A folder that looks like the workspace, with a staging folder of its own, for a job that only reads.

    It is made of links, so nothing is copied. It lies where temporary files do (TMPDIR).
    """
    try:
        shadow = Path(tempfile.mkdtemp(prefix="holdfast-check-"))
    except OSError as error:
        raise WorkspaceError(
            f"the workspace {str(root)!r} is read-only, and no temporary folder can be made: "
            f"{error.strerror}. Set TMPDIR to a folder with room."
        ) from error
    try:
        (shadow / STAGING).mkdir()
        for path in root.iterdir():
            if path.name != STAGING:
                (shadow / path.name).symlink_to(path)
        (shadow / STAMPS).symlink_to(root / STAMPS)
        yield shadow
    finally:
        shutil.rmtree(shadow, ignore_errors=True)


def _summary(step: Step, longest: int) -> TableChange:
    known = step.of(step.findings)
    summaries = (cls.summary(now, step.state, tracked=step.before is None) for _, cls, now in known)
    return TableChange(
        step.table,
        sum(s.n_rows for s in step.added),
        len(step.row_ids),
        step.rows.n_rows,
        tuple(s for s in summaries if s is not None),
        sum(news.unlisted for news in step.news.values()),
        longest,
    )


def _ind_pins(inclusions: InclusionStep | None, done: Sequence[Step]) -> Iterator[Pin]:
    """The pinned inclusions that a batch could have touched."""
    touched = {step.table for step in done}
    for pin in inclusions.after.state.pins if inclusions is not None else ():
        if touched & {pin.dependent.table, pin.referenced.table}:
            yield Pin(pin.dependent.table, pin.dependent.columns, pin.holds, pin.referenced)


def _detail(change: Change, part: TableChange, rounds: int) -> dict[str, Any]:
    """What the log says of one table of a commit."""
    return {
        "n_inserted": part.n_inserted,
        "n_deleted": part.n_deleted,
        "n_rows": part.n_rows,
        **{name: n for name, n in part.fields.items() if name.startswith("n_") and name != "n_predicates"},
        "n_inds": change.n_inds,
        "n_changes": len(change.changes) + part.unlisted,
        "rounds": rounds,
        "elapsed_s": round(change.elapsed_s, 4),
    }


def _change_rows(change: Change) -> list[ChangeRow]:
    rows = []
    for c in change.changes:
        table = c.dependency.dependent.table if isinstance(c.dependency, Ind) else c.dependency.table
        witnesses = [[r.stored() for r in group] for group in c.witnesses] or None
        rows.append(ChangeRow(table, c.dependency.kind, c.event, c.dependency.to_dict(), c.reason, witnesses))
    return rows
