"""Walking over the records of CSV text: the kernel `walk_records` on buffers, and on files block by block.

The kernel is imported where it is used: a small file need not load Numba.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


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


def in_quotes(state: Any) -> bool:
    """Whether the kernel stands inside quotes that are not closed."""
    from holdfast.core.sources.kernels import records

    return int(state[0]) == records.QUOTED


def mode_after(last: bytes, delimiter: bytes) -> int:
    """The kernel's mode behind a byte that stands outside of quotes."""
    from holdfast.core.sources.kernels import records

    if last == b"\n":
        return records.RECORD_START
    if last == b"\r":
        return records.AFTER_CR
    return records.FIELD_START if last == delimiter else records.IN_FIELD
