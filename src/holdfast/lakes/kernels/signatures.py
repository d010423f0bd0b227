"""Bloom signatures of value sets, and who may contain whom by them (MANY, sec. 4).

A column's *signature* is `p` Bloom filters of `m` bits behind each other (multi-hashing, sec. 4.3), `k` bits
for each value in each of them. The law: if a value set is a subset of another, so is its signature; the
reverse is likely only, so what is proposed here must be validated (`value_sets.validated`).

The *matrix* is the transpose, `uint64[n_blocks, n_bits, WORDS]`: for each block of BLOCK columns and each bit
of a signature a row of WORDS words, one bit for each column. The columns that have all bits of a signature
are the conjunction of the rows of these bits; those that have no other bits, the conjunction of the inverted
rows of the others. A block has 512 bytes a row, 665 KB with 1,300 bits, and stays in the cache while a chunk
of signatures is run through it.

Indexed bit vectors (sec. 4.5) here: the rows that rule out most columns come first; four of them at a time
are ANDed over all words of a block, which are vector instructions, until few words are left that are not 0;
each of these is then taken alone through the other rows until it is 0. The paper keeps the list of active
words through all rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import frozen, mix
from holdfast.core.rows.kernels.masks import n_words_for, turn, word_lowest, word_popcount

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

BLOCK = 4096  # columns of a block of the matrix
WORDS = BLOCK // 64  # words of a row of a block

TILE = 8  # words of a row that are transposed together, so that they fill a cache line
CHUNK = 1024  # signatures that are run through a block before the next one, at most ...
CHUNK_ROWS = 1 << 17  # ... and rows that they ask for: half a megabyte of row numbers
SAMPLED_BLOCKS = 8  # the order of the rows is that of these blocks: reading all costs as much as a query
# Once the OR of the words of a block has at most so many bits, they are finished one by one.
FEW = 8

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_HALF = np.uint64(32)
_WORDS = np.uint64(WORDS)
_PASS = np.uint64(0x9E3779B97F4A7C15)


# --- Signatures ------------------------------------------------------------------------------------------


def bloom(offsets: I64, values: U64, checks: U64, m: int, k: int, p: int) -> U64:
    """The signatures of n value sets: uint64[n, ceil(m * p / 64)]; bit r of pass q is bit q * m + r.

    IN offsets int64[n + 1], values uint64[E], checks uint64[E]: set i has the values (h1, h2) of
    offsets[i]:offsets[i + 1], in any order. 1 <= m < 2**32, k and p at least 1.

    The bits of a value in pass q, by double hashing: with a = mix(h1 + q * C) and b = mix(h2 + q * C), where
    C = 0x9E3779B97F4A7C15 and mix is `encode.mix`, they are (((a + i * b) >> 32) * m) >> 32 for i < k, all
    but the last two modulo 2**64. These numbers are in files: they cannot change.

    Cost: two hashes for each value and pass, and a bit for each of its hash functions.

    >>> one = np.array([7], dtype=np.uint64)
    >>> bloom(np.array([0, 1, 1]), one, one, 5, 1, 2).tolist()
    [[516], [0]]
    """
    signatures = np.zeros((len(offsets) - 1, n_words_for(m * p)), dtype=np.uint64)
    _bloom(frozen(offsets), frozen(values), frozen(checks), m, k, p, signatures)
    return signatures


@njit(cache=True, nogil=True)
def _bloom(offsets, values, checks, m, k, p, signatures):  # type: ignore[no-untyped-def]
    size = np.uint64(m)
    for c in range(signatures.shape[0]):
        for e in range(offsets[c], offsets[c + 1]):
            shift = _ZERO
            for q in range(p):
                place = mix(values[e] + shift)
                step = mix(checks[e] + shift)
                first = np.uint64(q) * size
                for _ in range(k):
                    bit = first + (((place >> _HALF) * size) >> _HALF)
                    signatures[c, bit >> np.uint64(6)] |= _ONE << (bit & np.uint64(63))
                    place += step
                shift += _PASS


def transposed(signatures: U64, n_bits: int) -> U64:
    """The matrix of some signatures: uint64[ceil(n / BLOCK), n_bits, WORDS].

    IN signatures uint64[n, ceil(n_bits / 64)]. Bit c % 64 of word [c // BLOCK, r, (c % BLOCK) // 64] is bit
    r of signature c; the columns from n on, up to the end of the last block, have no bits. Cost: 0.4
    microseconds for 64 words.
    """
    matrix = np.zeros((-(-len(signatures) // BLOCK), n_bits, WORDS), dtype=np.uint64)
    _transposed(frozen(signatures), matrix)
    return matrix


@njit(cache=True, nogil=True)
def _transposed(signatures, matrix):  # type: ignore[no-untyped-def]
    n, n_words = signatures.shape
    n_bits = matrix.shape[1]
    squares = np.empty((TILE, 64), dtype=np.uint64)
    for start in range(0, n, 64 * TILE):
        block = start // BLOCK
        first = (start % BLOCK) // 64
        for w in range(n_words):
            for t in range(TILE):
                square = squares[t]
                base = start + 64 * t
                some = _ZERO
                for i in range(64):
                    word = signatures[base + i, w] if base + i < n else _ZERO
                    square[i] = word
                    some |= word
                if some:
                    turn(square)
            for r in range(64 * w, min(64 * w + 64, n_bits)):
                for t in range(TILE):
                    matrix[block, r, first + t] = squares[t, r - 64 * w]


# --- Proposers -------------------------------------------------------------------------------------------


def dep2refs(matrix: U64, deps: U64, allowed: U64, capacity: int) -> tuple[I32, I32, int]:
    """(dep, ref, n_done): the columns of the matrix whose signatures contain those of deps 0 to n_done - 1.

    IN matrix uint64[n_blocks, n_bits, WORDS]; IN deps uint64[d, W], signatures; IN allowed
    uint64[n_blocks * WORDS]: one bit for each column of the matrix that may be a result. dep, ref int32[n],
    sorted by (dep, ref): numbers in deps and of columns of the matrix. A column is a candidate for itself.

    All candidates of the first n_done deps, and none of the others. There are at most `capacity` pairs
    unless the first dep alone has more; n_done is at least 1 if there is a dep at all. A signature without
    bits is contained in every allowed column.

    Cost: for each dep and block about 4 rows of 64 words, some more for each word that is left then: 0.2 to
    0.4 microseconds (m = 650, k = 6, p = 2, 8 values a column), and 15 to 25 ns for each pair.
    """
    return _proposed(matrix, deps, allowed, capacity, inverted=False)


def ref2deps(matrix: U64, refs: U64, allowed: U64, capacity: int) -> tuple[I32, I32, int]:
    """(ref, dep, n_done): the columns of the matrix whose signatures are part of those of the first refs.

    As `dep2refs`, with the roles exchanged: IN refs uint64[r, W]; sorted by (ref, dep). A column without
    bits is part of every ref, also one behind the last column: `allowed` must leave out what is not there.

    Cost: a row rules out only the columns that have its bit, so it takes dozens of rows where `dep2refs`
    takes a few, 2 to 4 microseconds for each ref and block: for new refs, of which old columns are asked.
    """
    return _proposed(matrix, refs, allowed, capacity, inverted=True)


def _proposed(
    matrix: U64, queries: U64, allowed: U64, capacity: int, *, inverted: bool
) -> tuple[I32, I32, int]:
    n_blocks, n_bits, _ = matrix.shape
    sample = np.linspace(0, n_blocks - 1, min(n_blocks, SAMPLED_BLOCKS)).astype(np.int64)
    flat = frozen(matrix).reshape(-1)
    counts = np.zeros(n_bits, dtype=np.int64)
    _row_counts(flat, sample, counts)
    order = np.argsort(-counts if inverted else counts, kind="stable")
    dep, ref, n, n_done = _propose(
        frozen(matrix),
        frozen(order),
        frozen(queries),
        frozen(allowed),
        _ALL if inverted else _ZERO,
        max(1, capacity),
    )
    return dep[:n], ref[:n], int(n_done)


@njit(cache=True, nogil=True)
def _row_counts(flat, sample, counts):  # type: ignore[no-untyped-def]
    """How many columns of the sampled blocks have each bit: OUT counts int64[n_bits], 0 before."""
    n_bits = counts.shape[0]
    for s in range(sample.shape[0]):
        for r in range(n_bits):
            start = (sample[s] * n_bits + r) * WORDS
            n = np.int64(0)
            for w in range(start, start + WORDS):
                n += word_popcount(flat[w])
            counts[r] += n


@njit(cache=True, nogil=True)
def _rows_of(queries, first, order, ranks, flip, rows, starts):  # type: ignore[no-untyped-def]
    """The rows that signatures ask for, in order; how many signatures, as many as there is room for.

    IN queries uint64[d, W], from number `first` on; IN order int64[n_bits], ranks its inverse; flip: all ones
    if the bits that a signature lacks are asked for. OUT rows uint32[>= n_bits]: where the rows start in a
    block, those of signature i at starts[i]:starts[i + 1]; OUT starts int64[CHUNK + 1].
    """
    n_bits = order.shape[0]
    n_words = queries.shape[1]
    ranked = np.empty(n_words, dtype=np.uint64)
    n = 0
    i = 0
    starts[0] = 0
    while first + i < queries.shape[0] and i < CHUNK and n + n_bits <= rows.shape[0]:
        ranked[:] = _ZERO
        for w in range(n_words):
            word = queries[first + i, w] ^ flip
            if 64 * (w + 1) > n_bits:
                word &= (_ONE << np.uint64(n_bits - 64 * w)) - _ONE
            while word:
                rank = ranks[64 * w + word_lowest(word)]
                ranked[rank >> 6] |= _ONE << np.uint64(rank & 63)
                word &= word - _ONE
        for w in range(n_words):
            word = ranked[w]
            while word:
                rows[n] = order[64 * w + word_lowest(word)]
                n += 1
                word &= word - _ONE
        i += 1
        starts[i] = n
    return i


@njit(cache=True, nogil=True)
def _active_words(block, rows, low, high, flip, words):  # type: ignore[no-untyped-def]
    """(active, next): AND rows until few words are left, or no row; which words, and the first row not used.

    IN block uint64[n_bits, WORDS]; IN rows uint32[*], of low:high. INOUT words uint64[WORDS]; bit w of
    `active` says that word w of `words` is not 0.
    """
    some = _ALL
    at = low
    # That few words are left is told by the OR of all of them having few bits: to count them costs as much
    # as the rows do.
    while at < high and word_popcount(some) > FEW:
        # Four rows a round; where fewer are left the last one is repeated, which changes nothing.
        last = high - 1
        row_0 = block[rows[at]]
        row_1 = block[rows[min(at + 1, last)]]
        row_2 = block[rows[min(at + 2, last)]]
        row_3 = block[rows[min(at + 3, last)]]
        some = _ZERO
        for w in range(WORDS):
            word = (row_0[w] ^ flip) & (row_1[w] ^ flip) & (row_2[w] ^ flip) & (row_3[w] ^ flip) & words[w]
            words[w] = word
            some |= word
        at = min(at + 4, high)
    active = _ZERO
    if some:
        for w in range(_WORDS):
            active |= np.uint64(words[w] != _ZERO) << w
    return active, at


@njit(cache=True, nogil=True)
def _rest_of_word(block, w, rows, low, high, flip, word):  # type: ignore[no-untyped-def]
    """One word through the rows low:high, until it is 0."""
    at = low
    while at + 4 <= high and word:
        word &= block[rows[at], w] ^ flip
        word &= block[rows[at + 1], w] ^ flip
        word &= block[rows[at + 2], w] ^ flip
        word &= block[rows[at + 3], w] ^ flip
        at += 4
    while at < high and word:
        word &= block[rows[at], w] ^ flip
        at += 1
    return word


@njit(cache=True, nogil=True)
def _listed(word, i, first, numbers, columns, n):  # type: ignore[no-untyped-def]
    """Append a pair for each bit of a word; how many pairs there are then."""
    while word:
        numbers[n] = i
        columns[n] = first + word_lowest(word)
        n += 1
        word &= word - _ONE
    return n


@njit(cache=True, nogil=True)
def _in_order(numbers, columns, n_numbers, first, left, right):  # type: ignore[no-untyped-def]
    """Pairs sorted by number, those of one in the order they have: OUT left, right int32[>= n]."""
    places = np.zeros(n_numbers + 1, dtype=np.int64)
    for number in numbers:
        places[number + 1] += 1
    for i in range(n_numbers):
        places[i + 1] += places[i]
    n = numbers.shape[0]
    e = 0
    while e < n:  # A block's pairs of one number are adjacent.
        number = numbers[e]
        place = places[number]
        while e < n and numbers[e] == number:
            left[place] = first + number
            right[place] = columns[e]
            place += 1
            e += 1
        places[number] = place


@njit(cache=True, nogil=True)
def _of_first(numbers, columns, n, live):  # type: ignore[no-untyped-def]
    """Only the pairs of the first `live` signatures, in the order that they have; how many there are."""
    n_live = 0
    for e in range(n):
        numbers[n_live] = numbers[e]
        columns[n_live] = columns[e]
        n_live += numbers[e] < live
    return n_live


@njit(cache=True, nogil=True)
def _longer(array, size):  # type: ignore[no-untyped-def]
    grown = np.empty(size, dtype=array.dtype)
    grown[: array.shape[0]] = array
    return grown


@njit(cache=True, nogil=True)
def _propose(matrix, order, queries, allowed, flip, capacity):  # type: ignore[no-untyped-def]
    """(left, right, n, n_done): the first n of both are the pairs of the first n_done signatures."""
    n_blocks, n_bits, _ = matrix.shape
    ranks = np.empty(n_bits, dtype=np.int64)
    for rank in range(n_bits):
        ranks[order[rank]] = rank
    rows = np.empty(max(CHUNK_ROWS, n_bits), dtype=np.uint32)
    starts = np.empty(CHUNK + 1, dtype=np.int64)
    words = np.empty(WORDS, dtype=np.uint64)
    # What a chunk finds comes block by block; it is brought into the order of the signatures at its end.
    numbers = np.empty(capacity, dtype=np.int32)
    columns = np.empty(capacity, dtype=np.int32)
    left = np.empty(capacity, dtype=np.int32)
    right = np.empty(capacity, dtype=np.int32)
    n_pairs = 0
    n_done = 0
    while n_done < queries.shape[0]:
        n_chunk = _rows_of(queries, n_done, order, ranks, flip, rows, starts)
        live = n_chunk  # the chunk's first so many have all their pairs yet
        n = 0
        for b in range(n_blocks):
            block = matrix[b]
            some = _ZERO
            for w in range(WORDS):
                some |= allowed[b * WORDS + w]
            if not some:
                continue
            i = 0
            while i < live:
                for w in range(WORDS):
                    words[w] = allowed[b * WORDS + w]
                active, at = _active_words(block, rows, starts[i], starts[i + 1], flip, words)
                while active:
                    here = np.uint64(word_lowest(active))
                    active &= active - _ONE
                    word = _rest_of_word(block, here, rows, at, starts[i + 1], flip, words[here])
                    if not word:
                        continue
                    more = word_popcount(word)
                    while n_pairs + n + more > left.shape[0] and i < live:
                        if live > 1:
                            live >>= 1
                            n = _of_first(numbers, columns, n, live)
                        elif n_done:
                            live = n = 0
                        else:  # The first signature of all must be completed.
                            size = max(2 * left.shape[0], n + more)
                            numbers, columns = _longer(numbers, size), _longer(columns, size)
                            left, right = np.empty(size, np.int32), np.empty(size, np.int32)
                    if i >= live:
                        break
                    first = b * BLOCK + np.int64(here) * 64
                    n = _listed(word, i, first, numbers, columns, n)
                i += 1
        _in_order(numbers[:n], columns[:n], live, n_done, left[n_pairs:], right[n_pairs:])
        n_pairs += n
        n_done += live
        if live < n_chunk:
            break
    return left, right, n_pairs, n_done


def warm_up() -> None:
    one = np.ones(1, dtype=np.uint64)
    signatures = bloom(np.array([0, 1], dtype=np.int64), one, one, 64, 1, 1)
    matrix = transposed(signatures, 64)
    allowed = np.ones(WORDS, dtype=np.uint64)
    dep2refs(matrix, signatures, allowed, 1)
    ref2deps(matrix, signatures, allowed, 1)
