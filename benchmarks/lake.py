"""The benchmark of lakes: inclusions among thousands of small web tables, kept while tables come and go.

The corpora are those of `corpora.py`. Each part runs in a process of its own and in a warm session (Spark
started, kernels loaded, on a lake in another workspace):

1. all: 2,000 tables without filters, by both proposers and both strategies of signatures;
2. many: 10,000 tables without filters, some 90 million inclusions, and questions about one table among them;
3. filtered: 100,000 tables with all filters, from reading to the graph; then 100 tables are added, 100
   dropped and 100 replaced, several times;
4. proposers: corpora of several sizes with all filters, by each proposer and strategy;
5. blooms: 10,000 tables through signatures of several sizes (m, k, p);
6. page: the explorer with 10,000 nodes in view, in headless Chromium;
7. vast: 409,600 and 1,000,000 tables with all filters, from reading to the graph.

The inclusions are compared, pair by pair, with those of an inverted index in plain Python: after 1 and 2, and
in 3 at the start and after all steps; in 7 those of some tables, either way, with a pass over all columns. A
difference is an error: it heads the report and sets exit code 1.

    python -m benchmarks.lake [--modes all,many] [--quick] [--render]
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import re
import shlex
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import corpora, tables
from benchmarks.corpora import WebTable
from benchmarks.lake_report import draw, loud, markdown
from benchmarks.measure import Meter
from benchmarks.report import RESULTS, Json, busy, machine, run_process_group, say, versions

Ints = npt.NDArray[np.int64]

WAYS = (("index", "dep2refs"), ("signatures", "dep2refs"), ("signatures", "ref2deps"))
BLOOMS = ((64, 2, 1), (128, 3, 1), (300, 4, 1), (650, 6, 1), (650, 6, 2), (1_300, 6, 1), (1_500, 10, 3))
STEP = 100  # tables that are added, dropped or replaced at once
STEPS = 3  # times each
NODES = 10_000  # in view of the page
VISITS = 5
QUESTIONS = 25  # about tables from all over the lake
SAMPLED = 100  # tables of a vast lake whose inclusions are checked
WIDTH = 64  # more than a table of the corpora has columns
TAU = 0.2
NULL_LIKE = frozenset(corpora.NOTHING)
INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)


@dataclass(frozen=True)
class Sizes:
    """How many tables each part takes."""

    all: int = 2_000
    many: int = 10_000
    filtered: int = 100_000
    proposers: tuple[int, ...] = (2_500, 10_000, 50_000)
    blooms: int = 10_000
    vast: tuple[int, ...] = (409_600, 1_000_000)
    warm_up: int = 10_000  # more bytes than the driver reads itself: the workers are warmed up too


FULL = Sizes()
QUICK = Sizes(200, 500, 1_000, (250, 500), 500, (2_000,), 200)


# --- what holds, in plain Python ----------------------------------------------------------------


class Truth:
    """The inclusions of some tables, as sorted numbers dependent * n + referenced of n columns."""

    def __init__(self, named: Iterable[tuple[str, WebTable]], filters: bool) -> None:
        self.first: dict[str, int] = {}  # of each table: the number of its first column
        sets: list[frozenset[str]] = []
        n_rows: list[int] = []
        for name, table in named:
            self.first[name] = len(sets)
            own = corpora.value_sets([table])
            sets += own
            n_rows += [len(table.rows)] * len(own)
        self.n = len(sets)
        dependents = references = [c for c in range(self.n) if sets[c]]
        if filters:
            dependents = [c for c in dependents if is_meant(sets[c])]
            # Unique: no value is there twice, and no cell is missing.
            references = [c for c in dependents if len(sets[c]) == n_rows[c]]
        sizes = np.array([len(values) for values in sets], dtype=np.int64)
        found: list[Ints] = []
        for dependent, referenced in corpora.inds_by_postings(sets, dependents, references):
            if filters:
                referenced = referenced[sizes[dependent] >= TAU * sizes[referenced]]
            found.append(dependent * self.n + referenced)
        self.pairs = np.sort(np.concatenate(found)) if found else np.empty(0, dtype=np.int64)


def is_meant(values: frozenset[str]) -> bool:
    """Whether a column has values, other than what stands for nothing, that are not all integers.

    >>> is_meant(frozenset(["a", "1"])), is_meant(frozenset(["?", "1"])), is_meant(frozenset(["?", ""]))
    (True, False, False)
    """
    return any(not INTEGER.fullmatch(value) for value in values - NULL_LIKE)


class SampledTruth:
    """The inclusions of some tables of a corpus, with all filters and either way, by a pass over all columns.

    Pairs are numbered as those of `Truth`, with `WIDTH` columns to a table.
    """

    def __init__(self, file: Path, n_tables: int) -> None:
        self.n = n_tables * WIDTH
        self.first = {f"{file.name}#{i + 1}": i * WIDTH for i in range(n_tables)}
        step = max(1, n_tables // SAMPLED)
        self.sample = [f"{file.name}#{i + 1}" for i in range(0, n_tables, step)]
        # Of the sample: each column's values; whether it may be dependent, or referenced; and by value.
        sample: dict[int, tuple[frozenset[str], bool, bool]] = {}
        having: dict[str, list[int]] = {}
        telling: dict[str, list[int]] = {}
        for i in range(0, n_tables, step):
            for number, column in _columns(i, next(corpora.corpus(1, i))):
                sample[number] = column
                for value in column[0]:
                    having.setdefault(value, []).append(number)
                if column[1]:
                    telling.setdefault(max(column[0], key=lambda v: (len(v), v)), []).append(number)
        pairs: set[int] = set()
        for i, table in enumerate(corpora.corpus(n_tables)):
            for number, (values, dependent, referenced) in _columns(i, table):
                if referenced:
                    for other in itertools.chain.from_iterable(telling.get(v, ()) for v in values):
                        theirs = sample[other][0]
                        if other != number and len(theirs) >= TAU * len(values) and theirs <= values:
                            pairs.add(other * self.n + number)
                if dependent:
                    for other in having.get(next(iter(values)), ()):
                        theirs, _, is_referenced = sample[other]
                        if not is_referenced or other == number or len(values) < TAU * len(theirs):
                            continue
                        if values <= theirs:
                            pairs.add(number * self.n + other)
        self.pairs = np.array(sorted(pairs), dtype=np.int64)


def _columns(i: int, table: WebTable) -> Iterable[tuple[int, tuple[frozenset[str], bool, bool]]]:
    """The number of each column, its values, and whether it may be dependent, or referenced."""
    for c, values in enumerate(corpora.value_sets([table])):
        dependent = is_meant(values)
        yield i * WIDTH + c, (values, dependent, dependent and len(values) == len(table.rows))


def check(what: str, ws: Any, truth: Truth | SampledTruth) -> Json:
    """Compare the inclusions of a workspace with the true ones."""
    ours = found_pairs(ws, truth)
    equal = np.array_equal(ours, truth.pairs)
    told: Json = {"what": what, "ours": len(ours), "theirs": len(truth.pairs), "equal": equal}
    if not equal:
        for side, a, b in (("only_ours", ours, truth.pairs), ("only_theirs", truth.pairs, ours)):
            told[side] = [divmod(int(p), truth.n) for p in np.setdiff1d(a, b)[:5]]
    say(f"  {what}: {len(ours):,} inclusions, {'equal' if equal else 'DIFFERENT'}")
    return told


def found_pairs(ws: Any, truth: Truth | SampledTruth) -> Ints:
    """The inclusions of a workspace, in the numbers of `truth`; -1 for a table that it does not know."""
    from holdfast.lakes.state import Part

    lake = ws.lake()
    state = lake.state
    parts = [(Part(ws.root, ref), ref) for ref in state.parts]
    table_of = np.concatenate([part.array("table_of") + ref.first_table for part, ref in parts])
    begins = np.searchsorted(table_of, np.arange(state.next_table))
    first = np.full(state.next_table, -1, dtype=np.int64)
    for batch in lake.nodes():
        names = batch["name"].to_pylist()
        first[np.asarray(batch["table"])] = [truth.first.get(name, -1) for name in names]
    number = first[table_of] + np.arange(len(table_of)) - begins[table_of]
    number[first[table_of] < 0] = -1
    found: list[Ints] = [np.empty(0, dtype=np.int64)]
    sample = truth.sample if isinstance(truth, SampledTruth) else (None,)
    for batch in itertools.chain.from_iterable(map(lake.inds, sample)):
        dependent, referenced = (number[np.asarray(batch[name])] for name in ("dependent", "referenced"))
        pairs = dependent * truth.n + referenced
        pairs[(dependent < 0) | (referenced < 0)] = -1
        found.append(pairs)
    return np.unique(np.concatenate(found))  # one between two sampled tables is told by both


def named(file: Path, made: Iterable[WebTable]) -> Iterable[tuple[str, WebTable]]:
    """Tables with the names that they have as lines of a file."""
    return ((f"{file.name}#{i + 1}", table) for i, table in enumerate(made))


# --- one part, in its own process ---------------------------------------------------------------


def warm_up(workspace: Path, sizes: Sizes) -> None:
    """Start the session: Spark with its workers, and all kernels, on a lake of its own."""
    import holdfast
    from holdfast.core.engine.engine import echo

    with Meter() as meter, holdfast.open(str(workspace)) as ws:
        for _ in range(2):
            ws.writer.engine.run(
                echo, [{"task": i} for i in range(4 * ws.writer.engine.cores)], where="spark"
            )
        source = corpora.json_lines(sizes.warm_up)
        for proposer, strategy in WAYS:
            ws.link(source, anew=True, proposer=proposer, strategy=strategy)
        ws.link(corpora.json_lines(STEP, edition=1), add=True)
        ws.unlink(f"{source.name}#1")
    shutil.rmtree(workspace, ignore_errors=True)
    say(f"  session and warm-up {meter.elapsed_s:.1f} s")


def timed(work: Callable[[], Any], memory: bool = False) -> Json:
    """Do one step on a lake: its seconds, in all and by phase, and what it says."""
    with Meter(memory=memory) as meter:
        change = work()
    told = change.to_dict()
    found: Json = {"elapsed_s": meter.elapsed_s, "peak_bytes": meter.peak_bytes}
    found["phases"] = [(phase["name"], phase["seconds"]) for phase in told["phases"]]
    for field in ("n_tables", "n_columns", "n_inds", "n_components", "removed", "proposer", "n_bad"):
        found[field] = told[field]
    memory_text = "" if meter.peak_bytes is None else f", {meter.peak_bytes / 1e9:.2f} GB"
    phases = ", ".join(f"{name} {seconds:.2f}" for name, seconds in found["phases"])
    say(f"  {told['action']} {meter.elapsed_s:.2f} s{memory_text}, {told['n_inds']:,} inclusions ({phases})")
    return found


def bytes_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def measure_all(sizes: Sizes, scratch: Path, out: Json) -> None:
    import holdfast

    file = corpora.json_lines(sizes.all)
    with Meter() as meter:
        truth = Truth(named(file, corpora.corpus(sizes.all)), filters=False)
    out.update(plain_s=meter.elapsed_s, runs=[], agreement=[])
    for proposer, strategy in (("auto", "dep2refs"), *WAYS):
        with holdfast.open(str(scratch / f"all-{proposer}-{strategy}.hold")) as ws:
            run = timed(lambda ws=ws, how=(proposer, strategy): link_all(ws, file, *how))
            out["runs"].append({"way": proposer, "strategy": strategy, **run})
            out["agreement"].append(check(f"{sizes.all:,} tables, {proposer}, {strategy}", ws, truth))


def link_all(ws: Any, file: Path, proposer: str, strategy: str) -> Any:
    return ws.link(file, filters=(), proposer=proposer, strategy=strategy)


def measure_many(sizes: Sizes, scratch: Path, out: Json) -> None:
    import holdfast

    file = corpora.json_lines(sizes.many)
    with holdfast.open(str(scratch / "many.hold")) as ws:
        out.update(timed(lambda: ws.link(file, filters=()), memory=True))
        out["bytes"] = bytes_of(ws.root)
        out["questions"] = questions(scratch / "many.hold", file, sizes.many)
        truth = Truth(named(file, corpora.corpus(sizes.many)), filters=False)
        out["agreement"] = [check(f"{sizes.many:,} tables, no filters", ws, truth)]


def questions(workspace: Path, file: Path, n_tables: int) -> Json:
    """Seconds of the best joins of one table: of the first question to an opened workspace, and of others."""
    import holdfast

    seconds = []
    with holdfast.open(str(workspace)) as ws:
        for i in np.linspace(1, n_tables, QUESTIONS, dtype=np.int64).tolist():
            with Meter(memory=False) as meter:
                ws.lake().joins(f"{file.name}#{i}")
            seconds.append(meter.elapsed_s)
    return {"first_s": seconds[0], "seconds": seconds[1:]}


def measure_vast(sizes: Sizes, scratch: Path, out: Json) -> None:
    import holdfast

    out.update(runs=[], agreement=[])
    for n in sizes.vast:
        file = corpora.json_lines(n)
        with holdfast.open(str(scratch / f"vast-{n}.hold")) as ws:
            run = timed(lambda ws=ws, file=file: ws.link(file), memory=True)
            run |= {"bytes": bytes_of(ws.root), "source_bytes": file.stat().st_size}
            out["runs"].append(run)
            truth = SampledTruth(file, n)
            what = f"{n:,} tables, all filters: those of {len(truth.sample)} tables"
            out["agreement"].append(check(what, ws, truth))
        shutil.rmtree(scratch / f"vast-{n}.hold")


def measure_filtered(sizes: Sizes, scratch: Path, out: Json) -> None:
    """Nothing of the tables is kept in this process, whose memory is measured: only where they come from."""
    import holdfast

    n = sizes.filtered
    file = corpora.json_lines(n, name="tables.jsonl")
    lake: dict[str, Origin] = {f"{file.name}#{i + 1}": (0, i) for i in range(n)}
    out.update(source_bytes=file.stat().st_size, agreement=[], steps=[])

    def add_tables(kind: str, first: int, edition: int, name: str) -> None:
        source = corpora.json_lines(STEP, first, edition=edition, name=name)
        run = timed(lambda: ws.link(source, **{kind: True}))
        lake.update({f"{name}#{i + 1}": (edition, first + i) for i in range(STEP)})
        out["steps"].append({"kind": kind, **run})

    with holdfast.open(str(scratch / "filtered.hold")) as ws:
        out["link"] = timed(lambda: ws.link(file), memory=True)
        out["bytes"] = bytes_of(ws.root)
        out["agreement"].append(check(f"{n:,} tables, all filters", ws, Truth(remade(lake), filters=True)))
        for turn in range(STEPS):
            # Other tables about old topics: they join with what is there.
            add_tables("add", turn * corpora.BLOCK % n, 2, f"more-{turn}.jsonl")
            gone = list(lake)[n // 2 : n // 2 + STEP]
            out["steps"].append({"kind": "drop", **timed(lambda gone=gone: ws.unlink(*gone))})
            for name in gone:
                del lake[name]
            # The first lines of a file of the same name: the same tables, changed.
            add_tables("replace", 0, 3 + turn, file.name)
        out["bytes_after"] = bytes_of(ws.root)
        out["agreement"].append(check("after all steps", ws, Truth(remade(lake), filters=True)))


Origin = tuple[int, int]  # edition, number in the corpus


def remade(lake: dict[str, Origin]) -> Iterable[tuple[str, WebTable]]:
    """The tables of a lake, made again; block by block, so that few are there at once."""
    by_block: dict[Origin, list[tuple[str, int]]] = {}
    for name, (edition, number) in lake.items():
        at = edition, number // corpora.BLOCK
        by_block.setdefault(at, []).append((name, number % corpora.BLOCK))
    for (edition, number), wanted in by_block.items():
        made = corpora.block(tables.SEED, number, edition)
        for name, position in wanted:
            yield name, made[position]


def measure_proposers(sizes: Sizes, scratch: Path, out: Json) -> None:
    import holdfast

    out["runs"] = []
    for n in sizes.proposers:
        file = corpora.json_lines(n)
        for proposer, strategy in WAYS:
            workspace = scratch / "proposers.hold"
            with holdfast.open(str(workspace)) as ws:
                how = {"proposer": proposer, "strategy": strategy}
                run = timed(lambda ws=ws, file=file, how=how: ws.link(file, **how))
            out["runs"].append({"way": proposer, "strategy": strategy, **run})
            shutil.rmtree(workspace)
    out["agreement"] = same_counts(out["runs"])


def measure_blooms(sizes: Sizes, scratch: Path, out: Json) -> None:
    import holdfast

    out["runs"] = []
    file = corpora.json_lines(sizes.blooms)
    for m, k, p in BLOOMS:
        workspace = scratch / "blooms.hold"
        with holdfast.open(str(workspace)) as ws:
            how = {"proposer": "signatures", "m": m, "k": k, "p": p}
            run = timed(lambda ws=ws, how=how: ws.link(file, **how))
            part = ws.lake().state.parts[0]
            run["signature_bytes"] = sum(part.arrays[name].length for name in ("signatures", "matrix"))
        out["runs"].append({"m": m, "k": k, "p": p, **run})
        shutil.rmtree(workspace)
    out["agreement"] = same_counts(out["runs"])


def same_counts(runs: list[Json]) -> list[Json]:
    """Runs on the same tables must find equally many inclusions."""
    found = []
    for n in sorted({run["n_tables"] for run in runs}):
        counts = [run["n_inds"] for run in runs if run["n_tables"] == n]
        told = {"what": f"{n:,} tables, all runs", "ours": min(counts), "theirs": max(counts)}
        found.append({**told, "equal": len(set(counts)) == 1})
    return found


# --- the page -----------------------------------------------------------------------------------


def page_tables(n: int) -> Iterable[WebTable]:
    """Tables that make one component: each has a key of its own and refers to three others."""
    for i in range(n):
        others = (i // 3, (7 * i + 1) % n, (13 * i + 5) % n)
        rows = [[f"n{i}", *(f"n{j}" for j in others)], [f"k{i}", *(f"n{j}" for j in others)]]
        yield WebTable(f"t{i}", ["key", "a", "b", "c"], rows)


def measure_page(sizes: Sizes, scratch: Path, out: Json) -> None:
    """First paint of a component of 10,000 tables, the largest that is not shown as clusters."""
    import holdfast
    from holdfast.app.explorer.api import Explorer
    from holdfast.app.explorer.server import ExplorerServer

    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        out["skipped"] = "no Chromium here"
        return
    file = scratch / "page.jsonl"
    corpora.write_json_lines(page_tables(NODES), file)
    with holdfast.open(str(scratch / "page.hold"), engine="inline") as ws:
        out["link"] = timed(lambda: ws.link(file))
        explorer = Explorer(ws)
        server = ExplorerServer(explorer)
        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        try:
            out["visits"] = visits(browser, server.address, server.page_address)
        finally:
            server.shutdown()
            server.server_close()
            explorer.close()


def visits(browser: str, address: str, page_address: str) -> list[Json]:
    """Milliseconds from the start of the navigation to the first paint; a fresh context each time."""
    from playwright.sync_api import sync_playwright

    found: list[Json] = []
    with sync_playwright() as started:
        launched = started.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for _ in range(VISITS):
            context = launched.new_context(viewport={"width": 1440, "height": 900})
            page = context.new_page()
            page.goto(address)  # gives the cookie
            page.wait_for_url(page_address)
            page.goto("about:blank")
            page.goto(f"{page_address}#component=0")
            end = time.monotonic() + 60
            while not page.evaluate("window.__holdfast !== undefined && window.__holdfast.nodes > 0"):
                if time.monotonic() > end:
                    raise TimeoutError("the page painted nothing within a minute")
                page.wait_for_timeout(20)
            told = page.evaluate("({painted: window.__holdfast.painted, nodes: window.__holdfast.nodes})")
            found.append(told)
            say(f"  page: {told['nodes']:,} nodes painted after {told['painted']:.0f} ms")
            context.close()
        launched.close()
    return found


# --- all parts ----------------------------------------------------------------------------------

MODES: dict[str, Callable[[Sizes, Path, Json], None]] = {
    "all": measure_all,
    "many": measure_many,
    "filtered": measure_filtered,
    "proposers": measure_proposers,
    "blooms": measure_blooms,
    "page": measure_page,
    "vast": measure_vast,
}


def run_child(name: str, sizes: Sizes, scratch: Path, out_file: Path) -> None:
    out: Json = {}
    try:
        if name != "page":
            warm_up(scratch / "warm.hold", sizes)
        MODES[name](sizes, scratch, out)
    except Exception as error:
        traceback.print_exc()
        out["error"] = without_paths(f"{type(error).__name__}: {error}")[:2_000]
    out_file.write_text(json.dumps(out))


def without_paths(text: str) -> str:
    """
    >>> without_paths("no file '/home/me/lake.hold/a.npy' there")
    "no file '.../a.npy' there"
    """
    return re.sub(r"(?<![\w.])/(?:[^\s/'\"]+/)+", ".../", text)


def run_part(name: str, quick: bool, scratch: Path) -> Json:
    """Measure one part in a child process; its workspaces are removed afterwards."""
    say(f"lake: {name}")
    folder = scratch / name
    folder.mkdir()
    command = [sys.executable, "-m", "benchmarks.lake", "--child", name, "--child-scratch", str(folder)]
    code = run_process_group([*command, *(["--quick"] if quick else [])])
    out_file = folder / "out.json"
    result: Json = json.loads(out_file.read_text()) if out_file.exists() else {}
    if code and "error" not in result:
        result["error"] = f"the measuring process ended with code {code}"
    shutil.rmtree(folder, ignore_errors=True)
    return result


def write_results(results: Json, folder: Path, stem: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stem}.json").write_text(json.dumps(results, indent=1) + "\n")
    draw(results, folder / f"{stem}.png")
    (folder / f"{stem}.md").write_text(markdown(results, f"{stem}.png"))


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lake", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small lakes only; results as lake-quick.*")
    parser.add_argument("--modes", default=None, help=f"some of {', '.join(MODES)}; all by default")
    # Known to all benchmarks; here no peer is run.
    parser.add_argument("--no-peers", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--timeout", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--render", action="store_true", help="only write the report and plot again")
    parser.add_argument("--child", choices=list(MODES), help=argparse.SUPPRESS)
    parser.add_argument("--child-scratch", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    args.modes = args.modes.split(",") if args.modes else list(MODES)
    if unknown := set(args.modes) - set(MODES):
        parser.error(f"no mode {', '.join(sorted(unknown))}; there are {', '.join(MODES)}")
    return args


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    args = parse(argv)
    if args.child:
        sizes = QUICK if args.quick else FULL
        run_child(args.child, sizes, args.child_scratch, args.child_scratch / "out.json")
        return 0
    stem = "lake-quick" if args.quick else "lake"
    if args.render:
        write_results(json.loads((args.results / f"{stem}.json").read_text()), args.results, stem)
        return 0
    command = shlex.join(["python", "-m", "benchmarks.lake", *argv])
    results: Json = {
        "command": without_paths(command),
        "date": datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
        "machine": machine(),
        "versions": versions(("playwright",)),
        "seed": tables.SEED,
        "modes": {},
    }
    for line in busy(results):
        say(line)
    tables.DATA.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="run-", dir=tables.DATA))
    try:
        results["corpus"] = corpora.described(QUICK.all if args.quick else FULL.all)
        for name in args.modes:
            results["modes"][name] = run_part(name, args.quick, scratch)
            write_results(results, args.results, stem)  # after each part: a long run may be stopped
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    troubles = loud(results)
    for line in troubles:
        say(line)
    say(f"wrote {stem}.md, .json and .png")
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
