"""What a commit says of a table's profiles: where they lie. Reading them needs neither Arrow nor kernels.

Of every version the profiles are kept, as JSON (a cover); the counts that batches change are those of the
newest one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.core.rows.table_state import TableState
from holdfast.core.store.files import FileRef, read_file, unique_name, write_file
from holdfast.core.store.root import Root
from holdfast.core.words.codec import Coded
from holdfast.errors import DamagedFileError
from holdfast.profile.column_profile import ColumnProfile

COUNTS = "column-counts"


@dataclass(frozen=True, slots=True)
class ProfileRef(Coded):
    """The files of a table's profiles."""

    cover: FileRef
    counts: FileRef


def profile_ref(state: TableState) -> ProfileRef | None:
    """Where the profiles of a table lie; None where they are not tracked."""
    return state.part("profile", ProfileRef.from_dict)


def write_profiles(root: Root, folder: str, columns: Sequence[ColumnProfile]) -> FileRef:
    # Named a cover: past profiles are read from it, so it is kept for good.
    text = json.dumps([column.to_dict() for column in columns], ensure_ascii=False, separators=(",", ":"))
    return write_file(root, unique_name(folder, "cover", ".json"), [text.encode("utf-8", "surrogatepass")])


def read_profiles(root: Root, ref: FileRef) -> tuple[ColumnProfile, ...]:
    try:
        columns = json.loads(read_file(root, ref).decode("utf-8", "surrogatepass"))
        return tuple(map(ColumnProfile.from_dict, columns))
    except (ValueError, TypeError, KeyError) as error:
        raise DamagedFileError(
            f"the profiles {ref.name!r} of the workspace cannot be read: {error}"
        ) from error
