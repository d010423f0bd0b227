"""From row counts to row rules with names: what `show` lists. Needs no kernels.

A pair of columns gives one rule at most: the tightest operator that no row violates, or at most the allowed
share of all rows. Any share can be asked for at any time; `max_error` is the one whose changes are told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from holdfast.core.rows.table_state import TableState
from holdfast.core.store.bundle import open_bundle, write_bundle
from holdfast.core.store.files import FileRef, unique_name
from holdfast.core.store.root import Root
from holdfast.core.words.predicate import Operator
from holdfast.core.words.row_rule import RowRule, comparison
from holdfast.core.words.schema import Schema
from holdfast.denial.row_counts import OPERATORS, RowCounts, where_kinds
from holdfast.denial.shown_rows import NO_ROWS, ShownRows

I32 = NDArray[np.int32]
Bool = NDArray[np.bool_]

WHAT = "row-rules"
# With more pairs than this the file is compressed: every version has one.
LARGE = 1000
_OPERATORS = cast("tuple[Operator, ...]", OPERATORS)


@dataclass(frozen=True)
class RowRuleState:
    """What is known of a table's row rules; exact for the relation it was computed on.

    `pairs` int32[n_pairs, 2] are positions of columns, ascending, fixed when the table is tracked; `apart`
    bool[n_pairs] tells of which all values of one column are less than all of the other. `gone` and `come`
    are rows that news of the last batch may show.
    """

    pairs: I32
    counts: RowCounts
    max_error: float
    apart: Bool
    gone: ShownRows = NO_ROWS
    come: ShownRows = NO_ROWS


def comparable_pairs(schema: Schema, columns: Collection[str] | None = None) -> I32:
    """The pairs of columns that compare, int32[n_pairs, 2], in the order of the schema; of some columns only.

    Their number is quadratic in the columns: 16 columns of one type have 120.
    """
    chosen = [i for i, name in enumerate(schema.names) if columns is None or name in columns]
    left, right = np.triu_indices(len(chosen), 1)
    positions = np.array(chosen, dtype=np.int32)
    pairs = np.stack([positions[left], positions[right]], axis=1)
    return pairs[where_kinds(schema.types, pairs, lambda a, b: comparison(a, b) is not None)]


def ordered_pairs(pairs: I32, schema: Schema) -> Bool:
    """Of which pairs the values have an order: bool[n_pairs]."""
    return where_kinds(schema.types, pairs, lambda a, b: comparison(a, b) == "order")


def rules_of(state: RowRuleState, table: str, schema: Schema, max_error: float = 0.0) -> list[RowRule]:
    """The rules within an error, best first; of each pair one at most, its columns as the schema has them.

    Rules between columns whose ranges overlap come first, those that are `apart` last; of either, `!=`, which
    says least, behind the others; then those with the smaller error; then as the schema has their columns.
    Cost: a pass over the counts.
    """
    chosen = state.counts.tightest(ordered_pairs(state.pairs, schema), max_error)
    at = np.flatnonzero(chosen >= 0)
    rules = named_rules(state, table, schema, zip(at.tolist(), chosen[at].tolist(), strict=True))
    return sorted(rules, key=lambda r: (r.apart, r.op == "!=", r.error))


def named_rules(
    state: RowRuleState, table: str, schema: Schema, chosen: Iterable[tuple[int, int]]
) -> list[RowRule]:
    """Rules by (number of a pair, number of an operator), with what violates them."""
    violations, compared, n_rows = state.counts.violations(), state.counts.n_compared, state.counts.n_rows
    rules = []
    for p, op in chosen:
        a, b = state.pairs[p].tolist()
        n = int(violations[p, op])
        rules.append(
            RowRule(
                table,
                schema.names[a],
                _OPERATORS[op],
                schema.names[b],
                n / n_rows if n_rows else 0.0,
                n,
                int(compared[p]),
                bool(state.apart[p]),
            )
        )
    return rules


def filled_columns(state: RowRuleState, schema: Schema) -> frozenset[str]:
    """Columns without NULL, of those that are compared with another one that has none either."""
    counts = state.counts
    whole = counts.n_compared == counts.counts.sum(axis=1)
    return frozenset(schema.names[c] for c in np.unique(state.pairs[whole]).tolist())


def rules_and_filled(known: RowRuleState, state: TableState) -> tuple[list[RowRule], frozenset[str]]:
    """(the rules that hold, columns without NULL): what says which denial constraints follow."""
    return rules_of(known, state.table, state.schema), filled_columns(known, state.schema)


def measured(state: RowRuleState, schema: Schema, rule: RowRule) -> RowRule | None:
    """A rule, written in either direction, with what violates it now; None if its columns are not tracked."""
    position = {name: i for i, name in enumerate(schema.names)}
    a, b = position[rule.left], position[rule.right]
    at = np.flatnonzero((state.pairs == [min(a, b), max(a, b)]).all(axis=1))
    if not len(at):
        return None
    forward = rule if a < b else rule.mirrored
    [rule_now] = named_rules(state, rule.table, schema, [(int(at[0]), OPERATORS.index(forward.op))])
    return rule_now if a < b else rule_now.mirrored


# -- on disk -----------------------------------------------------------------------------------


def save(
    root: Root, folder: str, state: RowRuleState, previous: RowRuleState | None, ref: FileRef | None
) -> FileRef:
    """Write the state, unless it is what the last commit has."""
    if ref is not None and state is previous:
        return ref
    arrays = {
        "pairs": state.pairs,
        **state.counts.to_arrays(),
        "apart": state.apart.astype(np.uint8),
        "max_error": np.array([state.max_error]),
    }
    # Named a cover: past rules are read from it, so it is kept for good.
    name, large = unique_name(folder, "cover", ".arrow"), len(state.pairs) > LARGE
    return write_bundle(root, name, arrays, {"holdfast": WHAT}, compress=large)


def load(root: Root, ref: FileRef) -> RowRuleState:
    bundle = open_bundle(root, ref, WHAT)
    return RowRuleState(
        bundle.array("pairs").reshape(-1, 2),
        RowCounts.from_arrays({"counts": bundle.array("counts")}),
        float(bundle.array("max_error")[0]),
        bundle.array("apart").astype(np.bool_),
    )
