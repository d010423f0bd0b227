"""Composite inclusions, maintained batch by batch, are those found from scratch, and those of the oracle."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.discovery import steps
from holdfast.discovery.composites import Composite, Composites, CompositeStep, TableRows, maintain
from holdfast.discovery.steps import Context, Step, load_keys, uccs_of
from holdfast.model.dependency import Ind, Side
from holdfast.pipeline import relation, tuple_tasks
from holdfast.pipeline.engine import Engine
from holdfast.storage import codes
from reference import inds as oracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[Any, ...]
# A row is drawn as small numbers, and every type has its own way to write them.
TYPES: dict[str, tuple[pa.DataType, Any]] = {
    "int": (pa.int64(), int),
    "small int": (pa.int8(), int),
    "float": (pa.float64(), float),
    "decimal": (pa.decimal128(12, 2), lambda v: Decimal(v).quantize(Decimal("0.01"))),
    "wide decimal": (pa.decimal128(30, 2), lambda v: Decimal(v).quantize(Decimal("0.01"))),
    "text": (pa.string(), str),
}
NAMES = ("t", "u", "v")


@dataclass
class Held:
    """A table: its types, how it is tracked, and its rows as small numbers."""

    types: tuple[str, ...]
    options: dict[str, Any]
    rows: list[Row] = field(default_factory=list)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"c{i}" for i in range(len(self.types)))

    def written(self, rows: Sequence[Row]) -> list[Row]:
        return [
            tuple(None if v is None else TYPES[t][1](v) for v, t in zip(row, self.types, strict=True))
            for row in rows
        ]

    def table(self, rows: Sequence[Row]) -> pa.Table:
        written = self.written(rows)
        arrays = [pa.array([row[i] for row in written], TYPES[t][0]) for i, t in enumerate(self.types)]
        return pa.table(arrays, names=list(self.names))

    def for_the_oracle(self) -> oracle.Table:
        return oracle.Table(self.names, self.written(self.rows), as_text=self.options["as_text"])


class World:
    """A workspace, and the composite inclusions as maintained along its batches."""

    def __init__(self, root: Path, max_arity: int = 4, engine: Engine | None = None) -> None:
        self.ws = holdfast.open(root, engine="inline")
        self.held: dict[str, Held] = {}
        self.known = Composites.empty()
        self.max_arity = max_arity
        self.engine = engine if engine is not None else self.ws.engine

    def unary(self) -> list[tuple[tuple[str, str], tuple[str, str]]]:
        found = [d for d in self.ws.dependencies(kind="ind") if isinstance(d, Ind)]
        sides = [(d.dependent, d.referenced) for d in found if len(d.dependent.columns) == 1]
        return [((a.table, a.columns[0]), (b.table, b.columns[0])) for a, b in sides]

    def keys(self, name: str) -> tuple[tuple[str, ...], ...] | None:
        state = self.ws._current(name)[1]
        found = load_keys(self.ws.root, state)
        return None if found is None else tuple(u.columns for u in uccs_of(state, found.cover))

    @contextmanager
    def rows(self, done: Sequence[Step]) -> Iterator[dict[str, TableRows]]:
        """All tables after the steps."""
        by_table = {step.table: step for step in done}
        with self.ws._staging() as staging:
            context = Context(self.ws.root, staging, self.engine, lambda _: None)
            tables = {}
            for name, held in self.held.items():
                state = self.ws._current(name)[1]
                step = by_table.get(name)
                there = context.relation(state, state.folder, "")
                if step is not None:
                    there = replace(there, segments=step.rows.segments)
                added = step.added if step is not None else ()
                deleted = tuple(step.deleted()) if step is not None else ()
                tables[name] = TableRows(there, added, deleted, self.keys(name), held.options["as_text"])
            yield tables

    def settle(self, done: Sequence[Step]) -> CompositeStep:
        """Maintain, and hold it against the oracle and against what is found from scratch."""
        unary = self.unary()
        with self.rows(done) as tables:
            step = maintain(self.known, unary, tables, self.max_arity)
            anew = maintain(Composites.empty(), unary, tables, self.max_arity).after
            assert step.after.valid == anew.valid
            assert step.after.listed == anew.listed
            assert set(step.after.refuted) == set(anew.refuted)
            database = {name: held.for_the_oracle() for name, held in self.held.items()}
            keys = {name: self.keys(name) or () for name in self.held}
            truth = oracle.wide_inclusions(database, keys, self.max_arity)
            assert {_sides(c) for c in step.after.listed} == truth
            for node, row_id in step.after.refuted.items():
                self.check_rows(tables, database, node, [row_id])
            assert step.appeared == sorted(step.after.listed - self.known.listed)
            assert [c for c, _ in step.broke] == sorted(self.known.listed - step.after.listed)
            for node, row_ids in step.broke:
                if node.dependent.table in tables and node.referenced.table in tables:
                    self.check_rows(tables, database, node, row_ids)
                    self.check_reason(database, keys, node, row_ids)
        written = json.loads(json.dumps(step.after.to_dict()))
        self.known = Composites.from_dict(written)
        assert self.known == step.after
        return step

    @staticmethod
    def check_rows(
        tables: Mapping[str, TableRows],
        database: dict[str, oracle.Table],
        node: Composite,
        row_ids: Sequence[int],
    ) -> None:
        """Live rows, with tuples that no referenced row has; no row twice."""
        assert len(set(row_ids)) == len(row_ids) <= 4
        fetched = tables[node.dependent.table].relation.fetch(row_ids).to_pylist()
        assert len(fetched) == len(row_ids)
        table = database[node.dependent.table]
        for values in fetched:
            row = tuple(values[name] for name in table.names)
            assert row in table.rows
            alone = {**database, "": oracle.Table(table.names, [row], as_text=table.as_text)}
            dependent, referenced = _sides(node)
            assert not oracle.holds(alone, ("", dependent[1]), referenced)

    @staticmethod
    def check_reason(
        database: dict[str, oracle.Table],
        keys: Mapping[str, Sequence[tuple[str, ...]]],
        node: Composite,
        row_ids: Sequence[int],
    ) -> None:
        """Without rows, it is a part of one column or the key that went."""
        unary = oracle.inclusions(database)
        dependent, referenced = node.dependent, node.referenced
        parts = zip(dependent.columns, referenced.columns, strict=True)
        whole = all(((dependent.table, a), (referenced.table, b)) in unary for a, b in parts)
        keyed = any(set(key) <= set(referenced.columns) for key in keys[referenced.table])
        if whole and keyed:
            assert row_ids

    @contextmanager
    def recorded(self) -> Iterator[list[Step]]:
        """The steps that the workspace takes."""
        done: list[Step] = []
        with pytest.MonkeyPatch.context() as patch:
            for name in ("track", "apply"):
                real = getattr(steps, name)

                def spy(*args: Any, real: Any = real, **options: Any) -> Step:
                    done.append(real(*args, **options))
                    return done[-1]

                patch.setattr(steps, name, spy)
            yield done

    def track(self, name: str, held: Held) -> CompositeStep:
        self.held[name] = held
        with self.recorded() as done:
            self.ws.track(name, held.table(held.rows), **held.options)
        return self.settle(done)

    def apply(self, batches: Mapping[str, tuple[Sequence[Row], Sequence[Row]]]) -> CompositeStep:
        """(deletes, inserts) of each table."""
        given = {}
        for name, (deletes, inserts) in batches.items():
            held = self.held[name]
            given[name] = {"deletes": held.table(deletes), "inserts": held.table(inserts)}
            for row in deletes:
                held.rows.remove(row)
            held.rows += inserts
        with self.recorded() as done:
            self.ws.apply_all(given)
        return self.settle(done)

    def drop(self, name: str) -> CompositeStep:
        self.ws.drop(name)
        del self.held[name]
        return self.settle([])


def _sides(node: Composite) -> tuple[oracle.Side, oracle.Side]:
    return (node.dependent.table, node.dependent.columns), (node.referenced.table, node.referenced.columns)


@st.composite
def some_rows(draw: st.DrawFn, world: World, held: Held, max_size: int) -> list[Row]:
    """Any rows, or parts of rows that some table has: those are what inclusions live on."""
    width = len(held.types)
    value = st.sampled_from([0, 1, 2, None])
    rows: list[st.SearchStrategy[Row]] = [st.tuples(*[value] * width)]
    pool = [row for other in world.held.values() for row in other.rows]
    if pool:
        turn = draw(st.integers(0, 3))
        copies = [tuple((row * width)[(i + turn) % len(row)] for i in range(width)) for row in pool]
        rows += [st.sampled_from(copies)] * 2
    return draw(st.lists(st.one_of(rows), max_size=max_size))


def new_table(data: st.DataObject, world: World, types: Sequence[str]) -> Held:
    usual = data.draw(st.sampled_from(types))
    width = data.draw(st.integers(2, 4))
    drawn = data.draw(st.lists(st.sampled_from([usual, usual, *types]), min_size=width, max_size=width))
    options = {
        "kinds": data.draw(st.sampled_from([("ucc", "ind"), ("ucc", "ind"), ("ind",)])),
        "as_text": data.draw(st.sampled_from([False, False, True])),
        "nulls": data.draw(st.sampled_from(["equal", "distinct"])),
    }
    held = Held(tuple(drawn), options)
    held.rows = data.draw(some_rows(world, held, 12))
    return held


SMALL = {
    "SAMPLES": (1, 2),
    "CHUNK_ROWS": 3,
    "LARGE_SEGMENT": 2,
    "FEW": 1,
    "LONG_LIST": 0,
    "MAX_KEPT": 6,
    "LOOK_AT": 4,
}


@pytest.mark.parametrize(("colliding", "cells"), [(False, 8), (False, 0), (True, 100)])
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_history(colliding: bool, cells: int, data: st.DataObject) -> None:
    """Batches to one or several tables; tables come and go. Also where texts share hashes."""
    types = ("text", "wide decimal") if colliding else tuple(TYPES)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(relation, "MERGE_FANOUT", 3)
        if data.draw(st.booleans()):
            for name, value in SMALL.items():
                patch.setattr(tuple_tasks, name, value)
            patch.setattr(tuple_tasks, "CELLS_PER_ROW", cells)
        if colliding:
            honest = codes.hash_texts
            patch.setattr(codes, "hash_texts", lambda texts: honest(texts) & 3)
        world = World(Path(folder) / "w", data.draw(st.sampled_from([4, 4, 2, 3])))
        try:
            for name in NAMES[: data.draw(st.integers(1, 3))]:
                world.track(name, new_table(data, world, types))
            for _ in range(data.draw(st.integers(1, 6))):
                _some_change(data, world, types)
        finally:
            world.ws.close()


def _some_change(data: st.DataObject, world: World, types: Sequence[str]) -> None:
    kind = data.draw(st.sampled_from(["batch"] * 8 + ["drop", "arity"]))
    if kind == "drop" and len(world.held) > 1:
        name = data.draw(st.sampled_from(sorted(world.held)))
        world.drop(name)
        world.track(name, new_table(data, world, types))
        return
    if kind == "arity":
        world.max_arity = data.draw(st.integers(2, 4))
        world.settle([])
        return
    batches = {}
    for name in data.draw(st.lists(st.sampled_from(sorted(world.held)), min_size=1, unique=True)):
        held = world.held[name]
        at = st.lists(st.integers(0, max(0, len(held.rows) - 1)), unique=True, max_size=4)
        gone = [held.rows[i] for i in data.draw(at)] if held.rows else []
        batches[name] = (gone, data.draw(some_rows(world, held, 4)))
    world.apply(batches)


def supply(n: int) -> tuple[Held, Held]:
    """Parts by supplier, and orders of them."""
    options = {"kinds": ("ucc", "ind"), "as_text": False, "nulls": "equal"}
    supplies = [(i // 3, (i // 3 + i % 3 * 5) % 50, i % 7) for i in range(3 * n)]
    orders = [(i, *supplies[i * 7 % len(supplies)][:2]) for i in range(4 * n)]
    return Held(("int", "text", "int"), options, supplies), Held(("int", "float", "text"), options, orders)


BOUGHT = Composite(Side("orders", ("c1", "c2")), Side("supplies", ("c0", "c1")))


def test_foreign_key_of_two_columns(tmp_path: Path) -> None:
    """It appears, breaks by a deletion or an insertion with the rows that show it, and is healed."""
    supplies, orders = supply(300)
    world = World(tmp_path / "w", max_arity=3)
    world.track("supplies", supplies)
    assert BOUGHT in world.track("orders", orders).appeared
    used = supplies.rows[0]
    carriers = [i for i, row in enumerate(orders.rows) if row[1:] == used[:2]]
    step = world.apply({"supplies": ([used], [])})
    [row_ids] = [rows for c, rows in step.broke if c == BOUGHT]
    assert len(row_ids) == 1
    assert row_ids[0] in carriers
    assert BOUGHT in world.apply({"supplies": ([], [used])}).appeared
    bad = [(9000 + i, 0, 1) for i in range(8)]
    step = world.apply({"orders": ([], [(8999, 0, 5), *bad, (9999, 1, 0)])})
    [row_ids] = [rows for c, rows in step.broke if c == BOUGHT]
    assert len(row_ids) == 2  # one of each missing tuple
    assert BOUGHT in world.apply({"orders": ([*bad, (9999, 1, 0)], [])}).appeared
    world.ws.close()


def test_what_a_batch_leaves_alone_is_not_looked_at(tmp_path: Path) -> None:
    supplies, orders = supply(300)
    world = World(tmp_path / "w")
    world.track("supplies", supplies)
    world.track("orders", orders)
    assert world.settle([]).n_checked == 0
    assert world.apply({"orders": ([orders.rows[-1]], [])}).n_checked <= 1
    world.ws.close()


def test_spark_agrees(tmp_path: Path, spark: SparkSession) -> None:
    """The same answers, with one job a level."""
    engine = Engine(spark, mode="spark")
    supplies, orders = supply(400)
    world = World(tmp_path / "w")
    world.track("supplies", supplies)
    world.track("orders", orders)
    found = world.known
    world.engine = engine
    jobs = engine.jobs
    with world.rows([]) as tables:
        anew = maintain(Composites.empty(), world.unary(), tables, 4)
    assert (anew.after.valid, anew.after.listed) == (found.valid, found.listed)
    assert set(anew.after.refuted) == set(found.refuted)
    assert BOUGHT in anew.after.listed
    assert 1 <= engine.jobs - jobs <= 3
    step = world.apply({"supplies": ([supplies.rows[0]], []), "orders": ([], [(9000, 1, 0)])})
    [row_ids] = [rows for c, rows in step.broke if c == BOUGHT]
    assert len(row_ids) == 2
    engine.close()
    world.ws.close()
