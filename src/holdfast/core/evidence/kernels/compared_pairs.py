"""Pairs of rows compared column by column, and counted by what comes of it: the one engine of all evidence.

A *comparison* is one of a batch row's value (of t) with an old row's value of some column (of s). It has an
*outcome* of two bits (*wide*: 0 less, 1 equal, 2 greater, 3 one is NULL) or of one (0 different, 1 equal);
two NULLs are equal. The outcomes of all comparisons of a pair are its *key*. Keys are counted: what comes out
is as large as the number of different ones, never as the number of pairs.

Values are integers that compare as the values do: an old row's value is 2 * its local code, a batch row's is
its half rank (`encode.half_ranks`): odd where it equals no old value, 0 is NULL. Rows are columns of a code
matrix.

What makes it fast:

- *Blocks and prefixes.* The batch is sorted, comparisons of fewest values first. The keys of a batch row with
  a block of old rows are built comparison by comparison, one vector loop each, and every prefix stays on a
  stack: the next batch row starts from the first comparison in which it differs. A key is cut into pieces of
  16 bits, so that a vector holds as many rows as possible; a level of the stack is one piece of the block's
  keys. Of batch rows that are equal the keys are counted once, as often as there are rows.
- *Tables.* Short keys are counted in a table of all keys, others in a hash table that grows. To count is
  most of the work: 1 to 2 ns a pair of 15 one-bit outcomes, 3 to 20 ns by hashing, as keys are few or
  millions. Several tables in turns, against stalls of stores to one place, were slower.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import frozen

U64 = NDArray[np.uint64]
I16 = NDArray[np.int16]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]


class Comparisons(NamedTuple):
    """Comparisons of a pair: columns int64[c]: the old column of each; wide bool[c]: an outcome of two bits;
    shifts int64[c]: its first bit in the key, no outcome straddling two pieces; n_bits: of a key."""

    columns: I64
    wide: Bool
    shifts: I64
    n_bits: int

    @property
    def n_words(self) -> int:
        return max(1, -(-self.n_bits // 64))


class CountedKeys(NamedTuple):
    """Keys of pairs, counted in a table (see below); `rows_of`: (batch rows, old rows) of pairs' numbers."""

    table: U64
    witnesses: I64
    rows_of: Callable[[I64], tuple[I64, I64]]

    @property
    def direct(self) -> bool:
        return len(self.table[0]) == 1

    def entries(self) -> tuple[U64, I64, I64]:
        """(keys uint64[k, n_words], counts int64[k], the number of one pair of each int64[k]).

        Ascending if the table is direct, else in any order.
        """
        if self.direct:
            slots = np.flatnonzero(self.table)
            counts = self.table[slots, 0].astype(np.int64)
            return slots.astype(np.uint64)[:, None], counts, self.witnesses[slots]
        n_keys = np.count_nonzero(self.table[:, 0])
        keys = np.empty((n_keys, self.table.shape[1] - 1), dtype=np.uint64)
        counts, pairs = np.empty(n_keys, dtype=np.int64), np.empty(n_keys, dtype=np.int64)
        _entries(self.table, self.witnesses, keys, counts, pairs)
        return keys, counts, pairs

    def counts_of(self, keys: U64) -> I64:
        """How often each of IN keys uint64[k, n_words] was counted: int64[k]."""
        counts = np.empty(len(keys), dtype=np.int64)
        _counts_of(self.table, keys, counts)
        return counts


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

_ZERO = np.uint16(0)
_NULL = np.int16(0)
_EMPTY = np.uint64(0)


# --- Tables of keys --------------------------------------------------------------------------------------
#
# A hash table is uint64[slots, 1 + n_words]: the count, 0 if the slot is empty, and the words of the key. A
# direct one, uint64[slots, 1], has a slot for every key there may be. Beside either, `witnesses` int64[slots]
# has the number of one pair with that key; `size` int64[1] is the number of keys.


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
def fold(h, word):  # type: ignore[no-untyped-def]
    """One more word of a key into its hash, of which the high bits count."""
    h = (h ^ word) * np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(32))


@njit(cache=True, nogil=True)
def _slots(words, n, shift, out):  # type: ignore[no-untyped-def]
    """OUT out int64[at least n]: the slot where each of IN words uint64[n_words, *] is looked for first."""
    for w in range(words.shape[0]):
        word = words[w]
        for i in range(n):
            h = _EMPTY if w == 0 else np.uint64(out[i])
            out[i] = np.int64(fold(h, word[i]))
    for i in range(n):
        out[i] = np.int64(np.uint64(out[i]) >> shift)


@njit(cache=True, nogil=True)
def _rehashed(table, witnesses, bits):  # type: ignore[no-untyped-def]
    """(table, witnesses): the same entries in a table of 1 << bits slots. Both are walked upwards."""
    bigger = np.zeros((1 << bits, table.shape[1]), dtype=np.uint64)
    bigger_witnesses = np.empty(1 << bits, dtype=np.int64)
    shift = np.uint64(64 - bits)
    for k in range(table.shape[0]):
        if table[k, 0] == 0:
            continue
        h = _EMPTY
        for w in range(1, table.shape[1]):
            h = fold(h, table[k, w])
        s = np.int64(h >> shift)
        while bigger[s, 0] != 0:
            s = (s + 1) & ((1 << bits) - 1)
        for x in range(table.shape[1]):
            bigger[s, x] = table[k, x]
        bigger_witnesses[s] = witnesses[k]
    return bigger, bigger_witnesses


@njit(cache=True, nogil=True)
def _with_room(table, witnesses, n_keys):  # type: ignore[no-untyped-def]
    """(table, witnesses) with at least two slots for each of n_keys keys."""
    size = table.shape[0]
    bits = 0
    while 1 << bits < size or 1 << bits < 2 * n_keys:
        bits += 1
    return (table, witnesses) if 1 << bits == size else _rehashed(table, witnesses, bits)


@njit(cache=True, nogil=True)
def _shift_of(table):  # type: ignore[no-untyped-def]
    """What is left of a hash shifted by this is a slot."""
    bits = 0
    while 1 << bits < table.shape[0]:
        bits += 1
    return np.uint64(64 - bits)


@njit(cache=True, nogil=True)
def _tally(words, n, weight, pair, table, witnesses, slots):  # type: ignore[no-untyped-def]
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
                witnesses[s] = pair + i
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
            witnesses[s] = pair + i
            for w in range(n_words):
                table[s, w + 1] = words[w, i]
            n_new += 1
        table[s, 0] += weight
    return n_new


@njit(cache=True, nogil=True)
def _tally_direct(keys, n, weight, pair, table, witnesses):  # type: ignore[no-untyped-def]
    """The same for a direct table; IN keys unsigned[n]."""
    counts = table.reshape(table.size)
    n_new = 0
    for i in range(n):
        m = keys[i]
        if counts[m] == 0:
            witnesses[m] = pair + i
            n_new += 1
        counts[m] += weight
    return n_new


@njit(cache=True, nogil=True)
def _count(words, n, weight, pair, table, witnesses, size, slots):  # type: ignore[no-untyped-def]
    """(table, witnesses), perhaps new ones: n keys counted into either kind. INOUT size; see `_tally`."""
    if table.shape[1] == 1:
        size[0] += _tally_direct(words[0], n, weight, pair, table, witnesses)
    else:
        table, witnesses = _with_room(table, witnesses, size[0] + n)
        size[0] += _tally(words, n, weight, pair, table, witnesses, slots)
    return table, witnesses


@njit(cache=True, nogil=True)
def _entries(table, witnesses, keys, counts, pairs):  # type: ignore[no-untyped-def]
    """OUT keys uint64[k, n_words], counts, pairs int64[k]: what a hash table holds."""
    k = 0
    for s in range(table.shape[0]):
        if table[s, 0] > 0:
            counts[k] = table[s, 0]
            pairs[k] = witnesses[s]
            for w in range(keys.shape[1]):
                keys[k, w] = table[s, w + 1]
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
    n = out.shape[0]
    out[0] = 0
    c = 1
    for k in range(values.shape[0]):
        stop = max(c, min(n, (values[k] + 1) >> 1))
        out[c:stop] = 2 * k + 1
        c = stop
        if c < n and values[k] == 2 * c:
            out[c] = 2 * k + 2
            c += 1
    out[c:] = 2 * values.shape[0] + 1


@njit(cache=True, nogil=True)
def _narrow(values, positions, start, n, ids, out):  # type: ignore[no-untyped-def]
    """OUT out int16[n]: the half ranks of n rows of a column from `start` on.

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


@njit(cache=True, nogil=True)
def _any_null(column, n):  # type: ignore[no-untyped-def]
    any_null = False
    for i in range(n):
        any_null |= column[i] == _NULL
    return any_null


@njit(cache=True, nogil=True)
def extend(prefix, column, value, shift, wide, nulls, n, out):  # type: ignore[no-untyped-def]
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
            outcome = greater if v < value else (equal if v == value else _ZERO)
            out[i] = prefix[i] | (one_null if v == _NULL else outcome)
    else:
        for i in range(n):
            v = column[i]
            out[i] = prefix[i] | (greater if v < value else (equal if v == value else _ZERO))


@njit(cache=True, nogil=True)
def _limit(positions, start, n, within, last):  # type: ignore[no-untyped-def]
    """How many of the n rows of a block a batch row is paired with: those before row `last`."""
    if not within:
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
    old, positions, n_rows, ids, places, rows, origin, shared, columns, shifts, wide, within, first, block,
    n_words, start_pair, table, witnesses, size,
):  # fmt: skip
    """(table, witnesses), perhaps new ones: all pairs counted; a pair is start_pair + j * n_rows + i.

    IN old int32[n_columns, n]; IN positions int64[*]: the live rows, or none if all are; IN ids int16[*],
    places int64[levels, 2]: see `_narrowed`; IN rows int16[levels, b]: the batch, sorted; IN origin
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
    # Then the last level is the key, and is counted as it is.
    short = table.shape[1] == 1 and last[1] == 0 and last[2] == 0 and last[3] == 0
    words = np.empty((n_words, block), dtype=np.uint64)
    slots = np.empty(block + AHEAD, dtype=np.int64)
    start = 0
    while start < n_rows:
        n = min(block, n_rows - start)
        for d in range(n_levels):
            _narrow(old[columns[d]], positions, start, n, ids[places[d, 0] : places[d, 1]], local[d])
            nulls[d] = wide[d] and _any_null(local[d], n)
        valid = 0  # as many levels of the stack belong to the row at hand
        j = 0
        while j < n_batch:
            valid = min(valid, shared[j])
            limit = _limit(positions, start, n, within, first + origin[j])
            if limit == 0:
                j += 1
                continue
            for d in range(valid, n_levels):
                extend(
                    stack[before[d]], local[d], rows[d, j], shifts[d] & 15, wide[d], nulls[d], n, stack[d + 1]
                )
            valid = n_levels
            same = 1
            while (
                j + same < n_batch
                and shared[j + same] == n_levels
                and (not within or _limit(positions, start, n, within, first + origin[j + same]) == limit)
            ):
                same += 1
            weight = np.uint64(same)
            pair = start_pair + np.int64(origin[j]) * n_rows + start
            j += same
            if short:
                size[0] += _tally_direct(stack[n_levels], limit, weight, pair, table, witnesses)
                continue
            for w in range(n_words):
                p = 4 * w
                _assemble(
                    stack[last[p]], stack[last[p + 1]], stack[last[p + 2]], stack[last[p + 3]],
                    limit, words[w],
                )  # fmt: skip
            table, witnesses = _count(words, limit, weight, pair, table, witnesses, size, slots)
        start += n
    return table, witnesses


def block_rows(n_levels: int) -> int:
    """How many old rows are compared with the whole batch before the next ones."""
    return max(256, 1 << (BLOCK_BYTES // (4 * max(n_levels, 1))).bit_length() - 1)


def _narrowed(old: I32, columns: I64, values: I32) -> tuple[I16, I16, I64]:
    """(narrow int16[c, b], ids int16[*], places int64[c, 2]): the batch's half ranks in 16 bits.

    Half ranks that fit stay as they are: that of an old code is twice the code, and it has no ids. Of other
    comparisons the half ranks are those among the batch's values, an old code's is ids[places[c, 0] + code].
    """
    largest = {column: int(old[column].max(initial=0)) for column in dict.fromkeys(columns.tolist())}
    top = np.array([largest[column] for column in columns.tolist()], dtype=np.int64)
    narrow = values.astype(np.int16)
    places = np.zeros((len(columns), 2), dtype=np.int64)
    tables = [np.empty(0, dtype=np.int16)]
    for c in np.flatnonzero(np.maximum(2 * top, values.max(axis=1, initial=0)) > MAX_HALF_RANK).tolist():
        different = np.unique(values[c])
        different = different[different > 0]
        narrow[c] = np.where(values[c] > 0, 2 * np.searchsorted(different, values[c]) + 2, 0)
        tables.append(np.empty(top[c] + 1, dtype=np.int16))
        _among(frozen(different), tables[-1])
        places[c] = places.max() + np.array([0, len(tables[-1])])
    return narrow, np.concatenate(tables), places


def shared_levels(levels: I16) -> I64:
    """int64[b]: on how many levels each of the sorted rows int16[levels, b] equals the one before it."""
    differ = np.ones((len(levels) + 1, levels.shape[1]), dtype=np.bool_)
    np.not_equal(levels[:, 1:], levels[:, :-1], out=differ[:-1, 1:])
    shared: I64 = differ.argmax(axis=0)
    return shared


def _new_table(compared: Comparisons, n_pairs: int) -> tuple[U64, I64]:
    """(table, witnesses): direct if keys are short, and there are pairs enough to pay for reading it."""
    direct = compared.n_bits <= DIRECT_BITS and 1 << compared.n_bits <= max(4 * n_pairs, 1 << 10)
    n_slots = 1 << compared.n_bits if direct else 1 << 10
    table = np.zeros((n_slots, 1 if direct else 1 + compared.n_words), dtype=np.uint64)
    return table, np.empty(n_slots, dtype=np.int64)


def level_order(values: I16) -> I64:
    """The rows of a matrix [c, b], those with the fewest different values first."""
    ascending = np.sort(values, axis=1)
    return np.argsort((ascending[:, 1:] != ascending[:, :-1]).sum(axis=1), kind="stable")


def all_pairs(
    old: I32, live: Bool, values: I32, compared: Comparisons, within: bool, first: int, share: bool = True
) -> CountedKeys:
    """All pairs of a batch row with a live old row, counted by their keys.

    IN old int32[n_columns, n]: local codes, 0 for NULL; IN live bool[n]; IN values int32[c, b]: half ranks of
    the batch rows for each comparison. With `within` batch row j is row first + j of old, paired only with
    the live rows before it. `share` off shares no prefixes: it shows in a benchmark what sharing is worth.

    Cost: n * b pairs: 1 to 4 ns for 10 to 15 comparisons, and the count. Memory follows the number of
    different keys.
    """
    positions = np.empty(0, np.int64) if live.all() else np.flatnonzero(live)
    n_rows = int(np.count_nonzero(live))
    n_batch = values.shape[1]
    table, witnesses = _new_table(compared, n_rows * n_batch)
    size = np.zeros(1, dtype=np.int64)
    for start in range(0, n_batch if n_rows else 0, MAX_BATCH):
        narrow, ids, places = _narrowed(old, compared.columns, values[:, start : start + MAX_BATCH])
        level, origin = np.arange(len(narrow)), np.arange(narrow.shape[1])
        shared = np.zeros(narrow.shape[1], dtype=np.int64)
        if share and len(level):
            level = level_order(narrow)
            narrow = narrow[level]
            origin = np.lexsort(narrow[::-1])
            narrow = narrow[:, origin]
            shared = shared_levels(narrow)
        table, witnesses = _count_pairs(
            frozen(old), frozen(positions), n_rows, frozen(ids), frozen(places[level]), frozen(narrow),
            frozen(origin), frozen(shared), frozen(compared.columns[level]), frozen(compared.shifts[level]),
            frozen(compared.wide[level]), within, first + start, block_rows(len(level)), compared.n_words,
            start * n_rows, table, witnesses, size,
        )  # fmt: skip

    def rows_of(pairs: I64) -> tuple[I64, I64]:
        batch_rows, places = np.divmod(pairs, max(n_rows, 1))
        return batch_rows, positions[places] if len(positions) else places

    return CountedKeys(table, witnesses, rows_of)


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
        outcome = greater if t > s else (equal if t == s else _EMPTY)
        word[i] |= one_null if (t == 0) != (s == 0) else outcome


@njit(cache=True, nogil=True)
def _count_listed(  # type: ignore[no-untyped-def]
    old, values, left, right, columns, shifts, wide, block, n_words, table, witnesses, size
):
    """(table, witnesses), perhaps new ones: the pairs (left[i], right[i]) counted; i is the number of a pair.

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
        table, witnesses = _count(words, n, np.uint64(1), start, table, witnesses, size, slots)
    return table, witnesses


def listed_pairs(old: I32, values: I32, compared: Comparisons, batch_rows: I64, old_rows: I64) -> CountedKeys:
    """The pairs of batch row batch_rows[i] with old row old_rows[i], counted by their keys.

    IN old, values as of `all_pairs`; IN batch_rows, old_rows int64[p]. A pair counts as often as it is
    listed. Cost: two random accesses for each pair and comparison, some 3 ns together while a column fits the
    cache.
    """
    size = np.zeros(1, dtype=np.int64)
    table, witnesses = _count_listed(
        frozen(old), frozen(values), frozen(batch_rows), frozen(old_rows), frozen(compared.columns),
        frozen(compared.shifts), frozen(compared.wide), BLOCK_PAIRS, compared.n_words,
        *_new_table(compared, len(batch_rows)), size,
    )  # fmt: skip
    return CountedKeys(table, witnesses, lambda pairs: (batch_rows[pairs], old_rows[pairs]))


# --- Keys in order ---------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _settle(keys, order):  # type: ignore[no-untyped-def]
    """INOUT order int64[k]: sorted by the first word, then by all. Shell's sort in runs of equal words."""
    n_words = keys.shape[1]
    low = 0
    while low < order.shape[0]:
        high = low + 1
        while high < order.shape[0] and keys[order[high], 0] == keys[order[low], 0]:
            high += 1
        gap = 1
        while 3 * gap < high - low:
            gap = 3 * gap + 1
        while gap > 0:
            for i in range(low + gap, high):
                k = order[i]
                j = i
                while j - gap >= low:
                    w = 1
                    while w < n_words - 1 and keys[order[j - gap], w] == keys[k, w]:
                        w += 1
                    if keys[order[j - gap], w] <= keys[k, w]:
                        break
                    order[j] = order[j - gap]
                    j -= gap
                order[j] = k
            gap //= 3
        low = high


def ascending(keys: U64, n_bits: int) -> I64:
    """The order int64[k] of different keys uint64[k, n_words] by their words, the first most significant.

    Short keys are sorted with their places in the same word, long ones by the first word, then where it is
    the same by the others: up to twice as fast as lexsort.
    """
    place_bits = len(keys).bit_length()
    if n_bits + place_bits <= 64:
        placed = (keys[:, 0] << np.uint64(place_bits)) | np.arange(len(keys), dtype=np.uint64)
        placed.sort()
        return (placed & np.uint64((1 << place_bits) - 1)).view(np.int64)
    order = np.argsort(keys[:, 0])
    if keys.shape[1] > 1:
        _settle(frozen(keys), order)
    return order


def warm_up() -> None:
    for n_bits in (2, 24, 66):
        columns = np.arange(n_bits // 2)
        wide = np.ones(len(columns), dtype=np.bool_)
        codes = np.tile(np.arange(3, dtype=np.int32), (len(columns), 1))
        compared = Comparisons(columns, wide, 2 * columns, n_bits)
        everything = all_pairs(codes, codes[0] >= 0, 2 * codes, compared, True, 0)
        everything.counts_of(everything.entries()[0])
        listed_pairs(codes, 2 * codes, compared, np.arange(2), np.arange(2) + 1)
    _narrowed(np.array([[MAX_HALF_RANK]], np.int32), np.zeros(1, np.int64), np.ones((1, 1), np.int32))
