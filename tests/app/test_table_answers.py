"""What the page is told about a table: order, filters, since when, keys with reasons, groups of FDs."""

from __future__ import annotations

from collections import Counter
from itertools import count
from math import sqrt
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import holdfast
from holdfast.app.explorer import listing
from holdfast.app.explorer.api import Explorer
from holdfast.core.words.column_sets import columns_of, listed_order, masks_from, numbered, places_among
from holdfast.core.words.dependency import Fd
from holdfast.core.words.predicate import Dc
from holdfast.denial.constraints import dcs_of
from holdfast.errors import UnknownColumnError, UnknownTableError, UsageError
from holdfast.functional.fd_score import SIZE_FACTOR, score_bounds

ALL = ("ucc", "fd", "ind", "dc", "row", "profile")


def random_table(random: Random, n_columns: int, n_rows: int) -> pa.Table:
    """Columns of very different numbers of values; some follow from others, and two are the same."""
    columns: dict[str, list[Any]] = {"id": list(range(n_rows))}
    for i in range(n_columns - 3):
        n_values = random.choice([1, 2, 3, 8, n_rows])
        columns[f"c{i}"] = [random.randrange(n_values) for _ in range(n_rows)]
    columns["same"] = columns["c0"]
    columns["text"] = [f"v{random.randrange(5)}" for _ in range(n_rows)]
    return pa.table(columns)


@pytest.fixture
def ws(tmp_path: Path) -> holdfast.Workspace:
    return holdfast.open(tmp_path / "w", engine="inline")


def asked(explorer: Explorer, table: str, **fields: Any) -> dict[str, Any]:
    return explorer.answer(
        "workspace/dependencies", {"table": table, **{k: str(v) for k, v in fields.items()}}
    )


def whole(explorer: Explorer, table: str, **fields: Any) -> list[dict[str, Any]]:
    """All that match, page by page."""
    told: list[dict[str, Any]] = []
    for offset in count(0, 7):
        page = asked(explorer, table, offset=offset, limit=7, **fields)
        told += page["dependencies"]
        if offset + 7 >= page["n_matching"]:
            assert len(told) == page["n_matching"]
            return told


# -- the order --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kinds", "n_columns", "n_rows"),
    [(("fd",), 8, 40), (("ucc", "fd"), 8, 40), (("ucc", "fd"), 7, 9), (("ucc", "fd"), 4, 1), (ALL, 5, 20)],
)
def test_the_order_is_that_of_reports(
    ws: holdfast.Workspace, kinds: tuple[str, ...], n_columns: int, n_rows: int
) -> None:
    ws.track("t", random_table(Random(n_rows), n_columns, n_rows), kinds=kinds)
    if "ucc" in kinds:
        ws.pin("t", ["id"])
    explorer = Explorer(ws)
    for kind in (None, *kinds):
        expected = ws.dependencies(kind, "t", ranked=True)
        ranks = ws.readers.order(None).ranks(expected)
        told = whole(explorer, "t", **({} if kind is None else {"kind": kind}))
        assert [(d["role"], d["score"]) for d in told] == [(r.role, round(r.score, 4)) for r in ranks]
        fields = [d.to_dict() for d in expected]
        assert [{k: d[k] for k in f} for d, f in zip(told, fields, strict=True)] == fields
        assert asked(explorer, "t", limit=0)["n"] == len(ws.dependencies(None, "t"))


def test_only_what_is_shown_of_many_rules_is_made(
    ws: holdfast.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that somebody relies on or has muted have their place, and words are looked for in predicates."""
    ws.track("t", random_table(Random(3), 6, 30), kinds=("dc",))
    rules = [d for d in ws.dependencies("dc", "t") if isinstance(d, Dc)]
    alike = Counter(frozenset(rule.columns) for rule in rules)
    rare = sorted(rules, key=lambda rule: alike[frozenset(rule.columns)])
    ws.pin("t", rare[3])
    ws.mute("t", rare[5])
    ws.mute("t", rare[7].mirrored)
    expected = [d.name for d in ws.dependencies("dc", "t", ranked=True)]
    n_made = 0

    def counted(table: str, space: Any, masks: Any) -> list[Any]:
        nonlocal n_made
        n_made += len(masks)
        return dcs_of(table, space, masks)

    monkeypatch.setattr(listing, "dcs_of", counted)
    monkeypatch.setattr(listing, "MOST_TEXTS", 10)
    assert len(expected) > 300
    explorer = Explorer(ws)
    page = asked(explorer, "t", kind="dc", limit=20)
    assert [d["text"] for d in page["dependencies"]] == expected[:20]
    assert page["dependencies"][0]["role"] == "pinned"
    assert page["n_muted"] == 2
    # Beside those of the page only some on the columns of what is marked.
    assert n_made < len(expected) / 2
    with_id = asked(explorer, "t", kind="dc", q="t.id text", limit=1_000)
    wanted = [name for name in expected if "t.id" in name and "text" in name]
    assert [d["text"] for d in with_id["dependencies"]] == wanted[:1_000]
    assert with_id["n_matching"] == len(wanted)
    of_column = asked(explorer, "t", kind="dc", column="text", limit=1)
    assert of_column["n_matching"] == sum("text" in name for name in expected)


def test_wide_tables_have_the_same_order(ws: holdfast.Workspace) -> None:
    """More than 64 columns: masks of two words."""
    random = Random(1)
    columns = {f"c{i}": [random.randrange(random.choice([2, 3, 12])) for _ in range(12)] for i in range(70)}
    ws.track("t", pa.table(columns), kinds=("ucc", "fd"), max_lhs=2, max_columns=2)
    explorer, expected = Explorer(ws), ws.dependencies(None, "t", ranked=True)
    assert len(expected) > 1_000
    told = asked(explorer, "t", limit=1_000)
    assert [d["text"] for d in told["dependencies"]] == [d.name for d in expected[:1_000]]


def test_bounds_are_those_of_the_law() -> None:
    """One by one, as the docstring has it."""
    random = Random(7)
    fds = [(random.randrange(6), random.randrange(1, 99), random.randrange(99)) for _ in range(300)]
    for n_rows in (0, 1, 2, 40, 1_000):
        sizes, most, values = (np.array(part) for part in zip(*fds, strict=True))
        bounds = score_bounds(n_rows, sizes, most, values).tolist()
        for (size, k, d), bound in zip(fds, bounds, strict=True):
            law = 0.0
            if n_rows >= 2 and size:
                surprise = (1 - 1 / max(1, d)) * (n_rows - min(n_rows, k)) / (n_rows - 1)
                law = sqrt(surprise) * SIZE_FACTOR ** (size - 1)
            assert bound == pytest.approx(law, abs=1e-12)


@pytest.mark.parametrize("n_columns", [3, 64, 65, 130])
def test_sets_of_columns_without_kernels(n_columns: int) -> None:
    random, n_words = Random(n_columns), (n_columns + 63) // 64
    sets = [
        tuple(sorted(random.sample(range(n_columns), random.randrange(min(5, n_columns)))))
        for _ in range(200)
    ]
    masks = masks_from(sets, n_words)
    assert columns_of(masks) == sets
    order = np.lexsort(listed_order(masks)).tolist()
    assert [sets[i] for i in order] == sorted(sets, key=lambda s: (len(s), s))
    numbers = numbered(masks).tolist()
    assert len({*zip(sets, numbers, strict=True)}) == len({*sets}) == len({*numbers})
    some = list(dict.fromkeys(sets[::3]))
    places = places_among(masks, masks_from(some, n_words)).tolist()
    assert places == [some.index(s) if s in some else -1 for s in sets]


# -- filters ----------------------------------------------------------------------------------------

ORDERS = pa.table(
    {
        "order_id": list(range(1, 41)),
        "zip": [i % 8 for i in range(40)],
        "city": [f"town {i % 8 // 2}" for i in range(40)],
        "State": [f"S{i % 8 // 4}" for i in range(40)],
        "net": [i * 7 % 13 for i in range(40)],
        "gross": [i * 7 % 13 + i % 3 for i in range(40)],
    }
)


@pytest.fixture
def orders(ws: holdfast.Workspace) -> Explorer:
    ws.track("orders", ORDERS, kinds=("ucc", "fd", "row", "profile"))
    return Explorer(ws)


def test_filters_say_what_a_look_at_each_says(orders: Explorer, ws: holdfast.Workspace) -> None:
    everything = whole(orders, "orders")
    position = {name: i for i, name in enumerate(ORDERS.column_names)}

    def columns(d: dict[str, Any]) -> set[str]:
        return (
            {*d["lhs"], d["rhs"]}
            if d["kind"] == "fd"
            else {*d["columns"]}
            if "columns" in d
            else {
                d["left"],
                d["right"],
            }
        )

    assert {d["kind"] for d in everything} == {"ucc", "fd", "row", "profile"}
    for column in position:
        expected = [d["text"] for d in everything if column in columns(d)]
        assert [d["text"] for d in whole(orders, "orders", column=column)] == expected
    for least in ("0.2", "0.5", "1"):
        expected = [d["text"] for d in everything if d["score"] >= float(least)]
        assert [d["text"] for d in whole(orders, "orders", least_score=least)] == expected
    for role in ("chance", "primary key"):
        expected = [d["text"] for d in everything if d["role"] == role]
        assert [d["text"] for d in whole(orders, "orders", role=role)] == expected
    told = asked(orders, "orders", kind="fd", column="zip")
    assert told["by_kind"]["fd"] == told["n_matching"] < told["n"]
    assert sum(told["by_kind"].values()) == asked(orders, "orders", column="zip")["n_matching"]
    assert told["n_chance"] == sum(
        d["role"] == "chance" for d in whole(orders, "orders", kind="fd", column="zip")
    )


def test_texts_are_looked_for(orders: Explorer) -> None:
    def texts(q: str, **more: str) -> list[str]:
        return [d["text"] for d in whole(orders, "orders", q=q, **more)]

    assert "zip -> city" in texts("zip city", kind="fd")
    assert texts("ZIP, city", kind="fd") == texts("zip city", kind="fd")
    to_city = texts("-> city", kind="fd")
    assert to_city
    assert all(text.endswith("-> city") for text in to_city)
    assert texts("zip -> city", kind="fd") == ["zip -> city"]
    assert texts("zip->", kind="fd") == [t for t in texts("", kind="fd") if "zip" in t.split(" -> ")[0]]
    assert texts("net at most", kind="row") == ["net <= gross"]  # its sentence
    assert texts("nowhere") == []
    assert all("->" in text for text in texts("->"))


def test_what_is_asked_for_is_checked(orders: Explorer) -> None:
    with pytest.raises(UnknownColumnError):
        asked(orders, "orders", column="Zip")
    with pytest.raises(UnknownTableError):
        asked(orders, "nobody")
    with pytest.raises(UnknownTableError):
        orders.answer("workspace/table", {"name": "nobody"})
    for wrong in (
        {"least_score": "2"},
        {"least_score": "nan"},
        {"role": "king"},
        {"kind": "x"},
        {"limit": "-1"},
    ):
        with pytest.raises(UsageError):
            asked(orders, "orders", **wrong)


# -- since when -------------------------------------------------------------------------------------


def test_since_when(ws: holdfast.Workspace) -> None:
    """As `explain` says for each, one by one."""
    people = pa.table({"id": [1, 2, 3], "zip": [1, 1, 2], "city": ["A", "B", "C"], "best": [1, 2, 2]})
    ws.track("people", people, kinds=ALL)
    ws.track("zips", pa.table({"zip": [1, 2, 3]}), kinds=("ucc", "ind"))
    ws.apply("people", deletes=people.slice(1, 1))
    ws.apply("people", inserts=pa.table({"id": [4], "zip": [9], "city": ["D"], "best": [5]}))
    ws.apply("zips", inserts=pa.table({"zip": [9]}))
    explorer = Explorer(ws)
    told = whole(explorer, "people")
    times = {entry.version: entry.at.isoformat() for entry in ws.log()}
    versions = set()
    for d, dependency in zip(told, ws.dependencies(None, "people", ranked=True), strict=True):
        version = d["since"]["version"]
        versions.add(version)
        assert d["since"]["at"] == times[version]
        match d["kind"]:
            case "ind":
                explained = ws.inds.explain(dependency.dependent, dependency.referenced)
            case "ucc":
                explained = ws.explain("people", dependency.columns)
            case _:
                explained = ws.explain("people", dependency.name)
        assert explained.since == version, d["text"]
    assert len(versions) >= 3


# -- one table --------------------------------------------------------------------------------------


@pytest.fixture
def shop(ws: holdfast.Workspace) -> Explorer:
    customers = pa.table({"id": list(range(1, 41)), "name": [f"n{i % 9}" for i in range(40)]})
    placed = pa.table(
        {
            "order_id": list(range(1, 81)),
            "customer_id": [i % 30 + 1 for i in range(80)],
            "note": [None if i % 4 else f"x{i}" for i in range(80)],
        }
    )
    ws.track_all({"customers": customers, "orders": placed}, kinds=("ucc", "fd", "ind", "profile"))
    return Explorer(ws)


def test_a_table(shop: Explorer, ws: holdfast.Workspace) -> None:
    told = shop.answer("workspace/table", {"name": "orders"})
    columns = {c["name"]: c for c in told["columns"]}
    assert [*columns] == ["order_id", "customer_id", "note"]
    assert columns["order_id"]["is_primary"]
    assert columns["order_id"]["is_unique"]
    assert columns["customer_id"]["refers_to"] == ["customers.id"]
    assert (columns["note"]["n_nulls"], columns["customer_id"]["n_distinct"]) == (60, 30)
    assert (columns["customer_id"]["low"], columns["customer_id"]["high"]) == (1, 30)
    primary = told["keys"]["first"][0]
    assert told["keys"]["has_primary"]
    assert (primary["columns"], primary["role"], primary["since"]["version"]) == (
        ["order_id"],
        "primary key",
        1,
    )
    reasons = {reason["text"]: reason["points"] for reason in primary["reasons"]}
    assert reasons["named like a key"] > 1
    assert {"one column", "never NULL", "a sequence without gaps", "27% likely by chance"} <= {*reasons}
    [reference] = told["references"]["out"]
    assert (reference["role"], reference["text"]) == ("foreign key", "orders[customer_id] in customers[id]")
    assert reference["coverage"] == 0.75
    assert (
        shop.answer("workspace/table", {"name": "customers"})["references"]["into"][0]["text"]
        == reference["text"]
    )
    assert told["tracked"]["version"] == 1


def test_a_reference_that_broke_is_told(shop: Explorer, ws: holdfast.Workspace) -> None:
    ws.apply("orders", inserts=pa.table({"order_id": [99], "customer_id": [77], "note": ["lost"]}))
    told = shop.answer("workspace/table", {"name": "orders"})["references"]
    [broken] = [r for r in told["out"] if r["missing_values"]]
    assert (broken["text"], broken["missing_rows"]) == ("orders[customer_id] in customers[id]", 1)
    assert broken["since"] is None
    # What misses values is not listed as what holds.
    assert asked(shop, "orders", kind="ind", limit=0)["n_matching"] == len(ws.dependencies("ind", "orders"))


def test_pins_with_their_terms_the_broken_first(shop: Explorer, ws: holdfast.Workspace) -> None:
    ws.pin("orders", ["order_id"], owner="ann")
    ws.pin_rule("note is not null", table="orders", severity="warning", reason="asked for")
    pins = shop.answer("workspace/table", {"name": "orders"})["pins"]
    assert [(p["text"], p["holds"], p["severity"]) for p in pins] == [
        ("note is not null", False, "warning"),
        ("[order_id]", True, "error"),
    ]
    assert (pins[0]["counted"], pins[0]["reason"], pins[1]["owner"]) == ("60 rows", "asked for", "ann")
    assert asked(shop, "orders", role="pinned")["dependencies"][0]["text"] == "[order_id]"


@pytest.mark.parametrize("kinds", [("fd",), ("ind",), ("profile",), ("dc",)])
def test_a_table_without_keys(ws: holdfast.Workspace, kinds: tuple[str, ...]) -> None:
    ws.track("t", pa.table({"a": [1, 2, 3], "b": [1, 1, 2]}), kinds=kinds)
    explorer = Explorer(ws)
    told = explorer.answer("workspace/table", {"name": "t"})
    assert told["keys"] == {"n": None, "n_chance": 0, "has_primary": False, "first": []}
    assert [c["n_distinct"] for c in told["columns"]] == [3, 2]
    assert explorer.answer("workspace/fds", {"table": "t"})["n"] == (2 - 1 if kinds == ("fd",) else None)


# -- groups -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kinds", [("fd",), ("ucc", "fd")])
def test_groups_of_functional_dependencies(ws: holdfast.Workspace, kinds: tuple[str, ...]) -> None:
    ws.track("orders", ORDERS, kinds=kinds)
    told = Explorer(ws).answer("workspace/fds", {"table": "orders"})
    names, fds = told["columns"], [d for d in ws.dependencies("fd", "orders") if isinstance(d, Fd)]
    assert names == ORDERS.column_names
    groups = [([names[c] for c in g["lhs"]], [names[c] for c in g["rhs"]]) for g in told["groups"]]
    assert {(*lhs, a) for lhs, rhs in groups for a in rhs} <= {fd.columns for fd in fds}
    assert (["zip"], ["city", "State"]) in [(lhs, rhs) for lhs, rhs in groups]
    assert ["order_id"] not in [lhs for lhs, _ in groups]  # a key
    best = [g["scores"][0] for g in told["groups"]]
    assert best == sorted(best, reverse=True)
    drawn = sum(len(g["rhs"]) for g in told["groups"])
    assert told["n"] == len(fds) == drawn + told["n_of_keys"] + told["n_chance"]
    assert told["n_groups"] == len(groups)
    # What follows from keys, unfolded.
    unfolded = Explorer(ws).answer("workspace/fds", {"table": "orders", "follow": "1"})
    assert (told["follow"], unfolded["follow"]) == (False, True)
    assert unfolded["groups"]
    if "ucc" in kinds:  # else those that look like chance are left out
        assert ["order_id"] in [[names[c] for c in g["lhs"]] for g in unfolded["groups"]]
    assert sum(len(g["rhs"]) for g in unfolded["groups"]) == unfolded["n_of_keys"] == told["n_of_keys"]
    assert unfolded["n_groups"] == len(unfolded["groups"])
    assert {tuple(g["lhs"]) for g in unfolded["groups"]}.isdisjoint(tuple(g["lhs"]) for g in told["groups"])
