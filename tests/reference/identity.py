"""Equality of values across types by definition, and their identities, with fractions. Slow, plain.

Values are Python's int, Decimal, float, bool, str and bytes; and `Day` and `Point`, as Python's own dates and
times stop at the year 9999 and at microseconds.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from .encode import mix
from .siphash import siphash

NUMBER, BIG, FLOAT, BOOL, DATE, TIME, TIMESTAMP, INSTANT = (n << 8 for n in range(1, 9))
OVERSIZE, TEXT, BINARY = 0x40000000, 0x80000000, 0xC0000000
# Of the workspace whose identities these are.
KEY = 0x0123456789ABCDEF, 0xFEDCBA9876543210
DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
MAX_SCALE = 76


@dataclass(frozen=True)
class Point:
    """A point in time: so many units since midnight (time) or since 1970 (timestamp, instant)."""

    domain: str
    count: int
    unit: str

    @property
    def seconds(self) -> Fraction:
        return Fraction(self.count, 10 ** DIGITS[self.unit])


@dataclass(frozen=True)
class Day:
    """A date by its number, counted from 1970."""

    number: int


Value = int | Decimal | float | bool | Day | Point | str | bytes


def domain(value: Value) -> str:
    if isinstance(value, Point):
        return value.domain
    names = {bool: "bool", int: "number", float: "number", Decimal: "number"}
    return (names | {Day: "date", str: "text", bytes: "binary"})[type(value)]


def significant_digits(value: Fraction) -> int:
    """Digits of a decimal fraction without the zeros at both ends.

    >>> [significant_digits(Fraction(text)) for text in ("1.203", "0.0120", "500")]
    [4, 2, 1]
    """
    while value.denominator != 1:
        value *= 10
    return len(str(abs(value.numerator)).rstrip("0"))


def same(left: Value, right: Value) -> bool:
    """Whether two values are equal, by definition.

    >>> same(0.1, Decimal("0.10")), same(0.1, Decimal("0.10000000000000001")), same(2.0**70, 2**70)
    (True, False, True)
    """
    if domain(left) != domain(right):
        return False
    if isinstance(left, Point) and isinstance(right, Point):
        return left.seconds == right.seconds
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    if isinstance(right, float):
        left, right = right, left
    if isinstance(left, float) and isinstance(right, int | Decimal):
        if not math.isfinite(left):
            return False
        if left.is_integer():
            return Fraction(left) == Fraction(right)
        return significant_digits(Fraction(right)) <= 15 and float(Fraction(right)) == left
    if isinstance(left, int | Decimal) and isinstance(right, int | Decimal):
        return Fraction(left) == Fraction(right)
    return left == right


def scaled(value: Fraction) -> tuple[int, int]:
    """(m, s): the value is m / 10^s, with the smallest s."""
    s = 0
    while (value * 10**s).denominator != 1:
        s += 1
    return int(value * 10**s), s


def decimal_of(value: float) -> tuple[int, int] | None:
    """(m, s) of the decimal of at most 15 digits, with the smallest s, that reads as a float."""
    for s in range(1, MAX_SCALE + 1):
        m = round(Fraction(value) * 10**s)
        if abs(m) >= 10**15:
            return None
        if float(Fraction(m, 10**s)) == value:
            return m, s
    return None


def number(value: int | Decimal | float) -> tuple[int, int]:
    """(word, check) of a number; for an oversized one the word is a hash."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return float_bits(value), FLOAT
        if not value.is_integer():
            found = decimal_of(value)
            return (float_bits(value), FLOAT) if found is None else (found[0], NUMBER + found[1])
    m, s = scaled(Fraction(value))
    if -(2**63) <= m < 2**63:
        return m, NUMBER + s
    if s == 0 and 0 <= m < 2**64:
        return m, BIG
    if s == 0 and int(float(m)) == m:
        return float_bits(float(m)), FLOAT
    data = (abs(m) | (1 << 255 if m < 0 else 0)).to_bytes(32, "little") + bytes([s])
    low, high = hashed(data)
    return low, OVERSIZE | high


def hashed(data: bytes) -> tuple[int, int]:
    """64 bits and 30 further ones."""
    low, high = siphash(data, KEY)
    return low, high & 0x3FFFFFFF


def float_bits(value: float) -> int:
    bits: int = struct.unpack("<Q", struct.pack("<d", math.nan if math.isnan(value) else value))[0]
    return bits


def identity(value: Value) -> tuple[int, int]:
    """(key, check) of a value."""
    if isinstance(value, bool):
        word, check = int(value), BOOL
    elif isinstance(value, str | bytes):
        data = value.encode() if isinstance(value, str) else value
        tag = TEXT if isinstance(value, str) else BINARY
        word, high = hashed(data)
        check = tag | high
    elif isinstance(value, Day):
        word, check = value.number, DATE
    elif isinstance(value, Point):
        word, s = scaled(value.seconds)
        check = {"time": TIME, "timestamp": TIMESTAMP, "instant": INSTANT}[value.domain] + s
    else:
        word, check = number(value)
    return mix(word % 2**64), check
