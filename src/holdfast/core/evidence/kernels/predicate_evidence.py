"""Evidence of pairs of rows over predicates t.A op s.B (IncDC, sec. 8: BuildEvidence), counted.

A *group* is an ordered pair of columns (A, B) that may be compared. A pair of rows (t, s) has one *outcome*
in each group, which decides all of its predicates at once:

    ordered    0: t.A < s.B      !=, <, <=        unordered    0: t.A != s.B    !=
               1: t.A = s.B      =, <=, >=                     1: t.A = s.B     =
               2: t.A > s.B      !=, >, >=
               3: one is NULL    !=

Two NULLs are equal. A group's predicates are numbered from first[g] on, in the order =, !=, <, <=, >, >= (the
first two if it is unordered); the *evidence* of (t, s) is the mask of those it satisfies.

Values are integers that compare as the values do: an old row's value is 2 * its local code, a batch row's is
its *half rank* in the dictionary of the old column (`half_ranks`): odd where the dictionary has it not, 0 is
NULL. So a batch is compared with any segment without a common dictionary.

What makes it fast:

- *Both directions at once.* The outcome of (A, B) for (s, t) is the outcome of (B, A) for (t, s), turned
  round. An unordered pair of rows is compared once per group; the other evidence is read from the same key.
- *Keys.* A pair is counted by its outcomes, 2 bits for an ordered group and 1 for another: up to 32 groups
  in one word, any number in several. Only different keys are expanded to masks of predicates, at the end.
- *Blocks and prefixes*, as in `kernels.agree_counts`: the keys of a batch row with a block of old
  rows are built group by group, one vector loop each, in pieces of 16 bits; batch rows are sorted, and
  start from the first group in which they differ from the row before.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import frozen

U16 = NDArray[np.uint16]
U64 = NDArray[np.uint64]
I16 = NDArray[np.int16]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]


class Groups(NamedTuple):
    """Groups, all int32[n_groups]: columns left (of t) and right (of s), 1 if ordered, first predicate."""

    left: I32
    right: I32
    ordered: I32
    first: I32


class Evidence(NamedTuple):
    """Consolidated evidence of k masks.

    masks uint64[k, n_words], all different; equal families come in equal order. counts int64[k]: how many
    ordered pairs have each mask; witnesses int64[k, 2]: any one of these, (t, s); batch_first bool[k]:
    whether t is the batch row and s the old row, else t is the old one.
    """

    masks: U64
    counts: I64
    witnesses: I64
    batch_first: Bool


# Keys of up to this many bits are counted in a table of all keys, of which only what is used takes memory. To
# count one of adult's 61,000 keys of 21 bits, spread over 10 M pairs, takes 4 ns so and 7 ns by hashing.
DIRECT_BITS = 22
# So many keys ahead, slots of the hash table are brought into the cache. For 500,000 keys: 21 ns a pair
# without, 13 ns with 16, 11 ns with 32.
AHEAD = 32
# A block of old rows: its values and the stack stay in a core's second cache.
BLOCK_BYTES = 1 << 18
# Values are compared in 16 bits: half ranks of larger dictionaries give way to those among a batch's values.
MAX_HALF_RANK = 0x7FFF
MAX_BATCH = (MAX_HALF_RANK - 1) // 2
# Listed pairs whose keys are built at a time.
BLOCK_PAIRS = 4096

# Predicates (bits =, !=, <, <=, >, >=) of each outcome, and of two rows exchanged the outcome.
ORDERED_OUTCOMES = (0b001110, 0b101001, 0b110010, 0b000010)
UNORDERED_OUTCOMES = (0b10, 0b01)
EXCHANGED = (2, 1, 0, 3)

_ZERO = np.uint16(0)
_NULL = np.int16(0)
_EMPTY = np.uint64(0)


# --- Half ranks ------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _half_ranks(dictionary, wanted, out):  # type: ignore[no-untyped-def]
    n = dictionary.shape[0]
    low = 0
    for j in range(wanted.shape[0]):
        v = wanted[j]
        # Gallop from the last hit: both sides are sorted.
        step = 1
        high = low
        while high < n and dictionary[high] < v:
            low = high + 1
            high += step
            step *= 2
        if high > n:
            high = n
        while low < high:
            middle = (low + high) >> 1
            if dictionary[middle] < v:
                low = middle + 1
            else:
                high = middle
        out[j + 1] = 2 * low + (2 if low < n and dictionary[low] == v else 1)


def half_ranks(dictionary: U64, wanted: U64) -> I32:
    """For each local code of `wanted` its half rank in `dictionary`: as `translate`, but what is absent has
    a place too.

    IN dictionary uint64[n] sorted, n below 2 ** 30; IN wanted uint64[m] sorted; the result is int32[m + 1]:
    2 * the local code in `dictionary`, the odd number between its neighbours if it has none, and entry 0
    is 0 for NULL. Law: half ranks compare with 2 * local codes as the values do. Cost: m log(n / m)
    comparisons.

    >>> half_ranks(np.array([5, 7], dtype=np.uint64), np.array([1, 5, 6, 9], dtype=np.uint64)).tolist()
    [0, 1, 2, 3, 5]
    """
    out = np.empty(len(wanted) + 1, dtype=np.int32)
    out[0] = 0
    _half_ranks(frozen(dictionary), frozen(wanted), out)
    return out


# --- The plan: which comparisons a pair costs, and how its key is read -----------------------------------


class _Plan(NamedTuple):
    """The comparisons of a batch row with an old row, and what their outcomes say.

    columns int64[c]: the old column of each comparison; sources int64[2, c]: group and side of the batch's
    values; wide bool[c]: an outcome of two bits; shifts int64[c]: its first bit in the key; exchange,
    predicates uint64[n_bytes, 256, *]: for each byte of a key what it adds to the key of the exchanged pair,
    and to the evidence. `complete`: every group comes with its mirrored one, so keys and masks are as many.
    """

    columns: I64
    sources: I64
    wide: Bool
    shifts: I64
    n_bits: int
    exchange: U64
    predicates: U64
    complete: bool

    @property
    def n_words(self) -> int:
        return max(1, -(-self.n_bits // 64))


def planned(groups: Groups, n_words: int) -> _Plan:
    """One comparison for each group; two for a group that comes without its mirrored one."""
    left, right, first = groups.left.tolist(), groups.right.tolist(), groups.first.tolist()
    forward, backward = list(zip(left, right, strict=True)), list(zip(right, left, strict=True))
    found: dict[tuple[int, int], int] = {}
    sources: list[tuple[int, int]] = []
    for side, pairs in enumerate((forward, backward)):
        for g, pair in enumerate(pairs):
            if pair not in found:
                found[pair] = len(sources)
                sources.append((g, side))
    source = np.array(sources, dtype=np.int64).reshape(len(sources), 2).T
    wide = groups.ordered[source[0]] != 0
    # Outcomes of two bits first: none straddles two bytes.
    order = np.argsort(~wide, kind="stable")
    bits = np.where(wide, 2, 1)
    shifts = np.empty(len(sources), dtype=np.int64)
    shifts[order] = np.cumsum(bits[order]) - bits[order]
    n_bits = int(bits.sum())

    exchanged = [[0] * 4 for _ in sources]
    satisfied = [[0] * 4 for _ in sources]
    for (a, b), c in found.items():
        for o, turned in enumerate(EXCHANGED if wide[c] else range(2)):
            exchanged[c][o] = turned << int(shifts[found[b, a]])
    for g, pair in enumerate(forward):
        c = found[pair]
        for o, predicates in enumerate(ORDERED_OUTCOMES if wide[c] else UNORDERED_OUTCOMES):
            satisfied[c][o] = predicates << first[g]
    return _Plan(
        np.array([pair[1] for pair in found], dtype=np.int64), source, wide, shifts, n_bits,
        _by_byte(exchanged, wide, shifts, n_bits, max(1, -(-n_bits // 64))),
        _by_byte(satisfied, wide, shifts, n_bits, n_words),
        len(found) == len(set(forward)),
    )  # fmt: skip


def _by_byte(told: list[list[int]], wide: Bool, shifts: I64, n_bits: int, n_words: int) -> U64:
    """uint64[n_bytes, 256, n_words]: what each value of each byte of a key says, from what outcomes say."""
    tables = np.zeros((max(1, -(-n_bits // 8)), 256, n_words), dtype=np.uint64)
    for c, of_outcomes in enumerate(told):
        words = np.array(
            [[(o >> 64 * w) & (1 << 64) - 1 for w in range(n_words)] for o in of_outcomes], np.uint64
        )
        outcomes = (np.arange(256) >> (shifts[c] & 7)) & (3 if wide[c] else 1)
        tables[shifts[c] >> 3] |= words[outcomes]
    return tables


@njit(cache=True, nogil=True)
def _read(keys, tables, out):  # type: ignore[no-untyped-def]
    """OUT out uint64[k, n_words], preset to 0: what tables say of the keys.

    IN keys uint64[k, *]; IN tables uint64[n_bytes, 256, n_words].
    """
    for k in range(keys.shape[0]):
        for b in range(tables.shape[0]):
            v = (keys[k, b >> 3] >> np.uint64(8 * (b & 7))) & np.uint64(255)
            for w in range(out.shape[1]):
                out[k, w] |= tables[b, v, w]


def _said(keys: U64, tables: U64) -> U64:
    out = np.zeros((len(keys), tables.shape[2]), dtype=np.uint64)
    _read(keys, frozen(tables), out)
    return out


# --- Tables of keys --------------------------------------------------------------------------------------
#
# A hash table is uint64[slots, 1 + n_words]: the count, 0 if the slot is empty, and the words of the key. A
# direct one, uint64[slots, 1], has a slot for every key there may be. Beside either, `seen` int64[slots] has
# the number of one pair with that key; `size` int64[1] is the number of keys.


@intrinsic
def _prefetch(_typing: Any, array: Any, i: Any) -> Any:
    """Ask for array[i] (flat) to be brought into the cache, without waiting (usable in kernels only)."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        whole = context.make_array(signature.args[0])(context, builder, args[0])
        number = ir.IntType(32)
        place = builder.bitcast(builder.gep(whole.data, [args[1]]), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
        builder.call(function, [place, number(1), number(3), number(1)])  # to write, to keep, data
        return context.get_dummy_value()

    return types.void(array, types.int64), emit


@njit(cache=True, nogil=True, inline="always")
def _fold(h, word):  # type: ignore[no-untyped-def]
    """One more word of a key into its hash, of which the high bits count."""
    h = (h ^ word) * np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(32))


@njit(cache=True, nogil=True)
def _slots(words, n, shift, out):  # type: ignore[no-untyped-def]
    """OUT out int64[at least n]: the slot where each of IN words uint64[n_words, *] is looked for first."""
    if words.shape[0] == 1:
        word = words[0]
        for i in range(n):
            out[i] = np.int64(_fold(_EMPTY, word[i]) >> shift)
        return
    for i in range(n):
        h = _EMPTY
        for w in range(words.shape[0]):
            h = _fold(h, words[w, i])
        out[i] = np.int64(h >> shift)


@njit(cache=True, nogil=True)
def _rehashed(table, seen, bits):  # type: ignore[no-untyped-def]
    """(table, seen): the same entries in a table of 1 << bits slots. Both are walked in ascending order."""
    bigger = np.zeros((1 << bits, table.shape[1]), dtype=np.uint64)
    bigger_seen = np.empty(1 << bits, dtype=np.int64)
    shift = np.uint64(64 - bits)
    for k in range(table.shape[0]):
        if table[k, 0] == 0:
            continue
        h = _EMPTY
        for w in range(1, table.shape[1]):
            h = _fold(h, table[k, w])
        s = np.int64(h >> shift)
        while bigger[s, 0] != 0:
            s = (s + 1) & ((1 << bits) - 1)
        for x in range(table.shape[1]):
            bigger[s, x] = table[k, x]
        bigger_seen[s] = seen[k]
    return bigger, bigger_seen


@njit(cache=True, nogil=True)
def _with_room(table, seen, n_keys):  # type: ignore[no-untyped-def]
    """(table, seen) with at least two slots for each of n_keys keys."""
    size = table.shape[0]
    bits = 0
    while 1 << bits < size or 1 << bits < 2 * n_keys:
        bits += 1
    return (table, seen) if 1 << bits == size else _rehashed(table, seen, bits)


@njit(cache=True, nogil=True)
def _shift_of(table):  # type: ignore[no-untyped-def]
    """What is left of a hash shifted by this is a slot."""
    bits = 0
    while 1 << bits < table.shape[0]:
        bits += 1
    return np.uint64(64 - bits)


@njit(cache=True, nogil=True)
def _tally(words, n, weight, pair, table, seen, slots):  # type: ignore[no-untyped-def]
    """The number of new ones among n keys that are counted into a table with room for them.

    IN words uint64[n_words, *]; IN pair: the number of the first; slots int64[at least n + AHEAD]: scratch.
    """
    n_words = words.shape[0]
    last = table.shape[0] - 1
    flat = table.reshape(table.size)
    _slots(words, n, _shift_of(table), slots)
    for i in range(n, n + AHEAD):
        slots[i] = 0
    n_new = 0
    if n_words == 1:
        word = words[0]
        for i in range(n):
            _prefetch(flat, 2 * slots[i + AHEAD])
            m = word[i]
            s = slots[i]
            while table[s, 1] != m and table[s, 0] != 0:
                s = (s + 1) & last
            if table[s, 0] == 0:
                seen[s] = pair + i
                table[s, 1] = m
                n_new += 1
            table[s, 0] += weight
        return n_new
    for i in range(n):
        _prefetch(flat, (n_words + 1) * slots[i + AHEAD])
        s = slots[i]
        while table[s, 0] != 0:
            same = True
            for w in range(n_words):
                if table[s, w + 1] != words[w, i]:
                    same = False
                    break
            if same:
                break
            s = (s + 1) & last
        if table[s, 0] == 0:
            seen[s] = pair + i
            for w in range(n_words):
                table[s, w + 1] = words[w, i]
            n_new += 1
        table[s, 0] += weight
    return n_new


@njit(cache=True, nogil=True)
def _tally_direct(keys, n, weight, pair, table, seen):  # type: ignore[no-untyped-def]
    """The same for a direct table; IN keys unsigned[n]."""
    n_new = 0
    for i in range(n):
        m = keys[i]
        if table[m, 0] == 0:
            seen[m] = pair + i
            n_new += 1
        table[m, 0] += weight
    return n_new


@njit(cache=True, nogil=True)
def _entries(table, seen, keys, counts, pairs):  # type: ignore[no-untyped-def]
    """OUT keys uint64[k, n_words], counts, pairs int64[k]: what a table holds."""
    k = 0
    for s in range(table.shape[0]):
        if table[s, 0] > 0:
            counts[k] = table[s, 0]
            pairs[k] = seen[s]
            if table.shape[1] == 1:
                keys[k, 0] = s
            for w in range(1, table.shape[1]):
                keys[k, w - 1] = table[s, w]
            k += 1


@njit(cache=True, nogil=True)
def _counts_of(table, keys, counts):  # type: ignore[no-untyped-def]
    """OUT counts int64[k]: how often each of IN keys uint64[k, n_words] was counted."""
    n = keys.shape[0]
    if table.shape[1] == 1:
        for k in range(n):
            counts[k] = table[keys[k, 0], 0]
        return
    last = table.shape[0] - 1
    flat = table.reshape(table.size)
    slots = np.zeros(n + AHEAD, dtype=np.int64)
    _slots(keys.T, n, _shift_of(table), slots)
    for k in range(n):
        _prefetch(flat, table.shape[1] * slots[k + AHEAD])
        s = slots[k]
        while table[s, 0] != 0:
            same = True
            for w in range(keys.shape[1]):
                if table[s, w + 1] != keys[k, w]:
                    same = False
                    break
            if same:
                break
            s = (s + 1) & last
        counts[k] = table[s, 0]


# --- All pairs: blocks of old rows, prefixes of batch rows ------------------------------------------------


@njit(cache=True, nogil=True)
def _among(values, out):  # type: ignore[no-untyped-def]
    """OUT out int16[n_codes]: the half rank of 2 * code among IN values int32[*], ascending, none 0."""
    k = 0
    out[0] = 0
    for c in range(1, out.shape[0]):
        while k < values.shape[0] and values[k] < 2 * c:
            k += 1
        out[c] = 2 * k + (2 if k < values.shape[0] and values[k] == 2 * c else 1)


@njit(cache=True, nogil=True)
def _narrow(values, positions, start, n, ids, out):  # type: ignore[no-untyped-def]
    """Whether a NULL is among n rows of a column from `start` on. OUT out int16[n]: their half ranks.

    IN values int32[*]: local codes; IN positions int64[*]: the rows, or none if all are live; IN ids
    int16[*]: the half rank of each code, or none if it is 2 * the code.
    """
    dense = positions.shape[0] == 0
    if ids.shape[0] == 0 and dense:
        for i in range(n):
            out[i] = 2 * values[start + i]
    elif ids.shape[0] == 0:
        for i in range(n):
            out[i] = 2 * values[positions[start + i]]
    elif dense:
        for i in range(n):
            out[i] = ids[values[start + i]]
    else:
        for i in range(n):
            out[i] = ids[values[positions[start + i]]]
    nulls = False
    for i in range(n):
        nulls |= out[i] == _NULL
    return nulls


@njit(cache=True, nogil=True)
def _extend(prefix, column, value, shift, wide, nulls, n, out):  # type: ignore[no-untyped-def]
    """OUT out uint16[n]: the prefix, with the outcomes of `value` (of t) against the column (of s)."""
    equal = np.uint16(1 << shift)
    if not wide:
        for i in range(n):
            out[i] = prefix[i] | (equal if column[i] == value else _ZERO)
        return
    greater = np.uint16(2 << shift)
    one_null = np.uint16(3 << shift)
    if value == _NULL:
        for i in range(n):
            out[i] = prefix[i] | (equal if column[i] == _NULL else one_null)
    elif nulls:
        for i in range(n):
            v = column[i]
            told = greater if v < value else (equal if v == value else _ZERO)
            out[i] = prefix[i] | (one_null if v == _NULL else told)
    else:
        for i in range(n):
            v = column[i]
            out[i] = prefix[i] | (greater if v < value else (equal if v == value else _ZERO))


@njit(cache=True, nogil=True)
def _limit(positions, start, n, own, last):  # type: ignore[no-untyped-def]
    """How many of the n rows of a block a batch row is paired with: those before row `last`."""
    if not own:
        return n
    if positions.shape[0] == 0:
        return min(n, max(0, last - start))
    low = 0
    high = n
    while low < high:
        middle = (low + high) >> 1
        if positions[start + middle] < last:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _assemble(a, b, c, d, n, word):  # type: ignore[no-untyped-def]
    """OUT word uint64[n]: four pieces as one word."""
    for i in range(n):
        word[i] = (
            np.uint64(a[i])
            | (np.uint64(b[i]) << np.uint64(16))
            | (np.uint64(c[i]) << np.uint64(32))
            | (np.uint64(d[i]) << np.uint64(48))
        )


@njit(cache=True, nogil=True)
def _count_pairs(  # type: ignore[no-untyped-def]
    old, positions, n_rows, ids, id_starts, rows, origin, shared, columns, shifts, wide, own, first, block,
    n_words, start_pair, table, seen, size,
):  # fmt: skip
    """(table, seen), perhaps new ones: all pairs counted; a pair's number is start_pair + j * n_rows + i.

    IN old int32[n_columns, n]; IN positions int64[*]: the live rows, or none if all are; IN ids int16[*],
    id_starts int64[levels + 1]: see `_narrow`; IN rows int16[levels, b]: the batch, sorted; IN origin
    int64[b]: the place of each row before; IN shared int64[b]: on how many levels a row equals the one before
    it; IN columns, shifts int64[levels], wide bool[levels]: the comparison of each level. INOUT size
    int64[1].
    """
    n_levels = columns.shape[0]
    n_batch = origin.shape[0]
    stack = np.zeros((n_levels + 1, block), dtype=np.uint16)
    local = np.empty((n_levels, block), dtype=np.int16)
    nulls = np.empty(n_levels, dtype=np.bool_)
    # The level before, and at the end the last, that belongs to the same piece; 0 is the empty one.
    before = np.zeros(n_levels, dtype=np.int64)
    last = np.zeros(4 * n_words, dtype=np.int64)
    for d in range(n_levels):
        p = shifts[d] >> 4
        before[d] = last[p]
        last[p] = d + 1
    one_piece = n_words == 1 and last[1] == 0 and last[2] == 0 and last[3] == 0
    direct = table.shape[1] == 1
    words = np.empty((n_words, block), dtype=np.uint64)
    slots = np.empty(block + AHEAD, dtype=np.int64)
    start = 0
    while start < n_rows:
        n = min(block, n_rows - start)
        for d in range(n_levels):
            nulls[d] = _narrow(
                old[columns[d]], positions, start, n, ids[id_starts[d] : id_starts[d + 1]], local[d]
            )
        valid = 0  # as many levels of the stack belong to the row at hand
        j = 0
        while j < n_batch:
            valid = min(valid, shared[j])
            limit = _limit(positions, start, n, own, first + origin[j])
            if limit == 0:
                j += 1
                continue
            for d in range(valid, n_levels):
                _extend(
                    stack[before[d]], local[d], rows[d, j], shifts[d] & 15, wide[d], nulls[d], n, stack[d + 1]
                )
            valid = n_levels
            same = 1
            while (
                j + same < n_batch
                and shared[j + same] == n_levels
                and (not own or _limit(positions, start, n, own, first + origin[j + same]) == limit)
            ):
                same += 1
            weight = np.uint64(same)
            pair = start_pair + np.int64(origin[j]) * n_rows + start
            j += same
            if direct and one_piece:
                size[0] += _tally_direct(stack[n_levels], limit, weight, pair, table, seen)
                continue
            for w in range(n_words):
                p = 4 * w
                _assemble(
                    stack[last[p]],
                    stack[last[p + 1]],
                    stack[last[p + 2]],
                    stack[last[p + 3]],
                    limit,
                    words[w],
                )
            if direct:
                size[0] += _tally_direct(words[0], limit, weight, pair, table, seen)
            else:
                table, seen = _with_room(table, seen, size[0] + limit)
                size[0] += _tally(words, limit, weight, pair, table, seen, slots)
        start += n
    return table, seen


def block_rows(n_levels: int) -> int:
    """How many old rows are compared with the whole batch before the next ones."""
    return max(256, 1 << (BLOCK_BYTES // (4 * max(n_levels, 1))).bit_length() - 1)


def _narrowed(old: I32, columns: I64, values: I32) -> tuple[I16, list[I16]]:
    """(narrow int16[c, b], ids): the batch's half ranks in 16 bits, and for each column those of its codes.

    Half ranks that fit stay as they are, and ids are empty: the half rank of a code is twice the code. Of
    other comparisons the half ranks are those among the batch's own values.
    """
    narrow = np.empty(values.shape, dtype=np.int16)
    ids = []
    for c, column in enumerate(columns.tolist()):
        largest = int(old[column].max(initial=0))
        if max(2 * largest, int(values[c].max(initial=0))) <= MAX_HALF_RANK:
            narrow[c] = values[c]
            ids.append(np.empty(0, dtype=np.int16))
            continue
        different = np.unique(values[c])
        different = different[different > 0]
        narrow[c] = np.where(values[c] > 0, 2 * np.searchsorted(different, values[c]) + 2, 0)
        ids.append(np.empty(largest + 1, dtype=np.int16))
        _among(frozen(different), ids[c])
    return narrow, ids


def _shared(levels: I16) -> I64:
    """int64[b]: on how many levels each of the sorted rows int16[levels, b] equals the one before it."""
    differ = np.ones((len(levels) + 1, levels.shape[1]), dtype=np.bool_)
    np.not_equal(levels[:, 1:], levels[:, :-1], out=differ[:-1, 1:])
    shared: I64 = differ.argmax(axis=0)
    return shared


def _new_table(plan: _Plan, n_pairs: int) -> tuple[U64, I64]:
    """(table, seen): direct if keys are short, and there are pairs enough to pay for reading it."""
    direct = plan.n_bits <= DIRECT_BITS and 1 << plan.n_bits <= max(n_pairs, 1 << 10)
    n_slots = 1 << plan.n_bits if direct else 1 << 10
    table = np.zeros((n_slots, 1 if direct else 1 + plan.n_words), dtype=np.uint64)
    return table, np.empty(n_slots, dtype=np.int64)


def evidence_counts(
    old: I32,
    live: Bool,
    batch: I32,
    groups: Groups,
    n_words: int,
    own: bool = False,
    first: int = 0,
    plan: _Plan | None = None,
) -> Evidence:
    """The evidence of all pairs of a batch row with a live old row, in both directions.

    IN old int32[n_columns, n]: local codes, 0 for NULL; IN live bool[n]; IN batch int32[n_groups, 2, b]: half
    ranks of the batch rows for each group (A, B): [g, 0] as t, of A in the dictionary of old column B; [g, 1]
    as s, of B in the dictionary of old column A, which is read only if the group (B, A) is missing. All
    predicates are below 64 * n_words. The counts add up to twice the number of pairs of rows.

    `plan` is `planned(groups, n_words)`, for many calls. The second side of a batch may be missing if every
    group comes with its mirrored one.

    With `own` batch row j is row first + j of old, paired only with the live rows before it: parts of a
    table, one after the other, see each of its pairs once. Witnesses are then (batch row j, row), or the
    reverse, as always.

    Cost: n * b pairs; 1 to 4 ns for 10 to 15 groups, and to count a key 1 to 4 ns if it is short
    (DIRECT_BITS), else 3 to 20 ns, as keys are few or millions; then some 100 ns a mask. Memory follows the
    number of different keys.

    >>> one = np.zeros(1, dtype=np.int32)
    >>> groups = Groups(one, one, one + 1, one)
    >>> old = np.array([[1, 2, 0]], dtype=np.int32)
    >>> found = evidence_counts(old, old[0] >= 0, np.array([[[4], [4]]], dtype=np.int32), groups, 1)
    >>> [(f"{m:06b}", n) for m, n in zip(found.masks[:, 0].tolist(), found.counts.tolist())]
    [('001110', 1), ('101001', 2), ('110010', 1), ('000010', 2)]
    """
    plan = plan or planned(groups, n_words)
    values = batch[plan.sources[0], plan.sources[1]]
    positions = np.empty(0, np.int64) if live.all() else np.flatnonzero(live)
    n_rows = int(np.count_nonzero(live))
    table, seen = _new_table(plan, n_rows * batch.shape[2])
    size = np.zeros(1, dtype=np.int64)
    for start in range(0, batch.shape[2] if n_rows else 0, MAX_BATCH):
        narrow, ids = _narrowed(old, plan.columns, values[:, start : start + MAX_BATCH])
        # Comparisons with the fewest values first: sorted rows share long prefixes.
        ascending = np.sort(narrow, axis=1)
        level = np.argsort((ascending[:, 1:] != ascending[:, :-1]).sum(axis=1), kind="stable")
        narrow = narrow[level]
        origin = np.lexsort(narrow[::-1]) if len(level) else np.arange(narrow.shape[1])
        narrow = narrow[:, origin]
        id_starts = np.cumsum([0, *(len(ids[c]) for c in level)])
        table, seen = _count_pairs(
            frozen(old), frozen(positions), n_rows,
            frozen(np.concatenate([np.empty(0, np.int16), *(ids[c] for c in level)])), frozen(id_starts),
            frozen(narrow), frozen(origin), frozen(_shared(narrow)), frozen(plan.columns[level]),
            frozen(plan.shifts[level]), frozen(plan.wide[level]), own, first + start, block_rows(len(level)),
            plan.n_words, start * n_rows, table, seen, size,
        )  # fmt: skip
    masks, counts, pairs, batch_first = _both_ways(plan, table, seen, int(size[0]))
    j, r = np.divmod(pairs, max(n_rows, 1))
    witnesses = _witnesses(j, positions[r] if len(positions) else r, batch_first)
    return Evidence(masks, counts, witnesses, batch_first)


# --- Listed pairs ----------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _outcomes(values, left, column, right, shift, wide, word):  # type: ignore[no-untyped-def]
    """INOUT word uint64[*]: with the outcomes of values[left[i]] (of t) against 2 * column[right[i]] (of s).

    IN values, column int32[*]; IN left, right int64[n].
    """
    equal = np.uint64(1) << np.uint64(shift)
    if not wide:
        for i in range(left.shape[0]):
            s = 2 * np.int64(column[np.uint64(right[i])])
            word[i] |= equal if values[np.uint64(left[i])] == s else _EMPTY
        return
    greater = np.uint64(2) << np.uint64(shift)
    one_null = np.uint64(3) << np.uint64(shift)
    for i in range(left.shape[0]):
        t = np.int64(values[np.uint64(left[i])])
        s = 2 * np.int64(column[np.uint64(right[i])])
        told = greater if t > s else (equal if t == s else _EMPTY)
        word[i] |= one_null if (t == 0) != (s == 0) else told


@njit(cache=True, nogil=True)
def _count_listed(  # type: ignore[no-untyped-def]
    old, values, left, right, columns, shifts, wide, block, n_words, table, seen, size
):
    """(table, seen), perhaps new ones: the pairs (left[i], right[i]) counted; i is the number of a pair.

    IN old int32[n_columns, n]; IN values int32[c, b]: half ranks of the batch for each comparison; IN left,
    right int64[p]; IN columns, shifts int64[c], wide bool[c]. INOUT size int64[1].
    """
    words = np.empty((n_words, block), dtype=np.uint64)
    slots = np.empty(block + AHEAD, dtype=np.int64)
    for start in range(0, left.shape[0], block):
        n = min(block, left.shape[0] - start)
        for w in range(n_words):
            for i in range(n):
                words[w, i] = _EMPTY
        # One column after the other: it stays in the cache for the whole block.
        for c in range(columns.shape[0]):
            _outcomes(
                values[c], left[start : start + n], old[columns[c]], right[start : start + n],
                shifts[c] & 63, wide[c], words[shifts[c] >> 6],
            )  # fmt: skip
        table, seen = _with_room(table, seen, size[0] + n)
        size[0] += _tally(words, n, np.uint64(1), start, table, seen, slots)
    return table, seen


class ListedPairs:
    """The evidence of listed pairs of a batch with old rows; made once for any number of lists.

    IN old int32[n_columns, n], batch int32[n_groups, 1 or 2, b], groups, n_words as of `evidence_counts`; the
    second side of a batch may be missing if every group comes with its mirrored one.
    """

    def __init__(self, old: I32, batch: I32, groups: Groups, n_words: int) -> None:
        self._plan = planned(groups, n_words)
        self._old = frozen(old)
        self._values = frozen(batch[self._plan.sources[0], self._plan.sources[1]])

    def evidence(self, batch_rows: I64, old_rows: I64) -> Evidence:
        """The evidence of the pairs of batch row batch_rows[i] with old row old_rows[i], in both directions.

        IN batch_rows, old_rows int64[p]. A pair counts as often as it is listed. Cost: two random accesses
        for each pair and group, some 3 ns together while a column fits the cache.
        """
        plan = self._plan
        table = np.zeros((1 << 10, 1 + plan.n_words), dtype=np.uint64)
        seen = np.empty(1 << 10, dtype=np.int64)
        size = np.zeros(1, dtype=np.int64)
        table, seen = _count_listed(
            self._old, self._values, frozen(batch_rows), frozen(old_rows), frozen(plan.columns),
            frozen(plan.shifts), frozen(plan.wide), BLOCK_PAIRS, plan.n_words, table, seen, size,
        )  # fmt: skip
        masks, counts, pairs, batch_first = _both_ways(plan, table, seen, int(size[0]))
        witnesses = _witnesses(batch_rows[pairs], old_rows[pairs], batch_first)
        return Evidence(masks, counts, witnesses, batch_first)


def pairs_evidence_of(
    old: I32, batch: I32, groups: Groups, n_words: int, batch_rows: I64, old_rows: I64
) -> Evidence:
    """The evidence of one list of pairs: see `ListedPairs`."""
    return ListedPairs(old, batch, groups, n_words).evidence(batch_rows, old_rows)


# --- From keys to evidence -------------------------------------------------------------------------------


def _ascending(keys: U64, n_bits: int) -> I64:
    """The order of different keys uint64[k, n_words]; of short ones with their places in the same word."""
    place_bits = len(keys).bit_length()
    if n_bits + place_bits <= 64:
        placed = (keys[:, 0] << np.uint64(place_bits)) | np.arange(len(keys), dtype=np.uint64)
        placed.sort()
        return (placed & np.uint64((1 << place_bits) - 1)).view(np.int64)
    return np.argsort(keys[:, 0]) if keys.shape[1] == 1 else np.lexsort(keys.T[::-1])


@njit(cache=True, nogil=True)
def _settle(order, new, counts, others, pairs, out_counts, out_pairs, batch_first):  # type: ignore[no-untyped-def]
    """OUT out_counts, out_pairs int64[k], batch_first bool[k]: those of keys, then of new ones, in order.

    IN order int64[k]; IN counts, others, pairs int64[n]: of n keys, their exchanged ones, and a pair of each;
    IN new int64[k - n]: the keys whose exchanged one is new.
    """
    n = counts.shape[0]
    for i in range(order.shape[0]):
        k = order[i]
        batch_first[i] = k < n
        if k < n:
            out_counts[i] = counts[k] + others[k]
            out_pairs[i] = pairs[k]
        else:
            out_counts[i] = counts[new[k - n]]
            out_pairs[i] = pairs[new[k - n]]


def _both_ways(plan: _Plan, table: U64, seen: I64, n_keys: int) -> tuple[U64, I64, I64, Bool]:
    """(masks, counts, pairs, batch_first): both directions of the counted pairs, with a pair's number each.

    A key has its own pairs, and those of the exchanged key the other way round.
    """
    keys = np.empty((n_keys, plan.n_words), dtype=np.uint64)
    counts, others, pairs = (np.empty(n_keys, dtype=np.int64) for _ in range(3))
    _entries(table, seen, keys, counts, pairs)
    exchanged = _said(keys, plan.exchange)
    _counts_of(table, exchanged, others)
    new = np.flatnonzero(others == 0)
    keys = np.concatenate([keys, exchanged[new]])
    order = _ascending(keys, plan.n_bits)
    out_counts, out_pairs = np.empty(len(order), dtype=np.int64), np.empty(len(order), dtype=np.int64)
    batch_first = np.empty(len(order), dtype=np.bool_)
    _settle(order, new, counts, others, pairs, out_counts, out_pairs, batch_first)
    masks = _said(keys[order], plan.predicates)
    if plan.complete:
        return masks, out_counts, out_pairs, batch_first
    # Keys that differ in a comparison of no group have equal masks.
    order = np.lexsort(masks.T[::-1])
    masks = masks[order]
    heads = np.flatnonzero(np.append(True, (masks[1:] != masks[:-1]).any(axis=1))[: len(masks)])
    out_counts = np.add.reduceat(out_counts[order], heads) if len(heads) else out_counts
    return masks[heads], out_counts, out_pairs[order[heads]], batch_first[order[heads]]


def _witnesses(batch_rows: I64, old_rows: I64, batch_first: Bool) -> I64:
    """int64[k, 2]: (t, s)."""
    first = np.where(batch_first, batch_rows, old_rows)
    return np.stack([first, batch_rows + old_rows - first], axis=1)


def warm_up() -> None:
    for n_groups in (1, 12, 33):
        columns = np.arange(n_groups, dtype=np.int32)
        groups = Groups(columns, columns, np.ones(n_groups, np.int32), 6 * columns)
        codes = np.tile(np.arange(3, dtype=np.int32), (n_groups, 1))
        batch = np.repeat(2 * codes[:, None], 2, axis=1)
        evidence_counts(codes, np.ones(3, dtype=np.bool_), batch, groups, 4, own=True)
        rows = np.arange(2)
        pairs_evidence_of(codes, batch, groups, 4, rows, rows + 1)
    half_ranks(np.arange(2, dtype=np.uint64), np.arange(3, dtype=np.uint64))
    _narrowed(np.array([[MAX_HALF_RANK]], np.int32), np.zeros(1, np.int64), np.ones((1, 1), np.int32))
