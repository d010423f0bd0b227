"""Keys as a class of dependencies: how a workspace tracks them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.cover import Cover
from holdfast.core.cover.news import MAX_LISTED, News, kind_of
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.evidence.refute import validate
from holdfast.core.evidence.sampling import look_for_keys
from holdfast.core.evidence.witnessed import WitnessedEvidence
from holdfast.core.rows.encoding import Look
from holdfast.core.rows.kernels.masks import first_container, mask_of, popcounts
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.table_state import TableState, read_masks
from holdfast.core.store.bundle import open_bundle
from holdfast.core.store.root import Root
from holdfast.core.words.change import Pair, Pin, Summary
from holdfast.core.words.column_sets import columns_of
from holdfast.core.words.dependency import Dependency
from holdfast.core.words.options import at_least_one
from holdfast.functional import keys
from holdfast.functional.duplicates import known_pairs
from holdfast.functional.group_violations import settled_pin
from holdfast.functional.key_news import key_news
from holdfast.functional.key_reading import PAIRS_SHOWN
from holdfast.functional.keys import KeyState
from holdfast.functional.refs import (
    Combinations,
    KeyRef,
    PinnedKey,
    combinations,
    key_ref,
    named_uccs,
    stored_keys,
    write_part,
)
from holdfast.kind import Crossing, TableClass, Tracking

U64 = NDArray[np.uint64]


class KeyClass(TableClass[KeyState]):
    """Minimal unique column combinations, on witnessed evidence."""

    def options(self, asked: Mapping[str, Any]) -> int:
        return at_least_one(asked, "max_columns", ", or None for no bound")

    def look(self, options: int) -> Look | None:
        return look_for_keys

    def discover(self, tracking: Tracking) -> KeyState:
        return keys.discover(tracking.looking("finding keys"), *tracking.seen, tracking.options)

    def shrunk(self, known: KeyState, crossing: Crossing) -> KeyState:
        after = keys.delete(crossing.remaining, known, crossing.row_ids)
        return replace(after, pins=known.pins)

    def grown(self, known: KeyState, crossing: Crossing) -> KeyState:
        if not crossing.added:
            return known
        after = keys.insert(crossing.after, known, crossing.added, crossing.index_columns)
        return replace(after, pins=known.pins)

    def settled(self, known: KeyState, crossing: Crossing) -> KeyState:
        """With the pins as they are now; what is wider than the bound on keys is looked up in the rows.

        Of a pinned key that is not unique the rows are counted: two passes over the table.
        """
        if not known.pins:
            return known
        names = crossing.state.schema.names
        minimal = [{names[c] for c in columns} for columns in columns_of(known.cover.masks)]
        pinned = [pin.columns for pin in known.pins]
        unique = [any(key <= set(columns) for key in minimal) for columns in pinned]
        bound = known.cover.max_size
        wide = [i for i, columns in enumerate(pinned) if not unique[i] and 0 < bound < len(columns)]
        if wide:
            n_words = known.cover.masks.shape[1]
            masks = [mask_of([names.index(c) for c in pinned[i]], n_words) for i in wide]
            refuted = validate(crossing.after, np.stack(masks)).refuted.tolist()
            for i, is_refuted in zip(wide, refuted, strict=True):
                unique[i] = not is_refuted
        pins = (settled_pin(crossing.after, pin, u) for pin, u in zip(known.pins, unique, strict=True))
        return replace(known, pins=tuple(pins))

    def probed(self, known: KeyState) -> U64:
        return known.cover.masks

    def news(self, before: KeyState, after: KeyState, crossing: Crossing) -> News:
        kind = kind_of(len(crossing.added), len(crossing.row_ids))
        return key_news(crossing.state.table, before, after, crossing.before, crossing.after, kind)

    def dependencies(self, known: KeyState, state: TableState) -> tuple[Sequence[Dependency], int]:
        masks = known.cover.masks
        shortest = masks[np.argsort(popcounts(masks), kind="stable")[:MAX_LISTED]]
        return named_uccs(state, shortest), len(masks) - len(shortest)

    def pins(self, known: KeyState, state: TableState, rows: Relation) -> tuple[Pin, ...]:
        return tuple(pin.pin(state.table, rows.n_rows, _shown(known, pin, rows)) for pin in known.pins)

    def summary(self, known: KeyState, state: TableState, *, tracked: bool) -> Summary:
        n, bound = len(known.cover), known.cover.max_size
        within = f" of at most {bound} column{'' if bound == 1 else 's'}" if bound else ""
        text = f"{n:,} minimal key{'' if n == 1 else 's'}{within}"
        return Summary("ucc", n, text, {"n_keys": n, "max_columns": bound or None})

    def keys(self, known: KeyState, state: TableState, widest: int | None = None) -> Combinations:
        masks = known.cover.masks
        if widest is not None:
            masks = masks[popcounts(masks) <= widest]
        return combinations(masks, state.schema.names)

    def witnesses(self, known: KeyState, columns: Sequence[int]) -> tuple[int, int] | None:
        masks = known.evidence.masks
        [at] = first_container(mask_of(columns, masks.shape[1])[None], masks)
        return None if at < 0 else tuple(known.evidence.witnesses[at, 0].tolist())

    def stored_keys(self, root: Root, state: TableState) -> Combinations | None:
        return stored_keys(root, state)

    def save(
        self, root: Root, state: TableState, known: KeyState, before: KeyState | None
    ) -> Mapping[str, Any]:
        ref = key_ref(state) if before is not None else None
        written = partial(write_part, root, state.folder)
        cover = ref.cover if ref and before and known.cover is before.cover else None
        evidence = ref.evidence if ref and before and known.evidence is before.evidence else None
        return KeyRef(
            cover or written("cover", {"masks": known.cover.masks}),
            evidence or written("evidence", known.evidence.to_arrays()),
            known.cover.max_size,
            known.pins,
        ).to_dict()

    def load(self, root: Root, state: TableState) -> KeyState | None:
        ref = key_ref(state)
        if ref is None:
            return None
        masks = read_masks(root, ref.cover, "cover", len(state.schema))
        bundle = open_bundle(root, ref.evidence, "evidence")
        arrays = {name: bundle.array(name) for name in ("masks", "witnesses")}
        evidence = WitnessedEvidence.from_arrays(arrays, masks.shape[1], WITNESSES)
        return KeyState(evidence, Cover(masks, len(state.schema), ref.max_columns), pins=ref.pins)


def _shown(known: KeyState, pin: PinnedKey, rows: Relation) -> tuple[Pair, ...]:
    """Pairs of rows that agree on a pinned key that does not hold, as far as they are known."""
    if pin.holds:
        return ()
    positions = [rows.schema.names.index(c) for c in pin.columns]
    return known_pairs(rows, known.evidence.masks, known.evidence.witnesses, positions, PAIRS_SHOWN)


CLASS = KeyClass()
