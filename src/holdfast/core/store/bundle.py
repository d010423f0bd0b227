"""A bundle: named arrays of different lengths in one Arrow IPC file, read by memory map.

The file holds one record batch of one row; each column is a list whose only element is the
array. Any Arrow reader can open it, and an array is a slice of the mapped file: opening costs
microseconds whatever the size. The same bytes carry the results of tasks.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.store.files import FileRef, new_file, opened, write_file
from holdfast.core.store.root import Root
from holdfast.errors import DamagedFileError

Arrays = Mapping[str, "NDArray[Any] | pa.Array"]

# One row of so many is very few: the pages that a probe of it touches, one by one, take as long as the file.
VERY_FEW = 1 << 18
# Bytes of a bundle that is put together in memory before it is written.
AT_ONCE = 1 << 20


class Bundle:
    """The arrays and the metadata of a bundle; NumPy views where the type is a number."""

    def __init__(self, batch: pa.RecordBatch, file: str = "", mapping: mmap.mmap | None = None) -> None:
        self._batch, self._file, self._mapping = batch, file, mapping
        self._reads_ahead = False
        self.meta = {k.decode(): v.decode() for k, v in (batch.schema.metadata or {}).items()}

    @property
    def names(self) -> list[str]:
        """The arrays."""
        return list(self._batch.schema.names)

    def __contains__(self, name: str) -> bool:
        return bool(self._batch.schema.get_field_index(name) >= 0)

    def expect(self, n: int, of: int) -> None:
        """So many of all rows will be looked at: of very few the system is to read nothing but their pages.

        It reads up to megabytes around a page that it has not, which is a whole file soon.
        """
        reads_ahead = n == of or (n > 1 and n * VERY_FEW > of)
        if self._mapping is not None and reads_ahead != self._reads_ahead:
            self._mapping.madvise(mmap.MADV_NORMAL if reads_ahead else mmap.MADV_RANDOM)
            self._reads_ahead = reads_ahead

    def array(self, name: str) -> NDArray[Any]:
        """A read-only view of a numeric array."""
        # Not `to_numpy`: it imports pandas, which costs a reader of the workspace 0.4 s.
        values = self.arrow(name)
        dtype = np.dtype(values.type.to_pandas_dtype())
        if not len(values):
            return np.empty(0, dtype)
        try:
            view: NDArray[Any] = np.frombuffer(
                values.buffers()[1], dtype, count=len(values), offset=values.offset * dtype.itemsize
            )
        except ValueError as error:
            raise self._damaged(error) from error
        return view

    def arrow(self, name: str) -> pa.Array:
        """An array. Its buffers are as long as it says: Arrow looks at neither when it maps a file."""
        at = self._batch.schema.get_field_index(name)
        if at < 0:
            raise self._damaged(f"it has no {name!r}")
        try:
            values = self._batch.column(at).values
            values.validate()
        except pa.ArrowInvalid as error:
            raise self._damaged(error) from error
        return values

    def _damaged(self, reason: object) -> DamagedFileError:
        return DamagedFileError(
            f"the file {self._file!r} of the workspace is damaged: {reason}. Restore it from a backup, or "
            "rebuild the table with 'holdfast track'."
        )


def _batch(arrays: Arrays, meta: Mapping[str, str]) -> pa.RecordBatch:
    columns = []
    for array in arrays.values():
        values = array if isinstance(array, pa.Array) else pa.array(np.ascontiguousarray(array).reshape(-1))
        # By buffers: a third of what `from_arrays` takes, and a batch of one row writes some hundred arrays.
        offsets = pa.py_buffer(np.array([0, len(values)], dtype=np.int64))
        list_type = pa.large_list(values.type)
        columns.append(pa.LargeListArray.from_buffers(list_type, 1, [None, offsets], children=[values]))
    return pa.RecordBatch.from_arrays(columns, names=list(arrays), metadata=dict(meta))


def pack(arrays: Arrays, meta: Mapping[str, str]) -> bytes:
    """The bundle as bytes."""
    return bytes(_packed(_batch(arrays, meta), None))


def _packed(batch: pa.RecordBatch, options: Any) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def unpack(data: bytes) -> Bundle:
    return Bundle(pa.ipc.open_file(pa.py_buffer(data)).get_batch(0))


def write_bundle(
    root: Root, name: str, arrays: Arrays, meta: Mapping[str, str], *, compress: bool = False
) -> FileRef:
    """Write a bundle as a new file of the workspace.

    A compressed one is a third of the size, and read into memory instead of mapped.
    """
    batch = _batch(arrays, meta)
    options = pa.ipc.IpcWriteOptions(compression="zstd") if compress else None
    if batch.nbytes <= AT_ONCE:  # Arrow writes array by array, each a call of ours
        return write_file(root, name, [_packed(batch, options)])
    with new_file(root, name) as file, pa.ipc.new_file(file, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return file.ref


def _map(path: Path) -> mmap.mmap:
    """A file's map; what a look at its metadata touches, and no more, is read."""
    with open(path, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    mapped.madvise(mmap.MADV_RANDOM)
    return mapped


def open_bundle(root: Root, ref: FileRef, what: str, *, partly: bool = False) -> Bundle:
    """Open a file written as bundle `what`; a damaged or foreign one is named in the error.

    `partly`: the reader looks at some pages, so the stamp of a large file will do, and says how many
    (`expect`). What is read whole, and written again as part of something new, is hashed.
    """
    try:
        mapped = opened(root, ref, _map, by_stamp=partly)
        bundle = Bundle(pa.ipc.open_file(pa.py_buffer(mapped)).get_batch(0), ref.name, mapped)
    except (pa.ArrowException, OSError, ValueError) as error:  # ValueError: its metadata are no text
        raise DamagedFileError(f"the file {ref.name!r} of the workspace is no bundle: {error}") from error
    if not partly:
        bundle.expect(1, 1)
    if bundle.meta.get("holdfast") != what:
        raise DamagedFileError(
            f"the file {ref.name!r} of the workspace should be a {what}, "
            f"but is a {bundle.meta.get('holdfast', 'foreign file')}. Restore it from a backup."
        )
    return bundle
