"""Proposing inclusions between columns of a lake, by signatures or by the inverted index; both give the same.

- `signatures` (MANY): AND rows of the transposed signature matrix, 64 columns at a time, then validate every
  candidate on the exact value sets. `dep2refs` asks in which columns the given ones are contained,
  `ref2deps` which columns they contain.
- `index`: look up the values of a column in the inverted index and intersect their postings, the rarest
  value first. All values are intersected, so what remains holds; nothing is left to validate.

Pairs come in chunks: whatever the size of the lake, one chunk is held at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.lakes.kernels.rarest_value import containing, nearly_containing
from holdfast.lakes.kernels.signatures import dep2refs, ref2deps
from holdfast.lakes.kernels.value_index import find
from holdfast.lakes.kernels.value_sets import validated
from holdfast.lakes.sides import I32, I64, U64, Bool, Side, bit_words
from holdfast.lakes.state import LakeOptions, entries_of

Proposer = Literal["signatures", "index"]
Strategy = Literal["dep2refs", "ref2deps"]
Pairs = tuple[I32, I32, I32]  # dependent, referenced, shared values: columns are numbers in their parts

# Inclusions, or candidates, that a task holds at once: some 100 MB with all that goes with them.
CHUNK = 2_000_000


def matched(
    lookups: Lookups,
    side: Side,
    columns: NDArray[Any],
    options: LakeOptions,
    proposer: Proposer,
    strategy: Strategy,
) -> Iterator[tuple[Side, Side, Pairs]]:
    """(dependent side, referenced side, pairs) chunk by chunk; all filters applied."""
    probe = lookups.probe
    if strategy == "ref2deps":
        refs = columns[probe.referenced[columns]]
        if options.max_error:
            raise AssertionError("partial inclusions are found from their dependent side")
        for pairs in _contained_by_signature(probe, side, refs):
            yield side, probe, _filtered(pairs, side, probe, options)
        return
    deps = columns[probe.dependents[columns]]
    missing = max_missing(probe.sizes[deps], options)
    partial = deps[missing > 0]
    exact = deps[missing == 0]
    find_pairs = _containing_by_signature if proposer == "signatures" else _containing_by_index
    for pairs in find_pairs(lookups, side, exact):
        yield probe, side, _filtered(pairs, probe, side, options)
    for pairs in _nearly_containing(lookups, side, partial, missing[missing > 0]):
        yield probe, side, _filtered(pairs, probe, side, options)


def max_missing(sizes: I32, options: LakeOptions) -> I32:
    """How many of its values a dependent column may lack: `int(e * n)`, never all; none for small columns."""
    allowed = np.minimum(options.max_error * sizes.astype(np.float64) + 1e-9, sizes - 1.0).astype(np.int32)
    return np.where(sizes >= options.min_values, allowed, 0).astype(np.int32)


def _filtered(pairs: Pairs, deps: Side, refs: Side, options: LakeOptions) -> Pairs:
    """Without the pair of a column with itself, and without those that cover too little."""
    dep, ref, shared = pairs
    listed: Bool = np.ones(len(dep), np.bool_)
    if deps.same_part(refs):
        listed &= dep != ref
    if "coverage" in options.filters:
        listed &= shared >= options.tau * refs.sizes[ref]
    return (dep, ref, shared) if listed.all() else (dep[listed], ref[listed], shared[listed])


# -- proposers ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Lookup:
    """Where the values of some columns are in the index of a part."""

    offsets: I64
    starts: I64
    lengths: I32
    slots: I32

    def only(self, positions: NDArray[Any]) -> _Lookup:
        """Of some of the columns, by their position."""
        if len(positions) == len(self.offsets) - 1:
            return self
        ends, at = entries_of(self.offsets, positions)
        return _Lookup(ends, self.starts[at], self.lengths[at], self.slots[at])


class Lookups:
    """Where the values of some columns of a part are in the indexes of others.

    What is described is looked up whole, once, and counted and matched by the same look-ups.
    """

    def __init__(self, probe: Side, low: int) -> None:
        self.probe, self.low = probe, low
        self._whole: dict[int, _Lookup] = {}  # by first table: a part may have no columns

    def whole(self, side: Side, columns: NDArray[Any]) -> _Lookup:
        """Of all columns from `low` on; remembered."""
        lookup = self._whole[side.ref.first_table] = self.of(side, columns)
        return lookup

    def of(self, side: Side, columns: NDArray[Any]) -> _Lookup:
        whole = self._whole.get(side.ref.first_table)
        if whole is not None:
            return whole.only(columns - self.low)
        offsets, values, checks = self.probe.values_of(columns)
        starts, lengths = find(side.array("keys"), side.array("key_checks"), values, checks)
        return _Lookup(offsets, starts, lengths, side.slots(starts, lengths))


def _in_chunks(n: int, propose: Callable[[int], tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """What a proposer finds for n columns, chunk by chunk.

    `propose(done)` takes the columns from `done` on, and says last for how many of them it is complete.
    """
    done = 0
    while done < n:
        numbers, *columns, n_done = propose(done)
        yield numbers + done, *columns
        done += n_done


def _containing_by_index(lookups: Lookups, side: Side, deps: NDArray[Any]) -> Iterator[Pairs]:
    lookup, allowed = lookups.of(side, deps), bit_words(side.referenced)
    values = lookup.starts, lookup.lengths, lookup.slots, side.array("postings"), side.maps, allowed

    def propose(done: int) -> tuple[Any, ...]:
        return containing(lookup.offsets[done:], *values, CHUNK)

    for dep, ref in _in_chunks(len(deps), propose):
        numbers = deps[dep].astype(np.int32)
        yield numbers, ref, lookups.probe.sizes[numbers]


def _nearly_containing(lookups: Lookups, side: Side, deps: NDArray[Any], missing: I32) -> Iterator[Pairs]:
    lookup, allowed = lookups.of(side, deps), bit_words(side.referenced)
    values = lookup.starts, lookup.lengths, lookup.slots, side.array("postings"), side.maps, allowed

    def propose(done: int) -> tuple[Any, ...]:
        return nearly_containing(lookup.offsets[done:], *values, missing[done:], CHUNK)

    for dep, ref, shared in _in_chunks(len(deps), propose):
        yield deps[dep].astype(np.int32), ref, shared


def _signatures(side: Side, columns: NDArray[Any]) -> U64:
    """The signatures of columns that are matched."""
    rows: U64 = side.array("signatures")[np.searchsorted(side.array("active"), columns)]
    return rows


def _containing_by_signature(lookups: Lookups, side: Side, deps: NDArray[Any]) -> Iterator[Pairs]:
    signatures, active = _signatures(lookups.probe, deps), side.array("active")
    matrix, allowed = side.array("matrix"), _matrix_words(side, side.referenced[active])
    for dep, row in _in_chunks(len(deps), lambda done: dep2refs(matrix, signatures[done:], allowed, CHUNK)):
        yield _valid(deps[dep].astype(np.int32), active[row], lookups.probe, side)


def _contained_by_signature(probe: Side, side: Side, refs: NDArray[Any]) -> Iterator[Pairs]:
    signatures, active = _signatures(probe, refs), side.array("active")
    matrix, allowed = side.array("matrix"), _matrix_words(side, side.dependents[active])
    for query, row in _in_chunks(len(refs), lambda done: ref2deps(matrix, signatures[done:], allowed, CHUNK)):
        dep, ref, shared = _valid(active[row], refs[query].astype(np.int32), side, probe)
        order = np.lexsort((ref, dep))
        yield dep[order], ref[order], shared[order]


def _matrix_words(side: Side, marked: Bool) -> U64:
    """Marks of active columns, as long as the rows of the matrix."""
    n_blocks, _, words = side.array("matrix").shape
    padded = np.zeros(n_blocks * words * 64, np.bool_)
    padded[: len(marked)] = marked
    return bit_words(padded)


def _valid(dep: I32, ref: I32, deps: Side, refs: Side) -> Pairs:
    """Of candidates those that hold on the exact value sets."""
    sets = [side.array(name) for side in (deps, refs) for name in ("offsets", "values", "checks")]
    holds = validated(dep, ref, *sets)
    dep, ref = dep[holds], ref[holds]
    return dep, ref, deps.sizes[dep]
