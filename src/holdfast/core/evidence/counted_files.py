"""Counted evidence on disk: written whole now and then, and in between as what batches have added to it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.counted import CountedEvidence
from holdfast.core.rows.kernels.masks import n_words_for
from holdfast.core.store.bundle import open_bundle
from holdfast.core.store.files import FileRef
from holdfast.core.store.root import Root
from holdfast.errors import DamagedFileError

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
Delta = tuple[U64, I64]  # masks, and signed numbers of pairs

# Of so many masks a batch's change is written, and all of them again only after so many batches: 326,698
# agree sets of 222 columns are 13 MB, which took half of the time of a batch of 50 rows.
DELTAS_FROM = 20_000
MAX_DELTAS = 8
DELTA_SHARE = 0.25  # a larger change is no small one


def written_as_delta(n_masks: int, delta: Delta | None, deltas: Sequence[FileRef]) -> bool:
    """Whether only the change is written, behind the files there are."""
    small = delta is not None and len(delta[1]) <= DELTA_SHARE * n_masks
    return small and n_masks >= DELTAS_FROM and len(deltas) < MAX_DELTAS


def load_counted(
    root: Root, what: str, whole: FileRef, deltas: Sequence[FileRef], n_bits: int
) -> CountedEvidence:
    """Counted evidence: what was written whole, and what batches have added to it since."""
    bundle = open_bundle(root, whole, what)
    arrays = {name: bundle.array(name) for name in ("masks", "counts")}
    evidence = CountedEvidence.from_arrays(arrays, n_bits)
    for delta in deltas:
        bundle = open_bundle(root, delta, what)
        masks = bundle.array("masks").reshape(-1, n_words_for(n_bits))
        try:
            evidence, _, _ = evidence.changed(masks, bundle.array("counts"))
        except ValueError as error:
            raise DamagedFileError(
                f"the file {delta.name!r} of the workspace does not go with {whole.name!r}: {error}. "
                "Restore both from a backup, or rebuild the table with 'holdfast track'."
            ) from error
    return evidence
