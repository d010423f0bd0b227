"""Inclusion dependencies at the edge: NULLs, empty columns, types, patterns, append-only, wide tables."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import holdfast
from holdfast import Workspace
from holdfast.core.words.dependency import Ind
from holdfast.errors import (
    AbsentRowError,
    HoldfastError,
    TableExistsError,
    UnknownColumnError,
    UnknownTableError,
    UsageError,
)
from holdfast.inclusions import values as generator
from reference import inds as oracle

IND = ("ind",)
BOTH = ("ucc", "ind")


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[Workspace]:
    with holdfast.open(tmp_path / "w", engine="inline") as found:
        yield found


def ints(**columns: list[Any]) -> pa.Table:
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


def found(ws: Workspace, **where: Any) -> list[Ind]:
    told = ws.dependencies(kind="ind", **where)
    assert all(isinstance(d, Ind) for d in told)
    return told  # type: ignore[return-value]


def inds(ws: Workspace, **where: Any) -> set[str]:
    """The INDs as `t[a] in u[b]`."""
    told = [str(d) for d in found(ws, **where)]
    assert len(set(told)) == len(told)
    return set(told)


def counts(ws: Workspace, text: str) -> tuple[float, int, int | None, float]:
    [one] = [d for d in found(ws, max_error=1.0) if str(d) == text]
    return one.error, one.missing_values, one.missing_rows, one.coverage


# -- NULLs and columns without values ----------------------------------------------------------------------


def test_nulls_take_no_part(ws: Workspace) -> None:
    ws.track("t", ints(a=[1, None, 1], b=[2, 1, None]), kinds=IND)
    assert inds(ws) == {"t[a] in t[b]"}
    assert counts(ws, "t[a] in t[b]") == (0.0, 0, 0, 0.5)
    assert counts(ws, "t[b] in t[a]") == (0.5, 1, 1, 1.0)
    change = ws.apply("t", inserts=ints(a=[None, None], b=[None, 7]))
    assert change.changes == ()
    assert counts(ws, "t[b] in t[a]") == (2 / 3, 2, 2, 1.0)


def test_a_column_of_nulls_takes_part_in_none(ws: Workspace) -> None:
    ws.track("t", ints(a=[1, 2], n=[None, None], m=[None, None]), kinds=IND)
    assert inds(ws) == set()
    assert inds(ws, max_error=1.0) == set()


def test_with_empty(ws: Workspace) -> None:
    """A column without values is in every other one, of any type and table."""
    ws.track("t", ints(a=[1, 2], n=[None, None]), kinds=IND)
    ws.track("u", pa.table({"x": ["1"], "m": pa.array([None], pa.string())}), kinds=IND)
    assert inds(ws) == set()
    assert inds(ws, with_empty=True) == {
        "t[n] in t[a]",
        "t[n] in u[x]",
        "t[n] in u[m]",
        "u[m] in t[a]",
        "u[m] in t[n]",
        "u[m] in u[x]",
    }
    [one] = [d for d in found(ws, with_empty=True) if str(d) == "t[n] in t[a]"]
    assert (one.error, one.missing_values, one.missing_rows, one.coverage) == (0.0, 0, 0, 0.0)


def test_a_column_that_fills_and_empties(ws: Workspace) -> None:
    ws.track("t", ints(a=[None, 9], b=[5, 9]), kinds=IND)
    assert inds(ws) == {"t[a] in t[b]"}
    change = ws.apply("t", deletes=ints(a=[9], b=[9]))
    assert inds(ws) == set()
    assert [(str(c.dependency), c.event == "appeared") for c in change.changes] == [("t[a] in t[b]", False)]
    assert inds(ws, with_empty=True) == {"t[a] in t[b]"}
    change = ws.apply("t", inserts=ints(a=[5], b=[None]))
    assert inds(ws) == {"t[a] in t[b]", "t[b] in t[a]"}
    assert {str(c.dependency) for c in change.appeared} == inds(ws)
    change = ws.apply("t", deletes=ints(a=[None], b=[5]))
    assert inds(ws) == set()
    assert [inds(ws, at=v) for v in (1, 2, 3)] == [
        {"t[a] in t[b]"},
        set(),
        {"t[a] in t[b]", "t[b] in t[a]"},
    ]


def test_empty_tables(ws: Workspace) -> None:
    ws.track("t", ints(a=[], b=[]), kinds=IND)
    ws.track("u", ints(x=[1]), kinds=IND)
    assert inds(ws, max_error=1.0) == set()
    assert ws.inds.clusters() == [((("u", "x"),), 1)]
    assert "t[a] in u[x]" in inds(ws, with_empty=True)
    ws.apply("t", inserts=ints(a=[1], b=[2]))
    assert inds(ws) == {"t[a] in u[x]", "u[x] in t[a]"}


def test_a_workspace_without_tables(ws: Workspace) -> None:
    assert ws.dependencies(kind="ind") == []
    assert ws.dependencies(kind="ind", max_error=1.0, with_empty=True) == []
    assert ws.inds.clusters() == []


def test_one_row(ws: Workspace) -> None:
    ws.track("t", ints(a=[1], b=[1], c=[2]), kinds=IND)
    assert inds(ws) == {"t[a] in t[b]", "t[b] in t[a]"}
    assert ws.inds.clusters() == [((("t", "a"), ("t", "b")), 1), ((("t", "c"),), 1)]


def test_no_column_is_listed_in_itself(ws: Workspace) -> None:
    ws.track("t", ints(a=[1, 2]), kinds=IND)
    assert inds(ws, max_error=1.0, with_empty=True) == set()
    ws.track("u", ints(a=[1, 2]), kinds=IND)
    assert inds(ws, max_error=1.0) == {"t[a] in u[a]", "u[a] in t[a]"}


# -- frequencies -------------------------------------------------------------------------------------------


def test_a_duplicate_keeps_its_value(ws: Workspace) -> None:
    """Two rows carry 2 in the parent: the IND breaks when the second one goes."""
    ws.track("child", ints(p=[1, 2, 2]), kinds=IND)
    ws.track("parent", ints(id=[1, 2, 2, 3]), kinds=IND)
    assert inds(ws) == {"child[p] in parent[id]"}
    assert ws.apply("parent", deletes=ints(id=[2])).changes == ()
    change = ws.apply("parent", deletes=ints(id=[2]))
    [broke] = change.broke
    assert (str(broke.dependency), broke.values) == ("child[p] in parent[id]", (2,))
    [[row]] = broke.witnesses
    assert row.values == {"p": 2}
    assert counts(ws, "child[p] in parent[id]") == (0.5, 1, 2, 0.5)


def test_rows_inserted_again(ws: Workspace) -> None:
    ws.track("child", ints(p=[1, 2]), kinds=IND)
    ws.track("parent", ints(id=[1, 2, 3]), kinds=IND)
    for _ in range(3):
        ws.apply("parent", deletes=ints(id=[2]))
        assert inds(ws) == set()
        change = ws.apply("parent", inserts=ints(id=[2]))
        assert [str(c.dependency) for c in change.appeared] == ["child[p] in parent[id]"]
    assert [bool(inds(ws, at=v)) for v in range(2, 9)] == [True, False, True, False, True, False, True]


def test_a_delete_and_its_insert_in_one_batch_change_nothing(ws: Workspace) -> None:
    ws.track("child", ints(p=[1, 2]), kinds=IND)
    ws.track("parent", ints(id=[1, 2, 3]), kinds=IND)
    change = ws.apply("parent", deletes=ints(id=[2]), inserts=ints(id=[2]))
    assert change.changes == ()
    assert inds(ws) == {"child[p] in parent[id]"}


def test_a_broken_ind_names_some_values_and_rows(ws: Workspace) -> None:
    """Up to four values, each with a row that carries it; the counts are of all."""
    ws.track("child", ints(p=[0], n=[0]), kinds=IND)
    ws.track("parent", ints(id=[0, 1, 2, 3]), kinds=IND)
    new = list(range(100, 120))
    change = ws.apply("child", inserts=ints(p=[*new, *new], n=[-1] * 40))
    [broke] = [c for c in change.broke if str(c.dependency) == "child[p] in parent[id]"]
    assert len(broke.values) == len(set(broke.values)) == 4
    assert set(broke.values) <= set(new)
    for value, [row] in zip(broke.values, broke.witnesses, strict=True):
        assert row.values == {"p": value, "n": -1}
    assert (broke.dependency.missing_values, broke.dependency.missing_rows) == (20, 40)
    assert counts(ws, "child[p] in parent[id]") == (20 / 21, 20, 40, 1 / 4)


def test_a_parent_and_its_children_as_one_change(ws: Workspace) -> None:
    ws.track_all({"child": ints(p=[1, 2]), "parent": ints(id=[1, 2, 3])}, kinds=IND)
    assert (ws.version, inds(ws)) == (1, {"child[p] in parent[id]"})
    change = ws.apply_all({"child": {"inserts": ints(p=[4])}, "parent": {"inserts": ints(id=[4])}})
    assert (change.version, ws.version, change.changes) == (2, 2, ())
    assert (ws.n_rows("child"), ws.n_rows("parent")) == (3, 4)
    assert inds(ws) == {"child[p] in parent[id]"}


def test_several_tables_or_none(ws: Workspace) -> None:
    ws.track_all({"child": ints(p=[1, 2]), "parent": ints(id=[1, 2, 3])}, kinds=IND)
    with pytest.raises(AbsentRowError, match="Nothing was applied"):
        ws.apply_all({"child": {"inserts": ints(p=[9])}, "parent": {"deletes": ints(id=[77])}})
    with pytest.raises(UnknownTableError, match="nobody"):
        ws.apply_all({"child": {"inserts": ints(p=[9])}, "nobody": {"inserts": ints(id=[77])}})
    assert (ws.version, ws.n_rows("child")) == (1, 2)
    assert inds(ws) == {"child[p] in parent[id]"}


def test_track_all_or_none(ws: Workspace) -> None:
    ws.track("t", ints(a=[1]), kinds=IND)
    with pytest.raises(TableExistsError, match="'t'"):
        ws.track_all({"u": ints(a=[1]), "t": ints(a=[1])}, kinds=IND)
    assert ws.tables() == ["t"]
    assert inds(ws) == set()


def test_a_batch_id_is_applied_once_to_all_its_tables(ws: Workspace) -> None:
    ws.track_all({"t": ints(a=[1]), "u": ints(b=[1])}, kinds=IND)
    batch = {"t": {"inserts": ints(a=[2])}, "u": {"inserts": ints(b=[2])}}
    ws.apply_all(batch, batch_id="monday")
    change = ws.apply_all(batch, batch_id="monday")
    assert change.repeated
    assert (ws.version, ws.n_rows("t"), ws.n_rows("u")) == (2, 2, 2)


def test_a_batch_id_that_only_some_tables_know_is_an_error(ws: Workspace) -> None:
    ws.track_all({"t": ints(a=[1]), "u": ints(b=[1]), "v": ints(c=[1])}, kinds=IND)
    ws.apply("t", inserts=ints(a=[2]), batch_id="monday")
    batch = {"t": {"inserts": ints(a=[2])}, "u": {"inserts": ints(b=[2])}, "v": {"inserts": ints(c=[2])}}
    said = r"'monday' was applied before to t \(version 2\), but not to u, v\. Nothing was applied\."
    with pytest.raises(UsageError, match=said):
        ws.apply_all(batch, batch_id="monday")
    assert (ws.version, ws.n_rows("t"), ws.n_rows("u")) == (2, 2, 1)
    # Each of them knows it: applied before, be it one by one.
    ws.apply_all({name: batch[name] for name in "uv"}, batch_id="monday")
    change = ws.apply_all(batch, batch_id="monday")
    assert (change.repeated, change.version, ws.version) == (True, 3, 3)


def test_a_batch_id_is_new_to_a_table_that_was_dropped_and_tracked_again(ws: Workspace) -> None:
    ws.track_all({"t": ints(a=[1]), "u": ints(b=[1])}, kinds=IND)
    ws.apply_all({"t": {"inserts": ints(a=[2])}, "u": {"inserts": ints(b=[2])}}, batch_id="monday")
    ws.drop("t")
    ws.track("t", ints(a=[1]), kinds=IND)
    with pytest.raises(UsageError, match=r"before to u \(version 2\), but not to t"):
        ws.apply_all({"t": {"inserts": ints(a=[2])}, "u": {"inserts": ints(b=[2])}}, batch_id="monday")
    change = ws.apply("t", inserts=ints(a=[2]), batch_id="monday")
    assert (change.repeated, change.n_inserted, ws.n_rows("t")) == (False, 1, 2)
    assert ws.apply("t", inserts=ints(a=[2]), batch_id="monday").repeated


# -- dropped tables ----------------------------------------------------------------------------------------


def test_a_dropped_table_takes_its_inds_along(ws: Workspace) -> None:
    ws.track("t", ints(a=[1, 2]), kinds=IND)
    ws.track("u", ints(b=[1, 2, 3], c=[1, 1, 2]), kinds=IND)
    before = inds(ws)
    assert before == {"t[a] in u[b]", "t[a] in u[c]", "u[c] in t[a]", "u[c] in u[b]"}
    ws.drop("t")
    assert inds(ws) == {"u[c] in u[b]"}
    assert inds(ws, max_error=1.0) == {"u[c] in u[b]", "u[b] in u[c]"}
    assert inds(ws, at=2) == before
    gone = [c for entry in ws.log() if entry.version == 3 for c in entry.changes]
    assert {str(Ind.from_dict(c.dependency)) for c in gone} == before - {"u[c] in u[b]"}
    change = ws.track("t", ints(a=[3, 2]), kinds=IND)
    assert inds(ws) == {"t[a] in u[b]", "u[c] in u[b]"}
    assert [str(c.dependency) for c in change.appeared] == ["t[a] in u[b]"]


def test_the_last_table_goes(ws: Workspace) -> None:
    ws.track("t", ints(a=[1], b=[1]), kinds=IND)
    ws.drop("t")
    assert inds(ws, max_error=1.0, with_empty=True) == set()
    assert ws.inds.clusters() == []
    ws.track("t", ints(a=[2], c=[2]), kinds=IND)
    assert inds(ws) == {"t[a] in t[c]", "t[c] in t[a]"}


def test_inds_of_one_table(ws: Workspace) -> None:
    """Those that it is a side of."""
    ws.track("t", ints(a=[1, 2]), kinds=IND)
    ws.track("u", ints(b=[1, 2, 3], c=[1, 1, 5]), kinds=IND)
    ws.track("v", ints(d=[5, 1]), kinds=IND)
    assert inds(ws) == {"t[a] in u[b]", "u[c] in v[d]", "v[d] in u[c]"}
    assert inds(ws, table="t") == {"t[a] in u[b]"}
    assert inds(ws, table="v") == {"u[c] in v[d]", "v[d] in u[c]"}
    assert inds(ws, table="u") == inds(ws)


# -- kinds -------------------------------------------------------------------------------------------------


def test_only_tables_of_the_kind_take_part(ws: Workspace) -> None:
    ws.track("keys", ints(a=[1, 2]))
    ws.track("both", ints(a=[1, 2]), kinds=BOTH)
    ws.track("inds", ints(a=[1, 2]), kinds=IND)
    assert inds(ws) == {"both[a] in inds[a]", "inds[a] in both[a]"}
    assert [str(d) for d in ws.dependencies(kind="ucc")] == ["both[a]", "keys[a]"]
    kinds = [d.kind for d in ws.dependencies()]
    assert sorted(kinds) == ["ind", "ind", "ucc", "ucc"]
    ws.apply("keys", inserts=ints(a=[3]))
    ws.apply("inds", inserts=ints(a=[2]))
    assert len(ws.dependencies()) == 4


def test_an_unknown_kind(ws: Workspace) -> None:
    ws.track("t", ints(a=[1]), kinds=IND)
    with pytest.raises(UsageError, match="ucc, fd, ind"):
        ws.dependencies(kind="inds")
    with pytest.raises(UsageError, match="ucc, fd, ind"):
        ws.track("u", ints(a=[1]), kinds=("inds",))


@pytest.mark.parametrize("max_error", [-0.1, 1.5, float("nan")])
def test_an_error_is_a_share(ws: Workspace, max_error: float) -> None:
    ws.track("t", ints(a=[1]), kinds=IND)
    with pytest.raises(UsageError, match="max_error"):
        ws.dependencies(kind="ind", max_error=max_error)


def test_max_error_is_inclusive(ws: Workspace) -> None:
    ws.track("t", ints(a=[1, 2, 3]), kinds=IND)
    ws.track("u", ints(b=[1, 2, 4, 5, 6, 7]), kinds=IND)
    assert inds(ws, max_error=1 / 3) == {"t[a] in u[b]"}
    assert inds(ws, max_error=0.3333) == set()
    assert inds(ws, max_error=4 / 6) == {"t[a] in u[b]", "u[b] in t[a]"}


def test_max_error_is_the_error_that_is_told(ws: Workspace) -> None:
    """0.29 * 100 is a little less than 29: 29 of 100 values missing must be listed at 0.29 all the same."""
    ws.track("t", ints(a=list(range(100))), kinds=IND)
    ws.track("u", ints(b=list(range(29, 400))), kinds=IND)
    [one] = found(ws, max_error=0.29)
    assert (str(one), one.error) == ("t[a] in u[b]", 0.29)
    assert inds(ws, max_error=0.28) == set()


# -- which columns -----------------------------------------------------------------------------------------

ORDERS = {"o_id": [1, 2], "o_customer": [1, 1], "o_comment": [1, 2], "n": [1, 2]}


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({}, {"o_id", "o_customer", "o_comment", "n"}),
        ({"columns": ["o_*"]}, {"o_id", "o_customer", "o_comment"}),
        ({"exclude": ["*_comment"]}, {"o_id", "o_customer", "n"}),
        ({"columns": ["o_*"], "exclude": ["*_comment"]}, {"o_id", "o_customer"}),
        ({"columns": ["n", "o_id"]}, {"o_id", "n"}),
        ({"columns": ["?"]}, {"n"}),
        ({"columns": ["o_[ic]*"], "exclude": ["o_c*", "?"]}, {"o_id"}),
    ],
)
def test_patterns(ws: Workspace, options: dict[str, Any], left: set[str]) -> None:
    ws.track("other", ints(x=[1, 2]), kinds=IND)
    ws.track("t", ints(**ORDERS), kinds=IND, **options)
    dependents = {d.dependent.columns[0] for d in found(ws) if d.dependent.table == "t"}
    assert dependents == left
    ws.apply("t", inserts=ints(**{name: [9] for name in ORDERS}))
    gone = {d.dependent.columns[0] for d in found(ws, max_error=1.0) if d.dependent.table == "t"}
    assert gone == left, "a batch goes by the same patterns"
    ws.apply("t", deletes=ints(**{name: [9] for name in ORDERS}))
    assert {d.dependent.columns[0] for d in found(ws) if d.dependent.table == "t"} == left


def test_a_pattern_without_a_match(ws: Workspace) -> None:
    with pytest.raises(UnknownColumnError, match="zz"):
        ws.track("t", ints(**ORDERS), kinds=IND, columns=["zz*"])
    assert ws.tables() == []


def test_patterns_do_not_touch_keys(ws: Workspace) -> None:
    ws.track("t", ints(**ORDERS), kinds=BOTH, columns=["o_customer"])
    assert inds(ws) == set()
    assert [d.columns for d in ws.dependencies(kind="ucc")] == [("o_id",), ("o_comment",), ("n",)]


# -- types -------------------------------------------------------------------------------------------------

D = Decimal
TYPED: dict[str, pa.Array] = {
    "int": pa.array([1, 2], pa.int64()),
    "byte": pa.array([1, 2], pa.int8()),
    "uint": pa.array([1, 2], pa.uint64()),
    "float": pa.array([1.0, 2.0], pa.float64()),
    "float32": pa.array([1.0, 2.0], pa.float32()),
    "decimal": pa.array([D("1.00"), D("2.00")], pa.decimal128(12, 2)),
    "wide": pa.array([D("1"), D("2")], pa.decimal128(38, 0)),
    "very wide": pa.array([D("1.0"), D("2.0")], pa.decimal256(60, 1)),
    "text": pa.array(["1", "2"], pa.string()),
    "large text": pa.array(["1", "2"], pa.large_string()),
    "dictionary": pa.array(["1", "2"], pa.string()).dictionary_encode(),
    "binary": pa.array([b"1", b"2"], pa.binary()),
    "bool": pa.array([True, False], pa.bool_()),
    "date": pa.array([dt.date(1970, 1, 2), dt.date(1970, 1, 3)], pa.date32()),
    "date64": pa.array([dt.date(1970, 1, 2), dt.date(1970, 1, 3)], pa.date64()),
    "time s": pa.array([1, 2], pa.time32("s")),
    "time ns": pa.array([10**9, 2 * 10**9], pa.time64("ns")),
    "timestamp s": pa.array([1, 2], pa.timestamp("s")),
    "timestamp ns": pa.array([10**9, 2 * 10**9], pa.timestamp("ns")),
    "instant ms": pa.array([1000, 2000], pa.timestamp("ms", "UTC")),
    "instant us": pa.array([10**6, 2 * 10**6], pa.timestamp("us", "Europe/Berlin")),
}
DOMAINS = [
    {"int", "byte", "uint", "float", "float32", "decimal", "wide", "very wide"},
    {"text", "large text", "dictionary"},
    {"binary"},
    {"bool"},
    {"date", "date64"},
    {"time s", "time ns"},
    {"timestamp s", "timestamp ns"},
    {"instant ms", "instant us"},
]


@pytest.mark.parametrize("apart", [False, True], ids=["one table", "a table each"])
def test_types_match_inside_their_domain(ws: Workspace, apart: bool) -> None:
    """1 and 2 of every type: what is in what is what shares a domain."""
    if apart:
        ws.track_all({name: pa.table({"c": array}) for name, array in TYPED.items()}, kinds=IND)
        told = {(d.dependent.table, d.referenced.table) for d in found(ws)}
    else:
        ws.track("t", pa.table(TYPED), kinds=IND)
        told = {(d.dependent.columns[0], d.referenced.columns[0]) for d in found(ws)}
    assert told == {(a, b) for domain in DOMAINS for a in domain for b in domain if a != b}
    assert len(ws.inds.clusters()) == len(DOMAINS)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (pa.array([0.1]), pa.array([D("0.10")]), True),
        (pa.array([0.1]), pa.array([D("0.1000000000000000055511151231")]), False),
        (pa.array([0.1 + 0.2]), pa.array([D("0.3")]), False),
        (pa.array([0.1 + 0.2]), pa.array([D("0.30000000000000004")]), False),
        (pa.array([123456789.012345]), pa.array([D("123456789.012345")]), True),
        (pa.array([1e15]), pa.array([10**15]), True),
        (pa.array([2.0**63]), pa.array([2**63], pa.uint64()), True),
        (pa.array([2.0**53]), pa.array([2**53 + 1]), False),
        (pa.array([float(2**64)]), pa.array([D(2**64)]), True),
        (pa.array([1e22]), pa.array([D(10**22)]), True),
        (pa.array([1e23]), pa.array([D(10**23)]), False),
        (pa.array([1e23]), pa.array([D(int(1e23))]), True),
        (pa.array([-0.0]), pa.array([0]), True),
        (pa.array([-0.0]), pa.array([D("0.00")]), True),
        (pa.array([float("nan")]), pa.array([-float("nan")]), True),
        (pa.array([float("inf")]), pa.array([float("-inf")]), False),
        (pa.array([2**63 - 1]), pa.array([2**63 - 1], pa.uint64()), True),
        (pa.array([-1]), pa.array([2**64 - 1], pa.uint64()), False),
        (pa.array([-1]), pa.array([D("-1.000")]), True),
        (pa.array([2**63], pa.uint64()), pa.array([D(2**63)]), True),
        (pa.array([D("1.5")]), pa.array([D("1.500000000000000000000000")]), True),
        (pa.array([D("1e-10")], pa.decimal128(38, 38)), pa.array([D("1e-10")], pa.decimal256(76, 60)), True),
        (pa.array([D(10**37)]), pa.array([D(10**60)]), False),
        (pa.array([0.5], pa.float32()), pa.array([D("0.5")]), True),
        (pa.array([0.1], pa.float32()), pa.array([0.1]), False),
        (pa.array(["007"]), pa.array(["7"]), False),
        (pa.array(["a"]), pa.array(["a "]), False),
        (pa.array(["é"]), pa.array(["e\u0301"]), False),
        (pa.array([1], pa.time64("ns")), pa.array([0], pa.time32("s")), False),
        (pa.array([1], pa.timestamp("ns")), pa.array([0], pa.timestamp("s")), False),
        (pa.array([-1], pa.timestamp("s")), pa.array([-(10**9)], pa.timestamp("ns")), True),
        (
            pa.array([253402300799], pa.timestamp("s")),
            pa.array([253402300799 * 10**6], pa.timestamp("us")),
            True,
        ),
        (pa.array([0], pa.timestamp("s")), pa.array([0], pa.timestamp("s", "UTC")), False),
        (pa.array([0], pa.date32()), pa.array([0], pa.timestamp("s")), False),
        (pa.array([True]), pa.array([1]), False),
        (pa.array(["true"]), pa.array([True]), False),
        (pa.array([b"a"]), pa.array(["a"]), False),
    ],
)
def test_equal_across_types(ws: Workspace, one: pa.Array, other: pa.Array, equal: bool) -> None:
    ws.track("t", pa.table({"a": one}), kinds=IND)
    ws.track("u", pa.table({"b": other}), kinds=IND)
    expected = {"t[a] in u[b]", "u[b] in t[a]"} if equal else set()
    assert inds(ws) == expected
    for table, name, values in (("t", "a", one), ("u", "b", other)):  # the way of a batch is the same
        ws.apply(table, deletes=pa.table({name: values}))
        assert inds(ws) == set()
        ws.apply(table, inserts=pa.table({name: values}))
        assert inds(ws) == expected


def test_as_text(ws: Workspace) -> None:
    """All columns of a table that is compared as text meet texts, their own and other tables'."""
    ws.track("texts", pa.table({"s": ["1", "2", "true", "2026-01-02", "1.50"]}), kinds=IND)
    typed = pa.table(
        {
            "i": pa.array([1, 2]),
            "b": pa.array([True, True]),
            "d": pa.array([dt.date(2026, 1, 2)] * 2),
            "m": pa.array([D("1.50"), None], pa.decimal128(5, 2)),
            "t": pa.array(["1", "1"]),
        }
    )
    ws.track("typed", typed, kinds=IND)
    assert inds(ws) == {"typed[t] in texts[s]"}
    ws.drop("typed")
    ws.track("typed", typed, kinds=IND, as_text=True)
    within = {"typed[t] in typed[i]"}
    across = {f"typed[{c}] in texts[s]" for c in "ibdmt"}
    assert inds(ws) == within | across
    ws.track("numbers", ints(n=[1, 2]), kinds=IND)
    assert inds(ws) == within | across, "numbers that are numbers do not match texts"
    change = ws.apply("typed", inserts=typed.slice(0, 1).set_column(0, "i", pa.array([3])))
    [broke] = change.broke
    assert str(broke.dependency) == "typed[i] in texts[s]"
    [value] = broke.values
    assert str(value) == "3"
    [[row]] = broke.witnesses
    assert row.values["i"] == 3


# -- append-only -------------------------------------------------------------------------------------------


def test_append_only(ws: Workspace) -> None:
    """Inserts as ever; of its rows no frequencies are kept, so the number of missing rows is not known."""
    ws.track("log", ints(p=[1, 1, 2], q=[1, 2, 3]), kinds=IND, append_only=True)
    ws.track("parent", ints(id=[1, 2, 3, 4]), kinds=IND)
    assert inds(ws) == {"log[p] in parent[id]", "log[p] in log[q]", "log[q] in parent[id]"}
    change = ws.apply("log", inserts=ints(p=[9, 9], q=[4, None]))
    assert {str(c.dependency) for c in change.broke} == {"log[p] in parent[id]", "log[p] in log[q]"}
    for c in change.broke:
        assert c.values == (9,)
        [[row]] = c.witnesses
        assert row.values["p"] == 9
    assert {str(c.dependency) for c in change.appeared} == {"parent[id] in log[q]"}
    assert counts(ws, "log[p] in parent[id]") == (1 / 3, 1, None, 2 / 4)
    assert counts(ws, "parent[id] in log[p]") == (2 / 4, 2, 2, 2 / 3)
    assert [d.missing_rows for d in found(ws)] == [
        None if d.dependent.table == "log" else 0 for d in found(ws)
    ]
    change = ws.apply("parent", deletes=ints(id=[4]))
    assert [str(c.dependency) for c in change.broke] == ["log[q] in parent[id]"]


@pytest.mark.parametrize("kinds", [IND, BOTH])
@pytest.mark.parametrize(
    "batch",
    [
        {"deletes": ints(p=[1], q=[1])},
        {"deletes": ints(p=[1], q=[1]), "inserts": ints(p=[5], q=[5])},
        {"before": ints(p=[1], q=[1]), "after": ints(p=[1], q=[2])},
        {"updates": ints(p=[1], q=[2])},
    ],
    ids=["delete", "delete and insert", "before and after", "update"],
)
def test_append_only_refuses_all_else(
    ws: Workspace, kinds: tuple[str, ...], batch: dict[str, pa.Table]
) -> None:
    ws.track("log", ints(p=[1, 2], q=[1, 1]), kinds=kinds, append_only=True, row_key=["p"])
    before = inds(ws)
    for attempt in (ws.apply, ws.check):
        with pytest.raises(HoldfastError) as raised:
            attempt("log", **batch)
        message = str(raised.value)
        for word in ("'log'", "append-only", "Nothing was applied", "track it anew"):
            assert word.lower() in message.lower(), message
    with pytest.raises(HoldfastError, match="append-only"):
        ws.apply_all({"log": batch})
    assert (ws.version, ws.n_rows("log"), inds(ws)) == (1, 2, before)
    ws.apply("log", inserts=ints(p=[3], q=[3]))
    assert ws.n_rows("log") == 3


def test_an_append_only_table_can_be_dropped(ws: Workspace) -> None:
    ws.track("log", ints(p=[1, 1]), kinds=IND, append_only=True)
    ws.track("t", ints(a=[1, 2]), kinds=IND)
    ws.drop("log")
    assert inds(ws) == set()
    ws.track("log", ints(p=[2, 1]), kinds=IND)
    assert inds(ws) == {"log[p] in t[a]", "t[a] in log[p]"}
    ws.apply("log", deletes=ints(p=[2]))
    assert inds(ws) == {"log[p] in t[a]"}


@pytest.mark.parametrize("append_only", [True, False])
def test_runs_that_merge(ws: Workspace, monkeypatch: pytest.MonkeyPatch, append_only: bool) -> None:
    """Values that come again and again, in runs that are merged, stay where they are."""
    monkeypatch.setattr(generator, "MERGE_FANOUT", 2)
    monkeypatch.setattr(generator, "SMALLEST_TIER", 1)
    monkeypatch.setattr(generator, "PART_ENTRIES", 2)
    ws.track("parent", ints(id=[0, 1, 2]), kinds=IND)
    ws.track("log", ints(p=[0, 1]), kinds=IND, append_only=append_only)
    rows, ids = [0, 1], {0, 1, 2}
    for i in range(2, 9):
        for new in ([i - 1], [i, i, 0]):
            ws.apply("log", inserts=ints(p=new))
            rows += new
            missing = [v for v in rows if v not in ids]
            assert counts(ws, "log[p] in parent[id]") == (
                len(set(missing)) / len(set(rows)),
                len(set(missing)),
                None if append_only else len(missing),
                len(set(rows) & ids) / len(ids),
            )
            assert counts(ws, "parent[id] in log[p]")[1] == len(ids - set(rows))
        ws.apply("parent", inserts=ints(id=[i + 1]), deletes=ints(id=[i - 2]))
        ids = ids - {i - 2} | {i + 1}
    ws.merge("log")
    assert counts(ws, "parent[id] in log[p]")[:3] == (1 / 3, 1, 1)
    ws.apply("log", inserts=ints(p=[9]))
    assert inds(ws) == {"parent[id] in log[p]"}


# -- names, texts, width -----------------------------------------------------------------------------------


def test_unicode(ws: Workspace) -> None:
    texts = ["", "é", "e\u0301", "日本", "\U0001f600", "\x00", "x" * 70_000, "NULL"]
    columns = {
        "größe": texts,
        "日本 語": [*texts[:4], *texts[:4]],
        "a.b[0] in c, d": [*texts[2:], *texts[2:4]],
    }
    ws.track("Tabelle ü", pa.table(columns), kinds=IND)
    ws.track("日本", pa.table({"\U0001f600": ["e\u0301", "\x00"]}), kinds=IND)
    database = {
        "Tabelle ü": oracle.Table(tuple(columns), list(zip(*columns.values(), strict=True))),
        "日本": oracle.Table(("\U0001f600",), [("e\u0301",), ("\x00",)]),
    }
    told = {
        ((d.dependent.table, d.dependent.columns[0]), (d.referenced.table, d.referenced.columns[0]))
        for d in found(ws)
    }
    assert told == set(oracle.inclusions(database))
    assert len(told) == 4
    change = ws.apply("日本", inserts=pa.table({"\U0001f600": ["\ud7ff\uffff"]}))
    assert {c.values for c in change.broke} == {("\ud7ff\uffff",)}


@pytest.mark.parametrize("n_columns", [63, 64, 65, 130, pytest.param(300, marks=pytest.mark.slow)])
def test_wide_tables(ws: Workspace, n_columns: int) -> None:
    """Column c has the multiples of c + 1 below 24, so a in b iff its step is a multiple of b's.

    Beyond the 24th column there is only 0.
    """
    steps = [c + 1 for c in range(n_columns)]
    rows = 24

    def multiples(c: int) -> list[int]:
        return [i * steps[c] if i * steps[c] < rows else 0 for i in range(rows)]

    table = ints(**{f"c{c}": multiples(c) for c in range(n_columns)})
    ws.track("t", table, kinds=IND)

    def check() -> None:
        current = {f"c{c}": set(v) for c, v in enumerate(live)}
        expected = {
            f"t[{a}] in t[{b}]"
            for a, va in current.items()
            for b, vb in current.items()
            if a != b and va <= vb
        }
        assert inds(ws) == expected

    live = [multiples(c) for c in range(n_columns)]
    check()
    new = [rows + c % 3 for c in range(n_columns)]
    ws.apply("t", inserts=ints(**{f"c{c}": [v] for c, v in enumerate(new)}))
    live = [[*v, new[c]] for c, v in enumerate(live)]
    check()
    ws.apply("t", deletes=ints(**{f"c{c}": [v[1]] for c, v in enumerate(live)}))
    live = [[v[0], *v[2:]] for v in live]
    check()
    last = n_columns - 1
    [one] = [d for d in found(ws, max_error=1.0) if str(d) == f"t[c0] in t[c{last}]"]
    inside, outside = set(live[0]), set(live[last])
    assert one.missing_values == len(inside - outside)
    assert one.missing_rows == sum(v not in outside for v in live[0])
    assert one.coverage == len(inside & outside) / len(outside)


def test_many_tables(ws: Workspace) -> None:
    """Eighty columns in forty tables: column numbers go past 64 as tables come and go."""
    values = {f"t{i:02d}": [i % 5, i % 7] for i in range(40)}
    ws.track_all({name: ints(a=v, b=[v[0], v[0]]) for name, v in values.items()}, kinds=IND)

    def check() -> None:
        sets = {(t, c): set(v if c == "a" else v[:1]) for t, v in values.items() for c in "ab"}
        expected = {
            f"{t}[{c}] in {u}[{d}]"
            for (t, c), inside in sets.items()
            for (u, d), outside in sets.items()
            if (t, c) != (u, d) and inside <= outside
        }
        assert inds(ws) == expected

    check()
    for name in ("t00", "t17", "t39"):
        ws.drop(name)
        del values[name]
    check()
    values["t17"] = values["new"] = [6, 4]
    for name in ("t17", "new"):
        ws.track(name, ints(a=values[name], b=[6, 6]), kinds=IND)
    check()
    ws.apply("t38", deletes=ints(a=[values["t38"][1]], b=[values["t38"][0]]))
    values["t38"] = values["t38"][:1]
    check()


# -- several columns ---------------------------------------------------------------------------------------


def test_a_composite_foreign_key(ws: Workspace) -> None:
    parts = ints(part=[1, 1, 2, 2], supplier=[1, 2, 1, 3])
    lines = ints(p=[1, 2, 2], s=[2, 1, 3], n=[7, 8, 9])
    ws.track_all({"parts": parts, "lines": lines}, kinds=BOTH)
    wide = "lines[p, s] in parts[part, supplier]"
    assert wide in inds(ws)
    change = ws.apply("lines", inserts=ints(p=[1], s=[3], n=[1]))
    assert [str(c.dependency) for c in change.broke if c.dependency.kind == "ind"] == [wide]
    assert "lines[p] in parts[part]" in inds(ws), "the parts hold, the pair does not"
    change = ws.apply("parts", inserts=ints(part=[1], supplier=[3]))
    assert wide in {str(c.dependency) for c in change.appeared}
    ws.apply("parts", inserts=ints(part=[1], supplier=[3]))
    assert wide not in inds(ws), "the pair is a key no more"
    change = ws.apply("parts", deletes=ints(part=[1, 1], supplier=[3, 3]))
    assert wide not in {str(c.dependency) for c in change.changes}, "it is a key again, and misses (1, 3)"
    ws.apply("lines", deletes=ints(p=[1], s=[3], n=[1]))
    change = ws.apply("parts", deletes=ints(part=[2], supplier=[1]))
    [broke] = [c for c in change.broke if str(c.dependency) == wide]
    [[row]] = broke.witnesses
    assert row.values == {"p": 2, "s": 1, "n": 8}
    assert [wide in inds(ws, at=v) for v in range(1, 8)] == [True, False, True, False, False, True, False]


@pytest.mark.parametrize(
    ("row", "expected"), [((None, 3), True), ((1, None), True), ((None, None), True), ((1, 3), False)]
)
def test_a_composite_foreign_key_with_nulls(
    ws: Workspace, row: tuple[int | None, int | None], expected: bool
) -> None:
    """MATCH PARTIAL: what is not NULL occurs in one row."""
    ws.track("parts", ints(part=[1, 1, 2, 2], supplier=[1, 2, 1, 3]), kinds=BOTH)
    ws.track("lines", ints(p=[1, row[0], 2], s=[2, row[1], 1]), kinds=IND)
    assert ("lines[p, s] in parts[part, supplier]" in inds(ws)) == expected


def test_no_key_no_composite(ws: Workspace) -> None:
    """The referenced columns must contain a key that is maintained."""
    ws.track("parts", ints(part=[1, 2], supplier=[1, 2]), kinds=IND)
    ws.track("lines", ints(p=[1, 2], s=[1, 2]), kinds=BOTH)
    wide = {d for d in inds(ws) if "," in d}
    assert "parts[part, supplier] in lines[p, s]" in wide
    assert not {d for d in wide if " in parts" in d}
