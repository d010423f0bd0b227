"""One law for every type of state: repaired under a change, it means what it means from scratch."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from laws.registry import STATES, StateType
from strategies import shapes

each_state = pytest.mark.parametrize("state", STATES, ids=lambda s: s.type.__name__)
NULLS = st.sampled_from(["equal", "distinct"])
SHAPES = shapes(types=("int", "text", "float"), pool_size=3)


def test_every_state_is_registered() -> None:
    """A class whose module names a kind of state is in the registry, with the kind that it claims."""
    claimed = {}
    for found in pkgutil.walk_packages(holdfast.__path__, "holdfast."):
        if ".app" in found.name or ".kernels" in found.name or found.name.endswith("__main__"):
            continue
        module = importlib.import_module(found.name)
        for _, cls in inspect.getmembers(module, inspect.isclass):
            if cls.__module__ == module.__name__ and "Kind of state:" in (module.__doc__ or ""):
                claimed[cls] = (
                    (module.__doc__ or "").split("Kind of state:")[1].split(maxsplit=1)[0].strip(",.;")
                )
    # Where the arrays themselves are the state, its type is a kernel's.
    assert claimed == {s.type: s.kind for s in STATES if ".kernels." not in s.type.__module__}


@each_state
@given(shape=SHAPES, nulls=NULLS, data=st.data())
def test_growing(state: StateType, shape, nulls: str, data: st.DataObject) -> None:  # type: ignore[no-untyped-def]
    rows = dict(enumerate(data.draw(shape.rows(max_size=9))))
    cut = data.draw(st.integers(0, len(rows)))
    old = {i: r for i, r in rows.items() if i < cut}
    new = {i: r for i, r in rows.items() if i >= cut}
    before = state.scratch(old, shape.n_columns, nulls)
    after = state.grown(before, old, new, shape.n_columns, nulls)
    assert state.meaning(after) == state.meaning(state.scratch(rows, shape.n_columns, nulls))


@each_state
@given(shape=SHAPES, nulls=NULLS, data=st.data())
def test_shrinking(state: StateType, shape, nulls: str, data: st.DataObject) -> None:  # type: ignore[no-untyped-def]
    rows = dict(enumerate(data.draw(shape.rows(max_size=9))))
    ids = data.draw(st.sets(st.sampled_from(sorted(rows)))) if rows else set()
    left = {i: r for i, r in rows.items() if i not in ids}
    gone = {i: r for i, r in rows.items() if i in ids}
    before = state.scratch(rows, shape.n_columns, nulls)
    after = state.shrunk(before, left, gone, shape.n_columns, nulls)
    assert state.meaning(after) == state.meaning(state.scratch(left, shape.n_columns, nulls))


@each_state
@given(shape=SHAPES, nulls=NULLS, data=st.data())
def test_there_and_back(state: StateType, shape, nulls: str, data: st.DataObject) -> None:  # type: ignore[no-untyped-def]
    """What comes and goes again leaves no trace in what the state means."""
    rows = dict(enumerate(data.draw(shape.rows(max_size=8))))
    cut = data.draw(st.integers(0, len(rows)))
    old = {i: r for i, r in rows.items() if i < cut}
    new = {i: r for i, r in rows.items() if i >= cut}
    before = state.scratch(old, shape.n_columns, nulls)
    there = state.grown(before, old, new, shape.n_columns, nulls)
    back = state.shrunk(there, old, new, shape.n_columns, nulls)
    assert state.meaning(back) == state.meaning(before)
