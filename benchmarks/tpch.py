"""TPC-H: eight tables of the standard benchmark, as CSV, made by `tpchgen-cli` and cached.

Each scale is a folder in `data/`: the tables, where `lineitem.csv` lacks the rows of the insert batches,
and `batches/`, CSV files with a header such as `insert-1000-0.csv`. The rows of a batch are drawn at
random with a fixed seed, each row for one batch; the delete batches are rows that `lineitem.csv` has.
So the tables with all inserts are TPC-H again, and a batch can break an IND (the only line of an
order goes) or heal it (it arrives).

Rows are moved as lines, never parsed: what a reader of the CSV sees is what tpchgen-cli wrote. No text
of TPC-H has a line break or a quote in it, and no cell is empty.

Scale 1 is 8.66 M rows in 61 columns, 1.1 GB, made in half a minute.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from benchmarks.tables import DATA, SEED

TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
GENERATION = 1  # part of the folder's name: raise it when the split into batches changes
BATCHES = ((1_000, 5), (1, 5), (100, 5), (10_000, 1))  # (rows, how many), for inserts and for deletes
KINDS = ("insert", "delete")

# (table, columns) in (table, columns). TPC-H's clause 1.4.1 names nine foreign keys of one column and
# one of two. The last two of the nine follow from the composite one and partsupp's own.
SINGLE_FOREIGN_KEYS = (
    (("nation", ("n_regionkey",)), ("region", ("r_regionkey",))),
    (("supplier", ("s_nationkey",)), ("nation", ("n_nationkey",))),
    (("customer", ("c_nationkey",)), ("nation", ("n_nationkey",))),
    (("partsupp", ("ps_partkey",)), ("part", ("p_partkey",))),
    (("partsupp", ("ps_suppkey",)), ("supplier", ("s_suppkey",))),
    (("orders", ("o_custkey",)), ("customer", ("c_custkey",))),
    (("lineitem", ("l_orderkey",)), ("orders", ("o_orderkey",))),
    (("lineitem", ("l_partkey",)), ("part", ("p_partkey",))),
    (("lineitem", ("l_suppkey",)), ("supplier", ("s_suppkey",))),
)
COMPOSITE_FOREIGN_KEY = (
    ("lineitem", ("l_partkey", "l_suppkey")),
    ("partsupp", ("ps_partkey", "ps_suppkey")),
)


@dataclass(frozen=True)
class Tpch:
    """TPC-H at one scale."""

    scale: float
    folder: Path

    @property
    def sources(self) -> dict[str, Path]:
        """The CSV of each table; lineitem's is without the insert batches."""
        return {table: self.folder / f"{table}.csv" for table in TABLES}

    @property
    def n_rows(self) -> dict[str, int]:
        """Rows of each table as in `sources`."""
        found: dict[str, int] = json.loads((self.folder / "rows.json").read_text())
        return found

    @property
    def n_columns(self) -> int:
        """Columns of all tables together."""
        return sum(_header(csv).count(b",") + 1 for csv in self.sources.values())

    def batches(self, kind: str) -> list[tuple[int, Path]]:
        """(rows, CSV) of each batch of a kind ("insert" or "delete"), in the order they are to run."""
        folder = self.folder / "batches"
        return [
            (n, folder / f"{kind}-{n}-{i}.csv") for n, count in _batches(self.scale) for i in range(count)
        ]

    def ensure_files(self) -> None:
        """Make the folder unless it is there; whole or not at all."""
        if self.folder.exists():
            return
        part = Path(f"{self.folder}.{os.getpid()}.part")
        part.mkdir(parents=True)
        try:
            _generate(self.scale, part)
            rows = {table: _count_lines(part / f"{table}.csv") - 1 for table in TABLES}
            rows["lineitem"] -= sum(n * count for n, count in _batches(self.scale))
            (part / "rows.json").write_text(json.dumps(rows))
            _split(part, _batches(self.scale))
            part.rename(self.folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def write_after(self, folder: Path) -> dict[str, Path]:
        """Write lineitem as it is after all batches into a folder, unless it is there; the sources with it.

        Cost: one pass over lineitem, a line at a time; memory for the rows of the batches.
        """
        out, part = folder / "lineitem.csv", folder / "lineitem.part"
        if out.exists():
            return {**self.sources, "lineitem": out}
        folder.mkdir(parents=True, exist_ok=True)
        gone = {line for _, csv in self.batches("delete") for line in _lines(csv)}
        with part.open("wb") as target:
            target.write(_header(self.sources["lineitem"]))
            target.writelines(line for line in _lines(self.sources["lineitem"]) if line not in gone)
            for _, csv in self.batches("insert"):
                target.writelines(_lines(csv))
        part.rename(out)
        return {**self.sources, "lineitem": out}


def tpch(scale: float, folder: Path = DATA) -> Tpch:
    """TPC-H at a scale; its files are there after `ensure_files`.

    >>> tpch(0.1).folder.name.startswith("tpch-0.1-")
    True
    """
    try:
        version = importlib.metadata.version("tpchgen-cli")
    except importlib.metadata.PackageNotFoundError as error:
        raise SystemExit("tpchgen-cli is missing: pip install -e '.[bench]'") from error
    return Tpch(scale, folder / f"tpch-{scale:g}-{version}-seed{SEED}-g{GENERATION}")


def _batches(scale: float) -> tuple[tuple[int, int], ...]:
    """The batches that a scale has rows for: at 0.01 lineitem has 60,175 in all."""
    return BATCHES if scale >= 0.05 else tuple((n, count) for n, count in BATCHES if n <= 1_000)


def _generate(scale: float, folder: Path) -> None:
    beside = Path(sys.executable).parent / "tpchgen-cli"  # the environment's own, though it is not activated
    command = str(beside) if beside.exists() else "tpchgen-cli"
    subprocess.run([command, "csv", "-s", f"{scale:g}", "-o", str(folder), "--quiet"], check=True)
    if missing := [table for table in TABLES if not (folder / f"{table}.csv").exists()]:
        raise RuntimeError(f"tpchgen-cli wrote no {', '.join(missing)} into {folder}")


def _split(folder: Path, batches: tuple[tuple[int, int], ...]) -> None:
    """Draw the batches from lineitem: inserts leave it, deletes are copied out of it."""
    whole, base = folder / "lineitem.whole.csv", folder / "lineitem.csv"
    base.rename(whole)
    names = [(kind, f"{kind}-{n}-{i}.csv", n) for kind in KINDS for n, count in batches for i in range(count)]
    drawn = np.random.default_rng(SEED).choice(
        _count_lines(whole) - 1, sum(n for _, _, n in names), replace=False
    )
    (folder / "batches").mkdir()
    header = _header(whole)
    with contextlib.ExitStack() as open_files:
        place: dict[int, tuple[str, BinaryIO]] = {}  # row number -> its batch
        taken = 0
        for kind, name, n in names:
            batch = open_files.enter_context((folder / "batches" / name).open("wb"))
            batch.write(header)
            place |= dict.fromkeys(drawn[taken : taken + n].tolist(), (kind, batch))
            taken += n
        target: BinaryIO = open_files.enter_context(base.open("wb"))
        target.write(header)
        for number, line in enumerate(_lines(whole)):
            kind, out = place.get(number, ("", target))
            out.write(line)
            if kind == "delete":
                target.write(line)
    whole.unlink()


def _header(csv: Path) -> bytes:
    with csv.open("rb") as source:
        return source.readline()


def _lines(csv: Path) -> Iterator[bytes]:
    """The rows of a CSV, as lines."""
    with csv.open("rb") as source:
        source.readline()
        yield from source


def _count_lines(csv: Path) -> int:
    with csv.open("rb") as source:
        return sum(block.count(b"\n") for block in iter(lambda: source.read(1 << 24), b""))


if __name__ == "__main__":
    for text in sys.argv[1:]:
        made = tpch(float(text))
        made.ensure_files()
        print(made.folder, made.n_rows, made.n_columns)
