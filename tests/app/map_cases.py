"""Workspaces with references between tables, for tests of the map."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from benchmarks.page_workspaces import referring_tables

import holdfast
from holdfast.core.words.dependency import Side

HOSTILE = '"><img src=x onerror="window.__owned=1">\u202e'
PRODUCTS = pa.table(
    {"product_id": [f"p{i:03}" for i in range(60)], "price": [i * 7 + 0.5 for i in range(60)]}
)


def shop(place: Path) -> holdfast.Workspace:
    """Five tables that refer to each other, and one with a hostile name that stands alone.

    Of the products p003 and p005 are gone, which 9 and 7 lines have; half of the customers are gone; nobody
    ever gave a discount; orders are pinned to the lines that refer to them.
    """
    ws = holdfast.open(place, engine="inline")
    customers = pa.table(
        {"customer_id": [f"c{i:03}" for i in range(60)], "city": [f"city {i % 7}" for i in range(60)]}
    )
    orders = pa.table(
        {
            "order_id": [f"o{i:03}" for i in range(120)],
            "customer_id": [f"c{i % 50:03}" for i in range(120)],
            "discount_id": pa.array([None] * 120, pa.string()),
        }
    )
    lines = pa.table(
        {
            "line_id": [f"l{i:03}" for i in range(200)],
            "order_id": [f"o{i % 110:03}" for i in range(200)],
            "product_id": [f"p{'003' if i < 6 else '005' if i < 10 else f'{i % 57:03}'}" for i in range(200)],
        }
    )
    discounts = pa.table({"discount_id": [f"d{i}" for i in range(9)], "share": [i / 90 for i in range(9)]})
    alone = pa.table({"words": [f"{i} <b>" for i in range(30)]})
    tables = {"customers": customers, "orders": orders, "lines": lines, "products": PRODUCTS}
    ws.track_all({**tables, "discounts": discounts, HOSTILE: alone}, kinds=("ucc", "ind"))
    ws.pin("lines", ["order_id"], referenced=Side("orders", ("order_id",)))
    ws.apply("products", deletes=PRODUCTS.take([3, 5]), batch_id="spring")
    ws.apply("customers", deletes=customers.slice(0, 30))
    return ws


def parcels(place: Path, *, pinned: bool = False) -> holdfast.Workspace:
    """Parcels refer to the lines of orders by two columns; of order o1 lines 2 and 3 are gone, each in two
    parcels, though all orders and lines by themselves are there."""
    ws = holdfast.open(place, engine="inline")
    orders, lines = [f"o{i // 6}" for i in range(36)], [i % 6 for i in range(36)]
    parents = pa.table({"order_no": orders, "line_no": lines, "price": [i * 1.5 for i in range(36)]})
    children = pa.table(
        {"parcel_id": [f"x{i}" for i in range(68)], "order_no": orders[:34] * 2, "line_no": lines[:34] * 2}
    )
    ws.track_all({"order_lines": parents, "parcels": children}, kinds=("ucc", "ind"))
    if pinned:
        sides = ("order_no", "line_no"), Side("order_lines", ("order_no", "line_no"))
        ws.pin("parcels", sides[0], referenced=sides[1])
    ws.apply("order_lines", deletes=parents.slice(8, 2), batch_id="lost")
    return ws


def large(place: Path) -> holdfast.Workspace:
    """A hundred tables, of which 82 have 200 references: those of the benchmark."""
    ws = holdfast.open(place, engine="inline")
    ws.track_all(referring_tables(100, 200), kinds=("ucc", "ind"))
    return ws
