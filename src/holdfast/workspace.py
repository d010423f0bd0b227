"""The facade: a workspace of tables whose dependencies are kept true.

    ws = holdfast.open("my.hold")
    ws.track("orders", "orders.parquet")
    change = ws.apply("orders", inserts=new_rows, deletes=old_rows)
    print(change)

A batch runs through the pipeline in a visible row of steps: resolve (read, type, encode, locate),
delete, insert, index, merge, commit. Everything before the commit only writes files that nothing
names; the commit is one ledger append. So a crash at any point loses nothing committed, and a
rejected batch leaves nothing behind but litter, which `tidy` removes.

Reading (`dependencies`, `log`, most of `explain`) imports neither Spark nor Numba.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.errors import (
    NOTHING_APPLIED,
    ConflictError,
    HoldfastError,
    TableExistsError,
    UnknownColumnError,
    UsageError,
    WorkspaceError,
    listing,
    shorten,
)
from holdfast.history import Explanation, LogEntry, Reader
from holdfast.model.change import Change, DependencyChange, Pin
from holdfast.model.dependency import KINDS, Dependency
from holdfast.model.schema import Nulls, Schema
from holdfast.storage import format as marker
from holdfast.storage import litter
from holdfast.storage.files import FileRef, check_file
from holdfast.storage.ledger import Ledger
from holdfast.storage.ledger_rows import ChangeRow, CommitRow
from holdfast.storage.tables import TableState, table_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from holdfast.discovery.keys import KeyState
    from holdfast.pipeline.batch import Batch
    from holdfast.pipeline.engine import Engine, Mode
    from holdfast.pipeline.relation import Relation

ProgressHook = Callable[[str, int, int], None]
STAGING = "staging"
# Writers of other tables do not disturb this one: its commit is tried again on top of theirs.
COMMIT_ATTEMPTS = 20


def open(
    path: str | Path,
    *,
    spark: SparkSession | None = None,
    engine: Mode = "auto",
    create: bool = True,
    progress: ProgressHook | None = None,
) -> Workspace:
    """Open the workspace at a path; make it if there is none and `create` is true.

    `engine` says where work runs: "auto" (small work inline, the rest on Spark), "inline" or
    "spark". Spark is started when it is first needed, unless a session is given.
    """
    return Workspace(Path(path), spark=spark, engine=engine, create=create, progress=progress)


class Workspace(Reader):
    """Tables, their dependencies, and how they came to be."""

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
        self._known: dict[str, KeyState] = {}  # evidence file -> the state it holds, open

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the engine. A Spark session that holdfast started lives until the process ends."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None
        self._known.clear()

    @property
    def engine(self) -> Engine:
        if self._engine is None:
            from holdfast.pipeline.engine import Engine

            starting = self._progress("starting Spark")
            on_start = None if starting is None else lambda: starting(0, 0)
            self._engine = Engine(self._spark, self._mode, on_start)
        return self._engine

    def _engine_for_reading(self) -> Engine:
        return self.engine

    # -- changing -----------------------------------------------------------------------------

    def track(
        self,
        table: str,
        source: Any,
        *,
        kinds: Sequence[str] = ("ucc",),
        nulls: Nulls = "equal",
        row_key: Sequence[str] = (),
        max_columns: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Change:
        """Start to track a table: read it, find its dependencies, commit.

        `options` says how files are read (format, header, delimiter, quote, encoding, null_values,
        types). Batches are read the same way unless they say otherwise.
        """
        started = time.perf_counter()
        _check_track(table, kinds, nulls, max_columns)
        base = self.ledger.version
        if table in self.ledger.heads():
            raise TableExistsError(
                f"table {table!r} is tracked already (version {base}). Nothing was changed. Feed it batches "
                "with 'holdfast apply', or drop it first with 'holdfast drop'."
            )
        from holdfast.discovery import keys
        from holdfast.pipeline.encode import Target, encode_new, plan

        folder = table_folder(table)
        with self._staging() as staging:
            target = Target(self.root, folder, table, None, nulls, self.engine, self._progress("reading"))
            planned = plan(source, _read_options(options), target, self.root / staging)
            for name in row_key:
                if name not in planned.names:
                    raise UnknownColumnError.from_missing(table, None, name, planned.names)
            encoded = encode_new(planned, target, list(row_key), 0)
            relation = self._relation(
                encoded.schema, folder, staging, nulls, row_key, encoded.segments, "finding keys"
            )
            found = keys.discover(relation, encoded.masks, encoded.witnesses, max_columns or 0)
            columns = keys.index_columns_for(relation, found.cover, ())
            relation = relation.indexed(columns)
            state = TableState(
                table=table,
                folder=folder,
                schema=encoded.schema,
                kinds=tuple(kinds),
                nulls=nulls,
                row_key=tuple(row_key),
                max_columns=max_columns or 0,
                options=encoded.options.to_dict(),
                next_number=1 + max((s.number for s in relation.segments), default=-1),
                segments=relation.segments,
                index_columns=tuple(columns),
                **self._save(folder, found),
            )
            uccs = self._uccs(table, encoded.schema, found.cover.masks)
            changes = tuple(DependencyChange("appeared", u, "holds in the table as tracked") for u in uccs)
            change = Change(
                table=table,
                action="track",
                version=base + 1,
                n_inserted=relation.n_rows,
                n_deleted=0,
                n_rows=relation.n_rows,
                n_keys=len(found.cover),
                changes=changes,
                elapsed_s=time.perf_counter() - started,
                max_columns=max_columns or 0,
            )
            change = self._commit(base, change, state, rounds=found.rounds)
            self._known[state.evidence.name] = found
        return change

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
        With a `batch_id` a batch is applied once: a second time is a no-op that says so.
        """
        from holdfast.pipeline.batch import Batch

        batch = Batch(inserts, deletes, updates, before, after)
        return self._run(table, batch, batch_id, options, commit=True)

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
        from holdfast.pipeline.batch import Batch

        batch = Batch(inserts, deletes, updates, before, after)
        return self._run(table, batch, None, options, commit=False)

    def _run(
        self,
        table: str,
        batch: Batch,
        batch_id: str | None,
        options: Mapping[str, Any] | None,
        *,
        commit: bool,
    ) -> Change:
        from holdfast.discovery import keys
        from holdfast.discovery.report import net_changes
        from holdfast.pipeline.batch import Resolver
        from holdfast.pipeline.encode import Target

        started = time.perf_counter()
        base, state = self._current(table)
        if batch_id is not None and (earlier := self.ledger.find_batch(table, batch_id)) is not None:
            return self._repeated(state, earlier)
        known = self._load(state)
        with self._staging() as staging:
            folder = state.folder if commit else staging
            relation = self._relation(
                state.schema, folder, staging, state.nulls, state.row_key, state.segments, "applying"
            )
            progress = self._progress("reading")
            target = Target(self.root, folder, table, base, state.nulls, self.engine, progress)
            resolver = Resolver(
                relation,
                target,
                state.row_key,
                _read_options({**state.options, **(options or {})}),
                self.root / staging,
                replace(target, folder=staging),
            )
            resolved = resolver.resolve(batch, state.next_number)
            after, columns = known, list(state.index_columns)
            old = relation
            if len(resolved.row_ids):
                relation = relation.without_rows(resolved.row_ids)
                after = keys.delete(relation, after, resolved.row_ids)
            rounds = after.rounds if len(resolved.row_ids) else 0  # not those of the batch before
            next_number = state.next_number
            if resolved.segments:
                next_number = 1 + max(s.number for s in resolved.segments)
                columns = keys.index_columns_for(relation, after.cover, columns)
                relation = relation.with_segments(resolved.segments).indexed(columns)
                numbers = {s.number for s in resolved.segments}
                added = [s for s in relation.segments if s.number in numbers]
                after = keys.insert(relation, after, added, columns)
                rounds += after.rounds
            if commit:
                columns = keys.index_columns_for(relation, after.cover, columns)
                before_merge = relation
                relation, next_number = relation.indexed(columns).tidied(next_number, columns)
            else:
                before_merge = relation
            changes = net_changes(table, known, after, old, before_merge)
            pins = self._pins(state, after.cover.masks, before_merge)
            change = Change(
                table=table,
                action="apply" if commit else "check",
                version=base + 1 if commit else base,
                n_inserted=resolved.n_inserted,
                n_deleted=len(resolved.row_ids),
                n_rows=relation.n_rows,
                n_keys=len(after.cover),
                changes=changes,
                elapsed_s=time.perf_counter() - started,
                batch_id=batch_id,
                max_columns=state.max_columns,
                pins=pins,
            )
            if not commit:
                return change
            saved = self._save(state.folder, after, known, state)
            state = replace(
                state,
                next_number=next_number,
                segments=relation.segments,
                index_columns=tuple(columns),
                pins=tuple((p.columns, p.holds) for p in pins),
                **saved,
            )
            change = self._commit(base, change, state, rounds=rounds)
            self._known.clear()
            self._known[state.evidence.name] = after
        self._tidy_when_due()
        return replace(change, elapsed_s=time.perf_counter() - started)

    def pin(self, table: str, columns: Sequence[str], *, remove: bool = False) -> Pin:
        """Rely on a combination: every batch says whether it holds, and `check` gates on it."""
        base, state = self._current(table)
        positions = self._positions(state, base, columns)
        named = tuple(state.schema.names[p] for p in positions)
        rest = tuple(p for p in state.pins if p[0] != named)
        if remove and len(rest) == len(state.pins):
            raise UsageError(f"[{listing(named)}] of table {table!r} is not pinned.")
        holds = bool(self._keys_inside(state, positions))
        if not holds and 0 < state.max_columns < len(named):
            holds = not self._duplicates(state, positions)
        state = replace(state, pins=rest if remove else (*rest, (named, holds)))
        action = "unpin" if remove else "pin"
        self._append(base, CommitRow(table, action, state.to_dict(), {"columns": list(named)}), [])
        return Pin(table, named, holds)

    def drop(self, table: str) -> int:
        """Stop tracking a table; its history stays. Returns the new version."""
        base, _ = self._current(table)
        gone = [
            ChangeRow(table, d.kind, "dropped", d.to_dict(), "the table was dropped")
            for d in self.dependencies(table=table)
        ]
        return self._append(base, CommitRow(table, "drop", None, None), gone)

    def merge(self, table: str) -> int:
        """Merge all segments of a table into one; its rows and dependencies stay as they are."""
        base, state = self._current(table)
        with self._staging() as staging:
            relation = self._relation(
                state.schema, state.folder, staging, state.nulls, state.row_key, state.segments, "merging"
            )
            merged, number = relation.tidied(state.next_number, state.index_columns, everything=True)
            if merged.segments == state.segments:
                return base
            detail = {"n_segments": len(merged.segments)}
            state = replace(state, segments=merged.segments, next_number=number)
            return self._append(base, CommitRow(table, "merge", state.to_dict(), detail), [])

    def verify(self) -> int:
        """Check every file that the workspace needs against its checksum; how many there are.

        Needed are the files of the newest states, the covers of all versions (for time travel) and
        the ledger's. The first one that is missing or altered is named in a DamagedFileError.
        """
        n_ledger = self.ledger.verify()
        heads = set(self.ledger.heads().values())
        files: dict[str, FileRef] = {}
        for commit in self.ledger.states():
            if commit.state is not None:
                state = TableState.from_dict(commit.state)
                refs = state.files() if commit.version in heads else [state.cover]
                files |= {ref.name: ref for ref in refs}
        for ref in files.values():
            check_file(self.root, ref, deep=True, fresh=True)
        return n_ledger + len(files)

    def tidy(self, *, grace_s: float = litter.GRACE_S) -> int:
        """Remove files that nothing needs any more; how many. See `storage/litter.py` for the rule."""
        return litter.remove_litter(self.root, self.ledger, grace_s=grace_s)

    # -- inside -------------------------------------------------------------------------------

    def _tidy_when_due(self) -> None:
        """Remove litter, at most once an hour and workspace; never fails the commit before it."""
        with contextlib.suppress(HoldfastError, OSError):
            if litter.due(self.root):
                self.tidy()

    def _progress(self, stage: str) -> Callable[[int, int], None] | None:
        hook = self._hook
        return None if hook is None else lambda done, total: hook(stage, done, total)

    def _relation(
        self,
        schema: Schema,
        folder: str,
        staging: str,
        nulls: Nulls,
        row_key: Sequence[str],
        segments: Sequence[Any],
        stage: str,
    ) -> Relation:
        from holdfast.pipeline.relation import Relation

        locator = tuple(schema.names.index(c) for c in row_key) or tuple(range(len(schema)))
        return Relation(
            self.root,
            folder,
            staging,
            schema,
            nulls,
            locator,
            tuple(segments),
            self.engine,
            self._progress(stage),
        )

    @contextlib.contextmanager
    def _staging(self) -> Iterator[str]:
        """A folder for the files of one job, removed after it."""
        name = f"{STAGING}/{secrets.token_hex(6)}"
        try:
            (self.root / name).mkdir(parents=True)
        except OSError as error:
            raise WorkspaceError(
                f"cannot write to the workspace {str(self.root)!r}: {error.strerror}."
            ) from error
        try:
            yield name
        finally:
            shutil.rmtree(self.root / name, ignore_errors=True)

    def _save(
        self, folder: str, found: KeyState, before: KeyState | None = None, state: TableState | None = None
    ) -> dict[str, Any]:
        """Write cover and evidence as new files, unless they are what the last commit has."""
        from holdfast.storage.bundle import write_bundle
        from holdfast.storage.files import unique_name

        saved = {}
        for what, value, old in (
            ("cover", found.cover, before.cover if before else None),
            ("evidence", found.evidence, before.evidence if before else None),
        ):
            if state is not None and value is old:
                saved[what] = getattr(state, what)
                continue
            arrays = {"masks": value.masks} if what == "cover" else found.evidence.to_arrays()
            name = unique_name(folder, what, ".arrow")
            saved[what] = write_bundle(self.root, name, arrays, {"holdfast": what})
        return saved

    def _load(self, state: TableState) -> KeyState:
        """The keys and their evidence, as the commit names them."""
        from holdfast.discovery.keys import KeyState
        from holdfast.kernels.pairs import WITNESSES
        from holdfast.state.cover import Cover
        from holdfast.state.evidence import WitnessedEvidence
        from holdfast.storage.bundle import open_bundle

        found = self._known.get(state.evidence.name)
        if found is None:
            masks = self._cover_masks(state)
            bundle = open_bundle(self.root, state.evidence, "evidence")
            arrays = {name: bundle.array(name) for name in ("masks", "witnesses")}
            evidence = WitnessedEvidence.from_arrays(arrays, masks.shape[1], WITNESSES)
            found = KeyState(evidence, Cover(masks, len(state.schema), state.max_columns))
        return found

    def _commit(self, base: int, change: Change, state: TableState, *, rounds: int) -> Change:
        detail = {
            "n_inserted": change.n_inserted,
            "n_deleted": change.n_deleted,
            "n_rows": change.n_rows,
            "n_keys": change.n_keys,
            "n_changes": len(change.changes),
            "rounds": rounds,
            "elapsed_s": round(change.elapsed_s, 4),
        }
        rows = [
            ChangeRow(
                change.table,
                c.dependency.kind,
                c.event,
                c.dependency.to_dict(),
                c.reason,
                [[r.to_dict() for r in pair] for pair in c.witnesses] or None,
            )
            for c in change.changes
        ]
        commit = CommitRow(change.table, change.action, state.to_dict(), detail, change.batch_id)
        return replace(change, version=self._append(base, commit, rows))

    def _append(self, base: int, commit: CommitRow, changes: list[ChangeRow]) -> int:
        """Append to the ledger; on top of commits to other tables if there were any meanwhile."""
        seen = self.ledger.heads(base).get(commit.table)
        for _ in range(COMMIT_ATTEMPTS):
            try:
                return self.ledger.append(base, commit, changes)
            except ConflictError:
                newest = self.ledger.version
                if newest == base or self.ledger.heads(newest).get(commit.table) != seen:
                    raise
                base = newest
        raise ConflictError(
            f"other writers kept the workspace busy for {COMMIT_ATTEMPTS} attempts. {NOTHING_APPLIED} "
            "Run it again."
        )

    def _repeated(self, state: TableState, earlier: CommitRow) -> Change:
        masks = self._cover_masks(state)
        return Change(
            table=state.table,
            action="apply",
            version=earlier.version,
            n_inserted=0,
            n_deleted=0,
            n_rows=state.n_rows,
            n_keys=len(masks),
            changes=(),
            elapsed_s=0.0,
            batch_id=earlier.batch_id,
            max_columns=state.max_columns,
            repeated=True,
        )

    def _pins(self, state: TableState, cover: np.ndarray[Any, Any], relation: Relation) -> tuple[Pin, ...]:
        """The pins after a batch; what is wider than the bound on keys is looked up in the rows."""
        from holdfast.kernels.masks import mask_of

        if not state.pins:
            return ()
        keys = [set(u.columns) for u in self._uccs(state.table, state.schema, cover)]
        pinned = [columns for columns, _ in state.pins]
        holds = [any(k <= set(p) for k in keys) for p in pinned]
        wide = [i for i, p in enumerate(pinned) if not holds[i] and 0 < state.max_columns < len(p)]
        if wide:
            positions = [self._positions(state, None, pinned[i]) for i in wide]
            found = relation.validate(np.stack([mask_of(p, cover.shape[1]) for p in positions]))
            for i, refuted in zip(wide, found.refuted, strict=True):
                holds[i] = not refuted
        return tuple(Pin(state.table, p, h) for p, h in zip(pinned, holds, strict=True))


def _check_track(table: str, kinds: Sequence[str], nulls: str, max_columns: int | None) -> None:
    if not table or len(table) > 200 or any(ord(c) < 32 for c in table):
        raise UsageError(f"{shorten(table)} cannot name a table: give 1 to 200 printable characters.")
    for kind in kinds:
        if kind not in KINDS:
            raise UsageError(
                f"dependencies of kind {shorten(kind)} are not known. Kinds: {', '.join(KINDS)}."
            )
    if not kinds:
        raise UsageError(f"no kind of dependency is given for table {table!r}. Kinds: {', '.join(KINDS)}.")
    if nulls not in ("equal", "distinct"):
        raise UsageError(f"nulls is {shorten(nulls)}; expected 'equal' or 'distinct'.")
    if max_columns is not None and max_columns < 1:
        raise UsageError(f"max_columns is {max_columns}; expected at least 1, or None for no bound.")


def _read_options(options: Mapping[str, Any] | None) -> Any:
    from holdfast.pipeline.sources import ReadOptions

    known = [name for name in ReadOptions.__slots__ if name != "spellings"]
    for name in options or {}:
        if name not in ReadOptions.__slots__:
            raise UsageError(f"unknown reading option {shorten(name)}. Options: {', '.join(known)}.")
    return ReadOptions.from_dict(options or {})


__all__ = ["Dependency", "Explanation", "LogEntry", "Workspace", "open"]
