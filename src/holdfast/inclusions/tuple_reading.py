"""What an inclusion of several columns misses now, from the rows: of those that are asked for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from holdfast.core.cover.news import plain_rows
from holdfast.core.rows.relation import Relation
from holdfast.core.words.change import WitnessRow
from holdfast.core.words.dependency import Ind, Side
from holdfast.errors import UsageError
from holdfast.inclusions.generator import GeneratorState
from holdfast.inclusions.ind_explanation import Missing
from holdfast.inclusions.links.facts import counted_sides
from holdfast.inclusions.tuples import Look, MissingTuples, TableRows, missing_tuples

# So many of the first rows are looked at for each combination that is shown: several may have one.
ROWS_EACH = 64


def misses(
    state: GeneratorState,
    dependent: Side,
    referenced: Side,
    relation: Callable[[str], Relation],
    limit: int | None = 0,
) -> tuple[Ind, MissingTuples]:
    """An inclusion with what it misses, and the first rows that do.

    Cost: that of `missing_tuples`, and a pass over the rows of the dependent table if there are some."""
    missing = missing_of(state, dependent, referenced, relation, limit)
    as_text = {t.table: t.as_text for t in state.tables}
    rows = {dependent.table: relation(dependent.table)}
    counted = counted_sides([dependent] if missing.n_tuples else [], rows, as_text, with_nulls=True)
    error = missing.n_tuples / max(1, counted.get(dependent, 1))
    return Ind(dependent, referenced, error, missing.n_tuples, missing.n_rows, None), missing


def first_missing(
    state: GeneratorState,
    dependent: Side,
    referenced: Side,
    relation: Callable[[str], Relation],
    n: int,
) -> tuple[Ind, Missing]:
    """An inclusion, and some of the combinations that it misses, each with a row that carries it."""
    ind, missing = misses(state, dependent, referenced, relation, n * ROWS_EACH)
    _, first = np.unique(missing.group, return_index=True)
    ids = missing.row_ids[first[:n]].tolist()
    rows = plain_rows(relation(dependent.table).fetch(ids))
    return ind, tuple(
        ([row[c] for c in dependent.columns], WitnessRow(i, row)) for i, row in zip(ids, rows, strict=True)
    )


def missing_of(
    state: GeneratorState,
    dependent: Side,
    referenced: Side,
    relation: Callable[[str], Relation],
    limit: int | None = 0,
) -> MissingTuples:
    """What an inclusion misses, and the first rows that do. Cost: that of `missing_tuples`."""
    if len(dependent.columns) != len(referenced.columns):
        raise UsageError(f"{dependent} and {referenced} have different numbers of columns.")
    as_text = {t.table: t.as_text for t in state.tables}
    rows = {side.table: relation(side.table) for side in (dependent, referenced)}
    left, right = (
        TableRows(rows[side.table], (), (), None, as_text[side.table]) for side in (dependent, referenced)
    )
    columns, partners = (
        tuple(rows[side.table].schema.names.index(c) for c in side.columns)
        for side in (dependent, referenced)
    )
    look = Look(dependent.table, referenced.table, columns, partners, everything=True)
    return missing_tuples(left, right, look, limit)
