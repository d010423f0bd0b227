"""Which denial constraints follow from others together: unit propagation over outcomes.

A pair of rows has one of four outcomes in each group: <, =, >, or NULL on one side. A DC demands of some
groups that the outcome be one of a set (its *literals*), and says that no pair meets all demands; what holds
for (t, s) holds for (s, t), so its mirror image is a DC as well. To test a DC, a pair is assumed that meets
its demands: in each group only the outcomes of its literal are left. Now every other DC of which all literals
but one are *certain* (all outcomes left in the group are in the set) takes the outcomes of the last literal
out of its group. If a group is left without outcome there is no such pair: the DC is implied.

Sound for every table, since what is taken out is impossible. Found are `<` where `<=` holds, FDs by
transitivity, DCs that contain a key, columns that stand for each other. Not complete: nothing is tried out by
cases, and groups are taken as independent, but for the *axioms*: DCs that need no pair of rows to hold, since
their comparisons run in a circle (`circular_dcs.py`). These are never listed, and help to imply others. Where
it is known that no pair has the outcome NULL in a group, that outcome is left out from the start.

Two passes. The first one takes the DCs from the most wanted on and keeps one if those kept before it do not
imply it; the second one takes the kept from the least wanted on and drops one if the rest implies it. Those
that are no premises are asked at last. (The second pass alone, over all DCs, would do: it kept 2,982 of
27,057 instead of 3,099, but each test would have to look at all DCs, and of hundreds of thousands few stay.)

Each clause (DC or mirror image) is watched at two literals that are not certain, as satisfiability solvers
do: it is looked at only when one of these becomes certain, and the watch moves to another one. Nothing has
to be undone between tests. Literals that are rarely certain have the lowest numbers and are watched first;
counting certain literals instead would look at every clause of every literal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.masks import (
    WORD_BITS,
    Flags,
    Indices,
    Masks,
    n_words_for,
    word_lowest,
)
from holdfast.denial.kernels.rewriting import N_STATES

U8 = NDArray[np.uint8]
I32 = NDArray[np.int32]

ALL_OUTCOMES, WITHOUT_NULL = 0b1111, 0b0111
# The outcomes (bits <, =, >, NULL on one side) that meet each state of `rewriting.py`: !=, <=, >= together.
OUTCOMES_OF = np.array(
    [
        ALL_OUTCOMES
        & (0b1101 if s & 1 else ALL_OUTCOMES)
        & (0b0011 if s & 2 else ALL_OUTCOMES)
        & (0b0110 if s & 4 else ALL_OUTCOMES)
        for s in range(N_STATES)
    ],
    dtype=np.int64,
)
# DCs tested in one call: between two calls an interrupt is heard.
TESTS_PER_CALL = 1 << 12

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


def implied_by(
    states: U8,
    images: U8,
    order: Indices,
    axioms: Flags,
    premises: Flags | None = None,
    filled: Flags | None = None,
) -> Indices:
    """int64[k]: -1 for DCs that stay if those are dropped that the others that stay imply; of these, the last
    DC that it took.

    IN states uint8[k, n_groups]: what each DC demands of each group, as in `rewriting.py`; IN images uint8[k,
    n_groups]: their mirror images; IN order int64[k]: the DCs, the most wanted first; IN axioms bool[k]:
    which are known to hold and do not stay: each is implied by itself. So is one that demands the impossible
    (state 7). IN premises bool[k]: which may imply others, axioms among them; all, if it is not given. The
    rest is tested against those that stay. IN filled bool[n_groups]: where no pair has the outcome NULL;
    nowhere, if it is not given.

    Cost: each test follows the clauses of kept DCs whose watched literals become certain. On 24,000 rows of
    adult 0.4 s for 27,057 DCs of 54 predicates, of which 3,099 stay, and 4 minutes for 468,986 of 66
    predicates, of which 38,768 stay.
    """
    n_dcs, n_groups = states.shape
    sides = np.concatenate([states, images])
    # How often each literal is certain at the start of a test; only those that some DC has get a number.
    demanded = np.zeros((n_groups, N_STATES), dtype=np.int64)
    for g in range(n_groups):
        demanded[g] = np.bincount(sides[:, g], minlength=N_STATES)
    implying = np.array([[not s & ~d for s in range(N_STATES)] for d in range(N_STATES)])
    frequency = demanded @ implying
    group, state = np.nonzero(demanded[:, 1:])
    state += 1
    rare_first = np.lexsort((state, group, frequency[group, state]))
    group, state = group[rare_first], state[rare_first]
    numbers = np.full((n_groups, N_STATES), -1, dtype=np.int64)
    numbers[group, state] = np.arange(len(group))
    clauses = np.zeros((2 * n_dcs, n_words_for(len(group))), dtype=np.uint64)
    for i, (g, s) in enumerate(zip(group.tolist(), state.tolist(), strict=True)):
        has = (sides[:, g] == s).astype(np.uint64)
        clauses[:, i // WORD_BITS] |= has << np.uint64(i % WORD_BITS)

    no_null = np.zeros(n_groups, dtype=np.bool_) if filled is None else filled
    by_state = OUTCOMES_OF & np.where(no_null, WITHOUT_NULL, ALL_OUTCOMES)[:, None]
    heads = np.full(len(group), -1, dtype=np.int32)
    links = np.full((2 * n_dcs, 2), -1, dtype=np.int32)
    watched = np.full((2 * n_dcs, 2), -1, dtype=np.int32)
    short = np.empty(2 * n_dcs, dtype=np.int64)
    n_short = np.zeros(1, dtype=np.int64)
    staying = np.zeros(n_dcs, dtype=np.bool_)
    by = np.full(n_dcs, -1, dtype=np.int64)
    demands = np.ascontiguousarray(states)
    wanted = np.asarray(order, dtype=np.int64)
    others = np.zeros(n_dcs, dtype=np.bool_) if premises is None else ~premises
    for step in ("axioms", "keep", "drop", "ask"):
        part = {
            "axioms": axioms,
            "keep": ~axioms & ~others,
            "drop": staying & ~axioms,
            "ask": others,
        }[step]
        tested, adding = wanted[part[wanted]], step in ("axioms", "keep")
        if step == "drop":  # the least wanted first
            tested = tested[::-1]
        for at in range(0, len(tested), TESTS_PER_CALL):
            some = np.ascontiguousarray(tested[at : at + TESTS_PER_CALL])
            _test(
                demands, some, adding, clauses, group, by_state[group, state], numbers, by_state,
                short, n_short, heads, links, watched, staying, by,
            )  # fmt: skip
    return np.where(axioms, np.arange(n_dcs), by)


@njit(cache=True, nogil=True)
def _test(
    states: U8,
    tested: Indices,
    adding: bool,
    clauses: Masks,
    group_of: Indices,
    outcomes_of: Indices,
    numbers: Indices,
    by_state: Indices,
    short: Indices,
    n_short: Indices,
    heads: I32,
    links: I32,
    watched: I32,
    staying: Flags,
    by: Indices,
) -> None:
    """Test the DCs `tested`, in this order. INOUT staying bool[k]: what is implied does not stay; others do.
    OUT by int64[k]: the last DC that it took to imply one, or -1.

    IN adding: the DCs tested take no part yet, and do from now on if they stay. IN states uint8[k,
    n_groups]; clauses uint64[2 * k, n_words], the literals of DCs and of their mirror images; group_of,
    outcomes_of int64[n_literals]; numbers int64[n_groups, 8], the literal of each state, or -1; by_state
    int64[n_groups, 8], its outcomes.

    INOUT short int64[2 * k], n_short int64[1]: the clauses of at most one literal, which are looked at in
    every test. INOUT heads int32[n_literals]: the first watch of each literal, or -1; a clause c has the
    watches 2 * c and 2 * c + 1; links, watched int32[2 * k, 2]: the next watch of the same literal, and the
    literal.
    """
    n_dcs, n_groups = states.shape
    n_words = clauses.shape[1]
    possible = np.empty(n_groups, dtype=np.int64)
    certain = np.zeros(n_words, dtype=np.uint64)
    queue = np.empty(group_of.shape[0], dtype=np.int64)
    for a in range(tested.shape[0]):
        dc = tested[a]
        n_queued = 0
        implied, last = False, dc
        for w in range(n_words):
            certain[w] = _ZERO
        for g in range(n_groups):
            possible[g] = ALL_OUTCOMES
        for g in range(n_groups):
            demand = by_state[g, states[dc, g]]
            n_queued = _narrow(g, demand, numbers, by_state, possible, certain, queue, n_queued)
            implied |= possible[g] == 0
        for i in range(n_short[0]):
            c = short[i]
            if implied:
                break
            if c % n_dcs == dc or not staying[c % n_dcs]:
                continue
            last = c % n_dcs
            literal = _first_literal(clauses[c])
            if literal < 0:
                implied = True
                break
            g = group_of[literal]
            other_outcomes = ~outcomes_of[literal]
            n_queued = _narrow(g, other_outcomes, numbers, by_state, possible, certain, queue, n_queued)
            implied = possible[g] == 0
        done = 0
        while done < n_queued and not implied:
            before, here = -1, queue[done]
            done += 1
            watch = heads[here]
            while watch >= 0:
                c, k = watch >> 1, watch & 1
                dc_of = c if c < n_dcs else c - n_dcs
                after = links[c, k]
                if dc_of == dc:
                    before, watch = watch, after
                    continue
                target = -1
                if staying[dc_of]:
                    other = watched[c, 1 - k]
                    for w in range(n_words):
                        open_ = clauses[c, w] & ~certain[w]
                        if w == other // WORD_BITS:
                            open_ &= ~(_ONE << np.uint64(other % WORD_BITS))
                        if open_ != _ZERO:
                            target = WORD_BITS * w + word_lowest(open_)
                            break
                    if target < 0:
                        # All but `other` are certain, or that one too: its outcomes are impossible.
                        g = group_of[other]
                        n_queued = _narrow(
                            g, ~outcomes_of[other], numbers, by_state, possible, certain, queue, n_queued
                        )
                        if possible[g] == 0:
                            implied, last = True, dc_of
                            break
                        before, watch = watch, after
                        continue
                # Out of this list: the DC was dropped, or another literal is watched from now on.
                if before < 0:
                    heads[here] = after
                else:
                    links[before >> 1, before & 1] = after
                if target >= 0:
                    watched[c, k] = target
                    links[c, k] = heads[target]
                    heads[target] = watch
                watch = after
        staying[dc] = not implied
        by[dc] = last if implied else -1
        if adding and not implied:
            for c in (dc, dc + n_dcs):
                if _watch(c, clauses[c], heads, links, watched) < 2:
                    short[n_short[0]] = c
                    n_short[0] += 1


@njit(cache=True, nogil=True)
def _first_literal(clause: Masks) -> int:
    """The lowest bit of IN clause uint64[n_words], or -1."""
    for w in range(clause.shape[0]):
        if clause[w] != _ZERO:
            return WORD_BITS * w + int(word_lowest(clause[w]))
    return -1


@njit(cache=True, nogil=True)
def _watch(c: int, clause: Masks, heads: I32, links: I32, watched: I32) -> int:
    """Watch the first two literals of a clause; how many it has of them. Arguments as in `_test`.

    With fewer than two none is watched.
    """
    literals = np.empty(2, dtype=np.int64)
    n_literals = 0
    for w in range(clause.shape[0]):
        word = clause[w]
        while word != _ZERO and n_literals < 2:
            literals[n_literals] = WORD_BITS * w + word_lowest(word)
            word &= word - _ONE
            n_literals += 1
    if n_literals == 2:
        for k in range(2):
            watched[c, k] = literals[k]
            links[c, k] = heads[literals[k]]
            heads[literals[k]] = 2 * c + k
    return n_literals


@njit(cache=True, nogil=True)
def _narrow(
    group: int,
    outcomes: int,
    numbers: Indices,
    by_state: Indices,
    possible: Indices,
    certain: Masks,
    queue: Indices,
    n_queued: int,
) -> int:
    """Leave only these outcomes in the group; the new length of the queue of literals that became certain.

    INOUT possible int64[n_groups], certain uint64[n_words], queue int64[n_literals]; others as in `_test`.
    """
    was = possible[group]
    now = was & outcomes
    possible[group] = now
    if now != was:
        for s in range(1, N_STATES):
            literal = numbers[group, s]
            if literal >= 0 and now & ~by_state[group, s] == 0 and was & ~by_state[group, s] != 0:
                certain[literal // WORD_BITS] |= _ONE << np.uint64(literal % WORD_BITS)
                queue[n_queued] = literal
                n_queued += 1
    return n_queued


def warm_up() -> None:
    """Call every kernel once, so that Numba's cache on disk holds them all."""
    states = np.array([[2, 1], [3, 1]], dtype=np.uint8)
    implied_by(states, np.array([[4, 1], [5, 1]], dtype=np.uint8), np.arange(2), np.zeros(2, np.bool_))
