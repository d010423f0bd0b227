"""The type rule for texts: a column is a number or a date only if every text survives the round trip.

A text survives a type if decoding it and writing the value again gives the same text, so different
texts are always different values: `007` is no int, `1.50` and `1.5` do not meet in one float column.
A column is of the first type, in this order, that all its texts survive:

| type | the text it writes |
|---|---|
| int | `-12`: no leading zeros, no plus sign, no `-0`; 64 bits |
| decimal(18,s) | exactly s >= 1 fraction digits, no `-0.00`; always 18 digits, so that later batches fit |
| float | the shortest that reads back as the same float, in one of two *spellings* per column |
| decimal(18,s), bare | the same decimals, but whole numbers without a fraction: `2.50` and `3` |
| date | `2024-02-29` |
| timestamp[us] | `2024-02-29 13:00:00`, blank or `T`, 0 to 6 fraction digits: one spelling per column |
| timestamp[us,utc] | the same with `Z` behind it |
| text | itself |

Floats are spelt `point` (as Python, pandas and the JVM do: `2.0`, `1e-07`: Python's repr) or `bare` (as
Arrow, JavaScript and Postgres do: `2`, `1e-7`: Arrow's cast, but whole numbers below 1e15 in full); a column
whose sample has a number without a point is bare. Decimals are spelt in the same two ways. Timestamps are
spelt by separator and digits, `T6`.
`true` and `false` stay text, as does whatever people spell otherwise: `respelling` rewrites it.

A *declared* type (by the user, or by the table that a batch goes to) is held to the same rule, except that
decimals, floats and timestamps may be spelt in any plain way that names the same value: `3`, `3.5` and
`3.500` are the 3.50 of a decimal(18,2), `3` and `3.50` are floats, and a timestamp may have other fraction
digits than its unit. Who exports a table anew need not spell as the first file did.

Cost: two casts and a comparison per column, 25-110 ns per value; no Python per value except for floats
below 1e-4 or from 1e15 on, and declared floats that are not in shortest form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute

from holdfast.core.store.arrow_types import MAX_DECIMAL128_DIGITS, arrow_type
from holdfast.core.words.schema import FRACTION_DIGITS, MAX_EXACT_DIGITS, Type

_pa: Any = pa  # third-party stubs lag behind Arrow
pc: Any = pa.compute

Texts = Any  # pa.ChunkedArray of large_string
Values = Any  # pa.ChunkedArray of a typed column

TEXT = Type("text")
POINT, BARE = "point", "bare"
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_SPARE_ZEROS = {"s": r"(:[0-9]{2})\.0+$", "ms": r"(\.[0-9]{3})0+$"}
_PLAIN = r"^-?(?P<w>0|[1-9][0-9]*)(?:\.(?P<f>[0-9]+))?$"
_NEGATIVE_ZEROS = pa.array(["-0", "-0.0"], pa.large_string())
_STAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T])[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.([0-9]{1,6}))?Z?")


def best_type(lists: Sequence[Sequence[str]]) -> str:
    """The first type that stands in every list; "text" is in all of them.

    >>> best_type([["int", "float", "text"], ["float", "text"]])
    'float'
    """
    if not lists:
        return "text"
    return next((t for t in lists[0] if all(t in survived for survived in lists[1:])), "text")


def decode(texts: Texts, t: Type, spelling: str | None = None) -> Values | None:
    """The texts as values of `t`, or None if one of them does not survive. NULL stays NULL.

    With a `spelling` floats and timestamps must keep to it; without one the type counts as declared.
    """
    if texts.null_count == len(texts):
        return _pa.chunked_array([_pa.nulls(len(texts), arrow_type(t))])
    try:
        values = _DECODERS[t.family](texts, t, spelling)
    except pa.ArrowInvalid:
        return None
    return values if values is None else values.cast(arrow_type(t))


def encode(values: Values, t: Type, spelling: str | None = None) -> Texts:
    """The texts of a typed CSV column: the inverse of `decode` for every guessed type."""
    if t.family == "float":
        return _float_texts(values, spelling or POINT)
    if t.family == "timestamp":
        mark, digits = (spelling or " 6")[0], int((spelling or " 6")[1:])
        if not t.utc:
            return _stamp_texts(values, mark, digits, t.unit)
        texts = _stamp_texts(values.cast(_pa.timestamp(t.unit)), mark, digits, t.unit)
        return pc.binary_join_element_wise(texts, _scalar("Z"), _scalar(""))
    if t.family == "decimal":
        plain = [None if v is None else format(v, "f") for v in values.to_pylist()]
        if spelling == BARE:
            whole = "." + "0" * t.scale
            plain = [None if text is None else text.removesuffix(whole) for text in plain]
        return pa.chunked_array([pa.array(plain, pa.large_string())])
    return values.cast(pa.large_string())


def candidates(texts: Texts, spelling: str | None) -> Iterator[Type]:
    """The types that all texts survive, in the order of the rule, `text` last.

    `spelling` is the column's, from the sample; a column without one is no timestamp, and its floats have
    points. Texts that are all NULL survive everything. One by one: most columns are of the first type that
    is tried.
    """
    first = _first_text(texts)
    decimals = [Type("decimal", precision=MAX_EXACT_DIGITS, scale=s) for s in _scales(texts, spelling)]
    fractions = [Type("float"), *decimals] if spelling == BARE else [*decimals, Type("float")]
    times = [Type("timestamp", unit="us"), Type("timestamp", unit="us", utc=True)]
    tried = [Type("int"), *fractions, Type("date"), *times]
    yield from (t for t in tried if first is None or decode(texts, t, spelling or POINT) is not None)
    yield TEXT


def _scales(texts: Texts, spelling: str | None) -> Sequence[int]:
    """The scales that decimals may have of which these are texts: one, unless there is no fraction.

    NULLs narrow nothing, nor do whole numbers of a bare column but by their digits.
    """
    first = _first_text(texts)
    if first is not None and spelling == BARE and "." not in first:
        fractions = texts.filter(pc.match_substring(texts, "."))
        first = _first_text(fractions)
    if first is None:
        return range(1, MAX_EXACT_DIGITS + 1)
    digits = len(first) - first.rfind(".") - 1 if "." in first else 0
    return (digits,) if 0 < digits <= MAX_EXACT_DIGITS else ()


def spelling_of(texts: Texts) -> str | None:
    """How a sample spells its numbers or timestamps: `bare`, ` 0`, `T6`; None if it does not say.

    >>> spelling_of(pa.chunked_array([["1.5", "2"]])), spelling_of(pa.chunked_array([["1.5", "2.0"]]))
    ('bare', None)
    """
    first = _first_text(texts)
    if first is None:
        return None
    stamp = _STAMP.fullmatch(first)
    if stamp:
        return f"{stamp[1]}{len(stamp[2] or '')}"
    return BARE if pc.any(pc.match_substring_regex(texts, "^-?[0-9]+$")).as_py() else None


def first_unfit(values: Values, fits: Callable[[Values], bool]) -> int:
    """The position of the first value that does not fit; one must be there.

    By bisection with the rule itself, for parts of the values, so that no second rule can differ from it.
    """
    low, high = 0, len(values)
    while high - low > 1:
        middle = (low + high) // 2
        if fits(values.slice(low, middle - low)):
            low = middle
        else:
            high = middle
    return low


def is_value(text: str, t: Type) -> bool:
    """Whether a text is a value of the declared type `t`."""
    return decode(pa.chunked_array([pa.array([text], pa.large_string())]), t) is not None


def suggestion(text: str, t: Type) -> str:
    """The type to declare instead of `t` so that a text fits."""
    texts = pa.chunked_array([pa.array([text], pa.large_string())])
    wider = decimal_of(texts)
    if t.family == "decimal" and wider is not None:
        return str(wider)
    return "float" if is_value(text, Type("float")) else "text"


def decimal_of(texts: Texts) -> Type | None:
    """The decimal type that has room for all texts, however many digits they have; None if there is none.

    >>> str(decimal_of(pa.chunked_array([["1.5", "2.75", "3"]])))
    'decimal(18,2)'
    """
    if pc.all(pc.match_substring_regex(texts, _PLAIN)).as_py() is not True:
        return None
    parts = pc.extract_regex(texts, _PLAIN)
    whole, scale = (pc.max(pc.binary_length(pc.struct_field(parts, name))).as_py() for name in ("w", "f"))
    fits = [p for p in (MAX_EXACT_DIGITS, MAX_DECIMAL128_DIGITS) if whole + scale <= p]
    return Type("decimal", precision=fits[0], scale=scale) if fits else None


def _first_text(texts: Texts) -> str | None:
    for chunk in texts.chunks:
        if chunk.null_count < len(chunk):
            text: str = chunk.drop_null()[0].as_py()
            return text
    return None


def _same(left: Texts, right: Texts) -> bool:
    return pc.all(pc.equal(left, right)).as_py() is not False


def _whole_numbers(texts: Texts, t: Type, spelling: str | None) -> Values | None:
    values = texts.cast(arrow_type(t))
    return values if _same(values.cast(pa.large_string()), texts) else None


def _decimals(texts: Texts, t: Type, spelling: str | None) -> Values | None:
    room = max(t.precision - t.scale, 0)  # Arrow does not always see that a number has more digits
    whole = rf"(0|[1-9][0-9]{{0,{room - 1}}})" if room else "0"
    if t.scale <= 0:
        fraction = ""
    elif spelling is None:
        fraction = rf"(\.[0-9]{{1,{t.scale}}}0*)?"
    else:
        fraction = rf"\.[0-9]{{{t.scale}}}"
        fraction = f"({fraction})?" if spelling == BARE else fraction
    if pc.all(pc.match_substring_regex(texts, f"^-?{whole}{fraction}$")).as_py() is False:
        return None
    values = texts.cast(arrow_type(t))
    if spelling is None:
        return values
    # Arrow writes small decimals as 1E-7, so the text is checked instead; only -0.00 slips through that, and
    # a whole number with a fraction that is to have none.
    odd = r"^-0(\.0*)?$" + (r"|\.0*$" if spelling == BARE else "")
    return None if pc.any(pc.match_substring_regex(texts, odd)).as_py() else values


def _floats(texts: Texts, t: Type, spelling: str | None) -> Values | None:
    values = texts.cast(pa.float64())
    shortest = _float_texts(values, BARE if spelling == BARE else POINT)
    if spelling is not None and pc.any(pc.is_in(texts, value_set=_NEGATIVE_ZEROS)).as_py():
        return None  # it would equal 0.0, and the two texts would meet
    if _same(shortest, texts):
        return values
    if spelling is not None:
        return None
    odd = pc.unique(texts.filter(pc.not_equal(shortest, texts)))
    return values if all(_is_plain_float(text) for text in odd.to_pylist()) else None


def _is_plain_float(text: str) -> bool:
    """Whether a text is a number without ornaments, and its float's shortest or 17-digit form (C's %.17g)."""
    if not _NUMBER.fullmatch(text):
        return False
    value = float(text)
    return Decimal(text) in (Decimal(repr(value)), Decimal(f"{value:.17g}"))


def _float_texts(values: Values, spelling: str) -> Texts:
    """The shortest texts of floats. Arrow does nearly all; Python those that the spelling wants otherwise.

    Arrow has exponents from 1e10 on where digits end in zeros, and none down to 1e-6; Python's repr has
    them from 1e16 on and below 1e-4.
    """
    texts = values.cast(pa.large_string())
    size = pc.abs(values)
    odd = pc.greater_equal(size, 1e10)
    if pc.any(odd).as_py():
        odd = pc.and_(odd, pc.match_substring(texts, "e"))
    if spelling == BARE:
        odd = pc.and_(odd, pc.less(size, 1e15))
    else:
        odd = pc.or_(odd, pc.and_(pc.less(size, 1e-4), pc.not_equal(size, 0.0)))
        whole = pc.and_(pc.equal(pc.floor(values), values), pc.is_finite(values))
        if pc.any(whole).as_py():
            with_point = pc.binary_join_element_wise(texts, _scalar(".0"), _scalar(""))
            texts = pc.if_else(whole, with_point, texts)
    odd = pc.fill_null(odd, False)
    if not pc.any(odd).as_py():
        return texts
    spelt = [
        repr(v) if spelling != BARE else repr(v).removesuffix(".0") for v in values.filter(odd).to_pylist()
    ]
    mended = pc.replace_with_mask(_one_chunk(texts), _one_chunk(odd), pa.array(spelt, pa.large_string()))
    return pa.chunked_array([mended])


def _scalar(text: str) -> Any:
    return pa.scalar(text, pa.large_string())


def _one_chunk(values: Values) -> Any:
    combined = values.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def _booleans(texts: Texts, t: Type, spelling: str | None) -> Values | None:
    words = pa.array(["true", "false"], pa.large_string())
    if pc.all(pc.is_in(texts.drop_null(), value_set=words)).as_py() is False:
        return None
    return pc.equal(texts, "true")


def _dates(texts: Texts, t: Type, spelling: str | None) -> Values | None:
    values = texts.cast(pa.date32())
    if pc.any(pc.starts_with(texts, "0000")).as_py():  # Arrow has a year 0; Python and SQL have not
        return None
    return values if _same(values.cast(pa.large_string()), texts) else None


def _timestamps(texts: Texts, t: Type, spelling: str | None) -> Values | None:
    if spelling is not None and spelling[0] not in " T":
        return None
    if t.utc:
        if pc.all(pc.ends_with(texts, "Z")).as_py() is False:
            return None
        texts = pc.utf8_slice_codeunits(texts, 0, -1)
    if spelling is None and FRACTION_DIGITS[t.unit] < 6:
        texts = pc.replace_substring_regex(texts, _SPARE_ZEROS[t.unit], r"\1")
    values = texts.cast(_pa.timestamp(t.unit))
    if pc.any(pc.starts_with(texts, "0000")).as_py():
        return None
    if spelling is not None:
        fits = _same(_stamp_texts(values, spelling[0], int(spelling[1:]), t.unit), texts)
    else:
        fits = _same(_stamp_texts(values, " ", FRACTION_DIGITS[t.unit], t.unit), _padded(texts, t.unit))
    if not fits:
        return None
    return pc.assume_timezone(values, "UTC") if t.utc else values


def _times(texts: Texts, t: Type, spelling: str | None) -> Values | None:
    """Clock times; Arrow has no cast from text to time, so they borrow a day."""
    borrowed = pc.binary_join_element_wise(_scalar("1970-01-01"), texts, _scalar(" "))
    stamps = _timestamps(borrowed, Type("timestamp", unit=t.unit), None)
    return stamps if stamps is None else stamps.cast(arrow_type(t))


def _stamp_texts(values: Values, mark: str, digits: int, unit: str) -> Texts:
    if digits == 0:  # a fraction that is there makes another text, as it must
        whole = pc.floor_temporal(values, unit="second")
        texts = whole.cast(pa.timestamp("s")).cast(pa.large_string())
        if not _same(whole, values):
            return values.cast(pa.large_string())
    else:
        texts = values.cast(pa.large_string())
        if digits < FRACTION_DIGITS[unit]:
            texts = pc.utf8_slice_codeunits(texts, 0, 20 + digits)
    return texts if mark == " " else pc.replace_substring(texts, " ", mark, max_replacements=1)


def _padded(texts: Texts, unit: str) -> Texts:
    """Any plain spelling of a timestamp as Arrow writes it: a blank, and all digits of the unit."""
    texts = pc.replace_substring(texts, "T", " ", max_replacements=1)
    digits = FRACTION_DIGITS[unit]
    if digits == 0:
        return texts
    whole = pc.equal(pc.binary_length(texts), 19)
    texts = pc.if_else(whole, pc.binary_join_element_wise(texts, _scalar("."), _scalar("")), texts)
    return pc.utf8_rpad(texts, width=20 + digits, padding="0")


_DECODERS: Mapping[str, Any] = {
    "int": _whole_numbers,
    "uint": _whole_numbers,
    "decimal": _decimals,
    "float": _floats,
    "bool": _booleans,
    "date": _dates,
    "time": _times,
    "timestamp": _timestamps,
    "text": lambda texts, t, spelling: texts,
    "binary": lambda texts, t, spelling: texts,
}
