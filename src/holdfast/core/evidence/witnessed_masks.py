"""Masks with pairs of rows that prove them: as tasks answer with them, and as states hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from holdfast.core.store.bundle import Bundle

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class WitnessedMasks:
    """Masks uint64[n, n_words], all different; witnesses int64[n, k, 2]: pairs of row ids, -1 for none."""

    masks: U64
    witnesses: I64

    @classmethod
    def empty(cls, n_words: int, n_witnesses: int) -> Self:
        return cls(np.empty((0, n_words), np.uint64), np.empty((0, n_witnesses, 2), np.int64))

    def __len__(self) -> int:
        return len(self.masks)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {"masks": self.masks, "witnesses": self.witnesses}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], n_words: int, n_witnesses: int) -> Self:
        return cls(arrays["masks"].reshape(-1, n_words), arrays["witnesses"].reshape(-1, n_witnesses, 2))


def evidence_in(results: Sequence[Bundle], n_words: int, *shape: int) -> tuple[U64, I64]:
    """(masks, witnesses) in the results of tasks, together; `shape` is that of the witnesses of a mask."""
    masks = [r.array("masks").reshape(-1, n_words) for r in results]
    witnesses = [r.array("witnesses").reshape(-1, *shape) for r in results]
    return (
        np.concatenate(masks or [np.empty((0, n_words), np.uint64)]),
        np.concatenate(witnesses or [np.empty((0, *shape), np.int64)]),
    )
