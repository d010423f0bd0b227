"""A part of a lake as one side of the matching: its arrays, and which of its columns are wanted."""

from __future__ import annotations

import json
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.store.files import FileRef
from holdfast.core.store.root import Root, root_of
from holdfast.lakes.kernels.value_index import bitmaps
from holdfast.lakes.read_task import matched_columns
from holdfast.lakes.state import UNIQUE_COLUMN, LakeOptions, Part, PartRef, open_array

Payload = dict[str, Any]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
Bool = NDArray[np.bool_]


class Side(Part):
    """A part as one side of the matching: its columns, and which of them are alive and wanted."""

    def __init__(self, root: Root, ref: PartRef, options: LakeOptions, dropped: FileRef | None) -> None:
        super().__init__(root, ref)
        self.options = options
        self.dropped: I32 = open_array(root, dropped) if dropped is not None else np.empty(0, np.int32)

    def same_part(self, other: Side) -> bool:
        """Not `is`: two threads may both have opened it."""
        return self.ref.first_table == other.ref.first_table

    @cached_property
    def tables(self) -> I32:
        """The table of each column, numbered through the lake."""
        return self.array("table_of") + np.int32(self.ref.first_table)

    @cached_property
    def alive(self) -> Bool:
        gone: Bool = np.isin(self.tables, self.dropped)
        return ~gone

    @cached_property
    def dependents(self) -> Bool:
        """Which columns are matched, and so may be contained in others."""
        return self.alive & matched_columns(self.sizes, self.array("flags"), self.options)

    @cached_property
    def referenced(self) -> Bool:
        """Which columns may contain others."""
        if "non-unique" not in self.options.filters:
            return self.dependents
        unique: Bool = self.dependents & ((self.array("flags") & UNIQUE_COLUMN) != 0)
        return unique

    @cached_property
    def uniqueness(self) -> NDArray[np.float32]:
        rows = np.maximum(self.array("n_rows"), 1)
        shares: NDArray[np.float32] = np.minimum(self.sizes / rows, 1).astype(np.float32)
        return shares

    @cached_property
    def maps(self) -> U64:
        """Bitmaps over the columns of the most frequent values."""
        frequent = self.array("frequent")
        lengths = frequent[:, 1].astype(np.int32)
        return bitmaps(self.array("postings"), frequent[:, 0].copy(), lengths, self.ref.n_columns)

    def slots(self, starts: I64, lengths: I32) -> I32:
        """Which bitmap each posting has; -1 where it has none."""
        frequent = self.array("frequent")[:, 0]
        if not len(frequent):
            return np.full(len(starts), -1, np.int32)
        at = np.minimum(np.searchsorted(frequent, starts), len(frequent) - 1)
        return np.where((frequent[at] == starts) & (lengths > 0), at, -1).astype(np.int32)


def bit_words(marked: Bool) -> U64:
    """Bits as words: bit i % 64 of word i // 64."""
    packed = np.packbits(marked, bitorder="little")
    words = np.zeros(-(-len(marked) // 64) * 8, np.uint8)
    words[: len(packed)] = packed
    return words.view(np.uint64)


def opened(payload: Payload, part: Any) -> Side:
    """A part that a payload names; opened once for all tasks of a process."""
    return _opened(
        payload["root"], json.dumps(part), json.dumps(payload["options"]), json.dumps(payload["dropped"])
    )


def let_go() -> None:
    """Forget the parts that this process has open, with their maps and bitmaps."""
    _opened.cache_clear()


@lru_cache(maxsize=8)
def _opened(root: str, part: str, options: str, dropped: str) -> Side:
    gone = json.loads(dropped)
    return Side(
        root_of(root),
        PartRef.from_dict(json.loads(part)),
        LakeOptions.from_dict(json.loads(options)),
        FileRef.from_dict(gone) if gone else None,
    )
