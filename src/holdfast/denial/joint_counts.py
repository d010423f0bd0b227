"""How many pairs of rows satisfy two predicates: what tells short accidents from rules. Needs no kernels.

`dc_chance.py` says what is made of it. The counts are linear, so what batches have changed of the evidence is
added. What shuffled columns would violate, and what follows from other constraints, is not looked at: so what
looks like `chance` here is no rule there, and some more are none.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma, sqrt

import numpy as np
from numpy.typing import NDArray

from holdfast.core.rows.table_state import TableState
from holdfast.core.store.bundle import open_bundle
from holdfast.core.store.root import Root
from holdfast.core.words.column_sets import bits_of
from holdfast.core.words.predicate import PredicateSpace
from holdfast.denial.constraints import dc_ref

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Bool = NDArray[np.bool_]

# Evidences whose bits are added up at a time, and evidences times pairs of predicates that reports look at.
CHUNK = 1 << 15
MOST = 1 << 30


def joint_counts(masks: U64, counts: I64, n: int) -> F64:
    """float64[n + 1, n + 1]: how many pairs of rows satisfy two of n predicates, and, last, one or none.

    IN masks uint64[m, n_words]: evidences, each of counts int64[m] pairs. Cost: m * n ** 2.
    """
    joint = np.zeros((n + 1, n + 1), dtype=np.float64)
    for at in range(0, len(masks), CHUNK):
        part = masks[at : at + CHUNK]
        bits = np.ones((len(part), n + 1), dtype=np.float64)
        bits[:, :n] = bits_of(part, n)
        joint += bits.T @ (bits * counts[at : at + CHUNK, None])
    return joint


def asked_for(n_predicates: int, size: int) -> float:
    """The rows by chance that a rule of a size has at least: log C(predicates, size).

    >>> round(asked_for(60, 2), 2), asked_for(60, 0)
    (7.48, 0.0)
    """
    return lgamma(n_predicates + 1) - lgamma(size + 1) - lgamma(n_predicates - size + 1)


@dataclass(frozen=True)
class JointCounts:
    """What is known of two predicates of a space each; `joint` as `joint_counts` has it."""

    space: PredicateSpace
    joint: F64

    @classmethod
    def of(cls, space: PredicateSpace, masks: U64, counts: I64) -> JointCounts | None:
        """None of what is too much to be looked at in a report."""
        n = space.n_predicates
        return None if len(masks) * n**2 > MOST else cls(space, joint_counts(masks, counts, n))

    @classmethod
    def read(cls, root: Root, state: TableState) -> JointCounts | None:
        """From the files that a version names; None where pairs are not counted, or are too many."""
        ref = dc_ref(state)
        if ref is None or ref.evidence_kind != "counted":
            return None
        bundles = [open_bundle(root, file, "comparisons") for file in (ref.evidence, *ref.deltas)]
        masks = np.concatenate([b.array("masks").reshape(-1, ref.n_words) for b in bundles])
        return cls.of(ref.space, masks, np.concatenate([b.array("counts") for b in bundles]))

    def chance(self, bits: Bool) -> Bool:
        """Which denial constraints, as predicates bool[k, n], are accidents for sure: bool[k].

        Chance would violate them in fewer rows than would have to. Of one predicate none is.
        """
        joint, n = self.joint, self.space.n_predicates
        n_rows = (1 + sqrt(1 + 4 * float(joint[-1, -1]))) / 2
        same = np.array([p.op == "=" and p.left == p.right for p in self.space.predicates], dtype=np.bool_)
        sizes, by_chance = bits.sum(axis=1), np.zeros(len(bits), dtype=np.bool_)
        for size in np.unique(sizes[sizes > 1]).tolist():
            at = np.flatnonzero(sizes == size)
            members = np.nonzero(bits[at])[1].reshape(-1, size)
            among = joint[members[:, :, None], members[:, None, :]]
            if size == 2:
                expected = among[:, 0, 0] * among[:, 1, 1] / max(1.0, float(joint[-1, -1]))
            elif size == 3:
                rest = (
                    (0, 1, 2),
                    (1, 2, 0),
                    (2, 0, 1),
                )  # the last of each is satisfied, the first two differ
                each = [among[:, p, r] * among[:, q, r] / np.maximum(1.0, among[:, r, r]) for p, q, r in rest]
                expected = np.min(each, axis=0)
            else:
                expected = among.reshape(len(at), -1).min(axis=1)
            agreeing = np.where(
                same[members][:, :, None] & same[members][:, None, :], among, joint[-1, -1]
            ).reshape(len(at), -1).min(axis=1)  # fmt: skip
            rows = expected / np.maximum(1.0, agreeing / n_rows)
            by_chance[at] = rows < asked_for(n, size)
        return by_chance
