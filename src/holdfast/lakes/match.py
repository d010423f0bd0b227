"""The tasks that match columns of a lake, link its tables, and count what the filters keep out.

Arrays are memory maps and inclusions go to Parquet in chunks (`propose.py`): a task holds one chunk and
the bitmaps of the most frequent values, and the driver nothing but counts and file names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from holdfast.core.store.files import FileRef, NewFile, new_file, unique_name
from holdfast.core.store.root import Root, root_of
from holdfast.core.words.codec import Coded
from holdfast.lakes import FILTERS
from holdfast.lakes.kernels.rarest_value import rarity
from holdfast.lakes.kernels.removed_inds import removed
from holdfast.lakes.kernels.table_links import LinkCollector
from holdfast.lakes.propose import Lookups, Pairs, matched, max_missing
from holdfast.lakes.sides import I64, U64, Bool, Payload, Side, bit_words, opened
from holdfast.lakes.state import (
    FOLDER,
    INDS_SCHEMA,
    LINKS_SCHEMA,
    LakeOptions,
    parquet_batches,
    write_array,
)

# Links of a table to others that are kept beside those that keep its component connected.
LINKS_KEPT = 64


@dataclass(frozen=True, slots=True)
class MatchResult(Coded):
    """What a task has found: how many inclusions, where they lie, and what the filters keep out."""

    n_inds: int
    removed: tuple[int, ...]
    inds: FileRef | None
    links: FileRef | None
    described: Mapping[str, FileRef] = field(default_factory=dict)  # of its columns, pieces of these arrays


def _pairs_writer(file: NewFile, schema: pa.Schema) -> Any:
    """Referenced columns ascend for each dependent one: as differences they are half as long, and are read in
    half the time, since all of them are when somebody asks what refers to a table."""
    packed = [name for name in schema.names if name != "referenced"]
    return pq.ParquetWriter(
        file,
        schema,
        use_dictionary=packed,
        column_encoding={name: "DELTA_BINARY_PACKED" for name in schema.names if name not in packed},
        compression={name: "zstd" if name in packed else "none" for name in schema.names},
        compression_level=dict.fromkeys(packed, 1),
    )


class _Output:
    """Writes inclusions and links, chunk by chunk. A file is made with its first row."""

    def __init__(self, root: Root, n_tables: int) -> None:
        self._root = root
        self._stack = ExitStack()
        self._writers: dict[str, Any] = {}
        self._files: dict[str, NewFile] = {}
        self._links = LinkCollector(n_tables, LINKS_KEPT)
        self.n_inds = 0

    def __enter__(self) -> _Output:
        return self

    def __exit__(self, *failure: Any) -> None:
        self._stack.__exit__(*failure)

    def write(self, pairs: Pairs, deps: Side, refs: Side, shares: NDArray[np.float32]) -> None:
        """Inclusions, and their links. Pairs are sorted by dependent; `shares`: the rarity of its columns."""
        dep, ref, shared = pairs
        if not len(dep):
            return
        self.n_inds += len(dep)
        first_dep, first_ref = np.int32(deps.ref.first_column), np.int32(refs.ref.first_column)
        self._append("inds", INDS_SCHEMA, (dep + first_dep, ref + first_ref, shared))
        self.write_links(pairs, deps, refs, shares)

    def write_links(self, pairs: Pairs, deps: Side, refs: Side, shares: NDArray[np.float32]) -> None:
        sizes = deps.sizes
        distinctive = shares * (sizes / (sizes + 2.0)).astype(np.float32)
        links = self._links.of(
            *pairs, (sizes, distinctive, deps.tables), (refs.sizes, refs.uniqueness, refs.tables)
        )
        if len(links[0]):
            self._append("links", LINKS_SCHEMA, links)

    def _append(self, what: str, schema: pa.Schema, arrays: Sequence[NDArray[Any]]) -> None:
        if what not in self._writers:
            name = unique_name(FOLDER, what, ".parquet")
            file = self._files[what] = self._stack.enter_context(new_file(self._root, name))
            self._writers[what] = self._stack.enter_context(_pairs_writer(file, schema))
        self._writers[what].write_batch(pa.record_batch(list(map(pa.array, arrays)), schema=schema))

    def sealed(self) -> tuple[FileRef | None, FileRef | None]:
        self._stack.close()
        files = [self._files.get(what) for what in ("inds", "links")]
        inds, links = (file.ref if file else None for file in files)
        return inds, links


# -- the task ----------------------------------------------------------------------------------


def match_columns(payload: Payload) -> bytes:
    """Match columns `low` to `high` of the part `probe` with each part of `against`.

    They are the dependent ones, unless the strategy is ref2deps. `do` lists what is wanted: "describe" (find
    pivots and rarity, and write them into `folder`; `against` must be all parts of the lake), "count" (what
    the filters keep out) or "match". `touching`: only those whose pivot is a value of `against[0]`.
    """
    root, options = root_of(payload["root"]), LakeOptions.from_dict(payload["options"])
    probe = opened(payload, payload["probe"])
    against = [opened(payload, part) for part in payload["against"]]
    columns = np.arange(payload["low"], payload["high"])
    counts = np.zeros(len(FILTERS) + 1, np.int64)
    lookups = Lookups(probe, payload["low"])
    pieces: dict[str, FileRef] = {}
    shares: NDArray[np.float32] | None = None  # of the columns that are described, the only ones looked at
    if "describe" in payload["do"]:
        arrays = _describe(lookups, against, columns)
        pieces = {name: write_array(root, payload["folder"], name, a) for name, a in arrays.items()}
        shares = np.zeros(probe.ref.n_columns, np.float32)
        shares[columns] = arrays["rarity"]
    probed = _touching(probe, against[0], columns, options) if payload["touching"] else columns
    if "count" in payload["do"] and options.filters:
        for side in against:
            counts += count_removed(lookups, side, probed[probe.alive[probed]], side.alive)
    with _Output(root, payload["n_tables"]) as output:
        for side in against if "match" in payload["do"] else ():
            for deps, refs, pairs in matched(
                lookups, side, probed, options, payload["proposer"], payload["strategy"]
            ):
                output.write(pairs, deps, refs, deps.array("rarity") if shares is None else shares)
        n_inds, files = output.n_inds, output.sealed()
    return json.dumps(MatchResult(n_inds, tuple(counts.tolist()), *files, pieces).to_dict()).encode()


# -- what else is known of columns -------------------------------------------------------------


def _describe(lookups: Lookups, against: Sequence[Side], columns: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """The pivots and the rarity of new columns. Frequencies are those in the whole lake."""
    offsets, values, _ = lookups.probe.values_of(columns)
    totals = np.zeros(len(values), np.int64)
    for side in against:
        totals += lookups.whole(side, columns).lengths
    lengths = np.minimum(totals, 2**31 - 1).astype(np.int32)
    n_columns = max(2, sum(side.ref.n_columns for side in against))
    pivots, shares = rarity(offsets, lengths, values, n_columns)
    return {"pivots": pivots, "rarity": shares}


def _touching(probe: Side, side: Side, columns: NDArray[Any], options: LakeOptions) -> NDArray[Any]:
    """The columns that one of `side` may contain: it has their pivot, or they may lack some value."""
    there = _among(side.array("keys"), probe.array("pivots")[columns])
    if options.max_error:
        there |= max_missing(probe.sizes[columns], options) > 0
    return columns[there]


def _among(values: U64, pivots: U64) -> Bool:
    """Which pivots are among some values, which are sorted."""
    if not len(values):
        return np.zeros(len(pivots), np.bool_)
    at = np.minimum(np.searchsorted(values, pivots), len(values) - 1)
    there: Bool = values[at] == pivots
    return there


def count_removed(lookups: Lookups, side: Side, deps: NDArray[Any], live: Bool) -> I64:
    """How many exact inclusions of these columns in live columns each filter keeps out; first, none does."""
    probe, lookup = lookups.probe, lookups.of(side, deps)
    dep_ids = deps.astype(np.int64) if probe.same_part(side) else np.full(len(deps), -1, np.int64)
    counts: I64 = removed(
        lookup.offsets,
        lookup.starts,
        lookup.lengths,
        lookup.slots,
        side.array("postings"),
        side.maps,
        probe.array("flags")[deps],
        dep_ids,
        side.array("flags"),
        side.sizes,
        bit_words(live),
        probe.options.tau,
        probe.options.filter_bits,
    )
    return counts


# -- dropped tables ----------------------------------------------------------------------------


def count_dropped(payload: Payload) -> bytes:
    """What the filters keep out that concerns tables about to be dropped (`gone`, numbers of tables).

    Of columns `low` to `high` of `probe`: all inclusions if their table goes, else those in columns that go.
    """
    probe, gone = opened(payload, payload["probe"]), np.array(payload["gone"], np.int32)
    columns = np.arange(payload["low"], payload["high"])
    columns = columns[probe.alive[columns]]
    goes = np.isin(probe.tables[columns], gone)
    counts = np.zeros(len(FILTERS) + 1, np.int64)
    lookups = Lookups(probe, payload["low"])
    for part in payload["against"]:
        side = opened(payload, part)
        going: Bool = side.alive & np.isin(side.tables, gone)
        counts += count_removed(lookups, side, columns[goes], side.alive)
        if going.any():
            values = np.unique(side.values_of(np.flatnonzero(going))[1])
            stays = columns[~goes]
            there = _among(values, probe.array("pivots")[stays])
            counts += count_removed(lookups, side, stays[there], going)
    return json.dumps(counts.tolist()).encode()


def gather_pairs(payload: Payload) -> bytes:
    """One file of many small ones, `inds` or `links`, without what concerns dropped tables."""
    root, what = root_of(payload["root"]), payload["what"]
    schema = INDS_SCHEMA if what == "inds" else LINKS_SCHEMA
    parts = [opened(payload, part) for part in payload["parts"]]
    # Of each column, or of each table, whether it is alive; all are numbered from 0 through the parts.
    if what == "inds":
        alive = np.concatenate([side.alive for side in parts])
    else:
        alive = np.ones(payload["n_tables"], np.bool_)
        alive[parts[0].dropped] = False
    name = unique_name(FOLDER, what, ".parquet")
    files = [FileRef.from_dict(f) for f in payload["files"]]
    with new_file(root, name) as file, _pairs_writer(file, schema) as writer:
        for batch in parquet_batches(root, files, schema.names):
            ends = (np.asarray(batch.column(i)) for i in (0, 1))
            live = np.logical_and(*(alive[end] for end in ends))
            writer.write_batch(batch.filter(pa.array(live)))
    return json.dumps(file.ref.to_dict()).encode()


def link_tables(payload: Payload) -> bytes:
    """Links between live tables, from a file of inclusions; how many inclusions of live tables it has."""
    root = root_of(payload["root"])
    parts = [opened(payload, part) for part in payload["parts"]]
    firsts = np.array([side.ref.first_column for side in parts])
    n_inds = 0
    with _Output(root, payload["n_tables"]) as output:
        file = FileRef.from_dict(payload["inds"])
        for batch in parquet_batches(root, [file], INDS_SCHEMA.names):
            dep, ref, shared = (np.asarray(column) for column in batch.columns)
            owner = np.searchsorted(firsts, dep, side="right") * len(firsts)
            owner += np.searchsorted(firsts, ref, side="right") - len(firsts) - 1
            for both in np.unique(owner).tolist():
                deps, refs = parts[both // len(firsts)], parts[both % len(firsts)]
                at = np.flatnonzero(owner == both)
                a, b = dep[at] - deps.ref.first_column, ref[at] - refs.ref.first_column
                live = deps.alive[a] & refs.alive[b]
                n_inds += int(np.count_nonzero(live))
                pairs = a[live].astype(np.int32), b[live].astype(np.int32), shared[at][live]
                output.write_links(pairs, deps, refs, deps.array("rarity"))
        _, links = output.sealed()
    return json.dumps(MatchResult(n_inds, (), None, links).to_dict()).encode()
