"""The task functions of the generator: what one Spark task (or the driver, inline) does.

- `collect_part`: the cells of some rows of one segment as sorted entries (value, column, +-count).
- `absorb_part`: one range of values: look the delta's values up in the runs, say what becomes of their
  clusters, write the delta as a run. Of few cells each of these tasks looks at all, and takes its range.
- `merge_part`: one range of values of several runs as one.

`collect_part` and `absorb_part` are the two sides of the exchange by value: the first writes entries
sorted by key, and each of the second reads its range of all those files. Where tasks share no disk the
exchange is Spark's: `collect_blocks` and `absorb_blocks` are the same two sides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.rows.segments import Segment
from holdfast.core.rows.tasks import Payload, opened, parsed_schema, staged
from holdfast.core.store.bundle import Bundle, pack, unpack
from holdfast.core.store.files import FileRef, check_file
from holdfast.core.store.root import Root, root_of
from holdfast.errors import DamagedFileError
from holdfast.inclusions.generator import RunRef, ValueTable
from holdfast.inclusions.identity import identities
from holdfast.inclusions.kernels import clusters, sorted_runs
from holdfast.inclusions.kernels.clusters import WITNESSES, Clusters
from holdfast.inclusions.kernels.sorted_runs import Entries
from holdfast.inclusions.runs import entries_in_range, key_range, open_part, write_part

U64 = NDArray[np.uint64]
U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

# The arrays of entries, as blocks have them.
FIELDS = ("keys", "checks", "columns", "counts")
# What an outcome counts, as `absorb_part` packs it.
COUNTS = ("n_values", "n_reads", "n_entries")


# -- collect -----------------------------------------------------------------------------------


def segment_entries(segment: Segment, table: ValueTable, positions: I64 | None, sign: int) -> Entries:
    """The cells of some rows (None: all live ones) as entries; not consolidated across columns.

    Cost: a count of the rows' codes, and the identity of each distinct value among them.
    """
    if positions is None and segment.ref.n_deleted:
        positions = np.flatnonzero(segment.live)
    parts = []
    for column_id, name in zip(table.ids, table.columns, strict=True):
        c = segment.schema.names.index(name)
        dictionary, texts, codes = segment.dictionary(c), segment.texts(c), segment.codes[c]
        if positions is None:
            counts = np.bincount(codes, minlength=len(dictionary) + 1)[1:]
            used = np.flatnonzero(counts)
            counts = counts[used]
        else:
            local, counts = np.unique(codes[positions], return_counts=True)
            used, counts = local[local > 0] - 1, counts[local > 0]
        if len(used) < len(dictionary):
            dictionary = dictionary[used]
            texts = None if texts is None else texts.take(pa.array(used))
        keys, checks = identities(dictionary, texts, segment.schema.types[c], table.as_text, segment.key)
        amount = np.ones(len(keys), np.int64) if table.append_only else counts.astype(np.int64)
        parts.append(Entries(keys, checks, np.full(len(keys), column_id, np.uint32), sign * amount))
    return sorted_runs.joined(parts)


def cells_entries(payload: Payload) -> Entries:
    """The entries of the cells that a payload names, consolidated."""
    segment = opened(payload, "segment", parsed_schema(payload["schema"]))
    positions = None
    if payload["positions"] is not None:
        positions = staged(payload, "positions").array("positions")
    table = ValueTable.from_dict(payload["table"])
    return sorted_runs.consolidate(segment_entries(segment, table, positions, payload["sign"]))


def collect_part(payload: Payload) -> bytes:
    """Entries of one segment, consolidated, into a staged file."""
    entries = cells_entries(payload)
    ref = write_part(root_of(payload["root"]), payload["staging"], entries)
    return pack({}, _file_meta(ref, entries))


def collect_blocks(payload: Payload) -> Iterator[tuple[int, bytes]]:
    """Entries of one segment, consolidated, as a block for each range of values that has any."""
    entries = cells_entries(payload)
    parts = (entries.keys >> np.uint64(64 - payload["bits"])) if payload["bits"] else np.zeros(len(entries))
    numbers, starts = np.unique(parts.astype(np.int64), return_index=True)
    for part, start, end in zip(numbers.tolist(), starts, [*starts[1:], len(entries)], strict=True):
        yield part, pack(dict(zip(FIELDS, entries.slice(int(start), int(end)).arrays(), strict=True)), {})


def absorb_blocks(blocks: Iterator[bytes], payload: Payload) -> bytes:
    """One range of values of a delta that comes in blocks."""
    parts = [Entries(*(block.array(name) for name in FIELDS)) for block in map(unpack, blocks)]
    return _absorbed(parts, payload)


def _file_meta(ref: FileRef | None, entries: Entries, prefix: str = "") -> dict[str, str]:
    """The file that a task has written, if it has, and how many entries: `part_ref` reads it."""
    meta = {"file": "", "n": str(len(entries))}
    if ref is not None:
        meta |= {"file": ref.name, "length": str(ref.length), "checksum": ref.checksum}
    return {prefix + name: text for name, text in meta.items()}


def part_ref(meta: dict[str, str], prefix: str = "") -> FileRef | None:
    """The file that a task says it has written."""
    if not meta[f"{prefix}file"]:
        return None
    return FileRef(meta[f"{prefix}file"], int(meta[f"{prefix}length"]), meta[f"{prefix}checksum"])


# -- absorb ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """What all tasks of an absorption know: the columns, and the inclusions that hold before it."""

    live: Bool  # [n_ids]
    append_only: Bool  # [n_ids]
    hold_offsets: I64  # [n_ids + 1]
    hold_columns: U32

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> Setting:
        return cls(
            bundle.array("live").astype(np.bool_),
            bundle.array("append_only").astype(np.bool_),
            bundle.array("hold_offsets"),
            bundle.array("hold_columns"),
        )

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "live": self.live.astype(np.uint8),
            "append_only": self.append_only.astype(np.uint8),
            "hold_offsets": self.hold_offsets,
            "hold_columns": self.hold_columns,
        }


@dataclass(frozen=True)
class Outcome:
    """What the values of one range made of a delta. Of inclusions only those that it breaks are in it."""

    clusters: Clusters  # the change of the clusters
    hit: I64  # [n_hit]: the inclusions that it breaks, of those that held
    broken: I64  # [n_hit]: how many values break each of them
    keys: U64  # [n_hit, WITNESSES]: the identities of the first of them
    checks: U32
    entries: Entries  # what the run of this delta holds: without what append-only tables had already
    n_values: int  # looked up
    n_reads: int  # keys read while looking them up
    n_entries: int  # read


def absorb_entries(root: Root, delta: Entries, live_runs: Sequence[RunRef], setting: Setting) -> Outcome:
    """Merge or extract the values of a consolidated delta: look each of them up once.

    Cost: follows the delta. Of the runs only what stands around its values is read.
    """
    starts = sorted_runs.value_starts(delta)
    keys, checks = delta.keys[starts[:-1]], delta.checks[starts[:-1]]
    value, column, count, n_reads = looked_up(root, keys, checks, live_runs, setting.live)
    old_starts = np.searchsorted(value, np.arange(len(keys) + 1)).astype(np.int64)
    absorbed = clusters.absorb(
        starts,
        delta.columns,
        delta.counts,
        old_starts,
        column,
        count,
        setting.append_only,
        setting.hold_offsets,
        setting.hold_columns,
    )
    if absorbed.negative >= 0:
        raise DamagedFileError(
            f"the value runs of the workspace {str(root)!r} do not agree with its tables: a value of column "
            f"{int(delta.columns[absorbed.negative])} would occur less than never. Nothing was applied. "
            "Restore the workspace from a backup, or track its tables anew."
        )
    hit = np.flatnonzero(absorbed.broken)
    chosen = np.maximum(absorbed.witnesses[hit], 0)
    written = absorbed.fresh | ~setting.append_only[delta.columns]
    if not written.all():
        delta = Entries(*(a[written] for a in delta.arrays()))
    return Outcome(
        clusters.tally(absorbed.events),
        hit,
        absorbed.broken[hit],
        keys[chosen],
        checks[chosen],
        delta,
        len(keys),
        n_reads,
        len(value),
    )


def looked_up(
    root: Root, keys: U64, checks: U32, live_runs: Sequence[RunRef], live: Bool
) -> tuple[I64, U32, I64, int]:
    """(value, column, count, reads): what all runs say of some values, by value and column."""
    values, columns, counts, n_reads = [], [], [], 0
    for run in live_runs:
        bounds = [key_range(run.bits, i)[0] for i in range(len(run.parts))]
        firsts = np.append(np.searchsorted(keys, np.array(bounds, np.uint64)), len(keys))
        for i, ref in enumerate(run.parts):
            low, high = int(firsts[i]), int(firsts[i + 1])
            if ref is None or low == high:
                continue
            part = open_part(root, ref)
            start, end, reads = part.find(keys[low:high], checks[low:high])
            n_reads += reads
            lengths = end - start
            total = int(lengths.sum())
            if not total:
                continue
            at = np.arange(total) + np.repeat(start - (np.cumsum(lengths) - lengths), lengths)
            values.append(low + np.repeat(np.arange(high - low), lengths))
            columns.append(part.columns(at))
            counts.append(part.counts(at))
    if not values:
        return np.empty(0, np.int64), np.empty(0, np.uint32), np.empty(0, np.int64), n_reads
    value, column, count = (np.concatenate(a) for a in (values, columns, counts))
    alive = live[column]
    value, column, count = value[alive], column[alive], count[alive]
    place = (value.astype(np.uint64) << np.uint64(32)) | column
    order = np.argsort(place, kind="stable")
    place, count = place[order], count[order]
    first = np.flatnonzero(np.append(True, place[1:] != place[:-1])) if len(place) else np.empty(0, np.int64)
    total_counts = np.add.reduceat(count, first) if len(first) else count
    place = place[first]
    there = total_counts != 0
    place = place[there]
    return (
        (place >> np.uint64(32)).astype(np.int64),
        (place & np.uint64(0xFFFFFFFF)).astype(np.uint32),
        total_counts[there],
        n_reads,
    )


def counted_once(entries: Entries, append_only: Bool) -> Entries:
    """Entries of tables without frequencies count once, however many segments or runs bring the value."""
    marked = append_only[entries.columns]
    return replace(entries, counts=np.where(marked, 1, entries.counts)) if marked.any() else entries


def divided(entries: Entries, append_only: Bool) -> tuple[Entries, Entries]:
    """(counted, append-only): entries of tables with frequencies, and of those without."""
    marked = append_only[entries.columns]
    if not marked.any():
        return entries, sorted_runs.no_entries()
    if marked.all():
        return sorted_runs.no_entries(), entries
    return (
        Entries(*(a[~marked] for a in entries.arrays())),
        Entries(*(a[marked] for a in entries.arrays())),
    )


def absorb_part(payload: Payload) -> bytes:
    """One range of values of a delta that lies in staged files, or in few cells."""
    root = root_of(payload["root"])
    first, last = key_range(payload["bits"], payload["part"])
    parts = []
    for fields in payload["entries"]:
        whole = RunRef(0, 0, (FileRef.from_dict(fields),), append_only=False)
        parts.append(entries_in_range(root, whole, first, last))
    for cells in payload["cells"]:
        entries = cells_entries(cells)
        start = int(np.searchsorted(entries.keys, np.uint64(first)))
        end = int(np.searchsorted(entries.keys, np.uint64(last), side="right"))
        parts.append(entries.slice(start, end))
    return _absorbed(parts, payload)


def _absorbed(parts: Sequence[Entries], payload: Payload) -> bytes:
    """What one range of values makes of a delta, in parts that are sorted each."""
    root = root_of(payload["root"])
    setting = _setting(root, payload)
    delta = sorted_runs.merge([p for p in parts if len(p)])
    delta = counted_once(delta, setting.append_only)
    outcome = absorb_entries(root, delta, [RunRef.from_dict(r) for r in payload["runs"]], setting)
    meta = {name: str(getattr(outcome, name)) for name in COUNTS}
    for prefix, entries in zip(
        ("counted.", "appended."), divided(outcome.entries, setting.append_only), strict=True
    ):
        ref = write_part(root, payload["folder"], entries, payload["bits"], payload["part"])
        meta |= _file_meta(ref, entries, prefix)
    arrays = {name: getattr(outcome, name) for name in ("hit", "broken", "keys", "checks")}
    return pack({**outcome.clusters._asdict(), **arrays}, meta)


def unpacked_outcome(result: Bundle) -> Outcome:
    """The outcome that `absorb_part` has packed; its entries stay in the files it has written."""
    counts = {name: int(result.meta[name]) for name in COUNTS}
    change = Clusters(*(result.array(name) for name in Clusters._fields))
    keys, checks = (result.array(name).reshape(-1, WITNESSES) for name in ("keys", "checks"))
    entries = sorted_runs.no_entries()
    return Outcome(change, result.array("hit"), result.array("broken"), keys, checks, entries, **counts)


def broken_by(outcomes: Iterable[Outcome], n_holding: int) -> tuple[I64, U64, U32]:
    """(broken, keys, checks) of each inclusion that held: how many values of all ranges break it, and the
    first of them. Memory: that of the answer, and of what the outcomes have."""
    broken = np.zeros(n_holding, np.int64)
    keys = np.zeros((n_holding, WITNESSES), np.uint64)
    checks = np.zeros((n_holding, WITNESSES), np.uint32)
    for outcome in outcomes:
        filled = np.minimum(broken[outcome.hit], WITNESSES)
        for i in range(WITNESSES):  # its next one comes to the next place that is free
            fits = (i < outcome.broken) & (filled + i < WITNESSES)
            at = outcome.hit[fits], filled[fits] + i
            keys[at], checks[at] = outcome.keys[fits, i], outcome.checks[fits, i]
        broken[outcome.hit] += outcome.broken
    return broken, keys, checks


def _setting(root: Root, payload: Payload) -> Setting:
    return _opened_setting(root, FileRef.from_dict(payload["setting"]))


@lru_cache(maxsize=4)
def _opened_setting(root: Root, ref: FileRef) -> Setting:
    return Setting.from_bundle(staged({"root": str(root), "setting": ref.to_dict()}, "setting"))


# -- merge -------------------------------------------------------------------------------------


def merged_range(
    root: Root, live_runs: Sequence[RunRef], live: Bool, append_only: Bool, first: int, last: int, job: str
) -> Entries:
    """One range of values of several runs as one; the entries of dropped columns are gone.

    Each file of the range is read again and hashed, once for a job (by any name of it) in each process: what
    is wrong with it, or with the copy on this machine, would be right in the new run.
    """
    for run in live_runs:
        for ref in run.parts[first >> (64 - run.bits) : (last >> (64 - run.bits)) + 1]:
            if ref is not None:
                _read_again(root, ref, job)
    entries = sorted_runs.merge([e for r in live_runs if len(e := entries_in_range(root, r, first, last))])
    if len(entries):
        alive = live[entries.columns]
        if not alive.all():
            entries = Entries(*(a[alive] for a in entries.arrays()))
    return counted_once(entries, append_only)


@lru_cache(maxsize=4096)
def _read_again(root: Root, ref: FileRef, job: str) -> None:
    check_file(root, ref, deep=True, fresh=True)


def merge_part(payload: Payload) -> bytes:
    root = root_of(payload["root"])
    setting = _setting(root, payload)
    first, last = key_range(payload["bits"], payload["part"])
    live_runs = [RunRef.from_dict(r) for r in payload["runs"]]
    job = payload["setting"]["name"]
    entries = merged_range(root, live_runs, setting.live, setting.append_only, first, last, job)
    ref = write_part(root, payload["folder"], entries, payload["bits"], payload["part"])
    return pack({}, _file_meta(ref, entries))
