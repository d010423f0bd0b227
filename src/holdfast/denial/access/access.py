"""How pairs of rows are found that may violate denial constraints, and what of a table decides how.

A batch row meets the old rows through an *access*: some predicates, of which an index answers one or two, its
*source*; the pairs that it gives are compared on the others, and what is left are the pairs found. A pair of
rows that violates a constraint satisfies its predicates and whatever follows from them, so an access *serves*
each constraint from which its predicates follow. Every constraint must be served by one access; then all
pairs that break the cover are found. Kinds of access, by their source:

| kind | source | is answered by |
|---|---|---|
| equality | `=` | the posting list of the row's value, walked |
| order | two of ordered columns, neither `=` | `order_index.fetch` |
| column | one, not `=` | `fetch_column`, on the same posting lists as equality |
| scan | none | all old rows, those folded that are equal on the columns of what is served so |

With t the batch row and s the old one, constraints and their mirror images are asked: an access stands for
itself and its mirror image (`Access.questions`), unless both are the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.rows.kernels import order_index
from holdfast.core.rows.kernels.operators import GE, LE
from holdfast.core.rows.table_state import OrderKey
from holdfast.core.words.predicate import PredicateSpace

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Numbers = tuple[int, ...]  # predicates, ascending
Kind = Literal["equality", "order", "column", "scan"]
KINDS: tuple[Kind, ...] = ("equality", "order", "column", "scan")


# --- What is known of the table --------------------------------------------------------------------------


class PairSample(NamedTuple):
    """Evidence of a uniform sample of ordered pairs of rows.

    masks uint64[m, n_words]; counts int64[m]: how many of the sampled pairs have each mask.
    """

    masks: U64
    counts: I64


@dataclass(frozen=True, slots=True, eq=False)
class Statistics:
    """What the choice of indexes needs to know; columns by position. See `statistics`."""

    names: tuple[str, ...]
    n_rows: int
    n_distinct: I64  # int64[c]
    correlation: F64  # float64[c, c]: r(A, B), rank correlation; 0 of columns without order
    ranks: F64  # float64[c, c]: about how many chains the order index has, in the direction of r's sign
    sample: I32  # int32[c, s]: codes of some rows
    pairs: PairSample | None

    def falling(self, a: int, b: int) -> bool:
        """The direction with the smaller rank: whether b falls as a rises."""
        return bool(self.correlation[a, b] < 0)

    def folded(self, columns: tuple[int, ...]) -> int:
        """About how many different rows there are on some columns.

        From the sample: those seen, and by what was seen once and twice those not seen (Chao's estimator).
        Exact if the sample is the table; without one, as many as there could be.
        """
        if not columns or self.n_rows <= 1:
            return min(1, self.n_rows)
        n_sample = self.sample.shape[1]
        most = min(self.n_rows, math.prod(max(1, int(self.n_distinct[c])) for c in columns))
        least = min(most, max(int(self.n_distinct[c]) for c in columns))
        if not n_sample:
            return most
        counts = np.unique(self.sample[list(columns)], axis=1, return_counts=True)[1]
        if n_sample >= self.n_rows:
            return len(counts)
        once, twice = (int(np.count_nonzero(counts == n)) for n in (1, 2))
        estimate = len(counts) + once * (once - 1) / (2 * (twice + 1))
        return max(1, least, min(round(estimate), most))


def statistics(
    space: PredicateSpace,
    names: Sequence[str],
    sample: I32,
    n_distinct: Sequence[int] | I64,
    n_rows: int,
    pairs: PairSample | None = None,
) -> Statistics:
    """The statistics of a table from a uniform sample of its rows.

    names: the table's columns. IN sample int32[c, s]: codes that compare as the values of a column do, 0 is
    NULL; n_distinct int64[c]: of the whole table, as n_rows. pairs: evidence of a sample of pairs; without
    it, selectivities are estimated from the rest.

    Correlations are those of the sample. So is how ranks grow: with the square root of the rows at most,
    with less where values repeat, as from half of the sample to all of it; and only up to the smaller number
    of values, as nodes that cannot share a chain differ in both columns. Cost: two indexes, 1 ms together for
    10,000 rows, for each two ordered columns of the space.
    """
    columns = tuple(names)
    at = {name: i for i, name in enumerate(columns)}
    distinct = np.asarray(n_distinct, dtype=np.int64)
    codes = np.asarray(sample, dtype=np.int32).reshape(len(columns), -1)
    correlation = np.zeros((len(columns), len(columns)), dtype=np.float64)
    ranks = np.ones_like(correlation)
    ordered = sorted({at[g.left] for g in space.groups if g.ordered})
    n_sample, every_second = codes.shape[1], np.ascontiguousarray(codes[:, ::2])
    for a in ordered:
        correlation[a, a] = 1.0
    for a, b in combinations(ordered, 2):
        r = order_index.correlation(codes[a], codes[b])
        direction = LE if r < 0 else GE
        half, whole = (
            max(1, order_index.build(rows[a], rows[b], GE, direction).rank) for rows in (every_second, codes)
        )
        growth = max(1.0, n_rows / max(1, n_sample)) ** min(0.5, max(0.0, math.log2(whole / half)))
        correlation[a, b] = correlation[b, a] = r
        ranks[a, b] = ranks[b, a] = max(1.0, min(whole * growth, float(min(distinct[a], distinct[b]))))
    return Statistics(columns, n_rows, distinct, correlation, ranks, codes, pairs)


# --- What is chosen --------------------------------------------------------------------------------------


class Question(NamedTuple):
    """Which old rows s are wanted for a batch row t: `s.old[i] ops[i] t.batch[i]` for each i.

    Columns by position, operators `EQ` to `GE`. The first `n_asked` are the source: two for the order index
    `key`, whose columns they are (as `order_index.fetch` takes them), or one for the posting lists of its old
    column. The others are compared; to leave out some of them finds more pairs, and loses none.
    """

    batch: tuple[int, ...]
    old: tuple[int, ...]
    ops: tuple[int, ...]
    n_asked: int
    key: OrderKey | None


@dataclass(frozen=True, slots=True)
class Access:
    """How the pairs are found that may violate the constraints it serves."""

    kind: Kind
    source: Numbers  # of the predicates, those that the index answers
    predicates: Numbers  # t.A op s.B, by their numbers in the space
    groups: tuple[int, ...]  # of these predicates
    ops: tuple[int, ...]  # `EQ` to `GE`
    questions: tuple[Question, ...]  # of the predicates, and of their mirror image if it is another
    columns: tuple[int, ...]  # with posting lists that are asked; of a scan: those compared
    orders: tuple[OrderKey, ...]  # order indexes that are asked
    coverage: int  # constraints that it could serve
    n_served: int  # constraints that it serves
    selectivity: float  # share of the ordered pairs that satisfy the predicates
    source_selectivity: float  # share of those that satisfy the source
    score: float | None  # the paper's; small is good
    cost_ns: float  # estimated, for each batch row; as if no other access had the same source
    rank: int | None = None  # of the largest of its order indexes; None until they are built

    def to_dict(self, space: PredicateSpace, names: Sequence[str]) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "source": [str(space.predicates[p]) for p in self.source],
            "predicates": [str(space.predicates[p]) for p in self.predicates],
            "columns": [names[c] for c in self.columns],
            "orders": [_named(key, names) for key in self.orders],
            "coverage": self.coverage,
            "n_served": self.n_served,
            "selectivity": self.selectivity,
            "source_selectivity": self.source_selectivity,
            "score": self.score,
            "cost_ns": self.cost_ns,
            "rank": self.rank,
        }


def _named(key: OrderKey, names: Sequence[str]) -> dict[str, Any]:
    a, b, falling = key
    return {"a": names[a], "b": names[b], "falling": falling}


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """An access for every constraint of a cover.

    Law: the predicates of `accesses[served[i]]`, or their mirror images, follow from those of constraint i.
    """

    accesses: tuple[Access, ...]  # by kind, then by how many constraints they serve
    served: I32  # int32[k]
    cost_ns: float  # estimated, for each batch row
    scan_ns: float  # the same if all constraints were served by a scan
    space: PredicateSpace
    names: tuple[str, ...]

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that need posting lists."""
        return tuple(sorted({c for a in self.accesses if a.kind != "scan" for c in a.columns}))

    @property
    def orders(self) -> tuple[OrderKey, ...]:
        """The order indexes that are needed."""
        return tuple(sorted({key for a in self.accesses for key in a.orders}))

    @property
    def n_indexes(self) -> int:
        return len(self.columns) + len(self.orders)

    def of_kind(self, kind: Kind) -> tuple[Access, ...]:
        return tuple(a for a in self.accesses if a.kind == kind)

    def with_ranks(self, ranks: Mapping[OrderKey, int]) -> Selection:
        """The same, with the ranks of order indexes that are built."""

        def ranked(access: Access) -> Access:
            built = [ranks[key] for key in access.orders if key in ranks]
            return replace(access, rank=max(built)) if built else access

        return replace(self, accesses=tuple(map(ranked, self.accesses)))

    def to_dict(self) -> dict[str, Any]:
        return {
            "n_dcs": len(self.served),
            "n_indexes": self.n_indexes,
            "columns": [self.names[c] for c in self.columns],
            "orders": [_named(key, self.names) for key in self.orders],
            "cost_ns": self.cost_ns,
            "scan_ns": self.scan_ns,
            "accesses": [a.to_dict(self.space, self.names) for a in self.accesses],
        }
