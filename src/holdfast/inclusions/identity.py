"""Identities of the values of a column, from its codes and back: what inclusion dependencies compare.

A code means something in its own column only: 150 is 1.50 in a decimal(12,2). An identity (96 bits, see
`kernels/value_identities.py`) means the same in every column of its *domain*: numbers, text, binary, bool,
date, time, timestamp and instant. For two values of columns of one domain in one workspace

    identity(a) == identity(b)  iff  a equals b

where integers and decimals compare by value, points in time whatever their unit, and text by its bytes.
A float without a fraction equals the number of exactly its value; one with a fraction equals a decimal iff
that has at most 15 digits and reads as this float. -0.0 equals 0, NaN equals NaN.

*As text* all columns are of one domain, and values compare by the text that they have in a plain CSV file:

| type | its text |
|---|---|
| int, uint, bool, date | `-12`, `true`, `2024-02-29` |
| decimal(p,s) | all s digits, never an exponent: `1.50` |
| float | Python's repr, the shortest that reads back: `2.0`, `1e-07` |
| time, timestamp | `2024-02-29 13:00:00`, and 0, 3, 6 or 9 digits, as few as will do; `Z` behind instants |
| text, binary | itself |

Cost, per distinct value: numbers and times 2-35 ns (floats below 1e-8 up to 150), text 20 ns and 0.8 ns a
byte, decimals of more than 18 digits 70-200 ns; as text 80-500 ns, and 1.5 us for floats below 1e-4 or
written with an exponent, which are left to Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from holdfast.core.rows import codes
from holdfast.core.rows.kernels import encode
from holdfast.core.store.arrow_types import arrow_type
from holdfast.core.store.format import Key
from holdfast.core.words.schema import Type
from holdfast.inclusions.kernels import value_identities

_pa: Any = pa  # third-party stubs lag behind Arrow
pc: Any = pa.compute

U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
Bool = NDArray[np.bool_]

_FRACTION_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def identities(
    dictionary: U64, texts: pa.Array | None, type_: Type, as_text: bool, key: Key | None
) -> tuple[U64, U32]:
    """(keys, checks) of the values of a dictionary, in its order.

    IN dictionary uint64[n]; `texts` stands beside it for hashed types, and is None for the others. `key` is
    that of the workspace: identities of two workspaces have nothing in common.
    """
    if not len(dictionary):
        return np.empty(0, np.uint64), np.empty(0, np.uint32)
    family = type_.family
    if family in ("text", "binary"):
        tag = value_identities.BINARY if family == "binary" and not as_text else value_identities.TEXT
        return value_identities.mixed(dictionary), _checks_of_bytes(texts, tag, key)
    if as_text:
        written = _texts_of(dictionary, texts, type_).cast(pa.large_binary())
        # By way of the module: a hash that is replaced there is replaced here, and texts still meet.
        hashes = codes.hash_texts(written, key)
        return value_identities.mixed(hashes), _checks_of_bytes(written, value_identities.TEXT, key)
    if type_.hashed:
        return value_identities.wide_identities(_limbs(texts, type_), _scale(type_), key)
    if family == "float":
        return value_identities.float_identities(dictionary)
    if family == "uint":
        big = dictionary >> np.uint64(63) != 0
        return value_identities.mixed(dictionary), np.where(
            big, value_identities.BIG, value_identities.NUMBER
        ).astype(np.uint32)
    if family == "bool":
        return value_identities.mixed(dictionary), np.full(
            len(dictionary), value_identities.BOOL, dtype=np.uint32
        )
    return value_identities.scaled_identities(dictionary, _scale(type_), _tag(type_))


def codes_of(keys: U64, checks: U32, type_: Type, as_text: bool) -> tuple[U64, Bool] | None:
    """(codes, possible): the code that a value of each identity has in a column of this type.

    IN keys uint64[n]; IN checks uint32[n]. `possible` is False where no code of the type has the identity.
    For text and binary the code is necessary only: what has it still has to have the check. None if
    there is no way back from the identity: look for it among the `identities` of the column.
    """
    family = type_.family
    if family in ("text", "binary"):
        tag = value_identities.BINARY if family == "binary" and not as_text else value_identities.TEXT
        return value_identities.unmixed(keys), (checks & np.uint32(value_identities.HASHED)) == tag
    if as_text or type_.hashed:
        return None
    if family == "float":
        return value_identities.codes_of_floats(keys, checks)
    if family in ("uint", "bool"):
        words = value_identities.unmixed(keys)
        if family == "bool":
            return words, (checks == value_identities.BOOL) & (words <= 1)
        return words, checks == np.where(
            words >> np.uint64(63) != 0, value_identities.BIG, value_identities.NUMBER
        )
    return value_identities.scaled_codes(keys, checks, _scale(type_), _tag(type_))


def _tag(type_: Type) -> int:
    """The tag of types whose codes are integers."""
    if type_.family == "timestamp":
        return value_identities.INSTANT if type_.utc else value_identities.TIMESTAMP
    return {"date": value_identities.DATE, "time": value_identities.TIME}.get(
        type_.family, value_identities.NUMBER
    )


def _scale(type_: Type) -> int:
    """How many digits of the integers behind the values are a fraction."""
    if type_.scale > value_identities.SCALES:
        raise ValueError(f"{type_} has more than {value_identities.SCALES} digits behind the point")
    return _FRACTION_DIGITS[type_.unit] if type_.unit else type_.scale


def _checks_of_bytes(texts: Any, tag: int, key: Key | None) -> U32:
    """Checks of a large_binary array without NULLs; ValueError if a text of a damaged one leads out of it."""
    hashes = codes.hash_again(texts, key)
    return (hashes & np.uint64(value_identities.OTHER_HASH)).astype(np.uint32) | np.uint32(tag)


def _limbs(texts: Any, type_: Type) -> U64:
    """The integers behind texts of decimals: uint64[n, 2] or uint64[n, 4], the lowest first."""
    decimals = texts.cast(pa.large_string()).cast(arrow_type(type_))
    width = decimals.type.byte_width // 8
    words = np.frombuffer(decimals.buffers()[1], dtype=np.uint64)
    return words[width * decimals.offset : width * (decimals.offset + len(decimals))].reshape(-1, width)


def _texts_of(dictionary: U64, texts: Any, type_: Type) -> Any:
    """The texts (large_string) of all values of an exact type, or of decimals."""
    family = type_.family
    if type_.hashed:
        return _wide_texts(texts.cast(pa.large_string()), type_)
    if family == "decimal":
        digits = pa.array(encode.ints_of_codes(dictionary)).cast(pa.large_string())
        return _with_point(digits, type_.scale)
    if family in ("time", "timestamp"):
        return _clock_texts(encode.ints_of_codes(dictionary), type_)
    values = codes.decode(dictionary, None, np.arange(1, len(dictionary) + 1, dtype=np.int32), type_)
    return _float_texts(values) if family == "float" else values.cast(pa.large_string())


def _wide_texts(texts: Any, type_: Type) -> Any:
    """Arrow's texts of wide decimals, those with an exponent written out."""
    odd = pc.match_substring(texts, "E")
    if not pc.any(odd).as_py():
        return texts
    wide = texts.filter(odd).cast(arrow_type(type_))
    # The same memory without a scale: Arrow writes its digits, and no exponent.
    plain = arrow_type(Type("decimal", type_.precision, 0))
    whole = _pa.Array.from_buffers(plain, len(wide), [None, wide.buffers()[1]], offset=wide.offset)
    return pc.replace_with_mask(texts, odd, _with_point(whole.cast(pa.large_string()), type_.scale))


def _with_point(digits: Any, scale: int) -> Any:
    """Texts of integers with a point before the last `scale` digits: `-5` is `-0.05`."""
    if scale <= 0:
        return digits
    negative = pc.starts_with(digits, "-")
    padded = pc.ascii_lpad(pc.ascii_ltrim(digits, "-"), scale + 1, "0")
    whole, fraction = (
        pc.utf8_slice_codeunits(padded, 0, -scale),
        pc.utf8_slice_codeunits(padded, -scale),
    )
    sign = pc.if_else(negative, _text("-"), _text(""))
    return _joined(sign, whole, _text("."), fraction)


def _clock_texts(counts: NDArray[np.int64], type_: Type) -> Any:
    """Texts of points in time: Arrow writes the seconds, the fraction follows."""
    digits = _FRACTION_DIGITS[type_.unit]
    seconds, rest = np.divmod(counts, 10**digits)
    # Arrow writes years up to 32767, and what lies farther off as a number.
    if type_.family == "time":
        clock = pa.array(seconds.astype(np.int32)).cast(_pa.time32("s"))
    else:
        clock = pa.array(seconds).cast(_pa.timestamp("s"))
    written = clock.cast(pa.large_string())
    if rest.any():
        rest = rest * 10 ** (9 - digits)
        nine = pc.ascii_lpad(pa.array(rest).cast(pa.large_string()), 9, "0")
        fraction = pc.if_else(
            pa.array(rest % 1000 != 0),
            nine,
            pc.utf8_slice_codeunits(nine, 0, 6),
        )
        fraction = pc.if_else(pa.array(rest % 10**6 != 0), fraction, pc.utf8_slice_codeunits(nine, 0, 3))
        written = pc.if_else(pa.array(rest != 0), _joined(written, _text("."), fraction), written)
    return _joined(written, _text("Z")) if type_.utc else written


def _float_texts(values: Any) -> Any:
    """Python's repr of floats: Arrow writes those without an exponent, Python the others."""
    written = values.cast(pa.large_string())
    size = pc.abs(values)
    whole = pc.and_(pc.equal(pc.floor(values), values), pc.is_finite(values))
    written = pc.if_else(whole, _joined(written, _text(".0")), written)
    small = pc.and_(pc.less(size, 1e-4), pc.not_equal(size, 0.0))
    odd = pc.or_(small, pc.match_substring(written, "e"))
    if not pc.any(odd).as_py():
        return written
    python = pa.array([repr(v) for v in values.filter(odd).to_pylist()], pa.large_string())
    return pc.replace_with_mask(written, odd, python)


def _text(value: str) -> Any:
    return pa.scalar(value, pa.large_string())


def _joined(*parts: Any) -> Any:
    return pc.binary_join_element_wise(*parts, _text(""))
