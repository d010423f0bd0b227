"""Denial constraints, discovered and maintained: on counted evidence or on witnessed evidence.

The evidence of a pair of rows (t, s) is the set of predicates that it satisfies; a constraint holds iff it is
part of no evidence. What is kept and listed are the most general constraints that hold (decision 0012):
`denial/dc_cover.py`. What differs is the evidence:

- *counted* (`dc_counted.py`): every evidence with its number of pairs. A batch is compared with all rows;
  nothing is ever validated, and every error is known exactly.
- *witnessed* (`dc_witnessed.py`): every evidence with a few pairs that prove it. A batch is probed on
  equality and order indexes, chosen so that each constraint is served by one (IncDC, section 7); no pass over
  all pairs is ever made.

Both give the same cover. A cost model picks one by the number of pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.kernels.search import Watch
from holdfast.core.cover.kernels.vertices import Space
from holdfast.core.evidence.counted import CountedEvidence
from holdfast.core.evidence.dc_evidence import DcEvidence
from holdfast.core.evidence.evidence_files import Delta, load_counted, load_witnessed, written_as_delta
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.evidence.proofs import Proofs
from holdfast.core.rows.kernels.masks import popcounts
from holdfast.core.rows.table_state import TableState
from holdfast.core.store.bundle import open_bundle, write_bundle
from holdfast.core.store.files import FileRef, unique_name
from holdfast.core.store.root import Root
from holdfast.core.words.column_sets import words_for
from holdfast.core.words.options import EvidenceKind
from holdfast.core.words.predicate import Operator, PredicateSpace
from holdfast.denial.approximate_dcs import ApproximateDcs, approximate_dcs
from holdfast.denial.circular_dcs import telling
from holdfast.denial.constraints import (
    DEFAULT_LIMITS,
    DcLimits,
    DcRef,
    KeptAccess,
    dc_ref,
    read_dcs,
    read_near_dcs,
)
from holdfast.denial.dc_cover import DcCover
from holdfast.denial.forms import restricted
from holdfast.errors import UsageError

U64 = NDArray[np.uint64]

# All pairs of a table are compared once if that is at most so many comparisons of two values, 0.2 to 0.4 ns
# each on one core: half a minute.
COMPARISON_BUDGET = 1e11
COMPARISON_S = 0.3e-9
# What one more evidence costs: it is hashed, sorted, sent and merged.
EVIDENCE_S = 2e-6
EQUALITY: frozenset[Operator] = frozenset({"=", "!="})


@dataclass(frozen=True, slots=True)
class DcOptions:
    """How the denial constraints of a table are kept."""

    max_predicates: int = 0  # 0: constraints of any size
    max_error: float = 0.0  # 0: only those that hold exactly
    evidence: EvidenceKind | None = None  # None: as the cost model says
    operators: tuple[Operator, ...] = ()  # (): all
    columns: tuple[str, ...] | None = None  # patterns; None: all
    exclude: tuple[str, ...] = ()
    within_columns: bool = False  # a column is compared with itself only
    limits: DcLimits = DEFAULT_LIMITS

    @property
    def by_order(self) -> bool:
        """Whether any operator but = and != may be used."""
        return not self.operators or not EQUALITY.issuperset(self.operators)


@dataclass(frozen=True)
class DcState:
    """What is known of a table's denial constraints; exact for the relation it was computed on."""

    space: PredicateSpace
    evidence: CountedEvidence | DcEvidence
    cover: DcCover
    max_error: float = 0.0
    approximate: ApproximateDcs | None = None
    operators: tuple[Operator, ...] = ()
    chosen: bool = False  # only some columns take part
    accesses: tuple[KeptAccess, ...] = ()  # how batches are looked up, on witnessed evidence
    chosen_for: tuple[int, int] = (0, 0)  # see DcRef
    within_columns: bool = False
    limits: DcLimits = DEFAULT_LIMITS
    stopped: bool = False  # see DcRef
    rounds: int = 0  # validation jobs of the last step
    delta: Delta | None = None  # what the last step added to counted evidence
    came: Proofs = field(default_factory=lambda: Proofs.none(1))
    went: Proofs = field(default_factory=lambda: Proofs.none(1))

    @property
    def evidence_kind(self) -> EvidenceKind:
        return "counted" if isinstance(self.evidence, CountedEvidence) else "witnessed"

    @property
    def n_words(self) -> int:
        return n_words_of(self.space)

    def afresh(self) -> DcState:
        """The same at the beginning of a step, of which nothing is known yet."""
        evidence, none = self.evidence, Proofs.none(self.n_words)
        if isinstance(evidence, DcEvidence):
            evidence = evidence.afresh()
        return replace(self, evidence=evidence, rounds=0, delta=None, came=none, went=none)

    def bounded(self, max_predicates: int) -> DcState:
        """The same under a bound that is not wider."""
        cover, near = self.cover.bounded(max_predicates), self.approximate
        if cover is self.cover:
            return self
        if near is not None:
            short = popcounts(near.masks) <= max_predicates
            near = ApproximateDcs(near.masks[short], near.violations[short])
        return replace(self, cover=cover, approximate=near)

    @cached_property
    def listed(self) -> U64:
        """The constraints of the cover that say something, written with the operators that are wanted."""
        return telling(in_operators(self.cover.masks, self.space, self.operators), self.space)


def n_words_of(space: PredicateSpace) -> int:
    return words_for(space.n_predicates)


def kernel_space(space: PredicateSpace) -> Space:
    """The space as the cover kernel wants it."""
    return Space(
        np.array(space.group_of, dtype=np.int32),
        np.array(space.op_of, dtype=np.int32),
        np.array(space.mirror, dtype=np.int32),
        general=True,
    )


def chosen_evidence(options: DcOptions, n_rows: int, n_groups: int, table: str, cores: int) -> EvidenceKind:
    """Counted where comparing all pairs once is cheap.

    Approximate constraints need counts: where these are not cheap that is an error which tells the cost.
    """
    if options.evidence is not None:
        return options.evidence
    n_pairs = n_rows * max(0, n_rows - 1) / 2
    comparisons = n_pairs * max(1, n_groups)
    if comparisons <= COMPARISON_BUDGET:
        return "counted"
    if options.max_error:
        minutes = comparisons * COMPARISON_S / max(1, cores) / 60
        batch = 1000.0 * n_rows * n_groups * COMPARISON_S / max(1, cores)
        raise UsageError(
            f"approximate denial constraints of table {table!r} need counted evidence: {n_pairs:.3g} pairs "
            f"of rows compared on {n_groups} pairs of columns, about {minutes:,.0f} minutes here, and then "
            f"about {batch:,.1f} s for every 1,000 rows that change. Nothing was changed. Leave out "
            "--max-error, choose fewer columns with --columns, or add --evidence counted to do it still."
        )
    return "witnessed"


def estimate(kind: EvidenceKind, n_rows: int, space: PredicateSpace, cores: int, n_evidences: int) -> str:
    """What is about to be done, and how long it will take; the search after it has a limit instead."""
    if kind == "witnessed":
        return f"looking at {n_rows:,} rows for violations, by {space.n_comparisons:,} predicates"
    n_pairs = n_rows * max(0, n_rows - 1) // 2
    seconds = n_pairs * max(1, len(space.groups)) * COMPARISON_S / max(1, cores) + n_evidences * EVIDENCE_S
    return (
        f"comparing {n_pairs:,} pairs of rows by {space.n_comparisons:,} predicates, about "
        f"{float(f'{n_evidences:.2g}'):,.0f} different outcomes and {float(f'{seconds:.1g}'):g} s"
    )


def in_operators(masks: U64, space: PredicateSpace, operators: Sequence[Operator]) -> U64:
    """Constraints as they are listed: with some operators only, if not all are wanted."""
    if not operators or EQUALITY.issuperset(operators):
        return masks  # of = and != alone the space is made
    return restricted(masks, space, operators)


def near_cover(
    evidence: CountedEvidence,
    space: PredicateSpace,
    operators: Sequence[Operator],
    n_rows: int,
    max_error: float,
    max_predicates: int,
    watch: Watch | None = None,
) -> ApproximateDcs:
    """The minimal constraints within an error, written with the operators that are wanted."""
    near = approximate_dcs(evidence, kernel_space(space), n_rows, max_error, max_predicates, watch)
    masks = in_operators(near.masks, space, operators)
    return near if masks is near.masks else ApproximateDcs(masks, evidence.agreeing(masks))


# -- on disk -----------------------------------------------------------------------------------


def save(root: Root, folder: str, state: DcState, previous: DcState | None, ref: DcRef | None) -> DcRef:
    """Write what is new; what the last commit has is named again."""

    def written(what: str, arrays: Mapping[str, NDArray[Any]]) -> FileRef:
        return write_bundle(root, unique_name(folder, what, ".arrow"), dict(arrays), {"holdfast": what})

    before = previous if ref is not None else None
    cover = ref.cover if ref and before and state.cover.masks is before.cover.masks else None
    support = ref.support if ref and before and state.cover.support is before.cover.support else None
    if state.cover.support is not None and support is None:
        support = written("support", {"masks": state.cover.support})
    near = ref.approximate if ref and before and state.approximate is before.approximate else None
    if state.approximate is not None and near is None:
        near = written("nearly", state.approximate.to_arrays())
    evidence: FileRef | None = None
    deltas: tuple[FileRef, ...] = ()
    if ref is not None and before is not None:
        if _untouched(state.evidence, before.evidence):
            evidence, deltas = ref.evidence, ref.deltas
        elif (delta := _delta(state, ref)) is not None:
            evidence, deltas = ref.evidence, (*ref.deltas, written("comparisons", delta))
    return DcRef(
        state.evidence_kind,
        state.space,
        state.cover.max_size,
        state.max_error,
        state.operators,
        state.chosen,
        cover or written("dcs", {"masks": state.cover.masks}),
        evidence or written("comparisons", state.evidence.to_arrays()),
        near,
        deltas,
        state.accesses,
        state.chosen_for,
        state.within_columns,
        state.limits,
        state.stopped,
        support,
    )


def _untouched(evidence: CountedEvidence | DcEvidence, before: CountedEvidence | DcEvidence) -> bool:
    if isinstance(evidence, DcEvidence) and isinstance(before, DcEvidence):
        return evidence.masks is before.masks and evidence.witnesses is before.witnesses
    return evidence is before


def _delta(state: DcState, ref: DcRef) -> Mapping[str, NDArray[Any]] | None:
    """What the step has changed of the evidence, as it is written; None if all of it is."""
    evidence, files = state.evidence, (ref.evidence, ref.deltas)
    if isinstance(evidence, CountedEvidence):
        if state.delta is None or not written_as_delta(len(evidence), len(state.delta[1]), *files):
            return None
        return dict(zip(("masks", "counts"), state.delta, strict=True))
    changed = evidence.changed
    if changed is None or not written_as_delta(len(evidence), len(changed), *files, witnessed=True):
        return None
    masks, witnesses = evidence.delta()
    return {"masks": masks, "witnesses": witnesses, "n": np.array([len(evidence)])}


def load_evidence(root: Root, ref: DcRef) -> CountedEvidence | DcEvidence:
    """What the commit names, with the changes since it was written whole."""
    if ref.evidence_kind == "counted":
        return load_counted(root, "comparisons", ref.evidence, ref.deltas, ref.space.n_predicates)
    return load_witnessed(root, "comparisons", ref.evidence, ref.deltas, ref.n_words, WITNESSES)


def load(root: Root, state: TableState) -> DcState | None:
    """The denial constraints and their evidence, as the commit names them; None where not tracked."""
    ref = dc_ref(state)
    if ref is None:
        return None
    evidence = load_evidence(root, ref)
    near = ApproximateDcs(*read_near_dcs(root, ref)) if ref.approximate is not None else None
    support = None
    if ref.support is not None:
        support = open_bundle(root, ref.support, "support").array("masks").reshape(-1, ref.n_words)
    cover = DcCover(read_dcs(root, ref), kernel_space(ref.space), ref.max_predicates, support)
    return DcState(
        ref.space,
        evidence,
        cover,
        ref.max_error,
        near,
        ref.operators,
        ref.chosen,
        ref.accesses,
        ref.chosen_for,
        ref.within_columns,
        ref.limits,
        ref.stopped,
    )
