"""Functional dependencies, discovered and maintained: on counted evidence (DynASt) or on witnessed evidence.

The evidence of a pair of rows is its agree set; the cover is, for each right-hand side, the minimal hitting
sets of the complements of the agree sets that lack it (`fd_cover.py`). What differs is the evidence:

- *counted* (`fd_counted.py`): every agree set with its number of pairs. A batch is compared with all rows,
  so its cost is rows x batch; nothing is ever validated, and every error is known exactly.
- *witnessed* (`fd_witnessed.py`): only agree sets that matter. A batch is probed on indexed columns, so no
  pass over all pairs is ever made; what cannot be decided so is validated on the rows.

Both give the same cover. A cost model picks one: rows x expected batch x columns against a budget.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.approximate import ApproximateCover
from holdfast.core.evidence.counted import CountedEvidence
from holdfast.core.evidence.evidence_files import load_counted, written_as_delta
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.evidence.proofs import Proofs
from holdfast.core.rows.table_state import TableState
from holdfast.core.store.bundle import open_bundle
from holdfast.core.store.files import FileRef
from holdfast.core.store.root import Root
from holdfast.core.words.options import EvidenceKind
from holdfast.functional.fd_cover import FdCover, Relevant
from holdfast.functional.fd_evidence import FdEvidence
from holdfast.functional.refs import FdRef, fd_ref, read_approximate, read_fds, write_part

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

# A batch is expected to be this share of the rows; comparing it with all of them may take so many comparisons
# of two values (0.2 ns each on one core).
EXPECTED_BATCH = 0.01
COMPARISON_BUDGET = 2e9


@dataclass(frozen=True, slots=True)
class FdOptions:
    """How the functional dependencies of a table are kept."""

    max_lhs: int = 0  # 0: left-hand sides of any size
    max_error: float = 0.0  # 0: only those that hold exactly
    evidence: EvidenceKind | None = None  # None: as the cost model says


@dataclass(frozen=True)
class FdState:
    """What is known of a table's functional dependencies; exact for the relation it was computed on."""

    evidence: CountedEvidence | FdEvidence
    cover: FdCover
    relevant: Relevant | None  # of counted evidence; None where the cover is found without it
    max_error: float = 0.0
    approximate: ApproximateCover | None = None
    rounds: int = 0  # validation jobs of the last step
    delta: tuple[U64, I64] | None = None  # what the last step added to counted evidence: masks, numbers
    came: Proofs = field(default_factory=lambda: Proofs.none(1))
    went: Proofs = field(default_factory=lambda: Proofs.none(1))

    @property
    def evidence_kind(self) -> EvidenceKind:
        return "counted" if isinstance(self.evidence, CountedEvidence) else "witnessed"


def chosen_evidence(options: FdOptions, n_rows: int, n_columns: int) -> EvidenceKind:
    """Counted where comparing an expected batch with all rows is cheap, or where errors are asked for.

    >>> chosen_evidence(FdOptions(), 32_561, 15), chosen_evidence(FdOptions(), 1_000_000, 16)
    ('counted', 'witnessed')
    """
    if options.evidence is not None:
        return options.evidence
    comparisons = n_rows * max(1.0, n_rows * EXPECTED_BATCH) * n_columns
    return "counted" if options.max_error or comparisons <= COMPARISON_BUDGET else "witnessed"


# -- on disk -----------------------------------------------------------------------------------


def save(root: Root, folder: str, state: FdState, before: FdState | None, ref: FdRef | None) -> FdRef:
    """Write what is new; what the last commit has is named again."""
    written = partial(write_part, root, folder)
    same = before if ref is not None else None
    cover = ref.cover if ref and same and state.cover is same.cover else None
    evidence, deltas = _named_again(state, same, ref)
    approximate = ref.approximate if ref and same and state.approximate is same.approximate else None
    if state.approximate is not None and approximate is None:
        approximate = written("approximate", state.approximate.to_arrays())
    more = state.relevant.to_arrays() if state.relevant is not None else {}
    if evidence is None:
        evidence = written("agreement", {**state.evidence.to_arrays(), **more})
    elif same is not None and state.evidence is not same.evidence:
        assert state.delta is not None
        masks, counts = state.delta
        deltas = (*deltas, written("agreement", {"masks": masks, "counts": counts, **more}))
    return FdRef(
        state.evidence_kind,
        state.cover.max_lhs,
        state.max_error,
        cover or written("fds", state.cover.to_arrays()),
        evidence,
        approximate,
        deltas,
    )


def _named_again(
    state: FdState, same: FdState | None, ref: FdRef | None
) -> tuple[FileRef | None, tuple[FileRef, ...]]:
    """The files of evidence that the next commit names, too; None if all of it is to be written."""
    if ref is None or same is None:
        return None, ()
    if state.evidence is same.evidence:
        return ref.evidence, ref.deltas
    delta, files = state.delta, (ref.evidence, ref.deltas)
    if delta is None or not written_as_delta(len(state.evidence), len(delta[1]), *files):
        return None, ()
    return ref.evidence, ref.deltas


def load(root: Root, state: TableState) -> FdState | None:
    """The functional dependencies and their evidence, as the commit names them; None where not tracked."""
    ref, n_columns = fd_ref(state), len(state.schema)
    if ref is None:
        return None
    masks, rhs = read_fds(root, ref.cover, n_columns)
    cover = FdCover.of_flat(masks, rhs, n_columns, ref.max_lhs)
    evidence: CountedEvidence | FdEvidence
    relevant = None
    if ref.evidence_kind == "counted":
        evidence = load_counted(root, "agreement", ref.evidence, ref.deltas, n_columns)
        newest = open_bundle(root, (ref.evidence, *ref.deltas)[-1], "agreement")
        if "relevant" in newest:
            arrays = {name: newest.array(name) for name in ("relevant", "relevant_for")}
            relevant = Relevant.from_arrays(arrays, n_columns)
    else:
        bundle = open_bundle(root, ref.evidence, "agreement")
        arrays = {name: bundle.array(name) for name in ("masks", "witnesses")}
        evidence = FdEvidence.from_arrays(arrays, n_columns, WITNESSES)
    approximate = None
    if ref.approximate is not None:
        approximate = ApproximateCover(*read_approximate(root, ref.approximate, n_columns))
    return FdState(evidence, cover, relevant, ref.max_error, approximate)
