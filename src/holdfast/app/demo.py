"""The tour: `make demo`, or `python -m holdfast.app.demo [--engine auto|inline|spark]`.

Runs the command line on the bundled example, in a fresh workspace: each step is shown as the command that a
user would type, followed by what the command prints.
"""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
import tempfile
import time
from pathlib import Path

from holdfast.app.calls import INTERRUPTED
from holdfast.app.cli import app
from holdfast.app.report.paper import Paper

EXAMPLES = Path(__file__).parent / "examples"
STEPS = (
    (
        "Track a table: which columns are a key?",
        "track orders orders.csv --row-key order_id --kinds ucc,fd,ind",
    ),
    ("Five new orders come in. One of them repeats an invoice.", "apply orders --inserts 1-inserts.csv"),
    ("That order is deleted, named by its row key.", "apply orders --deletes 2-deletes.csv"),
    ("A tracking code that two parcels shared is corrected.", "apply orders --updates 3-updates.csv"),
    (
        "Two more tables. What is included in what?",
        "track-all customers.csv products.csv --kinds ucc,ind",
    ),
    ("Which of these are foreign keys?", "links"),
    ("An order comes in before its customer.", "apply orders --inserts 4-inserts.csv"),
    ("The customer arrives.", "apply customers --inserts 5-inserts.csv"),
    ("A column that another one determines: which are worth a look?", "show --top 3"),
    ("A price belongs to its product, not to every order of it.", "normalise orders"),
    ("An order comes in with two digits of its price swapped.", "apply orders --inserts 6-inserts.csv"),
    ("How bad is it?", "explain orders 'product -> unit_price'"),
    ("Parcels. Which rules do any two of them keep?", "track parcels parcels.csv --kinds dc"),
    ("Most of these are accidents of the rows at hand. Which are not?", "show --kind dc --top 4"),
    (
        "A heavy parcel at the fee of a light one, shipped before it was ordered.",
        "apply parcels --inserts 7-inserts.csv",
    ),
    ("A folder of small tables that nobody has described. What joins with what?", "link tables"),
    ("What can this one be joined with?", "joins satellites.csv"),
    ("So these hold now.", "show --table orders"),
)
CHANGING = ("track", "track-all", "apply", "link")
NEXT = (
    "show --non-uniques",
    "log --kind fd",
    "explain orders invoice",
    "export --format mermaid",
    "explain parcels 'ordered_at < shipped_at'",
    "pin parcels 'not(t.zone = s.zone and t.weight_kg < s.weight_kg and t.fee > s.fee)'",
    "pin orders invoice",
    "explore",
)


def run(workspace: Path, engine: str = "spark") -> None:
    """The tour in a new workspace, on standard output; progress goes to standard error."""
    started = time.perf_counter()
    paper = Paper(sys.stdout)
    paper.line(("holdfast", "bold"), ": what holds in your data, kept true while the data changes.")
    paper.line("This tour keeps the keys of a shop's orders, what determines what, what they refer to,")
    paper.line("the rules of its parcels, and what joins with what in a folder of tables.")
    if engine == "spark":
        paper.line(("From the second step on it runs on Spark, to show it; so little needs none.", "dim"))
    for i, (title, command) in enumerate(STEPS, 1):
        paper.line()
        paper.line((f"{i}. {title}", "bold"))
        paper.line((f"$ holdfast -w {shlex.quote(workspace.name)} {command}", "cyan"))
        name, *arguments = shlex.split(command)
        # Spark takes seconds to start: something is there to read meanwhile.
        runs_on = engine if name in CHANGING and (i > 1 or engine != "spark") else "auto"
        settings = ["-w", str(workspace.absolute()), "--engine", runs_on]
        with contextlib.chdir(EXAMPLES):
            code = app([*settings, name, *arguments], prog_name="holdfast", standalone_mode=False)
        if code:
            sys.exit(code)
    paper.line()
    paper.line(f"That took {time.perf_counter() - started:.0f} s. The workspace is yours to play with:")
    paper.line((f"export HOLDFAST_WORKSPACE={shlex.quote(str(workspace))}", "cyan"), indent=2)
    program = _program()
    for command in NEXT:
        paper.line((f"{program} {command}", "cyan"), indent=2)
    paper.line("and, with the invoice pinned, what would that batch do now? (exit code 1)")
    batch = shlex.quote(_near(EXAMPLES / "1-inserts.csv"))
    paper.line((f"{program} check orders --inserts {batch}", "cyan"), indent=2)


def _program() -> str:
    """How to call the command line that belongs to this interpreter."""
    beside = Path(sys.executable).parent / "holdfast"
    if not beside.exists():
        return f"{shlex.quote(sys.executable)} -m holdfast"
    return shlex.quote(_near(beside))


def _near(path: Path) -> str:
    """The path, relative if it lies below the current folder."""
    with contextlib.suppress(ValueError):
        path = path.relative_to(Path.cwd())
    return str(path)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m holdfast.app.demo", description=__doc__)
    parser.add_argument("--engine", choices=("auto", "inline", "spark"), default="spark")
    engine = parser.parse_args().engine
    try:
        run(Path(tempfile.mkdtemp(prefix="holdfast-demo-"), "demo.hold"), engine)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
