"""Beginnings of text files: of which ones no more is read than a header or a sample takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from holdfast.core.sources.encodings import is_single_byte, is_utf8
from holdfast.core.sources.packed import packing_of
from holdfast.core.sources.read_options import ReadOptions, Split

# Bytes in which the rows of a sample are looked for first.
SAMPLE_BYTES = 4 << 20
# The beginning of a compressed file is read before all of it if that is likely to be shorter: text becomes a
# tenth, or less.
LEAST_PACKED = 8


def can_split(path: str, options: ReadOptions) -> bool:
    return not packing_of(path) and _can_begin(options)


def _can_begin(options: ReadOptions) -> bool:
    """Whether the beginning of a text can be read without the rest."""
    return not options.comment and (is_utf8(options) or is_single_byte(options.encoding))


def heads(split: Split, options: ReadOptions, size: int = 0) -> Iterator[Split]:
    """Longer and longer beginnings of a split, the last of them all of it; the first has so many bytes.

    Others may end inside a record, so what is wrong with their last one need not be wrong with the file.
    """
    size, packed = size or SAMPLE_BYTES, packing_of(split.path)
    most = (split.end - split.start) * (LEAST_PACKED if packed else 1)
    while _can_begin(options) and not split.array and size < most:
        yield replace(split, most=size) if packed else replace(split, end=split.start + size, n_bytes=size)
        size *= 8
    yield split
