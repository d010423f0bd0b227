"""The report of the benchmark of functional dependencies: what was to be reached, tables, and a plot."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report import Json, Target, busy, peer_seconds, peer_text, seconds_text, short

KINDS = ("insert", "delete")
COLOURS = {"insert": "#2171b5", "delete": "#d95f0e"}
QUERY_S = 0.001


@dataclass(frozen=True)
class Reach:
    """Most seconds of a batch: of inserts, of deletes. `size` is a place in the mode's sizes."""

    mode: str
    size: int
    title: str
    insert_s: float
    delete_s: float


REACH = (
    Reach("adult", 0, "adult, counted", 0.15, 0.15),
    Reach("adult", 1, "adult, counted", 0.5, 0.5),
    Reach("claims", 0, "claims, counted", 0.25, 0.25),
    Reach("claims", 1, "claims, counted", 1.5, 1.5),
    Reach("claims-witnessed", 1, "claims, exact FDs only, witnessed", 0.3, 0.8),
    Reach("uniprot", 0, "uniprot, agree sets with their index", 0.3, 0.3),
    Reach("flight", 0, "flight-like, agree sets with their index", 0.1, 0.1),
    Reach("flight-fds", 0, "flight-like, FDs with LHS <= 4", 1.0, 1.0),
    Reach("lineitem-1m", 0, "lineitem 1 M, witnessed", 3.0, 6.0),
)
# (mode, size, peers, how many times faster a batch must be than the fastest of them from scratch)
FASTER = (
    ("lineitem-1m", 0, ("HyFD", "Pyro"), 20.0),
    ("adult-approximate", 0, ("Pyro error=0.01",), 10.0),
)
FROM_SCRATCH = (("lineitem-100k", "100 k"), ("lineitem-1m", "1 M"))
SCRATCH_S = 60.0
BEST_S = 10.0

# --- figures from results -----------------------------------------------------------------------


def find_mode(results: Json, name: str) -> Json:
    return next((mode for mode in results["modes"] if mode["name"] == name), {})


def batches_of(mode: Json, kind: str, n_rows: int) -> list[float]:
    return [b["elapsed_s"] for b in mode.get("batches", []) if b["kind"] == kind and b["n_rows"] == n_rows]


def median_batch(mode: Json, kind: str, size: int) -> float | None:
    """Seconds of the batches of the mode's size number `size`."""
    sizes = mode.get("sizes", [])
    seconds = batches_of(mode, kind, sizes[size]) if size < len(sizes) else []
    return statistics.median(seconds) if seconds else None


def peer_run(results: Json, mode: Json, name: str) -> Json | None:
    """A peer's run on the table as it is tracked."""
    for run in results["peers"]:
        if run["name"] == name and run["state"] == "tracked" and run["stem"] == mode.get("stem"):
            return run
    return None


def fastest_peer(results: Json, mode: Json, names: tuple[str, ...]) -> tuple[float | None, bool, str]:
    """Seconds of the fastest (load + run), whether that is only a lower bound, and who it is."""
    runs = [(*peer_seconds(peer_run(results, mode, name)), name) for name in names]
    return min((run for run in runs if run[0] is not None), default=(None, False, ""))


def size_text(mode: Json, size: int) -> str:
    n_batch, n_rows = mode["sizes"][size], mode["n_rows"]
    share = 100 * n_batch / n_rows
    return f"{n_batch:,} rows" + (f" ({share:.0f} %)" if share >= 0.9 else "")


def targets(results: Json) -> list[Target]:
    """What was to be reached, with what this run reached."""
    found = []
    for reach in REACH:
        mode = find_mode(results, reach.mode)
        for kind, most in zip(KINDS, (reach.insert_s, reach.delete_s), strict=True):
            ours = median_batch(mode, kind, reach.size)
            what = f"{reach.title}: {kind} " + (size_text(mode, reach.size) if mode else "a batch")
            reached, met = ("", None) if ours is None else (f"{seconds_text(ours)} s", ours <= most)
            found.append(Target(what, f"<= {most:g} s", reached, met))
    for name, size, peers, factor in FASTER:
        mode = find_mode(results, name)
        for kind in KINDS:
            ours = median_batch(mode, kind, size)
            theirs, at_least, who = fastest_peer(results, mode, peers)
            what = f"{name}: {kind} " + (size_text(mode, size) if mode else "a batch")
            reach_text = f">= {factor:g} x faster than {' and '.join(peers)}"
            if ours is None or theirs is None:
                found.append(Target(what, reach_text, "", None))
                continue
            more = "> " if at_least else ""
            reached = f"{more}{theirs / ours:.1f} x ({seconds_text(ours)} s; {who} {more}{theirs:.1f} s)"
            # A peer that was stopped proves a ratio reached, but not one missed.
            met = True if theirs >= factor * ours else None if at_least else False
            found.append(Target(what, reach_text, reached, met))
    for name, size_name in FROM_SCRATCH:
        mode = find_mode(results, name)
        ours = mode.get("track", {}).get("elapsed_s")
        theirs, at_least, who = fastest_peer(results, mode, ("HyFD", "Pyro"))
        what, reach_text = f"from scratch: lineitem {size_name}", "faster than HyFD and Pyro, load + run"
        if ours is None or theirs is None:
            found.append(Target(what, reach_text, "", None))
        else:
            reached = f"{seconds_text(ours)} s ({who} {'> ' if at_least else ''}{theirs:.1f} s)"
            met = True if ours <= theirs else None if at_least else False
            found.append(Target(what, reach_text, reached, met))
    ours = find_mode(results, "lineitem-1m").get("track", {}).get("elapsed_s")
    reached = "" if ours is None else f"{ours:.1f} s with reading"
    met = None if ours is None else ours <= SCRATCH_S
    found.append(Target("from scratch: lineitem 1 M", f"<= {SCRATCH_S:g} s after reading", reached, met))

    queries = find_mode(results, "uniprot").get("queries", {})
    middle, slow = queries.get("median_s"), queries.get("slowest_1_percent_s")
    known = middle is not None and slow is not None
    reached = f"{middle * 1e6:.0f} us, 99 % within {slow * 1e6:.0f} us" if known else ""
    what = f"one query for an error, {queries['n_agree_sets']:,} agree sets" if known else "one query"
    met = middle < QUERY_S if known else None
    found.append(Target(what, "well under 1 ms", reached, met))
    rows = results.get("sharing", {}).get("rows", [])
    for row in rows:
        reached = f"{row['unshared_s'] / row['shared_s']:.2f} x"
        what = f"equal prefixes compared once, {row['table']}"
        found.append(Target(what, "pays", reached, row["shared_s"] < row["unshared_s"]))
    for row in results.get("best", {}).get("rows", []):
        reached = f"{seconds_text(row['elapsed_s'])} s, {row['n_certain']} certain"
        met = row["elapsed_s"] <= BEST_S and row["n_certain"] == 20
        what = f"the 20 best FDs by {row['by']}, {row['table']} {short(row['n_rows'])} x {row['n_columns']}"
        found.append(Target(what, f"<= {BEST_S:g} s", reached, met))
    return found


# --- the report ---------------------------------------------------------------------------------


def title(mode: Json) -> str:
    options = {k: v for k, v in mode["options"].items() if k != "evidence"}
    told = [mode["options"]["evidence"], *(f"{name} {value:g}" for name, value in options.items())]
    return f"{mode['table']} {short(mode['n_rows'])} x {mode['n_columns']}, {', '.join(told)}"


def markdown(results: Json, plot: str) -> str:
    host = results["machine"]
    lines = ["# Functional dependencies: batches against from-scratch", "", *loud(results), *busy(results)]
    lines += [
        f"`{results['command']}` on {results['date']}; {host['cores']} cores ({host['cpu']}), "
        f"{host['memory_bytes'] / 2**30:.0f} GiB, {host['system']}; "
        + ", ".join(f"{name} {version}" for name, version in results["versions"].items())
        + ".",
        "",
        f"![seconds by batch]({plot})",
        "",
        "## To reach",
        "",
        "| what | reach | reached | |",
        "|---|---|---|---|",
    ]
    lines += [f"| {t.what} | {t.reach} | {t.reached or '-'} | {t.verdict} |" for t in targets(results)]
    for section in (scratch_lines, batch_lines, agree_lines, sharing_lines, best_lines, agreement_lines):
        lines += ["", *section(results)]
    return "\n".join(lines) + "\n"


def scratch_lines(results: Json) -> list[str]:
    lines = [
        "## From scratch: CSV to FDs",
        "",
        "Seconds of `track` in a warm session; its memory is that of driver, JVM and workers together (PSS). "
        "Peers: load + run (peak RSS), with the same bound on left-hand sides and, where errors are "
        "allowed, the same error.",
        "",
        "| table | FDs | holdfast | memory | peers |",
        "|---|---|---|---|---|",
    ]
    for mode in results["modes"]:
        track = mode.get("track", {})
        runs = [r for r in results["peers"] if r["stem"] == mode.get("stem") and r["state"] == "tracked"]
        asked = [r for r in runs if r["name"] in mode.get("peer_names", [])]
        theirs = [f"{r['name']}: {peer_text(r)}" for r in asked]
        peak, n_fds = track.get("peak_bytes"), track.get("n_fds")
        lines.append(
            f"| {title(mode)} | {'-' if n_fds is None else f'{n_fds:,}'} "
            f"| {seconds_text(track.get('elapsed_s'))} | {'-' if peak is None else f'{peak / 1e9:.1f} GB'} "
            f"| {'; '.join(theirs) or '-'} |"
        )
    notes = [f"{title(mode)}: {mode['note']}." for mode in results["modes"] if mode["note"]]
    return [*lines, "", *notes]


def batch_lines(results: Json) -> list[str]:
    lines = [
        "## Batches",
        "",
        "Seconds of `apply` from a pyarrow Table to the commit, in a warm session: median of the batches "
        "(the slowest in brackets). Last column: the fastest peer's load + run on the table as tracked, what "
        "one would do instead.",
        "",
        "| table | batch | inserts | deletes | instead |",
        "|---|---|---|---|---|",
    ]
    for mode in results["modes"]:
        instead, at_least, who = fastest_peer(results, mode, tuple(mode.get("peer_names", [])))
        for i, n_batch in enumerate(mode["sizes"]):
            cells = [batch_text(batches_of(mode, kind, n_batch)) for kind in KINDS]
            other = f"{'> ' * at_least}{seconds_text(instead)} {who}".strip()
            lines.append(f"| {title(mode)} | {size_text(mode, i)} | {' | '.join(cells)} | {other} |")
    return lines


def batch_text(seconds: list[float]) -> str:
    """
    >>> batch_text([0.1, 0.2, 0.4]), batch_text([])
    ('0.200 (0.400)', '-')
    """
    if not seconds:
        return "-"
    middle = seconds_text(statistics.median(seconds))
    return middle if len(seconds) == 1 else f"{middle} ({seconds_text(max(seconds))})"


def agree_lines(results: Json) -> list[str]:
    lines = [
        "## Agree sets",
        "",
        "Different agree sets after `track`, and how many the paper has for the same table (DynASt, table 4; "
        "a generated table need only be near). After the batches a table has the rows that it began with, so "
        "each agree set must have its number of pairs again.",
        "",
        "| table | agree sets | paper | pairs | the same after the batches |",
        "|---|---|---|---|---|",
    ]
    for mode in results["modes"]:
        if "agree_sets" in mode:
            told = mode["agree_sets"]
            same = {True: "yes", False: "**NO**", None: "-"}[told.get("as_at_start")]
            paper = f"{told['paper']:,}" if told["paper"] else "-"
            made = "" if mode["real"] else " (generated)"
            lines.append(f"| {title(mode)}{made} | {told['n']:,} | {paper} | {told['n_pairs']:,} | {same} |")
        if "queries" in mode:
            asked = mode["queries"]
            lines += [
                "",
                f"One query on the {asked['n_agree_sets']:,} agree sets of {mode['table']} (pairs that "
                f"violate X -> A, X of 1 to 4 columns, {asked['n']:,} random ones asked singly): "
                f"{asked['median_s'] * 1e6:.0f} us in the middle, 99 % within "
                f"{asked['slowest_1_percent_s'] * 1e6:.0f} us, after {asked['first_s']:.2f} s for "
                f"the first, which builds the index. Of {asked['judged']} answers that were checked on the "
                f"rows, {asked['judged'] - asked['wrong']} were right.",
                "",
            ]
    return lines


def sharing_lines(results: Json) -> list[str]:
    lines = [
        "## Equal prefixes, compared once",
        "",
        "Seconds to count the agree sets of a batch with all rows, with the comparisons of equal prefixes of "
        "batch rows shared, and without.",
        "",
        "| table | pairs | shared | not shared | |",
        "|---|---|---|---|---|",
    ]
    for row in results.get("sharing", {}).get("rows", []):
        lines.append(
            f"| {row['table']} | {row['pairs']:,} | {seconds_text(row['shared_s'])} "
            f"| {seconds_text(row['unshared_s'])} | {row['unshared_s'] / row['shared_s']:.2f} x |"
        )
    return lines


def best_lines(results: Json) -> list[str]:
    lines = [
        "## The best of wide tables",
        "",
        "Seconds to find the 20 best FDs without listing the others (`ws.fds.best`), in a warm session, of "
        "tables that are not tracked for FDs.",
        "",
        "| table | by | elapsed | processor | certain |",
        "|---|---|---|---|---|",
    ]
    for row in results.get("best", {}).get("rows", []):
        lines.append(
            f"| {row['table']} {short(row['n_rows'])} x {row['n_columns']} | {row['by']} "
            f"| {seconds_text(row['elapsed_s'])} | {seconds_text(row['processor_s'])} | {row['n_certain']} |"
        )
    return lines


def agreement_lines(results: Json) -> list[str]:
    lines = [
        "## The same FDs",
        "",
        "Compared FD by FD. Where one side has what the other has not, the rows decide. Errors are the share "
        "of unordered pairs of different rows that violate an FD, in holdfast as in Tane and Pyro; but Pyro "
        "rounds each up to a multiple of 1/32768 before it compares, so what it finds at 1 % is compared "
        "with holdfast's at 327/32768. Tane does not round. Empty cells are NULL and equal on all sides.",
        "",
        "| table | when: against | holdfast | other | equal |",
        "|---|---|---|---|---|",
    ]
    for mode in results["modes"]:
        for check in mode["agreement"]:
            if check["equal"]:
                word = "yes"
            elif check["ours_wrong"]:
                word = "**NO**"
            else:
                word = f"no: the other is wrong about {check['theirs_wrong']}"
            lines.append(
                f"| {title(mode)} | {check['what']} | {check['ours']:,} | {check['theirs']:,} | {word} |"
            )
        lines += [f"| {title(mode)} | {what} | - | - | not compared |" for what in mode["not_compared"]]
    return lines


def loud(results: Json) -> list[str]:
    """Errors and disagreements, for the head of the report."""
    lines = []
    for mode in results["modes"]:
        if "error" in mode:
            lines.append(f"**FAILED: {title(mode)}: {mode['error']}**")
        told = mode.get("agree_sets", {})
        if told.get("as_at_start") is False:
            lines.append(f"**AGREE SETS DIFFER: {title(mode)}: after the batches others than at the start**")
        if mode["real"] and told.get("paper") not in (None, told.get("n")):
            lines.append(f"**AGREE SETS: {title(mode)}: {told['n']:,}, the paper has {told['paper']:,}**")
        if mode.get("queries", {}).get("wrong"):
            lines.append(f"**WRONG: {title(mode)}: {mode['queries']['wrong']} queries for an error**")
        for check in mode["agreement"]:
            if check["ours_wrong"]:
                lines.append(
                    f"**FDS DIFFER: {title(mode)}, {check['what']}: holdfast {check['ours']:,}, other "
                    f"{check['theirs']:,}; wrong {check['ours_wrong']}, of which {check['unjudged']} not "
                    f"judged; false {check['false']}, missed {check['missed']}**"
                )
    for run in results["peers"]:
        if run["outcome"] == "failed":
            lines.append(f"**FAILED: {run['key']}: {run['error']}**")
    for name in ("sharing", "best"):
        if "error" in results.get(name, {}):
            lines.append(f"**FAILED: {name}: {results[name]['error']}**")
    return [part for line in lines for part in (line, "")]


# --- the plot -----------------------------------------------------------------------------------


def draw(results: Json, file: Path) -> None:
    """A line for each batch size: inserts, deletes, what was to be reached, and the peers from scratch."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 11, "font.family": "DejaVu Sans", "axes.spines.top": False})
    plt.rcParams.update({"axes.spines.right": False, "axes.edgecolor": "#888888"})
    lines = [
        (mode, i)
        for mode in results["modes"]
        for i in range(len(mode["sizes"]))
        if median_batch(mode, "insert", i) is not None
    ]
    if not lines:
        return
    figure, panel = plt.subplots(figsize=(12, 1.6 + 0.52 * len(lines)), dpi=100)
    most = {(r.mode, r.size): {"insert": r.insert_s, "delete": r.delete_s} for r in REACH}
    labels = []
    for row, (mode, i) in enumerate(lines):
        labels.append(f"{mode['name']}: {size_text(mode, i)}")
        for kind, lift in (("insert", 0.16), ("delete", -0.16)):
            ours = median_batch(mode, kind, i)
            if ours is not None:
                panel.plot(ours, row - lift, "o", color=COLOURS[kind], ms=8, zorder=3)
            if limit := most.get((mode["name"], i), {}).get(kind):
                panel.plot([limit] * 2, [row - lift - 0.13, row - lift + 0.13], color="#222222", lw=2.5)
        for rank, name in enumerate(mode.get("peer_names", [])):
            level, at_least = peer_seconds(peer_run(results, mode, name))
            if level is not None:
                panel.plot(level, row, ">" if at_least else "x", color="#888888", ms=8, mew=2, zorder=2)
                panel.annotate(
                    name.split()[0],
                    (level, row),
                    xytext=(0, 7 if rank == 0 else -14),  # two that are close stay readable
                    textcoords="offset points",
                    ha="center",
                    fontsize=8,
                    color="#666666",
                )
    panel.set_xscale("log")
    panel.set_yticks(range(len(lines)), labels)
    panel.set_ylim(len(lines) - 0.4, -0.6)
    low, high = panel.get_xlim()
    whole = [10.0**i for i in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
    panel.set_xticks(whole, [f"{t:g} s" for t in whole])
    panel.minorticks_off()
    panel.grid(axis="x", color="#e5e5e5", lw=0.8)
    panel.tick_params(color="#888888", length=3)
    for kind in KINDS:
        panel.plot([], [], "o", color=COLOURS[kind], ms=8, label=f"{kind}s")
    panel.plot([], [], color="#222222", lw=2.5, label="to reach")
    panel.plot([], [], "x", color="#888888", ms=8, mew=2, ls="", label="peer from scratch (> stopped)")
    panel.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncol=4, frameon=False)
    panel.set_title(
        "holdfast: seconds to keep FDs exact after a batch\n", loc="left", fontsize=13, x=-0.25, pad=22
    )
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)
    plt.close(figure)
