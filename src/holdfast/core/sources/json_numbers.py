"""Numbers of JSON to the digit: how they are written, and what Arrow reads them as without losing any."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from holdfast.core.store.arrow_types import MAX_DECIMAL128_DIGITS, arrow_type
from holdfast.core.words.schema import Type

_pa: Any = pa  # third-party stubs want literal precisions
EXACT_NUMBERS = ("decimal", "uint")  # families that JSON's numbers may be of, by their own digits
EXPONENTS = range(-100, 101)  # others are of no number that a decimal holds, but for 0


class Fraction(float):
    """A number with a fraction or an exponent, and how it is written.

    >>> Fraction("1.50"), Fraction("1.50") + 1
    (1.50, 2.5)
    """

    __slots__ = ("written",)
    written: str

    def __new__(cls, written: str) -> Fraction:
        number = super().__new__(cls, written)
        number.written = written
        return number

    def __repr__(self) -> str:
        return self.written


def digits_of(value: int | Fraction) -> str:
    """A number without an exponent, to the digit.

    >>> digits_of(7), digits_of(Fraction("0.10")), digits_of(Fraction("1e-3")), digits_of(Fraction("1.50E2"))
    ('7', '0.10', '0.001', '150')
    """
    written = str(value)
    exponent = written.lower().partition("e")[2]
    is_short = exponent and len(exponent) <= 4 and int(exponent) in EXPONENTS
    return format(Decimal(written), "f") if is_short else written


def wide_type(t: Type) -> pa.DataType:
    """What Arrow reads numbers of a type as: it counts the digits as they are written, and not those that the
    scale adds, so there is room for these; a cast to the type then looks at all. ArrowInvalid if there is no
    such type."""
    if t.family != "decimal":
        return arrow_type(t)
    if t.precision > MAX_DECIMAL128_DIGITS:
        raise pa.ArrowInvalid(f"{t} has no wider type")
    return _pa.decimal256(t.precision, t.scale)
