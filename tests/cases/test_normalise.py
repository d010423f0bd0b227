"""Normal forms: lossless, in the form they claim, and honest about what they lose; DuckDB runs the script."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Collection, Sequence
from itertools import product
from typing import Any

import duckdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.app.export.model import ExportTable
from holdfast.app.export.normal_form import normal_form_sql
from holdfast.app.report.normal_form import print_normal_form
from holdfast.app.report.paper import Paper
from holdfast.core.words.schema import Column, Schema, Type
from holdfast.functional.normal_forms import normalise as module
from holdfast.functional.normal_forms.normalise import normalise
from holdfast.functional.normal_forms.proposal import FORMS, Arrow, Decomposition, Form
from reference import normal_forms as reference

Row = tuple[Any, ...]
NAMES = ("a", "b", "c", "d", "e")
each_form = pytest.mark.parametrize("form", FORMS)


@st.composite
def tables(draw: st.DrawFn, values: Sequence[Any] = (0, 1, 2)) -> list[Row]:
    """Few rows over few values. A hidden function now and then, so that FDs are more than accidents."""
    n_columns = draw(st.integers(1, 5))
    row = st.tuples(*[st.sampled_from(values)] * n_columns)
    rows = draw(st.lists(row, max_size=8))
    for target in range(1, n_columns):
        if draw(st.booleans()):
            source = draw(st.integers(0, target - 1))
            image = draw(st.fixed_dictionaries({v: st.sampled_from(values) for v in values}))
            rows = [(*r[:target], image[r[source]], *r[target + 1 :]) for r in rows]
    return rows


def width(rows: Sequence[Row]) -> int:
    return len(rows[0]) if rows else 3


def found_fds(rows: Sequence[Row], nulls: str = "equal") -> list[Arrow]:
    found = reference.minimal_fds(rows, width(rows), nulls)
    return [(frozenset(NAMES[i] for i in lhs), NAMES[rhs]) for lhs, rhs in found]


def proposed_for(rows: Sequence[Row], form: Form, **options: Any) -> Decomposition:
    options.setdefault("has_duplicates", len(set(rows)) < len(rows))
    fds = options.pop("fds", None)
    return normalise("t", NAMES[: width(rows)], found_fds(rows) if fds is None else fds, form, **options)


def positions(names: Collection[str]) -> frozenset[int]:
    return frozenset(map(NAMES.index, names))


def part_rows(rows: Sequence[Row], names: Sequence[str]) -> set[Row]:
    return reference.project(rows, [NAMES.index(n) for n in names])


def check_lossless(rows: Sequence[Row], proposed: Decomposition) -> None:
    parts = [([NAMES.index(c) for c in p.columns], part_rows(rows, p.columns)) for p in proposed.parts]
    assert {c for columns, _ in parts for c in columns} == set(range(width(rows)))
    assert reference.natural_join(parts) == {frozenset(enumerate(row)) for row in rows}


def check_keys_and_references(rows: Sequence[Row], proposed: Decomposition) -> None:
    """Keys are minimal keys of the part's rows; foreign keys lead to keys, and in no circle."""
    seen: set[str] = set()
    parts = {p.name: p for p in proposed.parts}
    assert len(parts) == len(proposed.parts)
    for part in proposed.parts:
        local = part_rows(rows, part.columns)
        for key in part.keys:
            assert reference.is_superkey(local, [part.columns.index(c) for c in key])
        for reference_ in part.references:
            assert set(reference_.columns) <= set(part.columns)
            assert reference_.columns in parts[reference_.table].keys
            assert reference_.columns
    while len(seen) < len(parts):
        free = {n for n, p in parts.items() if n not in seen and {r.table for r in p.references} <= seen}
        assert free, "foreign keys in a circle"
        seen |= free


# --- With every FD ----------------------------------------------------------------------------------------


@each_form
@given(rows=tables(values=(0, 1, None)))
@example(rows=[])
@example(rows=[(0, 1, None)])
@example(rows=[(0, 0), (0, 0)])
@example(rows=[(0, 0, 0), (0, 1, 1), (1, 0, 2), (1, 1, 1)])  # {a, b} -> c and c -> b: BCNF loses a key
def test_with_every_fd(form: Form, rows: list[Row]) -> None:
    proposed = proposed_for(rows, form, use_all=True)
    assert proposed.complete
    check_lossless(rows, proposed)
    check_keys_and_references(rows, proposed)
    fds = reference.minimal_fds(rows, width(rows))
    parts = [positions(p.columns) for p in proposed.parts]
    for part in proposed.parts:
        local = part_rows(rows, part.columns)
        if form == "bcnf":
            assert not reference.violations(local, len(part.columns))
        else:
            assert reference.is_3nf(local, len(part.columns))
        keys = {
            frozenset(part.columns[i] for i in k) for k in reference.minimal_keys(local, len(part.columns))
        }
        assert set(map(frozenset, part.keys)) == keys
        assert len(part.keys) == len(keys)
    kept = {fd: reference.preserved(*fd, parts, fds) for fd in fds}
    if form == "3nf":
        assert all(kept.values())
    assert proposed.preserving == all(kept.values())
    harmful = {(lhs, a) for lhs, a in fds if not reference.is_superkey(rows, lhs)}
    told = {(positions(fd.lhs), NAMES.index(fd.rhs)) for fd in proposed.lost}
    assert told == {fd for fd in harmful if not kept[fd]}
    keys = reference.minimal_keys(rows, width(rows))
    whole = [key for key in keys if all(reference.preserved(key, a, parts, fds) for a in range(width(rows)))]
    assert set(map(positions, proposed.lost_keys)) == keys - set(whole)
    assert proposed.n_from_keys == len(fds) - len(harmful)
    assert proposed.n_used == len(harmful)


@given(rows=tables(values=(0, 1, None)), nulls=st.sampled_from(["equal", "distinct"]), data=st.data())
def test_the_fds_of_a_projection_lie_inside(rows: list[Row], nulls: str, data: st.DataObject) -> None:
    n = width(rows)
    kept = sorted(data.draw(st.sets(st.integers(0, n - 1))))
    # By its own rows, duplicates and all: under the rule that NULLs are distinct they matter.
    cut = [tuple(row[c] for c in kept) for row in rows]
    if not kept:
        return
    local = reference.minimal_fds(cut, len(kept), nulls)
    expected = {(frozenset(NAMES[kept[i]] for i in lhs), NAMES[kept[rhs]]) for lhs, rhs in local}
    inside = {NAMES[c] for c in kept}
    assert {(lhs, rhs) for lhs, rhs in found_fds(rows, nulls) if lhs | {rhs} <= inside} == expected


# --- With some FDs ----------------------------------------------------------------------------------------


@each_form
@given(rows=tables(), data=st.data())
def test_with_respect_to_the_fds_used(form: Form, rows: list[Row], data: st.DataObject) -> None:
    """What is chosen by score, and all that follows from it, makes no trouble in any part."""
    fds = found_fds(rows)
    max_lhs = data.draw(st.integers(1, 3))
    scores = {
        fd: s for fd in fds if (s := data.draw(st.sampled_from([0.0, 0.09, 0.1, 0.5, 0.9, None]))) is not None
    }
    proposed = proposed_for(rows, form, scores=scores, max_lhs=max_lhs)
    check_lossless(rows, proposed)
    check_keys_and_references(rows, proposed)
    by_position = {(positions(lhs), NAMES.index(a)): (lhs, a) for lhs, a in fds}
    harmful = {fd for fd in by_position if not reference.is_superkey(rows, fd[0])}
    chosen = {fd for fd in harmful if 1 <= len(fd[0]) <= max_lhs and scores.get(by_position[fd], 0) >= 0.1}
    used = {(x, a) for x, a in harmful if a in reference.closure(x, chosen)}
    assert proposed.n_used == len(used)
    aside = {(positions(s.fd.lhs), NAMES.index(s.fd.rhs)) for s in proposed.set_aside}
    assert aside == harmful - used
    parts = [positions(p.columns) for p in proposed.parts]
    keys = reference.minimal_keys(rows, width(rows))
    key = min(keys, key=lambda k: (len(k), sorted(k)))
    if form == "bcnf":
        for (x, a), part in product(used, parts):
            if x <= part and a in part:
                assert reference.is_superkey(
                    part_rows(rows, [NAMES[i] for i in sorted(part)]), _local(x, part)
                )
        assert not proposed.inside
        return
    assert not proposed.lost
    assert tuple(NAMES[i] for i in sorted(key)) not in proposed.lost_keys
    given_fds = chosen | {(key, a) for a in range(width(rows)) if a not in key}
    assert all(reference.preserved(x, a, parts, given_fds) for x, a in given_fds)
    for part in parts:
        superkeys = [s for s in reference.subsets(part) if part <= reference.closure(s, given_fds)]
        minimal = [s for s in superkeys if not any(other < s for other in superkeys)]
        prime = frozenset().union(*minimal)
        for x in reference.subsets(part):
            if x not in superkeys:
                assert reference.closure(x, given_fds) & part - x <= prime


def _local(columns: frozenset[int], part: frozenset[int]) -> list[int]:
    return [sorted(part).index(c) for c in columns]


@each_form
@given(rows=tables(values=(0, 1, None)), use_all=st.booleans())
def test_distinct_nulls(form: Form, rows: list[Row], use_all: bool) -> None:
    """FDs that say nothing about NULL are not used, so the rows with NULL come back too."""
    nullable = {NAMES[i] for row in rows for i, v in enumerate(row) if v is None}
    proposed = proposed_for(
        rows, form, fds=found_fds(rows, "distinct"), nullable=nullable, nulls="distinct", use_all=use_all
    )
    check_lossless(rows, proposed)
    check_keys_and_references(rows, proposed)
    assert not any(nullable.intersection(fd.lhs) for part in proposed.parts for fd in part.fds)


@each_form
@given(rows=tables(), bound=st.integers(0, 2), use_all=st.booleans(), with_keys=st.booleans())
def test_bounded_fds(form: Form, rows: list[Row], bound: int, use_all: bool, with_keys: bool) -> None:
    """Wider FDs and keys are not known: what is proposed is lossless all the same, and says so."""
    fds = [(lhs, a) for lhs, a in found_fds(rows) if len(lhs) <= bound]
    duplicates = len(set(rows)) < len(rows)
    keys = [[NAMES[i] for i in k] for k in reference.minimal_keys(rows, width(rows))]
    known = keys if with_keys and not duplicates else []
    proposed = proposed_for(rows, form, fds=fds, bound=bound, use_all=use_all, keys=known)
    check_lossless(rows, proposed)
    check_keys_and_references(rows, proposed)
    assert not proposed.complete
    assert any("are not known" in step for step in proposed.steps)
    if known:
        assert set(map(frozenset, proposed.parts[0].keys)) <= set(map(frozenset, keys))


# --- A shop's orders --------------------------------------------------------------------------------------

COLUMNS = ("order_id", "invoice", "zip", "city", "state", "currency")
SCHEMA = Schema(
    tuple(Column(n, Type("int" if n in ("order_id", "invoice", "zip") else "text")) for n in COLUMNS)
)


def arrows(*texts: str) -> list[Arrow]:
    pairs = (text.split(" -> ") for text in texts)
    return [(frozenset(lhs.split()), rhs) for lhs, rhs in pairs]


ORDERS = arrows(
    *(f"{key} -> {c}" for key in ("order_id", "invoice") for c in COLUMNS[:5] if c != key),
    "zip -> city",
    "zip -> state",
    "city -> state",
    " -> currency",
)


def test_orders() -> None:
    scores = dict.fromkeys(ORDERS, 0.8) | {arrows("zip -> state")[0]: 0.05}
    proposed = normalise(
        "orders",
        COLUMNS,
        ORDERS,
        scores=scores,
        redundant={arrows("zip -> city")[0]: 80},
        taken=["Orders_ZIP"],
    )
    assert [(p.name, p.columns, p.keys) for p in proposed.parts] == [
        ("orders_main", ("order_id", "invoice", "zip", "currency"), (("order_id",), ("invoice",))),
        ("orders_zip_2", ("zip", "city"), (("zip",),)),
        ("orders_city", ("city", "state"), (("city",),)),
    ]
    assert [[(r.columns, r.table) for r in p.references] for p in proposed.parts] == [
        [(("zip",), "orders_zip_2")],
        [(("city",), "orders_city")],
        [],
    ]
    assert [[fd.name for fd in p.fds] for p in proposed.parts] == [[], ["zip -> city"], ["city -> state"]]
    assert [p.removed for p in proposed.parts] == [None, 80, None]
    assert proposed.preserving
    # zip -> state scores low, but follows from two that do not.
    assert [(s.fd.name, s.why) for s in proposed.set_aside] == [("[] -> currency", "constant")]
    assert not proposed.complete
    assert json.loads(json.dumps(proposed.to_dict()))["parts"][1]["references"] == [
        {"columns": ["city"], "table": "orders_city"}
    ]


def test_a_score_orders_the_splits() -> None:
    """a -> c and b -> c cannot both be split off: the better one is."""
    fds = arrows("a -> c", "b -> c", "a b -> d", "a d -> b", "b d -> a")
    for better, worse in (("a", "b"), ("b", "a")):
        scores = {(frozenset(x), "c"): s for x, s in ((better, 0.9), (worse, 0.2))}
        proposed = normalise("t", "abcd", fds, scores=scores)
        assert [p.columns for p in proposed.parts] == [("a", "b", "d"), (better, "c")]
        assert [fd.name for fd in proposed.lost] == [f"{worse} -> c"]
        assert not proposed.preserving
    assert not normalise("t", "abcd", fds, "3nf", {}).splits
    third = normalise("t", "abcd", fds, "3nf")
    assert sorted(p.columns for p in third.parts) == [("a", "b", "d"), ("a", "c"), ("b", "c")]


def test_bcnf_may_lose_a_key_that_third_normal_form_keeps() -> None:
    fds = arrows("street city -> zip", "zip -> city")
    proposed = normalise("t", ["street", "city", "zip"], fds)
    assert [p.columns for p in proposed.parts] == [("street", "zip"), ("city", "zip")]
    assert proposed.lost_keys == (("street", "city"),)
    third = normalise("t", ["street", "city", "zip"], fds, "3nf")
    assert not third.splits
    assert third.parts[0].name == "t"
    assert [fd.name for fd in third.inside] == ["zip -> city"]
    assert any(step.startswith("Not in BCNF") for step in third.steps)


def test_constants_are_split_off_on_demand_only() -> None:
    fds = arrows("a -> b", " -> c")
    assert not normalise("t", "abc", fds).splits
    proposed = normalise("t", "abc", fds, use_all=True)
    assert [(p.name, p.columns, p.primary_key) for p in proposed.parts] == [
        ("t_main", ("a", "b"), ("a",)),
        ("t_constants", ("c",), ()),
    ]


def test_equal_rows() -> None:
    proposed = normalise("orders", COLUMNS, ORDERS, has_duplicates=True)
    assert "has no key" in proposed.steps[0]
    assert "different rows" in proposed.steps[-1]
    assert "has no key" in report(proposed)


def test_names_are_new_short_and_different() -> None:
    names = ["x" * 80, "x" * 79 + "y", "\N{SNOWMAN}!", "é" * 70, "id"]
    fds = [(frozenset({"id"}), n) for n in names[:4]]
    fds += [(frozenset({a}), b) for a, b in (names[:2], names[2:4])]
    proposed = normalise("über, table", names, fds, taken=["Über_table_MAIN"])
    told = [p.name for p in proposed.parts]
    assert len(told) == 3
    assert len({n.casefold() for n in [*told, "über_table_main"]}) == 4
    assert all(n.encode() and len(n.encode()) <= module.MAX_NAME for n in told)
    assert told[0] == "über_table_main_2"
    print_normal_form(Paper(io.StringIO(), terminal=True, width=40), proposed, version=1)


def test_unknown_forms() -> None:
    with pytest.raises(ValueError, match="known are bcnf, 3nf"):
        normalise("t", "a", [], "5nf")  # type: ignore[arg-type]


# --- Many FDs, many columns -------------------------------------------------------------------------------


@each_form
def test_wide_tables(form: Form) -> None:
    """130 columns: an id, and pairs of columns of which the first determines the second."""
    names = [f"c{i}" for i in range(131)]
    fds = [(frozenset({"c0"}), c) for c in names[1:]]
    fds += [(frozenset({names[i]}), names[i + 1]) for i in range(1, 131, 2)]
    proposed = normalise("t", names, fds, form, use_all=True)
    assert len(proposed.parts) == 66
    assert proposed.parts[0].columns == ("c0", *names[1::2])
    assert proposed.preserving
    assert len(proposed.parts[0].references) == 65


@each_form
def test_thousands_of_fds(form: Form) -> None:
    """Accidents by the thousand around one FD that is meant."""
    rnd = random.Random(7)
    names = [f"c{i}" for i in range(24)]
    accidents = {(frozenset(rnd.sample(names, 5)), rnd.choice(names)) for _ in range(4_000)}
    fds = [(lhs, a) for lhs, a in accidents if a not in lhs and not (a == "c1" and "c0" in lhs)]
    fds.append((frozenset({"c0"}), "c1"))
    again = rnd.sample(fds, len(fds))
    scores = dict.fromkeys(fds, 0.01) | {fds[-1]: 0.7}
    proposed = normalise("t", names, fds, form, scores)
    assert proposed == normalise("t", names, again, form, scores)
    assert ("c0", "c1") in [p.columns for p in proposed.parts]
    assert len(proposed.parts) == 2
    assert proposed.n_used == 1
    assert proposed.parts[0].more_keys
    some = fds[-500:]  # each may become a table in 3NF
    everything = normalise("t", names, some, form, scores, use_all=True)
    assert everything.n_used == len(some) - everything.n_from_keys


# --- Text and SQL -----------------------------------------------------------------------------------------


def report(proposed: Decomposition, **options: Any) -> str:
    file = io.StringIO()
    print_normal_form(Paper(file, **options), proposed, version=4)
    return file.getvalue()


def test_report() -> None:
    scores = dict.fromkeys(ORDERS, 0.8)
    text = report(normalise("orders", COLUMNS, ORDERS, scores=scores, redundant={ORDERS[8]: 1200}))
    assert text.startswith("orders: 3 tables in BCNF, with respect to the FDs used (version 4)\n")
    for line in (
        "  orders_zip[zip, city]",
        "      key  [order_id]; also [invoice]",
        "      refers  [zip] to orders_zip",
        "      why  what [zip] determines, once for each of its values: "
        "1,200 repeated values less (score 0.80)",
        "set aside: 1 FD (1 of a constant column); --all uses them",
    ):
        assert line in text.splitlines()
    lost = report(normalise("t", "abc", arrows("a b -> c", "c -> b")))
    assert "not guarded by any of the tables:\n    the key [a, b]\n" in lost
    assert report(normalise("t", "ab", arrows("a -> b"))).startswith("t: one table, as it is, in BCNF (")


def test_a_terminal_is_spared_long_lists() -> None:
    names = [f"c{i}" for i in range(40)]
    fds = [(frozenset({n}), "c39") for n in names[:39]]
    proposed = normalise("t", names, fds, scores=dict.fromkeys(fds, 0.01))
    assert len(proposed.set_aside) == 39
    assert "... and 29 more" in report(proposed, terminal=True, width=100)
    assert "more;" not in report(proposed)


def test_script() -> None:
    proposed = normalise("orders", COLUMNS, ORDERS)
    source = ExportTable("orders", SCHEMA, 1_000, not_null=frozenset({"order_id", "zip"}))
    title, _, script = normal_form_sql(proposed, source, "postgres", version=4).partition("\n")
    assert title == (
        "-- holdfast, version 4 of the workspace: orders in BCNF, with respect to the FDs used; "
        "proposed by what holds in the data"
    )
    assert script == (
        """\
-- join with IS NOT DISTINCT FROM: there may be NULL in [city]

-- what [city] determines, once for each of its values
-- [city] is UNIQUE and not the PRIMARY KEY: there may be NULL in [city]
CREATE TABLE "orders_city" (
  "city" TEXT,
  "state" TEXT,
  UNIQUE ("city")
);

-- what [zip] determines, once for each of its values
CREATE TABLE "orders_zip" (
  "zip" BIGINT NOT NULL,
  "city" TEXT,
  PRIMARY KEY ("zip"),
  FOREIGN KEY ("city") REFERENCES "orders_city" ("city")
);

-- what the other tables leave, and what refers to them
CREATE TABLE "orders_main" (
  "order_id" BIGINT NOT NULL,
  "invoice" BIGINT,
  "zip" BIGINT NOT NULL,
  "currency" TEXT,
  PRIMARY KEY ("order_id"),
  UNIQUE ("invoice"),
  FOREIGN KEY ("zip") REFERENCES "orders_zip" ("zip")
);

INSERT INTO "orders_city" ("city", "state")
  SELECT DISTINCT "city", "state" FROM "orders";
INSERT INTO "orders_zip" ("zip", "city")
  SELECT DISTINCT "zip", "city" FROM "orders";
INSERT INTO "orders_main" ("order_id", "invoice", "zip", "currency")
  SELECT DISTINCT "order_id", "invoice", "zip", "currency" FROM "orders";
"""
    )
    alone = normal_form_sql(normalise("orders", COLUMNS, []), source, version=4)
    assert "nothing to split" in alone
    assert "CREATE" not in alone
    with pytest.raises(ValueError, match="unknown SQL dialect 'oracle'"):
        normal_form_sql(proposed, source, "oracle", version=4)  # type: ignore[arg-type]


def test_no_nul_of_a_name_is_in_the_script() -> None:
    names = {n: f"{n}\0" for n in ("street", "city", "zip", "id")}
    fds = [
        (frozenset({"zip\0"}), "city\0"),
        (frozenset({"street\0", "city\0"}), "zip\0"),
        *((frozenset({"id\0"}), c) for c in names.values() if c != "id\0"),
    ]
    proposed = normalise("t\0", list(names.values()), fds)
    assert proposed.lost
    source = ExportTable("t\0", Schema(tuple(Column(n, Type("text")) for n in names.values())), 1_000)
    script = normal_form_sql(proposed, source, "postgres", version=1)
    assert "\0" not in script
    assert r"what [zip\x00] determines" in script
    assert "-- not guarded any more: " in script


def test_keys_too_wide_for_the_database() -> None:
    names = [f"c{i}" for i in range(40)]
    fds = [(frozenset(names[:35]), "c35"), (frozenset({"c36"}), "c37")]
    proposed = normalise("t", names, fds, max_lhs=40)
    schema = Schema(tuple(Column(n, Type("int")) for n in names))
    script = normal_form_sql(
        proposed, ExportTable("t", schema, 9, not_null=frozenset(names)), "postgres", version=1
    )
    assert "a key of PostgreSQL has at most 32 columns" in script
    assert script.count("PRIMARY KEY") == 1
    assert script.count("FOREIGN KEY") == 1


@given(
    rows=tables(values=(0, 1, None)),
    form=st.sampled_from(FORMS),
    use_all=st.booleans(),
    nulls=st.sampled_from(["equal", "distinct"]),
    all_keys=st.booleans(),
)
def test_duckdb_runs_the_script(
    rows: list[Row], form: Form, use_all: bool, nulls: str, all_keys: bool
) -> None:
    """It takes all constraints with the rows in, and its join gives the different rows back."""
    if not rows:
        return
    n = width(rows)
    # Names that a database must be kept from mixing up: they differ in case, or need quotes.
    odd = dict(zip(NAMES, ("a", "A", 'the "c"', "select", "e\0"), strict=True))
    nullable = {odd[NAMES[i]] for row in rows for i, v in enumerate(row) if v is None}
    fds = [(frozenset(odd[x] for x in lhs), odd[a]) for lhs, a in found_fds(rows, nulls)]
    columns = [odd[name] for name in NAMES[:n]]
    proposed = normalise("t", columns, fds, form, nullable=nullable, nulls=nulls, use_all=use_all)  # type: ignore[arg-type]
    schema = Schema(tuple(Column(c, Type("int")) for c in columns))
    source = ExportTable("t", schema, len(rows), not_null=frozenset(set(columns) - nullable))
    if not proposed.splits:
        return
    from holdfast.app.export.names import fit
    from holdfast.app.export.sql import quoted

    fitted = {c: quoted(name) for c, name in fit(columns, ignores_case=True).items()}
    with duckdb.connect() as db:
        db.execute(f"CREATE TABLE t ({', '.join(f'{fitted[c]} BIGINT' for c in columns)})")
        db.executemany(f"INSERT INTO t VALUES ({', '.join('?' * n)})", rows)
        db.execute(normal_form_sql(proposed, source, "duckdb", version=1, all_keys=all_keys))
        seen: dict[str, str] = {}
        clauses = []
        for part in proposed.parts:
            common = [c for c in part.columns if c in seen]
            on = " AND ".join(
                f"{seen[c]}.{fitted[c]} IS NOT DISTINCT FROM {part.name}.{fitted[c]}" for c in common
            )
            clauses.append(f"JOIN {part.name} ON {on or 'true'}" if clauses else f"FROM {part.name}")
            seen |= {c: part.name for c in part.columns if c not in seen}
        selected = ", ".join(f"{seen[c]}.{fitted[c]}" for c in columns)
        joined = db.execute(f"SELECT {selected} {' '.join(clauses)}").fetchall()
    assert sorted(joined, key=repr) == sorted(set(rows), key=repr)
