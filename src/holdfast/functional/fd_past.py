"""Histories of functional dependencies: when each held, and what it outlived.

X -> A held in a run of versions (`core/cover/history.py`) iff its cover has an X' -> A with X' inside X.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.history import Against, PastCommit, Run, Spell
from holdfast.core.rows.table_state import TableState
from holdfast.core.store.files import FileRef
from holdfast.core.store.root import Root
from holdfast.core.words.column_sets import columns_mask, columns_of, n_pairs, words_for
from holdfast.core.words.dependency import Fd
from holdfast.functional.refs import FdRef, fd_ref, read_approximate, read_fds

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class FdHistory:
    """When a dependency held, since its table was tracked.

    A version of the table counts if it tracked the table or applied a batch. Rows count as outlived if
    their batch found the dependency holding and left it so.
    """

    fd: Fd
    spells: tuple[Spell, ...]  # oldest first
    n_versions: int  # of the table
    n_held: int  # versions of the table at which it held
    n_current: int  # of these, in the spell that lasts; 0: it does not hold now
    n_inserted: int  # rows outlived
    n_deleted: int
    minimal: bool  # it is in the cover now
    max_lhs: int | None  # the bound of the table: there is no history of wider left-hand sides

    @property
    def holds(self) -> bool:
        return self.spells[-1].last is None

    @property
    def breaks(self) -> tuple[int, ...]:
        """The versions that ended a spell."""
        return tuple(spell.last + 1 for spell in self.spells if spell.last is not None)

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.fd.to_dict(),
            "holds": self.holds,
            "minimal": self.minimal,
            "spells": [spell.to_dict() for spell in self.spells],
            "breaks": list(self.breaks),
            "n_versions": self.n_versions,
            "n_held": self.n_held,
            "n_current": self.n_current,
            "n_inserted": self.n_inserted,
            "n_deleted": self.n_deleted,
            "max_lhs": self.max_lhs,
        }


def inside(masks: U64, rhs: I32, mask: U64, column: int) -> Bool:
    """Which dependencies of a cover imply `mask -> column`: bool[n]."""
    chosen: Bool = (rhs == column) & ~(masks & ~mask).any(axis=1)
    return chosen


def held_in(masks: U64, rhs: I32 | I64, cover_masks: U64, cover_rhs: I32) -> Bool:
    """Which dependencies hold according to a cover: bool[n].

    masks IN uint64[n, n_words], rhs IN [n]; the cover likewise. Cost: a hash of each; for those that are not
    in the cover themselves, per right-hand side at most the product of their numbers.
    """
    from holdfast.core.rows.kernels.masks import contains_any

    held = in_cover(masks, rhs, cover_masks, cover_rhs)
    uncovered = np.flatnonzero(~held)
    if len(uncovered):
        parts = _by_rhs(cover_rhs)
        for column, members in _by_rhs(rhs[uncovered]).items():
            if column in parts:
                at = uncovered[members]
                held[at] = contains_any(masks[at], cover_masks[parts[column]])
    return held


def _by_rhs(rhs: I32 | I64) -> dict[int, I64]:
    """Indices by right-hand side."""
    if not len(rhs):
        return {}
    order = np.argsort(rhs, kind="stable")
    columns, starts = np.unique(rhs[order], return_index=True)
    return dict(zip(columns.tolist(), np.split(order, starts[1:]), strict=True))


def in_cover(masks: U64, rhs: I32 | I64, cover_masks: U64, cover_rhs: I32) -> Bool:
    """Which dependencies are in a cover: bool[n]."""
    from holdfast.core.rows.kernels.masks import without
    from holdfast.functional.fd_cover import keyed

    return ~without(keyed(masks, rhs), keyed(cover_masks, cover_rhs))


def ever(covers: Sequence[tuple[U64, I32]], n_columns: int) -> tuple[U64, I32]:
    """The different dependencies of all covers: short ones first, then in the order of the schema."""
    from holdfast.core.rows.kernels.masks import unique_masks
    from holdfast.functional.fd_cover import keyed

    dependencies = np.empty((0, words_for(n_columns) + 1), dtype=np.uint64)
    for masks, rhs in covers:
        both = np.concatenate([dependencies, keyed(masks, rhs)])
        dependencies = both[unique_masks(both)[0]]
    masks, rhs = np.ascontiguousarray(dependencies[:, :-1]), dependencies[:, -1].astype(np.int32)
    columns = columns_of(masks)
    order = sorted(range(len(masks)), key=lambda i: (len(columns[i]), columns[i], rhs[i]))
    return masks[order], rhs[order]


def histories(
    state: TableState,
    runs: Sequence[Run[FdRef]],
    covers: Sequence[tuple[U64, I32]],
    now: tuple[U64, I32],
    bound: int | None,
) -> list[FdHistory]:
    """The history of each dependency of the covers of some runs. Cost: each is compared with all."""
    masks, rhs = ever(covers, len(state.schema))
    held = np.zeros((len(masks), len(runs)), dtype=np.bool_)
    for i, cover in enumerate(covers):
        held[:, i] = held_in(masks, rhs, *cover)
    minimal = in_cover(masks, rhs, *now)
    names = state.schema.names
    versions = np.array([run.n_versions for run in runs], dtype=np.int64)
    # The first batch of a run found what the run before says; the others found what it says itself.
    outlived = held[:, 1:] & held[:, :-1]
    first = _rows_changed([run.commits[:1] for run in runs])
    later = _rows_changed([run.commits[1:] for run in runs])
    rows = held @ later + outlived @ first[1:]
    edges = np.diff(np.pad(held.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    who, begun = np.nonzero(edges == 1)
    _, ended = np.nonzero(edges == -1)
    lasting = ended == len(runs)
    current = np.zeros(len(masks), dtype=np.int64)
    current[who[lasting]] = versions[::-1].cumsum()[::-1][begun[lasting]]
    firsts = [run.first for run in runs]
    lasts = [*(version - 1 for version in firsts), None]
    spells: list[list[Spell]] = [[] for _ in masks]
    for i, start, end in zip(who.tolist(), begun.tolist(), ended.tolist(), strict=True):
        spells[i].append(Spell(firsts[start], lasts[end]))
    return [
        FdHistory(
            fd=Fd(state.table, tuple(names[c] for c in lhs), names[a]),
            spells=tuple(spells[i]),
            n_versions=int(versions.sum()),
            n_held=n_held,
            n_current=n_current,
            n_inserted=n_inserted,
            n_deleted=n_deleted,
            minimal=is_minimal,
            max_lhs=bound,
        )
        for i, (lhs, a, n_held, n_current, (n_inserted, n_deleted), is_minimal) in enumerate(
            zip(
                columns_of(masks),
                rhs.tolist(),
                (held @ versions).tolist(),
                current.tolist(),
                rows.tolist(),
                minimal.tolist(),
                strict=True,
            )
        )
    ]


def _rows_changed(parts: Sequence[Sequence[PastCommit[FdRef]]]) -> I64:
    """(inserted, deleted) rows of commits: int64[n, 2]."""
    sums = [(sum(c.n_inserted for c in part), sum(c.n_deleted for c in part)) for part in parts]
    return np.array(sums, dtype=np.int64).reshape(-1, 2)


def against(root: Root, state: TableState, lhs: Sequence[str], rhs: str | None) -> Against | None:
    """(pairs of rows, their share) against a dependency, or a key, at the version that a state is of.

    Of a table that is tracked with an error every version keeps this of what is minimal within it, and that
    nothing is against what holds. None where it is not kept. Cost: a pass over that version's covers.
    """
    ref, names = fd_ref(state), state.schema.names
    if ref is None or ref.approximate is None:
        return None
    positions = [names.index(column) for column in lhs]
    mask, column = columns_mask(positions, words_for(len(names))), -1 if rhs is None else names.index(rhs)
    masks, targets, violations = read_approximate(root, ref.approximate, len(names))
    parts = inside(masks, targets, mask, column)
    exact = column in positions or bool((violations[parts] == 0).any())
    if not exact and column >= 0:
        exact = bool(inside(*read_fds(root, ref.cover, len(names)), mask, column).any())
    same = parts & (masks == mask).all(axis=1)
    if not exact and not same.any():
        return None
    n = 0 if exact else int(violations[same][0])
    return n, n / max(1, n_pairs(state.n_rows))


def cover_of(fields: Mapping[str, Any]) -> tuple[FileRef, FdRef] | None:
    """Where the state of a table has its cover."""
    if not fields.get("fds"):
        return None
    ref = FdRef.from_dict(fields["fds"])
    return ref.cover, ref
