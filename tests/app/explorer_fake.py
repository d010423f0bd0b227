"""A server with a made-up lake, for tests of the explorer's page alone: with the same addresses and headers.

The components: 0 is huge and comes as clusters, 1 has 10,000 tables and 30,000 edges, 2 is about cities and
countries, 3 has names, headers and cells that try to run as script, the edges of 9 have a coverage, and the
others are small.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

import holdfast
from app.serving import answering
from holdfast.kind import entries, kinds

STATIC = Path(holdfast.__file__).parent / "app" / "explorer" / "static"
TOKEN = "a-token-for-tests"
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript"}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
SCRIPT = "<script>window.__owned = 1</script>"
IMAGE = '<img src=x onerror="window.__owned = 2">'
SVG = '"><svg/onload=window.__owned=3>'
CLUSTERED, LARGE, CITIES, HOSTILE, COVERED, CUT = 0, 1, 2, 3, 9, 10
IN_A_COMPONENT = 100_000  # ids of a component's tables start at a multiple of this
WORDS = [
    "airports",
    "olympics",
    "election_results",
    "rivers",
    "census",
    "museums",
    "lakes",
    "stations",
    "harbours",
    "species",
    "football_clubs",
    "mountains",
    "bridges",
    "universities",
    "films",
    "albums",
    "stadiums",
    "railways",
    "parishes",
    "districts",
    "glaciers",
    "castles",
]
CITY = ["Oslo", "Bergen", "Trondheim", "Stavanger", "Tromsø", "Bodø", "Ålesund", "Molde", "Hamar", "Narvik"]
COUNTRY = ["Norway", "Sweden", "Denmark", "Finland", "Iceland", "Estonia", "Latvia", "Lithuania"]

Answer = dict[str, Any]


class NotThere(Exception):
    """What is asked for is not there."""


# -- graphs ---------------------------------------------------------------------------------------


def _graph(n: int, m: int, seed: int, name: Callable[[int], str], first: int) -> Answer:
    """Groups of tables around hubs, the groups on a spiral; edges within groups, and few between them."""
    chance = random.Random(seed)
    n_groups = max(1, round(n**0.5 / 2.2))
    sizes = [chance.paretovariate(1.3) for _ in range(n_groups)]
    group = sorted(chance.choices(range(n_groups), sizes, k=n))
    members: dict[int, list[int]] = {}
    for i, g in enumerate(group):
        members.setdefault(g, []).append(i)
    turn = math.pi * (3 - math.sqrt(5))
    x, y = [0.0] * n, [0.0] * n
    out = 0.0
    for k, inside in enumerate(sorted(members.values(), key=len, reverse=True)):
        out = 0.0 if k == 0 else math.sqrt(out**2 + 3.0 * len(inside) + 20)
        for r, i in enumerate(inside):
            away = math.sqrt(r) * chance.uniform(0.75, 1.15)
            x[i] = out * math.cos(k * turn) + away * math.cos(r * turn)
            y[i] = out * math.sin(k * turn) + away * math.sin(r * turn)
    pairs: dict[tuple[int, int], float] = {}
    hubs = [inside[0] for inside in members.values()]
    for inside in members.values():
        for r, i in enumerate(inside[1:], 1):
            pairs[i, inside[int(r * chance.random() ** 3)]] = chance.betavariate(2, 2)
    for a, b in pairwise(hubs):
        pairs[a, b] = chance.random()
    while len(pairs) < m:
        inside = members[group[chance.randrange(n)]]
        a, b = chance.choice(inside), inside[int(len(inside) * chance.random() ** 2)]
        if chance.random() < 0.04:
            b = chance.choice(hubs)
        if a != b:
            pairs[a, b] = chance.betavariate(1.5, 4)
    best = sorted(pairs.items(), key=lambda item: -item[1])
    degree = [0] * n
    for (a, b), _ in best:
        degree[a] += 1
        degree[b] += 1
    return {
        "n_tables": n,
        "clustered": False,
        "nodes": {
            "id": [first + i for i in range(n)],
            "label": [name(i) for i in range(n)],
            "x": [round(v, 2) for v in x],
            "y": [round(v, 2) for v in y],
            "degree": degree,
        },
        "edges": {
            "from": [a for (a, _), _ in best],
            "to": [b for (_, b), _ in best],
            "score": [round(s, 4) for _, s in best],
            "n_inds": [1 + int(5 * s) for _, s in best],
        },
        "n_edges": len(best),
    }


def _packed(radii: list[float]) -> list[tuple[float, float]]:
    """Places for circles, largest first: each at the first place of a spiral where it overlaps none."""
    reach = 2.2 * math.sqrt(sum(r * r for r in radii))  # nobody needs to go farther out
    turns = np.arange(40_000)
    away = reach * np.sqrt(turns / len(turns))
    xs, ys = away * np.cos(turns * 2.399963), away * np.sin(turns * 2.399963)
    free = np.full(len(xs), math.inf)  # distance from each place to the nearest circle
    placed = []
    for r in radii:
        at = int(np.argmax(free >= r * 1.06))
        placed.append((float(xs[at]), float(ys[at])))
        free = np.minimum(free, np.hypot(xs - xs[at], ys - ys[at]) - r)
    return placed


def _named(seed: int) -> Callable[[int], str]:
    chance = random.Random(seed)

    def name(i: int) -> str:
        word = WORDS[int(len(WORDS) * chance.random() ** 2)]
        return f"{chance.choice('abcdef')}{seed % 10}/{word}_{1900 + (i * 7) % 120}_{i}.csv"

    return name


@cache
def clusters() -> list[Answer]:
    chance = random.Random(5)
    sizes = sorted((int(60 * chance.paretovariate(1.1)) for _ in range(48)), reverse=True)
    sizes = [min(s, 2600) for s in sizes]
    radii = [math.sqrt(s) for s in sizes]
    places = _packed([r * 1.35 for r in radii])
    return [
        {"id": i, "n_tables": s, "name": f"web/{WORDS[i % len(WORDS)]}_{i}.csv", "x": x, "y": y, "r": r}
        for i, (s, r, (x, y)) in enumerate(zip(sizes, radii, places, strict=True))
    ]


@cache
def components() -> list[Answer]:
    chance = random.Random(11)
    sizes = [sum(c["n_tables"] for c in clusters()), 10_000, 180, 4]
    sizes += sorted((min(1500, int(2 * chance.paretovariate(0.9))) for _ in range(320)), reverse=True)
    names = ["web/airports_0.csv", "gov/census_0.csv", "geo/cities.csv", f"evil/{SCRIPT}.csv"]
    names += [f"{'ghk'[i % 3]}{i % 7}/{WORDS[i % len(WORDS)]}_{i}.csv" for i in range(320)]
    order = sorted(range(len(sizes)), key=lambda i: -sizes[i])
    places = _packed([math.sqrt(sizes[i]) for i in order])
    return [
        {
            "id": i,
            "n_tables": sizes[i],
            "n_inds": sizes[i] * 3,
            "name": names[i],
            "x": x,
            "y": y,
            "r": math.sqrt(sizes[i]),
        }
        for i, (x, y) in zip(order, places, strict=True)
    ]


def component(id_: int) -> Answer:
    whole = _component(id_)
    if id_ != CUT:
        return whole
    # Of its edges only the best are told.
    n = whole["n_edges"] // 4
    return whole | {"edges": {name: values[:n] for name, values in whole["edges"].items()}}


@cache
def _component(id_: int) -> Answer:
    told = next((c for c in components() if c["id"] == id_), None)
    if told is None:
        raise NotThere(f"the lake has no component {id_}")
    head = {"id": id_, "cluster": None, "name": told["name"]}
    if id_ == CLUSTERED:
        chance, n = random.Random(3), len(clusters())
        links = {(i, chance.randrange(i)): chance.randint(1, 4000) for i in range(1, n)}
        links |= {(chance.randrange(20, n), chance.randrange(20)): chance.randint(1, 90) for _ in range(60)}
        joined = [[i, j, k] for (i, j), k in links.items()]
        return {
            **head,
            "n_tables": told["n_tables"],
            "clustered": True,
            "clusters": clusters(),
            "links": joined,
        }
    if id_ == HOSTILE:
        names = [f"evil/{SCRIPT}.csv", f"evil/{IMAGE}.csv", f"evil/{SVG}.csv", "evil/\u202egnp.exe\n2.csv"]
    elif id_ == CITIES:
        named = _named(2)
        names = ["geo/cities.csv", "geo/countries.csv", *(named(i) for i in range(178))]
    else:
        named = _named(id_)
        names = [told["name"], *(named(i) for i in range(1, told["n_tables"]))]
    n = len(names)
    m = 30_000 if id_ == LARGE else min(n * (n - 1) // 2, max(n - 1, int(1.6 * n)))
    graph = _graph(n, m, 40 + id_, names.__getitem__, id_ * IN_A_COMPONENT)
    if id_ == COVERED:
        graph["edges"]["coverage"] = [round(0.9 * s, 4) for s in graph["edges"]["score"]]
    return {**head, **graph}


@cache
def cluster(component_id: int, id_: int) -> Answer:
    told = next((c for c in clusters() if c["id"] == id_), None)
    if component_id != CLUSTERED or told is None:
        raise NotThere(f"component {component_id} has no cluster {id_}")
    named = _named(100 + id_)
    names = [told["name"], *(named(i) for i in range(1, told["n_tables"]))]
    graph = _graph(len(names), int(2.2 * len(names)), id_, names.__getitem__, id_ * 3000)
    return {"id": component_id, "cluster": id_, "name": told["name"], **graph}


# -- tables ---------------------------------------------------------------------------------------


def _neighbours(id_: int) -> tuple[Answer, int, list[tuple[int, bool, float]]]:
    """The graph of a table, its position there, and (neighbour, whether it is referenced, score)."""
    own = id_ // IN_A_COMPONENT
    graph = cluster(CLUSTERED, id_ // 3000) if own == CLUSTERED else _component(own)
    if id_ not in graph["nodes"]["id"]:
        raise NotThere(f"the lake has no table {id_}")
    at = graph["nodes"]["id"].index(id_)
    edges = graph["edges"]
    found = []
    for a, b, s in zip(edges["from"], edges["to"], edges["score"], strict=True):
        if at in (a, b):
            found.append((b if a == at else a, a == at, s))
    return graph, at, found


def _header(id_: int) -> list[str]:
    if id_ // IN_A_COMPONENT == HOSTILE:
        return [IMAGE, SCRIPT, "city"]
    return ["city", "country", "population", "founded", "remarks"]


def _ind(dep: int, dep_name: str, ref: int, ref_name: str, score: float) -> Answer:
    column = int(score * 10) % 2
    coverage = min(1.0, score * 1.25)
    n_ref = 40
    shared = max(1, int(coverage * n_ref))
    return {
        "dependent": {"id": dep * 10, "table_id": dep, "table": dep_name, "column": _header(dep)[0]},
        "referenced": {
            "id": ref * 10 + column,
            "table_id": ref,
            "table": ref_name,
            "column": _header(ref)[column],
        },
        "shared": shared,
        "n_dependent": shared + (2 if score < 0.3 else 0),
        "n_referenced": n_ref,
        "coverage": coverage,
        "containment": 1.0 if score >= 0.3 else 0.9,
        "uniqueness": 1.0,
        "distinctive": 0.62,
        "score": score,
    }


def table(id_: int) -> Answer:
    for known in (ALONE, WIDE):
        if id_ == known["id"]:
            return dict(known)
    graph, at, joined = _neighbours(id_)
    labels, ids = graph["nodes"]["label"], graph["nodes"]["id"]
    chance = random.Random(id_)
    rows: list[list[str | None]]
    if id_ // IN_A_COMPONENT == HOSTILE:
        rows = [
            [SCRIPT, IMAGE, "Oslo"],
            [SVG, "javascript:window.__owned=4", None],
            ["", "\u202eabc\n\x00", "  Bergen "],
        ]
    else:
        rows = [
            [
                city,
                chance.choice(COUNTRY),
                str(chance.randint(900, 900_000)),
                str(chance.randint(900, 1990)),
                None,
            ]
            for city in CITY
        ]
        rows[3][4], rows[6][4] = "", "the largest of the county; its harbour is free of ice all year round"
    columns = [
        {
            "id": id_ * 10 + i,
            "name": name,
            "n_values": len({row[i] for row in rows} - {None}),
            "n_rows": len(rows),
            "n_missing": sum(row[i] is None for row in rows),
            "unique": i == 0,
            "integer": name in ("population", "founded"),
            "null": name == "remarks",
            "samples": [row[i] for row in rows if row[i] is not None][:5],
        }
        for i, name in enumerate(_header(id_))
    ]
    inds = []
    for other, referenced, score in joined:
        sides = (id_, labels[at], ids[other], labels[other])
        inds.append(_ind(*(sides if referenced else sides[2:] + sides[:2]), score))
    inds.sort(key=lambda ind: -ind["score"])
    return {
        "id": id_,
        "name": labels[at],
        "source": f"/srv/lake/{labels[at]}",
        "n_rows": len(rows),
        "component": graph["id"],
        "cluster": graph["cluster"],
        "columns": columns,
        "rows": rows,
        "inds": inds[:500],
        "n_inds": len(inds),
    }


ALONE = {
    "id": 99_999_999,
    "name": "misc/alone.csv",
    "source": "/srv/lake/misc/alone.csv",
    "n_rows": 0,
    "component": -1,
    "cluster": None,
    "columns": [],
    "rows": [],
    "inds": [],
    "n_inds": 0,
}
WIDE = ALONE | {
    "id": 99_999_998,
    "name": "misc/wide.csv",
    "n_rows": 2,
    "columns": [
        {
            "id": i,
            "name": f"measure {i}",
            "n_values": 2,
            "n_rows": 2,
            "n_missing": 0,
            "unique": True,
            "integer": False,
            "null": False,
            "samples": ["a" * 1000, "b"],
        }
        for i in range(300)
    ],
    "rows": [["a" * 1000] * 300, ["b"] * 300],
}


def ind(dependent: int, referenced: int) -> Answer:
    found = [i for i in table(dependent // 10)["inds"] if i["dependent"]["id"] == dependent]
    for one in found:
        if one["referenced"]["id"] == referenced:
            hostile = dependent // 10 // IN_A_COMPONENT == HOSTILE
            texts = [SCRIPT, IMAGE, "", *CITY] if hostile else CITY
            return {
                **one,
                "matches": texts[: one["shared"]],
                "missing": ["Atlantis", "Vineta"] if one["n_dependent"] > one["shared"] else [],
                "others": [f"{city} {SVG if hostile else 'North'}" for city in CITY[:6]],
            }
    raise NotThere(f"column {dependent} is not contained in column {referenced}")


def search(q: str, limit: int) -> Answer:
    asked = q.lower()
    tables = [
        {"id": i, "name": name, "n_rows": 10}
        for c in (CITIES, HOSTILE)
        for i, name in zip(component(c)["nodes"]["id"], component(c)["nodes"]["label"], strict=True)
        if asked in name.lower()
    ]
    tables += [
        {"id": i, "name": name, "n_rows": 10}
        for i, name in zip(
            cluster(CLUSTERED, 7)["nodes"]["id"], cluster(CLUSTERED, 7)["nodes"]["label"], strict=True
        )
        if asked in name.lower()
    ]
    if asked in ALONE["name"]:
        tables.append({"id": ALONE["id"], "name": ALONE["name"], "n_rows": 0})
    first = CITIES * IN_A_COMPONENT
    columns = [
        {
            "id": t * 10 + i,
            "name": name,
            "table_id": t,
            "table": component(t // IN_A_COMPONENT)["nodes"]["label"][t % 10],
        }
        for t in (first, first + 1, first + 2, HOSTILE * IN_A_COMPONENT)
        for i, name in enumerate(_header(t))
        if asked in name.lower()
    ]
    holding = [c for c in _columns_of_cities() if q in CITY]
    values = [{"value": q, "n_columns": len(holding), "columns": holding[:5]}] if holding else []
    return {
        "tables": tables[:limit],
        "columns": columns[:limit],
        "values": values,
        "more": len(tables) > limit or len(columns) > limit,
    }


def _columns_of_cities() -> list[Answer]:
    nodes = component(CITIES)["nodes"]
    return [
        {"id": t * 10, "name": "city", "table_id": t, "table": name}
        for t, name in zip(nodes["id"], nodes["label"], strict=True)
    ]


# -- the workspace --------------------------------------------------------------------------------

DEPENDENCIES: Mapping[str, list[Answer]] = {
    "ucc": [
        {"kind": "ucc", "table": "orders", "columns": ["order_id"], "error": 0.0, "text": "[order_id]"},
        {"kind": "ucc", "table": "orders", "columns": [IMAGE], "error": 0.0, "text": f"[{IMAGE}]"},
    ],
    "fd": [
        {
            "kind": "fd",
            "table": "orders",
            "lhs": ["product"],
            "rhs": name,
            "error": 0.0,
            "text": f"product -> {name}",
        }
        for name in ("unit_price", "weight", "supplier")
    ],
    "ind": [
        {
            "kind": "ind",
            "dependent": {"table": "orders", "columns": ["customer_id"]},
            "referenced": {"table": "customers", "columns": ["customer_id"]},
            "error": 0.0,
            "missing_values": 0,
            "missing_rows": 0,
            "coverage": 0.976,
            "text": "orders[customer_id] in customers[customer_id]",
        }
    ],
    "dc": [
        {
            "kind": "dc",
            "table": "orders",
            "predicates": [
                {"left": "zip", "op": "=", "right": "zip"},
                {"left": "city", "op": "!=", "right": "city"},
            ],
            "error": 0.0,
            "sentence": "rows with the same zip have the same city",
            "text": "not(t.zip = s.zip and t.city != s.city)",
        }
    ],
    "row": [
        {
            "kind": "row",
            "table": "orders",
            "left": "shipped",
            "op": ">=",
            "right": "ordered",
            "error": 0.002,
            "n_exceptions": 8,
            "n_compared": 4000,
            "apart": False,
            "sentence": "shipped is not before ordered",
            "text": "shipped >= ordered",
        }
    ],
}


SINCE = {"version": 2, "at": "2026-03-01T09:00:00+00:00"}


def dependencies(table: str, kind: str | None) -> Answer:
    """What holds in the table `orders`; nothing holds in the other one."""
    by_kind = {k: len(d) for k, d in DEPENDENCIES.items()} if table == "orders" else {}
    chosen = [
        {"role": "dependency", "score": 0.5, "since": SINCE, **d}
        for k, some in DEPENDENCIES.items()
        for d in some
        if k in by_kind and kind in (None, k)
    ]
    n = {"n": sum(by_kind.values()), "n_matching": len(chosen), "n_chance": 0, "n_muted": 0}
    return {"version": 3, **n, "by_kind": by_kind, "dependencies": chosen}


def tracked_table(name: str) -> Answer:
    chosen = {"role": "primary key", "score": 0.9, "since": SINCE}
    keys = [
        {**d, **chosen, "reasons": [{"points": 1.0, "text": "one column", "columns": []}]}
        for d in DEPENDENCIES["ucc"]
    ]
    references = [{**d, **chosen, "role": "foreign key"} for d in DEPENDENCIES["ind"]]
    is_full = name == "orders"
    column = {"type": "text", "n_distinct": 3, "is_estimate": False, "is_primary": True, "is_unique": True}
    return {
        "version": 3,
        "name": name,
        "n_rows": 4004,
        "kinds": ["ucc", "fd", "ind", "dc", "row"] if is_full else ["ucc", "ind"],
        "nulls": "equal",
        "tracked": SINCE,
        "max_lhs": None,
        "max_columns": None,
        "columns": [{"name": n, **column, "refers_to": [SCRIPT]} for n in (IMAGE, "order_id")],
        "keys": {"n": 2 * is_full, "n_chance": 0, "has_primary": is_full, "first": keys if is_full else []},
        "references": {
            "out": references if is_full else [],
            "into": [],
            "n_out": 1 * is_full,
            "n_into": 0,
            "n_chance_out": 0,
            "n_chance_into": 0,
        },
        "pins": [],
        "n_pins": 0,
    }


def _row(number: int, **values: Any) -> Answer:
    return {"row": f"{number >> 32}.{number & 0xFFFFFFFF}", "values": values}


def log() -> list[Answer]:
    key = {"kind": "ucc", "columns": ["invoice"], "text": "[invoice]"}
    wider = {"kind": "ucc", "columns": ["invoice", "placed_at"], "text": "[invoice, placed_at]"}
    same = {"product": "pulley", "quantity": 2, "unit_price": "16.40", "status": IMAGE}
    pair = [
        _row(3987, order_id=13988, invoice="R24-004488", placed_at="2024-03-30T15:35:00", **same),
        _row(2**32 + 3, order_id=2**53 + 1, invoice="R24-004488", placed_at="2024-03-31T09:51:00", **same),
    ]
    gone = "is unique now; its duplicates are gone"
    changes = {
        3: [("appeared", key, gone, [pair]), ("implied", wider, "[invoice] alone is a key now", [])],
        2: [
            ("broke", key, "is no longer unique", [pair]),
            ("appeared", wider, "is minimal now that [invoice] broke", []),
        ],
        1: [("appeared", d, "", []) for kind in DEPENDENCIES.values() for d in kind],
    }
    entries = []
    for version, action, inserted, deleted in ((3, "apply", 0, 1), (2, "apply", 5, 0), (1, "track", 4000, 0)):
        own = {"table": "orders", "n_inserted": inserted, "n_deleted": deleted, "n_rows": 4004, "n_keys": 4}
        if version == 2:  # a batch to another table that changed something about this one
            own = {"table": "customers", "n_inserted": 5, "n_deleted": 0, "n_rows": 771, "n_keys": 1}
        entries.append(
            {
                "version": version,
                "at": f"2026-03-0{version}T09:30:00.000000+00:00",
                "action": action,
                "batch_id": "night-2" if version == 2 else None,
                **own,
                "tables": [own],
                "changes": [
                    {
                        "change": event,
                        "dependency": d,
                        "text": d["text"],
                        "reason": reason,
                        "witnesses": witnesses,
                    }
                    for event, d, reason, witnesses in changes[version]
                ],
                "n_changes": len(changes[version]) + (70 if version == 1 else 0),
            }
        )
    return entries


NOUNS = {kind: entries()[kind].nouns for kind in kinds()}

# -- the server -----------------------------------------------------------------------------------


class FakeLake:
    """What the server tells. `broken`: paths that fail, with status 400 and an error."""

    def __init__(self, *, lake: bool = True, tracked: bool = True, inds: bool = True) -> None:
        self.lake, self.tracked, self.inds = lake, tracked, inds
        self.broken: set[str] = set()
        self.version = 4

    def answer(self, path: str, given: Mapping[str, str]) -> Answer:
        if path in self.broken:
            raise ValueError(f"the fake lake was told to fail at {path}")
        match path:
            case "summary":
                return self._summary()
            case "components":
                return {"components": components() if self.inds else [], "n_more": 1234 if self.inds else 0}
            case "component":
                return component(int(given["id"]))
            case "cluster":
                return cluster(int(given["component"]), int(given["id"]))
            case "table":
                return table(int(given["id"]))
            case "ind":
                return ind(int(given["dependent"]), int(given["referenced"]))
            case "search":
                return search(given["q"], int(given.get("limit", 50)))
            case "workspace/dependencies":
                return dependencies(given["table"], given.get("kind"))
            case "workspace/table":
                return tracked_table(given["name"])
            case "workspace/fds":
                return {"n": 3, "n_of_keys": 0, "n_chance": 0, "n_groups": 1} | {
                    "columns": [IMAGE, "product", "weight"],
                    "groups": [{"lhs": [1], "rhs": [0, 2], "scores": [0.9, 0.8]}],
                }
            case "workspace/log":
                return {"entries": log() if given["table"] == "orders" else []}
        raise NotThere(f"there is nothing at api/{path}")

    def _summary(self) -> Answer:
        lake = {
            "version": 4,
            "changed": self.version,
            "n_tables": 31_204,
            "n_columns": 158_112,
            "n_inds": 1_204_993 if self.inds else 0,
            "n_components": 1_558 if self.inds else 0,
            "n_isolated": 6_120,
            "filters": ["null", "integer", "non-unique", "coverage"],
            "removed": {"null": 120_000, "integer": 88_000_123, "non-unique": 4_100_200, "coverage": 900_100},
        }
        tables = [
            {"name": "orders", "n_rows": 4004, "kinds": ["ucc", "fd", "ind", "dc", "row"]},
            {"name": f"customers {SCRIPT}", "n_rows": 720, "kinds": ["ucc", "ind"]},
        ]
        return {
            "lake": lake if self.lake else None,
            "workspace": {"version": 4, "tables": tables if self.tracked else [], "nouns": NOUNS},
        }


def _encoded(lake: FakeLake, path: str, given: tuple[tuple[str, str], ...]) -> bytes:
    if path not in lake.broken and path in ("component", "cluster"):
        return _encoded_graph(path, given)
    return json.dumps(lake.answer(path, dict(given))).encode()


@cache
def _encoded_graph(path: str, given: tuple[tuple[str, str], ...]) -> bytes:
    return json.dumps(FakeLake().answer(path, dict(given))).encode()


@dataclass
class Serving:
    """Where the page is, and the lake that is told of: another one may take its place."""

    lake: FakeLake
    address: str = ""


@contextmanager
def serving(lake: FakeLake) -> Iterator[Serving]:
    """Serves a lake on a free port of 127.0.0.1."""
    running = Serving(lake)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if not parts.path.startswith(f"/{TOKEN}/"):
                self.reply(HTTPStatus.FORBIDDEN, "application/json", b'{"error": "unknown token"}')
                return
            path = parts.path.removeprefix(f"/{TOKEN}/") or "index.html"
            if path.startswith("api/"):
                self.reply_json(
                    path.removeprefix("api/"), {k: v[0] for k, v in parse_qs(parts.query).items()}
                )
                return
            file = STATIC / path
            if file.parent != STATIC or not file.is_file():
                self.reply(HTTPStatus.NOT_FOUND, "application/json", b'{"error": "no such file"}')
                return
            self.reply(HTTPStatus.OK, TYPES[file.suffix], file.read_bytes())

        def reply_json(self, path: str, given: Mapping[str, str]) -> None:
            try:
                status, body = HTTPStatus.OK, _encoded(running.lake, path, tuple(given.items()))
            except NotThere as error:
                status, body = HTTPStatus.NOT_FOUND, json.dumps({"error": str(error)}).encode()
            except ValueError as error:
                status, body = HTTPStatus.BAD_REQUEST, json.dumps({"error": str(error)}).encode()
            self.reply(status, "application/json", body)

        def reply(self, status: HTTPStatus, kind: str, body: bytes) -> None:
            self.send_response(status)
            for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.send_header("Holdfast-Version", str(running.lake.version))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """A page that is left hangs up."""

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    running.address = f"http://127.0.0.1:{server.server_port}/{TOKEN}/"
    with answering(server):
        yield running
