"""The report of the benchmark of denial constraints: what was to be reached, tables, and a plot."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from pathlib import Path

from benchmarks.published import TABLE_10, Figures
from benchmarks.report import Json, Target, busy, peer_seconds, peer_text, seconds_text, short

KINDS = ("insert", "delete")
COLOURS = {"track": "#31a354", "pin": "#756bb1", "insert": "#2171b5", "delete": "#d95f0e"}

# Most seconds of `track`, `pin`, an insert batch and a delete batch.
REACH: dict[str, dict[str, float]] = {
    "airport": {"track": 5.0, "insert": 0.8},
    "adult": {"track": 900.0},
    "tax-500k": {"insert": 5.0, "delete": 10.0},
}
PIN_REACH = {"pin": 10.0, "insert": 0.5, "delete": 0.5}
ADULT_BYTES = 12e9
ADULT_FASTER = 10.0  # a batch than our own from scratch
TAX_GROWTH = 2.0  # a batch on 500,000 rows than on 50,000
WORDS = {"track": "from scratch", "pin": "verify", "insert": "insert", "delete": "delete"}


@dataclass(frozen=True)
class Row(Target):
    """`ratio`: how far within the reach; below 1 it was missed."""

    ratio: float | None = None


# --- figures from results -----------------------------------------------------------------------


def find_mode(results: Json, name: str) -> Json:
    return next((mode for mode in results["modes"] if mode["name"] == name), {})


def seconds_of(mode: Json, what: str) -> float | None:
    """Of `track` and `pin` the seconds, of batches the median."""
    if what not in KINDS:
        told: float | None = mode.get(what, {}).get("elapsed_s")
        return told
    seconds = [batch["elapsed_s"] for batch in mode.get("batches", []) if batch["kind"] == what]
    return statistics.median(seconds) if seconds else None


def reach_of(mode: Json, what: str) -> float | None:
    return (PIN_REACH if mode.get("rule") else REACH.get(mode["name"], {})).get(what)


def peer_run(results: Json, mode: Json, state: str = "tracked") -> Json | None:
    runs: list[Json] = results["peers"]
    found = (run for run in runs if run["stem"] == mode.get("stem") and run["state"] == state)
    return next(found, None)


def within(what: str, most: float, ours: float | None) -> Row:
    if ours is None:
        return Row(what, f"<= {most:g} s", "", None)
    return Row(what, f"<= {most:g} s", f"{seconds_text(ours)} s", ours <= most, most / ours)


def targets(results: Json) -> list[Row]:
    """What was to be reached, with what this run reached."""
    found = []
    airport = find_mode(results, "airport")
    ours = seconds_of(airport, "track")
    found.append(within("airport 30,000 x 11: from scratch", REACH["airport"]["track"], ours))
    theirs, at_least = peer_seconds(peer_run(results, airport))
    reach = "faster than FastADC, load + run"
    if ours is None or theirs is None:
        found.append(Row("airport: from scratch", reach, "", None))
    else:
        told = f"{seconds_text(ours)} s (FastADC {'> ' if at_least else ''}{theirs:.1f} s)"
        met = True if ours <= theirs else None if at_least else False
        found.append(Row("airport: from scratch", reach, told, met, theirs / ours))
    what = "airport: insert 3,000 rows"
    found.append(within(what, REACH["airport"]["insert"], seconds_of(airport, "insert")))

    adult = find_mode(results, "adult")
    scratch = seconds_of(adult, "track")
    found.append(within("adult 24,000 x 15, all predicates: from scratch", REACH["adult"]["track"], scratch))
    peak = adult.get("track", {}).get("peak_bytes")
    reach = f"<= {ADULT_BYTES / 1e9:g} GB"
    if peak is None:
        found.append(Row("adult: memory of all processes", reach, "", None))
    else:
        told, met = f"{peak / 1e9:.1f} GB", peak <= ADULT_BYTES
        found.append(Row("adult: memory of all processes", reach, told, met, ADULT_BYTES / peak))
    for kind in KINDS:
        ours = seconds_of(adult, kind)
        what, reach = f"adult: {kind} 1 %", f">= {ADULT_FASTER:g} x faster than from scratch"
        if ours is None or scratch is None:
            found.append(Row(what, reach, "", None))
            continue
        faster = scratch / ours
        told = f"{faster:.1f} x ({seconds_text(ours)} s)"
        found.append(Row(what, reach, told, faster >= ADULT_FASTER, faster / ADULT_FASTER))

    small, large = find_mode(results, "tax-50k"), find_mode(results, "tax-500k")
    for kind in KINDS:
        what, ours = f"tax 500,000 x 15: {kind} 1,000 rows", seconds_of(large, kind)
        found.append(within(what, REACH["tax-500k"][kind], ours))
    for kind in KINDS:
        ours, before = seconds_of(large, kind), seconds_of(small, kind)
        what, reach = f"tax: {kind} 1,000 rows", f"<= {TAX_GROWTH:g} x the time on 50,000 rows"
        if ours is None or before is None:
            found.append(Row(what, reach, "", None))
            continue
        more = ours / before
        told = f"{more:.2f} x ({seconds_text(before)} and {seconds_text(ours)} s)"
        found.append(Row(what, reach, told, more <= TAX_GROWTH, TAX_GROWTH / more))
    found += [against_incdc(line, find_mode(results, name)) for name, line in TABLE_10.items()]
    for mode in results["modes"]:
        if mode["rule"]:
            for key, most in PIN_REACH.items():
                rows = "" if key == "pin" else f" {mode['n_batch']:,} rows"
                what = f"{title(mode)}: {WORDS[key]}{rows}"
                found.append(within(what, most, seconds_of(mode, key)))
    return found


def against_incdc(line: Figures, mode: Json) -> Row:
    """10 % inserts beside IncDC's published figure."""
    shape = f"{short(mode.get('n_rows', line.n_rows))} x {mode.get('n_columns', line.n_columns)}"
    what = f"{line.title} {shape}: insert 10 %"
    reach, ours = f"no slower than IncDC as published, {line.seconds:g} s", seconds_of(mode, "insert")
    if ours is None:
        return Row(what, reach, "", None)
    return Row(what, reach, f"{seconds_text(ours)} s", ours <= line.seconds, line.seconds / ours)


# --- the report ---------------------------------------------------------------------------------


def title(mode: Json) -> str:
    """A mode's table, or its rule."""
    if mode["rule"]:
        return f"`{mode['rule']}` on {mode['table']} {short(mode['n_rows'])}"
    name = mode["name"].removeprefix("table10-").partition("-")[0]
    return f"{name} {short(mode['n_rows'])} x {mode.get('n_columns', '-')}"


def markdown(results: Json, plot: str) -> str:
    host = results["machine"]
    lines = ["# Denial constraints: from scratch, batches, pinned rules", "", *loud(results), *busy(results)]
    lines += [
        f"`{results['command']}` on {results['date']}; {host['cores']} cores ({host['cpu']}), "
        f"{host['memory_bytes'] / 2**30:.0f} GiB, {host['system']}; "
        + ", ".join(f"{name} {version}" for name, version in results["versions"].items())
        + ".",
        "",
        f"![seconds]({plot})",
        "",
        "## To reach",
        "",
        "The ratio says how far within the reach a figure is; below 1 it is not.",
        "",
        "| what | reach | reached | ratio | |",
        "|---|---|---|---|---|",
    ]
    for t in targets(results):
        ratio = "-" if t.ratio is None else f"{t.ratio:.2f}"
        lines.append(f"| {t.what} | {t.reach} | {t.reached or '-'} | {ratio} | {t.verdict} |")
    for section in (scratch_lines, batch_lines, published_lines, pin_lines, agreement_lines):
        lines += ["", *section(results)]
    return "\n".join(lines) + "\n"


def scratch_lines(results: Json) -> list[str]:
    lines = [
        "## From scratch",
        "",
        "Seconds of `track` in a warm session; its memory is that of driver, JVM and workers together (PSS). "
        "FastADC: load + run (peak RSS); on adult without comparisons of different columns, which holdfast "
        "has.",
        "",
        "| table | predicates | constraints | evidence | holdfast | memory | FastADC |",
        "|---|---|---|---|---|---|---|",
    ]
    for mode in results["modes"]:
        if mode["rule"] or "track" not in mode:
            continue
        track = mode["track"]
        peak, n_dcs = track.get("peak_bytes"), track.get("n_dcs")
        lines.append(
            f"| {title(mode)} | {mode.get('n_predicates', '-')} | {'-' if n_dcs is None else f'{n_dcs:,}'} "
            f"| {mode.get('evidence_kind', '-')} | {seconds_text(track.get('elapsed_s'))} "
            f"| {'-' if peak is None else f'{peak / 1e9:.1f} GB'} | {peer_text(peer_run(results, mode))} |"
        )
    return lines


def batch_lines(results: Json) -> list[str]:
    lines = [
        "## Batches",
        "",
        "Seconds of `apply` from a pyarrow Table to the commit, in a warm session: median of the batches "
        "(the slowest in brackets). Inserts are new rows, deletes old ones, in turn. Broke, appeared: "
        "constraints, by the first batch of each kind.",
        "",
        "| table | rows | inserts | broke | deletes | appeared | from scratch |",
        "|---|---|---|---|---|---|---|",
    ]
    for mode in results["modes"]:
        if mode["rule"] or not mode.get("batches"):
            continue
        cells = []
        for kind in KINDS:
            batches = [batch for batch in mode["batches"] if batch["kind"] == kind]
            told = batches[0]["events"] if batches else {}
            event = told.get("broke", 0) if kind == "insert" else told.get("appeared", 0)
            cells += [batch_text([batch["elapsed_s"] for batch in batches]), f"{event:,}"]
        scratch = seconds_text(seconds_of(mode, "track"))
        lines.append(f"| {title(mode)} | {mode['n_batch']:,} | {' | '.join(cells)} | {scratch} |")
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


def published_lines(results: Json) -> list[str]:
    lines = [
        "## Beside IncDC's table 10",
        "",
        "Seconds of a batch of inserts, 10 % of the rows, beside those the paper has of IncDC (6 cores at "
        "1.9 GHz, its indexes in memory). AirPort, Adult and Claim are the real ones where they are at hand; "
        "others stand in, in the published shape (`published.py`). Predicates: across columns in brackets. "
        "Changed: constraints that the batch broke, and that appeared.",
        "",
        "| table | rows x columns | predicates | constraints, published | changed, published "
        "| 10 % inserts | IncDC as published | from scratch |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, line in TABLE_10.items():
        mode = find_mode(results, name)
        n_dcs = mode.get("track", {}).get("n_dcs")
        if n_dcs is None:
            continue
        shape, theirs = f"{mode['n_rows']:,} x {mode['n_columns']}", f"{line.n_rows:,} x {line.n_columns}"
        predicates = f"{mode.get('n_comparisons', '-')} ({mode.get('n_across', '-')})"
        changed = sum(mode["changed"].values()) if "changed" in mode else None
        lines.append(
            f"| {line.title}{'' if mode.get('real') else ' (stand-in)'} | {beside(shape, theirs)} "
            f"| {beside(predicates, f'{line.predicates} ({line.across})')} | {n_dcs:,}, {line.dcs:,} "
            f"| {'-' if changed is None else f'{changed:,}'}, {line.changes:,} "
            f"| {seconds_text(seconds_of(mode, 'insert'))} | {line.seconds:g} "
            f"| {seconds_text(seconds_of(mode, 'track'))} |"
        )
    return lines


def beside(ours: str, theirs: str) -> str:
    """
    >>> beside("8", "8"), beside("8", "9")
    ('8', '8, published 9')
    """
    return ours if ours == theirs else f"{ours}, published {theirs}"


def pin_lines(results: Json) -> list[str]:
    lines = [
        "## Pinned rules",
        "",
        "On tables of which only keys of one column are tracked. Seconds to pin (which counts all "
        "violations), and of batches of 1,000 rows with the rule and, in brackets, without it. The "
        "violations after the last batch are compared with those of a sort and a scan.",
        "",
        "| rule | verify | inserts | deletes | violations | the same |",
        "|---|---|---|---|---|---|",
    ]
    for mode in results["modes"]:
        if not mode["rule"]:
            continue
        cells = []
        for kind in KINDS:
            without = [b["elapsed_s"] for b in mode.get("batches_without", []) if b["kind"] == kind]
            told = seconds_text(statistics.median(without)) if without else "-"
            cells.append(f"{seconds_text(seconds_of(mode, kind))} ({told})")
        counted, ours = mode.get("violations_counted"), mode.get("violations")
        same = "-" if counted is None or ours is None else "yes" if counted == ours else "**NO**"
        lines.append(
            f"| {title(mode)}; {mode['note']} | {seconds_text(seconds_of(mode, 'pin'))} "
            f"| {' | '.join(cells)} | {'-' if counted is None else f'{counted:,}'} | {same} |"
        )
    return lines


def agreement_lines(results: Json) -> list[str]:
    lines = [
        "## The same constraints",
        "",
        "Compared one by one, in their most general form, one of each mirrored pair. Where one side has what "
        "the other has not, the rows decide. At the end, the constraints that were maintained are compared "
        "with those of `track` on the rows as they are then.",
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
        n_dcs, published = mode.get("track", {}).get("n_dcs"), mode.get("published_dcs")
        if n_dcs is not None and published is not None and n_dcs != published:
            lines.append(f"**CONSTRAINTS: {title(mode)}: {n_dcs:,}, published are {published:,}**")
        counted, ours = mode.get("violations_counted"), mode.get("violations")
        if counted is not None and counted != ours:
            lines.append(f"**VIOLATIONS DIFFER: {title(mode)}: holdfast {ours}, there are {counted:,}**")
        for check in mode["agreement"]:
            if check["ours_wrong"]:
                lines.append(
                    f"**CONSTRAINTS DIFFER: {title(mode)}, {check['what']}: holdfast {check['ours']:,}, "
                    f"other {check['theirs']:,}; wrong {check['ours_wrong']}, of which {check['unjudged']} "
                    f"not judged; false {check['false']}, missed {check['missed']}**"
                )
    for run in results["peers"]:
        if run["outcome"] == "failed":
            lines.append(f"**FAILED: {run['key']}: {run['error']}**")
    return [part for line in lines for part in (line, "")]


# --- the plot -----------------------------------------------------------------------------------


def draw(results: Json, file: Path) -> None:
    """A line for each mode: from scratch or pin, inserts, deletes, what was to be reached, and FastADC."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 11, "font.family": "DejaVu Sans", "axes.spines.top": False})
    plt.rcParams.update({"axes.spines.right": False, "axes.edgecolor": "#888888"})
    modes = [mode for mode in results["modes"] if seconds_of(mode, "track") is not None]
    if not modes:
        return
    figure, panel = plt.subplots(figsize=(12, 1.9 + 0.6 * len(modes)), dpi=100)
    labels = []
    for row, mode in enumerate(modes):
        name = f"{mode['name']} {short(mode['n_rows'])}" if mode["rule"] else title(mode)
        labels.append(f"{name}, {mode['n_batch']:,} rows")
        for what, lift in (("pin" if mode["rule"] else "track", 0.26), ("insert", 0.0), ("delete", -0.26)):
            if (ours := seconds_of(mode, what)) is not None:
                panel.plot(ours, row - lift, "o", color=COLOURS[what], ms=8, zorder=3)
            if (limit := reach_of(mode, what)) is not None:
                panel.plot([limit] * 2, [row - lift - 0.13, row - lift + 0.13], color="#222222", lw=2.5)
        level, at_least = peer_seconds(peer_run(results, mode))
        if level is not None:
            panel.plot(level, row - 0.26, ">" if at_least else "x", color="#888888", ms=8, mew=2, zorder=2)
    panel.set_xscale("log")
    panel.set_yticks(range(len(modes)), labels)
    panel.set_ylim(len(modes) - 0.4, -0.6)
    low, high = panel.get_xlim()
    whole = [10.0**i for i in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
    panel.set_xticks(whole, [f"{t:g} s" for t in whole])
    panel.minorticks_off()
    panel.grid(axis="x", color="#e5e5e5", lw=0.8)
    panel.tick_params(color="#888888", length=3)
    for what, label in (("track", "from scratch"), ("pin", "pin a rule"), *((k, f"{k}s") for k in KINDS)):
        panel.plot([], [], "o", color=COLOURS[what], ms=8, label=label)
    panel.plot([], [], color="#222222", lw=2.5, label="to reach")
    panel.plot([], [], "x", color="#888888", ms=8, mew=2, ls="", label="FastADC (> stopped)")
    panel.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncol=6, frameon=False)
    panel.set_title(
        "holdfast: seconds to find and keep denial constraints\n", loc="left", fontsize=13, x=-0.2, pad=22
    )
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)
    plt.close(figure)
