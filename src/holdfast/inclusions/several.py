"""Inclusions of several columns by their sides: their single columns, and the form in which they are kept."""

from __future__ import annotations

from holdfast.core.words.dependency import Side
from holdfast.inclusions.composite_state import Composite
from holdfast.inclusions.generator import GeneratorState


def single_columns(dependent: Side, referenced: Side) -> list[tuple[Side, Side]]:
    """The inclusions of its columns, one by one: all of them hold if it does.

    >>> [(left, *_), *_] = single_columns(Side("t", ("a", "b")), Side("u", ("x", "y")))
    >>> left
    Side(table='t', columns=('a',))
    """
    pairs = zip(dependent.columns, referenced.columns, strict=True)
    return [(Side(dependent.table, (a,)), Side(referenced.table, (b,))) for a, b in pairs]


def node_of(state: GeneratorState, dependent: Side, referenced: Side) -> Composite:
    """The inclusion with its columns in the order of the dependent table's schema; they take part."""
    table = state.table(dependent.table)
    assert table is not None
    order = sorted(range(len(dependent.columns)), key=lambda i: table.columns.index(dependent.columns[i]))
    left, right = (Side(s.table, tuple(s.columns[i] for i in order)) for s in (dependent, referenced))
    return Composite(left, right)
