"""Writes the bundled example: `python -m holdfast.app.examples.make_orders [FOLDER]`.

A shop's orders of one quarter. Every order has its own number and its own invoice, and nobody orders
twice in one minute. Two parcels of one customer were given the same tracking code by mistake. Then:

1. `1-inserts.csv`: a day's orders; one of them repeats an invoice (sent twice by the shop's till);
2. `2-deletes.csv`: that one is taken back, named by its order number alone;
3. `3-updates.csv`: the wrong tracking code is corrected, by order number.

The shop's customers and products come with it. Every order is of a known customer and product, until

4. `4-inserts.csv`: an order of a customer whom nobody has heard of;
5. `5-inserts.csv`: that customer, who arrives a moment later.

And every product has one price, until

6. `6-inserts.csv`: an order with two digits of its price swapped.

Parcels are numbered as they are ordered. In each zone heavier ones cost as much or more, and none is shipped
before it is ordered, until

7. `7-inserts.csv`: a heavy parcel at the fee of a light one, shipped before it was ordered.

Seeded and free of platform differences: a test checks that the files in the package are these.
"""

from __future__ import annotations

import csv
import random
import sys
from datetime import datetime, timedelta
from pathlib import Path

SEED = 20240331
N_ORDERS = 4000
N_CUSTOMERS = 700
COLUMNS = (
    "order_id", "invoice", "customer_id", "placed_at", "product",
    "quantity", "unit_price", "status", "tracking",
)  # fmt: skip
PRICES = {
    "anchor": "89.00", "buoy": "34.50", "cleat": "12.90", "compass": "59.00",
    "fender": "27.80", "flare": "19.90", "lantern": "45.00", "lifejacket": "74.00",
    "oar": "38.00", "pulley": "16.40", "rope": "22.50", "shackle": "7.90",
}  # fmt: skip
CUSTOMER_COLUMNS = ("customer_id", "name", "city", "since")
PRODUCT_COLUMNS = ("product", "price", "weight_kg")
N_PARCELS = 800
PARCEL_COLUMNS = ("parcel", "zone", "weight_kg", "fee", "ordered_at", "shipped_at")
# By zone the fees up to 2, 5, 10 kg, and above.
FEES = {
    "near": ("4.90", "6.90", "9.90", "16.90"),
    "far": ("7.90", "10.90", "14.90", "24.90"),
    "abroad": ("14.90", "19.90", "29.90", "49.90"),
}
ZONES = ("near", "near", "near", "far", "far", "abroad")
FIRST_NAMES = (
    "Ada", "Bo", "Cleo", "Dan", "Edith", "Finn", "Greta",
    "Hugo", "Ida", "Jon", "Kira", "Lars", "Mona", "Nils",
)  # fmt: skip
LAST_NAMES = ("Berg", "Dahl", "Falk", "Holm", "Krog", "Lind", "Moe", "Nord", "Ravn", "Skov", "Strand", "Vik")
CITIES = ("Bergen", "Bremen", "Cork", "Gdansk", "Kiel", "Malmo", "Narvik", "Porto", "Turku", "Vigo")
STATUSES = ("delivered", "delivered", "delivered", "shipped", "returned")

Row = dict[str, str]


def orders(random: random.Random) -> list[Row]:
    """The table, in order of time."""
    rows: list[Row] = []
    taken: set[tuple[str, str]] = set()
    tracked: set[str] = set()
    minutes = sorted(_minute(random) for _ in range(N_ORDERS))
    for i, minute in enumerate(minutes):
        placed_at = _time(minute)
        customer = _customer(random)
        while (customer, placed_at) in taken:
            customer = _customer(random)
        taken.add((customer, placed_at))
        rows.append(_order(random, 10_001 + i, customer, placed_at, tracked))
    return rows


def _minute(random: random.Random) -> int:
    """A minute of the quarter, by day and most often around noon."""
    return random.randrange(90) * 1440 + round(random.triangular(8 * 60, 20 * 60))


def _time(minute: int) -> str:
    return f"{datetime(2024, 1, 1) + timedelta(minutes=minute):%Y-%m-%d %H:%M:%S}"


def _customer(random: random.Random) -> str:
    """Some customers order much more often than others."""
    return str(1 + int(N_CUSTOMERS * random.random() ** 2))


def _order(random: random.Random, number: int, customer: str, placed_at: str, tracked: set[str]) -> Row:
    product = random.choice(list(PRICES))
    tracking = f"TRK{random.randrange(10**8):08}"
    while tracking in tracked:
        tracking = f"TRK{random.randrange(10**8):08}"
    tracked.add(tracking)
    quantity = str(random.choice((1, 1, 1, 2, 2, 3, 4)))
    invoice = f"R24-{number - 10_000 + 500:06}"
    status = random.choice(STATUSES)
    return dict(
        zip(
            COLUMNS,
            (str(number), invoice, customer, placed_at, product, quantity, PRICES[product], status, tracking),
            strict=True,
        )
    )


def customers(random: random.Random, numbers: range) -> list[Row]:
    """Customers of these numbers; names and cities repeat."""
    return [
        {
            "customer_id": str(number),
            "name": f"{random.choice(FIRST_NAMES)} {random.choice(LAST_NAMES)}",
            "city": random.choice(CITIES),
            "since": f"{datetime(2018, 1, 1) + timedelta(days=random.randrange(2190)):%Y-%m-%d}",
        }
        for number in numbers
    ]


def products(random: random.Random) -> list[Row]:
    """What is sold, and for how much."""
    return [
        {"product": name, "price": price, "weight_kg": f"{random.randrange(1, 400) / 10:.1f}"}
        for name, price in PRICES.items()
    ]


def parcels(random: random.Random) -> list[Row]:
    """What is sent, in order of time. Carriers call three times a day."""
    rows = []
    for i, tens in enumerate(sorted(random.randrange(90 * 144) for _ in range(N_PARCELS))):
        days = 1 + int(4 * random.random() * random.random())
        shipped = (tens // 144 + days) * 1440 + random.choice((9, 13, 17)) * 60
        zone = random.choice(ZONES)
        weight = 1 + int(300 * random.random() * random.random() * random.random())  # tenths of a kilogram
        fee = FEES[zone][sum(weight > limit for limit in (20, 50, 100))]
        texts = (f"{5001 + i}", zone, f"{weight / 10:.1f}", fee, _time(10 * tens), _time(shipped))
        rows.append(dict(zip(PARCEL_COLUMNS, texts, strict=True)))
    return rows


def example() -> dict[str, tuple[tuple[str, ...], list[Row]]]:
    """The files: name -> (columns, rows)."""
    chance = random.Random(SEED)
    table = orders(chance)

    # Two orders of one customer, alike but for the time, under one tracking code.
    first, second = table[1204], table[1207]
    right_tracking = second["tracking"]
    for column in ("customer_id", "product", "quantity", "unit_price", "status", "tracking"):
        second[column] = first[column]

    tracked = {row["tracking"] for row in table} | {right_tracking}
    start = 90 * 1440 + 9 * 60
    inserts = [
        _order(chance, 10_001 + N_ORDERS + i, _customer(chance), _time(start + 17 * i), tracked)
        for i in range(5)
    ]
    # The till sends an order again: a new number and time, the old invoice.
    again = inserts[3]
    for column in ("invoice", "customer_id", "product", "quantity", "unit_price", "status"):
        again[column] = table[3987][column]

    regulars = customers(chance, range(1, N_CUSTOMERS + 1))
    stranger = _order(chance, 10_006 + N_ORDERS, str(N_CUSTOMERS + 1), _time(start + 90), tracked)
    files: dict[str, tuple[tuple[str, ...], list[Row]]] = {
        "orders.csv": (COLUMNS, table),
        "1-inserts.csv": (COLUMNS, inserts),
        "2-deletes.csv": (("order_id",), [{"order_id": again["order_id"]}]),
        "3-updates.csv": (
            ("order_id", "tracking"),
            [{"order_id": second["order_id"], "tracking": right_tracking}],
        ),
        "customers.csv": (CUSTOMER_COLUMNS, regulars),
        "products.csv": (PRODUCT_COLUMNS, products(chance)),
        "4-inserts.csv": (COLUMNS, [stranger]),
        "5-inserts.csv": (CUSTOMER_COLUMNS, customers(chance, range(N_CUSTOMERS + 1, N_CUSTOMERS + 2))),
    }
    mistyped = _order(chance, 10_007 + N_ORDERS, _customer(chance), _time(start + 105), tracked)
    mistyped["product"], mistyped["unit_price"] = "anchor", "98.00"
    files["6-inserts.csv"] = (COLUMNS, [mistyped])
    files["parcels.csv"] = (PARCEL_COLUMNS, parcels(random.Random(SEED)))
    start = 90 * 1440 + 10 * 60
    wrong = (f"{5001 + N_PARCELS}", "near", "12.0", "4.90", _time(start), _time(start - 1440))
    files["7-inserts.csv"] = (PARCEL_COLUMNS, [dict(zip(PARCEL_COLUMNS, wrong, strict=True))])
    return files


def write(folder: Path) -> None:
    for name, (columns, rows) in example().items():
        with open(folder / name, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
