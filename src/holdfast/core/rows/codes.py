"""Between Arrow columns and codes: the encoding of one column, and back to values for people.

Exact types (numbers, dates, times, booleans, decimals of at most 18 digits) carry their value in
the code. For hashed types (text, binary, wider decimals) the distinct values are kept beside the
dictionary, in its order, so that any row can be shown, and any equality that decides something
can be checked on the values themselves.

Two different values of one column and segment never share a code: rows that would cause it are
returned as rejected, and the caller puts them into a segment of their own. So only pairs of rows
in *different* segments can look equal by collision.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from holdfast.core.rows.kernels import encode
from holdfast.core.rows.kernels.siphash import siphashes
from holdfast.core.store.arrow_types import arrow_type
from holdfast.core.store.format import Key
from holdfast.core.words.schema import Type

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class EncodedColumn:
    """One column of a segment: sorted distinct codes, a local code per row, texts if hashed."""

    dictionary: U64
    codes: I32
    texts: pa.Array | None = None  # large_binary, in dictionary order


def hash_texts(texts: pa.Array, key: Key | None) -> U64:
    """The codes of the entries of a large_binary array without NULLs, under the key of the workspace."""
    offsets, data = text_buffers(texts)
    return encode.bytes_codes(offsets, data) if key is None else siphashes(offsets, data, key)[0]


def hash_again(texts: pa.Array, key: Key | None) -> U64:
    """Another hash of the same entries: two texts that have both hashes alike are one text (decision 0007).

    Raises ValueError if an entry leads out of its array, as one of a damaged file may.
    """
    offsets, data = text_buffers(texts)
    if offsets[0] < 0 or offsets[-1] > len(data) or (offsets[1:] < offsets[:-1]).any():
        raise ValueError("a text leads out of its array")
    if key is None:
        return encode.bytes_codes(offsets, data, seed=encode.OTHER_SEED)
    return siphashes(offsets, data, key)[1]


def exact_codes(array: pa.Array, type_: Type) -> tuple[U64, Bool | None]:
    """(codes, valid) of a column of an exact type; valid is None when nothing is NULL."""
    valid = None
    if array.null_count:
        valid = array.is_valid().to_numpy(zero_copy_only=False)
    if type_.family == "decimal":
        buffer = array.buffers()[1]
        words = np.frombuffer(buffer, dtype=np.int64)
        # Little-endian decimal128: up to 18 digits, the low word is the whole signed number.
        numbers = words[2 * array.offset : 2 * (array.offset + len(array)) : 2]
        return encode.int_codes(numbers), valid
    if type_.family == "bool":
        return array.fill_null(False).cast(pa.uint8()).to_numpy().astype(np.uint64), valid
    if type_.family == "date":
        array = array.cast(pa.int32())
    elif type_.family == "time":
        array = array.cast(pa.int32() if type_.unit in ("s", "ms") else pa.int64())
    elif type_.family == "timestamp":
        array = array.cast(pa.int64())
    numbers = array.fill_null(0).to_numpy() if array.null_count else array.to_numpy()
    if type_.family == "uint":
        return np.ascontiguousarray(numbers, dtype=np.uint64), valid
    if type_.family == "float":
        return encode.float_codes(numbers), valid
    return encode.int_codes(numbers), valid


def encode_column(array: pa.Array, type_: Type, key: Key | None) -> tuple[EncodedColumn, Bool | None]:
    """(column, rejected): `rejected` marks rows whose value collides with another one's code.

    When it is not None the column is of no use; encode the other rows without them.
    """
    if not type_.hashed:
        values, valid = exact_codes(array, type_)
        dictionary, codes = encode.factorize(values, valid)
        return EncodedColumn(dictionary, codes), None
    text = array.cast(pa.string()) if type_.family == "decimal" else array
    encoded = text.cast(pa.large_binary()).dictionary_encode()
    distinct = encoded.dictionary
    hashes = hash_texts(distinct, key)
    order = np.argsort(hashes, kind="stable")
    ascending = hashes[order]
    twin = np.zeros(len(order) + 1, dtype=np.bool_)
    twin[1 + order[1:]] = ascending[1:] == ascending[:-1]  # every later value of a shared code
    indices = encoded.indices
    local = (indices.fill_null(-1) if indices.null_count else indices).to_numpy() + 1
    if twin.any():
        rejected: Bool = twin[local]
        return EncodedColumn(ascending, local.astype(np.int32)), rejected
    rank = np.empty(len(order) + 1, dtype=np.int32)
    rank[0] = 0
    rank[order + 1] = np.arange(1, len(order) + 1, dtype=np.int32)
    return EncodedColumn(ascending, rank[local], distinct.take(pa.array(order))), None


def decode(dictionary: U64, texts: pa.Array | None, codes: I32, type_: Type) -> pa.Array:
    """The values of some local codes, as an Arrow array of the column's type."""
    null = codes == 0
    if not len(dictionary):
        return pa.nulls(len(codes), arrow_type(type_))
    at = np.where(null, 0, codes - 1)
    if texts is not None:
        picked = texts.take(pa.array(at, mask=null))
        if type_.family == "decimal":
            return picked.cast(pa.large_string()).cast(arrow_type(type_))
        return picked.view(arrow_type(type_))  # a cast would refuse bytes that are not UTF-8
    raw = dictionary[at]
    family = type_.family
    if family == "uint":
        return pa.array(raw, mask=null)
    if family == "float":
        return pa.array(encode.floats_of_codes(raw), mask=null)
    if family == "bool":
        return pa.array(raw.astype(np.bool_), mask=null)
    numbers = encode.ints_of_codes(raw)
    if family == "decimal":
        words = np.stack([numbers, numbers >> 63], axis=1)
        validity = pa.array(~null).buffers()[1]
        return pa.Array.from_buffers(arrow_type(type_), len(numbers), [validity, pa.py_buffer(words)])
    array = pa.array(numbers, mask=null)
    if family == "date" or (family == "time" and type_.unit in ("s", "ms")):
        array = array.cast(pa.int32())
    return array.cast(arrow_type(type_))


def combined(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """One contiguous array of a table's column."""
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


def texts_differ_at(left: pa.Array, at: I64, right: pa.Array, other_at: I64) -> Bool:
    """Where text at[i] of one array without NULLs is not text other_at[i] of another.

    One pass, without taking the texts first: of wide tables there are many columns with few texts each.
    ValueError if a text leads out of its array, as in a file that a disk has altered.
    """
    buffers, other_buffers = text_buffers(left), text_buffers(right)
    for (ends, body), wanted in ((buffers, at), (other_buffers, other_at)):
        first, last = ends[wanted], ends[wanted + 1]
        if len(wanted) and (first.min() < 0 or last.max() > len(body) or (first > last).any()):
            raise ValueError("a text leads out of its array")
    return encode.bytes_differ(*buffers, at, *other_buffers, other_at)


def text_buffers(texts: pa.Array) -> tuple[I64, NDArray[np.uint8]]:
    """(offsets, bytes) of a large_binary or large_string array without NULLs."""
    _, offsets, data = texts.buffers()
    first = texts.offset
    if not len(texts):  # Arrow may leave out the buffers
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    ends = np.frombuffer(offsets, np.int64)[first : first + len(texts) + 1]
    return ends, np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)


def texts_differ(left: pa.Array, right: pa.Array) -> Bool:
    """Where two aligned arrays of texts are not equal."""
    differ: Bool = pc.not_equal(left, right).to_numpy(zero_copy_only=False)
    return differ
