"""The report of the benchmark of the page: what was to be reached, and what each visit took."""

from __future__ import annotations

import statistics

from benchmarks.report import Json, Target, busy

# What, its part, its visits, seconds to reach.
FIRST_PAINTS = (
    (
        "overview: {n_tables:,} tables, {n_versions:,} versions, {n_dependencies:,} dependencies",
        "overview",
        "overview",
        1,
    ),
    ("a table with {n_dependencies:,} functional dependencies: first list", "table", "table", 1),
    ("the map of {n_tables:,} tables, {n_references:,} references", "map", "map", 2),
    ("a lake of {n_tables:,} tables: its components", "lake", "lake", 1),
    ("a component of {n_nodes:,} tables", "lake", "component", 2),
)
FILTERED_S = 0.2


# A part, what there are to be of it at least, and what there are.
SIZES = (
    ("overview", "the overview: dependencies", "least_dependencies", "n_dependencies"),
    ("table", "the table: functional dependencies", "least_dependencies", "n_dependencies"),
)


def targets(results: Json) -> list[Target]:
    """What was to be reached, with what this run reached: medians."""
    listed = []
    for what, name, visited, most in FIRST_PAINTS:
        mode = results["modes"].get(name)
        if mode is None or "error" in mode:
            continue
        times = mode[visited].get("ms", [])
        listed.append(_within(what.format(**mode), most, statistics.median(times) / 1000 if times else None))
    for name, what, least, n in SIZES:
        mode = results["modes"].get(name, {})
        if n in mode:
            listed.append(Target(what, f">= {mode[least]:,}", f"{mode[n]:,}", mode[n] >= mode[least]))
    table = results["modes"].get("table", {}).get("table", {})
    if table:
        times = table.get("filtered_ms", [])
        what = "the same table: a filter by column" + (f", of {len(times)} columns" if times else "")
        listed.append(_within(what, FILTERED_S, statistics.median(times) / 1000 if times else None))
    drawn = results["modes"].get("map", {}).get("map", {})
    if drawn:
        to_reach = (
            ("references drawn", results["modes"]["map"]["n_references"], drawn.get("n_drawn")),
            ("edges through a box", 0, drawn.get("crossings")),
        )
        for what, wanted, n in to_reach:
            met = None if n is None else n == wanted
            listed.append(Target(f"the map: {what}", str(wanted), "" if n is None else str(n), met))
    return listed


def _within(what: str, most: float, reached: float | None) -> Target:
    met = None if reached is None else reached <= most
    return Target(what, f"<= {most:g} s", "" if reached is None else f"{reached:.2f} s", met)


def markdown(results: Json) -> str:
    host = results["machine"]
    lines = ["# The page: how long somebody waits", ""]
    for name, mode in results["modes"].items():
        if "error" in mode:
            lines += [f"**FAILED: {name}: {mode['error']}**", ""]
    lines += busy(results)
    lines += [
        f"`{results['command']}` on {results['date']}; {host['cores']} cores ({host['cpu']}), "
        f"{host['system']}, "
        f"load {host['load_at_start']} at the start; "
        + ", ".join(f"{name} {version}" for name, version in results["versions"].items())
        + ".",
        "",
        "Headless Chromium without a graphics card; each visit in a fresh context, with a server that was "
        "just started. From the start of the navigation to the mark that the page sets; medians.",
        "",
        "That no view has a serious violation of WCAG 2.1 A and AA is not measured here but tested, by "
        "axe-core on every view in light, in the dark and on a narrow screen: "
        "`tests/app/test_page_views.py`.",
        "",
        "| what | reach | reached | |",
        "|---|---|---|---|",
    ]
    lines += [f"| {t.what} | {t.reach} | {t.reached or '-'} | {t.verdict} |" for t in targets(results)]
    lines += ["", "| part | mark | milliseconds of each visit |", "|---|---|---|"]
    for name, mode in results["modes"].items():
        for visited in (part for part in mode.values() if isinstance(part, dict)):
            times = visited.get("skipped") or " ".join(f"{ms:.0f}" for ms in visited["ms"])
            lines.append(f"| {name} | {visited.get('mark', '-')} | {times} |")
            if "filtered_ms" in visited:
                times = " ".join(f"{ms:.0f}" for ms in visited["filtered_ms"])
                lines.append(f"| {name} | holdfast-filtered | {times} |")
    return "\n".join(lines) + "\n"
