"""The benchmark of the page: how long somebody waits for a view, in headless Chromium.

Each part makes a workspace and visits a view of it several times, each time in a fresh context, with a server
that was just started. Times are those that the page marks itself (`performance.mark`), from the start of the
navigation:

1. overview: 50 tables, 10,000 versions, 300,000 dependencies: first paint (`holdfast-painted-overview`);
2. table: one with 300,000 functional dependencies: first list (`holdfast-painted-table`), and a filter by
   column (`holdfast-filtered`), from the change of the address to the list, of several columns;
3. map: 100 tables with 200 references: first paint (`holdfast-painted-map`), and edges that go through a box;
4. lake: 100,000 tables, of which 10,000 are one component: the overview of components
   (`holdfast-painted-lake`), and the graph of that component (`holdfast-first-paint`).

A view that marks nothing is told to be not there; a workspace that is too small, to be that.

    python -m benchmarks page [--modes overview,table] [--quick] [--render]
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import shlex
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import corpora
from benchmarks.lake import page_tables
from benchmarks.page_report import markdown
from benchmarks.page_workspaces import SEED, referring_tables, tracked, with_history
from benchmarks.report import RESULTS, Json, busy, machine, say, versions

VISITS = 5
PATIENCE_S = 60.0
VIEWPORT = {"width": 1440, "height": 900}
# The columns of the wide table that its list is filtered by, one after the other.
FILTERED = ("c3", "c1", "c8", "c5", "c10")
# How many references of the map pass through a box, their own tables' included, by points of their paths.
CROSSINGS = """() => {
  const boxes = [...document.querySelectorAll("[data-table]")].map((node) => {
    return node.querySelector(".box").getBoundingClientRect();
  });
  const crosses = (reference) => [...reference.querySelectorAll("path.way")].some((path) => {
    const matrix = path.getScreenCTM(), length = path.getTotalLength(), edge = 1;
    for (let at = 0; at <= length; at += 4) {
      const { x, y } = path.getPointAtLength(at).matrixTransform(matrix);
      const between = (low, value, high) => value > low + edge && value < high - edge;
      const inside = (box) => between(box.left, x, box.right) && between(box.top, y, box.bottom);
      if (boxes.some(inside)) return true;
    }
    return false;
  });
  const references = [...document.querySelectorAll("[data-child]")];
  return { crossings: references.filter(crosses).length, n_drawn: references.length };
}"""


@dataclass(frozen=True)
class Sizes:
    tables: int = 50
    versions: int = 10_000
    columns: int = 15  # of each table: some 6,500 dependencies
    wide_columns: int = 24
    wide_rows: int = 127  # with these 324,751 dependencies
    mapped: int = 100
    references: int = 200
    dependencies: int = 300_000  # at least, of all tables, and of the wide one
    lake: int = 100_000
    component: int = 10_000


FULL = Sizes()
QUICK = Sizes(5, 200, 10, 12, 60, 10, 12, 500, 1_000, 100)


@contextlib.contextmanager
def served(workspace: Path) -> Iterator[Any]:
    """A server on a workspace, as `holdfast explore` starts one, without the head start that gives itself."""
    import holdfast
    from holdfast.app.explorer import Explorer, ExplorerServer

    with holdfast.open(str(workspace), engine="inline") as ws:
        explorer = Explorer(ws)
        with ExplorerServer(explorer) as server:
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            try:
                yield server
            finally:
                server.shutdown()
                explorer.close()


def visits(workspace: Path, hash_: str, mark: str, then: Callable[[Any], Json] | None = None) -> Json:
    """Milliseconds to a mark of a view, of several visits; `then` looks at the page of the last one.

    Each visit has a server of its own, so that all are first visits.
    """
    from playwright.sync_api import sync_playwright

    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        return {"skipped": "no Chromium here"}
    visited: Json = {"mark": mark, "ms": []}
    with sync_playwright() as started:
        launched = started.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for visit in range(VISITS):
            with served(workspace) as server:
                context = launched.new_context(viewport=VIEWPORT)
                page = context.new_page()
                # The cookie, without a question to the server: the visit that is measured asks the first one.
                context.add_cookies([{"name": "holdfast", "value": server.token, "url": server.page_address}])
                page.goto(f"{server.page_address}{hash_}")
                ms = marked(page, mark)
                if ms is None:
                    visited["skipped"] = f"the page marked no {mark} within {PATIENCE_S:.0f} s"
                    break
                visited["ms"].append(ms)
                say(f"  {mark}: {ms:.0f} ms")
                if then is not None and visit == VISITS - 1:
                    visited.update(then(page))
                context.close()
        launched.close()
    return visited


def marked(page: Any, mark: str, after: float = -1.0) -> float | None:
    """When the page marked something after a time; None if it does not."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        times = page.evaluate("name => performance.getEntriesByName(name).map((e) => e.startTime)", mark)
        if late := [ms for ms in times if ms > after]:
            return float(late[0])
        page.wait_for_timeout(10)
    return None


# --- the parts ----------------------------------------------------------------------------------


def measure_overview(sizes: Sizes, scratch: Path) -> Json:
    path = scratch / "overview.hold"
    shape = {"n_columns": sizes.columns, "n_rows": 100, "n_values": 6}
    n = tracked(path, sizes.tables, **shape)
    n_changes = with_history(path, sizes.versions)
    say(f"  {n:,} dependencies, {sizes.versions:,} versions, {n_changes:,} changes")
    made = {
        "n_tables": sizes.tables,
        "n_versions": sizes.versions,
        "n_dependencies": n,
        "least_dependencies": sizes.dependencies,
        "n_changes": n_changes,
    }
    return {**made, "overview": visits(path, "#tab=overview", "holdfast-painted-overview")}


def measure_table(sizes: Sizes, scratch: Path) -> Json:
    """The left sides are bounded: without that a table of so many columns has millions."""
    import holdfast

    path, random = scratch / "table.hold", np.random.default_rng(SEED)
    columns = {f"c{i}": random.integers(0, 6, sizes.wide_rows) for i in range(sizes.wide_columns)}
    with holdfast.open(str(path), engine="inline") as ws:
        ws.track("wide", pa.table(columns), kinds=("fd",), max_lhs=5)
        n = len(ws.dependencies(kind="fd"))
    say(f"  {n:,} functional dependencies")

    def filtered(page: Any) -> Json:
        """From the change of the address to the list: that of a column, for several columns."""
        times = []
        for column in FILTERED:
            started = float(page.evaluate("performance.now()"))
            page.evaluate(f"location.hash = '#tab=table&name=wide&column={column}'")
            ms = marked(page, "holdfast-filtered", started)
            if ms is None:
                return {}
            times.append(ms - started)
        return {"filtered_ms": times}

    visited = visits(path, "#tab=table&name=wide", "holdfast-painted-table", filtered)
    return {"n_dependencies": n, "least_dependencies": sizes.dependencies, "table": visited}


def measure_map(sizes: Sizes, scratch: Path) -> Json:
    import holdfast

    path = scratch / "map.hold"
    with holdfast.open(str(path), engine="inline") as ws:
        ws.track_all(referring_tables(sizes.mapped, sizes.references), kinds=("ucc", "ind"))
    visited = visits(path, "#tab=map", "holdfast-painted-map", lambda page: page.evaluate(CROSSINGS))
    return {"n_tables": sizes.mapped, "n_references": sizes.references, "map": visited}


def measure_lake(sizes: Sizes, scratch: Path) -> Json:
    import holdfast

    path, n = scratch / "lake.hold", sizes.component
    one, others = scratch / "one.jsonl", corpora.json_lines(sizes.lake - n)
    corpora.write_json_lines(page_tables(n), one)
    with holdfast.open(str(path), engine="inline") as ws:
        ws.link(others, one)
    overview = visits(path, "#tab=lake", "holdfast-painted-lake")
    return {
        "n_tables": sizes.lake,
        "n_nodes": n,
        "lake": overview,
        "component": visits(path, "#component=0", "holdfast-first-paint"),
    }


MODES: dict[str, Callable[[Sizes, Path], Json]] = {
    "overview": measure_overview,
    "table": measure_table,
    "map": measure_map,
    "lake": measure_lake,
}


def run_part(name: str, sizes: Sizes) -> Json:
    """One part, with its errors as a result: they stop no other."""
    say(f"page: {name}")
    with tempfile.TemporaryDirectory(prefix="holdfast-page-", ignore_cleanup_errors=True) as scratch:
        try:
            return MODES[name](sizes, Path(scratch))
        except Exception as error:
            traceback.print_exc()
            return {"error": f"{type(error).__name__}: {error}"[:2_000]}


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m benchmarks page", description=__doc__)
    parser.add_argument("--modes", default=",".join(MODES), help="which parts, with commas between")
    parser.add_argument("--quick", action="store_true", help="small workspaces")
    parser.add_argument("--no-peers", action="store_true", help="there are none")
    parser.add_argument("--timeout", type=float, help="of peers; there are none")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--render", action="store_true", help="write the report again from page.json")
    args = parser.parse_args(argv)
    if unknown := set(args.modes.split(",")) - set(MODES):
        parser.error(f"unknown modes {', '.join(sorted(unknown))}; there are {', '.join(MODES)}")
    stem = "page-quick" if args.quick else "page"
    file = args.results / f"{stem}.json"
    if args.render:
        results = json.loads(file.read_text())
    else:
        results = {
            "command": shlex.join(["python", "-m", "benchmarks", "page", *argv]),
            "date": datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
            "machine": machine(),
            "versions": versions(("playwright",)),
        }
        for line in busy(results):
            say(line)
        sizes = QUICK if args.quick else FULL
        results["modes"] = {name: run_part(name, sizes) for name in args.modes.split(",")}
        file.write_text(json.dumps(results, indent=1) + "\n")
    (args.results / f"{stem}.md").write_text(markdown(results))
    return 1 if any("error" in mode for mode in results["modes"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
