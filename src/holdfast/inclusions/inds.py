"""Unary inclusion dependencies, discovered and maintained (Shaabani and Meinel).

The generator (value -> {column: frequency}) is linear state, kept as runs; from it follow the attribute
clusters, and from those the pair counts: how many values two columns share. A is included in B iff it
shares all of its values with B, which is to say that every cluster with A has B (Lemma 4.2).

A batch is one delta, inserts minus deletes. Its values are looked up once each; their old clusters go,
their new ones come; that changes the counts of pairs inside these clusters, and of no others. So only
pairs of touched columns are looked at for what broke and what appeared.

Departures from the paper: a batch at a time instead of a row; the generator is runs of sorted entries
instead of a relational table, so no lookup is ever repeated within a batch (what ValCache saves), and
cluster sizes are kept instead of counted (what CountCache saves); frequencies per cluster give the
number of rows that are missing, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from holdfast.core.rows.table_state import TableState
from holdfast.core.store.bundle import write_bundle
from holdfast.core.store.files import unique_name
from holdfast.core.store.root import Root
from holdfast.errors import NOTHING_APPLIED, UsageError, listing
from holdfast.inclusions.generator import GeneratorState, SumRef, ValueTable
from holdfast.inclusions.kernels.clusters import (
    Clusters,
    joined_clusters,
    pair_counts,
    tally,
    without_columns,
)
from holdfast.inclusions.pair_counts import PairCounts, by_left
from holdfast.inclusions.runs import read_clusters, write_clusters
from holdfast.inclusions.values import Cells, Values
from holdfast.kind import Crossing, Step

U64 = NDArray[np.uint64]
U32 = NDArray[np.uint32]

# Files of signed counts that are summed up at most before they are written as one.
MAX_SUMS = 16


@dataclass(frozen=True)
class Inclusions:
    """The generator's state and the pair counts it leads to."""

    state: GeneratorState
    pairs: PairCounts

    @cached_property
    def holding(self) -> U64:
        """The pairs of columns of which the left is included in the right."""
        return self.pairs.holding(self.state.next_id)

    def with_state(self, state: GeneratorState) -> Inclusions:
        """The same inclusions of a state that differs only in how its runs lie."""
        same = replace(self, state=state)
        same.__dict__["holding"] = self.holding
        return same

    @classmethod
    def load(cls, root: Root, state: GeneratorState) -> Inclusions:
        return cls(state, PairCounts.load(root, state.pairs))


@dataclass(frozen=True)
class IndStep:
    """The inclusions before and after a batch."""

    before: Inclusions
    after: Inclusions
    broke: U64  # pairs
    appeared: U64
    keys: Mapping[int, U64]  # pair -> identities of the first values that break it
    checks: Mapping[int, U32]
    accesses: Mapping[str, int]


def joined(state: GeneratorState, chosen: ValueTable) -> GeneratorState:
    """The state with the columns of a table that is being tracked."""
    return replace(state, tables=(*state.tables, chosen), next_id=chosen.first + len(chosen.columns))


def chosen_columns(
    state: GeneratorState,
    table: TableState,
    columns: Sequence[str] | None,
    exclude: Sequence[str],
    *,
    as_text: bool,
) -> ValueTable:
    """The columns of a table that take part, by patterns; an error if none is left."""
    names = table.schema.chosen(columns, exclude)
    if not names and len(table.schema):
        raise UsageError(
            f"the patterns leave no column of table {table.table!r} to look for inclusions in. "
            f"{NOTHING_APPLIED} Its columns: {listing(table.schema.names)}."
        )
    return ValueTable(table.table, state.next_id, tuple(names), as_text, table.append_only)


def absorb(values: Values, known: Inclusions, steps: Sequence[Step | Crossing]) -> IndStep:
    """The inclusions after the batches of some tables, taken together.

    `values.state` has the tables of the steps already. Cost: follows the batches, and the number of
    columns that share values with theirs.
    """
    state = values.state
    cells = [c for step in steps for c in _cells(state, step)]
    holding = known.holding
    offsets, rights = by_left(holding, state.next_id)
    absorption = values.absorb(cells, offsets, rights)
    delta = PairCounts(*pair_counts(absorption.clusters))
    pairs = PairCounts.sum([known.pairs, delta])
    touched = np.unique(delta.left)
    after_touched = pairs.of_left(touched).holding(state.next_id)
    was_touched = np.isin((holding >> np.uint64(32)).astype(np.int64), touched)
    before_touched = holding[was_touched]
    broke = np.setdiff1d(before_touched, after_touched, assume_unique=True)
    appeared = np.setdiff1d(after_touched, before_touched, assume_unique=True)
    state = replace(state, runs=(*state.runs, *absorption.runs))
    state = _saved(replace(values, state=state), absorption.clusters, delta, pairs)
    after = Inclusions(state, pairs)
    # What was not touched holds as it did.
    after.__dict__["holding"] = np.sort(np.concatenate([holding[~was_touched], after_touched]))
    hit = {int(holding[h]): int(h) for h in np.flatnonzero(absorption.broken)}
    shown = {p: min(int(absorption.broken[h]), absorption.keys.shape[1]) for p, h in hit.items()}
    return IndStep(
        known,
        after,
        broke,
        appeared,
        {p: absorption.keys[h, : shown[p]] for p, h in hit.items()},
        {p: absorption.checks[h, : shown[p]] for p, h in hit.items()},
        absorption.accesses,
    )


def _cells(state: GeneratorState, step: Step | Crossing) -> list[Cells]:
    table = state.table(step.state.table)
    if table is None:
        return []
    schema = step.state.schema
    gone = [Cells(table, schema, ref, positions, -1) for ref, positions in step.deleted]
    return gone + [Cells(table, schema, ref, None, 1) for ref in step.added]


def dropped(values: Values, known: Inclusions, table: str) -> Inclusions:
    """The inclusions without the columns of a table; no value is looked at: entries go when runs merge."""
    state = known.state
    leaving = state.table(table)
    if leaving is None:
        return known
    gone = np.zeros(state.next_id, dtype=np.bool_)
    gone[leaving.first : leaving.first + len(leaving.columns)] = True
    clusters = without_columns(read_clusters(values.root, state.clusters), gone)
    pairs = known.pairs.without_columns(gone)
    remaining = tuple(t for t in state.tables if t.table != table)
    n_dead = state.n_dead + int(known.pairs.of_columns(state.next_id)[0][gone].sum())
    state = replace(
        state,
        tables=remaining,
        n_dead=n_dead,
        clusters=(write_clusters(values.root, values.folder, clusters),),
        pairs=(_write_pairs(values, pairs),),
    )
    return Inclusions(replace(values, state=state).tidied(), pairs)


def _saved(values: Values, change: Clusters, delta: PairCounts, pairs: PairCounts) -> GeneratorState:
    """The state with the changes of clusters and pairs written: by themselves, or summed up."""
    state = values.state
    if len(change.sizes):
        files: tuple[SumRef, ...] = state.clusters
        if _too_many(files, len(change.sizes)):
            files, change = (), tally(joined_clusters([read_clusters(values.root, files), change]))
        state = replace(state, clusters=(*files, write_clusters(values.root, values.folder, change)))
    if len(delta):
        files = state.pairs
        if _too_many(files, len(delta)):
            files, delta = (), pairs
        state = replace(state, pairs=(*files, _write_pairs(values, delta)))
    return state


def _too_many(sums: Sequence[SumRef], n_more: int) -> bool:
    """Whether one more file of signed counts, with so many, is better written as the sum of all."""
    return len(sums) >= MAX_SUMS or sum(s.n for s in sums[1:]) + n_more > sum(s.n for s in sums[:1])


def _write_pairs(values: Values, pairs: PairCounts) -> SumRef:
    # Named a cover: past inclusions are read from it, so it is kept for good.
    name = unique_name(values.folder, "cover", ".arrow")
    return SumRef(write_bundle(values.root, name, pairs.to_arrays(), {"holdfast": "pairs"}), len(pairs))
