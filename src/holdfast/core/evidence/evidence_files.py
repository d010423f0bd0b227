"""Evidence on disk: written whole now and then, and in between as what batches have changed of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.counted import CountedEvidence
from holdfast.core.evidence.dc_evidence import DcEvidence
from holdfast.core.evidence.witnessed_masks import evidence_in
from holdfast.core.rows.kernels.masks import n_words_for, unique_masks
from holdfast.core.store.bundle import open_bundle
from holdfast.core.store.files import FileRef
from holdfast.core.store.root import Root
from holdfast.errors import DamagedFileError

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
Delta = tuple[U64, I64]  # masks, and signed numbers of pairs

# Of so many masks a batch's change is written, and all of them again only after so many batches: 326,698
# agree sets of 222 columns are 13 MB, which took half of the time of a batch of 50 rows. Changes of witnesses
# are put together before they are applied, so there may be more of them: 1.9 million are 150 MB.
DELTAS_FROM = 20_000
MAX_DELTAS = 8
MAX_WITNESS_DELTAS = 32
DELTA_SHARE = 0.25  # a larger change is no small one
DELTAS_SHARE = 1.0  # changes that are more bytes than the whole take longer to read than it


def written_as_delta(
    n_masks: int, n_changed: int, whole: FileRef, deltas: Sequence[FileRef], *, witnessed: bool = False
) -> bool:
    """Whether only the change is written, behind the files there are."""
    few = len(deltas) < (MAX_WITNESS_DELTAS if witnessed else MAX_DELTAS)
    short = sum(delta.length for delta in deltas) <= DELTAS_SHARE * whole.length
    return few and short and n_masks >= DELTAS_FROM and n_changed <= DELTA_SHARE * n_masks


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
            raise _apart(delta, whole, error) from error
    return evidence


def load_witnessed(
    root: Root, what: str, whole: FileRef, deltas: Sequence[FileRef], n_words: int, n_witnesses: int
) -> DcEvidence:
    """Witnessed evidence: what was written whole, with what batches have changed since."""
    bundle = open_bundle(root, whole, what)
    arrays = {name: bundle.array(name) for name in ("masks", "witnesses")}
    evidence = DcEvidence.from_arrays(arrays, n_words, n_witnesses)
    if not deltas:
        return evidence
    newest_first = [open_bundle(root, delta, what) for delta in reversed(deltas)]
    masks, witnesses = evidence_in(newest_first, n_words, n_witnesses, 2)
    newest, _ = unique_masks(masks)
    evidence = evidence.with_delta(masks[newest], witnesses[newest])
    n = int(newest_first[0].array("n")[0])
    if len(evidence) != n:
        raise _apart(deltas[-1], whole, f"{len(evidence):,} masks come of them, not {n:,}")
    return evidence


def _apart(delta: FileRef, whole: FileRef, why: object) -> DamagedFileError:
    return DamagedFileError(
        f"the file {delta.name!r} of the workspace does not go with {whole.name!r}: {why}. "
        "Restore both from a backup, or rebuild the table with 'holdfast track'."
    )
