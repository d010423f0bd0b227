"""What may be proposed as a key or a reference: nothing that somebody has muted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from holdfast.core.rows.table_state import TableState
from holdfast.core.words.dependency import Ind, Ucc
from holdfast.kind import muted_set

Combinations = tuple[tuple[str, ...], ...]


def unmuted_keys(state: TableState, keys: Combinations) -> Combinations:
    """The keys of a table that are not muted."""
    muted = muted_set(state)
    return tuple(key for key in keys if Ucc(state.table, key) not in muted) if muted else keys


def unmuted_inds(inds: Iterable[Ind], table: Callable[[str], TableState]) -> dict[Ind, None]:
    """The inclusions that are not muted, each once."""
    muted = cache(lambda name: muted_set(table(name)))
    return dict.fromkeys(ind for ind in inds if ind not in muted(ind.table))
