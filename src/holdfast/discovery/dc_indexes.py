"""Which indexes serve the denial constraints of a cover (IncDC, section 7: SelectIndex, algorithm 4).

A batch row meets the old rows through an *access*: some predicates, of which an index answers one or two, its
*source*; the pairs that it gives are compared on the others, and what is left are the pairs found. A pair of
rows that violates a constraint satisfies its predicates and whatever follows from them, so an access *serves*
each constraint from which its predicates follow. Every constraint must be served by one access; then all
pairs that break the cover are found. Kinds of access, by their source:

| kind | source | is answered by |
|---|---|---|
| equality | `=` | the posting list of the row's value, walked |
| order | two of ordered columns, neither `=` | `kernels.order_index.fetch` |
| column | one, not `=` | `fetch_column`, on the same posting lists as equality |
| scan | none | all old rows, those folded that are equal on the columns of what is served so |

With t the batch row and s the old one, constraints and their mirror images are asked: an access stands for
itself and its mirror image (`Access.questions`), unless both are the same.

`select_index` is algorithm 4 as the paper has it, in our terms:

- An order index answers any two operators, also turned round (section 6.2), so what is picked are two groups
  with whatever operators; which ones are asked is settled after. The direction to build it in follows r.
- The paper replaces a constraint with `!=` by two, with `<` and with `>`. `fetch` answers `!=` itself, as two
  ranges, and the constraint stays one.
- `=` is only looked up in posting lists, `!=` of columns without order only in its own column.

`select` goes past it. The paper's scores know columns, but not what a pair of predicates lets through, nor
that many indexes may cost more than to compare all rows. Here each access has a cost in ns for each batch
row, from shares of pairs that are measured on a sample of pairs, and accesses of a small total are sought
(a weighted set cover, greedy). An index whose selectivity is poor serves nobody. The result is never dearer
than that of `select_index`, nor than a scan. Both are functions of their arguments alone.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import order_index
from holdfast.kernels.order_index import EQ, GE, GT, LE, LT, NE
from holdfast.model.predicate import IMPLIED, OPERATORS, PredicateSpace
from holdfast.storage.tables import OrderKey

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Bits = NDArray[np.uint64]  # one bit for each constraint (or each evidence), in words
Numbers = tuple[int, ...]  # predicates, ascending
Kind = Literal["equality", "order", "column", "scan"]
Folded = Callable[[tuple[int, ...]], int]

# The paper's l, l' and alpha.
MAX_EQUALITY_SCORE = 0.6
MIN_DISTINCT_RATIO = 0.1
ALPHA = 0.3

# ns of one core, measured on tables of 15 columns (benchmarks/dc_indexes.py): to ask a posting list, or one
# chain of an order index; a row of a list that is walked; a row that an order index gives; to compare it on
# the other predicates of an access; a pair found, for each group of its evidence; a row that is scanned.
ASKED_NS = 140.0
WALKED_NS = 2.0
FETCHED_NS = 5.0
COMPARED_NS = 1.0
FOUND_NS = 4.0
SCANNED_NS = 3.0

# The search for accesses: so many constraints and pairs of the sample are looked at; of the sources so many
# grow, the cheapest for each constraint, by so many predicates, each time in so many ways; all that anew when
# half of the constraints are served, so many times. Accesses are taken up to so many times the cost of a scan:
# they may be pruned to less. One that finds so large a share of the total cost may be split.
CONSTRAINTS_SEEN = 1 << 13
PAIRS_SEEN = 1 << 16
ROOTS = 32
GROWTH = 2
BRANCHES = 3
ROUNDS = 16
SPENT = 4.0
WORTH_SPLITTING = 0.05
ALL_OPERATORS = tuple(range(len(OPERATORS)))

_KINDS: tuple[Kind, ...] = ("equality", "order", "column", "scan")
_UP, _DOWN = (GT, GE), (LT, LE)
# From what says most to what says least.
_STRICTEST = (EQ, LT, GT, LE, GE, NE)


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
        Exact if the sample is the table.
        """
        n_sample = self.sample.shape[1]
        if not columns or not n_sample or self.n_rows <= 1:
            return min(1, self.n_rows)
        counts = np.unique(self.sample[list(columns)], axis=1, return_counts=True)[1]
        if n_sample >= self.n_rows:
            return len(counts)
        once, twice = (int(np.count_nonzero(counts == n)) for n in (1, 2))
        seen = len(counts) + once * (once - 1) / (2 * (twice + 1))
        most = min(self.n_rows, math.prod(max(1, int(self.n_distinct[c])) for c in columns))
        least = max(int(self.n_distinct[c]) for c in columns)
        return max(1, least, min(round(seen), most))


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

    Correlations and ranks are those of the sample; a rank grows with the square root of the rows, up to the
    smaller number of values: nodes that cannot share a chain differ in both columns. Cost: an index of the
    sample, about 1 ms for 10,000 rows, for each two ordered columns of the space.
    """
    columns = tuple(names)
    at = {name: i for i, name in enumerate(columns)}
    distinct = np.asarray(n_distinct, dtype=np.int64)
    codes = np.asarray(sample, dtype=np.int32).reshape(len(columns), -1)
    correlation = np.zeros((len(columns), len(columns)), dtype=np.float64)
    ranks = np.ones_like(correlation)
    ordered = sorted({at[g.left] for g in space.groups if g.ordered})
    growth = math.sqrt(max(1.0, n_rows / max(1, codes.shape[1])))
    for a in ordered:
        correlation[a, a] = 1.0
    for a, b in combinations(ordered, 2):
        r = order_index.correlation(codes[a], codes[b])
        seen = order_index.build(codes[a], codes[b], GE, LE if r < 0 else GE).rank
        correlation[a, b] = correlation[b, a] = r
        ranks[a, b] = ranks[b, a] = max(1.0, min(seen * growth, float(min(distinct[a], distinct[b]))))
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
            known = [ranks[key] for key in access.orders if key in ranks]
            return replace(access, rank=max(known)) if known else access

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


# --- Sets as bits ----------------------------------------------------------------------------------------


def _columns_of_bits(masks: U64, n_predicates: int) -> Bits:
    """uint64[n_predicates, words]: for each predicate one bit a mask, whether the mask has it."""
    n_words = max(1, -(-len(masks) // 64))
    member = np.unpackbits(
        np.ascontiguousarray(masks, dtype="<u8").view(np.uint8), axis=1, count=n_predicates, bitorder="little"
    )
    packed = np.zeros((n_predicates, 8 * n_words), dtype=np.uint8)
    packed[:, : -(-len(masks) // 8)] = np.packbits(member.T, axis=1, bitorder="little")
    return packed.view("<u8").astype(np.uint64)


def _flags(bits: Bits, n: int) -> NDArray[np.bool_]:
    little = np.ascontiguousarray(bits, dtype="<u8").view(np.uint8)
    return np.unpackbits(little, count=n, bitorder="little").view(np.bool_)


def _bits(flags: NDArray[np.bool_]) -> Bits:
    """The inverse of `_flags`."""
    packed = np.zeros(8 * max(1, -(-len(flags) // 64)), dtype=np.uint8)
    packed[: -(-len(flags) // 8)] = np.packbits(flags, bitorder="little")
    return packed.view("<u8").astype(np.uint64)


def _size(bits: Bits) -> int:
    return int(np.bitwise_count(bits).sum())


class _Family:
    """Sets of predicates (constraints, or evidences), by predicate: which of them have it."""

    def __init__(self, masks: U64, space: PredicateSpace) -> None:
        self.n = len(masks)
        self.own = _columns_of_bits(masks, space.n_predicates)
        self.everyone = _bits(np.ones(self.n, dtype=np.bool_))

    def having(self, columns: Bits, predicates: Iterable[int]) -> Bits:
        found = self.everyone.copy()
        for p in predicates:
            found &= columns[p]
        return found


class _Cover(_Family):
    """The constraints, and what follows from each of their predicates."""

    def __init__(self, masks: U64, space: PredicateSpace) -> None:
        super().__init__(masks, space)
        self.masks, self.space = masks, space
        self.closed = self.own.copy()
        for p, predicate in enumerate(space.predicates):
            group = space.groups[space.group_of[p]]
            for op in IMPLIED[predicate.op]:
                if op in group.operators:
                    self.closed[space.first[space.group_of[p]] + OPERATORS.index(op)] |= self.own[p]

    def chosen(self, at: I64) -> _Cover:
        return _Cover(self.masks[at], self.space)

    def serves(self, predicates: Numbers) -> Bits:
        """The constraints from which the predicates follow, or their mirror images."""
        mirrored = self.mirrored(predicates)
        found = self.having(self.closed, predicates)
        return found if mirrored == predicates else found | self.having(self.closed, mirrored)

    def mirrored(self, predicates: Iterable[int]) -> Numbers:
        return tuple(sorted(self.space.mirror[p] for p in predicates))

    def canonical(self, predicates: Iterable[int]) -> Numbers:
        mine = tuple(sorted(predicates))
        return min(mine, self.mirrored(mine))

    def predicates_in(self, dcs: Bits) -> list[int]:
        """The predicates of these constraints together."""
        return [int(p) for p in np.flatnonzero((self.own & dcs).any(axis=1))]

    def columns_in(self, dcs: Bits, positions: Mapping[str, int]) -> tuple[int, ...]:
        found = [self.space.predicates[p] for p in self.predicates_in(dcs)]
        return tuple(sorted({positions[name] for p in found for name in (p.left, p.right)}))


# --- What an access costs --------------------------------------------------------------------------------


def _listed_pairs(sample: PairSample) -> U64:
    """Masks, each as often as it was counted; of a large sample PAIRS_SEEN drawn from it, always the same."""
    counts = np.asarray(sample.counts, dtype=np.int64)
    total = int(counts.sum())
    if total > PAIRS_SEEN:
        ends = np.cumsum(counts)
        places = np.sort(np.random.default_rng(0).integers(0, total, PAIRS_SEEN))
        return sample.masks[np.searchsorted(ends, places, side="right")]
    return np.repeat(sample.masks, counts, axis=0)


class _Draft(NamedTuple):
    """An access to be."""

    source: Numbers
    predicates: Numbers


_SCAN = _Draft((), ())


class _Prices:
    """Selectivities and costs of accesses, in ns a batch row."""

    def __init__(self, cover: _Cover, known: Statistics, folded: Folded | None = None) -> None:
        self.cover, self.space, self.known = cover, cover.space, known
        self.positions = {name: i for i, name in enumerate(known.names)}
        self.left = [self.positions[p.left] for p in self.space.predicates]
        self.right = [self.positions[p.right] for p in self.space.predicates]
        self.found_ns = FOUND_NS * len(self.space.groups)
        self._folded: Folded = folded or known.folded
        self._shares: dict[Numbers, float] = {}
        self._scans: dict[tuple[int, ...], float] = {}
        self.pairs = _Family(_listed_pairs(known.pairs), self.space) if known.pairs is not None else None

    # -- selectivity

    def share(self, predicates: Numbers) -> float:
        """The share of the ordered pairs that satisfy the predicates; of their mirror images, it is the same.

        Measured if there is a sample of pairs, the mean of both directions. What no pair of the sample has
        is taken for half a pair, or less if columns have as many values.
        """
        canonical = self.cover.canonical(predicates)
        if canonical not in self._shares:
            self._shares[canonical] = self._share(canonical)
        return self._shares[canonical]

    def _share(self, predicates: Numbers) -> float:
        if not predicates:
            return 1.0
        if self.pairs is None or not self.pairs.n:
            return self._estimated(predicates)
        both = (predicates, self.cover.mirrored(predicates))
        found = sum(_size(self.pairs.having(self.pairs.own, numbers)) for numbers in both)
        return found / (2 * self.pairs.n) if found else min(0.5 / self.pairs.n, self._estimated(predicates))

    def _estimated(self, predicates: Numbers) -> float:
        """As if columns were independent and their values equally frequent; of two inequalities by r: the
        chance that two normal variables with that correlation have the asked signs."""
        ops = [self.space.op_of[p] for p in predicates]
        if len(predicates) == 2 and all(op in _UP + _DOWN for op in ops):
            r = float(self.known.correlation[self.left[predicates[0]], self.left[predicates[1]]])
            turned = r if (ops[0] in _UP) == (ops[1] in _UP) else -r
            return max(0.25 + math.asin(turned) / (2 * math.pi), 1.0 / max(1, self.known.n_rows))
        share = 1.0
        for p, op in zip(predicates, ops, strict=True):
            n_values = max(self.known.n_distinct[self.left[p]], self.known.n_distinct[self.right[p]])
            same = 1.0 / max(1, int(n_values))
            either_way = 0.5 - same / 2 if op in (LT, GT) else 0.5 + same / 2
            share *= same if op == EQ else 1 - same if op == NE else either_way
        return share

    # -- costs

    def kind(self, draft: _Draft) -> Kind:
        if len(draft.source) == 2:
            return "order"
        if not draft.source:
            return "scan"
        return "equality" if self.space.op_of[draft.source[0]] == EQ else "column"

    def source_cost(self, source: Numbers) -> float:
        """Of one direction: to ask, and to get what the index gives."""
        given = self.share(source) * self.known.n_rows
        if len(source) == 2:
            chains = float(self.known.ranks[self.right[source[0]], self.right[source[1]]])
            return ASKED_NS * chains + FETCHED_NS * given
        return ASKED_NS + (WALKED_NS if self.space.op_of[source[0]] == EQ else FETCHED_NS) * given

    def asked(self, draft: _Draft) -> dict[Numbers, float]:
        """The sources of both directions with their costs; one if they are the same."""
        cost = self.source_cost(draft.source)
        if self.cover.mirrored(draft.predicates) == draft.predicates:
            return {draft.source: cost}
        return {draft.source: cost, self.cover.mirrored(draft.source): cost}

    def directions(self, draft: _Draft) -> int:
        return 1 if self.cover.mirrored(draft.predicates) == draft.predicates else 2

    def compare_cost(self, draft: _Draft) -> float:
        """To compare what the source gives."""
        given = self.share(draft.source) if draft.source != draft.predicates else 0.0
        return COMPARED_NS * self.directions(draft) * given * self.known.n_rows

    def found_cost(self, share: float) -> float:
        """The evidence of a share of the pairs."""
        return self.found_ns * min(share, 1.0) * self.known.n_rows

    def found(self, draft: _Draft) -> float:
        """The share of the pairs of a batch row and an old row that it finds, in either direction."""
        return min(1.0, self.directions(draft) * self.share(draft.predicates))

    def met(self, draft: _Draft) -> Bits:
        """The pairs of the sample that it finds; none where there is no sample."""
        if self.pairs is None:
            return np.zeros(1, dtype=np.uint64)
        straight = self.pairs.having(self.pairs.own, draft.predicates)
        return straight | self.pairs.having(self.pairs.own, self.cover.mirrored(draft.predicates))

    def newly_found(self, draft: _Draft, met: Bits, before: Bits) -> float:
        """As `found`, without what other accesses find as well; IN bits of pairs of the sample."""
        if self.pairs is None or not met.any():
            return self.found(draft)
        return _size(met & ~before) / self.pairs.n

    def cost(self, draft: _Draft) -> float:
        asked = sum(self.asked(draft).values())
        return asked + self.compare_cost(draft) + self.found_cost(self.found(draft))

    def scan(self, dcs: Bits) -> float:
        """To scan for these constraints, all at once."""
        if not dcs.any():
            return 0.0
        columns = self.cover.columns_in(dcs, self.positions)
        if columns not in self._scans:
            self._scans[columns] = SCANNED_NS * min(self._folded(columns), self.known.n_rows)
        return self._scans[columns]

    def total(self, drafts: Sequence[_Draft], scanned: Bits) -> float:
        """Of some accesses together, and a scan: what several ask is asked once, and what several find is
        found once."""
        asked: dict[Numbers, float] = {}
        total = self.scan(scanned)
        for draft in drafts:
            total += self.compare_cost(draft)
            asked |= self.asked(draft)
        return total + sum(asked.values()) + self.found_cost(self._found_together(drafts))

    def _found_together(self, drafts: Sequence[_Draft]) -> float:
        if self.pairs is None or not self.pairs.n:
            return sum(self.found(draft) for draft in drafts)
        together = np.zeros_like(self.pairs.everyone)
        unseen = 0.0
        for draft in drafts:
            met = self.met(draft)
            together |= met
            unseen += 0.0 if met.any() else self.found(draft)
        return _size(together) / self.pairs.n + unseen

    # -- the paper's scores

    def equality_score(self, p: int) -> float:
        """1 - distinct values / rows, of the worse of both columns."""
        return 1 - min(self.distinct_ratio(self.left[p]), self.distinct_ratio(self.right[p]))

    def distinct_ratio(self, column: int) -> float:
        return float(self.known.n_distinct[column]) / max(1, self.known.n_rows)

    def strength(self, one: int, other: int) -> float:
        """|r| of the columns of two predicates; across columns there are two indexes, the weaker counts."""
        r = self.known.correlation
        sides = (self.left, self.right)
        return float(min(abs(r[side[one], side[other]]) for side in sides))


# --- Algorithm 4 -----------------------------------------------------------------------------------------


def select_index(cover: U64, space: PredicateSpace, known: Statistics) -> Selection:
    """SelectIndex (algorithm 4), line by line; ties go to the lower predicate numbers.

    cover IN uint64[k, n_words]. Cost: O(groups ** 2) passes over a bit a constraint.
    """
    dcs = _Cover(cover, space)
    return _Paper(dcs, _Prices(dcs, known)).selected()


class _GroupPair(NamedTuple):
    """Two groups in which an order index, or two, may serve: (A, B) and (C, D)."""

    groups: tuple[int, int]
    keys: frozenset[tuple[int, int]]  # columns of the indexes: (A, C) and (B, D), each pair ascending
    dcs: Bits  # with predicates other than `=` in both


class _Paper:
    """One run of algorithm 4."""

    def __init__(self, cover: _Cover, prices: _Prices) -> None:
        self.cover, self.prices, self.space = cover, prices, cover.space
        self.remaining = cover.everyone.copy()
        self.served = np.full(cover.n, -1, dtype=np.int32)
        self.drafts: dict[_Draft, int] = {}
        self.falling: dict[tuple[int, int], bool] = {}
        self.group_mirror = [space_mirror(self.space, g) for g in range(len(self.space.groups))]

    def selected(self) -> Selection:
        own, across = self._equalities()
        self._equal_below(own)
        self._equal_below(across)
        pairs = self._group_pairs()
        self._orders([pair for pair in pairs if self._many_values(pair)])
        for p in sorted(own + across, key=lambda p: (self.prices.equality_score(p), p)):
            self._take(_Draft((p,), (p,)), self.cover.serves((p,)))
        self._orders(pairs)
        self._single()
        drafts = list(self.drafts)
        return _selection(self.cover, self.prices, drafts, self.served, self.falling)

    def _take(self, draft: _Draft, dcs: Bits) -> None:
        """Serve those of the constraints that are still without."""
        new = dcs & self.remaining
        if new.any():
            self.served[_flags(new, self.cover.n)] = self.drafts.setdefault(draft, len(self.drafts))
            self.remaining &= ~new

    def _equalities(self) -> tuple[list[int], list[int]]:
        """`=` of columns with themselves, and across columns: one of two mirror images."""
        used = [p for p in range(self.space.n_predicates) if self.space.op_of[p] == EQ]
        used = sorted({min(p, self.space.mirror[p]) for p in used if self.cover.serves((p,)).any()})
        own = [p for p in used if self.space.mirror[p] == p]
        return own, [p for p in used if self.space.mirror[p] != p]

    def _equal_below(self, predicates: Sequence[int]) -> None:
        """Lines 1 to 8: constraint by constraint, the best of its `=` if its score is below the threshold."""
        good = [p for p in predicates if self.prices.equality_score(p) < MAX_EQUALITY_SCORE]
        of = {p: self.cover.serves((p,)) for p in good}
        while good:
            first = min(
                (int(_flags(of[p] & self.remaining, self.cover.n).argmax()), self.prices.equality_score(p), p)
                if (of[p] & self.remaining).any()
                else (self.cover.n, math.inf, p)
                for p in good
            )
            if first[0] == self.cover.n:
                return
            self._take(_Draft((first[2],), (first[2],)), of[first[2]])

    def _group_pairs(self) -> list[_GroupPair]:
        """Line 10: all that can serve some constraint, one of two mirror images."""
        groups = [g for g, group in enumerate(self.space.groups) if group.ordered]
        unequal = {g: self._having(g, (NE, LT, LE, GT, GE)) for g in groups}
        found = {}
        for one, other in combinations(groups, 2):
            mirrored = tuple(sorted((self.group_mirror[one], self.group_mirror[other])))
            canonical = min((one, other), (mirrored[0], mirrored[1]))
            dcs = (unequal[one] & unequal[other]) | (unequal[mirrored[0]] & unequal[mirrored[1]])
            if canonical not in found and dcs.any():
                p, q = self.space.first[one], self.space.first[other]
                sides = (self.prices.left, self.prices.right)
                keys = frozenset((min(s[p], s[q]), max(s[p], s[q])) for s in sides)
                found[canonical] = _GroupPair(canonical, keys, dcs)
        return [found[groups] for groups in sorted(found)]

    def _having(self, group: int, ops: Iterable[int]) -> Bits:
        first = self.space.first[group]
        found: Bits = np.bitwise_or.reduce([self.cover.own[first + op] for op in ops])
        return found

    def _many_values(self, pair: _GroupPair) -> bool:
        """Line 12."""
        ratios = (self.prices.distinct_ratio(c) for key in pair.keys for c in key)
        return all(ratio >= MIN_DISTINCT_RATIO for ratio in ratios)

    def _orders(self, pairs: Sequence[_GroupPair]) -> None:
        """Lines 14 to 19: the least score first, again and again, coverage being that of what remains."""
        waiting = list(pairs)
        while waiting:
            coverage = [_size(pair.dcs & self.remaining) for pair in waiting]
            waiting = [pair for pair, n in zip(waiting, coverage, strict=True) if n]
            if not waiting:
                return
            scores = [
                (1 - self._strength(p)) / n for p, n in zip(waiting, filter(None, coverage), strict=True)
            ]
            best = waiting[min(range(len(waiting)), key=lambda i: (scores[i], waiting[i].groups))]
            for key in sorted(best.keys):
                self.falling.setdefault(key, self._falls(key, best))
            self._ask(best)
            for pair in pairs:  # whatever the new indexes serve as well
                if all(key in self.falling for key in pair.keys):
                    self._ask(pair)

    def _strength(self, pair: _GroupPair) -> float:
        one, other = (self.space.first[g] for g in pair.groups)
        return self.prices.strength(one, other)

    def _falls(self, key: tuple[int, int], pair: _GroupPair) -> bool:
        """Line 17: as the correlation says; if it is weak, as most constraints ask."""
        r = float(self.prices.known.correlation[key])
        if abs(r) > ALPHA:
            return r < 0
        same, opposite = 0, 0
        for one, other in {
            pair.groups,
            (self.group_mirror[pair.groups[0]], self.group_mirror[pair.groups[1]]),
        }:
            up, down = (self._having(one, ops) & pair.dcs & self.remaining for ops in (_UP, _DOWN))
            other_up, other_down = (self._having(other, ops) for ops in (_UP, _DOWN))
            same += _size((up & other_up) | (down & other_down))
            opposite += _size((up & other_down) | (down & other_up))
        return key[0] != key[1] and opposite > same

    def _ask(self, pair: _GroupPair) -> None:
        """The loosest questions that find what the constraints of two groups, still without, need."""
        wanted = pair.dcs & self.remaining
        if not wanted.any():
            return
        of = {}
        for one, other in (
            pair.groups,
            (self.group_mirror[pair.groups[0]], self.group_mirror[pair.groups[1]]),
        ):
            for op in range(NE, GE + 1):
                for other_op in range(NE, GE + 1):
                    p, q = self.space.first[one] + op, self.space.first[other] + other_op
                    if (self.cover.own[p] & self.cover.own[q] & wanted).any():
                        numbers = self.cover.canonical((p, q))
                        of[numbers] = self.cover.serves(numbers)
        # A looser question serves more; whatever it serves needs no other.
        for numbers in sorted(of, key=lambda n: (-_size(of[n] & wanted), n)):
            self._take(_Draft(numbers, numbers), of[numbers] & wanted)

    def _single(self) -> None:
        """One predicate, not `=`: the most selective that a constraint has. The empty one has none."""
        used = [p for p in self.cover.predicates_in(self.remaining) if self.space.op_of[p] != EQ]
        drafts = sorted({self.cover.canonical((p,)) for p in used}, key=lambda n: (self.prices.share(n), n))
        for numbers in drafts:
            self._take(_Draft(numbers, numbers), self.cover.serves(numbers))
        self._take(_SCAN, self.cover.everyone)


def space_mirror(space: PredicateSpace, group: int) -> int:
    """The group of the same columns the other way round."""
    return space.group_of[space.mirror[space.first[group]]]


# --- The least total cost --------------------------------------------------------------------------------


def select(
    cover: U64,
    space: PredicateSpace,
    known: Statistics,
    folded: Folded | None = None,
    compared: Sequence[int] = ALL_OPERATORS,
) -> Selection:
    """Accesses for all constraints at a small total cost; see the head of this module.

    cover IN uint64[k, n_words]: masks of predicates, each constraint or its mirror image. folded: how many
    different rows there are on some columns (positions); by default `Statistics.folded`. compared: the
    operators that a probe can compare beside those of the source; (EQ,) for one that only counts agreeing
    columns.

    Accesses are taken by cost for each constraint newly served; for each length of that list, what is left is
    scanned, and the cheapest length stays. Those that are dearer than to scan what they alone serve go again.
    Last, each access compares all that its constraints have in common. Law: the total is at most that of
    `select_index`, and at most that of a scan.

    Cost: a pass over a bit a constraint, and one over the sampled evidences, for some thousands of
    candidates: 0.2 to 5 s for 30 to 500,000 constraints.
    """
    dcs = _Cover(cover, space)
    prices = _Prices(dcs, known, folded)
    found = _Greedy(dcs, prices, compared).selected()
    paper = _Paper(dcs, prices).selected()
    return paper if paper.cost_ns < found.cost_ns else found


class _Grown(NamedTuple):
    """A draft, with what satisfies it, and its mirror image: constraints, and pairs of the sample."""

    draft: _Draft
    dcs: tuple[Bits, ...]
    met: tuple[Bits, ...] | None


class _Greedy:
    """A search for accesses of a small total cost."""

    def __init__(self, cover: _Cover, prices: _Prices, compared: Iterable[int]) -> None:
        self.cover, self.prices, self.space = cover, prices, cover.space
        self.group_of, self.mirror = np.array(self.space.group_of), np.array(self.space.mirror)
        self.may_compare = np.isin(np.array(self.space.op_of), sorted(compared))
        # The predicates of each group, what says most first; n_predicates where it has none.
        self.strictest = np.full((len(self.space.groups), len(OPERATORS)), self.space.n_predicates)
        for g, group in enumerate(self.space.groups):
            ops = [op for op in _STRICTEST if op < len(group.operators)]
            self.strictest[g, : len(ops)] = [self.space.first[g] + op for op in ops]
        self._start(cover.everyone, SPENT * prices.scan(cover.everyone), [])

    def _start(self, dcs: Bits, limit: float, given: Sequence[_Draft]) -> None:
        """Begin anew: for some constraints, below a cost, beside accesses that there are anyway."""
        self.remaining, self.limit = dcs.copy(), limit
        self.spent = 0.0
        self.chosen: list[_Draft] = []
        self.asked: dict[Numbers, float] = {}
        self.met = np.zeros_like(self.prices.met(_SCAN))  # pairs of the sample that are found
        for draft in given:
            self.asked |= self.prices.asked(draft)
            self.met |= self.prices.met(draft)
        # The cheapest beginning of the list, if what it leaves is scanned.
        self.best, self.n_best = self.prices.scan(self.remaining), 0

    def selected(self) -> Selection:
        self._search()
        beginnings = {n: self.chosen[:n] for n in (self.n_best, len(self.chosen))}
        found = [self._refined(self._split(self._pruned(drafts))) for drafts in beginnings.values()]
        return min(found, key=lambda selection: selection.cost_ns)

    def _search(self) -> None:
        for _ in range(ROUNDS):
            before = len(self.chosen)
            self._take(self._candidates())
            if len(self.chosen) == before or not self.remaining.any():
                return

    # -- candidates

    def _candidates(self) -> list[_Draft]:
        """Accesses for the remaining constraints: sources, and what grows from them predicate by predicate.

        What is looked at is an even choice of CONSTRAINTS_SEEN of them. Each set of predicates also takes in
        whatever all of these have that it serves: it then finds less and serves as many.
        """
        at = np.flatnonzero(_flags(self.remaining, self.cover.n))
        seen = self.cover.chosen(at[:: max(1, -(-len(at) // CONSTRAINTS_SEEN))])
        found: dict[_Draft, None] = {}
        for root in self._roots(seen):
            level = [root]
            for depth in range(GROWTH + 1):
                for draft in level:
                    found[draft] = None
                    found[self._closed(seen, draft)] = None
                if depth < GROWTH:
                    wider = {w for draft in level for w in self._wider(seen, self._grown(seen, draft))}
                    level = [draft for _, draft in sorted(wider)[:BRANCHES]]
        return [draft for draft in found if self.spent + self.prices.compare_cost(draft) < self.limit]

    def _roots(self, seen: _Cover) -> list[_Draft]:
        """Sources that serve some of the constraints and pay if they serve alone: the cheapest for each."""
        space, prices = self.space, self.prices
        used = [p for p in range(space.n_predicates) if seen.closed[p].any()]
        unequal = [p for p in used if space.op_of[p] != EQ and space.groups[space.group_of[p]].ordered]
        sources = {seen.canonical((p,)) for p in used}
        for p in unequal:
            together = (seen.closed[unequal] & seen.closed[p]).any(axis=1)
            sources |= {
                seen.canonical((p, q))
                for q, both in zip(unequal, together, strict=True)
                if both and p < q and space.group_of[p] != space.group_of[q]
            }
        priced = []
        for source in sources:
            asked = prices.asked(_Draft(source, source))
            cost = sum(ns for s, ns in asked.items() if s not in self.asked)
            if self.spent + cost < self.limit:
                priced.append((cost / _size(seen.serves(source)), source))
        return [_Draft(source, source) for _, source in sorted(priced)[:ROOTS]]

    def _grown(self, seen: _Cover, draft: _Draft) -> _Grown:
        both = (draft.predicates, seen.mirrored(draft.predicates))
        dcs = tuple(seen.having(seen.closed, numbers) for numbers in both)
        pairs = self.prices.pairs
        met = None if pairs is None else tuple(pairs.having(pairs.own, numbers) for numbers in both)
        return _Grown(draft, dcs, met)

    def _wider(self, seen: _Cover, grown: _Grown) -> Iterator[tuple[float, _Draft]]:
        """With one more predicate: the BRANCHES that cost least for each constraint that they serve.

        What the source costs is left out: all of them have it. One predicate a group is enough: two of them
        say no more than a third.
        """
        taken = np.isin(self.group_of, self.group_of[list(grown.draft.predicates)])
        more = np.flatnonzero(~taken & self.may_compare)
        turned = self.mirror[more]
        served = (grown.dcs[0] & seen.closed[more]) | (grown.dcs[1] & seen.closed[turned])
        coverage = np.bitwise_count(served).sum(axis=1, dtype=np.int64)
        if self.prices.pairs is not None and grown.met is not None:
            own = self.prices.pairs.own
            met = np.bitwise_count(own[more] & grown.met[0]).sum(axis=1, dtype=np.int64)
            met += np.bitwise_count(own[turned] & grown.met[1]).sum(axis=1, dtype=np.int64)
            shares = np.maximum(met, 1) / (2 * max(1, self.prices.pairs.n))
        else:
            shares = np.array([self.prices.share((*grown.draft.predicates, int(p))) for p in more])
        ratio = (
            self.prices.found_ns * shares + COMPARED_NS * self.prices.share(grown.draft.source)
        ) / np.where(coverage, coverage, np.nan)
        for i in np.argsort(ratio, kind="stable")[:BRANCHES].tolist():
            if coverage[i]:
                wider = tuple(sorted((*grown.draft.predicates, int(more[i]))))
                yield float(ratio[i]), _Draft(grown.draft.source, wider)

    def _closed(self, cover: _Cover, draft: _Draft, among: Bits | None = None) -> _Draft:
        """With all that the constraints have in common which it serves: of each group that which says most.

        Where a constraint has only the mirror images, it is turned round. The source stays, but predicates
        of it may become stricter (`=` in place of `<=` would be another kind of source).
        """
        dcs = cover.everyone if among is None else among
        straight = cover.having(cover.closed, draft.predicates) & dcs
        turned = cover.having(cover.closed, cover.mirrored(draft.predicates)) & dcs & ~straight
        common = ~(straight & ~cover.closed).any(axis=1) & ~(turned & ~cover.closed[self.mirror]).any(axis=1)
        told = np.append(common, False)[self.strictest]
        if self.space.op_of[draft.source[0]] != EQ:
            told[[self.space.group_of[p] for p in draft.source], 0] = False
        best = self.strictest[np.arange(len(told)), told.argmax(axis=1)]
        source = tuple(int(best[self.space.group_of[p]]) for p in draft.source)
        kept = best[told.any(axis=1)]
        kept = kept[self.may_compare[kept] | np.isin(kept, source)]
        return _Draft(source, tuple(kept.tolist()))

    # -- the greedy list

    def _take(self, drafts: list[_Draft]) -> None:
        """Take accesses by their cost for each constraint that is still without.

        Coverage only falls, so a draft is looked at again when it comes first. Costs fall, too, when others
        ask or find the same: all are sorted anew when a source comes to be asked.
        """
        compared = [self.prices.compare_cost(draft) for draft in drafts]
        asked = [self.prices.asked(draft) for draft in drafts]
        met = [self.prices.met(draft) for draft in drafts]
        serves = [self.cover.serves(draft.predicates) for draft in drafts]
        coverage = [_size(bits & self.remaining) for bits in serves]
        enough = _size(self.remaining) // 2

        def cost(i: int) -> float:
            found = self.prices.newly_found(drafts[i], met[i], self.met)
            new = sum(ns for source, ns in asked[i].items() if source not in self.asked)
            return compared[i] + new + self.prices.found_cost(found)

        def entry(i: int) -> tuple[float, int, _Draft, int]:
            return cost(i) / coverage[i], -coverage[i], drafts[i], i

        heap = [entry(i) for i in range(len(drafts)) if coverage[i]]
        heapq.heapify(heap)
        while heap and _size(self.remaining) > enough:
            *_, i = heapq.heappop(heap)
            now = _size(serves[i] & self.remaining)
            if now < coverage[i]:
                coverage[i] = now
                if now:
                    heapq.heappush(heap, entry(i))
                continue
            if self.spent + cost(i) >= self.limit:
                return
            self.spent += cost(i)
            self.met |= met[i]
            if any(source not in self.asked for source in asked[i]):
                self.asked |= asked[i]
                heap = [entry(j) for *_, j in heap]
                heapq.heapify(heap)
            self.chosen.append(drafts[i])
            self.remaining &= ~serves[i]
            total = self.spent + self.prices.scan(self.remaining)
            if total < self.best:
                self.best, self.n_best = total, len(self.chosen)

    # -- what is taken back, and made sharper

    def _pruned(self, drafts: list[_Draft]) -> list[_Draft]:
        """Without accesses that cost more than to scan for what they alone serve; the dearest first."""
        serves = {draft: self.cover.serves(draft.predicates) for draft in drafts}
        by = np.zeros(self.cover.n, dtype=np.int32)  # how many accesses serve each constraint
        for bits in serves.values():
            by += _flags(bits, self.cover.n)
        kept, scanned = list(drafts), _bits(by == 0)
        total = self.prices.total(kept, scanned)
        for draft in sorted(drafts, key=lambda d: (-self.prices.cost(d), d)) * 2:
            if draft not in kept:
                continue
            without = [d for d in kept if d != draft]
            mine = _flags(serves[draft], self.cover.n)
            alone = scanned | _bits(mine & (by == 1))
            cheaper = self.prices.total(without, alone)
            if cheaper <= total:
                kept, total, scanned = without, cheaper, alone
                by -= mine
        return kept

    def _split(self, drafts: list[_Draft]) -> list[_Draft]:
        """Each access that finds much in favour of several that compare more, where these cost less.

        The search misses them: the first of several bears what the source costs.
        """
        kept = drafts
        for draft in sorted(drafts, key=lambda d: (-self.prices.found(d), d)):
            others = [d for d in kept if d != draft]
            scanned, mine = self._unserved(kept), self._unserved(others) & self.cover.serves(draft.predicates)
            total = self.prices.total(kept, scanned)
            if self.prices.found_cost(self.prices.found(draft)) < WORTH_SPLITTING * total:
                break
            self._start(mine, total - self.prices.total(others, scanned), others)
            self._search()
            parts = others + [d for d in self.chosen if d not in others]
            if not self.remaining.any() and self.prices.total(parts, scanned) < total:
                kept = parts
        return kept

    def _unserved(self, drafts: Iterable[_Draft]) -> Bits:
        left = self.cover.everyone.copy()
        for draft in drafts:
            left &= ~self.cover.serves(draft.predicates)
        return left

    def _refined(self, drafts: list[_Draft]) -> Selection:
        """Each constraint with the most selective access that serves it; each access then compares all that
        its constraints have in common. That finds fewer pairs for the same."""
        remaining = self.cover.everyone.copy()
        finals: dict[_Draft, Bits] = {}
        for draft in sorted(drafts, key=lambda d: (self.prices.share(d.predicates), d)):
            mine = self.cover.serves(draft.predicates) & remaining
            remaining &= ~mine
            if mine.any():
                final = self._closed(self.cover, draft, mine)
                finals[final] = finals.get(final, np.zeros_like(mine)) | mine
        served = np.full(self.cover.n, -1, dtype=np.int32)
        for i, mine in enumerate(finals.values()):
            served[_flags(mine, self.cover.n)] = i
        if remaining.any():
            served[_flags(remaining, self.cover.n)] = len(finals)
            finals[_SCAN] = remaining
        return _selection(self.cover, self.prices, list(finals), served, {})


# --- From drafts to a selection --------------------------------------------------------------------------


def _selection(
    cover: _Cover,
    prices: _Prices,
    drafts: Sequence[_Draft],
    served: I32,
    falling: Mapping[tuple[int, int], bool],
) -> Selection:
    """The accesses in their order, with all that is told of them. served IN int32[k]: numbers of drafts."""
    n_served = np.bincount(served, minlength=len(drafts))
    scanned = np.zeros_like(cover.everyone)
    if _SCAN in drafts:
        scanned = _bits(served == drafts.index(_SCAN))
    used = [i for i in range(len(drafts)) if n_served[i]]
    used.sort(key=lambda i: (_KINDS.index(prices.kind(drafts[i])), -int(n_served[i]), drafts[i]))
    place = np.zeros(len(drafts), dtype=np.int32)
    place[used] = np.arange(len(used), dtype=np.int32)
    accesses = tuple(_access(cover, prices, drafts[i], int(n_served[i]), scanned, falling) for i in used)
    total = prices.total([drafts[i] for i in used if drafts[i] != _SCAN], scanned)
    return Selection(
        accesses, place[served], total, prices.scan(cover.everyone), cover.space, prices.known.names
    )


def _access(
    cover: _Cover,
    prices: _Prices,
    draft: _Draft,
    n_served: int,
    scanned: Bits,
    falling: Mapping[tuple[int, int], bool],
) -> Access:
    kind, coverage = prices.kind(draft), _size(cover.serves(draft.predicates))
    questions = () if kind == "scan" else tuple(_questions(prices, draft, falling))
    score: float | None = None
    if kind == "equality":
        score = prices.equality_score(draft.source[0])
    elif kind == "order":
        score = (1 - prices.strength(*draft.source)) / max(1, _size(cover.serves(draft.source)))
    if kind == "scan":
        columns = cover.columns_in(scanned, prices.positions)
    else:
        columns = () if kind == "order" else tuple(sorted({q.old[0] for q in questions}))
    return Access(
        kind=kind,
        source=draft.source,
        predicates=draft.predicates,
        groups=tuple(cover.space.group_of[p] for p in draft.predicates),
        ops=tuple(cover.space.op_of[p] for p in draft.predicates),
        questions=questions,
        columns=columns,
        orders=tuple(sorted({q.key for q in questions if q.key is not None})),
        coverage=coverage,
        n_served=n_served,
        selectivity=prices.share(draft.predicates),
        source_selectivity=prices.share(draft.source),
        score=score,
        cost_ns=prices.scan(scanned) if kind == "scan" else prices.cost(draft),
    )


def _questions(prices: _Prices, draft: _Draft, falling: Mapping[tuple[int, int], bool]) -> Iterator[Question]:
    """t is the batch row: `t.A op s.B` asks for old rows with `s.B SYMMETRIC[op] t.A`."""
    mirrored = _Draft(prices.cover.mirrored(draft.source), prices.cover.mirrored(draft.predicates))
    for source, predicates in dict.fromkeys((draft, mirrored) if mirrored[1] != draft[1] else (draft,)):
        # By old column: so do the columns of an order index ascend.
        first = sorted(source, key=lambda p: (prices.right[p], prices.left[p]))
        parts = first + [p for p in predicates if p not in source]
        old = tuple(prices.right[p] for p in parts)
        key: OrderKey | None = None
        if len(source) == 2:
            key = (old[0], old[1], falling.get((old[0], old[1]), prices.known.falling(old[0], old[1])))
        ops = tuple(order_index.SYMMETRIC[prices.space.op_of[p]] for p in parts)
        yield Question(tuple(prices.left[p] for p in parts), old, ops, len(source), key)
