"""Reading keys: which hold, what is not unique, why and since when. Mostly from covers, without kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.history import WEIGHED, Against, Life, Past
from holdfast.core.cover.stability import Stability
from holdfast.core.rows.table_state import TableState, read_masks
from holdfast.core.rows.tables import Tables
from holdfast.core.store.files import FileRef
from holdfast.core.store.ledger_rows import ChangeRow, CommitRow, turned_dict
from holdfast.core.words.change import Pair, Pin
from holdfast.core.words.column_sets import MaskSet, columns_mask, masks_from, words_for
from holdfast.core.words.dependency import Dependency, Ucc
from holdfast.core.words.display import SelfExplaining
from holdfast.errors import UsageError
from holdfast.functional.refs import Combinations, KeyRef, key_ref, named_uccs, stored_keys

if TYPE_CHECKING:
    from holdfast.core.cover.violating_rows import ViolatingRows

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
PAIRS_SHOWN = 4
# Masks of covers that are held open at most: with what they are looked up by, some 40 bytes each and more of
# wide tables. A cover counts as so many more.
MAX_MASKS, COVER_MASKS = 1 << 21, 1 << 10


@dataclass(frozen=True, slots=True, repr=False)
class KeyExplanation(SelfExplaining):
    """All about one combination of columns: whether it is unique now, since when, and why."""

    table: str
    columns: tuple[str, ...]
    version: int
    unique: bool
    since: int | None  # the first version of the current spell; None where a bound hides it
    minimal: bool | None  # None where a bound hides it
    keys: tuple[Dependency, ...]  # the minimal keys inside it
    duplicates: tuple[Pair, ...]  # rows that prove it is not unique
    turned: CommitRow | None  # the commit that made it so, if it was otherwise before
    turned_by: tuple[ChangeRow, ...]  # what that commit changed, with the rows that did it
    pinned: bool

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "columns": list(self.columns),
            "version": self.version,
            "unique": self.unique,
            "since": self.since,
            "minimal": self.minimal,
            "keys": [k.to_dict() for k in self.keys],
            "duplicates": [[r.to_dict() for r in pair] for pair in self.duplicates],
            "turned": turned_dict(self.turned, self.turned_by),
            "pinned": self.pinned,
        }


class KeyReader:
    """Keys: minimal combinations of columns that are unique."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._covers: dict[str, MaskSet] = {}
        self._past: Past[KeyRef] = Past(tables, _cover_of)

    def max_columns(self, table: str, at: int | None = None) -> int | None:
        """The bound on the size of keys that a table is tracked with, if there is one."""
        return self.max_columns_of(self._tables.state(table, at)) or None

    def max_columns_of(self, state: TableState) -> int:
        """The bound on the size of keys; 0 where there is none."""
        ref = key_ref(state)
        return 0 if ref is None else ref.max_columns

    def listed(self, state: TableState) -> list[Ucc]:
        """The minimal keys of a table, short ones first; none where they are not tracked."""
        ref = key_ref(state)
        return [] if ref is None else named_uccs(state, self._cover(ref, state))

    def combinations(self, state: TableState) -> Combinations | None:
        """The minimal keys as names of columns; None where they are not tracked."""
        return stored_keys(self._tables.root, state)

    def cover(self, state: TableState) -> U64 | None:
        """The minimal keys as masks; None where they are not tracked."""
        ref = key_ref(state)
        return None if ref is None else self._cover(ref, state)

    def since(self, state: TableState, keys: Sequence[Ucc], until: int) -> NDArray[np.int64]:
        """Since which version each of some keys, which hold at one, has held: int64[n]."""
        asked = [[p for p in map(state.schema.position, key.columns) if p is not None] for key in keys]

        def holds(ref: KeyRef, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
            cover = self._cover(ref, state)
            return np.array([_inside(cover, asked[i]).any() for i in numbers])

        return self._past.since(state.table, len(keys), until, holds)

    def pins(self, state: TableState) -> list[Pin]:
        ref = key_ref(state)
        return [] if ref is None else [pin.pin(state.table, state.n_rows) for pin in ref.pins]

    def non_uniques(self, table: str, at: int | None = None) -> list[tuple[str, ...]]:
        """The maximal combinations that are not unique; of a table at its newest version."""
        state = self._tables.state(table, at)
        ref = self.needed(state)
        if ref.max_columns:
            raise UsageError(
                f"table {table!r} is tracked with keys of at most {ref.max_columns} columns, which leaves "
                "its maximal non-uniques open. Track it without --max-columns to see them."
            )
        newest = key_ref(self._tables.state(table))
        if newest is None or ref.evidence != newest.evidence:
            # Evidence is kept for the newest version only; of older ones the cover tells the same.
            from holdfast.core.cover.dual import non_uniques_of

            masks = non_uniques_of(self._cover(ref, state), len(state.schema), state.n_rows)
        else:
            from holdfast.core.rows.kernels.masks import maximal_masks

            masks = read_masks(self._tables.root, ref.evidence, "evidence", len(state.schema))
            masks = masks[maximal_masks(masks)]
        return [u.columns for u in named_uccs(state, masks)]

    def explain(self, table: str, columns: Sequence[str]) -> KeyExplanation:
        """Whether a combination is unique now, since which version, and the rows that prove or broke it."""
        base, state = self._tables.current(table)
        ref = self.needed(state)
        positions = self._tables.positions(state, base, columns)
        names = tuple(state.schema.names[p] for p in positions)
        keys = self.inside(state, positions)
        unique = bool(keys)
        duplicates: tuple[Pair, ...] = ()
        minimal: bool | None = any(key.columns == names for key in keys)
        if not unique:
            duplicates = self.duplicates(state, positions)
            unique = not duplicates  # possible only under a bound on the size of keys
            if unique:
                minimal = True if len(positions) == ref.max_columns + 1 else None
        since: int | None
        since, turned = self._spell(state, base, positions, now=unique)
        wide = 0 < ref.max_columns < len(positions)
        if wide and (not keys or turned is not None):
            since, turned = None, None  # covers say nothing of wider combinations without a key inside
        return KeyExplanation(
            table=table,
            columns=names,
            version=base,
            unique=unique,
            since=since,
            minimal=minimal,
            keys=tuple(keys),
            duplicates=duplicates,
            turned=turned,
            turned_by=() if turned is None else self._turned_by(turned, names, unique=unique),
            pinned=any(pin.columns == names for pin in ref.pins),
        )

    def violations(self, table: str, columns: Sequence[str], *, limit: int | None = None) -> ViolatingRows:
        """The rows that agree on the columns with another one now: the largest groups first.

        Each with whether it is one of those to remove: of a group all but the oldest. Keys need not be
        tracked. One job; `limit`: of the first rows only.
        """
        from holdfast.functional.group_violations import key_violations

        base, state = self._tables.current(table)
        positions = self._tables.positions(state, base, columns)
        return key_violations(self._tables.rows(state), table, base, positions, limit)

    def life(self, table: str, columns: Sequence[str]) -> Life:
        """When a combination was unique and when not, since the table was tracked."""
        base, state = self._tables.current(table)
        self.needed(state)
        positions = self._tables.positions(state, base, columns)

        def unique(ref: KeyRef) -> bool | None:
            if _inside(self._cover(ref, state), positions).any():
                return True
            return None if 0 < ref.max_columns < len(positions) else False  # a cover with a bound is silent

        return self._past.life(table, base, unique)

    def against(self, state: TableState, table: str, columns: Sequence[str]) -> Against | None:
        """How many pairs of rows agreed on the columns, and their share, by the state of a version."""
        from holdfast.functional.fd_past import against

        return against(self._tables.root, state, columns, None)

    def inside(self, state: TableState, positions: Sequence[int]) -> list[Ucc]:
        """The minimal keys among some columns."""
        masks = self._cover(self.needed(state), state)
        return named_uccs(state, masks[_inside(masks, positions)])

    def duplicates(self, state: TableState, positions: Sequence[int]) -> tuple[Pair, ...]:
        """Pairs of rows that agree on the columns; from the evidence, or else from the data."""
        from holdfast.functional.duplicates import duplicate_pairs

        with self._tables.opened(state) as rows:
            return duplicate_pairs(rows, self.needed(state), positions, PAIRS_SHOWN)

    def needed(self, state: TableState) -> KeyRef:
        """How the keys of a table are kept, or the error that they are not."""
        ref = key_ref(state)
        if ref is None:
            raise UsageError(
                f"the keys of table {state.table!r} are not tracked, only: {', '.join(state.kinds)}. "
                "Track it anew with --kinds ucc to see them."
            )
        return ref

    def outlived(self, state: TableState, keys: Sequence[tuple[str, ...]], base: int) -> Stability:
        """What each of some keys has outlived up to a version, as far as the WEIGHED newest commits say.

        `state`: the table then. A key that is implied by a narrower one holds, too. Cost: a hash of each key
        for each different cover; a process reads a commit once.
        """
        table = state.table
        if not keys or key_ref(state) is None:
            return Stability(*np.zeros((2, len(keys)), dtype=np.int64))
        masks = _masks(state, keys)

        def holds(ref: KeyRef, numbers: I64) -> NDArray[np.bool_]:
            return self._mask_set(ref, state).inside(masks[numbers])

        held = self._past.held(table, len(keys), base + 1, holds, newest=WEIGHED)
        return self._past.stability(table, held, base, newest=WEIGHED)

    def remainders(self, state: TableState, keys: Sequence[tuple[str, ...]], base: int) -> NDArray[np.bool_]:
        """Which of some keys a narrower one implied at one of the WEIGHED newest commits: bool[n]."""
        left = np.zeros(len(keys), dtype=np.bool_)
        if keys and key_ref(state) is not None:
            masks = _masks(state, keys)
            for run in self._past.runs(state.table, base, newest=WEIGHED):
                cover = self._mask_set(run.ref, state)
                left |= cover.inside(masks) & (cover.places(masks) < 0)
        return left

    # -- inside -------------------------------------------------------------------------------

    def _cover(self, ref: KeyRef, state: TableState) -> U64:
        return self._mask_set(ref, state).masks

    def _mask_set(self, ref: KeyRef, state: TableState) -> MaskSet:
        cover = self._covers.get(ref.cover.name)
        if cover is None:
            cover = MaskSet(read_masks(self._tables.root, ref.cover, "cover", len(state.schema)))
            self._covers[ref.cover.name] = cover
            for oldest in list(self._covers):  # other threads read, too
                if sum(map(_weight, list(self._covers.values()))) <= MAX_MASKS:
                    break
                self._covers.pop(oldest, None)
        return cover

    def _spell(
        self, state: TableState, base: int, positions: Sequence[int], *, now: bool
    ) -> tuple[int, CommitRow | None]:
        def holds(ref: KeyRef) -> bool:
            return bool(_inside(self._cover(ref, state), positions).any())

        return self._past.spell(state.table, base, holds, now=now)

    def _turned_by(self, turned: CommitRow, names: Sequence[str], *, unique: bool) -> tuple[ChangeRow, ...]:
        """What a commit recorded of keys inside a combination."""
        version, wanted = turned.version, "appeared" if unique else "broke"
        changes = self._tables.ledger.changes(turned.table, since=version - 1, until=version, kind="ucc")
        about = [c for c in changes if c.change == wanted and set(c.dependency["columns"]) <= set(names)]
        return tuple(about[:PAIRS_SHOWN])


def _inside(masks: U64, positions: Sequence[int]) -> NDArray[np.bool_]:
    """Which masks are parts of some columns."""
    outside = ~columns_mask(positions, masks.shape[1])
    return np.logical_not((masks & outside).any(axis=1))


def _masks(state: TableState, keys: Sequence[tuple[str, ...]]) -> U64:
    """Keys as masks, uint64[n, n_words]."""
    position = {name: p for p, name in enumerate(state.schema.names)}
    return masks_from([[position[name] for name in key] for key in keys], words_for(len(position)))


def _weight(cover: MaskSet) -> int:
    return len(cover.masks) + COVER_MASKS


def _cover_of(fields: Mapping[str, Any]) -> tuple[FileRef, KeyRef] | None:
    if not fields.get("cover"):
        return None
    ref = KeyRef.from_dict(fields)
    return ref.cover, ref
