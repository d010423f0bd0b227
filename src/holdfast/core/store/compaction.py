"""Housekeeping of the ledger after a commit: small files are merged, and checkpoints written.

Failing at it is no failure of the commit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from deltalake.transaction import RemoveAction

from holdfast.core.store.delta_log import INTERRUPTS
from holdfast.core.store.files import write_file
from holdfast.core.store.ledger_files import LedgerFiles, LiveFile, add_action, content_name, now_ms
from holdfast.core.store.ledger_rows import ARROW_SCHEMA, lost_version, to_parquet
from holdfast.core.store.root import remove_file

# A compaction takes as long as one append or two. Every live file costs a reader of the whole history about
# 1 ms, and each append 0.2 ms of delta-rs: of one-row batches, 22 ms each with 64, 15 ms with 16.
COMPACT_EVERY = 16

# Between compactions: halves the log entries that an open has to read.
CHECKPOINT_EVERY = 32

# A file of this size is left alone, so a compaction rewrites a megabyte or two, however old the ledger: that
# is some thousands of versions.
COMPACT_BELOW = 1 << 20


def keep_house(files: LedgerFiles) -> None:
    """Merge the small files and write a checkpoint, now and then; never fails the commit.

    A compaction that loses against another writer is simply dropped: the small files are
    still there after the next commit.
    """
    small = sum(f.first == f.last and f.length < COMPACT_BELOW for f in files.snapshot.files)
    try:
        # Small files with large ones between them stay, however many they are.
        if small >= COMPACT_EVERY and compact(files):
            return
        if files.snapshot.delta_version % CHECKPOINT_EVERY == 0:
            files.checkpoint()
    except INTERRUPTS:
        raise
    except BaseException:
        pass  # whatever it is, the commit stands, and the next one tries again


def compact(files: LedgerFiles) -> bool:
    """Merge the longest run of small files into one, if no other writer comes between; whether it did.

    Not by delta-rs's `optimize.compact`: in 1.6.6 it ignores `max_commit_retries`, rebases
    itself, and lets two concurrent compactions both land, which doubles every row. The same
    compare-and-swap as for appends cannot.
    """
    snapshot = files.snapshot
    run = _longest_run(snapshot.files)
    if len(run) < 2:
        return False
    first, last = run[0].first, max(file.last for file in run)
    block = pa.concat_tables([files.block(file).cast(ARROW_SCHEMA) for file in run])
    lost = lost_version(block, first, last)
    if lost is not None:
        raise files.gap(lost)  # never make it worse: a damaged history stays as it is
    content = to_parquet(block)
    name = content_name(f"commits-{first:08d}-{last:08d}", content)
    ref = write_file(files.root, name, [content])
    actions: list[Any] = [add_action(ref, first, last, block.num_rows, moves_rows=True)]
    actions += [RemoveAction(file.path, False, now_ms(), file.length, {}) for file in run]
    if not files.swap(snapshot, actions, name, {"holdfastCompaction": True}):
        remove_file(files.root, name)
        return False
    files.checkpoint()
    return True


def _longest_run(files: Iterable[LiveFile]) -> list[LiveFile]:
    """The longest run of neighbouring small files, oldest first, cut where it grows too large.

    Neighbours, so that the versions of the merged file are again one range of their own.
    """
    best: list[LiveFile] = []
    run: list[LiveFile] = []
    length = 0
    for file in files:
        if file.length >= COMPACT_BELOW or length + file.length > 2 * COMPACT_BELOW:
            run, length = [], 0
        if file.length < COMPACT_BELOW:
            run.append(file)
            length += file.length
        if len(run) > len(best):
            best = list(run)
    return best
