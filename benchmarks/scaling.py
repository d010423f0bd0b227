"""A table tracked on a Spark cluster, with one executor and with two, of one core each: how much sooner.

The cluster is a standalone one on this machine, made for the run (`tests/trust/cluster.py`); the workspace is
in a folder that all see. The driver has no core of its own, so on a machine of two cores the second executor
shares one with it. Executors work on a small table first: what is measured is not their start.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks import tables
from benchmarks.report import run_plainly, say

TESTS = Path(__file__).resolve().parents[1] / "tests"
RESULTS = Path(__file__).resolve().parent / "results"
FILE_ROWS, GROUP_ROWS = 500_000, 250_000
Json = dict[str, Any]

DRIVER = """
import time
import holdfast

root, source, first = sys.argv[1:4]
with holdfast.open(root + "-small", engine="spark", spark=spark) as ws:
    ws.track("t", first)
with holdfast.open(root, engine="spark", spark=spark) as ws:
    started = time.perf_counter()
    ws.track("t", source)
    print(json.dumps({"seconds": time.perf_counter() - started, "keys": len(ws.dependencies("ucc"))}))
"""


def run(n_rows: int, scratch: Path) -> list[Json]:
    sys.path.insert(0, str(TESTS))
    from trust import cluster

    source = scratch / "source"
    source.mkdir()
    for start in range(0, n_rows, FILE_ROWS):
        part = tables.lineitem(min(FILE_ROWS, n_rows - start), start=start, table_rows=n_rows)
        pq.write_table(part, source / f"{start:012d}.parquet", row_group_size=GROUP_ROWS)
    cases: list[Json] = []
    (scratch / "spark").mkdir()
    with cluster.started(scratch / "spark") as machines:
        for n_executors in (1, 2):
            arguments = (str(scratch / f"ws-{n_executors}"), str(source), str(min(source.iterdir())))
            settings = {"spark.cores.max": str(n_executors), "spark.executor.memory": "1g"}
            done = machines.run(DRIVER, *arguments, cwd=scratch, **settings)
            if done.returncode:
                raise RuntimeError(done.stderr)
            cases.append({"executors": n_executors, **json.loads(done.stdout)})
            say(json.dumps(cases[-1]))
    return cases


def write_results(results: Json, folder: Path, stem: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stem}.json").write_text(json.dumps(results, indent=1) + "\n")
    one, two = (case["seconds"] for case in results["cases"])
    lines = [
        "# One executor and two",
        "",
        f"{results['date']}, `{results['command']}`, {results['n_rows']:,} rows x 16 columns (lineitem, "
        "Parquet), keys, on a machine of "
        f"{results['machine']['cores']} cores.",
        "",
        "| executors of one core | seconds | times as fast |",
        "|---|---|---|",
        f"| 1 | {one:.1f} | |",
        f"| 2 | {two:.1f} | {one / two:.2f} |",
    ]
    (folder / f"{stem}.md").write_text("\n".join(lines) + "\n")


def main(argv: list[str] | None = None) -> int:
    return run_plainly("scaling", argv, (10_000_000, 1_000_000), run, write_results, __doc__)


if __name__ == "__main__":
    sys.exit(main())
