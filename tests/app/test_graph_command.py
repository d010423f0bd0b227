"""`holdfast graph`: the join graph of a lake as files that other tools read."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import holdfast
from app.shell import WHAT_IS_IMPORTED, Shell
from holdfast.discovery.lake_reader import LakeReader
from holdfast.errors import DamagedFileError
from holdfast.storage.ledger_rows import LAKE, CommitRow
from lake_maker import make_lake

CITIES = [f"city {i}" for i in range(12)]
FRUIT = [f"fruit {i}" for i in range(8)]
TABLES = [
    ("geo/cities.csv", ("name",), (CITIES,)),
    ("shops.csv", ("city", "n"), (CITIES[:6], list("123456"))),
    ("<a> & \"b\" 'c'.csv", ("town",), (CITIES[3:10],)),
    ("fruit.csv", ("kind",), (FRUIT,)),
    ("baskets\x1b\u202e.csv", ("fruit",), (FRUIT[:5],)),
    ("alone.csv", ("x",), (["nobody", "has", "these"],)),
    ("gone.csv", ("city",), (CITIES[:4],)),
]


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a workspace that has a lake of two components; tests work on copies."""
    folder = tmp_path_factory.mktemp("linked")
    with holdfast.open(folder / "my.hold", engine="inline") as ws:
        state = make_lake(ws.root, TABLES[:4], TABLES[4:], dropped=["gone.csv"])
        ws._append(0, [CommitRow(LAKE, "link", state.to_dict(), {})], [])
    return folder


@pytest.fixture
def shell(linked: Path, tmp_path: Path) -> Shell:
    folder = tmp_path / "work"
    shutil.copytree(linked, folder)
    return Shell(folder)


def lake_of(shell: Shell) -> LakeReader:
    lake = holdfast.open(shell.folder / "my.hold", engine="inline", create=False).lake()
    assert lake is not None
    return lake
