"""The report of the benchmark of lakes: what was to be reached, tables, and a plot."""

from __future__ import annotations

import math
import statistics
from pathlib import Path

from benchmarks.report import Json, Target, busy, seconds_text, short

MATCHING = "matching columns"  # the phase that finds inclusions and writes them
# Seconds in which a single-threaded MANY in Java matches 2,000 tables with 3.65 M inclusions, on a machine of
# this class, without writing them.
JAVA_S, JAVA_INDS = 3.5, 3_650_000
TITLES = {
    ("auto", "dep2refs"): "as chosen",
    ("index", "dep2refs"): "rarest values",
    ("signatures", "dep2refs"): "signatures, dep2refs",
    ("signatures", "ref2deps"): "signatures, ref2deps",
}
COLOURS = {
    ("index", "dep2refs"): "#08306b",
    ("signatures", "dep2refs"): "#4292c6",
    ("signatures", "ref2deps"): "#31a354",
}
VAST_S = {409_600: 80, 1_000_000: 240}  # seconds to reach, by number of tables
STEPS = {"add": "add", "drop": "drop", "replace": "replace"}

# --- figures from results -----------------------------------------------------------------------


def mode_of(results: Json, name: str) -> Json:
    found: Json = results["modes"].get(name, {})
    return found


def phase_s(run: Json, name: str = MATCHING) -> float | None:
    found = [seconds for phase, seconds in run.get("phases", []) if phase == name]
    return sum(found) if found else None


def way_of(run: Json) -> tuple[str, str]:
    return run["way"], run["strategy"]


def steps_of(results: Json, kind: str) -> list[Json]:
    return [step for step in mode_of(results, "filtered").get("steps", []) if step["kind"] == kind]


def median_step(results: Json, kind: str) -> float | None:
    seconds = [step["elapsed_s"] for step in steps_of(results, kind)]
    return statistics.median(seconds) if seconds else None


def within(what: str, most: float, reached: float | None, unit: str = "s") -> Target:
    text = "" if reached is None else f"{reached:.1f} {unit}" if reached >= 10 else f"{reached:.2f} {unit}"
    return Target(what, f"<= {most:g} {unit}", text, None if reached is None else reached <= most)


def giga(peak: int | None) -> float | None:
    return None if peak is None else peak / 1e9


def sized(run: Json, n_tables: int) -> Json:
    """A run if it has as many tables as a target speaks of, else nothing."""
    return run if run.get("n_tables") == n_tables else {}


def targets(results: Json) -> list[Target]:
    """What was to be reached, with what this run reached."""
    found: list[Target] = []
    whole = mode_of(results, "all")
    runs = [run for run in whole.get("runs", []) if sized(run, 2_000)]
    checks = whole.get("agreement", []) if runs else []
    reached = f"{sum(c['equal'] for c in checks)} of {len(checks)} runs" if checks else ""
    met = all(c["equal"] for c in checks) if checks else None
    found.append(Target("2,000 tables, no filters: the inclusions of brute force", "equal", reached, met))
    chosen = next((run for run in runs if run["way"] == "auto"), {})
    ours = phase_s(chosen)
    what = "the same: matching, results written, against MANY in Java"
    if ours is None:
        found.append(Target(what, "<= 2 x 3.5 s", "", None))
    else:
        reached = f"{ours / JAVA_S:.2f} x ({ours:.2f} s, {chosen['n_inds']:,} inclusions)"
        found.append(Target(what, "<= 2 x 3.5 s", reached, ours <= 2 * JAVA_S))
    many = sized(mode_of(results, "many"), 10_000)
    found.append(within("10,000 tables, no filters, results written", 90, many.get("elapsed_s")))
    found.append(within("the same, memory in all", 6, giga(many.get("peak_bytes")), "GB"))
    link = sized(mode_of(results, "filtered").get("link", {}), 100_000)
    found.append(within("100,000 tables, all filters, reading included", 600, link.get("elapsed_s")))
    found.append(within("the same, memory in all", 12, giga(link.get("peak_bytes")), "GB"))
    found.append(within("add 100 tables to 100,000", 20, median_step(results, "add") if link else None))
    found.append(within("drop 100 of 100,000", 1, median_step(results, "drop") if link else None))
    asked = many.get("questions")
    what = "the joins of one table among 92 M inclusions: the first question"
    found.append(within(what, 0.3, asked and asked["first_s"]))
    found.append(within("the same: the slowest of the others", 0.3, asked and max(asked["seconds"])))
    for n, most in VAST_S.items():
        runs = [run for run in mode_of(results, "vast").get("runs", []) if sized(run, n)]
        vast = runs[0] if runs else {}
        found.append(within(f"{n:,} tables, all filters, reading included", most, vast.get("elapsed_s")))
    found.append(within("the same, memory in all", 12, giga(vast.get("peak_bytes")), "GB"))
    painted = [visit["painted"] / 1000 for visit in mode_of(results, "page").get("visits", [])]
    found.append(
        within("the page with 10,000 nodes: first paint", 3, statistics.median(painted) if painted else None)
    )
    return found


# --- the report ---------------------------------------------------------------------------------


def markdown(results: Json, plot: str) -> str:
    host = results["machine"]
    lines = ["# A lake of tables: inclusions among very many", "", *loud(results), *busy(results)]
    lines += [
        f"`{results['command']}` on {results['date']}; {host['cores']} cores ({host['cpu']}), "
        f"{host['memory_bytes'] / 2**30:.0f} GiB, {host['system']}, "
        f"load {host['load_at_start']} at the start; "
        + ", ".join(f"{name} {version}" for name, version in results["versions"].items())
        + ".",
        "",
        f"![seconds of matching by proposer, and of a link by phase]({plot})",
        "",
        "## To reach",
        "",
        "| what | reach | reached | |",
        "|---|---|---|---|",
    ]
    lines += [f"| {t.what} | {t.reach} | {t.reached or '-'} | {t.verdict} |" for t in targets(results)]
    sections = (
        corpus_lines,
        all_lines,
        phase_lines,
        removed_lines,
        step_lines,
        proposer_lines,
        bloom_lines,
        page_lines,
        agreement_lines,
    )
    for section in sections:
        if found := section(results):
            lines += ["", *found]
    return "\n".join(lines) + "\n"


def corpus_lines(results: Json) -> list[str]:
    corpus = results.get("corpus")
    if not corpus:
        return []
    lines = [
        "## The corpus",
        "",
        f"The first {corpus['tables']:,} generated tables (seed {results['seed']}), beside what the "
        "paper says of WikiTables.",
        "",
        "| what | generated | WikiTables |",
        "|---|---|---|",
    ]
    paper = {
        "columns a table": "5.34",
        "rows a table": "10.85",
        "most rows": "4,670",
        "most columns": "2,349",
        "share of the empty text": "12.7 %",
        "share of the 25 most frequent values": "27 %",
    }
    for what, theirs in paper.items():
        ours = corpus[what]
        text = f"{100 * ours:.1f} %" if what.startswith("share") else f"{ours:,.2f}".removesuffix(".00")
        lines.append(f"| {what} | {text} | {theirs} |")
    if "INDs" in corpus:
        lines.append(f"| inclusions without filters, {corpus['tables']:,} tables | {corpus['INDs']:,} | |")
    return lines


def all_lines(results: Json) -> list[str]:
    mode = mode_of(results, "all")
    if not mode.get("runs"):
        return []
    n = mode["runs"][0]["n_tables"]
    lines = [
        f"## {n:,} tables without filters",
        "",
        f"Seconds of matching with its results written as Parquet, of the whole `link`, and the first over "
        f"the {JAVA_S} s of a single-threaded MANY in Java, which matches {JAVA_INDS / 1e6:.2f} M inclusions "
        f"in them and does not write. The plain inverted index that they are compared with takes "
        f"{seconds_text(mode.get('plain_s'))} s.",
        "",
        "| proposer | inclusions | matching | link | over MANY |",
        "|---|---|---|---|---|",
    ]
    for run in mode["runs"]:
        matching = phase_s(run)
        ratio = "-" if matching is None else f"{matching / JAVA_S:.2f}"
        title = TITLES[way_of(run)] + (f" ({run['proposer']})" if run["way"] == "auto" else "")
        lines.append(
            f"| {title} | {run['n_inds']:,} | {seconds_text(matching)} "
            f"| {seconds_text(run['elapsed_s'])} | {ratio} |"
        )
    return lines


def phase_lines(results: Json) -> list[str]:
    """Large lakes, by phase."""
    many, filtered = mode_of(results, "many"), mode_of(results, "filtered")
    runs = [
        (title, run, size)
        for title, run, size in (
            ("no filters", many, many.get("bytes")),
            ("all filters", filtered.get("link", {}), filtered.get("bytes")),
            *(("all filters", run, run["bytes"]) for run in mode_of(results, "vast").get("runs", [])),
        )
        if run.get("phases")
    ]
    if not runs:
        return []
    lines = [
        "## Large lakes, by phase",
        "",
        "Seconds of one `link` from the file of JSON lines to the commit, in a warm session; memory is that "
        "of driver, JVM and workers together.",
        "",
        "| what | " + " | ".join(f"{run['n_tables']:,} tables, {title}" for title, run, _ in runs) + " |",
        "|---|" + "---|" * len(runs),
    ]

    def row(what: str, cells: list[str]) -> None:
        lines.append(f"| {what} | " + " | ".join(cells) + " |")

    row("columns", [f"{run['n_columns']:,}" for _, run, _ in runs])
    row("inclusions", [f"{run['n_inds']:,}" for _, run, _ in runs])
    row("components", [f"{run['n_components']:,}" for _, run, _ in runs])
    row("proposer", [run["proposer"] for _, run, _ in runs])
    for name in dict.fromkeys(name for _, run, _ in runs for name, _ in run["phases"]):
        row(name, [seconds_text(phase_s(run, name)) for _, run, _ in runs])
    row("**in all**", [f"**{seconds_text(run['elapsed_s'])}**" for _, run, _ in runs])
    peaks = [run["peak_bytes"] for _, run, _ in runs]
    row("memory", ["-" if peak is None else f"{peak / 1e9:.1f} GB" for peak in peaks])
    row("on disk", ["-" if size is None else f"{size / 1e6:,.0f} MB" for _, _, size in runs])
    return lines


def removed_lines(results: Json) -> list[str]:
    link = mode_of(results, "filtered").get("link", {})
    if not link.get("removed"):
        return []
    return [
        "## What the filters keep out",
        "",
        f"Of {link['n_tables']:,} tables, each inclusion by the first filter that removes it.",
        "",
        "| " + " | ".join(link["removed"]) + " | kept |",
        "|" + "---|" * (len(link["removed"]) + 1),
        "| " + " | ".join(f"{n:,}" for n in link["removed"].values()) + f" | {link['n_inds']:,} |",
    ]


def step_lines(results: Json) -> list[str]:
    if not mode_of(results, "filtered").get("steps"):
        return []
    n = mode_of(results, "filtered")["link"]["n_tables"]
    lines = [
        f"## Tables come and go: 100 of {n:,}",
        "",
        "Seconds of a whole step, to the commit: the median and, in brackets, the slowest; then the phases "
        "of the median one.",
        "",
        "| step | seconds | phases |",
        "|---|---|---|",
    ]
    for kind, title in STEPS.items():
        steps = sorted(steps_of(results, kind), key=lambda step: step["elapsed_s"])
        if steps:
            middle = steps[(len(steps) - 1) // 2]
            phases = ", ".join(f"{name} {seconds_text(s)}" for name, s in middle["phases"])
            slowest = seconds_text(steps[-1]["elapsed_s"])
            lines.append(f"| {title} | {seconds_text(middle['elapsed_s'])} ({slowest}) | {phases} |")
    return lines


def proposer_lines(results: Json) -> list[str]:
    runs = mode_of(results, "proposers").get("runs", [])
    if not runs:
        return []
    ways = list(dict.fromkeys(way_of(run) for run in runs))
    lines = [
        "## Proposers",
        "",
        "Seconds of matching with all filters, in a warm session.",
        "",
        "| tables | columns | inclusions | " + " | ".join(TITLES[way] for way in ways) + " |",
        "|---|---|---|" + "---|" * len(ways),
    ]
    for n in dict.fromkeys(run["n_tables"] for run in runs):
        own = {way_of(run): run for run in runs if run["n_tables"] == n}
        cells = [seconds_text(phase_s(own[way])) if way in own else "-" for way in ways]
        one = next(iter(own.values()))
        lines.append(f"| {n:,} | {one['n_columns']:,} | {one['n_inds']:,} | " + " | ".join(cells) + " |")
    return lines


def bloom_lines(results: Json) -> list[str]:
    runs = mode_of(results, "blooms").get("runs", [])
    if not runs:
        return []
    lines = [
        "## Signatures",
        "",
        f"{runs[0]['n_tables']:,} tables with all filters through signatures of m bits by k hash functions, "
        "p times: seconds of matching (dep2refs), of reading, which makes them, and of the index, which "
        "transposes them; and their bytes.",
        "",
        "| m | k | p | matching | reading | indexing | signatures and matrix |",
        "|---|---|---|---|---|---|---|",
    ]
    for run in runs:
        phases = (MATCHING, "reading tables", "indexing values")
        cells = " | ".join(seconds_text(phase_s(run, name)) for name in phases)
        size = f"{run['signature_bytes'] / 1e6:,.0f} MB"
        lines.append(f"| {run['m']:,} | {run['k']} | {run['p']} | {cells} | {size} |")
    return lines


def page_lines(results: Json) -> list[str]:
    mode = mode_of(results, "page")
    if "skipped" in mode:
        return ["## The page", "", f"Not measured: {mode['skipped']}."]
    if not mode.get("visits"):
        return []
    times = " ".join(f"{visit['painted']:.0f}" for visit in mode["visits"])
    return [
        "## The page",
        "",
        f"A component of {mode['visits'][0]['nodes']:,} tables and {mode['link']['n_inds']:,} inclusions, in "
        "headless Chromium without a graphics card, each time in a fresh context: milliseconds from the "
        f"start of the navigation to the first paint of the graph: {times}. The first "
        "visit is also the server's first.",
    ]


def agreement_lines(results: Json) -> list[str]:
    lines = [
        "## The same inclusions",
        "",
        "Compared pair by pair with an inverted index in plain Python; of proposers and signatures the "
        "numbers of inclusions, least and most.",
        "",
        "| part | what | holdfast | other | equal |",
        "|---|---|---|---|---|",
    ]
    for name, mode in results["modes"].items():
        for check in mode.get("agreement", []):
            lines.append(
                f"| {name} | {check['what']} | {check['ours']:,} | {check['theirs']:,} "
                f"| {'yes' if check['equal'] else '**NO**'} |"
            )
    return lines


def loud(results: Json) -> list[str]:
    """Errors and disagreements, for the head of the report."""
    lines = []
    for name, mode in results["modes"].items():
        if "error" in mode:
            lines.append(f"**FAILED: {name}: {mode['error']}**")
        for check in mode.get("agreement", []):
            if not check["equal"]:
                lines.append(
                    f"**INCLUSIONS DIFFER: {name}, {check['what']}: holdfast {check['ours']:,}, other "
                    f"{check['theirs']:,}; only holdfast {check.get('only_ours')}, only the other "
                    f"{check.get('only_theirs')}**"
                )
    return [part for line in lines for part in (line, "")]


# --- the plot -----------------------------------------------------------------------------------


def draw(results: Json, file: Path) -> None:
    """Left: seconds of matching by the number of tables, for each proposer. Right: large lakes by phase.

    The left one is left out where proposers were not measured.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 11, "font.family": "DejaVu Sans", "axes.spines.top": False})
    plt.rcParams.update({"axes.spines.right": False, "axes.edgecolor": "#888888"})
    runs = mode_of(results, "proposers").get("runs", [])
    figure, panels = plt.subplots(1, 2 if runs else 1, figsize=(12 if runs else 8, 5), dpi=100, squeeze=False)
    if runs:
        _draw_proposers(panels[0, 0], runs)
    _draw_phases(panels[0, -1], results)
    figure.suptitle("holdfast: inclusions among very many tables", x=0.012, ha="left", fontsize=13)
    figure.subplots_adjust(left=0.08 if runs else 0.16, right=0.97, top=0.86, bottom=0.2, wspace=0.4)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)
    plt.close(figure)


def _draw_proposers(panel, runs: list[Json]) -> None:  # type: ignore[no-untyped-def]
    sizes = sorted({run["n_tables"] for run in runs})
    for way, colour in COLOURS.items():
        points = [(run["n_tables"], s) for run in runs if way_of(run) == way and (s := phase_s(run))]
        if points:
            panel.plot(*zip(*points, strict=True), "-o", color=colour, lw=2, ms=5, label=TITLES[way])
    if runs:
        panel.legend(frameon=False, fontsize=9)
        panel.set(xscale="log", yscale="log")
        panel.set_xticks(sizes, [short(n) for n in sizes])
        panel.set_xticks([], minor=True)
        for of in (panel.yaxis.set_major_formatter, panel.yaxis.set_minor_formatter):
            of("{x:g}")
        panel.tick_params(which="minor", labelsize=8)
    panel.set_xlabel("tables")
    panel.set_ylabel("seconds of matching, all filters")
    panel.set_title("proposers", loc="left", fontweight="bold")
    panel.grid(axis="y", color="#e5e5e5", lw=0.8)


def _draw_phases(panel, results: Json) -> None:  # type: ignore[no-untyped-def]
    bars = [
        (f"{short(run['n_tables'])},\n{title}", run["phases"])
        for title, run in (
            ("no filters", mode_of(results, "many")),
            ("all filters", mode_of(results, "filtered").get("link", {})),
        )
        if run.get("phases")
    ]
    names = list(dict.fromkeys(name for _, phases in bars for name, _ in phases))
    shades = ["#08306b", "#2171b5", "#6baed6", "#c6dbef", "#31a354", "#a1d99b", "#fdae6b"]
    for i, name in enumerate(names):
        widths = [math.fsum(s for phase, s in phases if phase == name) for _, phases in bars]
        starts = [math.fsum(s for phase, s in phases if phase in names[:i]) for _, phases in bars]
        panel.barh(
            range(len(bars)), widths, left=starts, color=shades[i % len(shades)], height=0.5, label=name
        )
    if bars:
        panel.set_yticks(range(len(bars)), [title for title, _ in bars])
        panel.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3)
    panel.set_title("one link, seconds by phase", loc="left", fontweight="bold")
