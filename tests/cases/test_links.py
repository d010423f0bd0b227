"""Databases whose foreign keys are known: do they come out, first, and with the right primary keys?

TPC-H at scale 0.1 is here as facts, as they are on the generated tables. The others are made up of a few
hundred rows; facts, keys and inclusions are counted from the rows, by definition.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import holdfast
from holdfast.core.words.dependency import Ind, Side
from holdfast.core.words.name_similarity import Names
from holdfast.inclusions.links.scored import ColumnFacts, Linkage, rank_links

SEED = 7
Tables = Mapping[str, Mapping[str, Sequence[Any]]]

# column:kind:distinct:range, or :mean length for texts (t); integers i, fractions n, dates d
TPCH = """
customer 15000 c_custkey:i:15000:1..15000 c_name:t:15000:18 c_address:t:15000:25 c_nationkey:i:25:0..24
    c_phone:t:15000:15 c_acctbal:n:14887:-999.95..9999.72 c_mktsegment:t:5:9 c_comment:t:15000:73
lineitem 600572 l_orderkey:i:150000:1..600000 l_partkey:i:20000:1..20000 l_suppkey:i:1000:1..1000
    l_linenumber:i:7:1..7 l_quantity:i:50:1..50 l_extendedprice:n:130792:901..95949.5 l_discount:n:11:0..0.1
    l_tax:n:9:0..0.08 l_returnflag:t:3:1 l_linestatus:t:2:1 l_shipdate:d:2525:8037..10561
    l_commitdate:d:2466:8065..10530 l_receiptdate:d:2547:8038..10587 l_shipinstruct:t:4:12 l_shipmode:t:7:4
    l_comment:t:538684:28
nation 25 n_nationkey:i:25:0..24 n_name:t:25:7 n_regionkey:i:5:0..4 n_comment:t:25:74
orders 150000 o_orderkey:i:150000:1..600000 o_custkey:i:10000:1..14999 o_orderstatus:t:3:1
    o_totalprice:n:149565:833.4..479129 o_orderdate:d:2406:8035..10440 o_orderpriority:t:5:8
    o_clerk:t:1000:15 o_shippriority:i:1:0..0 o_comment:t:149770:49
part 20000 p_partkey:i:20000:1..20000 p_name:t:20000:33 p_mfgr:t:5:14 p_brand:t:25:8 p_type:t:150:21
    p_size:i:50:1..50 p_container:t:40:8 p_retailprice:n:2899:901..1918.99 p_comment:t:17482:14
partsupp 80000 ps_partkey:i:20000:1..20000 ps_suppkey:i:1000:1..1000 ps_availqty:i:9996:1..9999
    ps_supplycost:n:54983:1.01..999.99 ps_comment:t:79991:123
region 5 r_regionkey:i:5:0..4 r_name:t:5:7 r_comment:t:5:66
supplier 1000 s_suppkey:i:1000:1..1000 s_name:t:1000:18 s_address:t:1000:25 s_nationkey:i:25:0..24
    s_phone:t:1000:15 s_acctbal:n:999:-966.2..9993.46 s_comment:t:1000:62
"""
# All unary inclusions.
TPCH_INDS = """
c_custkey < l_partkey p_partkey ps_partkey
c_nationkey < n_nationkey s_nationkey
l_orderkey < o_orderkey
l_partkey < p_partkey ps_partkey
l_suppkey < c_custkey l_partkey p_partkey ps_partkey ps_suppkey ps_availqty s_suppkey
l_linenumber < c_custkey c_nationkey l_orderkey l_partkey l_suppkey l_quantity n_nationkey o_orderkey
    p_partkey p_size ps_partkey ps_suppkey ps_availqty s_suppkey s_nationkey
l_quantity < c_custkey l_partkey l_suppkey p_partkey p_size ps_partkey ps_suppkey ps_availqty s_suppkey
l_tax < l_discount
l_linestatus < o_orderstatus
l_commitdate < l_shipdate l_receiptdate
n_nationkey < c_nationkey s_nationkey
n_regionkey < c_nationkey n_nationkey r_regionkey s_nationkey
o_orderkey < l_orderkey
o_custkey < c_custkey l_partkey p_partkey ps_partkey
o_shippriority < c_nationkey l_discount l_tax n_nationkey n_regionkey r_regionkey s_nationkey
p_partkey < l_partkey ps_partkey
p_size < c_custkey l_partkey l_suppkey l_quantity p_partkey ps_partkey ps_suppkey ps_availqty s_suppkey
ps_partkey < l_partkey p_partkey
ps_suppkey < c_custkey l_partkey l_suppkey p_partkey ps_partkey ps_availqty s_suppkey
ps_availqty < c_custkey l_partkey p_partkey ps_partkey
r_regionkey < c_nationkey n_nationkey n_regionkey s_nationkey
s_suppkey < c_custkey l_partkey l_suppkey p_partkey ps_partkey ps_suppkey ps_availqty
s_nationkey < c_nationkey n_nationkey
"""
# Minimal keys; of the accidental ones of several columns only some.
TPCH_KEYS = """
customer c_custkey c_name c_address c_phone c_comment
lineitem l_orderkey,l_linenumber l_orderkey,l_partkey,l_commitdate l_orderkey,l_extendedprice,l_tax
nation n_nationkey n_name n_comment
orders o_orderkey o_custkey,o_totalprice o_totalprice,o_orderdate o_custkey,o_orderdate,o_clerk
part p_partkey p_name p_brand,p_type,p_comment
partsupp ps_partkey,ps_suppkey ps_partkey,ps_comment ps_supplycost,ps_comment
region r_regionkey r_name r_comment
supplier s_suppkey s_name s_address s_phone s_comment s_nationkey,s_acctbal
"""
TPCH_FOREIGN_KEYS = {
    "nation[n_regionkey] -> region[r_regionkey]",
    "supplier[s_nationkey] -> nation[n_nationkey]",
    "customer[c_nationkey] -> nation[n_nationkey]",
    "partsupp[ps_partkey] -> part[p_partkey]",
    "partsupp[ps_suppkey] -> supplier[s_suppkey]",
    "orders[o_custkey] -> customer[c_custkey]",
    "lineitem[l_orderkey] -> orders[o_orderkey]",
    "lineitem[l_partkey] -> part[p_partkey]",
    "lineitem[l_suppkey] -> supplier[s_suppkey]",
    "lineitem[l_partkey, l_suppkey] -> partsupp[ps_partkey, ps_suppkey]",
}
TPCH_PRIMARY_KEYS = {
    line.split()[0]: tuple(line.split()[1].split(",")) for line in TPCH_KEYS.split("\n") if line
}


def logical_lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.replace("\n    ", " ").strip().split("\n")]


def tpch() -> tuple[list[ColumnFacts], dict[str, list[tuple[str, ...]]], list[Ind]]:
    facts = []
    for table, n_rows, *columns in logical_lines(TPCH):
        for position, (name, kind, distinct, rest) in enumerate(c.split(":") for c in columns):
            domain = {"t": "text", "d": "date"}.get(kind, "number")
            low, high = (None, None) if kind == "t" else map(float, rest.split(".."))
            length = float(rest) if kind == "t" else None
            counts = (int(n_rows), int(n_rows), int(distinct))
            facts.append(ColumnFacts(table, name, position, domain, *counts, low, high, kind == "i", length))
    of = {f.column: f for f in facts}
    inds = [
        Ind(Side(of[a].table, (a,)), Side(of[b].table, (b,)), coverage=of[a].n_distinct / of[b].n_distinct)
        for a, _, *parents in logical_lines(TPCH_INDS)
        for b in parents
    ]
    composite = Side("lineitem", ("l_partkey", "l_suppkey")), Side("partsupp", ("ps_partkey", "ps_suppkey"))
    inds.append(Ind(*composite, coverage=0.9992875))
    keys = {table: [tuple(k.split(",")) for k in found] for table, *found in logical_lines(TPCH_KEYS)}
    return facts, keys, inds


def renamed(
    facts: Sequence[ColumnFacts],
    keys: Mapping[str, Sequence[tuple[str, ...]]],
    inds: Sequence[Ind],
    seed: int,
) -> tuple[list[ColumnFacts], dict[str, list[tuple[str, ...]]], list[Ind], dict[str, str]]:
    """All tables and columns under names of random letters, and a dictionary back."""
    random = Random(seed)

    def letters() -> str:
        return "".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=6))

    to = {name: letters() for f in facts for name in (f.table, f.column)}

    def side(s: Side) -> Side:
        return Side(to[s.table], tuple(to[c] for c in s.columns))

    return (
        [replace(f, table=to[f.table], column=to[f.column]) for f in facts],
        {to[t]: [tuple(to[c] for c in k) for k in ks] for t, ks in keys.items()},
        [replace(i, dependent=side(i.dependent), referenced=side(i.referenced)) for i in inds],
        {new: old for old, new in to.items()},
    )


def chosen(linkage: Linkage) -> set[str]:
    return {str(link) for link in linkage.links if link.chosen}


def first(linkage: Linkage, n: int) -> set[str]:
    return {str(link) for link in linkage.links[:n]}


def reason(linkage: Linkage, link: str, name: str) -> str:
    """The text of a reason, with its points."""
    (found,) = [link_ for link_ in linkage.links if str(link_) == link]
    return next((str(r) for r in found.reasons if r.name == name), "")


class TestTpch:
    def test_foreign_and_primary_keys_come_out(self) -> None:
        linkage = rank_links(*tpch())
        assert first(linkage, 10) == TPCH_FOREIGN_KEYS
        assert chosen(linkage) == TPCH_FOREIGN_KEYS
        assert linkage.primary_keys == TPCH_PRIMARY_KEYS

    @pytest.mark.parametrize("seed", range(5))
    def test_even_if_names_are_useless(self, seed: int) -> None:
        facts, keys, inds, back = renamed(*tpch(), seed)
        linkage = rank_links(facts, keys, inds)
        found = [
            f"{back[side.table]}[{', '.join(back[c] for c in side.columns)}]"
            for link in linkage.links[:10]
            for side in (link.dependent, link.referenced)
        ]
        assert {" -> ".join(pair) for pair in zip(found[::2], found[1::2], strict=True)} == TPCH_FOREIGN_KEYS

    def test_without_keys_single_columns_still_link(self) -> None:
        facts, _, inds = tpch()
        linkage = rank_links(facts, {}, inds)
        assert chosen(linkage) == {k for k in TPCH_FOREIGN_KEYS if "partsupp[ps_partkey, " not in k}
        assert "lineitem" not in linkage.primary_keys  # its keys have two columns

    def test_append_only_tables_have_no_count_of_values(self) -> None:
        facts, keys, inds = tpch()
        facts = [replace(f, n_values=None) for f in facts]
        assert chosen(rank_links(facts, keys, inds)) == TPCH_FOREIGN_KEYS

    def test_a_long_text_that_happens_to_be_unique_is_no_primary_key(self) -> None:
        """As partsupp's comment is at scale 0.01."""
        facts, keys, inds = tpch()
        keys["partsupp"] = [("ps_comment",), ("ps_partkey", "ps_suppkey")]
        linkage = rank_links(facts, keys, inds)
        assert linkage.primary_keys == TPCH_PRIMARY_KEYS
        assert chosen(linkage) == TPCH_FOREIGN_KEYS

    def test_reasons_are_worded(self) -> None:
        linkage = rank_links(*tpch())
        link = "orders[o_custkey] -> customer[c_custkey]"
        key = "customer.c_custkey is unique and looks like the primary key of customer: +1.0"
        assert reason(linkage, link, "key") == key
        assert "66.7 % of customer.c_custkey's values occur in orders.o_custkey" in reason(
            linkage, link, "coverage"
        )
        assert "orders.o_custkey is named like customer.c_custkey" in reason(linkage, link, "name")
        counter = "lineitem[l_linenumber] -> supplier[s_suppkey]"
        assert "small integers 1..7 occur by chance" in reason(linkage, counter, "sequence")
        assert "leaves much of the range unused" in reason(linkage, counter, "range")
        rival = reason(linkage, "orders[o_custkey] -> part[p_partkey]", "rival")
        assert rival.startswith("orders.o_custkey refers to customer.c_custkey rather: -")
        proof = reason(linkage, "lineitem[l_orderkey] -> orders[o_orderkey]", "chance")
        assert proof.startswith("orders.o_orderkey holds 25.0 % of the values possible")
        assert "itself" in reason(linkage, "supplier[s_suppkey] -> part[p_partkey]", "unique_child")

    def test_it_is_json(self) -> None:
        fields = json.loads(json.dumps(rank_links(*tpch()).to_dict()))
        assert fields["primary_keys"]["lineitem"] == ["l_orderkey", "l_linenumber"]
        best = fields["links"][0]
        assert best["chosen"] is True
        assert best["dependent"] == {"table": "lineitem", "columns": ["l_partkey", "l_suppkey"]}
        assert {"name", "weight", "value", "text"} == set(best["reasons"][0])


# ---- made-up databases ---------------------------------------------------------------------------


def facts_of(tables: Tables) -> list[ColumnFacts]:
    facts = []
    for table, columns in tables.items():
        for position, (name, values) in enumerate(columns.items()):
            there = {v for v in values if v is not None}
            texts = any(isinstance(v, str) for v in there)
            facts.append(
                ColumnFacts(
                    table,
                    name,
                    position,
                    "text" if texts else "number",
                    n_rows=len(values),
                    n_values=sum(v is not None for v in values),
                    n_distinct=len(there),
                    low=None if texts else float(min(there)),
                    high=None if texts else float(max(there)),
                    integers=not texts and all(v == int(v) for v in there),
                    mean_length=sum(map(len, there)) / len(there) if texts else None,
                )
            )
    return facts


def keys_of(tables: Tables, max_columns: int = 2) -> dict[str, list[tuple[str, ...]]]:
    found: dict[str, list[tuple[str, ...]]] = {}
    for table, columns in tables.items():
        found[table] = []
        for n in range(1, max_columns + 1):
            for names in combinations(columns, n):
                rows = list(zip(*(columns[c] for c in names), strict=True))
                if len(set(rows)) == len(rows) and not any(set(k) <= set(names) for k in found[table]):
                    found[table].append(names)
    return found


def inds_of(
    tables: Tables, keys: Mapping[str, Sequence[tuple[str, ...]]], max_error: float = 0.0
) -> list[Ind]:
    """Unary inclusions, and those in the keys of two columns."""

    def values(table: str, *names: str) -> set[tuple[Any, ...]]:
        rows = zip(*(tables[table][c] for c in names), strict=True)
        return {row for row in rows if None not in row}

    found = []
    sides = [Side(t, (c,)) for t, columns in tables.items() for c in columns]
    pairs = [Side(t, p) for t, columns in tables.items() for p in permutations(columns, 2)]
    composite = [Side(t, k) for t, ks in keys.items() for k in ks if len(k) == 2]
    distinct = {s: values(s.table, *s.columns) for s in {*sides, *composite}}
    holds = set()
    for a, b in permutations(sides, 2):
        missing = len(distinct[a] - distinct[b])
        if distinct[a] and missing <= max_error * len(distinct[a]):
            error, coverage = missing / len(distinct[a]), len(distinct[a]) / len(distinct[b])
            found.append(Ind(a, b, error, missing, missing, coverage))
            holds.add((a, b))
    for b in composite:
        for a in pairs:
            parts = zip(a.columns, b.columns, strict=True)
            if all((Side(a.table, (x,)), Side(b.table, (y,))) in holds for x, y in parts):
                left = values(a.table, *a.columns)
                if left and left <= distinct[b]:
                    found.append(Ind(a, b, coverage=len(left) / len(distinct[b])))
    return found


def linkage_of(tables: Tables, max_error: float = 0.0) -> Linkage:
    keys = keys_of(tables)
    return rank_links(facts_of(tables), keys, inds_of(tables, keys, max_error))


random = Random()


@pytest.fixture(autouse=True)
def _seed() -> None:
    random.seed(SEED)


def serial(n: int, start: int = 1) -> list[int]:
    return list(range(start, start + n))


def some(low: int, high: int, n: int) -> list[int]:
    return [random.randint(low, high) for _ in range(n)]


def money(high: int, n: int) -> list[float]:
    return [random.randint(1, 100 * high) / 100 for _ in range(n)]


def texts(prefix: str, n: int) -> list[str]:
    """Distinct names, as long as names are."""
    return [f"{prefix} {random.choice(['Ann', 'Berta', 'Cleo', 'Doro'])} {i:03}" for i in range(n)]


def codes(n: int, length: int) -> list[str]:
    found: set[str] = set()
    while len(found) < n:
        found.add("".join(random.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=length)))
    return sorted(found)


def refs(values: Sequence[Any], n: int, share: float = 1.0, nulls: float = 0.0) -> list[Any]:
    """References to a share of some values; all of that share are hit if there are rows enough."""
    pool = random.sample(list(values), max(1, round(share * len(values))))
    drawn = [*pool, *random.choices(pool, k=n)][:n] if n >= len(pool) else random.sample(pool, n)
    random.shuffle(drawn)
    return [None if random.random() < nulls else v for v in drawn]


def pairs_of(left: Sequence[Any], right: Sequence[Any], n: int) -> tuple[list[Any], list[Any]]:
    drawn = sorted(random.sample([(a, b) for a in left for b in right], n))
    return [a for a, _ in drawn], [b for _, b in drawn]


def test_northwind_like() -> None:
    """Camel case, text codes as keys, a self reference, and a name (ShipVia) that does not help."""
    customers, orders, products = codes(90, 5), serial(400, 10248), serial(77)
    lines = pairs_of(orders, products, 900)
    linkage = linkage_of(
        {
            "Categories": {"CategoryID": serial(8), "CategoryName": texts("c", 8)},
            "Suppliers": {"SupplierID": serial(29), "CompanyName": texts("s", 29), "Fax": codes(29, 9)},
            "Customers": {"CustomerID": customers, "CompanyName": texts("k", 90)},
            "Shippers": {"ShipperID": serial(3), "CompanyName": texts("t", 3)},
            "Employees": {
                "EmployeeID": serial(9),
                "LastName": texts("e", 9),
                "ReportsTo": [2, None, 2, 2, 2, 5, 5, 2, 5],
            },
            "Products": {
                "ProductID": products,
                "ProductName": texts("p", 77),
                "SupplierID": refs(serial(29), 77),
                "CategoryID": refs(serial(8), 77),
                "UnitPrice": money(200, 77),
                "UnitsInStock": some(0, 60, 77),
                "Discontinued": some(0, 1, 77),
            },
            "Orders": {
                "OrderID": orders,
                "CustomerID": refs(customers, 400, 0.97),
                "EmployeeID": refs(serial(9), 400),
                "ShipVia": refs(serial(3), 400),
                "Freight": money(900, 400),
            },
            "OrderDetails": {
                "OrderID": lines[0],
                "ProductID": lines[1],
                "UnitPrice": money(200, 900),
                "Quantity": some(1, 60, 900),
            },
        }
    )
    clear = {
        "Products[SupplierID] -> Suppliers[SupplierID]",
        "Products[CategoryID] -> Categories[CategoryID]",
        "Orders[CustomerID] -> Customers[CustomerID]",
        "Orders[EmployeeID] -> Employees[EmployeeID]",
        "OrderDetails[OrderID] -> Orders[OrderID]",
        "OrderDetails[ProductID] -> Products[ProductID]",
        "Employees[ReportsTo] -> Employees[EmployeeID]",
    }
    assert chosen(linkage) == clear
    # Three values, and a name that says nothing: not proposed, but next in the list.
    assert first(linkage, 8) == clear | {"Orders[ShipVia] -> Shippers[ShipperID]"}
    assert linkage.primary_keys["OrderDetails"] == ("OrderID", "ProductID")
    assert linkage.primary_keys["Customers"] == ("CustomerID",)


def test_sakila_like() -> None:
    """Keys named after their tables; a constant reference; stores and staff that refer to each other."""
    films, actors, addresses = serial(200), serial(60), serial(120)
    cast = pairs_of(films, actors, 700)
    linkage = linkage_of(
        {
            "language": {"language_id": serial(6), "name": texts("l", 6)},
            "film": {
                "film_id": films,
                "title": texts("f", 200),
                "language_id": [1] * 200,
                "rental_duration": some(3, 7, 200),
                "length": some(46, 185, 200),
            },
            "actor": {"actor_id": actors, "first_name": texts("a", 60)},
            "film_actor": {"film_id": cast[0], "actor_id": cast[1]},
            "address": {"address_id": addresses, "address": texts("r", 120)},
            "staff": {"staff_id": [1, 2], "address_id": [3, 4], "store_id": [1, 2], "active": [1, 1]},
            "store": {"store_id": [1, 2], "manager_staff_id": [1, 2], "address_id": [1, 2]},
            "customer": {
                "customer_id": serial(110),
                "store_id": refs([1, 2], 110),
                "email": texts("c", 110),
                "address_id": random.sample(addresses[4:], 110),
            },
            "rental": {
                "rental_id": serial(900),
                "film_id": refs(films, 900, 0.9),
                "customer_id": refs(serial(110), 900),
                "staff_id": refs([1, 2], 900),
            },
        }
    )
    assert chosen(linkage) == {
        "film[language_id] -> language[language_id]",
        "film_actor[film_id] -> film[film_id]",
        "film_actor[actor_id] -> actor[actor_id]",
        "staff[address_id] -> address[address_id]",
        "staff[store_id] -> store[store_id]",
        "store[manager_staff_id] -> staff[staff_id]",
        "store[address_id] -> address[address_id]",
        "customer[store_id] -> store[store_id]",
        "customer[address_id] -> address[address_id]",
        "rental[film_id] -> film[film_id]",
        "rental[customer_id] -> customer[customer_id]",
        "rental[staff_id] -> staff[staff_id]",
    }
    assert all(linkage.primary_keys[t] == (f"{t}_id",) for t in ("film", "staff", "store", "customer"))


def test_school() -> None:
    """Text codes, abbreviations, a reference that is named after nothing, and two to one parent."""
    departments, courses = codes(12, 3), codes(60, 6)
    teachers, students = serial(40, 100), serial(300)
    enrolled = pairs_of(students, courses, 900)
    linkage = linkage_of(
        {
            "departments": {"code": departments, "title": texts("d", 12), "budget": money(9000, 12)},
            "teachers": {"teacher_no": teachers, "name": texts("t", 40), "dept": refs(departments, 40)},
            "courses": {
                "course_code": courses,
                "title": texts("c", 60),
                "department": refs(departments, 60),
                "credits": some(1, 6, 60),
                "taught_by": refs(teachers, 60, 0.8),
            },
            "students": {"id": students, "name": texts("s", 300), "year": some(1, 4, 300)},
            "enrollments": {"student_id": enrolled[0], "course_code": enrolled[1], "grade": some(1, 6, 900)},
            "requires": {"course": refs(courses, 40, 0.4), "prerequisite": refs(courses, 40, 0.3)},
        }
    )
    assert chosen(linkage) == {
        "teachers[dept] -> departments[code]",
        "courses[department] -> departments[code]",
        "courses[taught_by] -> teachers[teacher_no]",
        "enrollments[student_id] -> students[id]",
        "enrollments[course_code] -> courses[course_code]",
        "requires[course] -> courses[course_code]",
        "requires[prerequisite] -> courses[course_code]",
    }


def crm() -> dict[str, dict[str, list[Any]]]:
    accounts, contacts, users = serial(150), serial(300), serial(40)
    return {
        "countries": {"id": serial(30), "name": texts("c", 30), "iso": codes(30, 2)},
        "users": {"id": users, "email": texts("u", 40), "manager_id": refs(users, 40, 0.2, 0.1)},
        "accounts": {
            "id": accounts,
            "name": texts("a", 150),
            "owner_id": refs(users, 150, 0.9),
            "country_id": refs(serial(30), 150),
            "employees": some(1, 400, 150),
            "parent_account_id": refs(accounts, 150, 0.2, 0.6),
        },
        "account_profiles": {"account_id": random.sample(accounts, 150), "tier": some(1, 3, 150)},
        "contacts": {"id": contacts, "account_id": refs(accounts, 300, 0.95), "email": texts("k", 300)},
        "stages": {"id": serial(7), "name": texts("s", 7), "position": serial(7)},
        "opportunities": {
            "id": serial(400),
            "account_id": refs(accounts, 400, 0.9),
            "contact_id": refs(contacts, 400, 0.6),
            "stage_id": refs(serial(7), 400),
            "probability": some(0, 100, 400),
            "priority": some(1, 7, 400),
        },
    }


CRM_LINKS = {
    "users[manager_id] -> users[id]",
    "accounts[owner_id] -> users[id]",
    "accounts[country_id] -> countries[id]",
    "accounts[parent_account_id] -> accounts[id]",
    "account_profiles[account_id] -> accounts[id]",
    "contacts[account_id] -> accounts[id]",
    "opportunities[account_id] -> accounts[id]",
    "opportunities[contact_id] -> contacts[id]",
    "opportunities[stage_id] -> stages[id]",
}


def test_crm_with_ids_from_one_in_every_table() -> None:
    """Nearly everything is included in nearly everything; names decide, also between equal columns."""
    linkage = linkage_of(crm())
    assert len(linkage.links) > 50
    assert chosen(linkage) == CRM_LINKS
    # Profiles and accounts have the same keys: one refers to the other, not both.
    back = reason(linkage, "accounts[id] -> account_profiles[account_id]", "circle")
    assert back == "" or "itself refers" in back
    assert linkage.primary_keys["stages"] == ("id",)


def test_partial_inclusions_link_too_but_less() -> None:
    """Some contacts of deleted accounts, an opportunity of none."""
    exact, tables = linkage_of(crm()), crm()
    tables["contacts"]["account_id"][:2] = [9001, 9002]
    linkage = linkage_of(tables, max_error=0.05)
    assert chosen(linkage) == CRM_LINKS
    name = "contacts[account_id] -> accounts[id]"
    (link,) = [x for x in linkage.links if str(x) == name]
    (whole,) = [x for x in exact.links if str(x) == name]
    assert link.missing_values == 2
    assert 0 < link.error < 0.05
    assert link.score < whole.score
    assert "2 values of contacts.account_id (1.4 %) are missing in accounts.id" in reason(
        linkage, name, "error"
    )


def column(table: str, name: str, n_rows: int, n_distinct: int, low: float, high: float) -> ColumnFacts:
    return ColumnFacts(table, name, 0, "number", n_rows, n_rows, n_distinct, low, high, True, None)


def only_link(child: ColumnFacts, parent: ColumnFacts, **measures: Any) -> tuple[Linkage, str]:
    ind = Ind(Side(child.table, (child.column,)), Side(parent.table, (parent.column,)), **measures)
    return rank_links([child, parent], {}, [ind]), f"{ind.dependent} -> {ind.referenced}"


def test_a_range_that_goes_beyond_the_parents_does_not_agree() -> None:
    parent = column("films", "id", 3503, 3503, 1, 3503)
    child = column("rentals", "film_id", 9000, 3000, 1, 999_999)
    linkage, link = only_link(child, parent, error=0.001, missing_values=3)
    told = reason(linkage, link, "range")
    assert told == "the range 1..999999 of rentals.film_id goes beyond; films.id has 1..3503: +0.0"
    assert "3 values of rentals.film_id (0.1 %) are missing in films.id" in reason(linkage, link, "error")
    # What is known of the part inside still counts: nothing below 3000 is referred to.
    corner = column("rentals", "film_id", 9000, 400, 3000, 999_999)
    linkage, link = only_link(corner, parent, error=0.01, missing_values=1)
    assert "leaves much of the range unused" in reason(linkage, link, "range")
    assert "1 value of rentals.film_id (1.0 %) is missing in films.id" in reason(linkage, link, "error")
    # Within the parent's range it agrees, whatever is missing there.
    linkage, link = only_link(replace(child, high=3500.0), parent, error=0.001, missing_values=3)
    assert "1..3500 of rentals.film_id agrees" in reason(linkage, link, "range")


def test_a_sequence_that_is_longer_is_not_said_to_be_inside() -> None:
    parent, child = column("a", "id", 400, 400, 1, 400), column("b", "n", 900, 900, 1, 900)
    linkage, link = only_link(child, parent, error=0.55, missing_values=500)
    assert "1..900 of b.n and 1..400 of a.id overlap by chance" in reason(linkage, link, "sequence")


def test_what_is_half_missing_may_be_there_by_accident() -> None:
    """Every second integer is a key: of other integers half are found there by chance, and not all."""
    parent, child = column("a", "id", 500, 500, 7, 1006), column("b", "n", 900, 300, 9, 1000)
    linkage, link = only_link(child, parent)
    assert "b.n is not in it by accident" in reason(linkage, link, "chance")
    linkage, link = only_link(child, parent, error=0.5, missing_values=150)
    assert reason(linkage, link, "chance") == ""
    linkage, link = only_link(child, parent, error=0.05, missing_values=15)
    assert "95.0 % of b.n are not in it by accident" in reason(linkage, link, "chance")


def test_columns_that_are_nearly_the_same_are_not_called_the_same() -> None:
    a, b = column("a", "id", 100, 100, 1, 100), column("b", "id", 100, 100, 1, 101)
    c = replace(column("b", "x", 100, 7, 1, 7), position=1)
    inds = [
        Ind(Side("b", ("id",)), Side("a", ("id",)), error=0.01, missing_values=1),
        Ind(Side("a", ("id",)), Side("b", ("id",))),
    ]
    for link in ("b[id] -> a[id]", "a[id] -> b[id]"):
        assert "have nearly the same values" in reason(rank_links([a, b, c], {}, inds), link, "mutual")
        whole = [replace(ind, error=0.0, missing_values=0) for ind in inds]
        assert "have the same values" in reason(rank_links([a, b, c], {}, whole), link, "mutual")


def test_ranges_are_those_of_live_rows_in_one_unit(tmp_path: Path) -> None:
    days = [dt.date(2024, 1, 1) + dt.timedelta(n) for n in range(40)]
    stamps = [dt.datetime(2024, 1, 1) + dt.timedelta(n) for n in range(40)]
    parents = pa.table({"day": days, "at": pa.array(stamps, pa.timestamp("s")), "nr": range(1, 41)})
    twice = [*range(40), *range(40)]
    children = pa.table(
        {
            "day": [days[n] for n in twice],
            "at": pa.array([stamps[n] for n in twice], pa.timestamp("ns")),
            "nr": [n + 1 for n in twice],
        }
    )
    odd = pa.table({"day": [days[0]], "at": pa.array([stamps[0]], pa.timestamp("ns")), "nr": [999_999]})
    ws = holdfast.open(tmp_path / "w", engine="inline")
    ws.track_all({"p": parents, "c": pa.concat_tables([children, odd])}, kinds=("ucc", "ind"))
    ws.apply("c", deletes=odd)
    linkage = ws.inds.links()
    assert "the range 1..40 of c.nr agrees" in reason(linkage, "c[nr] -> p[nr]", "range")
    day = reason(linkage, "c[day] -> p[day]", "range")
    assert "the range 2024-01-01..2024-02-09 of c.day agrees" in day
    assert "p.day has 2024-01-01..2024-02-09" in day
    assert "the range (40 timestamps) of c.at agrees" in reason(linkage, "c[at] -> p[at]", "range")


def test_names_that_say_nothing() -> None:
    """Columns are c1, c2, ... everywhere: coverage and ranges must do."""
    big, small, codes_ = serial(300), serial(60), codes(40, 4)
    linkage = linkage_of(
        {
            "t1": {"c1": big, "c2": texts("x", 300), "c3": some(1, 20, 300)},
            "t2": {"c1": small, "c2": texts("y", 60), "c3": money(900, 60)},
            "t3": {"c1": codes_, "c2": money(900, 40)},
            "t4": {
                "c1": serial(800, 5000),
                "c2": refs(big, 800, 0.9),
                "c3": refs(small, 800),
                "c4": refs(codes_, 800, 0.9),
                "c5": some(1, 9, 800),
                "c6": some(1, 150, 800),
                "c7": money(70, 800),
            },
        }
    )
    assert chosen(linkage) == {"t4[c2] -> t1[c1]", "t4[c3] -> t2[c1]", "t4[c4] -> t3[c1]"}
    assert reason(linkage, "t4[c2] -> t1[c1]", "name") == "the name t4.c2 says nothing: +0.0"
    assert linkage.primary_keys == dict.fromkeys(("t1", "t2", "t3", "t4"), ("c1",))


def test_composite_keys_of_orders_and_lines() -> None:
    """A return refers to a line by two columns, by one of them to its order; a line number to nothing."""
    orders = serial(150, 50001)
    lines = [(o, i) for o in orders for i in range(1, random.randint(2, 6))]
    returned = sorted(random.sample(lines, 120))
    linkage = linkage_of(
        {
            "warehouse": {"warehouse_id": serial(5), "city": texts("w", 5)},
            "order_header": {"order_no": orders, "customer": texts("c", 150), "total": money(900, 150)},
            "order_line": {
                "order_no": [o for o, _ in lines],
                "line_no": [i for _, i in lines],
                "warehouse_id": refs(serial(5), len(lines)),
                "price": money(900, len(lines)),
            },
            "return": {
                "return_id": serial(120),
                "order_no": [o for o, _ in returned],
                "line_no": [i for _, i in returned],
            },
        }
    )
    assert chosen(linkage) == {
        "order_line[order_no] -> order_header[order_no]",
        "order_line[warehouse_id] -> warehouse[warehouse_id]",
        "return[order_no] -> order_header[order_no]",
        "return[order_no, line_no] -> order_line[order_no, line_no]",
    }
    assert linkage.primary_keys["order_line"] == ("order_no", "line_no")


def test_columns_beyond_a_key_are_implied() -> None:
    """orders (customer_id, customer_name) is in customers (id, name), but customer_id is enough."""
    ids, names = serial(100), texts("c", 100)
    names[1] = names[0]  # so that the name is no key
    who = refs(range(100), 500)
    tables = {
        "customers": {"id": ids, "name": names},
        "orders": {
            "id": serial(500),
            "customer_id": [ids[i] for i in who],
            "customer_name": [names[i] for i in who],
        },
    }
    keys = keys_of(tables)
    both = Ind(Side("orders", ("customer_id", "customer_name")), Side("customers", ("id", "name")))
    linkage = rank_links(facts_of(tables), keys, [*inds_of(tables, keys), both])
    assert chosen(linkage) == {"orders[customer_id] -> customers[id]"}
    assert "fewer columns are enough" in reason(
        linkage, "orders[customer_id, customer_name] -> customers[id, name]", "implied"
    )


def test_a_value_that_is_copied_with_a_reference_is_no_reference() -> None:
    """orders.unit_price repeats the price of the product; that prices happen to be unique means nothing."""
    products, prices = texts("product", 40), [round(3.5 + 1.3 * i, 2) for i in range(40)]
    what = refs(range(40), 500)
    tables = {
        "products": {"product": products, "price": prices},
        "orders": {
            "id": serial(500),
            "product": [products[i] for i in what],
            "unit_price": [prices[i] for i in what],
        },
    }
    keys = keys_of(tables)
    both = Ind(Side("orders", ("product", "unit_price")), Side("products", ("product", "price")))
    unary = inds_of(tables, keys)
    price = "orders[unit_price] -> products[price]"
    assert price in chosen(rank_links(facts_of(tables), keys, unary))  # nothing shows that it is a copy
    linkage = rank_links(facts_of(tables), keys, [*unary, both])
    assert chosen(linkage) == {"orders[product] -> products[product]"}
    assert "is a copy" in reason(linkage, price, "copied")


def test_a_table_that_extends_another_refers_to_it() -> None:
    people = serial(80)
    linkage = linkage_of(
        {
            "person": {"id": people, "name": texts("p", 80), "born": some(1950, 2000, 80)},
            "person_details": {"id": random.sample(people, 60), "bio": texts("b", 60)},
            "vehicle": {"id": serial(70), "plate": codes(70, 6)},
        }
    )
    assert chosen(linkage) == {"person_details[id] -> person[id]"}


def test_nothing_to_link() -> None:
    assert rank_links([], {}, []) == Linkage((), {})
    one = {"t": {"a": [1], "b": [1]}}  # at most one row: the empty set is the minimal key
    linkage = rank_links(facts_of(one), {"t": [()]}, inds_of(one, {}))
    assert linkage.primary_keys == {"t": ("a",)}
    assert chosen(linkage) == set()


@pytest.mark.parametrize(
    ("child", "parent", "at_least"),
    [
        ("customer.c_nationkey", "nation.n_nationkey", 1.0),
        ("orders.customer_id", "customers.id", 1.0),
        ("film.language_id", "language.language_id", 1.0),
        ("employee.manager_id", "employee.id", 0.8),
        ("emp.dept", "departments.code", 0.6),
        ("orders.o_custkey", "customer.c_custkey", 1.0),
        ("orders.cust_id", "customers.id", 0.8),
        ("games.home_team_id", "teams.id", 0.85),
        ("categories.parent_category_id", "categories.id", 0.85),
        ("OrderDetails.ProductID", "Products.ProductID", 1.0),
        ("fact_sales.order_date_key", "dim_date.date_key", 0.85),
        ("cast.role_id", "role_type.id", 0.8),
        ("staff.dept_name", "departments.name", 0.6),
        ("posts.author_id", "users.id", 0.5),
        ("t.organisation_id", "organizations.id", 0.8),
        ("x.fk_address", "addresses.id", 0.9),
    ],
)
def test_names_that_refer(child: str, parent: str, at_least: float) -> None:
    assert match(child, parent) >= at_least


@pytest.mark.parametrize(
    ("child", "parent"),
    [
        ("orders.id", "customers.id"),
        ("orders.customer_id", "products.id"),
        ("orders.customer_type_id", "customers.id"),
        ("suppliers.name", "customers.name"),
        ("suppliers.supplier_name", "customers.customer_name"),
        ("lineitem.l_linenumber", "nation.n_nationkey"),
        ("t1.c1", "t2.c1"),
        ("store.store_id", "store.manager_staff_id"),
        ("orders.quantity", "products.id"),
    ],
)
def test_names_that_do_not(child: str, parent: str) -> None:
    assert match(child, parent) < 0.4


def match(child: str, parent: str) -> float:
    """A table named alone has other columns, too: prefixes show only in company."""
    columns: dict[str, list[str]] = {}
    for name in (child, parent):
        table, column = name.split(".")
        prefix = column.split("_")[0] + "_" if column[1:2] == "_" else ""
        columns.setdefault(table, [f"{prefix}remark"]).append(column)
    return Names(columns).match(*child.split("."), *parent.split(".")).value
