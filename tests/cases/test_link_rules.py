"""What `links` makes of small databases, rule by rule: orphans, copies, ways back, chains, no values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import holdfast
from holdfast.inclusions.links.scored import Link, Linkage

Tables = Mapping[str, Mapping[str, Sequence[Any]]]


def linkage_of(folder: Path, tables: Tables, **options: Any) -> Linkage:
    with holdfast.open(folder / "ws.hold", engine="inline") as ws:
        sources = {name: pa.table(dict(columns)) for name, columns in tables.items()}
        ws.track_all(sources, kinds=("ucc", "ind"), max_columns=2)
        return ws.inds.links(**options)


def chosen(linkage: Linkage) -> set[str]:
    return {str(link) for link in linkage.links if link.chosen}


def the_link(linkage: Linkage, name: str) -> Link:
    [link] = [link for link in linkage.links if str(link) == name]
    return link


def reasons(linkage: Linkage, name: str) -> set[str]:
    return {reason.name for reason in the_link(linkage, name).reasons}


def shop(n_customers: int = 12, n_orders: int = 60) -> dict[str, dict[str, list[Any]]]:
    random = Random(3)
    return {
        "customers": {
            "id": [*range(1, n_customers + 1)],
            "city": [f"city {i % 5}" for i in range(n_customers)],
        },
        "orders": {
            "id": [*range(1, n_orders + 1)],
            "customer_id": [random.randint(1, n_customers) for _ in range(n_orders)],
        },
    }


FOREIGN_KEY = "orders[customer_id] -> customers[id]"


@pytest.mark.parametrize(("n_customers", "orphans"), [(12, [999]), (200, [998, 999])])
def test_a_foreign_key_with_orphans_is_proposed_by_default(
    tmp_path: Path, n_customers: int, orphans: list[int]
) -> None:
    """One value of a dozen, or one in a hundred: and the range of ids that holds them all is no parent."""
    tables = shop(n_customers, 1_000)
    tables["orders"]["customer_id"][: len(orphans)] = orphans
    linkage = linkage_of(tmp_path, tables)
    assert chosen(linkage) == {FOREIGN_KEY}
    assert the_link(linkage, FOREIGN_KEY).missing_values == len(orphans)


def test_only_what_holds_if_that_is_asked_for(tmp_path: Path) -> None:
    tables = shop()
    tables["orders"]["customer_id"][0] = 999
    assert FOREIGN_KEY not in map(str, linkage_of(tmp_path, tables, max_error=0.0).links)


def test_what_misses_much_is_no_candidate(tmp_path: Path) -> None:
    tables = shop()
    tables["orders"]["customer_id"][:3] = [997, 998, 999]
    assert FOREIGN_KEY not in map(str, linkage_of(tmp_path, tables).links)


def test_columns_that_repeat_the_row_referred_to_are_a_copy(tmp_path: Path) -> None:
    """An invoice has the street and the town of its customer; that they are unique there means nothing."""
    random = Random(5)
    streets, towns = [f"{i // 2} High St" for i in range(40)], [f"Town {i % 7}" for i in range(40)]
    who = [*range(40), *(random.randrange(40) for _ in range(160))]
    linkage = linkage_of(
        tmp_path,
        {
            "customers": {"customer_id": [*range(101, 141)], "street": streets, "town": towns},
            "invoices": {
                "invoice_id": [*range(1, 201)],
                "customer_id": [101 + i for i in who],
                "billing_street": [streets[i] for i in who],
                "billing_town": [towns[i] for i in who],
            },
        },
    )
    assert chosen(linkage) == {"invoices[customer_id] -> customers[customer_id]"}
    copy = "invoices[billing_street, billing_town] -> customers[street, town]"
    assert "copied" in reasons(linkage, copy)


def test_columns_do_not_refer_to_what_refers_to_them(tmp_path: Path) -> None:
    """Every rental is paid once, on its day: payments refer to rentals, not both to each other."""
    days = [f"2024-01-{1 + i % 28:02}" for i in range(120)]
    linkage = linkage_of(
        tmp_path,
        {
            "rental": {
                "rental_id": [*range(1, 121)],
                "rental_date": days,
                "copy": [i % 9 for i in range(120)],
            },
            "payment": {
                "payment_id": [*range(1, 241)],
                "rental_id": [*range(1, 121), *range(1, 121)],
                "payment_date": [*days, *["2024-02-01"] * 120],
            },
        },
    )
    assert "payment[rental_id] -> rental[rental_id]" in chosen(linkage)
    assert not {name for name in chosen(linkage) if name.startswith("rental[")}


def people(n_employees: int) -> dict[str, dict[str, list[Any]]]:
    """Managers are employees, who are people: the same ids, of fewer and fewer."""
    random = Random(7)
    ids = [*range(1, 401)]
    employees = sorted(random.sample(ids, n_employees))
    return {
        "people": {
            "person_id": ids,
            "name": [f"name {i}" for i in ids],
            "born": [1950 + i % 50 for i in ids],
        },
        "employees": {"person_id": employees, "desk": [f"desk {i}" for i in range(n_employees)]},
        "projects": {
            "project_id": [*range(1001, 1061)],
            "person_id": [random.choice(employees) for _ in range(60)],
        },
    }


def test_of_a_chain_the_nearest_is_chosen(tmp_path: Path) -> None:
    """Forty people who are all among the sixty employees were not drawn from all four hundred."""
    linkage = linkage_of(tmp_path, people(60))
    assert chosen(linkage) == {
        "employees[person_id] -> people[person_id]",
        "projects[person_id] -> employees[person_id]",
    }
    assert "farther" in reasons(linkage, "projects[person_id] -> people[person_id]")


def test_a_parent_with_nearly_all_of_the_root_is_not_nearer(tmp_path: Path) -> None:
    """Those who are among 398 of 400 could as well be any: they are people."""
    linkage = linkage_of(tmp_path, people(398))
    assert "projects[person_id] -> people[person_id]" in chosen(linkage)


def test_columns_without_a_value_refer_by_name_and_are_unproved(tmp_path: Path) -> None:
    languages = {"language_id": [*range(1, 7)], "name": [f"l{i}" for i in range(6)]}
    nothing = pa.array([None] * 50, pa.int64())
    tables: dict[str, Any] = {
        "language": languages,
        "film": {
            "film_id": [*range(1, 51)],
            "language_id": [1 + i % 6 for i in range(50)],
            "original_language_id": nothing,
            "remake": nothing,
        },
        # Two tables without a row, one of which refers to the other.
        "grade": {"grade_id": pa.array([], pa.int64()), "label": pa.array([], pa.string())},
        "film_grade": {"film_id": pa.array([], pa.int64()), "grade_id": pa.array([], pa.int64())},
    }
    linkage = linkage_of(tmp_path, tables)
    assert {str(link): link.proved for link in linkage.links if link.chosen} == {
        "film[language_id] -> language[language_id]": True,
        "film[original_language_id] -> language[language_id]": False,
        "film_grade[film_id] -> film[film_id]": False,
        "film_grade[grade_id] -> grade[grade_id]": False,
    }
    assert linkage.to_dict()["links"][0].keys() >= {"proved"}


def test_few_values_in_a_corner_refer_if_the_name_says_so(tmp_path: Path) -> None:
    """Two stores have the first two of three hundred addresses."""
    addresses = {"address_id": [*range(1, 301)], "street": [f"street {i}" for i in range(300)]}
    named = {"store_id": [1, 2], "address_id": [1, 2]}
    linkage = linkage_of(tmp_path, {"address": addresses, "store": named})
    assert chosen(linkage) == {"store[address_id] -> address[address_id]"}
