"""Delta tables of others, as sources: what they hold at their newest version.

Their files alone would not do: some hold rows that are deleted, or are no part of the table any more.
"""

from __future__ import annotations

from pathlib import Path

from deltalake import DeltaTable

from holdfast.core.store.delta_log import INTERRUPTS, options_of, patiently
from holdfast.core.store.root import is_stored, object_of
from holdfast.errors import NOTHING_APPLIED, SourceError, shorten, shorten_path


def opened_delta(place: str, table: str) -> DeltaTable:
    """The Delta table of a folder, or of one of a store."""
    try:
        if is_stored(place):
            bucket, name = object_of(place)
            url, options = f"{bucket}/{name}", options_of(bucket)
            return patiently(bucket, lambda: DeltaTable(url, storage_options=options))
        return DeltaTable(Path(place).absolute().as_uri())
    except BaseException as error:  # panics of Rust, too
        if isinstance(error, INTERRUPTS):
            raise
        reason = shorten(str(error).split("\n")[0], 100)[1:-1].rstrip(".")
        raise SourceError(
            f"{shorten_path(place)} for table {table!r} is a Delta table that cannot be opened: {reason}. "
            f"{NOTHING_APPLIED} Next step: see whether it can be read without holdfast."
        ) from None
