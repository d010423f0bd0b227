"""Every command that docs/json-schema.json describes is run here: what it prints is as it is described."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.shell import SCHEMA, Shell
from holdfast.core.engine import packing

CUSTOMERS = "id,name,city,zip\n1,Ada,Bern,1\n2,Bob,Rome,2\n3,Cyd,Rome,2\n4,Dan,Oslo,3\n5,Eve,Rome,9\n"
ORDERS = "nr,customer\n1,1\n2,2\n3,3\n4,1\n"
# In this order, on one workspace. What begins with @ is a file.
ON_TABLES: dict[str, list[str]] = {
    "track": ["customers", "@customers", "--kinds", "ucc,fd,ind,dc,profile", "--row-key", "id"],
    "track-all": ["orders=@orders", "--kinds", "ucc,ind"],
    "check": ["customers", "--inserts", "@more"],
    "check-all": ["--inserts", "customers=@more"],
    "apply": ["customers", "--inserts", "@more"],
    "apply-all": ["--deletes", "customers=@more"],
    "pin": ["customers", "id", "--reason", "the key"],
    "pins": [],
    "mute": ["customers", "city"],
    "muted": [],
    "show": [],
    "profile": ["customers"],
    "links": ["--all"],
    "normalise": ["customers"],
    "log": [],
    "explain": ["customers", "zip -> city"],
    "violations": ["customers", "city -> zip"],
    "repairs": ["customers"],
    "merge": ["customers"],
    "verify": [],
    "drop": ["orders"],
    "pack": ["@archive"],
    "doctor": [],
}
# What else a command prints, of the same tables before one is dropped.
VARIANTS: list[tuple[str, ...]] = [
    ("show", "--all"),
    ("show", "--top", "3"),
    ("show", "--top", "3", "--by", "redundancy"),
    ("show", "--kind", "dc", "--top", "3"),
    ("show", "--kind", "dc", "--concise"),
    ("show", "--non-uniques"),
    ("show", "--kind", "ind", "--max-error", "0.9"),
    ("log", "--kind", "fd"),
    ("explain", "customers", "city"),
    ("explain", "customers", "name"),
    ("explain", "customers", "city -> zip"),
    ("explain", "orders", "customer", "--in", "customers.id"),
    ("explain", "customers", "id", "--in", "orders.customer"),
    ("explain", "customers", "id <= zip"),
    ("explain", "customers", "zip > 0"),
    ("explain", "customers", "zip > 1"),
    ("explain", "customers", "name is not null"),
    ("explain", "customers", "not(t.city = s.city and t.zip != s.zip)"),
    ("explain", "customers", "--predicates"),
    ("explain", "customers", "--indexes"),
    ("violations", "customers", "id", "--in", "orders.customer"),
    ("violations", "customers", "zip > 1"),
    ("violations", "customers", "id <= zip"),
    ("violations", "customers", "not(t.city = s.city and t.zip != s.zip)", "--pairs"),
    ("pin", "customers", "zip > 1", "--at-most", "99%"),
    ("pin", "customers", "city -> zip", "--severity", "info"),
    ("pin", "--suggested", "--dry-run"),
    ("pin", "--from-links"),
    ("mute", "customers", "zip -> city"),
    ("muted",),
    ("pins",),
    ("apply", "customers", "--upserts", "@more"),
    ("log",),
]
ON_LAKE: dict[str, list[str]] = {
    "link": ["@lake"],
    "joins": ["customers.csv"],
    "overlaps": ["@orders"],
}


def test_answers_are_as_they_are_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "needed_files", lambda: iter(()))  # else the archive takes half a minute
    (tmp_path / "lake").mkdir()
    texts = {"customers": CUSTOMERS, "orders": ORDERS, "more": "id,name,city,zip\n6,Fay,Bern,1\n"}
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_text(text)
        (tmp_path / "lake" / f"{name}.csv").write_text(text)
    files = {f"@{name}": str(tmp_path / f"{name}.csv") for name in texts}
    files |= {"@lake": str(tmp_path / "lake"), "@archive": str(tmp_path / "h.tar.gz")}
    for folder, calls in (("tables", ON_TABLES), ("lake-of-tables", ON_LAKE)):
        (tmp_path / folder).mkdir()
        shell = Shell(tmp_path / folder)
        for command, args in calls.items():
            variants = VARIANTS if command == "drop" else []
            for call in [*variants, (command, *args)]:
                given = []
                for arg in call:
                    start, mark, name = arg.partition("@")
                    given.append(start + files[mark + name] if mark else arg)
                outcome = shell(*given, "--json")
                assert outcome.code == 0, (call, outcome.err)
                assert outcome.command == call[0]
                assert outcome.json(), call


def test_every_command_that_is_described_is_among_them() -> None:
    assert sorted([*ON_TABLES, *ON_LAKE]) == sorted(SCHEMA["$defs"]["commands"])
