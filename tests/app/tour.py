"""The workspace of the tour, as the page and the report show it: something broke, something is pinned, and
nothing can break in one table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import holdfast

EXAMPLES = Path(holdfast.__file__).parent / "app" / "examples"


def tour(place: Path) -> Path:
    """Tables, batches that break a key, a foreign key and rules, pins, and a lake beside them."""
    with holdfast.open(place, engine="inline") as ws:
        tables = {name: EXAMPLES / f"{name}.csv" for name in ("customers", "products")}
        ws.track_all(tables, kinds=("ucc", "fd", "ind", "profile"))
        ws.track(
            "orders", EXAMPLES / "orders.csv", row_key=["order_id"], kinds=("ucc", "fd", "ind", "profile")
        )
        ws.track("parcels", EXAMPLES / "parcels.csv", kinds=("dc",))
        ws.pin("orders", ["invoice"])
        ws.pin("orders", ["customer_id"], referenced=holdfast.Side("customers", ("customer_id",)))
        ws.pin_rule("quantity > 0", table="orders", reason="orders of nothing are mistakes", owner="ann")
        for table, batch in (("orders", 1), ("orders", 4), ("orders", 6), ("parcels", 7)):
            ws.apply(table, inserts=EXAMPLES / f"{batch}-inserts.csv", batch_id=f"batch-{batch}")
        ws.track("marks", pa.table({"mark": ["a", "a"], "note": [1, 1]}), kinds=("ucc",))
        ws.link(EXAMPLES / "tables")
    return place
