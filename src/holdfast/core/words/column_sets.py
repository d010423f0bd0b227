"""Sets of columns as masks, without kernels: what readers need."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]
Bits = NDArray[np.bool_]


def words_for(n_columns: int) -> int:
    """How many 64-bit words a mask of so many columns has."""
    return max(1, (n_columns + 63) // 64)


def columns_mask(positions: Sequence[int], n_words: int) -> U64:
    """The mask of some columns, uint64[n_words].

    >>> columns_mask([0, 2], 1).tolist()
    [5]
    """
    mask = np.zeros(n_words, dtype=np.uint64)
    for p in positions:
        mask[p >> 6] |= np.uint64(1) << np.uint64(p & 63)
    return mask


def columns_of(masks: U64) -> list[tuple[int, ...]]:
    """The column positions of each mask.

    >>> columns_of(np.array([[5], [0]], dtype=np.uint64))
    [(0, 2), ()]
    """
    # Word by word: of wide tables nearly all words are 0.
    row, word = np.nonzero(masks)
    octets = np.ascontiguousarray(masks[row, word], dtype="<u8").view(np.uint8).reshape(-1, 8)
    at, bit = np.nonzero(np.unpackbits(octets, axis=1, bitorder="little"))
    columns = (64 * word[at] + bit).tolist()
    ends = np.cumsum(np.bincount(row[at], minlength=len(masks))).tolist()
    return [tuple(columns[a:b]) for a, b in zip([0, *ends], ends, strict=False)]


def bits_of(masks: U64, n_bits: int) -> Bits:
    """bool[n, n_bits], a new array; masks uint64[n, *] may be too narrow to have them all.

    >>> bits_of(np.array([[5]], dtype=np.uint64), 4).tolist()
    [[True, False, True, False]]
    """
    octets = np.ascontiguousarray(masks, dtype="<u8").view(np.uint8)
    bits: Bits = np.unpackbits(octets, axis=1, count=n_bits, bitorder="little").astype(np.bool_)
    return bits


def masks_of(bits: Bits, n_words: int) -> U64:
    """The inverse of `bits_of`: uint64[n, n_words]."""
    octets = np.zeros((len(bits), 8 * n_words), dtype=np.uint8)
    packed = np.packbits(bits, axis=1, bitorder="little")
    octets[:, : packed.shape[1]] = packed
    return octets.view("<u8").astype(np.uint64)


def n_pairs(n_rows: int) -> int:
    """How many unordered pairs of rows there are.

    >>> n_pairs(0), n_pairs(1), n_pairs(4)
    (0, 0, 6)
    """
    return n_rows * (n_rows - 1) // 2
