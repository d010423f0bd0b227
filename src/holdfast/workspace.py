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

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from holdfast.by_kind import ByKind
from holdfast.commit import Committer
from holdfast.core.rows.writer import ProgressHook, Writer
from holdfast.core.store.change_log import read_log
from holdfast.core.store.litter import GRACE_S
from holdfast.core.store.root import workspace_root
from holdfast.core.store.tabular import Dependencies, Log, MutedList, PinList
from holdfast.core.words.change import Change, Pin
from holdfast.core.words.dependency import Dependency, Side
from holdfast.core.words.display import Displayed, TableMap, notebook_progress
from holdfast.core.words.options import BatchParts, TrackOptions, check_share
from holdfast.core.words.reliance import Muted, PinTerms, Severity, Wanted
from holdfast.core.words.schema import Schema
from holdfast.kind import Explained, Query, check_kind, muted_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from holdfast.core.cover.violating_rows import ViolatingRows
    from holdfast.core.engine.engine import Mode
    from holdfast.muting import Mutes, Question
    from holdfast.pinning import PinChange, Pins

# What the rest of holdfast asks a workspace for.
_INSIDE = {"readers", "ledger", "writer"}


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


class Workspace(ByKind, Displayed):
    """Tables, their dependencies, and how they came to be.

    What all kinds of dependencies have is asked of the workspace, what one kind has of its reader: `keys`,
    `fds`, `inds`, `dcs`, `row_rules`, `checks`, `profiles`, `lakes`.
    """

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer)
        self.root, self.ledger, self._tables = writer.root, writer.ledger, writer.tables
        self._committer = Committer(writer, self.readers)

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
        listed = list(self.readers.listed(query))
        return Dependencies(self.readers.order(query.at).sorted(listed) if ranked else listed)

    def explain(
        self, table: str, question: str | Sequence[str], *, referenced: Side | None = None
    ) -> Explained:
        """Whether something holds now, since which version, and the rows that prove or broke it.

        Columns ask whether they are unique; with `referenced`, whether they are included in those. A text is
        a functional dependency (`zip -> city`), or a rule about two rows (`not(t.zip = s.zip and t.city !=
        s.city)`) or about each (`net <= gross`). It need not be one that is listed; only of keys and
        inclusions its kind has to be tracked.
        """
        reader, asked = self.readers.asked(table, question, referenced)
        explanation: Explained = reader.explain(*asked)
        return explanation

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
        asked = self.readers.asked(table, question, referenced)
        return self.readers.violating(*asked, limit, as_pairs=as_pairs)

    def since(
        self, table: str, dependencies: Sequence[Dependency], at: int | None = None
    ) -> list[int | None]:
        """Since which version each of some dependencies of a table, which hold at one, has held.

        None where its class does not tell. For the few that are shown: of each kind covers, newest first.
        """
        return self.readers.since(table, dependencies, at)

    def pins(self, table: str | None = None, at: int | None = None) -> PinList:
        """What is pinned, on which terms, and whether it holds: keys, rules, inclusions in other tables."""
        return PinList(self.readers.pinned(table, self._tables.newest(at)))

    def muted(self, table: str | None = None, at: int | None = None) -> MutedList:
        """What is muted of a table, or of all, and why."""
        states = self._tables.chosen(table, self._tables.newest(at))
        return MutedList(m for state in states for m in muted_of(state))

    def map(self) -> TableMap:
        """The tables and how they refer to each other, as a picture."""
        return TableMap(self)

    def log(self, table: str | None = None) -> Log:
        """What each version did and changed, oldest first; of a table, what others did to it as well."""
        return Log(read_log(self.ledger, table))

    def sizes(self) -> Mapping[str, int]:
        """Bytes of the live files by what they are for.

        `locators`: what finds rows by content, for deletes and updates; `rows`: the rest of the segments;
        `indexes`: what batches are looked up in; `kept`: covers and evidence of all classes; `values`: what
        dependencies among tables follow from.
        """
        from holdfast import upkeep

        return upkeep.sizes(self._committer)

    def __dir__(self) -> list[str]:
        """What is for whoever calls: completion shows nothing else."""
        return sorted({*super().__dir__()} - _INSIDE)

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
        return self._committer.track(sources, how)

    def apply(
        self,
        table: str,
        *,
        batch_id: str | None = None,
        options: Mapping[str, Any] | None = None,
        fail_on: Severity | None = None,
        **parts: Unpack[BatchParts],
    ) -> Change:
        """Apply a batch: deletes first, then inserts, one commit, one report of the net change.

        `inserts` and `deletes` are rows; `updates` are rows with the row key and new values; `before` and
        `after` are full rows. `upserts` are rows with the row key: those whose key is there are updated, the
        others inserted. `snapshot` is the whole table as it is to be: the difference to what is tracked is
        the batch, rows in both stay; one without rows is refused unless `allow_empty`, as it would delete
        all.

        With a `batch_id` a batch is applied once: a second time is a no-op that says so. An id belongs to
        one life of a table: after `drop` and `track` it is a new one. With `fail_on` nothing is applied if
        a pin of that severity, or a graver one, would not hold: a `GateError`, which has the change.
        """
        return self._committer.apply({table: parts}, batch_id, options, fail_on=fail_on)

    def apply_all(
        self,
        batches: Mapping[str, Mapping[str, Any]],
        *,
        batch_id: str | None = None,
        options: Mapping[str, Any] | None = None,
        fail_on: Severity | None = None,
    ) -> Change:
        """Apply batches to several tables as one commit and one change: a parent with its children.

        `batches` maps a table to what `apply` takes: inserts, deletes, updates, before, after, upserts,
        snapshot, allow_empty. If only some of the tables know the `batch_id`, it is an error, and nothing is
        applied.
        """
        return self._committer.apply(batches, batch_id, options, fail_on=fail_on)

    def check(
        self, table: str, *, options: Mapping[str, Any] | None = None, **parts: Unpack[BatchParts]
    ) -> Change:
        """What a batch, of what `apply` takes, would change; nothing is applied."""
        return self._committer.apply({table: parts}, None, options, commit=False)

    def check_all(
        self, batches: Mapping[str, Mapping[str, Any]], *, options: Mapping[str, Any] | None = None
    ) -> Change:
        """What batches to several tables would change together; nothing is applied."""
        return self._committer.apply(batches, None, options, commit=False)

    def drop(self, table: str) -> int:
        """Stop tracking a table; its history stays. Returns the new version."""
        from holdfast import upkeep

        return upkeep.drop(self._committer, table)

    def merge(self, table: str) -> int:
        """Merge the segments of a table into as few as suit its size, and what it shares; what holds stays as
        it is."""
        from holdfast import upkeep

        return upkeep.merge(self._committer, table)

    def verify(self) -> int:
        """Check every file that the workspace needs against its checksum; how many there are."""
        return self.writer.verify()

    def tidy(self, *, grace_s: float = GRACE_S) -> int:
        """Remove files that nothing needs any more; how many. See `core/store/litter.py` for the rule."""
        return self.writer.tidy(grace_s=grace_s)

    # -- relying ------------------------------------------------------------------------------

    @cached_property
    def _pins(self) -> Pins:
        from holdfast.pinning import Pins

        return Pins(self.writer, self.readers, self._committer)

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
            return self._pins.one(Wanted.of(self._mutes.asked(table, question, referenced), terms), remove)
        return self._pins.one(Wanted(table, tuple(question), referenced, terms=terms), remove)

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
        return self._pins.one(Wanted(table or "", rule=rule, terms=terms), remove)

    def unpin(self, wanted: Wanted) -> Pin:
        """Rely on something no longer, on whatever terms it is pinned."""
        return self._pins.one(wanted, remove=True)

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

        return Mutes(self.writer, self.readers, self._committer)

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
