"""Shapes of texts: `AB-1234` is `AA-9999`, and `jo.lee@x.org` is `aa.aaa@a.aaa`.

In the *shape* of a text A stands for a letter from A to Z, a for one from a to z, 9 for a digit, and U for
any character beyond ASCII; all others stand for themselves. Its *form* is the shape with each run of one of
these four as one: `A-9`, `a.a@a.a`. Codes have few shapes, most other texts have few forms at best.

Cost: a pass over the bytes of different texts, by NumPy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.rows.codes import text_buffers

U8 = NDArray[np.uint8]
I64 = NDArray[np.int64]

CLASSES = {"A": "[A-Z]", "a": "[a-z]", "9": "[0-9]", "U": r"[^\x00-\x7F]"}
_TABLE = np.arange(256, dtype=np.uint8)
for _letter, _first, _last in (("A", 65, 90), ("a", 97, 122), ("9", 48, 57), ("U", 0xC0, 0xFF)):
    _TABLE[_first : _last + 1] = ord(_letter)
# The bytes of a character, by its first one; 0: there is none.
_N_BYTES = np.zeros(256, np.int64)
for _size, _first, _last in ((1, 0, 0x7F), (2, 0xC2, 0xDF), (3, 0xE0, 0xEF), (4, 0xF0, 0xF4)):
    _N_BYTES[_first : _last + 1] = _size
_IS_CLASS = np.isin(np.arange(256), [ord(letter) for letter in CLASSES])


def shapes(texts: pa.Array) -> pa.Array:
    """The shape of each of some texts (large_binary or large_string, without NULLs): large_string.

    >>> shapes(pa.array(["AB-12", "", "Größe 7"], pa.large_string())).to_pylist()
    ['AA-99', '', 'AaUUa 9']
    """
    offsets, data = _own_buffers(texts)
    symbols = _TABLE[data]
    if not len(data) or data.max() < 0x80:
        return _thinned(offsets, symbols, np.ones(len(data), np.bool_))
    # The first byte of a character stands for all of it. Bytes that are no UTF-8 are NUL: nobody can read it.
    first = (data & 0xC0) != 0x80
    first[offsets[:-1][offsets[:-1] < offsets[1:]]] = True
    at = np.flatnonzero(first)
    symbols[at[np.diff(at, append=len(data)) != _N_BYTES[data[at]]]] = 0
    return _thinned(offsets, symbols, first)


def forms(of_shapes: pa.Array) -> pa.Array:
    """The form of each of some shapes.

    >>> forms(pa.array(["AA-99", "AaUUa 9", "aa..a"], pa.large_string())).to_pylist()
    ['A-9', 'AaUa 9', 'a..a']
    """
    offsets, data = _own_buffers(of_shapes)
    repeats = np.zeros(len(data), np.bool_)
    repeats[1:] = (data[1:] == data[:-1]) & _IS_CLASS[data[1:]]
    starts = offsets[:-1]
    repeats[starts[starts < len(data)]] = False
    return _thinned(offsets, data, ~repeats)


def _own_buffers(texts: pa.Array) -> tuple[I64, U8]:
    """(offsets from 0, bytes): of these texts alone."""
    offsets, data = text_buffers(texts)
    return offsets - offsets[0], data[offsets[0] : offsets[-1]]


def _thinned(offsets: I64, data: U8, which: NDArray[np.bool_]) -> pa.Array:
    """Texts with some of their bytes left out."""
    if not which.all():
        n_before = np.concatenate([[0], np.cumsum(which)]).astype(np.int64)
        offsets, data = n_before[offsets], data[which]
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, buffers)


# -- as regular expressions --------------------------------------------------------------------


def expression(of_shapes: Iterable[str], *, exact: bool) -> str | None:
    """A regular expression that all texts of some shapes match: one branch for each form.

    A run that has one length in all shapes of a form has that, others may have any; without `exact` all may.
    None if a shape has a character that nobody can read.

    >>> expression(["AA-999", "AA-9999"], exact=True), expression(["a.a@a.a"], exact=False)
    ('[A-Z]{2}-[0-9]+', '[a-z]+\\\\.[a-z]+@[a-z]+\\\\.[a-z]+')
    """
    branches: dict[str, list[list[int]]] = {}  # by form: the lengths of its runs, for each shape
    for shape in of_shapes:
        if not shape.isprintable():
            return None
        runs = _runs(shape)
        branches.setdefault("".join(s for s, _ in runs), []).append([n for _, n in runs])
    texts = []
    for form, lengths in branches.items():
        symbols = [s for s, _ in _runs(form)]
        sizes = [{*ns} if exact else set[int]() for ns in zip(*lengths, strict=True)]
        texts.append("".join(map(_piece, symbols, sizes)))
    return "|".join(texts)


def _runs(shape: str) -> list[tuple[str, int]]:
    """The symbols of a shape: those of a class with the lengths of their runs, others one by one."""
    runs: list[tuple[str, int]] = []
    for symbol, run in groupby(shape):
        n = sum(1 for _ in run)
        runs += [(symbol, n)] if symbol in CLASSES else [(symbol, 1)] * n
    return runs


def _piece(symbol: str, sizes: set[int]) -> str:
    """A run of one of these lengths; of any, if they are none or several."""
    if symbol not in CLASSES:
        return re.sub(r"([^\w \-@/:,;#%&=~<>!'\"`_])", r"\\\1", symbol)
    if len(sizes) != 1:
        return f"{CLASSES[symbol]}+"
    [n] = sizes
    return CLASSES[symbol] + ("" if n == 1 else f"{{{n}}}")
