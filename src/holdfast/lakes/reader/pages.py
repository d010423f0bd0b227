"""Rows of a lake's Parquet files by their number, and Arrow arrays to and from NumPy without pandas.

`pa.array`, `pa.scalar`, `to_numpy` and `read_table` import pandas, which costs a reading command 0.4 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from holdfast.core.store.files import FileRef, opened
from holdfast.core.store.root import Root
from holdfast.errors import DamagedFileError

I64 = NDArray[np.int64]

# Rows of a few numbers that are worth a read of their own: a millisecond.
ROWS_AT_ONCE = 1 << 18


class RowGroups:
    """The rows of some Parquet files, numbered through; only the row groups that are needed are read.

    Adjacent row groups of a file with up to `at_once` rows together count as one: a file whose writer was
    given many small pieces is read in few large ones. Footers are read once. Files are opened for each read,
    so that several threads may ask.
    """

    def __init__(self, root: Root, refs: Sequence[FileRef], at_once: int = 0) -> None:
        self._root, self._refs, self._at_once = root, refs, at_once
        # Questions about one table come in a row, and its columns lie in one row group.
        self._recent = lru_cache(maxsize=4)(self.read)
        self.bounds = lru_cache(maxsize=4)(self._bounds)

    @cached_property
    def _footers(self) -> list[pq.FileMetaData]:
        return [self._guarded(i, pq.read_metadata) for i in range(len(self._refs))]

    @cached_property
    def _places(self) -> list[tuple[int, range, int]]:
        """(file, row groups in it, rows) of each row group."""
        places: list[tuple[int, range, int]] = []
        for i, footer in enumerate(self._footers):
            for g in range(footer.num_row_groups):
                n = footer.row_group(g).num_rows
                if places and places[-1][0] == i and places[-1][2] + n <= self._at_once:
                    _, groups, before = places.pop()
                    places.append((i, range(groups.start, g + 1), before + n))
                else:
                    places.append((i, range(g, g + 1), n))
        return places

    @cached_property
    def starts(self) -> I64:
        """The number of the first row of each row group, and last of all that of all rows."""
        return np.cumsum([0, *(n for _, _, n in self._places)])

    def __len__(self) -> int:
        """How many row groups there are."""
        return len(self._places)

    def _bounds(self, name: str) -> tuple[I64, I64]:
        """The least and the greatest value of an integer column in each row group."""
        bounds = np.empty((2, len(self)), np.int64)
        bounds[0], bounds[1] = np.iinfo(np.int64).min, np.iinfo(np.int64).max
        for j, (i, groups, _) in enumerate(self._places):
            footer = self._footers[i]
            at = footer.schema.names.index(name)
            statistics = [footer.row_group(g).column(at).statistics for g in groups]
            if all(s is not None and s.has_min_max for s in statistics):
                bounds[:, j] = min(s.min for s in statistics), max(s.max for s in statistics)
        return bounds[0], bounds[1]

    def read(self, group: int, columns: tuple[str, ...]) -> pa.Table:
        """Some columns of a row group."""
        i, groups, _ = self._places[group]

        def columns_of(path: Path) -> pa.Table:
            with pq.ParquetFile(path, metadata=self._footers[i]) as file:
                return file.read_row_groups(list(groups), columns=list(columns)).select(list(columns))

        return self._guarded(i, columns_of)

    def rows(self, wanted: NDArray[Any], columns: tuple[str, ...]) -> pa.Table:
        """The rows of some numbers (at least one), in ascending order of these."""
        wanted = np.sort(wanted)
        groups = np.searchsorted(self.starts, wanted, side="right") - 1
        tables = []
        for group in np.unique(groups).tolist():
            local = wanted[groups == group] - self.starts[group]
            tables.append(self._recent(group, columns).take(arrow(local)))
        return pa.concat_tables(tables)

    def texts(self, name: str) -> pa.LargeStringArray:
        """A column of all rows."""

        def column(path: Path) -> list[pa.Array]:
            with pq.ParquetFile(path) as file:
                chunks = file.read(columns=[name]).column(name).chunks
                return [pc.cast(chunk, pa.large_string()) for chunk in chunks]

        pieces = [chunk for i in range(len(self._refs)) for chunk in self._guarded(i, column)]
        return pa.concat_arrays([pa.nulls(0, pa.large_string()), *pieces])

    def _guarded(self, i: int, use: Any) -> Any:
        ref = self._refs[i]
        try:
            return opened(self._root, ref, use, by_stamp=True)
        except (OSError, pa.ArrowException, ValueError, KeyError) as error:
            raise DamagedFileError(
                f"the file {ref.name!r} of the workspace {str(self._root)!r} cannot be read: {error}. "
                "Restore it from a backup, or link the lake again."
            ) from error


def arrow(numbers: NDArray[Any]) -> pa.Array:
    """Numbers as an Arrow array of the same type.

    >>> arrow(np.array([3, 4], np.int32)).to_pylist()
    [3, 4]
    """
    numbers = np.ascontiguousarray(numbers)
    kind = pa.from_numpy_dtype(numbers.dtype)
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)])


def numbers(column: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """The numbers of an Arrow column without missing ones; read-only where it is in one piece.

    >>> numbers(arrow(np.arange(5))[2:]).tolist()
    [2, 3, 4]
    """
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    dtype = np.dtype(column.type.to_pandas_dtype())
    views = [
        np.frombuffer(c.buffers()[1], dtype, count=len(c), offset=c.offset * dtype.itemsize)
        for c in chunks
        if len(c)
    ]
    return views[0] if len(views) == 1 else np.concatenate([np.empty(0, dtype), *views])


def true_at(mask: pa.BooleanArray) -> I64:
    """Where a mask is true."""
    return numbers(pc.indices_nonzero(mask)).astype(np.int64)


def text_scalar(text: str) -> pa.Scalar:
    """A text to compare with.

    >>> text_scalar("é").as_py()
    'é'
    """
    encoded = text.encode("utf-8")
    offsets = arrow(np.array([0, len(encoded)])).buffers()[1]
    buffers = [None, offsets, pa.py_buffer(encoded)]
    return pa.Array.from_buffers(pa.large_string(), 1, buffers)[0]
