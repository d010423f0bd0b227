"""The net change of a batch for keys: what left and what entered the cover, and which rows did it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.news import MAX_LISTED, Kind, News, witness_pairs
from holdfast.core.rows.kernels.masks import first_contained, first_container, popcounts, without
from holdfast.core.rows.relation import Relation
from holdfast.core.words.change import DependencyChange
from holdfast.core.words.column_sets import columns_of
from holdfast.core.words.dependency import Ucc
from holdfast.functional.keys import KeyState

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


def key_news(table: str, before: KeyState, after: KeyState, old: Relation, new: Relation, kind: Kind) -> News:
    """What a batch changed. `old` and `new` hold the rows of the witnesses before and after it.

    Of each sort the shortest MAX_LISTED are listed. Cost: a hash of each key, a few microseconds for each
    change that is listed; of a batch that inserts and deletes also a comparison of each change with each key.
    """
    if before.cover is after.cover:
        return News()

    def named(masks: U64) -> list[Ucc]:
        names = new.schema.names
        return [Ucc(table, tuple(names[c] for c in columns)) for columns in columns_of(masks)]

    removed = before.cover.masks[without(before.cover.masks, after.cover.masks)]
    entered = after.cover.masks[without(after.cover.masks, before.cover.masks)]
    # Left the cover: refuted by evidence, or implied by a narrower key, which only deletes bring.
    narrower = _narrower(removed, after.cover.masks) if kind == "both" else None
    refuted, narrowed = _parted(removed, narrower, inside=kind == "deletes")
    # Entered it: duplicates went, or a narrower key broke, which only inserts do.
    broken = _narrower(entered, before.cover.masks) if kind == "both" else None
    fresh, widened = _parted(entered, broken, inside=kind == "inserts")
    sorts = (refuted, narrowed, fresh, widened)
    unlisted = sum(max(0, len(masks) - MAX_LISTED) for masks in sorts)
    refuted, narrowed, fresh, widened = (masks[:MAX_LISTED] for masks in sorts)

    proof = first_container(refuted, after.evidence.masks)
    broke = named(refuted)
    pairs = witness_pairs(after.evidence.witnesses[proof], new, [u.columns for u in broke])
    changes = [
        DependencyChange("broke", u, "is no longer unique", p) for u, p in zip(broke, pairs, strict=True)
    ]
    inner = named(after.cover.masks[_narrower(narrowed, after.cover.masks)])
    implied = [
        DependencyChange("implied", u, f"still holds, but {i.name} alone is a key now")
        for u, i in zip(named(narrowed), inner, strict=True)
    ]

    inner = named(before.cover.masks[_narrower(widened, before.cover.masks)])
    appeared = [
        DependencyChange("appeared", u, f"is minimal now that {i.name} broke")
        for u, i in zip(named(widened), inner, strict=True)
    ]
    ended = first_container(fresh, before.evidence.masks)
    dead = before.evidence.witnesses[ended]
    dead[ended < 0] = -1
    unique_now = named(fresh)
    pairs = witness_pairs(dead, old, [u.columns for u in unique_now])
    appeared = [
        DependencyChange("appeared", u, "is unique now; its duplicates are gone" if p else "is unique now", p)
        for u, p in zip(unique_now, pairs, strict=True)
    ] + appeared
    return News((*_sorted(changes), *_sorted(appeared), *_sorted(implied)), unlisted)


def _parted(masks: U64, narrower: I64 | None, *, inside: bool) -> tuple[U64, U64]:
    """(those without a narrower key, those with one); where nobody looked, all are one or the other."""
    if narrower is not None:
        return masks[narrower < 0], masks[narrower >= 0]
    return (masks[:0], masks) if inside else (masks, masks[:0])


def _narrower(masks: U64, cover: U64) -> I64:
    """For each set the position of a set of the cover inside it, or -1; none of the sets is in the cover."""
    widest = int(popcounts(masks).max(initial=0))
    smaller = np.flatnonzero(popcounts(cover) < widest)
    positions = first_contained(masks, cover[smaller])
    return np.where(positions >= 0, smaller[positions], -1) if len(smaller) else positions


def _sorted(changes: Sequence[DependencyChange]) -> list[DependencyChange]:
    return sorted(changes, key=lambda c: (not c.witnesses, len(c.dependency.columns)))
