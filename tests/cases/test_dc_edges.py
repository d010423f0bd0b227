"""Denial constraints at the edges: no rows, one row, equal rows, NULLs, one column, masks of several words.

Every case is asked of both kinds of evidence, when it is tracked and after batches; the oracle answers.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import holdfast
from holdfast import Workspace
from holdfast.core.evidence import evidence_files
from holdfast.core.words.predicate import Dc
from holdfast.denial import dc_witnessed
from holdfast.denial.access import plan
from holdfast.denial.constraints import dc_ref
from holdfast.errors import UsageError
from reference import dcs as oracle
from reference.dcs import Space
from reference.keys import Row
from reference.predicates import Words
from relations import check_evidence
from strategies import TYPES

Rule = tuple[Words, ...]
EVIDENCE: tuple[Any, ...] = ("counted", "witnessed")
NAN, INF = float("nan"), float("inf")


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[Workspace]:
    with holdfast.open(tmp_path / "w", engine="inline") as found:
        yield found


class Twins:
    """Two tables of the same rows, one for each kind of evidence, and the oracle's answer."""

    def __init__(self, ws: Workspace, schema: pa.Schema, rows: Sequence[Row], **options: Any) -> None:
        self.ws, self.schema, self.rows, self.options = ws, schema, list(rows), options
        self.tables = {f"{evidence} {len(ws.tables())}": evidence for evidence in EVIDENCE}
        for table, evidence in self.tables.items():
            ws.track(table, self.table(rows), kinds=("dc",), evidence=evidence, **options)
        first, second = (ws.dcs.space(table).groups for table in self.tables)
        self.groups = [(g.left, g.right, g.ordered) for g in first]
        assert first == second
        assert set(self.groups) == oracle.groups(rows, schema)
        self.space = Space(self.groups, schema.names)
        self.check()

    def table(self, rows: Sequence[Row]) -> pa.Table:
        columns = zip(*rows, strict=True) if rows else ([] for _ in self.schema)
        return pa.table([pa.array(c, f.type) for c, f in zip(columns, self.schema, strict=True)], self.schema)

    def expected(self) -> list[Rule]:
        found = self.space.general(
            self.space.evidence(self.rows), max_predicates=self.options.get("max_predicates")
        )
        told = sorted(self.space.telling(found), key=lambda dc: (len(dc), dc))
        return [tuple(self.space.words[i] for i in dc) for dc in told]

    def check(self) -> list[Rule]:
        expected = self.expected()
        for table in self.tables:
            assert listed(self.ws, table) == expected, table
        return expected

    def apply(self, inserts: Sequence[Row] = (), deletes: Sequence[int] = ()) -> list[Rule]:
        """Rows come, others go by position; the constraints then."""
        gone = [self.rows[i] for i in deletes]
        batch = {"inserts": self.table(inserts), "deletes": self.table(gone)}
        self.ws.apply_all(dict.fromkeys(self.tables, batch))
        self.rows = [row for i, row in enumerate(self.rows) if i not in set(deletes)] + list(inserts)
        return self.check()


def listed(ws: Workspace, table: str) -> list[Rule]:
    found = ws.dependencies(kind="dc", table=table)
    assert all(isinstance(d, Dc) and d.error == 0 for d in found)
    rules = [tuple((p.left, p.op, p.right) for p in d.predicates) for d in found if isinstance(d, Dc)]
    space = ws.dcs.space(table).predicates
    numbers = {(p.left, p.op, p.right): i for i, p in enumerate(space)}
    return sorted(rules, key=lambda rule: (len(rule), [numbers[p] for p in rule]))


INTS = pa.schema({"a": pa.int64(), "b": pa.int64()})


# -- few rows ---------------------------------------------------------------------------------------------


def test_no_rows_and_one_row_have_the_empty_constraint(ws: Workspace) -> None:
    twins = Twins(ws, INTS, [])
    assert twins.check() == [()]
    assert twins.apply([(1, 1)]) == [()]
    assert () not in twins.apply([(1, 2), (3, 1)])
    assert twins.apply(deletes=[0, 2]) == [()]
    assert twins.apply(deletes=[0]) == [()]
    assert () not in twins.apply([(1, 1), (1, 1)])


def test_the_empty_constraint_is_told(ws: Workspace) -> None:
    ws.track("t", pa.table({"a": [1]}), kinds=("dc",))
    [only] = ws.dependencies(kind="dc")
    assert isinstance(only, Dc)
    assert (only.predicates, str(only)) == ((), "t: not()")
    change = ws.apply("t", inserts=pa.table({"a": [2]}))
    [broken] = change.broke
    assert broken.dependency == only
    [(left, right)] = broken.witnesses
    assert {left.values["a"], right.values["a"]} == {1, 2}
    change = ws.apply("t", deletes=pa.table({"a": [1]}))
    assert [c.dependency for c in change.appeared] == [only]


def test_two_equal_rows(ws: Workspace) -> None:
    """They differ in nothing, and that is all there is to say."""
    schema = pa.schema({"a": pa.int64(), "b": pa.string(), "c": pa.float64()})
    twins = Twins(ws, schema, [(1, "x", NAN), (1, "x", NAN)])
    assert twins.check() == [(("a", "!=", "a"),), (("b", "!=", "b"),), (("c", "!=", "c"),)]
    twins.apply([(1, "x", NAN), (2, None, 0.0)])
    twins.apply(deletes=[3])
    assert len(twins.apply(deletes=[0])) == 3


def test_two_rows(ws: Workspace) -> None:
    twins = Twins(ws, INTS, [(1, 2), (2, 1)])
    twins.apply([(1, 2)])
    twins.apply(deletes=[0])
    twins.apply(deletes=[0, 1])
    twins.apply([(5, 6), (7, 8)])


def test_the_order_of_the_list(ws: Workspace) -> None:
    """By the number of predicates, then by masks; with errors, too."""
    rows = pa.table({"a": [1, 2, 2, 3], "b": [2, 1, None, 1]})
    ws.track("t", rows, kinds=("dc",), evidence="counted")
    space = ws.dcs.space("t")
    for max_error in (0.0, 0.1, 0.3):
        found = [d for d in ws.dependencies(kind="dc", max_error=max_error) if isinstance(d, Dc)]
        assert len(found) > 5
        keys = [(len(d.predicates), space.mask(d.predicates)) for d in found]
        assert keys == sorted(set(keys))


# -- one column -------------------------------------------------------------------------------------------

SAMPLES: dict[str, list[Any]] = {
    "int": [0, -(2**63), 2**63 - 1, None, 0, -1],
    "uint": [0, 2**64 - 1, 2**63, 2**63 - 1, None, 2**63],
    "float": [NAN, INF, -INF, -0.0, 0.0, 5e-324, None, NAN],
    "text": ["", "a", "A", None, "a", "é", "e\u0301"],
    "binary": [b"", b"\x00", None, b""],
    "bool": [True, False, None, True],
    "date": [dt.date.min, dt.date.max, dt.date(1970, 1, 1), None, dt.date.max],
    "time": [dt.time(0), dt.time(23, 59, 59, 999999), None, dt.time(0)],
    "timestamp": [dt.datetime(1969, 12, 31), dt.datetime(2026, 1, 1), None, dt.datetime(1969, 12, 31)],
    "decimal": [Decimal("-0.01"), Decimal("0.00"), Decimal("9999999999.99"), None, Decimal("-0.01")],
    "decimal of 18 digits": [Decimal(-(10**18) + 1), Decimal(10**18 - 1), None, Decimal(10**18 - 1)],
    "wide decimal": [Decimal("1.00000"), Decimal("2.00000"), None, Decimal("1.00000")],
}


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_one_column(ws: Workspace, name: str) -> None:
    """Rows come one by one, in an order that is not that of the values, and go again."""
    schema = pa.schema({"a": TYPES[name][0]})
    values = SAMPLES[name]
    twins = Twins(ws, schema, [(v,) for v in values[:2]])
    assert len(twins.space.words) == (6 if oracle.ordered(schema.field(0).type) else 2)
    assert (("a", "=", "a"),) in twins.check()
    for value in values[2:]:
        twins.apply([(value,)])
    assert twins.check() == [], "equal ones, and others"
    while twins.rows:
        twins.apply(deletes=[len(twins.rows) // 2])


def test_what_rises_only(ws: Workspace) -> None:
    """A table of one value, and then of two: `!=`, then `<` and `>` go; `=` was never denied."""
    twins = Twins(ws, pa.schema({"a": pa.int64()}), [(1,), (1,)])
    assert twins.check() == [(("a", "!=", "a"),)]
    # NULL and a value: neither is less.
    assert twins.apply([(None,)]) == [(("a", "<", "a"),)]
    assert twins.apply([(3,)]) == []
    assert twins.apply(deletes=[0, 1]) == [(("a", "<=", "a"),)]


def test_null_columns_and_constant_columns(ws: Workspace) -> None:
    schema = pa.schema({"none": pa.int64(), "same": pa.int64(), "half": pa.int64(), "k": pa.int64()})
    rows = [(None, 7, None if i % 2 else 7, i) for i in range(6)]
    twins = Twins(ws, schema, rows)
    assert ("same", "half", True) in twins.groups
    assert not any("none" in group[:2] and group[0] != group[1] for group in twins.groups)
    found = twins.check()
    assert (("none", "!=", "none"),) in found
    assert (("same", "!=", "same"),) in found
    assert (("half", "<", "half"),) in found
    twins.apply([(1, 7, 7, 9)])
    assert (("same", "!=", "same"),) not in twins.apply([(None, 8, None, 10)])
    assert (("none", "!=", "none"),) in twins.apply(deletes=[6])


def test_columns_without_any_value_are_not_compared(ws: Workspace) -> None:
    twins = Twins(ws, INTS, [(None, None)] * 3)
    assert sorted(twins.groups) == [("a", "a", True), ("b", "b", True)]
    twins.apply([(1, 1), (2, 2)])


# -- which columns are compared ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "crossed"),
    [
        (range(10), [0, 1, 2] * 4, True),  # 3 of 10
        (range(10), [0, 1, 20] * 4, False),
        (range(20), [*range(6), *range(100, 114)], True),  # 6 of 20, each
        (range(20), [*range(5), *range(100, 115)], False),
        ([None, 1, None], [1, None, 2], True),  # 1 of 2
    ],
)
def test_the_larger_column_decides(ws: Workspace, left: Any, right: Any, crossed: bool) -> None:
    ws.track("t", pa.table({"a": list(left), "b": list(right)[: len(left)]}), kinds=("dc",))
    groups = [(g.left, g.right) for g in ws.dcs.space("t").groups]
    assert (("a", "b") in groups) == (("b", "a") in groups) == crossed
    assert len(groups) == (4 if crossed else 2)


def test_types_decide(ws: Workspace) -> None:
    """Widths of integers do not matter; digits of decimals, units and signs do."""
    one = Decimal(1)
    schema = pa.schema(
        {
            "small": pa.int8(),
            "large": pa.int64(),
            "unsigned": pa.uint64(),
            "float": pa.float64(),
            "text": pa.string(),
            "long": pa.large_string(),
            "d1": pa.decimal128(10, 2),
            "d2": pa.decimal128(12, 2),
            "flag": pa.bool_(),
            "flag2": pa.bool_(),
        }
    )
    rows = [(1, 1, 1, 1.0, "1", "1", one, one, True, True)]
    twins = Twins(ws, schema, rows)
    crossed = {(a, b) for a, b, _ in twins.groups if a < b}
    assert crossed == {("large", "small"), ("long", "text"), ("flag", "flag2")}


def test_the_choice_is_made_once(ws: Workspace) -> None:
    """Columns that come to share values are not compared; those that cease to are still."""
    twins = Twins(ws, INTS, [(1, 5), (2, 6)])
    assert len(twins.groups) == 2
    twins.apply([(5, 1), (6, 2)])
    twins.apply(deletes=[0, 1])
    other = Twins(ws, INTS, [(1, 1), (2, 2)])
    assert len(other.groups) == 4
    other.apply([(7, 17), (8, 18), (9, 19)])
    other.apply(deletes=[0, 1])
    for twin in (twins, other):
        for table in twin.tables:
            there = ws.dcs.space(table).groups
            assert [(g.left, g.right, g.ordered) for g in there] == twin.groups


def test_columns_may_be_chosen(ws: Workspace) -> None:
    rows = pa.table({"id": [1, 2, 3], "name": ["x", "y", "x"], "name2": ["x", "y", "y"]})
    ws.track("some", rows, kinds=("dc",), columns=("name*",))
    ws.track("others", rows, kinds=("dc",), exclude=("name2",))
    groups = {table: [(g.left, g.right) for g in ws.dcs.space(table).groups] for table in ws.tables()}
    assert sorted(groups["some"]) == [
        ("name", "name"),
        ("name", "name2"),
        ("name2", "name"),
        ("name2", "name2"),
    ]
    assert sorted(groups["others"]) == [("id", "id"), ("name", "name")]
    ws.apply("some", inserts=rows)
    names = rows.select(["name", "name2"])
    space = Space([(a, b, False) for a, b in groups["some"]], ["name", "name2"])
    twice = [tuple(r.values()) for r in names.to_pylist()] * 2
    expected = space.telling(space.general(space.evidence(twice)))
    assert {space.numbers(rule) for rule in listed(ws, "some")} == set(expected)


# -- deletes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seed", "n_rows", "n_columns", "n_values"), [(0, 41, 4, 4), (1, 35, 3, 5), (5, 50, 4, 2)]
)
def test_what_several_pairs_lose_at_once(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, seed: int, n_rows: int, n_columns: int, n_values: int
) -> None:
    """Evidence that lost its witness, where pairs with other evidence violate the same constraint, too.

    Constraints are verified one by one, as in large tables, and a few violating pairs of each are told.
    """
    monkeypatch.setattr(dc_witnessed, "SCANNED_ROWS", 0)
    monkeypatch.setattr(plan, "SCANNED_NS", 1e12)
    monkeypatch.setattr(plan, "NS_JOINED", 1e9)
    rng = np.random.default_rng(seed)
    schema = pa.schema([(f"c{c}", pa.int64()) for c in range(n_columns)])
    values = rng.integers(0, n_values, (n_rows, n_columns)) + 100 * np.arange(n_columns)
    twins = Twins(ws, schema, [tuple(row) for row in values.tolist()])
    while len(twins.rows) > n_rows // 2:
        twins.apply(deletes=np.sort(rng.permutation(len(twins.rows))[:5]).tolist())


# -- masks of several words -------------------------------------------------------------------------------


def wide(rng: np.random.Generator, n_rows: int, n_columns: int) -> list[Row]:
    """Columns of few values; none of them shares any with another."""
    values = rng.integers(0, 4, (n_rows, n_columns)) + 100 * np.arange(n_columns)
    null = rng.random((n_rows, n_columns)) < 0.05
    return [
        tuple(None if none else int(v) for v, none in zip(row, nulls, strict=True))
        for row, nulls in zip(values, null, strict=True)
    ]


@pytest.mark.parametrize(("n_columns", "n_words"), [(10, 1), (11, 2), (12, 2), (22, 3)])
def test_masks_of_several_words(ws: Workspace, n_columns: int, n_words: int) -> None:
    rng = np.random.default_rng(n_columns)
    schema = pa.schema([(f"c{c}", pa.int64()) for c in range(n_columns)])
    rows = wide(rng, 9, n_columns)
    # The last columns decide something: bits of the last word.
    rows = [(*row[:-2], i + 10**6, 2 * i + 10**7) for i, row in enumerate(rows)]
    twins = Twins(ws, schema, rows, max_predicates=2)
    assert len(twins.space.words) == 6 * n_columns
    assert -(-len(twins.space.words) // 64) == n_words
    last, before = f"c{n_columns - 1}", f"c{n_columns - 2}"
    rule: Rule = ((before, "<=", before), (last, ">=", last))
    assert rule in twins.check()
    twins.apply(wide(rng, 2, n_columns))
    twins.apply([(*rows[0][:-2], 10**6 + 50, 10**7)])
    assert rule not in twins.check()
    assert rule in twins.apply(deletes=[9, 10, 11])
    twins.apply(deletes=[0, 2])


@pytest.mark.parametrize(("n_columns", "text"), [(4, False), (5, False), (7, True), (9, True)])
def test_many_columns_of_one_type(ws: Workspace, n_columns: int, text: bool) -> None:
    """All are compared with all: n * n groups."""
    rng = np.random.default_rng(n_columns)
    type_ = pa.string() if text else pa.int64()
    schema = pa.schema([(f"c{c}", type_) for c in range(n_columns)])

    def some(n: int) -> list[Row]:
        return [tuple(f"v{v}" if text else int(v) for v in row) for row in rng.integers(0, 4, (n, n_columns))]

    # Each column has all values.
    every = [tuple(f"v{v}" if text else v for _ in range(n_columns)) for v in range(4)]
    twins = Twins(ws, schema, every + some(2), max_predicates=2)
    assert len(twins.groups) == n_columns**2
    assert len(twins.space.words) == n_columns**2 * (2 if text else 6)
    twins.apply(some(2))
    twins.apply(deletes=[1, 5])


def test_no_bound_with_two_words(ws: Workspace) -> None:
    """Constraints of any size whose predicates are in different words."""
    schema = pa.schema([(f"c{c}", pa.int64()) for c in range(13)])
    # All but two columns are constant.
    rows = [(i // 2, *range(50, 61), 100 - i) for i in range(5)]
    twins = Twins(ws, schema, rows)
    assert any({p[0] for p in rule} == {"c0", "c12"} for rule in twins.check())
    twins.apply([(1, *range(50, 61), 98), (2, *range(50, 61), 300)])
    twins.apply(deletes=[0, 1])


# -- what bounds the search -------------------------------------------------------------------------------


def test_a_bound_on_predicates(ws: Workspace) -> None:
    rng = np.random.default_rng(3)
    schema = pa.schema([(f"c{c}", pa.int64()) for c in range(4)])
    rows = wide(rng, 8, 4)
    for n in (1, 2, 3):
        twins = Twins(ws, schema, rows, max_predicates=n)
        twins.apply(wide(rng, 3, 4))
        found = twins.apply(deletes=[0, 4])
        assert all(len(rule) <= n for rule in found)


@pytest.mark.parametrize("options", [{"max_error": 0.1, "evidence": "witnessed"}, {"operators": ("=", "~")}])
def test_what_cannot_be_asked(ws: Workspace, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        ws.track("t", pa.table({"a": [1, 2]}), kinds=("dc",), **options)
    assert ws.tables() == []


# -- approximate constraints ------------------------------------------------------------------------------


def test_errors_of_few_rows(ws: Workspace) -> None:
    """No pairs, no errors; and with two rows the error is none, half or all."""
    ws.track("t", pa.table({"a": [1]}), kinds=("dc",), evidence="counted", max_error=0.5)
    [only] = ws.dependencies(kind="dc", max_error=0.5)
    assert isinstance(only, Dc)
    assert (only.predicates, only.error) == ((), 0)
    ws.apply("t", inserts=pa.table({"a": [2]}))
    found = {d.formula: d.error for d in ws.dependencies(kind="dc", max_error=0.5) if isinstance(d, Dc)}
    assert found == {"not(t.a <= s.a)": 0.5}
    exact = {d.formula: d.error for d in ws.dependencies(kind="dc") if isinstance(d, Dc)}
    assert exact == {"not(t.a = s.a)": 0}
    [whole] = ws.dependencies(kind="dc", max_error=1.0)
    assert isinstance(whole, Dc)
    assert (whole.predicates, whole.error) == ((), 1)


# -- what is told of a rule -------------------------------------------------------------------------------


def test_a_rule_beyond_the_bound(ws: Workspace) -> None:
    """The cover does not tell whether it held: then nothing is said of it."""
    ws.track("t", pa.table({"a": [1, 1, 2, 2], "b": [11, 12, 12, 11]}), kinds=("dc",), max_predicates=1)
    rule = "not(t.a = s.a and t.b = s.b)"
    told = ws.dcs.explain("t", rule)
    assert (told.holds, told.since, told.minimal) == (True, None, False)
    ws.apply("t", inserts=pa.table({"a": [1], "b": [11]}))
    told = ws.dcs.explain("t", rule)
    assert (told.holds, told.n_violations, told.since) == (False, 2, None)


def test_a_rule_in_other_operators(ws: Workspace) -> None:
    """What is minimal is what is listed."""
    rows = pa.table({"a": [1, 1, 2, 2], "b": [11, 12, 12, 11]})
    ws.track("t", rows, kinds=("dc",), operators=("<", ">"))
    assert ws.dependencies(kind="dc") == []
    told = ws.dcs.explain("t", "not(t.a = s.a and t.b = s.b)")
    assert (told.holds, told.minimal, told.implied_by) == (True, False, ())


def test_whether_columns_have_nulls_is_told_by_the_references(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No segment is read for it, which on a store may be far away."""
    monkeypatch.setattr(dc_witnessed, "open_segment", None)
    rows = pa.table({"a": [1, None, 2, 2], "b": [11, 12, 12, 11]})
    ws.track("t", rows, kinds=("dc",), evidence="witnessed")
    new = pa.table({"a": [3], "b": [None]}, rows.schema)
    ws.apply("t", inserts=new, deletes=rows.slice(0, 1))
    with holdfast.open(ws.root.parent / "again", engine="inline") as again:
        again.track("t", pa.concat_tables([rows.slice(1), new]), kinds=("dc",), evidence="witnessed")
        assert list(map(str, ws.dependencies())) == list(map(str, again.dependencies()))


def test_a_batch_writes_what_it_changes_of_witnessed_evidence(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the pairs of all other evidence, of which there may be millions; and all of them now and then."""
    for name, value in {"DELTAS_FROM": 50, "DELTAS_SHARE": 1e9, "MAX_WITNESS_DELTAS": 3}.items():
        monkeypatch.setattr(evidence_files, name, value)
    options: Any = {"evidence": "witnessed", "max_predicates": 3}
    draw = np.random.default_rng(8)
    rows = pa.table({name: draw.integers(0, 30, 100) for name in "abcd"})

    def files() -> tuple[str, list[int]]:
        ref = dc_ref(ws._tables.state("t"))
        assert ref is not None
        return ref.evidence.name, [delta.length for delta in ref.deltas]

    ws.track("t", rows.slice(0, 90), kinds=("dc",), **options)
    size = sum(len(path.read_bytes()) for path in ws.root.rglob("comparisons-*.arrow"))
    first, lengths = files()
    assert lengths == []
    for i in range(4):
        new = rows.slice(90 + i, 1)
        ws.apply("t", inserts=new, deletes=rows.slice(i, 1))
        check_evidence(ws, "t")
        now, lengths = files()
        if i < 3:
            assert now == first
            assert len(lengths) == i + 1
            assert max(lengths) < size / 4
        else:
            assert now != first
            assert lengths == []
        with holdfast.open(ws.root, engine="inline") as again:  # which reads what was written
            again.track("u", rows.slice(i + 1, 90), kinds=("dc",), **options)
            held, anew = (
                {str(d).partition(": ")[2] for d in again.dependencies(table=table)} for table in "tu"
            )
            assert held == anew
            again.drop("u")
