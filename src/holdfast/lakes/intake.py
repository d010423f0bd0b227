"""The intake of a lake: tables of the sources of a step, read by tasks into blocks of columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.engine.engine import Engine
from holdfast.core.engine.job_progress import Progress
from holdfast.core.store.files import FileRef, unique_name, write_file
from holdfast.core.store.root import Root
from holdfast.errors import NOTHING_APPLIED, SourceError, shorten, shorten_path
from holdfast.lakes.answers import BAD_LISTED
from holdfast.lakes.files import BadFile, LakeReadOptions, RawTable, plan_lake, read_unit
from holdfast.lakes.index import Block
from holdfast.lakes.read_task import name_digest, read_lake_unit
from holdfast.lakes.state import LakeOptions

# Bytes of the sources that one task reads.
UNIT_BYTES = 4 << 20
# What reading takes on one core, in ns: 120 to 160 for a byte, a file counted as 1,000 more (2,108 CSV files
# of 9 MB: 1.8 s).
NS_READ = 130


@dataclass(frozen=True, slots=True)
class Intake:
    """What the reading tasks wrote, and what they left out."""

    blocks: tuple[Block, ...]
    tables: tuple[FileRef, ...]
    columns: tuple[FileRef, ...]
    n_known: int
    n_bad: int
    bad: tuple[tuple[str, str], ...]


def read_sources(
    engine: Engine,
    root: Root,
    staging: str,
    sources: Sequence[str],
    reading: LakeReadOptions,
    options: LakeOptions,
    taken: pa.Array | None,
    progress: Progress | None,
) -> Intake:
    """Read all sources, but for tables whose names are `taken`."""
    units = plan_lake(sources, reading, UNIT_BYTES)
    digests = [name_digest(name) for name in (taken.to_pylist() if taken is not None else ())]
    listed = unique_name(staging, "names", ".raw")
    names = write_file(root, listed, digests) if digests else None
    shared = {
        "root": str(root),
        "staging": staging,
        "reading": reading.to_dict(),
        "options": options.to_dict(),
        "taken": names.to_dict() if names else None,
    }
    where = engine.choose(sum(u.n_bytes for u in units) * NS_READ)
    # In files: a unit may name 2,000 files, and Spark sends every payload to every worker.
    payloads = [{**shared, "unit": _staged(root, staging, u.to_dict()).to_dict()} for u in units]
    results = engine.run(read_lake_unit, payloads, where=where, progress=progress)
    answers = [json.loads(r) for r in results]
    bad = [(source, reason) for answer in answers for source, reason in answer["bad"]][:BAD_LISTED]
    n_bad, n_known = (sum(answer[name] for answer in answers) for name in ("n_bad", "n_known"))
    blocks = [block for answer in answers for block in answer["blocks"]]
    if not blocks and not n_known:
        raise _nothing_read(sources, bad, n_bad)
    tables, columns = (tuple(FileRef.from_dict(t[n]) for t in blocks) for n in ("tables", "columns"))
    return Intake(tuple(map(Block.from_dict, blocks)), tables, columns, n_known, n_bad, tuple(bad))


def read_table(source: str, reading: LakeReadOptions) -> RawTable:
    """The only table of a source, in this process; a SourceError if it has none, several, or a bad one."""
    items = (item for unit in plan_lake([source], reading, UNIT_BYTES) for item in read_unit(unit, reading))
    table: RawTable | None = None
    for item in items:
        if isinstance(item, BadFile):
            raise SourceError(f"no table could be read: {shorten_path(item.source)} {item.reason}.")
        if table is not None:
            raise SourceError(
                f"{shorten_path(source)} has more than one table: {shorten(table.name)}, "
                f"{shorten(item.name)} and perhaps others. Give a file of one table."
            )
        table = item
    if table is None:
        raise SourceError(f"there is no table in {shorten_path(source)}. Give a file of one table.")
    return table


def _staged(root: Root, staging: str, document: dict[str, Any]) -> FileRef:
    name = unique_name(staging, "unit", ".json")
    return write_file(root, name, [json.dumps(document).encode()])


def repeated(names: pa.ChunkedArray) -> tuple[NDArray[Any], NDArray[Any]]:
    """The positions of names that an earlier one equals, and of the first one that each equals."""
    codes = np.asarray(names.combine_chunks().dictionary_encode().indices)
    first = np.unique(codes, return_index=True)[1][codes]
    again = np.flatnonzero(first < np.arange(len(codes)))
    return again, first[again]


def _nothing_read(sources: Sequence[str], bad: Sequence[tuple[str, str]], n_bad: int) -> SourceError:
    if not n_bad:
        listed = ", ".join(shorten(s) for s in sources)
        return SourceError(
            f"there is no table in {listed}: expected CSV, TSV, Parquet or JSON lines of tables, in folders "
            f"or archives. {NOTHING_APPLIED}"
        )
    source, reason = bad[0]
    more = f" (the first of {n_bad:,} such files)" if n_bad > 1 else ""
    return SourceError(
        f"no table could be read: {shorten_path(source)} {reason}{more}. {NOTHING_APPLIED} Mend or leave out "
        "such files."
    )
