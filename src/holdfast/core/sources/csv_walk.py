"""Walking over the records of CSV text: the kernel `walk_records` on buffers, and on files block by block.

What a byte means depends on all bytes before it. So that a large file need not be walked by one process, a
region of it is walked from every mode that it might begin in (`walk_region`); which one it was, is told by
the regions before it. The kernel is imported where it is used: a small file need not load Numba.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.sources.raw_files import blocks_of

I64 = NDArray[np.int64]

# Walks that began in different modes are compared after so many bytes: most have met by then.
PIECE = 1 << 16


@dataclass(frozen=True, slots=True)
class Region:
    """Bytes of a CSV file that belongs to a table."""

    path: str
    start: int
    end: int
    delimiter: str
    quote: str  # empty: none
    table: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


# Regions to what `walk_region` says of each.
Walk = Callable[[list[Region]], list[I64]]


def codes_of(block: Any) -> Any:
    """The bytes of a block as the array that the kernel takes."""
    codes = np.frombuffer(block, np.uint8)
    codes.flags.writeable = False
    return codes


def walk_blocks(blocks: Iterator[bytearray], delimiter: str, quote: str) -> Any:
    """The kernel's state behind all blocks."""
    from holdfast.core.sources.kernels import records

    state = records.new_state()
    q = ord(quote) if quote else records.NO_QUOTE
    for block in blocks:
        records.walk_records(codes_of(block), ord(delimiter), q, records.NO_LIMIT, records.NO_LIMIT, state)
    return state


def walk_to(body: Any, delimiter: str, quote: str, n_records: int | None = None) -> Any:
    """The kernel's state behind `n_records` records and the blank lines that follow, or behind all."""
    from holdfast.core.sources.kernels import records

    block = codes_of(body) if body.size else np.empty(0, np.uint8)
    block.flags.writeable = False
    state = records.new_state()
    q = ord(quote) if quote else records.NO_QUOTE
    limit = records.NO_LIMIT if n_records is None else np.int64(n_records)
    at = 0
    if n_records != 0:
        at = int(records.walk_records(block, ord(delimiter), q, records.NO_LIMIT, limit, state))
    if n_records is not None:
        while at < len(block) and block[at] in b"\r\n":
            state[2] += block[at] == 10
            at += 1
    return state


def first_record(body: Any, delimiter: str, quote: str) -> tuple[int, int, bool]:
    """Start and end of the first record that is not a blank line, and whether its quotes are closed.

    Start and end are equal if there is none.

    The kernel's machine in Python: headers are short, and a small file need not load Numba.
    """
    view = memoryview(body).cast("B")  # Arrow's own view has signed bytes
    at, n = 0, len(view)
    while at < n and view[at] in b"\r\n":
        at += 1
    begin, field_start, quoted = at, True, False
    d, q = ord(delimiter), ord(quote) if quote else -1
    while at < n:
        c = view[at]
        if quoted:
            if c == q:
                if at + 1 < n and view[at + 1] == q:
                    at += 1
                else:
                    quoted = False
        elif c in b"\r\n":
            at += 2 if bytes(view[at : at + 2]) == b"\r\n" else 1
            break
        elif c == q and field_start:
            quoted = True
        field_start = not quoted and c == d
        at += 1
    return begin, at, not quoted


def in_quotes(state: Any) -> bool:
    """Whether the kernel stands inside quotes that are not closed."""
    from holdfast.core.sources.kernels import records

    return int(state[0]) == records.QUOTED


def mode_after(last: bytes | bytearray, delimiter: bytes) -> int:
    """The kernel's mode behind a byte that stands outside of quotes."""
    from holdfast.core.sources.kernels import records

    if last == b"\n":
        return records.RECORD_START
    if last == b"\r":
        return records.AFTER_CR
    return records.FIELD_START if last == delimiter else records.IN_FIELD


# -- regions -----------------------------------------------------------------------------------


def walk_regions(regions: list[Region]) -> list[I64]:
    """What `walk_region` says of each, in this process."""
    return [walk_region(region) for region in regions]


def walk_task(payload: dict[str, Any]) -> bytes:
    """`walk_region` as a task."""
    return walk_region(Region(**payload)).tobytes()


def walk_region(region: Region) -> I64:
    """int64[modes, 2]: (mode behind the region, position behind the first record end in it or at its start)
    for each mode at its start; the position is -1 if no record ends there.

    Walks that come to the same mode go on as one: a region costs little more than one walk. Memory: a block.
    """
    from holdfast.core.sources.kernels import records

    modes = np.arange(records.N_MODES)
    ends = np.full(records.N_MODES, -1)
    ends[records.RECORD_START] = region.start
    low = region.start
    for block in blocks_of(region.path, region.start, region.end, region.table):
        at = 0
        while at < len(block):
            distinct = np.unique(modes)
            high = len(block) if len(distinct) == 1 else min(at + PIECE, len(block))
            after = modes.copy()
            for mode in distinct.tolist():
                here = modes == mode
                open_ = here & (ends < 0)
                after[here], end = _walk_piece(block, at, high, mode, region, find=bool(open_.any()))
                if end >= 0:
                    ends[open_] = low + end
            modes, at = after, high
        low += len(block)
    return np.stack([modes, ends], axis=1)


def _walk_piece(
    block: bytearray, at: int, high: int, mode: int, region: Region, *, find: bool
) -> tuple[int, int]:
    """(mode behind block[at:high], position behind its first record end, -1 if none or if it is not to be
    found). Where there is no quote, nothing has to be walked."""
    from holdfast.core.sources.kernels import records

    delimiter, quote = region.delimiter.encode(), region.quote.encode()
    if not quote or block.find(quote, at, high) < 0:
        if mode == records.QUOTED:
            return mode, -1
        return mode_after(block[high - 1 : high], delimiter), block.find(b"\n", at, high) + 1 or -1
    codes = codes_of(block)[at:high]
    state = records.new_state()
    state[0] = mode
    end, done = -1, 0
    if find:
        done = int(records.walk_records(codes, delimiter[0], quote[0], np.int64(0), records.NO_LIMIT, state))
        if state[0] == records.RECORD_START:
            end = at + done
    if done < len(codes):
        limits = records.NO_LIMIT, records.NO_LIMIT
        records.walk_records(codes[done:], delimiter[0], quote[0], *limits, state)
    return int(state[0]), end
