"""Delete vectors: which rows of a segment are gone, as a compressed bitmap of their positions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pyroaring import BitMap

from holdfast.core.rows.table_state import SegmentRef
from holdfast.core.store.files import FileRef, read_file, unique_name, write_file
from holdfast.core.store.root import Root
from holdfast.errors import DamagedFileError


def read_deletes(root: Root, ref: FileRef) -> BitMap:
    data = read_file(root, ref)
    try:
        return BitMap.deserialize(data)
    except ValueError as error:
        raise DamagedFileError(
            f"the delete vector {ref.name!r} of the workspace cannot be read: {error}"
        ) from error


def write_deletes(root: Root, folder: str, ref: SegmentRef, positions: Iterable[int]) -> SegmentRef:
    """The segment's reference with these rows deleted too."""
    dead = read_deletes(root, ref.deletes) if ref.deletes else BitMap()
    dead |= BitMap(positions)
    file = write_file(root, unique_name(folder, "deletes", ".roaring"), [dead.serialize()])
    return replace(ref, deletes=file, n_deleted=len(dead))
