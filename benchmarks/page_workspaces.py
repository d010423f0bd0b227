"""Workspaces for the benchmark of the page: large, and made in seconds.

The tables are real: they are tracked, and their covers have as many dependencies as are asked for. The
history is not: to apply 10,000 batches takes most of an hour. So their rows of the ledger are made up, and
written by the store's own writer, in files as compaction leaves them; a table's state stays that of its first
version.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

SEED = 11
VERSIONS_A_FILE = 500
START = datetime(2026, 1, 1, tzinfo=UTC)
EVERY = timedelta(minutes=7)


def random_table(number: int, n_columns: int, n_rows: int, n_values: int) -> pa.Table:
    """A key, a reference to the table before it, and columns of few values, of which many decide others."""
    random = np.random.default_rng([SEED, number])
    first, before = number * n_rows, max(0, number - 1) * n_rows
    columns = {"id": np.arange(first, first + n_rows), "parent": before + random.integers(0, n_rows, n_rows)}
    columns |= {f"c{i}": random.integers(0, n_values, n_rows) for i in range(n_columns - 2)}
    return pa.table(columns)


def referring_tables(n: int, n_references: int) -> dict[str, pa.Table]:
    """Tables of which four in five refer to the keys of others, the first ones more often."""
    chance, n_rows = random.Random(7), 24
    columns = {
        f"table_{i:02}": {
            f"table_{i:02}_id": [f"{i}-{j}" for j in range(n_rows)],
            **{f"fact_{k}": [f"{i}/{k}/{j}" for j in range(n_rows)] for k in range(chance.randrange(5))},
        }
        for i in range(n)
    }
    n_referring = 82 * n // 100
    pairs = {(i, chance.randrange(min(i, 12))) for i in range(1, n_referring)}
    while len(pairs) < n_references:
        i = chance.randrange(1, n_referring)
        pairs.add((i, min(i - 1, int(chance.expovariate(1 / 15)))))
    for child, parent in sorted(pairs):
        ids = columns[f"table_{parent:02}"][f"table_{parent:02}_id"]
        columns[f"table_{child:02}"][f"table_{parent:02}_id"] = chance.choices(ids, k=n_rows)
    return {name: pa.table(table) for name, table in columns.items()}


def tracked(path: Path, n_tables: int, **shape: int) -> int:
    """Track tables `t0`, `t1` ...; how many dependencies hold in them."""
    import holdfast

    with holdfast.open(str(path), engine="inline") as ws:
        for first in range(0, n_tables, 10):
            some = range(first, min(first + 10, n_tables))
            tables = {f"t{i}": random_table(i, **shape) for i in some}
            ws.track_all(tables, kinds=("ucc", "fd", "ind"), exclude=("c*",))
        return len(ws.dependencies())


def with_history(path: Path, n_versions: int) -> int:
    """Add versions until there are so many, as if batches had been applied; how many changes they have."""
    import holdfast
    from holdfast.core.store.ledger_files import LedgerFiles

    with holdfast.open(str(path), engine="inline") as ws:
        names = [table for table in ws.tables() if ws.n_rows(table)]
        newest = {c.table: c for c in ws.ledger.states() if c.table in names}
        version, heads = ws.version, ws.ledger.heads()
    files, n_changes = LedgerFiles.open(path), 0
    history = made_up(version, n_versions, heads, [newest[name] for name in names])
    while version < n_versions:
        blocks = [block for _, block in zip(range(VERSIONS_A_FILE), history, strict=False)]
        first, version = version + 1, version + len(blocks)
        n_changes += sum(block.num_rows - 1 for block in blocks)
        write(files, first, version, pa.concat_tables(blocks))
    files.checkpoint()
    return n_changes


def made_up(version: int, last: int, heads: dict[str, int], tables: Sequence[Any]) -> Iterator[pa.Table]:
    """The rows of versions after one, until the last: each a batch of one table, which breaks a few
    dependencies and lets others appear; now and then an inclusion breaks, and holds again two versions on."""
    from holdfast.core.store.ledger_rows import ChangeRow, CommitRow, commit_block, commit_cells

    random = np.random.default_rng(SEED)
    n_rows = [100] * len(tables)
    while version < last:
        version += 1
        number = int(random.integers(1, len(tables)))
        commit, n_new = tables[number], int(random.integers(1, 20))
        n_rows[number] += n_new
        name, at = commit.table, START + version * EVERY
        detail = {**commit.detail, "n_inserted": n_new, "n_deleted": 0, "n_rows": n_rows[number]}
        row = CommitRow(name, "apply", commit.state, detail, f"batch-{version}", version, at)
        heads = {**heads, name: version}
        changes = []
        for _ in range(int(random.integers(0, 9))):
            left, right = (f"c{i}" for i in random.choice(10, 2, replace=False))
            event = "broke" if random.random() < 0.6 else "appeared"
            fd = {"kind": "fd", "table": name, "lhs": ["parent", left], "rhs": right}
            witness = [[{"row": k, "values": {"id": k, "parent": k, left: 1, right: k}} for k in (1, 2)]]
            changes.append(ChangeRow(name, "fd", event, fd, "does not hold any more", witness))
        if version % 50 < 2:
            to = {"table": f"t{version // 50 % len(tables)}", "columns": ["id"]}
            ind = {"kind": "ind", "dependent": {"table": name, "columns": ["parent"]}, "referenced": to}
            event = "appeared" if version % 50 else "broke"
            changes.append(ChangeRow(name, "ind", event, ind, "misses 1 value in 1 row: 7"))
        yield commit_block([commit_cells(replace(row, heads=heads))], changes)


def write(files: Any, first: int, last: int, block: pa.Table) -> None:
    """A file of some versions becomes part of the ledger, as an append does."""
    from holdfast.core.store.files import write_file
    from holdfast.core.store.ledger_files import add_action, content_name
    from holdfast.core.store.ledger_rows import to_parquet

    content = to_parquet(block)
    ref = write_file(files.root, content_name(f"commits-{first:08d}-{last:08d}", content), [content])
    action = add_action(ref, first, last, block.num_rows, moves_rows=False)
    if not files.swap(files.refresh(), [action], ref.name, {"holdfastVersion": last}):
        raise RuntimeError("somebody else writes to the workspace of the benchmark")
