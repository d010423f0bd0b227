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
            given = []
            for arg in args:
                start, mark, name = arg.partition("@")
                given.append(start + files[mark + name] if mark else arg)
            outcome = shell(command, *given, "--json")
            assert outcome.code == 0, (command, outcome.err)
            assert outcome.command == command
            assert outcome.json(), command


def test_every_command_that_is_described_is_among_them() -> None:
    assert sorted([*ON_TABLES, *ON_LAKE]) == sorted(SCHEMA["$defs"]["commands"])
