"""A lake in a workspace: link very many tables, keep the inclusions among them, read them.

A lake lies beside the tables that are tracked. It is one more state in the ledger, and what holds for tables
holds for it: files are written first and named by one commit, so a step is there whole or not at all.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.core.rows.writer import Writer
from holdfast.core.store.ledger_rows import LAKE, CommitRow
from holdfast.core.store.root import Root, source_path
from holdfast.errors import (
    NOTHING_APPLIED,
    ConflictError,
    UnknownColumnError,
    UsageError,
    WorkspaceError,
    shorten,
)
from holdfast.lakes import FILTERS
from holdfast.lakes.answers import AskedColumn, LakeChange
from holdfast.lakes.state import NORMALISATIONS, LakeOptions, LakeState

if TYPE_CHECKING:
    from holdfast.lakes.files import LakeReadOptions
    from holdfast.lakes.linker import LakeStep, LakeWork
    from holdfast.lakes.reader.lake_reader import LakeReader
    from holdfast.lakes.reader.overlaps import LakeOverlaps

PROPOSERS = ("auto", "signatures", "index")
STRATEGIES = ("dep2refs", "ref2deps")
# Of a signature: a block of 4,096 columns is 32 MB then.
MOST_BITS = 1 << 16
# What the log says of a step.
LOGGED = ("n_tables", "n_columns", "n_inds", "n_components", "added", "replaced", "dropped", "n_bad")


class LakeKeeper:
    """Very many tables, and the inclusions among their columns."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._asked: LakeReader | None = None  # questions come in a row: names are read for the first one

    def link(
        self,
        *sources: str | Path,
        add: bool = False,
        replace: bool = False,
        anew: bool = False,
        filters: Sequence[str] | None = None,
        tau: float | None = None,
        null_values: Sequence[str] | None = None,
        normalise: Sequence[str] | None = None,
        m: int | None = None,
        k: int | None = None,
        p: int | None = None,
        max_error: float | None = None,
        min_values: int | None = None,
        proposer: str = "auto",
        strategy: str = "dep2refs",
        **reading: Any,
    ) -> LakeChange:
        """Link the tables of folders, archives and files: find all inclusions among their columns.

        `add` takes further tables in, `replace` also replaces those of the same name, `anew` forgets the lake
        that is there. What decides which inclusions are listed (`filters` to `min_values`) is fixed by the
        first link. `proposer` and `strategy` change the time, never the result. `reading` says how files
        are read: header, delimiter, encoding, json_name, json_headers, json_rows, json_columns, json_text,
        follow_symlinks, max_file_bytes.

        Cost: linear in what is read, and then in the inclusions; of `add`, in what is added and in the
        inclusions that concern it.
        """
        from holdfast.lakes.linker import Matching

        if not sources or not all(map(str, sources)):
            raise UsageError("no source is named: give folders, archives or files of tables.")
        if add + replace + anew > 1:
            raise UsageError("give one of add, replace and anew, not several.")
        if proposer not in PROPOSERS:
            raise UsageError(f"unknown proposer {shorten(proposer)}. Expected {', '.join(PROPOSERS)}.")
        if strategy not in STRATEGIES:
            raise UsageError(f"unknown strategy {shorten(strategy)}. Expected {' or '.join(STRATEGIES)}.")
        requested = {
            "filters": filters,
            "tau": tau,
            "null_values": null_values,
            "normalise": normalise,
            "m": m,
            "k": k,
            "p": p,
            "max_error": max_error,
            "min_values": min_values,
        }
        base, before = self._lake_before(requested, more=add or replace, anew=anew)
        read = _read_options(reading)
        matching = Matching(None if proposer == "auto" else proposer, strategy)  # type: ignore[arg-type]
        names = [source_path(s, "source") for s in sources]
        action = "replace" if replace else "add" if add else "link"

        def step(work: LakeWork) -> LakeStep:
            return work.link(before, names, read, matching, "replace" if replace else "add")

        return self._lake_step(base, before, action, step)

    def unlink(self, *tables: str) -> LakeChange:
        """Take tables out of the lake, by name, with all inclusions that concern them.

        A name is the table's own, or the end of one that only one table has.
        """
        if not tables:
            raise UsageError("no table is named: say which ones to drop.")
        writer = self._writer
        base, lake = writer.ledger.version, self.reader()
        if lake is None:
            raise _no_lake(writer.root)
        numbers = set()
        for name in tables:
            target = lake.resolve(name)
            if not isinstance(target, int):
                raise UsageError(f"{shorten(name)} is a column: only whole tables are dropped.")
            numbers.add(target)
        return self._lake_step(base, lake.state, "drop", lambda work: work.drop(lake.state, sorted(numbers)))

    def reader(self) -> LakeReader | None:
        """The lake, to read; None if there is none. Needs neither Spark nor kernels."""
        version = self._writer.ledger.version
        state = self.state(version)
        if state is None:
            return None
        from holdfast.lakes.reader.lake_reader import LakeReader

        return LakeReader(self._writer.root, state, version)

    def overlaps(
        self,
        table: str | Path,
        column: str | None = None,
        *,
        linked: bool = False,
        top: int = 20,
        **reading: Any,
    ) -> LakeOverlaps:
        """The columns of the lake with the most values in common with those of a file, or with one of them.

        Of each column the best `top` that share a value, contained or not, and whatever filters the lake
        has: by the number of distinct values that both have, then by the names of tables. A value is what it
        is in the lake: normalised as there; a missing cell is none, an empty text is one. `reading` says how
        the file is read, as `link` has it. `linked`: the table is one of the lake, as `joins` names it.

        Cost: the file is read here; then a look-up for each value, and a step for each column that has it,
        or fewer if many have it. The first question to a version reads all names. Nothing is written.
        """
        lake = self._asked
        if lake is None or lake.version != self._writer.ledger.version:
            lake = self._asked = self.reader()
        if lake is None:
            raise _no_lake(self._writer.root)
        if linked:
            overlaps = lake.overlaps(str(table) if column is None else f"{table}[{column}]", top)
            if reading:
                raise UsageError(
                    f"{shorten(overlaps.table)} is a table of the lake, and no file is read: leave out "
                    f"{', '.join(sorted(reading))}."
                )
            return overlaps
        from holdfast.lakes.intake import read_table
        from holdfast.lakes.read_task import value_sets

        read = read_table(source_path(table, "source"), _read_options(reading))
        wanted = range(len(read.header))
        if column is not None:
            if column not in read.header:
                raise UnknownColumnError.from_missing(read.name, None, column, read.header)
            at = read.header.index(column)
            wanted = range(at, at + 1)
        header = [read.header[i] for i in wanted]
        chosen = replace(read, header=header, columns=[read.columns[i] for i in wanted])
        offsets, values, checks = value_sets(chosen, self._writer.root, lake.state.options)
        spans = (slice(*ends) for ends in itertools.pairwise(offsets.tolist()))
        asked = [
            (AskedColumn(i, name, span.stop - span.start), values[span], checks[span], None)
            for i, name, span in zip(wanted, header, spans, strict=True)
        ]
        return lake.overlapping(read.name, asked, top)

    def state(self, at: int | None = None) -> LakeState | None:
        """The lake as a commit has left it; None if there is none."""
        ledger = self._writer.ledger
        version = ledger.heads(at).get(LAKE)
        if version is None:
            return None
        state = ledger.commit_row(version, LAKE).state
        assert state is not None
        return LakeState.from_dict(state)

    # -- inside -------------------------------------------------------------------------------

    def _lake_before(self, requested: Mapping[str, Any], *, more: bool, anew: bool) -> tuple[int, LakeState]:
        """(version, state) that a link starts from; its options are checked."""
        base = self._writer.ledger.version
        state = self.state(base)
        if more:
            if state is None:
                raise _no_lake(self._writer.root)
            for name, value in requested.items():
                fixed = getattr(state.options, name)
                if value is not None and _plain(name, value) != _plain(name, fixed):
                    raise UsageError(
                        f"the lake was linked with {name} = {fixed!r}, not {_shown(value)}: that is "
                        "fixed by the first link. Leave it out, or link the lake anew (--anew)."
                    )
            return base, state
        if state is not None and not anew:
            raise UsageError(
                f"the workspace {str(self._writer.root)!r} has a lake of {state.n_tables:,} tables: add to "
                "it (--add), replace some of its tables (--replace), or link it anew (--anew)."
            )
        return base, LakeState(checked_options(requested))

    def _lake_step(self, base: int, before: LakeState, action: str, step: Any) -> LakeChange:
        """Do a step and commit it. If the lake has moved meanwhile, it is a conflict."""
        with self._writer.staging(base) as staging:
            return self._lake_committed(staging, base, before, action, step)

    def _lake_committed(
        self, staging: str, base: int, before: LakeState, action: str, step: Any
    ) -> LakeChange:
        """Work in `staging`, then commit; where nothing is new there is no commit."""
        from holdfast.lakes.linker import LakeWork

        started = time.perf_counter()
        writer = self._writer
        work = LakeWork(writer.root, staging, writer.engine, writer.progress)
        try:
            done: LakeStep = step(work)
        finally:
            work.close()
        state = done.state
        graph = state.graph
        change = LakeChange(
            action=action,
            version=base + 1,
            n_tables=state.n_tables,
            n_columns=state.n_columns,
            n_inds=state.n_inds,
            n_components=graph.n_components if graph else 0,
            n_isolated=graph.n_isolated if graph else state.n_tables,
            added=done.added,
            replaced=done.replaced,
            dropped=done.dropped,
            known=done.known,
            n_bad=done.n_bad,
            bad=done.bad,
            removed=state.removed,
            phases=done.phases,
            proposer=done.proposer,
            filters=state.options.filters,
        )
        if done.state is before:  # all there was to add is there: no new version
            return replace(change, version=base, elapsed_s=time.perf_counter() - started)
        detail = {name: getattr(change, name) for name in LOGGED}
        try:
            # Not "drop": with that action the ledger would forget the whole lake.
            label = "link" if action == "link" else f"link --{action}"
            version = writer.append(base, [CommitRow(LAKE, label, state.to_dict(), detail)])
        except ConflictError as error:
            raise ConflictError(
                f"the lake of the workspace {str(writer.root)!r} was changed meanwhile. {NOTHING_APPLIED} "
                "Run it again."
            ) from error
        writer.tidy_when_due()
        return replace(change, version=version, elapsed_s=time.perf_counter() - started)


def checked_options(requested: Mapping[str, Any]) -> LakeOptions:
    """The options of a new lake, or a UsageError that names the wrong one.

    >>> checked_options({"filters": ["coverage"], "tau": None}).filters
    ('coverage',)
    """
    chosen = {name: value for name, value in requested.items() if value is not None}
    for name in ("filters", "normalise", "null_values"):
        if name in chosen:
            chosen[name] = _texts(name, chosen[name])
    for name, allowed in (("filters", FILTERS), ("normalise", NORMALISATIONS)):
        for value in chosen.get(name, ()):
            if value not in allowed:
                raise UsageError(f"unknown {name} {shorten(value)}. Expected {', '.join(allowed)}.")
        if name in chosen:
            chosen[name] = tuple(v for v in allowed if v in chosen[name])
    for name, most in (("m", MOST_BITS), ("k", 64), ("p", 64), ("min_values", 2**31 - 1)):
        value = chosen.get(name, 1)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise UsageError(f"{name} is {_shown(value)}; expected a whole number from 1 to {most:,}.")
    for name, most_share in (("tau", "to 1"), ("max_error", "below 1")):
        value = chosen.get(name, 0.0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise UsageError(f"{name} is {_shown(value)}; expected a share from 0 {most_share}.")
        if name == "max_error" and value == 1:
            raise UsageError(f"max_error is 1; expected a share from 0 {most_share}.")
    options = LakeOptions(**chosen)
    if options.n_bits > MOST_BITS:
        raise UsageError(
            f"signatures of m * p = {options.n_bits:,} bits are too long; expected at most {MOST_BITS:,}."
        )
    return options


def _read_options(reading: Mapping[str, Any]) -> LakeReadOptions:
    """How files are to be read."""
    from holdfast.lakes.files import LakeReadOptions

    try:
        return LakeReadOptions(**reading)
    except TypeError as error:
        raise UsageError(f"how are the files to be read? {error}.") from None


def _texts(name: str, values: Any) -> tuple[str, ...]:
    """A list of texts, each once."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise UsageError(f"{name} is {_shown(values)}; expected a list of texts.")
    texts = tuple(dict.fromkeys(map(str, values)))
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{name} has {text!r}, which is no Unicode text.") from None
    return texts


def _plain(name: str, value: Any) -> Any:
    lists = ("filters", "normalise", "null_values")
    return sorted(_texts(name, value)) if name in lists else value


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, int | float) else shorten(str(value))


def _no_lake(root: Root) -> WorkspaceError:
    return WorkspaceError(
        f"the workspace {str(root)!r} has no lake: link one first, with 'holdfast link SOURCE'."
    )
