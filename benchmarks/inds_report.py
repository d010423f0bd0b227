"""The report of the benchmark of inclusion dependencies: what was to be reached, tables, and a plot."""

from __future__ import annotations

import math
import statistics
from pathlib import Path

from benchmarks.report import (
    Json,
    Target,
    busy,
    peer_seconds,
    peer_text,
    seconds_text,
    short,
    spread,
)

SMALL, LARGE = 0.1, 1.0  # the scales that targets speak of
# An update a row at a time without caches reads the generator 3 times for each value of an inserted row and
# 4 times for each of a deleted one (Shaabani and Meinel, section 5.4); at best, with caches, once and twice.
WITHOUT_CACHES = {"insert": 3, "delete": 4}
AT_BEST = {"insert": 1, "delete": 2}
COLOURS = {0.01: "#31a354", SMALL: "#4292c6", LARGE: "#08306b"}
STATE_PARTS = (  # ever more of what `sizes` counts
    (("values",), "the generator"),
    (("values", "locators"), "with what finds the rows to delete"),
    (("total",), "the whole workspace, rows too"),
)
MODE_TITLES = {"full": "", "append-only": ", append-only", "as-text": ", as text"}

# --- figures from results -----------------------------------------------------------------------


def find_case(results: Json, scale: float) -> Json:
    return next((case for case in results["cases"] if case["scale"] == scale), {})


def mode_of(case: Json, name: str) -> Json:
    found: Json = case.get("modes", {}).get(name, {})
    return found


def batches_of(case: Json, mode: str, kind: str, n_rows: int) -> list[Json]:
    batches = mode_of(case, mode).get("batches", [])
    return [b for b in batches if b["kind"] == kind and b["n_rows"] == n_rows]


def median_batch(case: Json, mode: str, kind: str, n_rows: int) -> float | None:
    seconds = [b["elapsed_s"] for b in batches_of(case, mode, kind, n_rows)]
    return statistics.median(seconds) if seconds else None


def batch_sizes(case: Json, mode: str = "full") -> list[int]:
    return sorted({b["n_rows"] for b in mode_of(case, mode).get("batches", [])})


def rescan(case: Json, algorithm: str = "Spider") -> tuple[float | None, bool]:
    """Seconds of a peer's load + run, of its fastest run; and whether that is only a lower bound."""
    runs = [peer_seconds(run) for run in case.get("peers", []) if run["algorithm"] == algorithm]
    return min((r for r in runs if r[0] is not None), default=(None, False))


def sizes_of(case: Json, mode: str, state: str) -> Json:
    found: Json = mode_of(case, mode).get(state, {}).get("sizes", {})
    return found


def targets(results: Json) -> list[Target]:
    """What was to be reached, with what this run reached."""
    large, small = find_case(results, LARGE), find_case(results, SMALL)
    spider, at_least = rescan(large)
    more = "> " if at_least else ""
    found: list[Target] = []

    track = mode_of(large, "full").get("track", {})
    ours, what = track.get("elapsed_s"), "from scratch, TPC-H scale 1, CSV to INDs"
    if ours is None or spider is None:
        found.append(Target(what, "<= 1.5 x Spider's load + run", "", None))
    else:
        reached = f"{ours / spider:.2f} x ({ours:.1f} s against {more}{spider:.1f} s)"
        met = True if ours <= 1.5 * spider else None if at_least else False
        found.append(Target(what, "<= 1.5 x Spider's load + run", reached, met))
    peak = track.get("peak_bytes")
    reached = "" if peak is None else f"{peak / 1e9:.1f} GB"
    found.append(
        Target("the same, memory in all", "<= 12 GB", reached, None if peak is None else peak <= 12e9)
    )

    for kind, most in (("insert", 1.0), ("delete", 1.5)):
        what = f"{kind} 1,000 rows, lineitem at scale 1"
        ours = median_batch(large, "full", kind, 1_000)  # seconds of 1,000 rows: ms of one
        reached = "" if ours is None else f"{ours:.3f} ms per row"
        found.append(Target(what, f"<= {most:g} ms per row", reached, None if ours is None else ours <= most))
        if kind == "delete":
            continue
        if ours is None or spider is None:
            found.append(Target(f"{what}, against Spider", ">= 50 x faster than load + run", "", None))
        else:
            ratio = spider / ours
            reached = f"{more}{ratio:.0f} x ({ours:.3f} s against {more}{spider:.1f} s)"
            met = True if ratio >= 50 else None if at_least else False
            found.append(Target(f"{what}, against Spider", ">= 50 x faster than load + run", reached, met))
    for kind in ("insert", "delete"):
        ours = median_batch(large, "full", kind, 1)
        reached = "" if ours is None else f"{ours:.3f} s"
        what = f"{kind} one row, lineitem at scale 1, end to end"
        found.append(Target(what, "<= 0.3 s", reached, None if ours is None else ours <= 0.3))
    for kind in ("insert", "delete"):
        ours, base = (median_batch(case, "full", kind, 1_000) for case in (large, small))
        what = f"growth: {kind} 1,000 rows at scale 1 against 0.1"
        if ours is None or base is None:
            found.append(Target(what, "<= 2 x", "", None))
        else:
            reached = f"{ours / base:.2f} x ({ours:.3f} s against {base:.3f} s)"
            found.append(Target(what, "<= 2 x", reached, ours <= 2 * base))

    for parts, title in STATE_PARTS:
        full, less = (
            sum(sizes_of(large, mode, "track").get(part, 0) for part in parts)
            for mode in ("full", "append-only")
        )
        what = f"insert-only state at scale 1: {title}"
        if not full or not less:
            found.append(Target(what, "<= 60 % of the full one's bytes", "", None))
        else:
            reached = f"{100 * less / full:.0f} % ({less / 1e6:,.0f} of {full / 1e6:,.0f} MB)"
            found.append(Target(what, "<= 60 % of the full one's bytes", reached, less <= 0.6 * full))

    links = results.get("links", {})
    known = "single_hits" in links and links["scale"] == SMALL
    reached = f"{links['single_hits']} of {links['n_single']}" if known else ""
    met = links["single_hits"] >= 8 if known else None
    found.append(Target("true foreign keys among the first 9 links, scale 0.1", ">= 8 of 9", reached, met))
    rank = links.get("composite_rank") if known else None
    reached = "" if not known else "not found" if rank is None else f"rank {rank} of {links['n_links']}"
    what = "lineitem(partkey, suppkey) -> partsupp is found"
    found.append(Target(what, "yes", reached, None if not known else rank is not None))
    return found


# --- the report ---------------------------------------------------------------------------------


def title(case: Json) -> str:
    return f"scale {case['scale']:g}"


def markdown(results: Json, plot: str) -> str:
    host = results["machine"]
    lines = ["# Inclusion dependencies: batches against from-scratch", "", *loud(results), *busy(results)]
    lines += [
        f"`{results['command']}` on {results['date']}; {host['cores']} cores ({host['cpu']}), "
        f"{host['memory_bytes'] / 2**30:.0f} GiB, {host['system']}; "
        + ", ".join(f"{name} {version}" for name, version in results["versions"].items())
        + ".",
        "",
        f"![seconds by batch size]({plot})",
        "",
        "## To reach",
        "",
        "| what | reach | reached | |",
        "|---|---|---|---|",
    ]
    lines += [f"| {t.what} | {t.reach} | {t.reached or '-'} | {t.verdict} |" for t in targets(results)]
    for section in (scratch_lines, batch_lines, access_lines, state_lines, link_lines, agreement_lines):
        lines += ["", *section(results)]
    return "\n".join(lines) + "\n"


def scratch_lines(results: Json) -> list[str]:
    lines = [
        "## From scratch: eight CSV files to INDs",
        "",
        "Seconds of `track_all` in a warm session: Spark was started and the kernels loaded, on TPC-H at "
        "scale 0.01 in another workspace. Memory is that of driver, JVM and workers together (PSS). Peers: "
        "load + run (peak RSS).",
        "",
        "| TPC-H | INDs | holdfast | memory | append-only | as text (INDs) | Spider | Faida |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for case in results["cases"]:
        full, less, text = (mode_of(case, m).get("track", {}) for m in MODE_TITLES)
        runs = {run["algorithm"]: run for run in reversed(case.get("peers", []))}
        peak = full.get("peak_bytes")
        as_text = seconds_text(text.get("elapsed_s")) + (f" ({text['n_inds']})" if text else "")
        lines.append(
            f"| {title(case)}: {short(case['n_rows'])} rows, {case['n_columns']} columns "
            f"| {full.get('n_inds', '-')} | {seconds_text(full.get('elapsed_s'))} "
            f"| {'-' if peak is None else f'{peak / 1e9:.1f} GB'} "
            f"| {seconds_text(less.get('elapsed_s'))} | {as_text} "
            f"| {peer_text(runs.get('Spider'))} | {peer_text(runs.get('Faida'))} |"
        )
    return lines


def batch_lines(results: Json) -> list[str]:
    sizes = sorted({n for case in results["cases"] for n in batch_sizes(case)})
    lines = [
        "## Batches on lineitem",
        "",
        "Seconds of `apply` from a CSV file to the commit, in a warm session: median of fresh batches (the "
        "slowest, which may contain a merge, in brackets). Seconds of 1,000 rows are milliseconds of one. "
        "Last column: Spider's load + run, what one would do instead (the faster of its two runs).",
        "",
        f"| TPC-H | batch | {' | '.join(f'{n:,}' for n in sizes)} | instead |",
        f"|---|---|{'---|' * len(sizes)}---|",
    ]
    for case in results["cases"]:
        instead, at_least = rescan(case)
        for mode, suffix in MODE_TITLES.items():
            for kind in ("insert", "delete"):
                if any(batches_of(case, mode, kind, n) for n in sizes):
                    cells = [batch_text(batches_of(case, mode, kind, n)) for n in sizes]
                    lines.append(
                        f"| {title(case)} | {kind}s{suffix} | {' | '.join(cells)} "
                        f"| {'> ' if at_least else ''}{seconds_text(instead)} |"
                    )
    return lines


def batch_text(batches: list[Json]) -> str:
    seconds = [b["elapsed_s"] for b in batches]
    if not seconds:
        return "-"
    middle = seconds_text(statistics.median(seconds))
    return middle if len(seconds) == 1 else f"{middle} ({seconds_text(max(seconds))})"


def access_lines(results: Json) -> list[str]:
    lines = [
        "## Accesses to the generator, by 1,000 rows",
        "",
        "What a batch looks up and reads: medians of the batches. A value is looked up once in a batch; the "
        "keys read are all that its searches compare, in all runs; the bytes are those of keys and entries. "
        "Beside it, what the paper's updates of one row at a time would access, counted on the same batches: "
        "without caches (3 accesses for each different value of an inserted row, 4 of a deleted one), at "
        "best with them (1 and 2), and without caches if each different value of the whole batch came once.",
        "",
        "| TPC-H | batch | values looked up | keys read | bytes read | by row | by row, best | by batch |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for case in results["cases"]:
        for mode, suffix in MODE_TITLES.items():
            for kind in ("insert", "delete"):
                if batches := batches_of(case, mode, kind, 1_000):
                    ours = [
                        statistics.median(b["accesses"].get(field, 0) for b in batches)
                        for field in ("values_looked_up", "keys_read", "bytes_read")
                    ]
                    by_row, in_batch = (
                        statistics.median(b["values"][field] for b in batches)
                        for field in ("by_row", "in_batch")
                    )
                    theirs = (
                        WITHOUT_CACHES[kind] * by_row,
                        AT_BEST[kind] * by_row,
                        WITHOUT_CACHES[kind] * in_batch,
                    )
                    cells = " | ".join(f"{n:,.0f}" for n in (*ours, *theirs))
                    lines.append(f"| {title(case)} | {kind}s{suffix} | {cells} |")
    return lines


def state_lines(results: Json) -> list[str]:
    parts = ("values", "locators", "rows", "total")  # `keys`, the rest, is nothing when only INDs are tracked
    lines = [
        "## What lies on disk",
        "",
        "Megabytes of live files: the generator (value runs, clusters, pair counts), what finds the row of a "
        "delete, the rows themselves, and all of the workspace; and the share of the full state.",
        "",
        f"| TPC-H | state | {' | '.join(parts)} |",
        f"|---|---|{'---|' * len(parts)}",
    ]
    for case in results["cases"]:
        for state, when in (("track", "tracked"), ("after_inserts", "after the inserts")):
            full = sizes_of(case, "full", state)
            for mode in ("full", "append-only"):
                if sizes := sizes_of(case, mode, state):
                    cells = [size_text(sizes.get(p), full.get(p) if mode != "full" else None) for p in parts]
                    lines.append(f"| {title(case)} | {mode}, {when} | {' | '.join(cells)} |")
    return lines


def size_text(size: int | None, full: int | None) -> str:
    """
    >>> size_text(5_000_000, 10_000_000), size_text(5_000_000, None), size_text(None, 1)
    ('5.0 (50 %)', '5.0', '-')
    """
    if size is None:
        return "-"
    return f"{size / 1e6:,.1f}" + (f" ({100 * size / full:.0f} %)" if full else "")


def link_lines(results: Json) -> list[str]:
    links = results.get("links", {})
    lines = ["## Foreign keys", ""]
    if "ranked" not in links:
        return [*lines, "Not measured."]
    lines += [
        f"`links` on TPC-H at scale {links['scale']:g}, kinds ucc (up to 3 columns) and ind, "
        f"{links['n_links']} candidates. TPC-H names nine foreign keys of one column (among them "
        "lineitem's to part and to supplier, which follow from the composite one) and one of two. So "
        f"precision and recall at their number: **{links['single_hits']} of {links['n_single']}** among the "
        "links of one column, "
        f"**{links['all_hits']} of {links['n_all']}** among those of any width. Chosen are "
        f"{links['n_chosen']}, of which {links['chosen_hits']} are true"
        + (f"; wrong: {', '.join(links['chosen_wrong'])}" if links["chosen_wrong"] else "")
        + (f"; not chosen: {', '.join(links['not_chosen'])}" if links["not_chosen"] else "")
        + ".",
        "",
        "| rank | link | score | chosen | true |",
        "|---|---|---|---|---|",
    ]
    for rank, link in enumerate(links["ranked"][:15], 1):
        marks = " | ".join("yes" if link[field] else "" for field in ("chosen", "true"))
        lines.append(f"| {rank} | {link['link']} | {link['score']:.3f} | {marks} |")
    return lines


def agreement_lines(results: Json) -> list[str]:
    lines = [
        "## The same INDs",
        "",
        "Compared pair by pair. Spider compares texts, so it is compared with `as_text`; an empty cell is a "
        "value to it, but TPC-H has none.",
        "",
        "| TPC-H | what: against | holdfast | other | equal |",
        "|---|---|---|---|---|",
    ]
    for case in results["cases"]:
        for check in case.get("agreement", []):
            lines.append(
                f"| {title(case)} | {check['what']} | {check['ours']:,} | {check['theirs']:,} "
                f"| {'yes' if check['equal'] else '**NO**'} |"
            )
    return lines


def loud(results: Json) -> list[str]:
    """Errors and disagreements, for the head of the report."""
    lines = []
    for case in results["cases"]:
        for name, mode in case["modes"].items():
            if "error" in mode:
                lines.append(f"**FAILED: {title(case)}, {name}: {mode['error']}**")
        for run in case.get("peers", []):
            if run["outcome"] == "failed":
                lines.append(f"**FAILED: {title(case)}, {run['algorithm']}: {run['error']}**")
        for check in case.get("agreement", []):
            if not check["equal"]:
                lines.append(
                    f"**INDS DIFFER: {title(case)}, {check['what']}: holdfast {check['ours']:,}, other "
                    f"{check['theirs']:,}; only holdfast {check['only_ours']}, only the other "
                    f"{check['only_theirs']}**"
                )
    if "error" in results.get("links", {}):
        lines.append(f"**FAILED: links: {results['links']['error']}**")
    return [part for line in lines for part in (line, "")]


# --- the plot -----------------------------------------------------------------------------------


def draw(results: Json, file: Path) -> None:
    """Two panels (inserts, deletes): seconds by batch size, and the peers from scratch as levels."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 11, "font.family": "DejaVu Sans", "axes.spines.top": False})
    plt.rcParams.update({"axes.spines.right": False, "axes.edgecolor": "#888888"})
    cases = results["cases"]
    values = [b["elapsed_s"] for case in cases for m in case["modes"].values() for b in m.get("batches", [])]
    values += [level for case in cases for a in ("Spider", "Faida") if (level := rescan(case, a)[0])]
    if not values:
        return
    figure, panels = plt.subplots(1, 2, figsize=(12, 7), dpi=100, sharey=True)
    low, high = math.log10(min(values)) - 0.25, math.log10(max(values)) + 0.3
    right = max([1_000, *(n for case in cases for n in batch_sizes(case))])
    labels_at = right * 1.6
    for panel, kind in zip(panels, ("insert", "delete"), strict=True):
        labels: list[tuple[float, str, str]] = []
        for case in cases:
            colour = COLOURS.get(case["scale"], "#666666")
            for mode, suffix in MODE_TITLES.items():
                if mode == "as-text":
                    continue  # near the full one: it would only add lines
                sizes = batch_sizes(case, mode)
                points = [(n, s) for n in sizes if (s := median_batch(case, mode, kind, n)) is not None]
                if points:
                    style = "-o" if mode == "full" else "-^"
                    panel.plot(
                        *zip(*points, strict=True), style, color=colour, lw=2 - bool(suffix), ms=5, zorder=3
                    )
                    labels.append((points[-1][1], f"scale {case['scale']:g}{suffix}", colour))
                    panel.plot(  # a thin lead from the last point to its label
                        [points[-1][0], labels_at], [points[-1][1]] * 2, color=colour, lw=0.6, alpha=0.5
                    )
            for algorithm, style in (("Spider", "--"), ("Faida", ":")):
                level, at_least = rescan(case, algorithm)
                if level is not None:
                    panel.plot([0.8, labels_at], [level] * 2, style, color=colour, lw=1.1, zorder=2)
                    text = f"{algorithm}, scale {case['scale']:g}{' (stopped)' * at_least}"
                    labels.append((level, text, colour))
        heights = spread([math.log10(seconds) for seconds, _, _ in labels], (high - low) * 0.034)
        for height, (_, text, colour) in zip(heights, labels, strict=True):
            panel.text(labels_at * 1.15, 10**height, text, color=colour, va="center", fontsize=8.5)
        panel.set(xscale="log", yscale="log", xlim=(0.8, labels_at), ylim=(10**low, 10**high))
        ticks = [10**i for i in range(round(math.log10(right)) + 1)]
        panel.set_xticks(ticks, [short(n) for n in ticks])
        panel.minorticks_off()
        panel.set_xlabel("rows in the batch")
        panel.set_title(
            f"{kind}s {'into' if kind == 'insert' else 'from'} lineitem", loc="left", fontweight="bold"
        )
        panel.grid(axis="y", color="#e5e5e5", lw=0.8)
        panel.tick_params(color="#888888", labelleft=True)
    whole = [10**i for i in range(math.ceil(low), math.floor(high) + 1)]
    panels[0].set_yticks(whole, [f"{t:g} s" for t in whole])
    figure.suptitle(
        "holdfast: seconds to keep all INDs of TPC-H exact after a batch (solid); peers from scratch",
        x=0.012,
        ha="left",
        fontsize=13,
    )
    figure.subplots_adjust(left=0.06, right=0.84, top=0.88, bottom=0.09, wspace=0.55)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)
    plt.close(figure)
