"""General denial constraints, rewritten: all ways to say one of them with what may be written in a group.

A *state* is what a DC demands of a group, as three bits: 1 `!=`, 2 `<=`, 4 `>=` (so 3 is `<`, 5 `>`, 6 `=`, 0
nothing, and 7 no outcome satisfies). Bits are demands, also where NULL is involved: a pair that satisfies a
state satisfies each part of it. A set of DCs is `uint8[k, n_groups]`, and a DC *contains* another if it does
in every group: then it is implied by it. DCs that hold come with their mirror images.

What may be written in a group is a list of *words*, each with its state and those of the words that say a
little less. A *sentence* has one word (or nothing) for each group. It is valid iff it contains a DC that
holds, and it is listed iff it is valid and no longer so with one of its words replaced by a lesser one. Two
languages are of use (`Language`):

- words are sets of operators, and a lesser word lacks one operator: the set-minimal DCs;
- words are some of the operators, a lesser word is a looser one of them: the general DCs in these operators.

Every sentence that is listed says, in each group, just enough of one DC that holds. So the search takes each
general DC, tries all words that just say what it demands (up to 3 in a group), and needs to know only of the
*rivals* of the DC: the others that such sentences can contain. A sentence goes if it contains a rival with
a word to spare; and it is left to the rival if that one comes first. Rivals demand nothing of other
groups, so DCs are sorted by the groups that they use, and few are looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.masks import (
    STRIDE,
    WORD_BITS,
    Indices,
    Masks,
    as_masks,
    n_words_for,
    unique_masks,
)
from holdfast.core.words.column_sets import masks_of

U8 = NDArray[np.uint8]
Flags = NDArray[np.bool_]

N_STATES = 8
NOT_EQUAL, AT_MOST, AT_LEAST = 1, 2, 4
# The state of each operator, in the order of the bits of a group: =, !=, <, <=, >, >=.
STATE_OF = (6, 1, 3, 2, 5, 4)
# A state packed into 3 bits of a word.
PER_WORD = WORD_BITS // 3
# The DCs whose sentences are looked for in one call: between two calls an interrupt is heard.
DCS_PER_CALL = 1 << 10

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


# --- Languages -------------------------------------------------------------------------------------------


class Word(NamedTuple):
    """A way to say something in a group: its operators, as bits of the group, and its state."""

    operators: int
    state: int
    lesser: tuple[int, ...]  # the states of the words that say a little less


class Language(NamedTuple):
    """For each kind of group (0 without order, 1 with) and each state demanded, the words that just say it.

    n_words int64[2, 8]; operators int64[2, 8, w], as bits; sizes int64[2, 8, w], how many they are;
    says bool[2, 8, w, 8], whether the word says another state, too; spares bool[2, 8, w, 8], whether a lesser
    word says that other state; unions int64[2, 8], all that some of the words say.
    """

    n_words: Indices
    operators: Indices
    sizes: Indices
    says: Flags
    spares: Flags
    unions: Indices


def sets_of_operators() -> Language:
    """Any operators together that some outcome satisfies; lesser is a set without one of them."""
    kinds = []
    for n_operators in (2, 6):
        words = [
            Word(bits, _state_of(bits), tuple(_state_of(bits & ~(1 << i)) for i in range(6) if bits >> i & 1))
            for bits in range(1, 1 << n_operators)
        ]
        kinds.append([w for w in words if w.state != N_STATES - 1])
    return _language(kinds)


def single_operators(allowed: int) -> Language:
    """One of the `allowed` operators (bits of a group); lesser is a looser one of them, or nothing."""
    kinds = []
    for n_operators in (2, 6):
        states = [(1 << i, STATE_OF[i]) for i in range(n_operators) if allowed >> i & 1]
        kinds.append(
            [
                Word(
                    bit, state, (0, *(other for _, other in states if other != state and not other & ~state))
                )
                for bit, state in states
            ]
        )
    return _language(kinds)


def _state_of(operators: int) -> int:
    """The state that some operators of a group (bits) demand together.

    >>> _state_of(0b001010), _state_of(0b000100)  # `!=` and `<=`; `<`
    (3, 3)
    """
    state = 0
    for i, demanded in enumerate(STATE_OF):
        if operators >> i & 1:
            state |= demanded
    return state


def _language(kinds: list[list[Word]]) -> Language:
    just = [
        [
            [w for w in words if not demanded & ~w.state and all(demanded & ~less for less in w.lesser)]
            for demanded in range(N_STATES)
        ]
        for words in kinds
    ]
    shape = (2, N_STATES, max(1, *(len(words) for kind in just for words in kind)))
    language = Language(
        np.zeros(shape[:2], dtype=np.int64),
        np.zeros(shape, dtype=np.int64),
        np.zeros(shape, dtype=np.int64),
        np.zeros((*shape, N_STATES), dtype=np.bool_),
        np.zeros((*shape, N_STATES), dtype=np.bool_),
        np.zeros(shape[:2], dtype=np.int64),
    )
    for kind, by_state in enumerate(just):
        for demanded, words in enumerate(by_state):
            language.n_words[kind, demanded] = len(words)
            for i, word in enumerate(words):
                at = kind, demanded, i
                language.operators[at] = word.operators
                language.sizes[at] = word.operators.bit_count()
                language.unions[kind, demanded] |= word.state
                for other in range(N_STATES):
                    language.says[at][other] = not other & ~word.state
                    language.spares[at][other] = any(not other & ~less for less in word.lesser)
    return language


# --- Sentences -------------------------------------------------------------------------------------------


class Sentences(NamedTuple):
    """operators uint8[n, n_groups]: of each sentence the operators in each group, as bits of the group.

    A sentence and its mirror image may both be there; complete: whether no sentence is missing.
    """

    operators: U8
    complete: bool


def sentences(
    states: U8, images: U8, ordered: Flags, language: Language, max_size: int = 0, limit: int | None = None
) -> Sentences:
    """All sentences of the language that contain a DC and none of whose words can be replaced by a lesser.

    IN states uint8[k, n_groups]: the general DCs that hold, none of which contains another or the mirror
    image of another; IN images uint8[k, n_groups]: their mirror images; IN ordered bool[n_groups]: which
    groups have an order. The language can say `>` where it can say `<`, and so with `>=` and `<=`. A sentence
    has at most `max_size` operators (0 or less: any number). Of a mirrored pair at least one is listed.

    With a limit, the search ends when more than 2 * limit have been found; the DCs given first are rewritten
    first, but for those that use the same groups, which are taken together.

    Cost: for each DC, a look at those that use no other groups, and a search that tries up to 3 words in
    each group, with a bit for each rival. 3 s for the 903,259 set-minimal ones of 67,904 (adult).
    """
    kinds = ordered.astype(np.int64)
    # No sentence contains a DC that demands of a group what no word says.
    sayable = ((language.n_words[kinds[None, :], states] > 0) | (states == 0)).all(axis=1)
    states, images = states[sayable], images[sayable]
    n_dcs, n_groups = states.shape
    sides = np.concatenate([states, images]).astype(np.uint8)
    packed = _packed(sides.astype(np.uint64))
    used = masks_of(sides != 0, n_words_for(n_groups))
    first, inverse = unique_masks(used)
    # Sides by the groups that they use; those of one class stand together, and the given order is kept.
    members = np.argsort(inverse, kind="stable").astype(np.int64)
    starts = np.searchsorted(inverse[members], np.arange(len(first) + 1)).astype(np.int64)
    unions = _packed(language.unions[kinds[None, :], states].astype(np.uint64))
    bound = max_size if max_size > 0 else np.iinfo(np.int64).max
    most = np.iinfo(np.int64).max if limit is None else 2 * max(limit, 0)

    parts: list[U8] = []
    n_sentences, at = 0, 0
    # Classes are numbered as they first occur, so those of the first DCs come first.
    n_classes = int(inverse[:n_dcs].max(initial=-1)) + 1
    while at < n_classes and n_sentences <= most:
        after = int(np.searchsorted(starts, starts[at] + DCS_PER_CALL, side="right"))
        after = min(max(after, at + 1), n_classes)
        part = _sentences(
            sides, packed, unions, as_masks(used[first]), members, starts, kinds, n_dcs, at, after,
            language.n_words, language.operators, language.sizes, language.says, language.spares,
            bound, most - n_sentences,
        )  # fmt: skip
        parts.append(part)
        n_sentences += len(part)
        at = after
    if not parts:
        return Sentences(np.zeros((0, n_groups), dtype=np.uint8), True)
    return Sentences(np.concatenate(parts), n_sentences <= most)


def _packed(states: Masks) -> Masks:
    """uint64[n, words]: states uint64[n, n_groups] in 3 bits each."""
    n, n_groups = states.shape
    packed = np.zeros((n, max(1, -(-n_groups // PER_WORD))), dtype=np.uint64)
    for g in range(n_groups):
        packed[:, g // PER_WORD] |= states[:, g] << np.uint64(3 * (g % PER_WORD))
    return packed


@njit(cache=True, nogil=True)
def _sentences(
    sides: U8,
    packed: Masks,
    unions: Masks,
    used: Masks,
    members: Indices,
    starts: Indices,
    kinds: Indices,
    n_dcs: int,
    first_class: int,
    last_class: int,
    n_words: Indices,
    operators: Indices,
    sizes: Indices,
    says: Flags,
    spares: Flags,
    max_size: int,
    most: int,
) -> U8:
    """The sentences of the DCs of some classes, uint8[n, n_groups]; stops when there are more than `most`.

    IN sides uint8[2 * n_dcs, n_groups], DCs and images; packed uint64[2 * n_dcs, p]; unions uint64[n_dcs, p],
    all that words for a DC may say; used uint64[n_classes, u], the groups of each class; members int64, the
    sides by class, from starts[c] on; kinds int64[n_groups]; the arrays of a Language.

    A rival r of DC i is another side that demands nothing beyond unions[i]. Bits of the rivals, per level
    (group of the DC) and word: `holds`, what it demands of the group is said; `slack`, a lesser word says it.
    """
    n_groups = sides.shape[1]
    listed = np.empty((1 << 10, n_groups), dtype=np.uint8)
    n_listed = 0
    near = np.empty(sides.shape[0], dtype=np.int64)
    n_packed = packed.shape[1]
    demands = np.empty((n_packed, sides.shape[0]), dtype=np.uint64)
    rivals = np.empty(sides.shape[0], dtype=np.int64)
    groups = np.empty(n_groups, dtype=np.int64)
    word_at = np.empty(n_groups + 1, dtype=np.int64)
    size_at = np.zeros(n_groups + 2, dtype=np.int64)
    width = operators.shape[2]
    room = 0
    holds = np.empty((0, 0, 0), dtype=np.uint64)
    slack = np.empty((0, 0, 0), dtype=np.uint64)
    idle = np.empty((0, 0), dtype=np.uint64)
    contained = np.empty((0, 0), dtype=np.uint64)
    loose = np.empty((0, 0), dtype=np.uint64)
    earlier = np.empty(0, dtype=np.uint64)
    for c in range(first_class, last_class):
        n_near = 0
        for d in range(used.shape[0]):
            outside = _ZERO
            for w in range(used.shape[1]):
                outside |= used[d, w] & ~used[c, w]
            if outside == _ZERO:
                for m in range(starts[d], starts[d + 1]):
                    near[n_near] = members[m]
                    for w in range(n_packed):
                        demands[w, n_near] = packed[members[m], w]
                    n_near += 1
        n_levels = 0
        for g in range(n_groups):
            if used[c, g // WORD_BITS] >> np.uint64(g % WORD_BITS) & _ONE != _ZERO:
                groups[n_levels] = g
                n_levels += 1
        for m in range(starts[c], starts[c + 1]):
            i = members[m]
            if i >= n_dcs:
                continue
            n_rivals = 0
            for start in range(0, n_near, STRIDE):
                stop = min(start + STRIDE, n_near)
                hit = False
                for j in range(start, stop):
                    hit |= demands[0, j] & ~unions[i, 0] == _ZERO
                if not hit:
                    continue
                for j in range(start, stop):
                    beyond = _ZERO
                    for w in range(n_packed):
                        beyond |= demands[w, j] & ~unions[i, w]
                    if beyond == _ZERO and near[j] != i:
                        rivals[n_rivals] = near[j]
                        n_rivals += 1
            n_bits = n_rivals // WORD_BITS + 1
            if n_bits > room:
                room = 2 * n_bits
                holds = np.empty((n_groups, width, room), dtype=np.uint64)
                slack = np.empty((n_groups, width, room), dtype=np.uint64)
                idle = np.empty((n_groups + 1, room), dtype=np.uint64)
                contained = np.empty((n_groups + 1, room), dtype=np.uint64)
                loose = np.empty((n_groups + 1, room), dtype=np.uint64)
                earlier = np.empty(room, dtype=np.uint64)
            for b in range(n_bits):
                earlier[b] = _ZERO
                contained[0, b] = _ZERO
                loose[0, b] = _ZERO
                for level in range(n_levels):
                    idle[level, b] = _ZERO
                    for k in range(width):
                        holds[level, k, b] = _ZERO
                        slack[level, k, b] = _ZERO
            for r in range(n_rivals):
                b, bit = r // WORD_BITS, _ONE << np.uint64(r % WORD_BITS)
                contained[0, b] |= bit
                # A DC and its image are one: the mirror image of the DC itself is not an earlier one.
                if rivals[r] % n_dcs < i:
                    earlier[b] |= bit
                for level in range(n_levels - 1, -1, -1):
                    g = groups[level]
                    demanded, other = sides[i, g], sides[rivals[r], g]
                    if other == 0 and (level == n_levels - 1 or idle[level + 1, b] & bit != _ZERO):
                        idle[level, b] |= bit
                    for k in range(n_words[kinds[g], demanded]):
                        if says[kinds[g], demanded, k, other]:
                            holds[level, k, b] |= bit
                        if spares[kinds[g], demanded, k, other]:
                            slack[level, k, b] |= bit

            level = 0
            word_at[0] = -1
            while level >= 0:
                if level == n_levels:
                    # A whole sentence, unless a rival has a word to spare or comes first.
                    gone = size_at[level] > max_size
                    for b in range(n_bits):
                        if contained[level, b] & (loose[level, b] | earlier[b]) != _ZERO:
                            gone = True
                            break
                    if not gone:
                        if n_listed == listed.shape[0]:
                            grown = np.empty((2 * n_listed, n_groups), dtype=np.uint8)
                            grown[:n_listed] = listed
                            listed = grown
                        for g in range(n_groups):
                            listed[n_listed, g] = 0
                        for at in range(n_levels):
                            g = groups[at]
                            listed[n_listed, g] = operators[kinds[g], sides[i, g], word_at[at]]
                        n_listed += 1
                        if n_listed > most:
                            return listed[:n_listed]
                    level -= 1
                    continue
                g = groups[level]
                k = word_at[level] + 1
                if k == n_words[kinds[g], sides[i, g]]:
                    level -= 1
                    continue
                word_at[level] = k
                size_at[level + 1] = size_at[level] + sizes[kinds[g], sides[i, g], k]
                # A rival that demands nothing of the groups to come is contained already, and spares a word.
                dead = size_at[level + 1] > max_size
                last = level + 1 == n_levels
                for b in range(n_bits):
                    still = contained[level, b] & holds[level, k, b]
                    contained[level + 1, b] = still
                    loose[level + 1, b] = loose[level, b] | slack[level, k, b]
                    if not last and still & idle[level + 1, b] != _ZERO:
                        dead = True
                        break
                if not dead:
                    level += 1
                    word_at[level] = -1
    return listed[:n_listed]


def warm_up() -> None:
    """Call every kernel once, so that Numba's cache on disk holds them all."""
    state = np.array([[AT_MOST]], dtype=np.uint8)
    sentences(state, np.array([[AT_LEAST]], dtype=np.uint8), np.ones(1, np.bool_), sets_of_operators())
