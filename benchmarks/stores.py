"""A workspace on an object store beside one in a folder: seconds, bytes and requests of batches.

The store is S3 as moto speaks it, on the loopback address of this machine, behind a proxy that counts. A real
one is slower by its latency: some 20 to 50 ms for each round of requests. Each measurement is a process of
its own that opens the workspace anew: *warm*, the machine has copies of all files; *cold*, it has none, and
of a folder nothing in memory; then bytes are those that are read from the disk by the first batch.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import tables
from benchmarks.report import run_plainly, say

TESTS = Path(__file__).resolve().parents[1] / "tests"
RESULTS = Path(__file__).resolve().parent / "results"
Json = dict[str, Any]

# What each process does: it is timed from the opening of the workspace to the commit.
CHILD = """
import json, sys, time
from benchmarks import tables
import holdfast

root, start, n, table_rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
rows = tables.lineitem(n, start=start, table_rows=table_rows)
def n_read():
    lines = open("/proc/self/io").read().split() if sys.platform == "linux" else ["read_bytes:", "0"]
    return int(lines[lines.index("read_bytes:") + 1])
read = n_read()
started = time.perf_counter()
with holdfast.open(root, engine="inline") as ws:
    opened = time.perf_counter()
    change = ws.apply("lineitem", inserts=rows)
    applied = time.perf_counter()
    read = n_read() - read
    second = tables.lineitem(n, start=start + n, table_rows=table_rows)
    again = time.perf_counter()
    ws.apply("lineitem", inserts=second)
    seconds = {"open": opened - started, "apply": applied - opened, "again": time.perf_counter() - again}
    print(json.dumps({**seconds, "read": read}))
"""


def child(root: str, start: int, n: int, table_rows: int, variables: dict[str, str]) -> Json:
    folders = [str(TESTS.parent / "src"), str(TESTS.parent), os.environ.get("PYTHONPATH", "")]
    path = os.pathsep.join(filter(None, folders))
    done = subprocess.run(
        [sys.executable, "-c", CHILD, root, str(start), str(n), str(table_rows)],
        env={**os.environ, "PYTHONPATH": path, **variables},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    answer: Json = json.loads(done.stdout.splitlines()[-1])
    return answer


def forget(folder: Path) -> None:
    """Have the system forget what it has in memory of the files of a folder."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def run(n_rows: int, scratch: Path) -> list[Json]:
    sys.path.insert(0, str(TESTS))
    import holdfast
    from trust.object_store import Faults, environment_for, served, through

    cases: list[Json] = []
    whole = tables.lineitem(n_rows, table_rows=n_rows + 100_000)
    table_rows = n_rows + 100_000
    with served() as store:
        store.new_bucket("box")
        faults = Faults()
        with through(store, faults) as address:
            variables = environment_for(address)
            roots = {"folder": (str(scratch / "ws"), {}), "store": ("s3://box/ws", variables)}
            for name, (root, extra) in roots.items():
                cache = {**extra, "HOLDFAST_CACHE": str(scratch / "cache")}
                os.environ.update(cache)
                started = time.perf_counter()
                with holdfast.open(root, engine="inline") as ws:
                    ws.track("lineitem", whole, kinds=("ucc", "ind"))
                cases.append({"what": f"{name}: track", "seconds": time.perf_counter() - started})
                say(f"{name}: track {cases[-1]['seconds']:.2f} s")
                start = n_rows
                for n, state in ((1_000, "warm"), (1, "warm"), (1_000, "cold"), (1, "cold")):
                    if state == "cold":
                        forget(Path(root) if name == "folder" else scratch / "none")
                        shutil.rmtree(scratch / "cache", ignore_errors=True)
                    faults.seen.clear()
                    faults.n_bytes = 0
                    answer = child(root, start, n, table_rows, cache)
                    start += 2 * n
                    cases.append(
                        {
                            "what": f"{name}: {n:,} inserts, a new process, {state}",
                            "seconds": answer["open"] + answer["apply"],
                            "again": answer["again"],
                            "requests": len(faults.seen),
                            "bytes": faults.n_bytes if name == "store" else answer["read"],
                        }
                    )
                    say(json.dumps(cases[-1]))
    return cases


def write_results(results: Json, folder: Path, stem: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stem}.json").write_text(json.dumps(results, indent=1) + "\n")
    lines = [
        "# A workspace on an object store",
        "",
        f"{results['date']}, `{results['command']}`, {results['n_rows']:,} rows x 16 columns (lineitem), "
        "keys and inclusions tracked, work in one process. S3 by moto on the loopback address: no latency.",
        "",
        "What a batch of one row reads of a folder, a few pages, is not what it takes of a store: the first "
        "look at a file fetches all of it.",
        "",
        "| what | seconds, opening included | the next batch | requests of both | MB fetched by both; of a "
        "folder, MB that the first has read from the disk |",
        "|---|---|---|---|---|",
    ]
    for case in results["cases"]:
        again = f"{case['again']:.2f}" if "again" in case else ""
        requests = case.get("requests", "")
        n_bytes = f"{case['bytes'] / 1e6:.1f}" if "bytes" in case else ""
        lines.append(f"| {case['what']} | {case['seconds']:.2f} | {again} | {requests} | {n_bytes} |")
    (folder / f"{stem}.md").write_text("\n".join(lines) + "\n")


def main(argv: list[str] | None = None) -> int:
    return run_plainly("stores", argv, (1_000_000, 100_000), run, write_results, __doc__)


if __name__ == "__main__":
    sys.exit(main())
