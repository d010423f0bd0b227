"""Inclusions among very many small tables: link them, and keep them right while tables come and go.

A lake is worked out part by part. New tables make a new part, whose columns are matched with all columns in
both directions; old columns are never matched with each other again. Dropped tables are only listed, and what
concerns them is skipped. So the inclusions after any sequence of steps are those that the tables that are
left would give from scratch (a state machine proves it). What the filters keep out is a sum over pairs of
columns, so it is maintained by adding and subtracting the pairs that a step concerns.

Everything that grows with the lake stays in files; the driver sees counts, file names and table names.
A step is a constant number of Spark jobs: reading, putting together, matching, counting, connecting.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from holdfast.core.engine.engine import Engine
from holdfast.core.engine.job_progress import Progress
from holdfast.core.store.files import FileRef
from holdfast.core.store.root import Root
from holdfast.errors import NOTHING_APPLIED, SourceError
from holdfast.lakes import FILTERS
from holdfast.lakes.answers import BAD_LISTED
from holdfast.lakes.files import LakeReadOptions
from holdfast.lakes.graph.components import connect
from holdfast.lakes.index import Block, described, piece_folder, put_together, read_again
from holdfast.lakes.intake import Intake, read_sources, repeated
from holdfast.lakes.match import MatchResult, count_dropped, gather_pairs, link_tables, match_columns
from holdfast.lakes.propose import Proposer, Strategy
from holdfast.lakes.sides import Payload, let_go
from holdfast.lakes.signing import chosen_proposer, signed
from holdfast.lakes.state import (
    FOLDER,
    TABLES_SCHEMA,
    LakeOptions,
    LakeState,
    Part,
    PartRef,
    live_tables,
    open_array,
    read_parquet,
    write_array,
)

I32 = NDArray[np.int32]

REPEATED = "another table of this name was read before it: "
# Values that one matching task looks up.
ENTRIES_PER_TASK = 250_000
# What the steps take on one core, in ns. Matching: 270 to 430 for a value (1.5 M: 0.63 s). Where integers are
# matched, one of thirty pairs of columns is an inclusion, and every pair costs 2.8 (32,009 columns: 2.8 s).
# Links and inclusions that are read again: 85 for a byte.
NS_MATCH, NS_PAIR, NS_LINK = 400, 3, 100
# To hash the files of an entry, with the disk's share of it.
NS_READ_AGAIN = 20
# So many parts of about one size become one, and so many small files of inclusions.
MERGE_AT = 4
GATHER_AT = 64
GATHERED_BELOW = 1 << 20


@dataclass(frozen=True, slots=True)
class LakeStep:
    """What a step leaves: the state to commit, and what there is to tell."""

    state: LakeState
    added: int = 0
    replaced: int = 0
    dropped: int = 0
    known: int = 0  # tables that were left out, since the lake has tables of their names
    n_bad: int = 0
    bad: tuple[tuple[str, str], ...] = ()
    phases: tuple[tuple[str, float], ...] = ()
    proposer: str = ""


@dataclass(frozen=True, slots=True)
class Matching:
    """How columns are matched: by which proposer (None: whichever is cheaper), by which strategy."""

    proposer: Proposer | None = None
    strategy: Strategy = "dep2refs"


class LakeWork:
    """One step on a lake: where it works, and how long each phase took."""

    def __init__(
        self, root: Root, staging: str, engine: Engine, progress: Callable[[str], Progress | None]
    ) -> None:
        self.root, self.staging, self.engine = root, staging, engine
        self._progress = progress
        self.phases: list[tuple[str, float]] = []

    def close(self) -> None:
        """Let go of what tasks in this process have open."""
        let_go()

    @contextmanager
    def _phase(self, name: str) -> Iterator[Progress | None]:
        started = time.perf_counter()
        yield self._progress(name)
        self.phases.append((name, time.perf_counter() - started))

    # -- steps ---------------------------------------------------------------------------------

    def link(
        self,
        before: LakeState,
        sources: Sequence[str],
        reading: LakeReadOptions,
        matching: Matching,
        mode: Literal["add", "replace"],
    ) -> LakeStep:
        """Read the sources and take their tables in; those that the lake has are skipped, or replaced."""
        with self._phase("reading tables") as progress:
            names, numbers = self._live_names(before)
            taken = names if mode == "add" else None
            read = read_sources(
                self.engine, self.root, self.staging, sources, reading, before.options, taken, progress
            )
        if not read.blocks:
            phases = tuple(self.phases)
            return LakeStep(before, known=read.n_known, n_bad=read.n_bad, bad=read.bad, phases=phases)
        with self._phase("indexing values") as progress:
            new = read_parquet(self.root, read.tables, TABLES_SCHEMA, ["name", "source"])
            again, first = repeated(new["name"])
            later, earlier = (new["source"].take(pa.array(rows[:BAD_LISTED])) for rows in (again, first))
            pairs = zip(later.to_pylist(), earlier.to_pylist(), strict=True)
            bad = [(source, REPEATED + first_source) for source, first_source in pairs]
            skipped = (again + before.next_table).astype(np.int32)
            replaced = np.empty(0, np.int32)
            if mode == "replace":
                replaced = numbers[np.asarray(pc.is_in(names, value_set=new["name"].combine_chunks()))]
            part = self._new_part(before, read, progress)
        removed = self._removed_without(before, replaced)
        gone = np.union1d(self._dropped(before), np.union1d(skipped, replaced)).astype(np.int32)
        dropped = write_array(self.root, FOLDER, "dropped", gone) if len(gone) else None
        with self._phase("matching columns") as progress:
            proposer, parts, results = self._match(
                (*before.parts, part), before.options, dropped, matching, progress
            )
        removed += np.sum([result.removed[1:] for result in results], axis=0, dtype=np.int64)
        state = replace(
            before,
            parts=parts,
            inds=(*before.inds, *(result.inds for result in results if result.inds)),
            links=(*before.links, *(result.links for result in results if result.links)),
            dropped=dropped,
            n_tables=before.n_tables + part.n_tables - len(skipped) - len(replaced),
            n_columns=before.n_columns + self._n_columns(part, skipped) - self._columns_of(before, replaced),
            n_inds=before.n_inds + sum(result.n_inds for result in results),
            removed=_by_filter(removed, before.options),
        )
        return replace(
            self._connected(state, None if len(replaced) else before),
            added=part.n_tables - len(skipped) - len(replaced),
            replaced=len(replaced),
            known=read.n_known,
            n_bad=read.n_bad + len(skipped),
            bad=(*read.bad, *bad)[:BAD_LISTED],
            proposer=proposer,
        )

    def drop(self, before: LakeState, tables: Sequence[int]) -> LakeStep:
        """Take tables out, by their numbers, ascending."""
        gone = np.array(tables, np.int32)
        removed = self._removed_without(before, gone)
        dropped = np.union1d(self._dropped(before), gone).astype(np.int32)
        state = replace(
            before,
            dropped=write_array(self.root, FOLDER, "dropped", dropped),
            n_tables=before.n_tables - len(gone),
            n_columns=before.n_columns - self._columns_of(before, gone),
            removed=_by_filter(removed, before.options),
        )
        return replace(self._connected(state, None), dropped=len(gone))

    # -- tables --------------------------------------------------------------------------------

    def _live_names(self, state: LakeState) -> tuple[pa.Array, I32]:
        """(names, numbers) of the tables that a lake has."""
        files = [file for part in state.parts for file in part.tables]
        names = read_parquet(self.root, files, TABLES_SCHEMA, ["name"])["name"].combine_chunks()
        numbers = np.flatnonzero(live_tables(self.root, state)).astype(np.int32)
        return names.take(pa.array(numbers)), numbers

    def _dropped(self, state: LakeState) -> I32:
        return open_array(self.root, state.dropped) if state.dropped else np.empty(0, np.int32)

    def _n_columns(self, part: PartRef, tables: I32) -> int:
        """Columns of a part without those of some tables."""
        there = np.isin(Part(self.root, part).array("table_of") + part.first_table, tables)
        return part.n_columns - int(np.count_nonzero(there))

    def _columns_of(self, state: LakeState, tables: I32) -> int:
        return sum(part.n_columns - self._n_columns(part, tables) for part in state.parts)

    # -- parts ---------------------------------------------------------------------------------

    def _new_part(self, before: LakeState, read: Intake, progress: Progress | None) -> PartRef:
        n_columns = sum(b.n_columns for b in read.blocks)
        if before.next_column + n_columns >= 2**31:
            raise SourceError(f"a lake has at most 2,147,483,647 columns. {NOTHING_APPLIED}")
        return put_together(
            self.engine,
            self.root,
            self.staging,
            read.blocks,
            before.next_table,
            before.next_column,
            before.options,
            (read.tables, read.columns),
            progress,
        )

    def _described(self, part: PartRef, results: Sequence[MatchResult], progress: Progress | None) -> PartRef:
        pieces = [result.described for result in results if result.described]
        return described(self.engine, self.root, part, pieces, progress)

    def _merged(self, state: LakeState) -> LakeState:
        """With parts of about one size put together, so that there are few of them, however many steps."""
        parts = list(state.parts)
        total, n = 0, 0
        for part in reversed(parts):
            if n and part.n_entries > MERGE_AT * total:
                break
            total, n = total + part.n_entries, n + 1
        if n < MERGE_AT:
            return state
        with self._phase("merging parts") as progress:
            old = parts[-n:]
            payloads = [{"root": str(self.root), "part": part.for_tasks()} for part in old]
            where = self.engine.choose(total * NS_READ_AGAIN, parallel=True)
            blocks = self.engine.run(read_again, payloads, where=where, progress=progress, parallel=True)
            files = tuple(f for p in old for f in p.tables), tuple(f for p in old for f in p.columns)
            one = put_together(
                self.engine,
                self.root,
                self.staging,
                [Block.from_dict(json.loads(block)) for block in blocks],
                old[0].first_table,
                old[0].first_column,
                state.options,
                files,
                progress,
            )
        return replace(state, parts=(*parts[:-n], one))

    def _gathered(self, state: LakeState) -> LakeState:
        """With small files of inclusions and of links put together once they are many."""
        shared = {**self._shared(state), "parts": [p.for_tasks() for p in state.parts]}
        wanted = []
        for what, files in (("inds", state.inds), ("links", state.links)):
            small = [f for f in files if f.length < GATHERED_BELOW]
            if len(small) > GATHER_AT:
                wanted.append({**shared, "what": what, "files": [f.to_dict() for f in small]})
        if not wanted:
            return state
        with self._phase("gathering files") as progress:
            n_bytes = sum(f["length"] for payload in wanted for f in payload["files"])
            where = self.engine.choose(n_bytes * NS_LINK)
            results = self.engine.run(gather_pairs, wanted, where=where, progress=progress)
        for payload, result in zip(wanted, results, strict=True):
            what = payload["what"]
            large = tuple(f for f in getattr(state, what) if f.length >= GATHERED_BELOW)
            gathered: dict[str, Any] = {what: (*large, FileRef.from_dict(json.loads(result)))}
            state = replace(state, **gathered)
        return state

    def _shared(self, state: LakeState) -> dict[str, Any]:
        """What the payloads of all tasks say of a lake."""
        return {
            "root": str(self.root),
            "options": state.options.to_dict(),
            "dropped": state.dropped.to_dict() if state.dropped else None,
            "n_tables": state.next_table,
        }

    # -- matching ------------------------------------------------------------------------------

    def _match(
        self,
        parts: tuple[PartRef, ...],
        options: LakeOptions,
        dropped: FileRef | None,
        matching: Matching,
        progress: Progress | None,
    ) -> tuple[str, tuple[PartRef, ...], list[MatchResult]]:
        """Match the columns of the last part with all, in both directions: by what; the parts, described."""
        proposer = matching.proposer or chosen_proposer(parts, options)
        if proposer == "signatures":
            parts = tuple(signed(self.engine, self.root, self.staging, parts, options, progress))
        *earlier, part = parts
        old, new = [p.for_tasks() for p in earlier], part.for_tasks()
        shared: dict[str, Any] = {
            "root": str(self.root),
            "options": options.to_dict(),
            "dropped": dropped.to_dict() if dropped else None,
            "n_tables": part.first_table + part.n_tables,
            "proposer": proposer,
            "strategy": "dep2refs",
            "touching": False,
        }
        # New columns in old and new ones; given ref2deps, new ones are asked what they contain of new ones.
        inverse = proposer == "signatures" and matching.strategy == "ref2deps" and not options.max_error
        ranges = self._ranges(part)
        first = {**shared, "probe": new, "against": [*old, new], "folder": piece_folder(ranges, self.staging)}
        results: list[MatchResult] = []
        if inverse:
            alone = [{**first, "do": ["describe", "count"], **r} for r in ranges]
            results = self._run(alone, part.n_entries * NS_MATCH, progress)
            part = self._described(part, results, progress)
            new = part.for_tasks()
            first |= {"do": ["match"], "probe": new, "against": old}
            payloads = [{**first, **r} for r in ranges] if old else []
            among = {**shared, "probe": new, "against": [new], "do": ["match"], "strategy": "ref2deps"}
            payloads += [{**among, **r} for r in ranges]
        else:
            payloads = [{**first, "do": ["describe", "count", "match"], **r} for r in ranges]
        # Old columns in new ones: by what the new ones contain, or by the pivots of the old ones.
        contained = proposer == "signatures" and not options.max_error
        for ref, fields in zip(earlier, old, strict=True):
            both = {**shared, "probe": fields, "against": [new], "touching": True}
            if contained:
                payloads += [{**both, "do": ["count"], **r} for r in self._ranges(ref)]
                query = {**shared, "probe": new, "against": [fields], "strategy": "ref2deps", "do": ["match"]}
                payloads += [{**query, **r} for r in ranges]
            else:
                payloads += [{**both, "do": ["count", "match"], **r} for r in self._ranges(ref)]
        ns = part.n_entries * (1 + len(old)) * NS_MATCH
        if "integer" not in options.filters:
            ns += part.n_active * sum(p.n_active for p in parts) * NS_PAIR
        results += self._run(payloads, ns, progress)
        part = part if inverse else self._described(part, results, progress)
        return proposer, (*earlier, part), results

    def _run(self, payloads: list[Payload], ns: float, progress: Progress | None) -> list[MatchResult]:
        where = self.engine.choose(ns, parallel=True)
        results = self.engine.run(match_columns, payloads, where=where, progress=progress, parallel=True)
        return [MatchResult.from_dict(json.loads(r)) for r in results]

    def _ranges(self, part: PartRef) -> list[dict[str, int]]:
        """Ranges of columns with about equally many values."""
        n_tasks = max(1, min(part.n_columns, -(-part.n_entries // ENTRIES_PER_TASK)))
        offsets = open_array(self.root, part.arrays["offsets"])
        wanted = (np.arange(1, n_tasks) * part.n_entries) // n_tasks
        cuts = np.unique([0, *np.searchsorted(offsets, wanted).tolist(), part.n_columns]).tolist()
        return [{"low": a, "high": b} for a, b in itertools.pairwise(cuts)]

    def _removed_without(self, state: LakeState, gone: I32) -> NDArray[np.int64]:
        """What each filter keeps out of a lake, but for what concerns some tables."""
        removed = np.array([state.removed.get(name, 0) for name in FILTERS], np.int64)
        if not len(gone) or not state.options.filters:
            return removed
        with self._phase("counting what goes") as progress:
            against = [p.for_tasks() for p in state.parts]
            shared = {**self._shared(state), "gone": gone.tolist(), "against": against}
            payloads = [{**shared, "probe": p.for_tasks(), **r} for p in state.parts for r in self._ranges(p)]
            n_entries = sum(p.n_entries for p in state.parts)
            where = self.engine.choose(n_entries * NS_MATCH, parallel=True)
            results = self.engine.run(count_dropped, payloads, where=where, progress=progress, parallel=True)
            counts: NDArray[np.int64] = np.sum([json.loads(r)[1:] for r in results], axis=0, dtype=np.int64)
        return removed - counts

    # -- the graph -----------------------------------------------------------------------------

    def _connected(self, state: LakeState, before: LakeState | None) -> LakeStep:
        """The step with its graph. `before`: tables only came; None: some went, all links are made anew."""
        if before is None:
            with self._phase("linking tables") as progress:
                state = self._relinked(state, progress)
        earlier = before.graph if before is not None else None
        if earlier is not None and "weights" not in earlier.files:
            earlier = None  # of an older format
        links = state.links if earlier is None or before is None else state.links[len(before.links) :]
        with self._phase("connecting tables") as progress:
            dead = ~live_tables(self.root, state)
            graph = connect(
                self.engine, self.root, FOLDER, self.staging, links, state.next_table, dead, earlier, progress
            )
        state = self._gathered(self._merged(replace(state, graph=graph)))
        return LakeStep(state, phases=tuple(self.phases))

    def _relinked(self, state: LakeState, progress: Progress | None) -> LakeState:
        shared = {**self._shared(state), "parts": [p.for_tasks() for p in state.parts]}
        payloads = [{**shared, "inds": f.to_dict()} for f in state.inds]
        n_bytes = sum(f.length for f in state.inds)
        where = self.engine.choose(n_bytes * NS_LINK, parallel=True)
        results = self.engine.run(link_tables, payloads, where=where, progress=progress, parallel=True)
        linked = [MatchResult.from_dict(json.loads(r)) for r in results]
        links = tuple(result.links for result in linked if result.links)
        return replace(state, links=links, n_inds=sum(result.n_inds for result in linked))


def _by_filter(counts: NDArray[np.int64], options: LakeOptions) -> dict[str, int]:
    named = zip(FILTERS, counts.tolist(), strict=True)
    return {name: count for name, count in named if name in options.filters}
