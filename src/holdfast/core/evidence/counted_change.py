"""A batch on counted evidence: what it compares, and what of it is evidence now or is none any more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.comparison import Compared, compare_deletes, compare_inserts
from holdfast.core.evidence.counted import CountedEvidence
from holdfast.core.evidence.proofs import Proofs
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.table_state import SegmentRef
from holdfast.core.words.predicate import PredicateSpace
from holdfast.errors import NOTHING_APPLIED, DamagedFileError

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


class CountedChange(NamedTuple):
    """The evidence after a batch; the masks that are new in it and those that are gone, with pairs of rows
    that prove it (`came`, `went`); and `delta`, masks and signed counts: what the batch added up to."""

    evidence: CountedEvidence
    new: U64
    gone: U64
    delta: tuple[U64, I64]
    came: Proofs
    went: Proofs


def changed(
    evidence: CountedEvidence,
    before: Relation,
    remaining: Relation,
    after: Relation,
    row_ids: I64,
    added: Sequence[SegmentRef],
    space: PredicateSpace | None = None,
) -> CountedChange:
    """The evidence after a batch: `before` it, `remaining` without the deleted rows, `after` it.

    Of agree sets, or of the predicates of a space. Cost: comparing the batch with all rows, or the rows that
    are left if they are few.
    """
    nothing = Compared.none(evidence.masks.shape[1])
    left = compare_deletes(before, remaining, row_ids, evidence, space) if len(row_ids) else nothing
    come = compare_inserts(after, added, space) if added else nothing
    delta = np.concatenate([come.masks, left.masks]), np.concatenate([come.counts, -left.counts])
    try:
        whole, new, gone = evidence.changed(*delta)
    except ValueError as error:
        known, those = ("agree sets", "are not those") if space is None else ("evidence", "is not that")
        raise DamagedFileError(
            f"the {known} kept in {before.folder!r} {those} of its rows: {error}. {NOTHING_APPLIED} "
            "Restore the workspace from a backup, or rebuild the table with 'holdfast track'."
        ) from error
    return CountedChange(whole, new, gone, delta, Proofs.among(come, new), Proofs.among(left, gone))
