"""Sets of columns as masks, without kernels: what readers need."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
Bits = NDArray[np.bool_]

# Pairs of masks that are compared at once: some megabytes.
COMPARED = 1 << 20
# Each octet with its bits the other way round.
_REVERSED = np.packbits(np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)[:, ::-1], axis=1)[:, 0]


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
    flat, sizes = flat_columns(masks)
    columns, ends = flat.tolist(), np.cumsum(sizes).tolist()
    return [tuple(columns[a:b]) for a, b in zip([0, *ends], ends, strict=False)]


def flat_columns(masks: U64) -> tuple[I64, I64]:
    """(columns, sizes): the column positions of all masks in a row, and how many each mask has.

    >>> columns, sizes = flat_columns(np.array([[5], [0], [2]], dtype=np.uint64))
    >>> columns.tolist(), sizes.tolist()
    ([0, 2, 1], [2, 0, 1])
    """
    # Octet by octet: of wide tables nearly all are 0.
    octets = np.ascontiguousarray(masks, dtype="<u8").view(np.uint8).ravel()
    filled = np.flatnonzero(octets)
    at, bit = np.divmod(np.flatnonzero(np.unpackbits(octets[filled], bitorder="little")), 8)
    row, octet = np.divmod(filled[at], 8 * masks.shape[1])
    return 8 * octet + bit, np.bincount(row, minlength=len(masks))


def masks_from(sets: Sequence[Sequence[int]], n_words: int) -> U64:
    """The inverse of `columns_of`: uint64[n, n_words].

    >>> masks_from([(0, 2), ()], 1).tolist()
    [[5], [0]]
    """
    masks = np.zeros((len(sets), n_words), dtype=np.uint64)
    rows = np.repeat(np.arange(len(sets)), [len(columns) for columns in sets])
    columns = np.array([column for columns in sets for column in columns], dtype=np.int64)
    np.bitwise_or.at(masks, (rows, columns >> 6), np.uint64(1) << (columns & 63).astype(np.uint64))
    return masks


def places_among(masks: U64, others: U64) -> I64:
    """Where each mask is among others, which are all different: int64[n]; -1 where it is not.

    >>> masks = np.array([[5], [0], [2]], dtype=np.uint64)
    >>> places_among(masks, masks[::2]).tolist()
    [0, -1, 1]
    """
    return MaskSet(others).places(masks)


class MaskSet:
    """Masks that are all different, uint64[n, n_words], to be looked up; sorted for the first look."""

    def __init__(self, masks: U64) -> None:
        self.masks = masks

    def places(self, masks: U64) -> I64:
        """Where each mask is among those of the set: int64[n]; -1 where it is not."""
        known, order = self._sorted
        if not len(order):
            return np.full(len(masks), -1, dtype=np.int64)
        wanted = _sortable(masks)
        at = np.minimum(np.searchsorted(known, wanted), len(order) - 1)
        return np.where(known[at] == wanted, order[at], -1)

    def inside(self, masks: U64) -> NDArray[np.bool_]:
        """Which masks contain one of the set: bool[n].

        Cost: a look-up; those that are not in the set are compared with all smaller ones.

        >>> some = MaskSet(np.array([[1], [6]], dtype=np.uint64))
        >>> some.inside(np.array([[6], [4], [5], [14], [0]], dtype=np.uint64)).tolist()
        [True, False, True, True, False]
        """
        inside = self.places(masks) >= 0
        others = np.flatnonzero(~inside)
        sizes = _n_columns(masks[others])
        known, known_sizes = self._by_size
        for size in np.unique(sizes).tolist():
            smaller, of_size = known[: np.searchsorted(known_sizes, size)], others[sizes == size]
            step = max(1, COMPARED // max(1, len(smaller)))
            for start in range(0, len(of_size), step):
                at = of_size[start : start + step]
                # Word by word: a mask of few columns has one.
                outside = smaller[None, :, 0] & ~masks[at, None, 0]
                for word in range(1, masks.shape[1]):
                    outside |= smaller[None, :, word] & ~masks[at, None, word]
                inside[at] = ~outside.all(axis=1)
        return inside

    @cached_property
    def _sorted(self) -> tuple[NDArray[Any], I64]:
        known = _sortable(self.masks)
        order = np.argsort(known)
        return known[order], order

    @cached_property
    def _by_size(self) -> tuple[U64, I64]:
        sizes = _n_columns(self.masks)
        order = np.argsort(sizes, kind="stable")
        return self.masks[order], sizes[order]


def _n_columns(masks: U64) -> I64:
    sizes: I64 = np.bitwise_count(masks).sum(axis=1, dtype=np.int64)
    return sizes


def _sortable(masks: U64) -> NDArray[Any]:
    """Masks as numbers, or as texts of one length: these NumPy can sort and look up."""
    if masks.shape[1] == 1:
        return masks[:, 0]
    return np.ascontiguousarray(masks).view(f"S{8 * masks.shape[1]}").ravel()


def numbered(masks: U64) -> I64:
    """A number for each mask, the same iff the masks are the same: int64[n]. Cost: a sort for each word."""
    numbers = np.unique(masks[:, 0], return_inverse=True)[1]
    for word in masks.T[1:]:
        values, place = np.unique(word, return_inverse=True)
        numbers = np.unique(numbers * len(values) + place, return_inverse=True)[1]
    return numbers


def listed_order(masks: U64) -> tuple[NDArray[Any], ...]:
    """Sort keys for `np.lexsort`, the last one counts most: short masks first, then as their columns compare.

    Of two sets of one size that one comes first that has the first column in which they differ.

    >>> masks = np.array([[0b110], [0b101], [0b010]], dtype=np.uint64)
    >>> np.lexsort(listed_order(masks)).tolist()
    [2, 1, 0]
    """
    octets = np.ascontiguousarray(masks, dtype="<u8").view(np.uint8)
    first_highest = _REVERSED[octets].view(">u8").astype(np.uint64).reshape(masks.shape)
    return (*(~first_highest.T[::-1]), np.bitwise_count(masks).sum(axis=1))


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
