"""The indexes of denial constraints: how many, how selective, their ranks, what they cost.

As experiments 2 and 3 of IncDC, on airport and on adult, if CSV files of them are there, and on a generated
tax table: the constraints are found by comparing all pairs of rows; then indexes are chosen by the paper's
algorithm 4 and by the least cost, built, and asked for some rows. Kernels only, one core, CPU seconds. A
minute or two.

    python -m benchmarks.dc_indexes [--data DIR] [--quick]        # prints the report
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.dcs import REAL, first_rows
from benchmarks.report import ROOT, machine, say, versions
from benchmarks.tables import SEED
from benchmarks.tax import tax_table
from holdfast.core.cover.kernels import search
from holdfast.core.cover.kernels.vertices import Space
from holdfast.core.evidence.kernels import predicate_evidence
from holdfast.core.evidence.kernels import probed_pairs as dc_probe
from holdfast.core.rows.kernels import order_index
from holdfast.core.rows.kernels.masks import n_words_for, popcounts
from holdfast.core.rows.kernels.operators import EQ, GE, GT, LE, LT, SYMMETRIC
from holdfast.core.rows.kernels.order_index import ColumnIndex, OrderIndex
from holdfast.core.rows.table_state import OrderKey
from holdfast.core.words.predicate import Group, PredicateSpace
from holdfast.denial.access import costs
from holdfast.denial.access.access import Kind, Numbers, PairSample, Selection, Statistics, statistics
from holdfast.denial.access.paper_selection import select_index
from holdfast.denial.access.selection import select

Codes = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]
Masks = npt.NDArray[np.uint64]

SAMPLE_ROWS = 2_000
SAMPLE_PAIRS = 1 << 16
PROBES = 500  # rows that indexes are asked for
MAX_FOUND = 1_000_000  # pairs whose evidence is worked out; of more, so many, and the time is scaled
SHARED = 0.3  # of the values of the larger of two columns that are compared
SEGMENTS = (1, 2, 4, 8, 16)
BOUNDS = (4,)  # of predicates a constraint, where there are many
FEW = 100  # constraints whose accesses are listed
# The paper's table 11.
PUBLISHED = {"airport": (31, 9), "adult": (59_291, 45)}


# --- tables and their constraints ---------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """A table in codes, with its predicate space."""

    name: str
    names: tuple[str, ...]
    codes: Codes  # int32[c, n]: 0 is NULL, else the place in the dictionary
    dictionaries: tuple[npt.NDArray[Any], ...]
    space: PredicateSpace

    @property
    def n_rows(self) -> int:
        return int(self.codes.shape[1])

    @property
    def groups(self) -> predicate_evidence.Groups:
        at = {name: i for i, name in enumerate(self.names)}
        groups = self.space.groups
        columns = (
            [at[g.left] for g in groups],
            [at[g.right] for g in groups],
            [g.ordered for g in groups],
            self.space.first,
        )
        return predicate_evidence.Groups(*(np.array(c, dtype=np.int32) for c in columns))

    @property
    def n_distinct(self) -> list[int]:
        return [len(d) for d in self.dictionaries]

    def first(self, n_rows: int) -> Table:
        """Its first rows: a table with dictionaries and comparable columns of its own."""
        columns = [d[c[:n_rows] - 1] for d, c in zip(self.dictionaries, self.codes, strict=True)]
        nulls = [c[:n_rows] == 0 for c in self.codes]
        across = len(self.space.groups) > len(self.names)
        ordered = [self.space.groups[i].ordered for i in range(len(self.names))]
        return _table(self.name, self.names, columns, nulls, ordered, across)

    def half_ranks(self, a: int, b: int, rows: Ints) -> Codes:
        """Rows' values of column a among those of column b."""
        codes: Codes = self.codes[a][rows]
        if a == b:
            return np.multiply(codes, 2)
        at = np.searchsorted(self.dictionaries[b], self.dictionaries[a])
        known = np.minimum(at, len(self.dictionaries[b]) - 1)
        found = self.dictionaries[b][known] == self.dictionaries[a]
        ranks = np.concatenate([[0], np.where(found, 2 * at + 2, 2 * at + 1)]).astype(np.int32)
        return np.take(ranks, codes)

    def probes(self, rows: Ints) -> Codes:
        """int32[n_groups, 2, b], as `evidence_counts` takes a batch."""
        left, right = self.groups.left.tolist(), self.groups.right.tolist()
        both = [
            [self.half_ranks(a, b, rows), self.half_ranks(b, a, rows)]
            for a, b in zip(left, right, strict=True)
        ]
        return np.array(both, dtype=np.int32)


def _table(
    name: str,
    names: tuple[str, ...],
    columns: Sequence[npt.NDArray[Any]],
    nulls: Sequence[npt.NDArray[np.bool_]],
    ordered: Sequence[bool],
    across: bool,
) -> Table:
    codes, dictionaries = [], []
    for column, null in zip(columns, nulls, strict=True):
        values, inverse = np.unique(column[~null], return_inverse=True)
        code = np.zeros(len(column), dtype=np.int32)
        code[~null] = inverse + 1
        codes.append(code)
        dictionaries.append(values)
    groups = [Group(n, n, o) for n, o in zip(names, ordered, strict=True)]
    for a, b in combinations(range(len(names)), 2) if across else ():
        if ordered[a] == ordered[b] and dictionaries[a].dtype.kind == dictionaries[b].dtype.kind:
            n_both = len(np.intersect1d(dictionaries[a], dictionaries[b]))
            if n_both and n_both >= SHARED * max(len(dictionaries[a]), len(dictionaries[b])):
                groups += [Group(names[a], names[b], ordered[a]), Group(names[b], names[a], ordered[a])]
    return Table(name, names, np.array(codes), tuple(dictionaries), PredicateSpace(tuple(groups)))


def encoded(name: str, rows: pa.Table, across: bool) -> Table:
    columns, nulls, ordered = [], [], []
    for column in rows.columns:
        is_text = pa.types.is_string(column.type)
        values = column.combine_chunks()
        nulls.append(np.asarray(pc.is_null(values)))
        if is_text:
            columns.append(np.asarray(values.fill_null("").to_pylist(), dtype=np.str_))
        else:
            columns.append(np.asarray(values.cast(pa.float64()).fill_null(0.0)))
        ordered.append(not is_text)
    return _table(name, tuple(rows.column_names), columns, nulls, ordered, across)


@dataclass(frozen=True)
class Found:
    """The constraints of a table, and what the choice of indexes needs to know of it."""

    table: Table
    cover: Masks
    known: Statistics
    max_predicates: int = 0  # 0: constraints of any size

    def bounded(self, max_predicates: int) -> Found:
        few = popcounts(self.cover) <= max_predicates
        return replace(self, cover=self.cover[few], max_predicates=max_predicates)


def constraints(table: Table) -> Found:
    """All pairs compared; the statistics are those of a sample."""
    n, n_words = table.n_rows, n_words_for(table.space.n_predicates)
    everyone = np.arange(n)
    live = np.ones(n, dtype=np.bool_)
    evidence = predicate_evidence.evidence_counts(
        table.codes, live, table.probes(everyone), table.groups, n_words, within=True
    )
    space = table.space
    kernel = Space(
        np.array(space.group_of, np.int32),
        np.array(space.op_of, np.int32),
        np.array(space.mirror, np.int32),
        True,
    )
    cover = search.minimal_dcs(evidence.masks, kernel)
    rng = np.random.default_rng(SEED)
    rows = np.sort(rng.choice(n, min(n, SAMPLE_ROWS), replace=False))
    left, right = rng.integers(0, n, (2, SAMPLE_PAIRS))
    apart = left != right
    seen = predicate_evidence.pairs_evidence_of(
        table.codes, table.probes(everyone), table.groups, n_words, left[apart], right[apart]
    )
    sample = PairSample(seen.masks, seen.counts)
    return Found(
        table, cover, statistics(space, table.names, table.codes[:, rows], table.n_distinct, n, sample)
    )


# --- building and asking ------------------------------------------------------------------------


Result = TypeVar("Result")


def seconds(work: Callable[..., Result], *given: Any) -> tuple[float, Result]:
    """CPU seconds of a call, and its result."""
    started = time.thread_time()
    result = work(*given)
    return time.thread_time() - started, result


def build_order(table: Table, key: OrderKey, rows: slice = slice(None)) -> OrderIndex:
    a, b, falling = key
    return order_index.build(table.codes[a, rows], table.codes[b, rows], GE, LE if falling else GE)


def build_list(table: Table, column: int) -> ColumnIndex:
    return order_index.build_column(table.codes[column], len(table.dictionaries[column]))


@dataclass(frozen=True)
class Asked:
    """What the indexes of a selection cost, and gave, for PROBES rows."""

    list_s: list[float]  # to build each index
    order_s: list[float]
    list_look_s: list[float]  # to ask each, for all rows
    order_look_s: list[float]
    ranks: dict[OrderKey, int]
    n_bytes: dict[str, int]
    share: float  # of the pairs of a probe and a row that are found
    total_s: float  # all questions, the evidence of what is found, and the scan


def _bytes(index: OrderIndex | ColumnIndex) -> int:
    return sum(part.nbytes for part in index if isinstance(part, np.ndarray))


def ask(found: Found, chosen: Selection) -> Asked:
    """Build all indexes, ask all questions, compare what is found."""
    table, n_words = found.table, n_words_for(found.table.space.n_predicates)
    rows = np.random.default_rng(SEED).choice(table.n_rows, PROBES, replace=False)
    lists: dict[int, ColumnIndex] = {}
    orders: dict[OrderKey, OrderIndex] = {}
    list_s, order_s, list_look_s, order_look_s = [], [], [], []
    for column in chosen.columns:
        elapsed, lists[column] = seconds(build_list, table, column)
        list_s.append(elapsed)
    for key in chosen.orders:
        elapsed, orders[key] = seconds(build_order, table, key)
        order_s.append(elapsed)
    met = np.zeros((PROBES, table.n_rows), dtype=np.bool_)
    values = np.ascontiguousarray(table.probes(rows)[:, 0])
    total = 0.0
    for source, sets in by_source(chosen).items():
        groups, ops = padded(table.space, source, sets)
        if table.space.op_of[source[0]] == EQ:
            column = int(table.groups.right[groups[0, 0]])
            elapsed, pairs = seconds(walked, table, lists[column], values, groups, ops)
            list_look_s.append(elapsed)
            met[pairs.batch, pairs.old] = True
            total += elapsed
            continue
        turned = [SYMMETRIC[table.space.op_of[p]] for p in source]
        asked = [values[table.space.group_of[p]] for p in source]
        if len(source) == 1:
            index = lists[int(table.groups.right[table.space.group_of[source[0]]])]
            elapsed, hits = seconds(order_index.fetch_column, index, *asked, *turned)
            list_look_s.append(elapsed)
        else:
            key = next(k for k in orders if k[:2] == tuple(right_of(table, source)))
            elapsed, hits = seconds(order_index.fetch, orders[key], *asked, *turned)
            order_look_s.append(elapsed)
        total += elapsed
        batch, old = hits.probes.astype(np.int64), hits.rows.astype(np.int64)
        for i in range(len(sets)):
            others = np.flatnonzero(groups[i] >= 0)[len(source) :]
            elapsed, kept = seconds(
                dc_probe.satisfied,
                *(table.codes, values, table.groups.right, groups[i, others], ops[i, others], batch, old),
            )
            total += elapsed if len(others) else 0.0
            met[batch[kept], old[kept]] = True
    batch, old = (part.astype(np.int64) for part in np.nonzero(met))
    if len(batch):
        some = slice(None, None, -(-len(batch) // MAX_FOUND))
        elapsed, _ = seconds(
            predicate_evidence.pairs_evidence_of,
            *(table.codes, table.probes(rows), table.groups, n_words, batch[some], old[some]),
        )
        total += elapsed * len(batch) / len(batch[some])
    for access in chosen.of_kind("scan"):
        total += seconds(scan(table, access.columns, rows))[0]
    ranks = {key: index.rank for key, index in orders.items()}
    n_bytes = {
        "posting list": sum(map(_bytes, lists.values())),
        "order index": sum(map(_bytes, orders.values())),
    }
    return Asked(list_s, order_s, list_look_s, order_look_s, ranks, n_bytes, len(batch) / met.size, total)


def right_of(table: Table, source: Numbers) -> list[int]:
    return [int(table.groups.right[table.space.group_of[p]]) for p in source]


def by_source(chosen: Selection) -> dict[Numbers, list[Numbers]]:
    """What is compared beside each source, t being the batch row; both directions of each access."""
    found: dict[Numbers, list[Numbers]] = {}
    at = {name: i for i, name in enumerate(chosen.names)}
    mirror = chosen.space.mirror
    for access in chosen.accesses:
        straight = (access.source, access.predicates)
        for source, predicates in {straight, tuple(tuple(sorted(mirror[p] for p in s)) for s in straight)}:
            # As the columns of an order index stand.
            ordered = tuple(sorted(source, key=lambda p: (at[chosen.space.predicates[p].right], p)))
            if ordered:
                found.setdefault(ordered, []).append(predicates)
    return found


def padded(space: PredicateSpace, source: Numbers, sets: Sequence[Numbers]) -> tuple[Codes, Codes]:
    """(groups, operators) of sets of predicates, the source first, padded with -1, as kernels want them."""
    groups = np.full((len(sets), max(map(len, sets))), -1, dtype=np.int32)
    ops = groups.copy()
    for i, predicates in enumerate(sets):
        others = sorted(set(predicates) - set(source), key=lambda p: (space.op_of[p], p))
        numbers = [*source, *others]
        groups[i, : len(numbers)] = [space.group_of[p] for p in numbers]
        ops[i, : len(numbers)] = [space.op_of[p] for p in numbers]
    return groups, ops


def walked(table: Table, lists: ColumnIndex, values: Codes, groups: Codes, ops: Codes) -> dc_probe.Pairs:
    """The pairs on the posting lists of the sets' first column that satisfy one of the sets."""
    asked = values[groups[0, 0]]
    at = asked >> 1
    starts = lists.offsets[at]
    ends = np.where(asked & 1, starts, lists.offsets[np.minimum(at + 1, len(lists.offsets) - 1)])
    wanted = np.arange(len(groups), dtype=np.int32)
    live = np.ones(table.n_rows, dtype=np.bool_)
    return dc_probe.walked_pairs(
        table.codes, live, values, table.groups.right, lists.rows, starts, ends, wanted, groups, ops, False, 0
    )


def scan(table: Table, scanned: Sequence[int], rows: Ints) -> Callable[[], Any]:
    """Folded rows compared in the groups of the columns concerned. Folding is done before: once a segment."""
    columns = list(scanned)
    groups = table.groups
    inside = np.flatnonzero(np.isin(groups.left, columns) & np.isin(groups.right, columns))
    n_words = n_words_for(table.space.n_predicates)
    folded = np.unique(table.codes[columns], axis=1) if columns else table.codes[:0, :1]
    codes = np.zeros((len(table.names), folded.shape[1]), dtype=np.int32)
    codes[columns] = folded
    probes = np.ascontiguousarray(table.probes(rows)[inside])
    some = predicate_evidence.Groups(*(part[inside] for part in groups))
    live = np.ones(codes.shape[1], dtype=np.bool_)
    return lambda: predicate_evidence.evidence_counts(codes, live, probes, some, n_words)


# --- the report ---------------------------------------------------------------------------------


def mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else 0.0


def title(found: Found) -> str:
    table = found.table
    bound = f", at most {found.max_predicates}" if found.max_predicates else ""
    return (
        f"{table.name} {table.n_rows:,} x {len(table.names)} | {table.space.n_predicates} "
        f"| {len(found.cover):,}{bound}"
    )


CHOICES = {"algorithm 4": select_index, "least cost": select}


def chosen_lines(all_found: Sequence[Found]) -> Iterator[str]:
    """The paper's tables 11 and 12, and figure 14a."""
    yield from (
        "## Indexes, what they serve, and what they cost",
        "",
        "Chosen by algorithm 4 of the paper, and by `select`: the least cost. Indexes: posting lists and "
        f"order indexes. µs a row: for {PROBES} rows of the table, taken as new, all questions, the evidence "
        "of the pairs found (each once), and the scan; estimated by the cost model, and measured. Found: "
        "share of the pairs of such a row with a row of the table; a scan finds none, it compares. DCs: "
        "those of at most so many predicates, where it says so.",
        "",
        "| table | predicates | DCs | chosen by | indexes | DCs by equality / order / column / scan | found "
        "| µs a row: estimated | measured | to choose |",
        "|---|---|---|---|---|---|---|---|---|---|",
    )
    kinds: tuple[Kind, ...] = ("equality", "order", "column", "scan")
    details = []
    for found in all_found:
        for name, choose in CHOICES.items():
            elapsed, chosen = seconds(choose, found.cover, found.table.space, found.known)
            asked = ask(found, chosen)
            by = " / ".join(f"{sum(a.n_served for a in chosen.of_kind(kind)):,}" for kind in kinds)
            yield (
                f"| {title(found)} | {name} | {len(chosen.columns)} + {len(chosen.orders)} | {by} "
                f"| {100 * asked.share:.2f} % | {chosen.cost_ns / 1e3:,.1f} "
                f"| {asked.total_s / PROBES * 1e6:,.1f} | {elapsed:.2f} s |"
            )
            details.append((found, name, chosen, asked))
        scanned = scan_all(found)
        yield (
            f"| {title(found)} | (all scanned) | 0 + 0 | 0 / 0 / 0 / {len(found.cover):,} | - "
            f"| {costs.SCANNED_NS * found.table.n_rows / 1e3:,.1f} | {scanned / PROBES * 1e6:,.1f} | - |"
        )
    yield ""
    for name, (n_dcs, n_indexes) in PUBLISHED.items():
        yield f"The paper reports {n_indexes} indexes for {n_dcs:,} DCs of {name}."
    yield from ("", "## Posting lists and order indexes", "")
    yield "Means of each index that algorithm 4 chose; a look-up is one row, what the index gives included."
    yield from (
        "",
        "| table | DCs | type | indexes | create, ms | look-up, µs | bytes a row | selectivity | rank |",
        "|---|---|---|---|---|---|---|---|---|",
    )
    for found, name, chosen, asked in details:
        if name != "algorithm 4":
            continue
        told = (
            ("posting list", len(chosen.columns), asked.list_s, asked.list_look_s, ("equality", "column")),
            ("order index", len(chosen.orders), asked.order_s, asked.order_look_s, ("order",)),
        )
        for kind, n, create_s, look_s, of in told:
            shares = [a.source_selectivity for a in chosen.accesses if a.kind in of]
            rank = f"{mean(list(asked.ranks.values())):.1f}" if kind == "order index" and n else "-"
            look_us, size = mean(look_s) / PROBES * 1e6, asked.n_bytes[kind] / max(1, n) / found.table.n_rows
            if n:
                yield (
                    f"| {found.table.name} | {len(found.cover):,} | {kind} | {n} "
                    f"| {mean(create_s) * 1e3:.2f} | {look_us:,.1f} | {size:.1f} "
                    f"| {100 * mean(shares):.2f} % | {rank} |"
                )


def scan_all(found: Found) -> float:
    """CPU seconds to compare PROBES rows with all rows, on all columns."""
    rows = np.random.default_rng(SEED).choice(found.table.n_rows, PROBES, replace=False)
    return seconds(scan(found.table, range(len(found.table.names)), rows))[0]


def explain_lines(found: Found) -> Iterator[str]:
    """What was chosen for one table."""
    chosen = select(found.cover, found.table.space, found.known)
    asked = ask(found, chosen)
    yield from (
        f"### {found.table.name}, {len(found.cover):,} DCs: the accesses of the least cost",
        "",
        "| kind | predicates | serves | could serve | selectivity | score of the paper | rank | µs a row |",
        "|---|---|---|---|---|---|---|---|",
    )
    for access in chosen.with_ranks(asked.ranks).accesses:
        predicates = " and ".join(str(found.table.space.predicates[p]) for p in access.predicates)
        score = "-" if access.score is None else f"{access.score:.3f}"
        yield (
            f"| {access.kind} | {predicates or ', '.join(found.table.names[c] for c in access.columns)} "
            f"| {access.n_served:,} | {access.coverage:,} | {access.selectivity:.2g} | {score} "
            f"| {access.rank or '-'} | {access.cost_ns / 1e3:,.1f} |"
        )


def size_lines(table: Table, sizes: Sequence[int]) -> Iterator[str]:
    """Figures 14b and 14c: indexes and their ranks as the table grows."""
    for n in sizes:
        found = constraints(table.first(n))
        chosen = select_index(found.cover, found.table.space, found.known)
        ranks = [build_order(found.table, key).rank for key in chosen.orders]
        guessed = [found.known.ranks[a, b] for a, b, _ in chosen.orders]
        yield (
            f"| {table.name} | {n:,} | {len(found.cover):,} | {len(chosen.columns)} | {len(chosen.orders)} "
            f"| {mean(ranks):.1f} | {mean(guessed):.1f} |"
        )


def rank_lines(found: Found) -> Iterator[str]:
    """Figure 15: ranks of all pairs of ordered columns, by |r|."""
    table, known = found.table, found.known
    ordered = [i for i, group in enumerate(table.space.groups[: len(table.names)]) if group.ordered]
    pairs = sorted(combinations(ordered, 2), key=lambda ab: -abs(known.correlation[ab]))
    for a, b in pairs:
        falling = known.falling(a, b)
        rank, other = (build_order(table, (a, b, f)).rank for f in (falling, not falling))
        strict = order_index.build(table.codes[a], table.codes[b], GT, LT if falling else GT).rank
        yield (
            f"| {table.name} | {table.names[a]}, {table.names[b]} | {len(table.dictionaries[a]):,}, "
            f"{len(table.dictionaries[b]):,} | {known.correlation[a, b]:+.2f} | {rank} | {other} | {strict} "
            f"| {known.ranks[a, b]:.0f} |"
        )


def segment_lines(found: Found) -> Iterator[str]:
    """Figures 14d to 14f, in our form: an index of each segment, never changed, against a merged one."""
    table, known = found.table, found.known
    ordered = [i for i, group in enumerate(table.space.groups[: len(table.names)]) if group.ordered]
    keys = [(a, b, known.falling(a, b)) for a, b in combinations(ordered, 2)]
    rows = np.random.default_rng(SEED).choice(table.n_rows, PROBES, replace=False)
    whole = 0.0
    for n_segments in SEGMENTS:
        edges = np.linspace(0, table.n_rows, n_segments + 1).astype(int).tolist()
        sums, build_s, look_s = [], 0.0, 0.0
        for key in keys:
            probes = [2 * table.codes[c][rows] for c in key[:2]]
            chains = 0
            for start, stop in pairwise(edges):
                elapsed, index = seconds(build_order, table, key, slice(start, stop))
                build_s += elapsed
                chains += index.rank
                look_s += seconds(order_index.count, index, *probes, GE, LE)[0]
            sums.append(chains)
        whole = whole or mean(sums)
        yield (
            f"| {table.name} | {len(keys)} | {n_segments} | {mean(sums):.1f} | {mean(sums) / whole:.2f} x "
            f"| {build_s / len(keys) * 1e3:.1f} | {look_s / len(keys) / PROBES * 1e6:.1f} |"
        )


def price_lines(found: Found) -> Iterator[str]:
    """What the cost model is made of."""
    table = found.table
    rng = np.random.default_rng(SEED)
    rows = rng.choice(table.n_rows, PROBES, replace=False)
    ordered = [i for i, group in enumerate(table.space.groups[: len(table.names)]) if group.ordered]
    chain, fetched = [], []
    for a, b in combinations(ordered, 2):
        index = build_order(table, (a, b, found.known.falling(a, b)))
        probes = [2 * table.codes[c][rows] for c in (a, b)]
        count_s = seconds(order_index.count, index, *probes, GE, LE)[0]
        asked_s, hits = seconds(order_index.fetch, index, *probes, GE, LE)
        chain.append(2 * count_s / (PROBES * index.rank))
        fetched.append(max(0.0, asked_s - 2 * count_s) / max(1, len(hits.rows)))
    fewest = min(ordered, key=lambda c: len(table.dictionaries[c]))
    one, nine = (compare_ns(found, rows, fewest, n) for n in (1, 9))
    compared = (nine - one) / 8
    n_words = n_words_for(table.space.n_predicates)
    batch, old = rng.integers(0, PROBES, 300_000), rng.integers(0, table.n_rows, 300_000)
    found_s, _ = seconds(
        predicate_evidence.pairs_evidence_of,
        *(table.codes, table.probes(rows), table.groups, n_words, batch, old),
    )
    scanned = scan_all(found) / (PROBES * table.n_rows)
    n_groups = len(table.space.groups)
    yield (
        f"| {table.name} | {np.median(chain) * 1e9:.0f} ({costs.ASKED_NS:g}) "
        f"| {one - compared:.1f} ({costs.WALKED_NS:g}) "
        f"| {np.median(fetched) * 1e9:.1f} ({costs.FETCHED_NS:g}) "
        f"| {compared:.1f} ({costs.COMPARED_NS:g}) "
        f"| {found_s / len(batch) / n_groups * 1e9:.1f} ({costs.FOUND_NS:g}) "
        f"| {scanned * 1e9:.1f} ({costs.SCANNED_NS:g}) |"
    )


def compare_ns(found: Found, rows: Ints, column: int, n_sets: int) -> float:
    """ns a row of the column's posting lists, compared on so many sets of two `=`."""
    table, space = found.table, found.table.space
    equal = [space.first[g] for g in range(len(table.names))]
    others = sorted(set(equal) - {equal[column]}, key=lambda p: -table.n_distinct[space.group_of[p]])
    groups, ops = padded(space, (equal[column],), [(equal[column], p) for p in others[:n_sets]])
    values = np.ascontiguousarray(table.probes(rows)[:, 0])
    lists = build_list(table, column)
    n_given = int(np.diff(lists.offsets)[table.codes[column][rows]].sum())
    runs = [seconds(walked, table, lists, values, groups, ops)[0] for _ in range(3)]
    return min(runs) / n_given * 1e9


def report(data: Path | None, quick: bool) -> Iterator[str]:
    host = machine()
    yield from (
        "# Indexes of denial constraints",
        "",
        f"{host['cores']} cores ({host['cpu']}), load {host['load_at_start']} at the start; CPU seconds of "
        "one core; " + ", ".join(f"{name} {version}" for name, version in versions(()).items()) + ".",
        "",
    )
    warm_up()
    loaded = open_tables(data, quick)
    every = []
    for table in loaded:
        elapsed, found = seconds(constraints, table)
        say(f"{table.name}: {len(found.cover):,} constraints in {elapsed:.1f} s")
        every += [found, *(found.bounded(n) for n in BOUNDS if len(found.cover) > FEW)]
    yield from chosen_lines(every)
    yield ""
    for found in every:
        if len(found.cover) <= FEW:
            yield from (*explain_lines(found), "")
    whole = [found for found in every if not found.max_predicates]
    many = [f for f in whole if sum(g.ordered for g in f.table.space.groups) > 2]
    yield from (
        "## As the table grows",
        "",
        "Algorithm 4 on the first rows. Guessed: the mean rank as estimated from a sample of "
        f"{SAMPLE_ROWS:,} rows. The paper: 40 to 49 indexes of mean rank 53 to 61 on 16,000 to 32,000 rows "
        "of adult, with strict operators and columns across.",
        "",
        "| table | rows | DCs | posting lists | order indexes | mean rank | guessed |",
        "|---|---|---|---|---|---|---|",
    )
    for found in many:
        n = found.table.n_rows
        yield from size_lines(found.table, [n // 4, n // 2, n])
    yield from (
        "",
        "## Rank and correlation",
        "",
        "All pairs of ordered columns. Rank: in the direction of r; then in the other direction, of a strict "
        "index (the paper's), and as estimated from the sample.",
        "",
        "| table | columns | values | r | rank | turned round | strict | guessed |",
        "|---|---|---|---|---|---|---|---|",
    )
    for found in many:
        yield from rank_lines(found)
    yield from (
        "",
        "## Several segments, or one merged",
        "",
        "Order indexes of all pairs of ordered columns. Segments are never changed; what in the paper is a "
        "rank that grows by updates is here the sum of the ranks of all segments, until they are merged.",
        "",
        "| table | indexes | segments | chains | of one segment | build, ms | look-up (count), µs |",
        "|---|---|---|---|---|---|---|",
    )
    for found in many:
        yield from segment_lines(found)
    yield from (
        "",
        "## The cost model",
        "",
        "ns, measured, and in brackets as the model has them: to ask a chain (count and fill), a row of a "
        "posting list, a row that an order index gives, to compare such a row on one more set of predicates, "
        "a pair found for each group, a pair scanned.",
        "",
        "| table | chain | walked | fetched | compared | found, a group | scanned |",
        "|---|---|---|---|---|---|---|",
    )
    for found in many:
        yield from price_lines(found)


def open_tables(data: Path | None, quick: bool) -> Iterator[Table]:
    """airport and adult if there are files of them, and tax.

    adult without predicates across columns: with them it has 468,986 constraints, which take a minute.
    """
    for name, n_rows, across in (("airport", 30_000, True), ("adult", 24_000, False)):
        folder = next((f for f in (data, REAL) if f is not None and (f / f"{name}.csv").exists()), None)
        if folder is None:
            say(f"{name}: no {name}.csv in --data or {REAL.relative_to(ROOT)}; left out")
            continue
        n = n_rows // 4 if quick else n_rows
        yield encoded(name, first_rows(name, n_rows, folder).rows(np.arange(n)), across)
    n = 10_000 if quick else 40_000
    yield encoded("tax", tax_table(n).rows(np.arange(n)), True)


def warm_up() -> None:
    for kernel in (order_index, predicate_evidence, search, dc_probe):
        kernel.warm_up()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="a folder with airport.csv and adult.csv")
    parser.add_argument("--quick", action="store_true", help="a quarter of the rows")
    options = parser.parse_args(argv)
    for line in report(options.data, options.quick):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
