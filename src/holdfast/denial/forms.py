"""The denial constraints of a table in other forms than the general cover (decision 0012).

The general DCs (nothing in them can be dropped or loosened) imply all others within groups. So every other
form follows from them alone, without rows and without evidence:

- `set_minimal`: all sets of predicates that hold and of which none can be dropped, as papers count them;
- `restricted`: the general DCs over some of the operators;
- `concise`: fewer DCs that still say all of it, each of the others following from several together.

DCs are masks of the predicates of a space, uint64[k, n_words], one of each mirrored pair.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from holdfast.core.rows.kernels.masks import popcounts, unique_masks
from holdfast.core.words.column_sets import bits_of
from holdfast.core.words.predicate import OPERATORS, SYMMETRIC, Operator, PredicateSpace
from holdfast.denial.circular_dcs import tautologies
from holdfast.denial.kernels import rewriting as kernel
from holdfast.denial.kernels.implication import implied_by

U64 = NDArray[np.uint64]
U8 = NDArray[np.uint8]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Listed:
    """DCs of some form, sorted by size, then by words; not all of them if there are more than a limit."""

    masks: U64
    complete: bool


def set_minimal(masks: U64, space: PredicateSpace, limit: int | None = None, max_size: int = 0) -> Listed:
    """All DCs that hold, are not trivial, and hold no longer without any of their predicates.

    IN masks: the general cover, perhaps bounded to `max_size` predicates (0: any number). Law: equal to
    `core.cover.kernels.search.minimal_dcs` without `general`, on the same evidence and under the same bound.
    A set holds iff some general DC, or its mirror image, follows from it in each group.

    They are many: 903,259 for the 67,904 general ones of 1,000 rows of adult. With a `limit` no more are
    listed, those of the shortest general ones, and `complete` says whether that is all.
    Cost: see `kernels.rewriting.sentences`.
    """
    return _rewritten(masks, space, kernel.sets_of_operators(), limit, max_size)


def restricted(masks: U64, space: PredicateSpace, operators: Collection[Operator]) -> U64:
    """The general DCs over some operators: those that hold and can be written with one predicate a group.

    IN masks: the general cover; operators: which ones may be used. Where `<` may be, `>` may be too, and so
    with `<=` and `>=`: they are the same comparison, of t with s or of s with t. Law: each DC in the result
    has these operators only and is implied by one in the cover, and no predicate in it can be dropped, or
    replaced by a looser one that is allowed, without it being implied by none. All such DCs are there. (With
    all operators that is the cover itself.) With = and != alone these are keys, FDs, and their kin.

    Not all that is implied by the cover is implied by these: not(t.a < s.a) cannot be written with = and !=.
    Cost: see `kernels.rewriting.sentences`.
    """
    allowed = {*operators, *(SYMMETRIC[op] for op in operators)}
    bits = sum(1 << i for i, op in enumerate(OPERATORS) if op in allowed)
    return _rewritten(masks, space, kernel.single_operators(bits), None, 0).masks


def concise(masks: U64, space: PredicateSpace, order: I64 | None = None) -> I64:
    """The positions of the DCs that stay when those that others imply are dropped, ascending: int64[n].

    See `implied`; nothing but the DCs is known.
    """
    return np.flatnonzero(implied(masks, space, tautologies(masks, space), order) < 0)


def implied(
    masks: U64,
    space: PredicateSpace,
    axioms: Bool,
    order: I64 | None = None,
    *,
    premises: Bool | None = None,
    filled: Bool | None = None,
) -> I64:
    """-1 for DCs that stay when those that others imply are dropped; of these, the last one that it took.

    IN masks: any DCs of the space; axioms bool[k]: those that are known to hold whatever the rest does: they
    are implied by themselves; order int64[k]: positions, the most interesting first (the order given, if it
    is None); premises bool[k]: those that may imply others (all, if it is None); filled bool[n_groups]: the
    groups of which it is known that no pair has a NULL on one side only.
    Law: a table in which those that stay hold, and what is known, cannot violate any of the rest, whatever
    its rows, with NULLs or without. The least interesting is tried first and dropped if what is left implies
    it; then the next one. So none that stays is implied by the others that stay, as far as propagation
    (`kernels/implication.py`) can see: `<` where `<=` holds, transitivity of FDs, DCs with a key
    inside, columns that stand for each other.
    """
    frame = _Frame(space)
    states = frame.states_of(masks)
    ranks = np.arange(len(masks), dtype=np.int64) if order is None else np.asarray(order, dtype=np.int64)
    return implied_by(states, frame.images_of(states), ranks, axioms, premises, filled)


def _rewritten(
    masks: U64, space: PredicateSpace, language: kernel.Language, limit: int | None, max_size: int
) -> Listed:
    frame = _Frame(space)
    by_size = np.argsort(popcounts(masks), kind="stable")
    states = frame.states_of(masks[by_size])
    sentences = kernel.sentences(states, frame.images_of(states), frame.ordered, language, max_size, limit)
    rewritten = frame.canonical(sentences.operators, masks.shape[1])
    # Where not even all that were found are listed, the first ones are, which come from the shortest.
    first = rewritten[:limit]
    ascending = first[np.lexsort((*first.T[::-1], popcounts(first)))]
    return Listed(ascending, sentences.complete and len(first) == len(rewritten))


class _Frame:
    """Between masks of predicates and what the kernels want: states, or operators, of each group."""

    def __init__(self, space: PredicateSpace) -> None:
        self.space = space
        self.ordered: Bool = np.array([g.ordered for g in space.groups], dtype=np.bool_)

    @cached_property
    def group_mirror(self) -> I64:
        """int64[n_groups]: the group (B, A) of each group (A, B)."""
        return np.array([self.space.group_of[self.space.mirror[f]] for f in self.space.first], dtype=np.int64)

    def states_of(self, masks: U64) -> U8:
        """uint8[k, n_groups]: what each DC demands of each group (`kernels/rewriting.py`)."""
        bits = bits_of(masks, self.space.n_predicates)
        states = np.zeros((len(masks), len(self.space.groups)), dtype=np.uint8)
        for i, (group, op) in enumerate(zip(self.space.group_of, self.space.op_of, strict=True)):
            states[bits[:, i], group] |= kernel.STATE_OF[op]
        return states

    def images_of(self, states: U8) -> U8:
        """The states of the mirror images: groups are exchanged, and `<=` with `>=`."""
        turned = np.array([s & 1 | (s & 2) << 1 | (s & 4) >> 1 for s in range(8)], dtype=np.uint8)
        return turned[states[:, self.group_mirror]]

    def canonical(self, operators: U8, n_words: int) -> U64:
        """The masks of operators uint8[n, n_groups]: of each mirrored pair one, distinct, in this order.

        It is the one with the lowest number that is not in both (`PredicateSpace.canonical`).
        """
        masks = np.zeros((len(operators), n_words), dtype=np.uint64)
        images = np.zeros_like(masks)
        chosen = np.zeros(len(operators), dtype=np.int8)  # 1: the mask, -1: its image
        for i, (group, op) in enumerate(zip(self.space.group_of, self.space.op_of, strict=True)):
            m = self.space.mirror[i]
            straight = operators[:, group] >> op & 1
            turned = operators[:, self.space.group_of[m]] >> self.space.op_of[m] & 1
            for target, flags in ((masks, straight), (images, turned)):
                target[:, i // 64] |= flags.astype(np.uint64) << np.uint64(i % 64)
            chosen = np.where(chosen == 0, straight.astype(np.int8) - turned.astype(np.int8), chosen)
        canonical: U64 = np.where(chosen[:, None] < 0, images, masks)
        return canonical[unique_masks(canonical)[0]]
