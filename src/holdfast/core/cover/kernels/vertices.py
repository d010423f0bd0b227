"""What a search for minimal sets is over: the columns of a table, or the predicates of denial constraints.

*Two kinds of cover.* `=`, `<` and `>` are *strict*: each says what two *loose* predicates of its group say
together: `<` is `<=` and `!=`, `>` is `>=` and `!=`, `=` is `<=` and `>=` (also where NULL is involved).

- The cover of *sets* holds every set-minimal DC. There `<` beside `{<=, !=}` is noise, and so is X + `<`
  where X + `<=` is valid: 903,259 DCs for the first 1,000 rows of adult.
- The cover of *general* DCs (`Space.general`) holds those in which no predicate can be dropped or replaced
  by a looser one, each written with at most one predicate per group: 67,904 for the same rows, as many as
  FastADC finds. Law: written with loose predicates alone, they are the set-minimal DCs over the loose
  predicates. For a strict one can be loosened iff one of its two loose ones has no edge that it alone hits.
  So the general DCs are found by the same search, over half of the predicates.

Every set-minimal DC is a general one made stricter, so the general ones lose nothing.

Masks of callers and those of the search are not the same: `Frame` is the way from one to the other and back.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.masks import (
    WORD_BITS,
    Indices,
    Masks,
    as_masks,
    n_words_for,
    popcounts,
    unique_masks,
    word_lowest,
)
from holdfast.core.rows.kernels.operators import EQ, GE, GT, LE, LT, NE
from holdfast.core.words import predicate
from holdfast.core.words.column_sets import bits_of, masks_of

# The operators that hold under each outcome, one bit each: <, =, >, NULL on one side. An unordered group has
# the first two operators only, and what follows is true of it too.
OUTCOMES = predicate.OUTCOMES
HALVES = ((EQ, LE, GE), (LT, LE, NE), (GT, GE, NE))

UNBOUNDED = 1 << 62

_ZERO = np.uint64(0)
_ONE = np.uint64(1)

Numbers = NDArray[np.int32]
Bits = NDArray[np.bool_]


class Space(NamedTuple):
    """The predicates, and which cover is meant.

    group_of, op_of, mirror `int32[n_predicates]`: the group of each predicate (0, 1, ...), its operator (`EQ`
    to `GE`), and the predicate that it becomes when the two rows are exchanged. An ordered group has all six
    operators, another one `EQ` and `NE`. general: the general DCs, rather than all set-minimal ones.
    """

    group_of: Numbers
    op_of: Numbers
    mirror: Numbers
    general: bool


class Vertices:
    """What may be in a set, and how large a set may be.

    group_of, op_of IN int64[n]: the group of each vertex (0, 1, ...) and its operator. general: vertices of
    one group count as one. max_size: 0 or less for no bound.
    """

    def __init__(self, group_of: Indices, op_of: Indices, general: bool, max_size: int) -> None:
        self.group_of = group_of
        self.op_of = op_of
        self.general = general
        self.bound = max_size if max_size > 0 else UNBOUNDED
        self.n_vertices = len(group_of)
        self.n_groups = int(group_of.max(initial=-1)) + 1
        self.nothing = np.zeros((1, n_words_for(self.n_vertices)), dtype=np.uint64)

    @classmethod
    def columns(cls, n_columns: int, max_size: int) -> Vertices:
        """Columns: each a group of its own, with one operator, so no set of them is trivial."""
        return Vertices(np.arange(n_columns), np.zeros(n_columns, dtype=np.int64), False, max_size)

    def mirrored(self, sets: Masks) -> Masks:
        """The mirror images of sets of vertices: of columns, the sets themselves."""
        return sets


class Frame(Vertices):
    """The predicates of a space as vertices (all, or the loose ones), and the way to them and back.

    Packed masks have bit i for predicate `predicates[i]`, in the order of the predicates.
    """

    def __init__(self, space: Space, max_size: int, n_words: int) -> None:
        self.n_words = n_words
        self.n_predicates = len(space.group_of)
        self.mirror = np.asarray(space.mirror, dtype=np.int64)
        groups = np.asarray(space.group_of, dtype=np.int64)
        ops = np.asarray(space.op_of, dtype=np.int64)
        # numbers[g, op]: the predicate, or -1.
        numbers = np.full((int(groups.max(initial=-1)) + 1, 6), -1, dtype=np.int64)
        numbers[groups, ops] = np.arange(self.n_predicates)
        self.numbers = numbers
        self.ordered = numbers[(numbers >= 0).all(axis=1)]
        strict = np.zeros(self.n_predicates, dtype=np.bool_)
        if space.general:
            strict[self.ordered[:, [EQ, LT, GT]]] = True
        self.predicates = np.flatnonzero(~strict)
        super().__init__(groups[self.predicates], ops[self.predicates], space.general, max_size)
        self.place = np.full(self.n_predicates, -1, dtype=np.int64)  # of each predicate among the vertices
        self.place[self.predicates] = np.arange(self.n_vertices)
        self.vertex_mirror = self.place[self.mirror[self.predicates]]

    def edges_of(self, evidences: Masks) -> Masks:
        """The complements of the evidences and of their mirror images, distinct, small ones first."""
        # Bit by bit in a kernel: as arrays of bytes hundreds of thousands of evidences take seconds.
        return self.complements(permuted(as_masks(evidences), self.place, self.nothing.shape[1]))

    def complements(self, held: Masks) -> Masks:
        """`edges_of` evidences that are sets of vertices."""
        everything = masks_of(np.ones((1, self.n_vertices), dtype=np.bool_), held.shape[1])
        edges = np.concatenate([held, self.mirrored(held)]) ^ everything
        distinct, _ = unique_masks(edges)
        edges = edges[distinct]
        return edges[np.argsort(popcounts(edges), kind="stable")]

    def outcomes_in(self, evidences: Masks) -> Masks:
        """Each outcome of a group that is in some evidence, alone: `uint64[k, n_words]`.

        Constraints of one predicate depend on nothing else. `<`, `=` and `>` are seen iff that predicate is;
        NULL on one side satisfies `!=` alone, which counts as seen with `<` or `>` too: no matter.
        """
        present = bits_of(np.bitwise_or.reduce(evidences, axis=0)[None, :], self.n_predicates)[0]
        sets = []
        for numbers in self.numbers:
            for outcome, sign in zip(OUTCOMES, (LT, EQ, GT, NE), strict=True):
                if numbers[sign] >= 0 and present[numbers[sign]]:
                    members = [n for op, n in enumerate(numbers) if outcome >> op & 1 and n >= 0]
                    sets.append(np.isin(np.arange(self.n_predicates), members))
        return masks_of(np.array(sets, dtype=np.bool_).reshape(len(sets), self.n_predicates), self.n_words)

    def mirrored(self, sets: Masks) -> Masks:
        """The mirror images of sets of vertices."""
        return permuted(sets, self.vertex_mirror, sets.shape[1])

    def packed(self, cover: Masks) -> Masks:
        """The DCs over the vertices, in the same order: they are all different."""
        bits = bits_of(as_masks(cover), self.n_predicates)
        if self.general:
            for strict, one, two in HALVES:
                has_strict = bits[:, self.ordered[:, strict]]
                bits[:, self.ordered[:, one]] |= has_strict
                bits[:, self.ordered[:, two]] |= has_strict
        return masks_of(bits[:, self.predicates], self.nothing.shape[1])

    def listed(self, sets: Masks) -> Masks:
        """The DCs as callers want them: of each mirrored pair the canonical, distinct, sorted."""
        bits = np.zeros((len(sets), self.n_predicates), dtype=np.bool_)
        bits[:, self.predicates] = bits_of(sets, self.n_vertices)
        if self.general:
            for strict, one, two in HALVES:
                has_strict = bits[:, self.ordered[:, one]] & bits[:, self.ordered[:, two]]
                bits[:, self.ordered[:, strict]] = has_strict
            for strict, one, two in HALVES:
                has_strict = bits[:, self.ordered[:, strict]]
                bits[:, self.ordered[:, one]] &= ~has_strict
                bits[:, self.ordered[:, two]] &= ~has_strict
        # Two sets of one size: the first to come is the one with the least number that is not in both.
        image = bits[:, self.mirror]
        differs = bits != image
        least = differs.argmax(axis=1)
        rows = np.arange(len(bits))
        turned = differs[rows, least] & ~bits[rows, least]
        bits[turned] = image[turned]
        dcs = masks_of(bits, self.n_words)
        return in_order(dcs[unique_masks(dcs)[0]])


@njit(cache=True, nogil=True)
def _permute(masks: Masks, place: Indices, out: Masks) -> None:
    for i in range(masks.shape[0]):
        for w in range(masks.shape[1]):
            word = masks[i, w]
            while word != _ZERO:
                at = place[WORD_BITS * w + word_lowest(word)]
                word &= word - _ONE
                if at >= 0:
                    out[i, at // WORD_BITS] |= _ONE << np.uint64(at % WORD_BITS)


def permuted(masks: Masks, place: Indices, n_words: int) -> Masks:
    """The masks with bit i at place[i], without it where that is negative: `uint64[n, n_words]`.

    masks IN `uint64[n, *]` with bits below `len(place)`; place IN `int64[n_bits]`. Cost: the bits set.
    """
    out = np.zeros((len(masks), n_words), dtype=np.uint64)
    _permute(np.ascontiguousarray(masks), place, out)
    return out


def in_order(sets: Masks) -> Masks:
    """By size, then by words, the first word first."""
    return sets[np.lexsort((*sets.T[::-1], popcounts(sets)))]


def _joins() -> Indices:
    """For each set of operators, as bits, those that may join it without making it trivial: `int64[64]`."""
    joins = np.zeros(64, dtype=np.int64)
    for state in range(64):
        for op in range(6):
            if any((state | 1 << op) & ~outcome == 0 for outcome in OUTCOMES):
                joins[state] |= 1 << op
    return joins


JOINS = _joins()


def warm_up() -> None:
    """Call every kernel once, so that Numba's cache on disk holds them all."""
    permuted(np.ones((1, 1), dtype=np.uint64), np.zeros(1, dtype=np.int64), 1)
