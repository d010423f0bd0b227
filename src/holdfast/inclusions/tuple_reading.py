"""What an inclusion of several columns misses now, from the rows: of those that are asked for."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.core.rows.relation import Relation
from holdfast.core.words.dependency import Ind, Side
from holdfast.errors import UsageError
from holdfast.inclusions.generator import GeneratorState
from holdfast.inclusions.links.facts import counted_sides
from holdfast.inclusions.tuples import Look, MissingTuples, TableRows, missing_tuples


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
    counted = counted_sides([dependent] if missing.n_tuples else [], rows, as_text)
    error = missing.n_tuples / max(1, counted.get(dependent, 1))
    return Ind(dependent, referenced, error, missing.n_tuples, missing.n_rows, None), missing


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
