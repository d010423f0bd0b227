"""All figures that have something to reach, on one page: `benchmarks/README.md`, between two marks.

Every run of a benchmark ends with it; `python -m benchmarks glance` writes it again. It reads the tables that
the reports have, so it says what they say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parent / "README.md"
BEGIN, END = "<!-- glance: written by the benchmarks -->", "<!-- /glance -->"
HEADS = (("what", "reach", "reached"), ("what", "to reach", "reached"))
UNMEASURED = "not measured"
BUSY = "**The machine was busy"


def targets(report: str) -> Iterator[tuple[str, str, str, str]]:
    """(what, reach, reached, verdict) of each figure in a report.

    >>> list(targets("| what | reach | reached | |\\n|---|---|---|---|\\n| a | <= 1 s | 2 s | **no** |"))
    [('a', '<= 1 s', '2 s', '**no**')]
    """
    inside = False
    for line in report.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            inside = False
        elif tuple(cells[:3]) in HEADS:
            inside = True
        elif inside and not set(line) <= set("|-: "):
            what, reach, reached, *_, verdict = cells if len(cells) > 3 else [*cells, ""]
            yield what, reach, reached, verdict


def glance(results: Path = RESULTS) -> str:
    """The page's part: a line for each figure, and how many of them fall short."""
    lines, n, short = [], 0, 0
    for path in sorted(results.glob("*.md")):
        report = path.read_text("utf-8")
        rows = [row for row in targets(report) if row[3] != UNMEASURED]  # another report has them
        if not rows or path.stem.endswith("-quick"):
            continue
        title = re.sub(r"^# *", "", report.partition("\n")[0])
        busy = ", measured on a busy machine" if BUSY in report else ""
        lines += [
            "",
            f"**[{title}](results/{path.name})**{busy}",
            "",
            "| what | reach | reached | |",
            "|---|---|---|---|",
        ]
        for what, reach, reached, verdict in rows:
            met = verdict == "yes"
            n, short = n + 1, short + (not met)
            lines.append(f"| {what} | {reach} | {reached} | {'' if met else verdict} |")
    total = f"{n} figures have something to reach; {short} of them fall short, and are marked."
    return "\n".join([total, *lines, ""])


def page(text: str, results: Path = RESULTS) -> str:
    """The page with its part as the reports have it now."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{glance(results)}\n{END}{after}"


def main(argv: list[str] | None = None) -> int:
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
    return 0
