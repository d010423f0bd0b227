"""The generator at work: value -> {column: frequency}, kept as runs, changed by batches.

    merge (insert)   f + df: the values' entries are added
    extract (delete) f - df: they are subtracted
    change           both at once: cells that stay as they are cancel out before anything is looked up

Each method is a constant number of jobs: absorbing is one inline step, or two Spark jobs, the two sides of an
exchange by value; of a small batch one. The driver gets clusters and what broke, nothing per value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.distance import TABLE_BYTES, are_far
from holdfast.core.engine.engine import Engine
from holdfast.core.engine.job_progress import Progress
from holdfast.core.rows.segments import open_segment
from holdfast.core.rows.table_state import SegmentRef
from holdfast.core.store.bundle import Bundle, unpack, write_bundle
from holdfast.core.store.files import FileRef, unique_name
from holdfast.core.store.root import Root
from holdfast.core.words.schema import Schema
from holdfast.inclusions import value_tasks
from holdfast.inclusions.generator import GeneratorState, RunRef, ValueTable
from holdfast.inclusions.kernels import sorted_runs
from holdfast.inclusions.kernels.clusters import Clusters, joined_clusters, tally
from holdfast.inclusions.runs import ENTRY_BYTES, key_range, write_part
from holdfast.inclusions.value_tasks import Outcome, Setting, part_ref

U64 = NDArray[np.uint64]
U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]

# What work takes on one core, in ns: to take in a cell, to merge an entry.
NS_CELL, NS_ENTRY = 60, 50
# So few cells are looked at by every task of an exchange: less work than a job that divides them.
FEW_CELLS = 400_000
# Entries of one part of a run, and so of one task.
PART_ENTRIES = 1 << 21
# Runs of one size that are merged into one.
MERGE_FANOUT = 8
SMALLEST_TIER = 4096


@dataclass(frozen=True, slots=True)
class Cells:
    """Rows of a segment whose cells come (sign 1) or go (sign -1)."""

    table: ValueTable
    schema: Schema
    segment: SegmentRef
    positions: I64 | None  # None: all live rows
    sign: int

    @property
    def n_cells(self) -> int:
        n_rows = self.segment.n_live if self.positions is None else len(self.positions)
        return n_rows * len(self.table.columns)

    @property
    def n_values(self) -> int:
        """How many entries they are at most: a value of a column counts once."""
        n_rows = self.segment.n_live if self.positions is None else len(self.positions)
        columns = (self.schema.names.index(name) for name in self.table.columns)
        return sum(min(n_rows, self.segment.distinct[c]) for c in columns)


@dataclass(frozen=True, slots=True)
class Absorption:
    """What a batch did to the generator."""

    clusters: Clusters  # the change of the clusters
    runs: tuple[RunRef, ...]  # the batch's own
    broken: I64  # [n_holding]: how many values break each inclusion that held
    keys: U64  # [n_holding, WITNESSES]: the first of these values
    checks: U32
    accesses: Mapping[str, int]


@dataclass(frozen=True)
class Values:
    """The generator of a workspace, and where its new files go."""

    root: Root
    folder: str
    staging: str
    state: GeneratorState
    engine: Engine
    progress: Progress | None = None

    def _stage(self, what: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
        name = unique_name(self.staging, what, ".arrow")
        return write_bundle(self.root, name, arrays, {"holdfast": what}).to_dict()

    def absorb(self, cells: Sequence[Cells], hold_offsets: I64, hold_columns: U32) -> Absorption:
        """Take the cells of a batch in. `hold_*` are the inclusions that held before, by column."""
        setting = Setting(self.state.live(), self.state.append_only(), hold_offsets, hold_columns)
        little = self.engine.choose(NS_CELL * sum(c.n_cells for c in cells)) == "inline"
        if little and not self._are_far([*(c.segment.file for c in cells), *self._run_files()]):
            return self._absorb_inline(cells, setting)
        return self._absorb_on_spark(cells, setting)

    def _run_files(self) -> list[FileRef]:
        return [ref for run in self.state.runs for ref in run.files()]

    def _are_far(self, files: Sequence[FileRef]) -> bool:
        """Whether executors had better look at the files of segments and runs, however little that is."""
        return are_far(self.engine, self.root, files, TABLE_BYTES)

    def _absorb_inline(self, cells: Sequence[Cells], setting: Setting) -> Absorption:
        parts = [
            value_tasks.segment_entries(
                open_segment(self.root, c.segment, c.schema), c.table, c.positions, c.sign
            )
            for c in cells
        ]
        delta = value_tasks.counted_once(
            sorted_runs.consolidate(sorted_runs.joined(parts)), setting.append_only
        )
        outcome = value_tasks.absorb_entries(self.root, delta, self.state.runs, setting)
        written = []
        for append_only, entries in enumerate(value_tasks.divided(outcome.entries, setting.append_only)):
            if len(entries):
                written.append(self._written(entries, append_only=bool(append_only)))
        return self._absorption([outcome], written, setting)

    def _written(self, entries: sorted_runs.Entries, *, append_only: bool) -> RunRef:
        """Entries as a run of parts of a size that suits tasks."""
        bits = _bits(len(entries))
        bounds = [key_range(bits, i)[0] for i in range(1 << bits)]
        at = np.append(np.searchsorted(entries.keys, np.array(bounds, np.uint64)), len(entries))
        parts = [
            write_part(self.root, self.folder, entries.slice(int(at[i]), int(at[i + 1])), bits, i)
            for i in range(1 << bits)
        ]
        return RunRef(len(entries), bits, tuple(parts), append_only)

    def _absorb_on_spark(self, cells: Sequence[Cells], setting: Setting) -> Absorption:
        collecting, files = [self._collecting(c) for c in cells], []
        n_entries = sum(c.n_cells for c in cells)
        if n_entries > FEW_CELLS and self.engine.shuffles:
            return self._absorb_by_shuffle(collecting, cells, setting)
        if n_entries > FEW_CELLS:
            collected = self._run(value_tasks.collect_part, collecting)
            files = [ref.to_dict() for r in collected if (ref := part_ref(r.meta)) is not None]
            collecting, n_entries = [], sum(int(r.meta["n"]) for r in collected)
        bits = _bits(n_entries, at_least=self.engine.shares(NS_CELL * n_entries))
        payloads = self._by_range(setting, self.state.runs, bits, entries=files, cells=collecting)
        return self._absorbed(self._run(value_tasks.absorb_part, payloads), bits, setting)

    def _absorb_by_shuffle(
        self, collecting: list[dict[str, Any]], cells: Sequence[Cells], setting: Setting
    ) -> Absorption:
        """The same in one job, by Spark's shuffle: where what a task writes is not on the next one's disk."""
        n_entries = sum(c.n_values for c in cells)
        bits = _bits(n_entries, at_least=self.engine.shares(NS_CELL * n_entries))
        results = self.engine.exchange(
            value_tasks.collect_blocks,
            [{**payload, "bits": bits} for payload in collecting],
            value_tasks.absorb_blocks,
            self._by_range(setting, self.state.runs, bits),
            self.progress,
        )
        return self._absorbed([unpack(result) for result in results], bits, setting)

    def _absorbed(self, results: Sequence[Bundle], bits: int, setting: Setting) -> Absorption:
        """What the tasks of all ranges say together."""
        written = []
        for append_only, prefix in enumerate(("counted.", "appended.")):
            n_entries = sum(int(r.meta[f"{prefix}n"]) for r in results)
            if n_entries:
                parts = tuple(part_ref(r.meta, prefix) for r in results)
                written.append(RunRef(n_entries, bits, parts, bool(append_only)))
        return self._absorption([value_tasks.unpacked_outcome(r) for r in results], written, setting)

    def _collecting(self, cells: Cells) -> dict[str, Any]:
        positions = None
        if cells.positions is not None:
            positions = self._stage("positions", {"positions": cells.positions})
        return {
            "root": str(self.root),
            "staging": self.staging,
            "segment": cells.segment.to_dict(),
            "schema": json.dumps(cells.schema.to_dict()),
            "table": cells.table.to_dict(),
            "positions": positions,
            "sign": cells.sign,
        }

    def _by_range(
        self, setting: Setting, runs: Sequence[RunRef], bits: int, **fields: Any
    ) -> list[dict[str, Any]]:
        """A payload for each range of values, by the top `bits` of their keys."""
        common = {
            "root": str(self.root),
            "folder": self.folder,
            "setting": self._stage("setting", setting.to_arrays()),
            "runs": [r.to_dict() for r in runs],
            "bits": bits,
            **fields,
        }
        return [{**common, "part": i} for i in range(1 << bits)]

    def _run(self, task: Any, payloads: list[dict[str, Any]]) -> list[Bundle]:
        return [unpack(r) for r in self.engine.run(task, payloads, where="spark", progress=self.progress)]

    def _absorption(
        self, outcomes: Sequence[Outcome], written: Sequence[RunRef], setting: Setting
    ) -> Absorption:
        n_entries, n_reads = (sum(getattr(o, name) for o in outcomes) for name in ("n_entries", "n_reads"))
        return Absorption(
            tally(joined_clusters([o.clusters for o in outcomes])),
            tuple(written),
            *value_tasks.broken_by(outcomes, len(setting.hold_columns)),
            {
                "values_looked_up": sum(o.n_values for o in outcomes),
                "keys_read": n_reads,
                "entries_read": n_entries,
                "bytes_read": 8 * n_reads + ENTRY_BYTES * n_entries,
                "entries_written": sum(r.n_entries for r in written),
            },
        )

    def tidied(self, *, everything: bool = False) -> GeneratorState:
        """The state with runs merged where one size has become too many, as segments are.

        All of them are where half of their entries, or more, are of dropped columns.
        """
        state = self.state
        if everything or 2 * state.n_dead > sum(r.n_entries for r in state.runs):
            least = 1 if state.n_dead else 2
            merged: list[RunRef] = []
            for append_only in (False, True):
                alike = [r for r in state.runs if r.append_only == append_only]
                merged += self._merged(state, alike) if len(alike) >= least else alike
            return replace(state, runs=tuple(merged), n_dead=0)
        while chosen := _runs_to_merge(state.runs):
            rest = tuple(r for r in state.runs if r not in chosen)
            state = replace(state, runs=(*self._merged(state, chosen), *rest))
        return state

    def _merged(self, state: GeneratorState, chosen: Sequence[RunRef]) -> list[RunRef]:
        setting = Setting(state.live(), state.append_only(), np.zeros(1, np.int64), np.empty(0, np.uint32))
        n_entries, append_only = sum(r.n_entries for r in chosen), chosen[0].append_only
        files = [ref for run in chosen for ref in run.files()]
        if self.engine.choose(NS_ENTRY * n_entries) == "inline" and not self._are_far(files):
            whole = value_tasks.merged_range(
                self.root, chosen, setting.live, setting.append_only, 0, (1 << 64) - 1, self.staging
            )
            return [self._written(whole, append_only=append_only)] if len(whole) else []
        bits = _bits(n_entries, at_least=self.engine.shares(NS_ENTRY * n_entries))
        results = self._run(value_tasks.merge_part, self._by_range(setting, chosen, bits))
        total = sum(int(r.meta["n"]) for r in results)
        parts: tuple[FileRef | None, ...] = tuple(part_ref(r.meta) for r in results)
        return [RunRef(total, bits, parts, append_only)] if total else []


def _bits(n_entries: int, at_least: int = 1) -> int:
    """How many bits of the key divide this many entries into parts for tasks."""
    n_parts = max(at_least, -(-n_entries // PART_ENTRIES))
    return max(0, (n_parts - 1).bit_length())


def _tier(n_entries: int) -> int:
    return int(np.log2(max(n_entries, SMALLEST_TIER) / SMALLEST_TIER) / np.log2(MERGE_FANOUT))


def _runs_to_merge(live_runs: Sequence[RunRef]) -> list[RunRef]:
    """The next runs to merge, or none. Runs with and without frequencies stay apart."""
    tiers: dict[tuple[bool, int], list[RunRef]] = {}
    for run in live_runs:
        tiers.setdefault((run.append_only, _tier(run.n_entries)), []).append(run)
    return next((members for _, members in sorted(tiers.items()) if len(members) >= MERGE_FANOUT), [])
