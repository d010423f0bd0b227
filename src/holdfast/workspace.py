"""The facade: a workspace of tables whose dependencies are kept true.

    ws = holdfast.open("my.hold")
    ws.track("orders", "orders.parquet")
    change = ws.apply("orders", inserts=new_rows, deletes=old_rows)
    print(change)

A batch runs through the pipeline in a visible row of steps: of each table resolve (read, type, encode,
locate), delete, insert, index, merge (`step.py`); then what holds among tables, the report and the commit
(`commit.py`). Everything before the commit only writes files that nothing names; the commit is one ledger
append, whatever the number of tables. So a crash at any point loses nothing committed, and a rejected batch
leaves nothing behind but litter, which `tidy` removes.

Reading (`dependencies`, `log`, most of `explain`) imports neither Spark nor Numba.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from holdfast.commit import Committer
from holdfast.core.rows.writer import ProgressHook, Writer
from holdfast.core.store import litter
from holdfast.core.store.change_log import read_log
from holdfast.core.store.ledger_rows import ChangeRow, CommitRow
from holdfast.core.store.root import workspace_root
from holdfast.core.store.tabular import Dependencies, Log
from holdfast.core.words.change import Change, Pin
from holdfast.core.words.dependency import Side
from holdfast.core.words.display import Displayed, notebook_progress
from holdfast.core.words.options import BatchParts, TrackOptions, check_share
from holdfast.core.words.reliance import Muted, PinTerms, Wanted
from holdfast.core.words.schema import Schema
from holdfast.errors import TableExistsError
from holdfast.kind import Explained, Query, across_of, check_kind, muted_of
from holdfast.kind import kinds as known_kinds
from holdfast.kinds import Readers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from holdfast.core.cover.violating_rows import ViolatingRows
    from holdfast.core.engine.engine import Mode
    from holdfast.core.rows.batch import Batch
    from holdfast.muting import Mutes, Question
    from holdfast.pinning import PinChange, Pins


def open(
    path: str | Path,
    *,
    spark: SparkSession | None = None,
    engine: Mode = "auto",
    create: bool = True,
    progress: ProgressHook | Literal[False] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Workspace:
    """Open the workspace at a path or URL; make it if there is none and `create` is true.

    A URL is file://, or one of an object store: s3://, gs://, az://, abfss://. Credentials come from the
    environment or from `storage_options`, by the names that Delta Lake has for them; they are never written.

    `engine` says where work runs: "auto" (small work inline, the rest on Spark), "inline" or
    "spark". Spark is started when it is first needed, unless a session is given.

    `progress` is called with what is going on: a stage, how much is done, and of how much (0: not known). In
    a notebook a line below the cell says it, unless `progress` is False.
    """
    root = workspace_root(path, storage_options)
    if progress is None:
        progress = notebook_progress()
    return Workspace(Writer(root, spark=spark, engine=engine, create=create, progress=progress or None))


class Workspace(Readers, Displayed):
    """Tables, their dependencies, and how they came to be."""

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer)
        self.root, self.ledger, self._tables = writer.root, writer.ledger, writer.tables
        self._committer = Committer(self.writer, self)

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the engine. A Spark session that holdfast started lives until the process ends."""
        self.writer.close()
        self._committer.forget()

    # -- reading ------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The newest version of the workspace; 0 before anything is tracked."""
        return self.ledger.version

    def tables(self, at: int | None = None) -> list[str]:
        """The names of the tables that are tracked."""
        return self._tables.names(at)

    def kinds(self, table: str, at: int | None = None) -> tuple[str, ...]:
        """The kinds of dependencies that are kept for a table."""
        return self._tables.state(table, at).kinds

    def schema(self, table: str, at: int | None = None) -> Schema:
        """The columns of a table, and their types."""
        return self._tables.state(table, at).schema

    def n_rows(self, table: str, at: int | None = None) -> int:
        return self._tables.state(table, at).n_rows

    def dependencies(
        self,
        kind: str | None = None,
        table: str | None = None,
        at: int | None = None,
        *,
        max_error: float = 0.0,
        with_empty: bool = False,
        ranked: bool = False,
    ) -> Dependencies:
        """The dependencies that hold now, or held at a version: the cover, whole.

        `max_error` also lists what almost holds. Inclusions: of which at most that share of the distinct
        values is missing. Functional dependencies and keys: the minimal ones that at most that share of the
        pairs of rows violates, from counted evidence; at the newest version any share, at older ones the one
        that the table is tracked with. A table without counted evidence has its exact ones listed, unless
        functional dependencies are asked for: then it is an error. Keys that almost hold are no wider than
        the table's bound on left-hand sides.

        `with_empty` lets columns without values take part in inclusions. The inclusions of a table are those
        with one of its columns on either side.

        `ranked` lists them as reports do, what means most first (`core/words/ranks.py`); else they come by
        table and kind, short ones first.
        """
        check_kind(kind)
        check_share(max_error)
        query = Query(kind, table, self._tables.newest(at), max_error, with_empty)
        listed = list(self.listed(query))
        return Dependencies(self.order(query.at).sorted(listed) if ranked else listed)

    def explain(
        self, table: str, question: str | Sequence[str], *, referenced: Side | None = None
    ) -> Explained:
        """Whether something holds now, since which version, and the rows that prove or broke it.

        Columns ask whether they are unique; with `referenced`, whether they are included in those. A text is
        a functional dependency (`zip -> city`), or a rule about two rows (`not(t.zip = s.zip and t.city !=
        s.city)`) or about each (`net <= gross`). It need not be one that is listed.
        """
        return self.explained(table, question, referenced)

    def violations(
        self,
        table: str,
        question: str | Sequence[str],
        *,
        referenced: Side | None = None,
        limit: int | None = None,
        as_pairs: bool = False,
    ) -> ViolatingRows:
        """The rows that violate something now, in groups where there are such, and the fewest to remove.

        The question is one that `explain` understands; its kind need not be tracked, but for inclusions. The
        answer goes on as `to_arrow`, `to_pandas` or, for more rows than fit, `batches`. `limit`: of the first
        rows only. `as_pairs`: of a rule about two rows the pairs.
        """
        return self.violating(*self.asked(table, question, referenced), limit, as_pairs=as_pairs)

    def pins(self, table: str | None = None, at: int | None = None) -> list[Pin]:
        """What is pinned, on which terms, and whether it holds: keys, rules, inclusions in other tables."""
        return list(self.pinned(table, self._tables.newest(at)))

    def muted(self, table: str | None = None, at: int | None = None) -> list[Muted]:
        """What is muted of a table, or of all, and why."""
        return [m for state in self._tables.chosen(table, self._tables.newest(at)) for m in muted_of(state)]

    def log(self, table: str | None = None) -> Log:
        """What each version did and changed, oldest first; of a table, what others did to it as well."""
        return Log(read_log(self.ledger, table))

    def sizes(self) -> Mapping[str, int]:
        """Bytes of the live files by what they are for.

        `locators`: what finds rows by content, for deletes and updates; `rows`: the rest of the segments;
        `indexes`: what batches are looked up in; `kept`: covers and evidence of all classes; `values`: what
        dependencies among tables follow from.
        """
        sizes = dict.fromkeys(("locators", "rows", "indexes", "kept", "values"), 0)
        at = self._tables.newest()
        for state in self._tables.chosen(None, at):
            for ref in state.segments:
                locator = 12 * ref.n_rows if state.locator else 0  # a 64-bit hash and a 32-bit position
                sizes["locators"] += locator
                sizes["rows"] += ref.file.length - locator + (ref.deletes.length if ref.deletes else 0)
                sizes["indexes"] += sum(file.length for _, file in (*ref.indexes, *ref.orders))
            sizes["kept"] += sum(file.length for file in litter.named_files(dict(state.kept)))
        for kind in across_of(known_kinds()):
            files = litter.named_files(self._committer.among(kind, at)[0])
            sizes["values"] += sum(file.length for file in files)
        return {**sizes, "total": sum(sizes.values())}

    # -- changing -----------------------------------------------------------------------------

    def track(self, table: str, source: Any, **how: Unpack[TrackOptions]) -> Change:
        """Start to track a table: read it, find its dependencies, commit. See `track_all` for the options."""
        return self.track_all({table: source}, **how)

    def track_all(self, sources: Mapping[str, Any], **how: Unpack[TrackOptions]) -> Change:
        """Start to track tables: each is read once, and all of them are one commit.

        `kinds` are what is kept ("ucc": keys); `nulls` are "equal" (one value like any other) or "distinct";
        `row_key` are columns that batches may name rows by. `options` says how files are read (format,
        header, names, delimiter, quote, comment, encoding, null_values, dates, decimal, thousands, types,
        sql). What is recognised in a CSV file without them is in the change's notes. Batches are read
        alike unless they say otherwise. `append_only` tables take no deletes, and their state is smaller.

        For keys (kind "ucc"): `max_columns` bounds their size.

        For inclusions (kind "ind"): `as_text` compares columns by their text; `columns` and `exclude` are
        patterns that choose the columns that take part; `max_arity` bounds inclusions of several columns (4
        unless said otherwise; it is the workspace's).

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

        Column profiles (kind "profile") have no options.
        """
        from holdfast import step

        started = time.perf_counter()
        wanted, across = step.wanted(sources, how)
        base = self.ledger.version
        heads = self.ledger.heads(base)
        for table in sources:
            if table in heads:
                raise TableExistsError(
                    f"table {table!r} is tracked already (version {base}). Nothing was changed. Feed it "
                    "batches with 'holdfast apply', or drop it first with 'holdfast drop'."
                )
        with self.writer.context(base) as context:
            steps = [step.track(context, table, source, wanted) for table, source in sources.items()]
            step.check_patterns([step.state for step in steps], how)
            return self._committer.commit(context, base, "track", steps, across, None, started, commit=True)

    def apply(
        self,
        table: str,
        *,
        batch_id: str | None = None,
        options: Mapping[str, Any] | None = None,
        **parts: Unpack[BatchParts],
    ) -> Change:
        """Apply a batch: deletes first, then inserts, one commit, one report of the net change.

        Parts are any sources: `inserts`, `deletes`, `updates`, `before` and `after`, `upserts`, `snapshot`.
        `updates` are rows with the row key and new values; `before` and `after` are full rows. `upserts` are
        rows with the row key: those whose key is there are updated, the others inserted. `snapshot` is the
        whole table as it is to be: the difference to what is tracked is the batch, rows in both stay; one
        without rows is refused unless `allow_empty`, as it would delete all.
        With a `batch_id` a batch is applied once: a second time is a no-op that says so. An id belongs to
        one life of a table: after `drop` and `track` it is a new one.
        """
        from holdfast.core.rows.batch import Batch

        return self._run({table: Batch(**parts)}, batch_id, options, commit=True)

    def apply_all(
        self,
        batches: Mapping[str, Mapping[str, Any]],
        *,
        batch_id: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Change:
        """Apply batches to several tables as one commit and one change: a parent with its children.

        `batches` maps a table to what `apply` takes: inserts, deletes, updates, before, after, upserts,
        snapshot, allow_empty. If only some of the tables know the `batch_id`, it is an error, and nothing is
        applied.
        """
        from holdfast.core.rows.batch import batches_of

        return self._run(batches_of(batches), batch_id, options, commit=True)

    def check(
        self,
        table: str,
        *,
        options: Mapping[str, Any] | None = None,
        **parts: Unpack[BatchParts],
    ) -> Change:
        """What a batch, of parts as `apply` takes them, would change; nothing is applied."""
        from holdfast.core.rows.batch import Batch

        return self._run({table: Batch(**parts)}, None, options, commit=False)

    def check_all(
        self, batches: Mapping[str, Mapping[str, Any]], *, options: Mapping[str, Any] | None = None
    ) -> Change:
        """What batches to several tables would change together; nothing is applied."""
        from holdfast.core.rows.batch import batches_of

        return self._run(batches_of(batches), None, options, commit=False)

    def _run(
        self,
        batches: Mapping[str, Batch],
        batch_id: str | None,
        options: Mapping[str, Any] | None,
        *,
        commit: bool,
    ) -> Change:
        from holdfast import step
        from holdfast.core.sources import ReadOptions

        started = time.perf_counter()
        base = self.ledger.version
        states = {table: self._tables.state(table, base or None) for table in batches}
        if batch_id is not None and (earlier := self._committer.earlier(batches, batch_id)) is not None:
            return self._committer.repeated(list(states.values()), earlier)
        with self.writer.context(base, commit=commit) as context:
            steps = []
            for table, batch in batches.items():
                state, findings = states[table], self._committer.findings(states[table])
                reading = ReadOptions.checked({**state.options, **(options or {})})
                across = self._committer.beside(state, base) if len(batches) == 1 else {}
                steps.append(
                    step.apply(context, state, base, findings, batch, reading, across, commit=commit)
                )
            action = "apply" if commit else "check"
            change = self._committer.commit(
                context, base, action, steps, {}, batch_id, started, commit=commit
            )
        if commit:
            self.writer.tidy_when_due()
        return replace(change, elapsed_s=time.perf_counter() - started)

    def drop(self, table: str) -> int:
        """Stop tracking a table; its history stays. Returns the new version."""
        from holdfast.muting import without_table

        base, state = self._tables.current(table)
        gone = [
            ChangeRow(table, d.kind, "dropped", d.to_dict(), "the table was dropped")
            for d in self.dependencies(table=table)
        ]
        others = self._tables.chosen(None, base)
        commits = [CommitRow(table, "drop", None, None)]
        commits += [CommitRow(s.table, "unmute", s.to_dict(), {}) for s in without_table(others, table)]
        with self.writer.context(base) as context:
            for kind, cls in across_of(state.kinds).items():
                after = cls.without_table(context, self._committer.among(kind, base)[1], table)
                commits.append(CommitRow(cls.slot, "shrink", after.fields, {"n_inds": after.n}))
            return self.writer.append(base, commits, gone)

    def merge(self, table: str) -> int:
        """Merge the segments of a table into as few as suit its size, and what it shares; what holds stays as
        it is."""
        base, state = self._tables.current(table)
        with self.writer.context(base) as context:
            rows = context.relation(state, state.folder, "merging")
            columns = state.indexed_columns
            merged, number = rows.tidied(state.next_number, columns, state.orders, everything=True)
            shared = []
            for kind, cls in across_of(state.kinds).items():
                after = cls.merged(context, self._committer.among(kind, base)[1])
                if after is not None:
                    shared.append(CommitRow(cls.slot, "merge", *after))
            if merged.segments == state.segments and not shared:
                return base
            state = replace(state, segments=merged.segments, next_number=number)
            detail = {"n_segments": len(merged.segments)}
            return self.writer.append(base, [CommitRow(table, "merge", state.to_dict(), detail), *shared])

    def verify(self) -> int:
        """Check every file that the workspace needs against its checksum; how many there are."""
        return self.writer.verify()

    def tidy(self, *, grace_s: float = litter.GRACE_S) -> int:
        """Remove files that nothing needs any more; how many. See `core/store/litter.py` for the rule."""
        return self.writer.tidy(grace_s=grace_s)

    # -- relying ------------------------------------------------------------------------------

    @cached_property
    def _pins(self) -> Pins:
        from holdfast.pinning import Pins

        return Pins(self.writer, self, self._committer)

    def pin(
        self,
        table: str,
        question: Question,
        *,
        referenced: Side | None = None,
        remove: bool = False,
        **terms: Unpack[PinTerms],
    ) -> Pin:
        """Rely on something that `explain` understands, or on a dependency of a list; rules: see `pin_rule`.

        Every batch then says whether it holds, and `check` gates on it. `at_most` is a tolerance: a share
        such as "0.1%" or 0.001, or a whole number, of rows to remove (a key) or of rows whose value is
        missing (an inclusion of one column). `severity` is "error", "warning" or "info"; `reason` and `owner`
        are texts. What is pinned already has the new terms from now on.
        """
        if isinstance(question, str) or not isinstance(question, Sequence):
            return self._pin(Wanted.of(self._mutes.asked(table, question, referenced), terms), remove)
        return self._pin(Wanted(table, tuple(question), referenced, terms=terms), remove)

    def pin_rule(
        self, rule: str, *, table: str | None = None, remove: bool = False, **terms: Unpack[PinTerms]
    ) -> Pin:
        """Rely on a rule about two rows, such as `not(t.zip = s.zip and t.state != s.state)`, on a functional
        dependency such as `zip -> state`, or on a condition on each row, such as `quantity > 0` or `email is
        not null`.

        It is verified now, and after every batch, at a cost that follows the batch: how many pairs of rows,
        or rows, violate it, and a few of them. No kind of dependency need be tracked for it. Terms are those
        of `pin`; a tolerance is of rows that violate a condition, else of ordered pairs of rows.
        """
        return self._pin(Wanted(table or "", rule=rule, terms=terms), remove)

    def unpin(self, wanted: Wanted) -> Pin:
        """Rely on something no longer, on whatever terms it is pinned."""
        return self._pin(wanted, remove=True)

    def _pin(self, wanted: Wanted, remove: bool) -> Pin:
        asked = [wanted]
        done = self._pins.change(removed=asked) if remove else self._pins.change(asked)
        [pin] = done.pinned or done.unchanged or done.removed
        return pin

    def pin_all(
        self,
        wanted: Sequence[Wanted],
        *,
        prune: bool = False,
        only_holding: bool = False,
        dry_run: bool = False,
    ) -> PinChange:
        """Rely on many things at once: one version, or none if nothing is new; all of it or nothing.

        What is pinned already on the same terms is left alone. `prune` unpins everything else.
        `only_holding`: of what is new only that which holds; what is pinned keeps its terms if none are
        given. `dry_run` says what would be done.
        """
        return self._pins.change(wanted, prune=prune, only_holding=only_holding, commit=not dry_run)

    @cached_property
    def _mutes(self) -> Mutes:
        from holdfast.muting import Mutes

        return Mutes(self.writer, self, self._committer)

    def mute(
        self, table: str, question: Question, referenced: Side | None = None, reason: str | None = None
    ) -> Muted:
        """Have reports only count something that `explain` understands, or a dependency of a list: it is an
        accident, or of no interest.

        It is kept as exactly as before, listed or not, until it is unmuted or pinned, or a table of it is
        dropped.
        """
        return self._mutes.mute(table, question, referenced, reason)

    def unmute(self, table: str, question: Question, referenced: Side | None = None) -> Muted:
        """Tell something again."""
        return self._mutes.unmute(table, question, referenced)
