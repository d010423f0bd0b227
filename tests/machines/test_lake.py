"""The contract of a lake: after any history of tables that come, change and go, what the oracle says.

A machine drives a workspace with one lake and keeps its tables in a dict. After every step the inclusions,
with the values that both sides share, what each filter keeps out, and the components of the join graph must
equal the oracle's from scratch, whatever proposer, strategy and size of signatures were chosen.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import holdfast
from holdfast.errors import UnknownTableError, UsageError
from holdfast.lakes import (
    index as lake_index,
)
from holdfast.lakes import intake
from holdfast.lakes import linker as discovery
from holdfast.lakes import (
    match as lake_match,
)
from holdfast.lakes import (
    propose as lake_propose,
)
from holdfast.lakes import (
    read_task as lake_read,
)
from holdfast.lakes.answers import LakeChange
from holdfast.lakes.graph import drawing as lake_graph
from holdfast.lakes.reader import overlaps as lake_overlaps
from lake_tables import (
    POOLS,
    Matching,
    lakes,
    matchings,
    options,
    write_json_lines,
    write_parquet_files,
)
from reference import lake as oracle

MOST_TABLES = 9


def name_of(number: int) -> str:
    """As the file of the table is called; by JSON lines it is called so too."""
    return f"t{number}.parquet"


class Lakes(RuleBasedStateMachine):
    """A workspace with a lake, next to a dict of its tables."""

    partial = False  # whether inclusions may lack some values
    colliding = False  # whether the first hash of a text has two bits only

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.make_small()
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-machine-"))
        self.ws = holdfast.open(self.folder / "w", engine="inline")
        self.held: dict[str, oracle.Table] = {}
        self.options = oracle.Options()
        self.n_sources = 0

    def make_small(self) -> None:
        """Limits so small that a few tables pass them."""
        self.patch.setattr(intake, "UNIT_BYTES", 300)
        self.patch.setattr(discovery, "ENTRIES_PER_TASK", 9)
        self.patch.setattr(discovery, "MERGE_AT", 2)
        self.patch.setattr(discovery, "GATHER_AT", 3)
        self.patch.setattr(lake_index, "ENTRIES_PER_TASK", 16)
        self.patch.setattr(lake_index, "long_posting", lambda n_columns: 3)
        self.patch.setattr(lake_propose, "CHUNK", 5)
        self.patch.setattr(lake_match, "LINKS_KEPT", 1)
        self.patch.setattr(lake_graph, "CLUSTERED", 3)
        self.patch.setattr(lake_overlaps, "STEP", 1)
        self.patch.setattr(lake_overlaps, "NS_VALUE", lake_overlaps.NS_POSTING)
        if self.colliding:
            honest = lake_read._hashes

            def two_bits(texts: Any, key: Any) -> Any:
                values, checks = honest(texts, key)
                return values & np.uint64(3 << 62), checks

            self.patch.setattr(lake_read, "_hashes", two_bits)

    def teardown(self) -> None:
        self.ws.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.patch.undo()

    # -- sources --------------------------------------------------------------------------------------

    def draw_tables(self, data: st.DataObject, names: Sequence[str]) -> list[oracle.Table]:
        """Tables with these names; their columns are called c0, c1, ..."""
        if not names:
            return []
        drawn = data.draw(lakes(max_tables=len(names), min_tables=len(names), names=names.__getitem__))
        return [replace(t, header=tuple(f"c{i}" for i in range(len(t.columns)))) for t in drawn]

    def source(self, data: st.DataObject, tables: Sequence[oracle.Table]) -> tuple[Path, dict[str, Any]]:
        """Files of tables, and how they are read: one file of JSON lines, or a Parquet file each."""
        self.n_sources += 1
        folder = self.folder / f"source{self.n_sources}"
        distinct = len({t.name for t in tables}) == len(tables)
        if distinct and all(t.columns for t in tables) and data.draw(st.booleans()):
            return write_parquet_files(tables, folder), {}
        return write_json_lines(tables, folder / "tables.jsonl"), {"json_name": "name"}

    def how(self, data: st.DataObject) -> dict[str, Any]:
        """Proposer and strategy, which may be others in each step."""
        found: Matching = data.draw(matchings(exact=not self.options.max_error))
        return {"proposer": found.proposer, "strategy": found.strategy}

    def free_names(self) -> list[str]:
        return [name for i in range(MOST_TABLES) if (name := name_of(i)) not in self.held]

    # -- steps ----------------------------------------------------------------------------------------

    @initialize(data=st.data())
    def link_the_first(self, data: st.DataObject) -> None:
        self.link_from_scratch(data)

    def link_from_scratch(self, data: st.DataObject, **anew: bool) -> None:
        self.options = data.draw(options(partial=self.partial))
        n = data.draw(st.integers(1, 5))
        tables = self.draw_tables(data, [name_of(i) for i in range(n)])
        how = data.draw(matchings(exact=not self.options.max_error)).arguments()
        chosen = {
            "filters": self.options.filters,
            "tau": self.options.tau,
            "null_values": self.options.null_values,
            "normalise": self.options.normalise,
            "max_error": self.options.max_error,
            "min_values": self.options.min_values,
        }
        source, reading = self.source(data, tables)
        change = self.ws.link(source, **chosen, **how, **reading, **anew)
        self.held = {t.name: t for t in tables}
        assert (change.added, change.replaced, change.dropped, change.n_bad) == (len(tables), 0, 0, 0)
        self.check_change(change)

    @rule(data=st.data(), clash=st.sampled_from([False, False, True]))
    def add(self, data: st.DataObject, clash: bool) -> None:
        """New tables come; one whose name is taken, by an old table or by one before it, is left out."""
        free = self.free_names()
        names = free[: data.draw(st.integers(0, min(3, len(free))))]
        taken = [*self.held, *names]
        if clash and taken:
            names = [*names, data.draw(st.sampled_from(taken))]
        if not names:
            return
        tables = self.draw_tables(data, names)
        source, reading = self.source(data, tables)
        change = self.ws.link(source, add=True, **self.how(data), **reading)
        before = len(self.held)
        for table in tables:
            self.held.setdefault(table.name, table)
        added = len(self.held) - before
        assert (change.added, change.replaced) == (added, 0)
        assert change.known + change.n_bad == len(tables) - added
        self.check_change(change)

    @rule(data=st.data())
    def replace_some(self, data: st.DataObject) -> None:
        """Some tables get other rows and columns, and new ones come with them."""
        old = (
            data.draw(st.lists(st.sampled_from(sorted(self.held)), unique=True, max_size=3))
            if self.held
            else []
        )
        new = self.free_names()[: data.draw(st.sampled_from([0, 0, 1]))]
        if not old and not new:
            return
        tables = self.draw_tables(data, [*new, *old])
        source, reading = self.source(data, tables)
        change = self.ws.link(source, replace=True, **self.how(data), **reading)
        self.held |= {t.name: t for t in tables}
        assert (change.added, change.replaced, change.n_bad) == (len(new), len(old), 0)
        self.check_change(change)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        names = data.draw(st.lists(st.sampled_from(sorted(self.held)), unique=True, min_size=1, max_size=3))
        change = self.ws.unlink(*names)
        for name in names:
            del self.held[name]
        assert (change.added, change.dropped) == (0, len(names))
        self.check_change(change)

    @precondition(lambda self: self.held)
    @rule()
    def drop_all(self) -> None:
        change = self.ws.unlink(*self.held)
        self.held = {}
        self.check_change(change)

    @rule(data=st.data())
    def link_anew(self, data: st.DataObject) -> None:
        """Another lake takes the place of the old one, with other options."""
        self.link_from_scratch(data, anew=True)

    @rule()
    def reopen(self) -> None:
        self.ws.close()
        self.ws = holdfast.open(self.folder / "w", engine="inline")

    @rule(data=st.data())
    def refuse(self, data: st.DataObject) -> None:
        """What is wrong changes nothing."""
        version = self.ws.version
        with pytest.raises(UnknownTableError):
            self.ws.unlink(*self.held, "no such table")
        source, reading = self.source(data, self.draw_tables(data, [name_of(0)]))
        with pytest.raises(UsageError):
            self.ws.link(source, **reading)
        with pytest.raises(UsageError):
            self.ws.link(source, add=True, tau=0.123, **reading)
        assert self.ws.version == version

    # -- what must hold -------------------------------------------------------------------------------

    @property
    def tables(self) -> list[oracle.Table]:
        return list(self.held.values())

    def removed(self) -> dict[str, int]:
        """What filters keep out is counted of exact inclusions."""
        return oracle.removed(self.tables, replace(self.options, max_error=0.0))

    def check_change(self, change: LakeChange) -> None:
        graph = oracle.graph(self.tables, self.options)
        assert change.n_tables == len(self.held)
        assert change.n_columns == sum(len(t.columns) for t in self.tables)
        assert change.n_inds == len(oracle.inds(self.tables, self.options))
        assert (change.n_components, change.n_isolated) == (len(graph.components), len(graph.isolated))
        assert dict(change.removed) == self.removed()
        assert change.version == self.ws.version

    @invariant()
    def inclusions_are_those_of_the_oracle(self) -> None:
        reader = self.ws.lake()
        assert reader is not None
        found = [((a, int(b[1:])), (c, int(d[1:])), shared) for (a, b), (c, d), shared in reader.ind_names()]
        assert len({pair[:2] for pair in found}) == len(found)
        assert {(a, b): shared for a, b, shared in found} == oracle.shared(self.tables, self.options)
        summary = reader.summary()
        assert (summary.n_tables, summary.n_inds) == (len(self.held), len(found))
        assert dict(summary.removed) == self.removed()

    @invariant()
    def components_are_those_of_the_oracle(self) -> None:
        reader = self.ws.lake()
        assert reader is not None
        graph = oracle.graph(self.tables, self.options)
        groups: dict[int, set[str]] = {}
        for batch in reader.nodes():
            for name, component in zip(
                batch["name"].to_pylist(), batch["component"].to_pylist(), strict=True
            ):
                groups.setdefault(component, set()).add(name)
        assert groups.pop(-1, set()) == graph.isolated
        assert {frozenset(group) for group in groups.values()} == graph.components
        sizes = [len(groups[number]) for number in sorted(groups)]
        assert sizes == sorted(sizes, reverse=True)
        # Not all links between tables are kept, but those that are there are some of the oracle's.
        for batch in reader.edges():
            names = (batch[name].to_pylist() for name in ("dependent", "referenced", "n_inds"))
            for a, b, n_inds in zip(*names, strict=True):
                assert 1 <= n_inds <= graph.edges[a, b]  # what no link was kept for counts for the component
        in_components = sum(c.n_inds for c in reader.components().components)
        assert in_components == sum(graph.edges.values())

    @rule()
    def read_measures(self) -> None:
        """Each inclusion's measures are those of its columns."""
        reader = self.ws.lake()
        assert reader is not None
        columns = oracle.all_facts(self.tables, self.options)
        for ind in reader.each_ind():
            dep, ref = (columns[s.table, int(s.column[1:])] for s in (ind.dependent, ind.referenced))
            assert ind.shared == len(dep.values & ref.values)
            assert (ind.n_dependent, ind.n_referenced) == (len(dep.values), len(ref.values))
            assert math.isclose(ind.coverage, ind.shared / len(ref.values), rel_tol=1e-6)
            assert math.isclose(ind.containment, ind.shared / len(dep.values), rel_tol=1e-6)
            assert math.isclose(ind.uniqueness, len(ref.values) / ref.n_rows, rel_tol=1e-6)
            assert 0 <= ind.score <= 1

    @rule(data=st.data(), top=st.sampled_from([1, 3, 20]))
    def ask_for_overlaps(self, data: st.DataObject, top: int) -> None:
        """The columns that share the most values with those of a file, and of a table of the lake."""
        reader = self.ws.lake()
        assert reader is not None
        columns = oracle.all_facts(self.tables, self.options)
        (asked,) = self.draw_tables(data, ["asked.parquet"])
        source = write_json_lines([asked], self.folder / "asked.jsonl")
        questions = [(self.ws.lakes.overlaps(source, top=top, json_name="name"), asked, False)]
        if self.held:
            table = data.draw(st.sampled_from(self.tables))
            questions.append((reader.overlaps(table.name, top), table, True))
        for found, table, there in questions:
            told: dict[int, list[tuple[oracle.Column, int, int]]] = {}
            for o in found:
                other = o.other.table, int(o.other.column[1:])
                told.setdefault(o.asked.position, []).append((other, o.shared, o.n_other))
            for position, cells in enumerate(table.columns):
                column = table.name, position
                values = columns[column].values if there else oracle.facts(cells, self.options).values
                expected = oracle.overlaps(values, self.tables, self.options, top, column if there else None)
                assert told.get(position, []) == expected

    @rule(text=st.sampled_from([text for pool in POOLS.values() for text in pool]))
    def search_a_value(self, text: str) -> None:
        """A text that is in the lake as it stands is found in all columns that have it."""
        reader = self.ws.lake()
        assert reader is not None
        if self.colliding or len(text) > 1_000 or not text.strip():
            return
        wanted = self.options.normal(text)
        columns = oracle.all_facts(self.tables, self.options)
        there = {column for column, facts in columns.items() if wanted in facts.values}
        found = reader.search(text, what="value", limit=100).values
        told = {(c.table, int(c.name[1:])) for value in found for c in value.columns if value.value == wanted}
        assert told == there


class PartialLakes(Lakes):
    """The same where inclusions may lack some values."""

    partial = True


class CollidingLakes(Lakes):
    """The same where almost all texts share their first hash."""

    colliding = True


class CollidingPartialLakes(PartialLakes):
    colliding = True


QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
MACHINES = [(Lakes, 6), (PartialLakes, 5), (CollidingLakes, 2), (CollidingPartialLakes, 2)]


@pytest.mark.parametrize(("machine", "n"), MACHINES)
def test_lakes(machine: type[Lakes], n: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=n, stateful_step_count=9, deadline=None, suppress_health_check=QUIET),
    )


# Numbers of histories that take about as long each: see the budget in tests/README.md.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("machine", "n"), [(Lakes, 110), (PartialLakes, 130), (CollidingLakes, 160), (CollidingPartialLakes, 65)]
)
def test_lakes_at_length(
    machine: type[Lakes], n: int, record_property: Callable[[str, object], None]
) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=n, stateful_step_count=30, deadline=None, suppress_health_check=QUIET),
    )
    record_property("histories", n)
