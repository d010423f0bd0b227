"""The benchmark of inclusion dependencies: TPC-H from scratch, batches into lineitem, and the peers.

For each scale, each part in a process of its own, in a session that a small TPC-H has warmed up:

1. full: `track_all` of the eight CSV files; insert batches of 1,000, 1, 100 and 10,000 rows into lineitem,
   then delete batches of the same sizes, each read from a CSV file;
2. append-only: the same without what deletes need, and only the inserts;
3. as text: values compared as their text, as the peers do, through all batches;
4. again: `track_all` of the tables as they are after all batches;
5. Spider and Faida on the same files, and Spider on those after all batches.

And once, at scale 0.1: how well `links` ranks TPC-H's foreign keys.

The INDs are compared, pair by pair: as text with Spider's, before and after the batches; after the
batches with those from scratch, also the missing values and rows of every pair; append-only with full.
A difference is an error: it heads the report and sets exit code 1.

    python -m benchmarks.inds [--scale 0.1,1] [--quick] [--no-peers] [--modes full,links] [--render]
"""

from __future__ import annotations

import argparse
import csv as csv_reader
import datetime
import json
import shlex
import shutil
import sys
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import tables, tpch
from benchmarks.inds_report import LARGE, SMALL, draw, loud, markdown
from benchmarks.measure import Meter
from benchmarks.peers import run_peer
from benchmarks.report import RESULTS, Json, busy, machine, run_process_group, say, versions

SCALES = (SMALL, LARGE)
QUICK_SCALE = 0.01
WARM_UP_SCALE = 0.01
LINKS_MAX_COLUMNS = 3  # of a key: the widest that TPC-H's foreign keys need is two
PEER_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Mode:
    """One way to track TPC-H: options of `track_all`, and which batches follow."""

    name: str
    options: dict[str, Any]
    batches: tuple[str, ...] = ()
    after: bool = False  # track the tables as they are after all batches


MODES = {
    mode.name: mode
    for mode in (
        Mode("full", {}, tpch.KINDS),
        Mode("append-only", {"append_only": True}, ("insert",)),
        Mode("as-text", {"as_text": True}, tpch.KINDS),
        Mode("again", {}, after=True),
    )
}
LINKS = "links"
PAST = {"insert": "inserted", "delete": "deleted"}  # the state after the batches of a kind


# --- one part, in its own process ---------------------------------------------------------------


def measure_mode(mode: Mode, scale: float, workspace: Path, found: Path, out: Json) -> None:
    """Fill `out` with the figures; what was measured before an error stays in it."""
    import holdfast

    data = tpch.tpch(scale)
    sources = data.write_after(found / "after") if mode.after else data.sources
    with Meter() as meter:
        warm_up(mode, workspace.with_suffix(".warm.hold"))
    out["warm_up_s"] = meter.elapsed_s
    say(f"  session and warm-up {meter.elapsed_s:.1f} s")

    ws = holdfast.open(str(workspace))
    with Meter(memory=True) as meter:
        change = ws.track_all(as_paths(sources), kinds=("ind",), **mode.options)
    out["track"] = {
        "elapsed_s": meter.elapsed_s,
        "peak_bytes": meter.peak_bytes,
        "memory_kind": meter.memory_kind,
        "n_inds": write_inds(ws, found / f"{mode.name}.tracked.json"),
        "sizes": dict(ws.sizes()),
        "accesses": dict(change.accesses),
    }
    say(
        f"  track {meter.elapsed_s:.2f} s, {out['track']['n_inds']:,} INDs, "
        f"{(meter.peak_bytes or 0) / 1e9:.2f} GB, state {out['track']['sizes']['total'] / 1e6:,.0f} MB"
    )

    out["batches"] = []
    for kind in mode.batches:
        for n_rows, csv in data.batches(kind):
            out["batches"].append(timed_apply(ws, kind, n_rows, csv))
        out[f"after_{kind}s"] = {
            "n_inds": write_inds(ws, found / f"{mode.name}.{PAST[kind]}.json"),
            "sizes": dict(ws.sizes()),
        }
    ws.close()


def as_paths(sources: dict[str, Path]) -> dict[str, str]:
    return {table: str(csv) for table, csv in sources.items()}


def warm_up(mode: Mode, workspace: Path) -> None:
    """Start the session: Spark with its workers, and the kernels on TPC-H at a small scale.

    In a workspace of its own: the INDs of one are among all its tables.
    """
    import holdfast
    from holdfast.core.engine.engine import echo

    data = tpch.tpch(WARM_UP_SCALE)
    with holdfast.open(str(workspace)) as ws:
        for _ in range(2):
            ws.writer.engine.run(
                echo, [{"task": i} for i in range(4 * ws.writer.engine.cores)], where="spark"
            )
        ws.track_all(as_paths(data.sources), kinds=("ind",), **mode.options)
        for kind in mode.batches:
            for _, csv in data.batches(kind)[:2]:
                ws.apply("lineitem", **{f"{kind}s": str(csv)})
    shutil.rmtree(workspace, ignore_errors=True)


def timed_apply(ws: Any, kind: str, n_rows: int, csv: Path) -> Json:
    """Apply one batch to lineitem, from its file to the commit."""
    with Meter() as meter:
        change = ws.apply("lineitem", **{f"{kind}s": str(csv)})
    say(f"  {kind} {n_rows:,}: {meter.elapsed_s:.3f} s")
    events = [c.event for c in change.changes]
    return {
        "kind": kind,
        "n_rows": n_rows,
        "elapsed_s": meter.elapsed_s,
        "accesses": dict(change.accesses),
        "values": count_values(csv),
        "appeared": events.count("appeared"),
        "broke": events.count("broke"),
    }


def count_values(csv: Path) -> Json:
    """Different values (texts) of a batch: in each row, summed; and in all of it.

    The first is what an update a row at a time must look up, the second what one pass must.
    """
    with csv.open(newline="") as source:
        rows = list(csv_reader.reader(source))[1:]
    return {
        "by_row": sum(len(set(row)) for row in rows),
        "in_batch": len({value for row in rows for value in row}),
    }


def write_inds(ws: Any, file: Path) -> int:
    """Write the INDs that hold, and the missing values and rows of every pair; how many hold."""

    def pair(ind: Any) -> tuple[str, str]:
        sides = ((side.table, side.columns[0]) for side in (ind.dependent, ind.referenced))
        first, second = (".".join(side) for side in sides)
        return first, second

    holds = [pair(ind) for ind in ws.dependencies(kind="ind") if len(ind.dependent.columns) == 1]
    missing = [
        (*pair(ind), ind.missing_values, ind.missing_rows)
        for ind in ws.dependencies(kind="ind", max_error=1.0)
        if len(ind.dependent.columns) == 1
    ]
    file.write_text(json.dumps({"holds": sorted(holds), "missing": sorted(missing)}))
    return len(holds)


def measure_links(scale: float, workspace: Path, out: Json) -> None:
    """Rank TPC-H's foreign keys: how many of the true ones come first.

    TPC-H names nine foreign keys of one column, so the nine best links of one column are looked at,
    and one of two columns, so the ten best of any width are too.
    """
    import holdfast

    data = tpch.tpch(scale)
    ws = holdfast.open(str(workspace))
    with Meter() as meter:
        ws.track_all(as_paths(data.sources), kinds=("ucc", "ind"), max_columns=LINKS_MAX_COLUMNS)
    out.update(scale=scale, track_s=meter.elapsed_s)
    with Meter() as meter:
        linkage = ws.inds.links()
    out.update(links_s=meter.elapsed_s, n_links=len(linkage.links))
    singles = {link_name(*key) for key in tpch.SINGLE_FOREIGN_KEYS}
    composite = link_name(*tpch.COMPOSITE_FOREIGN_KEY)
    true = singles | {composite}
    ranked: list[Json] = []
    for link in linkage.links:
        sides = ((side.table, tuple(side.columns)) for side in (link.dependent, link.referenced))
        name = link_name(*sides)
        ranked.append(
            {
                "link": name,
                "columns": len(link.dependent.columns),
                "score": float(link.score),
                "chosen": bool(link.chosen),
                "true": name in true,
            }
        )
    first_singles = [link for link in ranked if link["columns"] == 1][: len(singles)]
    chosen = [link for link in ranked if link["chosen"]]
    out.update(
        ranked=ranked[:30],
        n_single=len(singles),
        single_hits=sum(link["true"] for link in first_singles),
        n_all=len(true),
        all_hits=sum(link["true"] for link in ranked[: len(true)]),
        n_chosen=len(chosen),
        chosen_hits=sum(link["true"] for link in chosen),
        chosen_wrong=[link["link"] for link in chosen if not link["true"]],
        not_chosen=sorted(true - {link["link"] for link in chosen}),
        composite_rank=next((i + 1 for i, link in enumerate(ranked) if link["link"] == composite), None),
    )
    ws.close()
    say(f"  links {meter.elapsed_s:.2f} s: {out['single_hits']} of {out['n_single']} first")


def link_name(dependent: tuple[str, tuple[str, ...]], referenced: tuple[str, tuple[str, ...]]) -> str:
    """One text for a link, whatever order its pairs of columns are in.

    >>> link_name(("l", ("b", "a")), ("p", ("y", "x")))
    'l(a, b) -> p(x, y)'
    """
    pairs = sorted(zip(dependent[1], referenced[1], strict=True))
    left, right = (", ".join(side) for side in zip(*pairs, strict=True))
    return f"{dependent[0]}({left}) -> {referenced[0]}({right})"


def run_child(name: str, scale: float, workspace: Path, found: Path, out_file: Path) -> None:
    out: Json = {}
    try:
        if name == LINKS:
            measure_links(scale, workspace, out)
        else:
            measure_mode(MODES[name], scale, workspace, found, out)
    except Exception as error:
        traceback.print_exc()
        out["error"] = f"{type(error).__name__}: {error}"[:2_000]
    out_file.write_text(json.dumps(out))


# --- all parts ----------------------------------------------------------------------------------


def run_part(name: str, scale: float, scratch: Path, found: Path) -> Json:
    """Measure one mode, or the links, in a child process; its workspace is removed afterwards."""
    workspace, out_file = scratch / f"{name}-{scale:g}.hold", scratch / f"{name}-{scale:g}.json"
    say(f"tpch-{scale:g}: holdfast, {name}")
    command = [sys.executable, "-m", "benchmarks.inds", "--child", name, f"{scale:g}"]
    command += ["--child-out", str(out_file), "--child-found", str(found), "--child-ws", str(workspace)]
    code = run_process_group(command)
    result: Json = json.loads(out_file.read_text()) if out_file.exists() else {}
    if code and "error" not in result:
        result["error"] = f"the measuring process ended with code {code}"
    shutil.rmtree(workspace, ignore_errors=True)
    return result


def run_case(scale: float, modes: list[str], scratch: Path, peers: bool, timeout_s: float) -> Json:
    """One scale: holdfast in each mode, then the peers, then the comparison."""
    data = tpch.tpch(scale)
    say(f"tpch-{scale:g}: files")
    data.ensure_files()
    found = scratch / f"found-{scale:g}"
    found.mkdir()
    case: Json = {"scale": scale, "n_rows": sum(data.n_rows.values()), "n_columns": data.n_columns}
    case["modes"] = {name: run_part(name, scale, scratch, found) for name in MODES if name in modes}
    case["peers"] = run_peers(data, found, timeout_s) if peers else []
    case["agreement"] = compare(found)
    for check in case["agreement"]:
        say(f"tpch-{scale:g}: {check['what']}: {'equal' if check['equal'] else 'DIFFERENT'}")
    shutil.rmtree(found)
    return case


def run_peers(data: tpch.Tpch, found: Path, timeout_s: float) -> list[Json]:
    runs: list[Json] = []

    def run(algorithm: str, sources: dict[str, Path], state: str, file: Path) -> str:
        done = run_peer(algorithm, list(sources.values()), timeout_s, found_file=file)
        say(f"tpch-{data.scale:g}: {algorithm}, {state}: {done}")
        runs.append({**done.to_dict(), "state": state})
        return done.outcome

    outcome = run("Spider", data.sources, "original", found / "Spider.tracked.json")
    run("Faida", data.sources, "original", found / "Faida.tracked.json")
    if outcome == "done":
        after = data.write_after(found / "after")
        run("Spider", after, "after all batches", found / "Spider.deleted.json")
    return runs


# what, (file, part), (file, part); the files of peers are plain lists of INDs
CHECKS = (
    ("as text, tracked: Spider", ("as-text.tracked", "holds"), ("Spider.tracked", None)),
    ("as text, after all batches: Spider", ("as-text.deleted", "holds"), ("Spider.deleted", None)),
    ("after all batches: from scratch", ("full.deleted", "holds"), ("again.tracked", "holds")),
    (
        "after all batches, missing values: from scratch",
        ("full.deleted", "missing"),
        ("again.tracked", "missing"),
    ),
    ("append-only, after the inserts: full", ("append-only.inserted", "holds"), ("full.inserted", "holds")),
)


def compare(found: Path) -> list[Json]:
    """Whether the INDs are those of the other side, for each check that both sides are there for."""
    checks: list[Json] = []
    for what, *sides in CHECKS:
        files = [found / f"{stem}.json" for stem, _ in sides]
        if not all(file.exists() for file in files):
            continue
        contents = [json.loads(file.read_text()) for file in files]
        parts = [part for _, part in sides]
        ours, theirs = (
            {tuple(ind) for ind in (content if part is None else content[part])}
            for content, part in zip(contents, parts, strict=True)
        )
        checks.append(
            {
                "what": what,
                "ours": len(ours),
                "theirs": len(theirs),
                "equal": ours == theirs,
                "only_ours": sorted(ours - theirs)[:5],
                "only_theirs": sorted(theirs - ours)[:5],
            }
        )
    return checks


# --- the command --------------------------------------------------------------------------------


def write_results(results: Json, folder: Path, stem: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stem}.json").write_text(json.dumps(results, indent=1) + "\n")
    draw(results, folder / f"{stem}.png")
    (folder / f"{stem}.md").write_text(markdown(results, f"{stem}.png"))


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.inds", description=__doc__.split("\n")[0])
    parser.add_argument("--scale", default=None, help="scales of TPC-H, such as 0.1,1 (which is the default)")
    parser.add_argument("--quick", action="store_true", help="scale 0.01 only; results as inds-quick.*")
    parser.add_argument("--modes", default=None, help=f"some of {', '.join((*MODES, LINKS))}; all by default")
    parser.add_argument("--no-peers", action="store_true", help="measure holdfast only")
    parser.add_argument("--timeout", type=float, default=PEER_TIMEOUT_S, help="seconds a peer may take")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--render", action="store_true", help="only write the report and plot again")
    parser.add_argument("--child", nargs=2, metavar=("MODE", "SCALE"), help=argparse.SUPPRESS)
    for hidden in ("--child-out", "--child-found", "--child-ws"):
        parser.add_argument(hidden, type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    try:
        args.scale = [float(s) for s in args.scale.split(",")] if args.scale else list(SCALES)
    except ValueError:
        parser.error(f"--scale takes numbers with commas between, not {args.scale!r}")
    if args.quick:
        args.scale = [QUICK_SCALE]
    args.modes = args.modes.split(",") if args.modes else [*MODES, LINKS]
    if unknown := set(args.modes) - {*MODES, LINKS}:
        parser.error(f"no mode {', '.join(sorted(unknown))}; there are {', '.join((*MODES, LINKS))}")
    return args


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    args = parse(argv)
    if args.child:
        run_child(args.child[0], float(args.child[1]), args.child_ws, args.child_found, args.child_out)
        return 0
    stem = "inds-quick" if args.quick else "inds"
    if args.render:
        write_results(json.loads((args.results / f"{stem}.json").read_text()), args.results, stem)
        return 0

    results: Json = {
        "command": shlex.join(["python", "-m", "benchmarks.inds", *argv]),
        "date": datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
        "machine": machine(),
        "versions": versions(("desbordante", "tpchgen-cli")),
        "seed": tables.SEED,
        "cases": [],
    }
    for line in busy(results):
        say(line)
    tables.DATA.mkdir(parents=True, exist_ok=True)
    tpch.tpch(WARM_UP_SCALE).ensure_files()
    scratch = Path(tempfile.mkdtemp(prefix="run-", dir=tables.DATA))
    try:
        for scale in args.scale:
            results["cases"].append(run_case(scale, args.modes, scratch, not args.no_peers, args.timeout))
            write_results(results, args.results, stem)  # after each scale: a long run may be stopped
        if LINKS in args.modes:
            scale = QUICK_SCALE if args.quick else SMALL
            tpch.tpch(scale).ensure_files()
            results["links"] = run_part(LINKS, scale, scratch, scratch)
            write_results(results, args.results, stem)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    troubles = loud(results)
    for line in troubles:
        say(line)
    say(f"wrote {args.results / stem}.md, .json and .png")
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
