"""Composite inclusions, maintained batch by batch, are those found from scratch, and those of the oracle."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.core.engine.engine import Engine
from holdfast.core.rows import codes, relation
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import encode_rows, open_segment, write_segment
from holdfast.core.rows.table_state import SegmentRef
from holdfast.core.store.arrow_types import arrow_schema
from holdfast.core.store.format import create_marker, text_key
from holdfast.core.words.dependency import Side
from holdfast.core.words.schema import Column, Nulls, Schema, Type
from holdfast.inclusions import composite_state as stored
from holdfast.inclusions import tuple_tasks
from holdfast.inclusions.composites import Composite, Composites, CompositeStep, TableRows, maintain
from reference import inds as oracle
from reference import keys as key_oracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[Any, ...]


def _cents(value: int) -> Decimal:
    return Decimal(value).quantize(Decimal("0.01"))


# Rows are drawn as small numbers, and every type has its own way to write them.
TYPES: dict[str, Any] = {
    "int": int,
    "uint": int,
    "float": float,
    "decimal(12,2)": _cents,
    "decimal(30,2)": _cents,
    "text": str,
}
NAMES = ("t", "u", "v")


@dataclass
class Held:
    """A table: how its columns are typed, and its rows, in segments and in a dict."""

    types: tuple[str, ...]
    as_text: bool = False
    has_keys: bool = True
    nulls: Nulls = "equal"
    segments: tuple[SegmentRef, ...] = ()
    next_number: int = 0
    live: dict[int, Row] = field(default_factory=dict)  # by row id
    added: tuple[SegmentRef, ...] = ()
    deleted: tuple[tuple[SegmentRef, np.ndarray], ...] = ()

    @property
    def schema(self) -> Schema:
        return Schema(tuple(Column(f"c{i}", Type.parse(t)) for i, t in enumerate(self.types)))

    @property
    def names(self) -> tuple[str, ...]:
        return self.schema.names

    @property
    def rows(self) -> list[Row]:
        return list(self.live.values())

    def written(self, row: Row) -> Row:
        return tuple(None if v is None else TYPES[t](v) for v, t in zip(row, self.types, strict=True))

    def table(self, rows: Sequence[Row]) -> pa.Table:
        columns = list(zip(*map(self.written, rows), strict=True)) or [()] * len(self.types)
        fields = arrow_schema(self.schema)
        return pa.table([pa.array(c, f.type) for c, f in zip(columns, fields, strict=True)], schema=fields)

    def keys(self) -> tuple[tuple[str, ...], ...] | None:
        if not self.has_keys:
            return None
        found = key_oracle.minimal_uniques(self.rows, len(self.types), self.nulls)
        return tuple(sorted(tuple(self.names[c] for c in sorted(key)) for key in found))

    def for_the_oracle(self) -> oracle.Table:
        return oracle.Table(self.names, [self.written(r) for r in self.rows], as_text=self.as_text)


def _decides(after: Composites, node: Composite) -> bool:
    """Whether being listed says if an inclusion holds: not of more columns than were looked at."""
    tables = node.dependent.table, node.referenced.table
    return len(node.dependent.columns) <= after.stopped.get(tables, after.max_arity)


def _telling(known: Composites) -> set[Composite]:
    """What is refuted and not by one of its parts alone: that of others is not known always."""
    invalid = {_pairs(c) for c in known.refuted}
    return {c for c in known.refuted if not any(set(part) < set(_pairs(c)) for part in invalid)}


def _pairs(node: Composite) -> tuple[Any, ...]:
    left, right = node.dependent, node.referenced
    return tuple(
        zip([(left.table, c) for c in left.columns], [(right.table, c) for c in right.columns], strict=True)
    )


class World:
    """Some tables, and the composite inclusions as maintained along their batches."""

    def __init__(self, root: Path, max_arity: int = 4, engine: Engine | None = None) -> None:
        self.root, self.max_arity = root, max_arity
        self.engine = engine if engine is not None else Engine(mode="inline")
        self.held: dict[str, Held] = {}
        self.known = Composites.empty()
        self.basis: Any = None  # the inclusions of single columns and the keys, when last looked at
        create_marker(root)
        for folder in ("rows", "staging"):
            (root / folder).mkdir(exist_ok=True)

    def relation(self, held: Held) -> Relation:
        width = len(held.types)
        return Relation(
            self.root,
            "rows",
            "staging",
            held.schema,
            held.nulls,
            tuple(range(width)),
            held.segments,
            self.engine,
        )

    def tables(self) -> dict[str, TableRows]:
        return {
            name: TableRows(self.relation(held), held.added, held.deleted, held.keys(), held.as_text)
            for name, held in self.held.items()
        }

    def database(self) -> dict[str, oracle.Table]:
        return {name: held.for_the_oracle() for name, held in self.held.items()}

    def change(self, held: Held, gone: Sequence[int], rows: Sequence[Row]) -> None:
        """Delete rows by id, then insert some."""
        before, schema = held.segments, held.schema
        ids = np.array(gone, dtype=np.int64)
        deleted = []
        for ref in before:
            at = open_segment(self.root, ref, schema).positions(ids)
            if (at >= 0).any():
                deleted.append((ref, at[at >= 0].astype(np.int64)))
        if deleted:
            held.segments = self.relation(held).without_rows(ids).segments
        for row_id in gone:
            del held.live[row_id]
        added = []
        back = {held.written(row): row for row in rows}
        for columns in encode_rows(held.table(rows), schema, text_key(self.root)) if rows else ():
            ref = write_segment(self.root, "rows", held.next_number, columns, range(len(held.types)))
            held.next_number += 1
            added.append(ref)
            segment = open_segment(self.root, ref, schema)
            positions = np.arange(ref.n_rows)
            written = [tuple(r.values()) for r in segment.rows(positions).to_pylist()]
            held.live |= {
                i: back[w] for i, w in zip(segment.row_ids(positions).tolist(), written, strict=True)
            }
        held.added, held.deleted = tuple(added), tuple(deleted)
        held.segments = (*held.segments, *added)

    def settle_and_tidy(self) -> CompositeStep:
        """Maintain after the changes; then no table is a changed one any more, and segments are merged."""
        step = self.settle()
        for held in self.held.values():
            held.added, held.deleted = (), ()
            tidy, held.next_number = self.relation(held).tidied(held.next_number, ())
            held.segments = tidy.segments
        return step

    def settle(self) -> CompositeStep:
        """Maintain, and hold it against the oracle and against what is found from scratch."""
        tables, database = self.tables(), self.database()
        unary = oracle.inclusions(database)
        keys = {name: table.keys or () for name, table in tables.items()}
        truth = oracle.wide_inclusions(database, keys, self.max_arity)
        basis, self.basis = self.basis, (sorted(unary), {t: rows.keys for t, rows in tables.items()})
        same = self.basis == basis
        step = maintain(self.known, unary, tables, self.max_arity, same_basis=same)
        anew = maintain(Composites.empty(), unary, tables, self.max_arity).after
        assert step.after.valid == anew.valid
        assert step.after.listed == anew.listed
        assert _telling(step.after) == _telling(anew)
        assert step.after.stopped == anew.stopped
        within = {
            (a, b) for a, b in truth if len(a[1]) <= step.after.stopped.get((a[0], b[0]), self.max_arity)
        }
        assert {_sides(c) for c in step.after.listed} == within
        for node in step.dropped:
            assert node in self.known.listed
            assert not _decides(step.after, node)
        for node, row_id in step.after.refuted.items():
            self.check_rows(node, [row_id])
        assert step.appeared == sorted(step.after.listed - self.known.listed)
        assert [c for c, _ in step.broke] == sorted(self.known.listed - step.after.listed - set(step.dropped))
        for node, row_ids in step.broke:
            if node.dependent.table in tables and node.referenced.table in tables:
                self.check_rows(node, row_ids)
                dependent, referenced = node.dependent, node.referenced
                parts = zip(dependent.columns, referenced.columns, strict=True)
                whole = all(((dependent.table, a), (referenced.table, b)) in unary for a, b in parts)
                keyed = any(set(key) <= set(referenced.columns) for key in keys[referenced.table])
                narrow = len(dependent.columns) <= self.max_arity
                # Without rows, it is a part of one column or the key that went.
                assert row_ids or not (whole and keyed and narrow and _decides(step.after, node))
        self.known = Composites.from_dict(json.loads(json.dumps(step.after.to_dict())))
        assert self.known == step.after
        return step

    def check_rows(self, node: Composite, row_ids: Sequence[int]) -> None:
        """Live rows, with tuples that no referenced row has; no row twice."""
        assert len(set(row_ids)) == len(row_ids) <= 4
        held, database = self.held[node.dependent.table], self.database()
        for row_id in row_ids:
            row = held.written(held.live[row_id])
            database[""] = oracle.Table(held.names, [row], as_text=held.as_text)
            dependent, referenced = _sides(node)
            assert not oracle.holds(database, ("", dependent[1]), referenced)

    def track(self, name: str, held: Held, rows: Sequence[Row]) -> CompositeStep:
        self.held[name] = held
        self.change(held, [], rows)
        return self.settle_and_tidy()

    def apply(self, batches: Mapping[str, tuple[Sequence[int], Sequence[Row]]]) -> CompositeStep:
        """(ids of rows to delete, rows to insert) of each table."""
        for name, (gone, rows) in batches.items():
            self.change(self.held[name], gone, rows)
        return self.settle_and_tidy()

    def drop(self, name: str) -> CompositeStep:
        del self.held[name]
        return self.settle_and_tidy()

    def ids(self, name: str, row: Row) -> list[int]:
        return [i for i, r in self.held[name].live.items() if r == row]


def _sides(node: Composite) -> tuple[oracle.Side, oracle.Side]:
    return (node.dependent.table, node.dependent.columns), (node.referenced.table, node.referenced.columns)


@st.composite
def some_rows(draw: st.DrawFn, world: World, held: Held, max_size: int, min_size: int = 0) -> list[Row]:
    """Parts of rows that some table has, which are what inclusions live on; and any rows."""
    width = len(held.types)
    value = st.sampled_from([0, 1, 2, 0, 1, None])
    rows: list[st.SearchStrategy[Row]] = [st.tuples(*[value] * width)]
    pool = [row for other in world.held.values() for row in other.rows]
    if pool and draw(st.integers(0, 3)):
        turn = draw(st.sampled_from([0, 0, 0, 1, 2]))
        copies = [tuple((row * width)[(i + turn) % len(row)] for i in range(width)) for row in pool]
        rows = [st.sampled_from(copies)] * draw(st.sampled_from([1, 1, 9])) + rows[: draw(st.integers(0, 1))]
    drawn = draw(st.lists(st.one_of(rows), min_size=min_size, max_size=max_size))
    if draw(st.booleans()):  # without rows twice, which leave no key
        drawn = list(dict.fromkeys(r for r in drawn if r not in held.rows))
    return drawn


def new_table(data: st.DataObject, types: Sequence[str]) -> Held:
    width = data.draw(st.integers(2, 4))
    drawn = [types[0]] * width
    if data.draw(st.booleans()):
        drawn = data.draw(st.lists(st.sampled_from(types), min_size=width, max_size=width))
    return Held(
        tuple(drawn),
        as_text=data.draw(st.sampled_from([False] * 4 + [True])),
        has_keys=data.draw(st.sampled_from([True] * 5 + [False])),
        nulls=data.draw(st.sampled_from(["equal", "distinct"])),
    )


SMALL = {
    "SAMPLES": (1, 2),
    "CHUNK_ROWS": 3,
    "LARGE_SEGMENT": 2,
    "FEW": 1,
    "LONG_LIST": 0,
    "MAX_KEPT": 6,
    "LOOK_AT": 4,
}


@pytest.fixture(scope="module", autouse=True)
def without_waiting_for_the_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.mark.parametrize(("colliding", "cells"), [(False, 8), (False, 0), (True, 100)])
@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_history(colliding: bool, cells: int, data: st.DataObject) -> None:
    """Batches to one or several tables; tables come and go. Also where texts share hashes."""
    types = ("text", "decimal(30,2)") if colliding else tuple(TYPES)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(relation, "MERGE_FANOUT", 3)
        if data.draw(st.booleans()):
            for name, value in SMALL.items():
                patch.setattr(tuple_tasks, name, value)
            patch.setattr(tuple_tasks, "CELLS_PER_ROW", cells)
        if colliding:
            honest = codes.hash_texts
            patch.setattr(codes, "hash_texts", lambda texts, key: honest(texts, key) & 3)
        patch.setattr(stored, "MAX_NODES", data.draw(st.sampled_from([100_000, 100_000, 2, 12])))
        world = World(Path(folder), data.draw(st.sampled_from([4, 4, 2, 3])))
        for name in NAMES[: data.draw(st.integers(1, 3))]:
            held = new_table(data, types)
            world.track(name, held, data.draw(some_rows(world, held, 12, data.draw(st.sampled_from([6, 0])))))
        for _ in range(data.draw(st.integers(3, 8))):
            _some_change(data, world, types)


def _some_change(data: st.DataObject, world: World, types: Sequence[str]) -> None:
    kind = data.draw(st.sampled_from(["batch"] * 8 + ["drop", "arity", "index"]))
    if kind == "drop" and len(world.held) > 1:
        name = data.draw(st.sampled_from(sorted(world.held)))
        world.drop(name)
        held = new_table(data, types)
        world.track(name, held, data.draw(some_rows(world, held, 12, data.draw(st.sampled_from([6, 0])))))
        return
    if kind == "arity":
        world.max_arity = data.draw(st.integers(2, 4))
        world.settle()
        return
    if kind == "index":
        for held in world.held.values():
            column = data.draw(st.integers(0, len(held.types) - 1))
            held.segments = world.relation(held).indexed([column]).segments
    batches: dict[str, tuple[list[int], list[Row]]] = {}
    for name in data.draw(st.lists(st.sampled_from(sorted(world.held)), min_size=1, unique=True)):
        held = world.held[name]
        gone: list[int] = []
        if held.live and data.draw(st.booleans()):
            gone = data.draw(st.lists(st.sampled_from(sorted(held.live)), unique=True, max_size=4))
        batches[name] = (gone, data.draw(some_rows(world, held, 4)) if data.draw(st.booleans()) else [])
    world.apply(batches)


SUPPLIES = [(i // 3, (i // 3 + i % 3 * 5) % 50, i % 7) for i in range(300)]
ORDERS = [(i, *SUPPLIES[i * 7 % len(SUPPLIES)][:2]) for i in range(400)]
BOUGHT = Composite(Side("orders", ("c1", "c2")), Side("supplies", ("c0", "c1")))


@pytest.fixture
def trade(tmp_path: Path) -> World:
    """Parts by supplier, and orders of them."""
    world = World(tmp_path, max_arity=3)
    world.track("supplies", Held(("int", "text", "int")), SUPPLIES)
    assert BOUGHT in world.track("orders", Held(("int", "float", "text")), ORDERS).appeared
    return world


def rows_against(step: CompositeStep) -> list[int]:
    [row_ids] = [rows for node, rows in step.broke if node == BOUGHT]
    return row_ids


def test_a_deleted_partner_breaks_it(trade: World) -> None:
    used = SUPPLIES[0]
    carriers = [i for i, row in trade.held["orders"].live.items() if row[1:] == used[:2]]
    [row_id] = rows_against(trade.apply({"supplies": (trade.ids("supplies", used), [])}))
    assert row_id in carriers
    assert trade.apply({"supplies": ([], [used])}).appeared == [BOUGHT]


def test_new_rows_break_it(trade: World) -> None:
    """Of each missing tuple one row is named; a NULL misses nothing."""
    bad = [(9000 + i, 0, 1) for i in range(8)]
    row_ids = rows_against(trade.apply({"orders": ([], [(8999, 0, 5), *bad, (9998, 1, 0), (9999, 1, None)])}))
    orders = trade.held["orders"].live
    assert sorted(orders[i][1:] for i in row_ids) == [(0, 1), (1, 0)]
    gone = [i for row in [*bad, (9998, 1, 0)] for i in trade.ids("orders", row)]
    assert trade.apply({"orders": (gone, [])}).appeared == [BOUGHT]


def test_what_a_batch_leaves_alone_is_not_looked_at(trade: World) -> None:
    assert trade.settle().n_checked == 0
    assert trade.apply({"orders": ([], [(9000, 0, 0)])}).n_checked == 1


def test_spark_agrees(trade: World, spark: SparkSession) -> None:
    """The same answers, with one job a level at most."""
    trade.engine = Engine(spark, mode="spark")
    anew = maintain(Composites.empty(), oracle.inclusions(trade.database()), trade.tables(), 3)
    assert replace(anew.after, refuted={}) == replace(trade.known, refuted={})
    assert set(anew.after.refuted) == set(trade.known.refuted)
    assert 1 <= trade.engine.jobs <= 2
    used = trade.ids("supplies", SUPPLIES[0])
    assert len(rows_against(trade.apply({"supplies": (used, []), "orders": ([], [(9000, 1, 0)])}))) == 2
    trade.engine.close()
