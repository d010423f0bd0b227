"""The tour: `make demo`, or `python -m holdfast.app.demo [--engine auto|inline|spark]`.

Tracks the bundled example in a fresh workspace and applies its batches, each shown as the command that a
user would type, followed by what it changed and which rows are the reason.
"""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import holdfast
from holdfast.app.calls import evidence_text
from holdfast.app.report.changes import print_change
from holdfast.app.report.covers import print_cover, print_inds
from holdfast.app.report.explanations import print_fd_explanation
from holdfast.app.report.fds import print_fds
from holdfast.app.report.lake import print_joins, print_lake_change
from holdfast.app.report.links import print_links
from holdfast.app.report.normal_form import print_normal_form
from holdfast.app.report.paper import Paper, progress_on
from holdfast.app.report.rankings import print_dc_ranking, print_ranking
from holdfast.core.words.change import Change
from holdfast.core.words.dependency import Fd, Ind
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.core.engine.engine import Mode

EXAMPLES = Path(__file__).parent / "examples"
TABLE = "orders"
KINDS = ("ucc", "fd", "ind")
KINDS_OF_OTHERS = ("ucc", "ind")
OTHERS = ("customers", "products")


def run(paper: Paper, workspace: Path, engine: Mode = "spark", notes: Paper | None = None) -> list[Change]:
    """The tour in a new workspace; what each step changed. Progress goes to `notes`."""
    started = time.perf_counter()
    changes: list[Change] = []

    def step(title: str, command: str, do: Callable[[holdfast.Workspace], Change]) -> None:
        paper.line()
        paper.line((title, "bold"))
        paper.line((f"$ holdfast -w {shlex.quote(workspace.name)} {command}", "cyan"))
        with (
            progress_on(notes or paper) as hook,
            holdfast.open(workspace, engine=engine, progress=hook) as ws,
        ):
            changes.append(do(ws))
        print_change(paper, changes[-1])

    def look(title: str, command: str) -> None:
        paper.line()
        paper.line((title, "bold"))
        paper.line((f"$ holdfast -w {shlex.quote(workspace.name)} {command}", "cyan"))

    paper.line(("holdfast", "bold"), ": what holds in your data, kept true while the data changes.")
    paper.line("This tour keeps the keys of a shop's orders, what determines what, what they refer to,")
    paper.line("the rules of its parcels, and what joins with what in a folder of tables.")
    if engine == "spark":
        paper.line(("Every step runs on Spark, to show it; work this small would run without.", "dim"))
    step(
        "1. Track a table: which columns are a key?",
        "track orders orders.csv --row-key order_id --kinds ucc,fd,ind",
        lambda ws: ws.track(TABLE, str(EXAMPLES / "orders.csv"), row_key=("order_id",), kinds=KINDS),
    )
    step(
        "2. Five new orders come in. One of them repeats an invoice.",
        "apply orders --inserts 1-inserts.csv",
        lambda ws: ws.apply(TABLE, inserts=str(EXAMPLES / "1-inserts.csv")),
    )
    step(
        "3. That order is deleted, named by its row key.",
        "apply orders --deletes 2-deletes.csv",
        lambda ws: ws.apply(TABLE, deletes=str(EXAMPLES / "2-deletes.csv")),
    )
    step(
        "4. A tracking code that two parcels shared is corrected.",
        "apply orders --updates 3-updates.csv",
        lambda ws: ws.apply(TABLE, updates=str(EXAMPLES / "3-updates.csv")),
    )
    step(
        "5. Two more tables. What is included in what?",
        "track-all customers.csv products.csv --kinds ucc,ind",
        lambda ws: ws.track_all(
            {name: str(EXAMPLES / f"{name}.csv") for name in OTHERS}, kinds=KINDS_OF_OTHERS
        ),
    )
    look("6. Which of these are foreign keys?", "links")
    with holdfast.open(workspace, create=False) as ws:
        print_links(paper, ws.links(), version=ws.version)
    step(
        "7. An order comes in before its customer.",
        "apply orders --inserts 4-inserts.csv",
        lambda ws: ws.apply(TABLE, inserts=str(EXAMPLES / "4-inserts.csv")),
    )
    step(
        "8. The customer arrives.",
        "apply customers --inserts 5-inserts.csv",
        lambda ws: ws.apply("customers", inserts=str(EXAMPLES / "5-inserts.csv")),
    )
    look("9. A column that another one determines: which are worth a look?", "show --top 3")
    with holdfast.open(workspace, create=False) as ws:
        print_ranking(paper, TABLE, ws.rank_fds(TABLE, 3), version=ws.version)
    look("10. A price belongs to its product, not to every order of it.", "normalise orders")
    with holdfast.open(workspace, create=False) as ws:
        print_normal_form(paper, ws.normalise(TABLE), version=ws.version)
    step(
        "11. An order comes in with two digits of its price swapped.",
        "apply orders --inserts 6-inserts.csv",
        lambda ws: ws.apply(TABLE, inserts=str(EXAMPLES / "6-inserts.csv")),
    )
    look("12. How bad is it?", "explain orders 'product -> unit_price'")
    with holdfast.open(workspace, create=False) as ws:
        print_fd_explanation(paper, ws.explain_fd(TABLE, ("product",), "unit_price"))
    step(
        "13. Parcels. Which rules do any two of them keep?",
        "track parcels parcels.csv --kinds dc",
        lambda ws: ws.track("parcels", str(EXAMPLES / "parcels.csv"), kinds=("dc",)),
    )
    look("14. Most of these are accidents of the rows at hand. Which are not?", "show --kind dc --top 3")
    with holdfast.open(workspace, create=False) as ws:
        print_dc_ranking(paper, "parcels", ws.rank_dcs("parcels", 3), version=ws.version)
    step(
        "15. A heavy parcel at the fee of a light one, shipped before it was ordered.",
        "apply parcels --inserts 7-inserts.csv",
        lambda ws: ws.apply("parcels", inserts=str(EXAMPLES / "7-inserts.csv")),
    )
    look("16. A folder of small tables that nobody has described. What joins with what?", "link tables")
    with progress_on(notes or paper) as hook, holdfast.open(workspace, engine=engine, progress=hook) as ws:
        print_lake_change(paper, ws.link(str(EXAMPLES / "tables")))
    look("17. What can this one be joined with?", "joins satellites.csv")
    with holdfast.open(workspace, create=False) as ws:
        lake = ws.lake()
        assert lake is not None
        number, name, _ = lake.subject("satellites.csv")
        print_joins(paper, lake.joins("satellites.csv"), table=number, name=name, version=lake.version)
    look("18. So these hold now.", "show --table orders")
    with holdfast.open(workspace, create=False) as ws:
        now = ws.version
        keys, n_rows = ws.dependencies("ucc", TABLE), ws.n_rows(TABLE)
        print_cover(paper, TABLE, keys, version=now, n_rows=n_rows, max_columns=None)
        paper.line()
        fds = [d for d in ws.dependencies("fd", TABLE) if isinstance(d, Fd)]
        ref = ws.fd_ref(TABLE)
        assert ref is not None
        kept = evidence_text(ref)
        print_fds(paper, TABLE, fds, version=now, n_rows=n_rows, evidence=kept, max_lhs=None)
        paper.line()
        found = [d for d in ws.dependencies("ind", TABLE) if isinstance(d, Ind)]
        print_inds(paper, found, version=now, table=TABLE)
    paper.line()
    paper.line(f"That took {time.perf_counter() - started:.0f} s. The workspace is yours to play with:")
    paper.line((f"export HOLDFAST_WORKSPACE={shlex.quote(str(workspace))}", "cyan"), indent=2)
    program = _program()
    commands = (
        "show --non-uniques",
        "log --kind fd",
        "explain orders invoice",
        "export --format mermaid",
        "explain parcels 'ordered_at < shipped_at'",
        "pin parcels 'not(t.zone = s.zone and t.weight_kg < s.weight_kg and t.fee > s.fee)'",
        "pin orders invoice",
        "explore",
    )
    for command in commands:
        paper.line((f"{program} {command}", "cyan"), indent=2)
    paper.line("and, with the invoice pinned, what would that batch do now? (exit code 1)")
    batch = shlex.quote(_near(EXAMPLES / "1-inserts.csv"))
    paper.line((f"{program} check orders --inserts {batch}", "cyan"), indent=2)
    return changes


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
    folder = Path(tempfile.mkdtemp(prefix="holdfast-demo-"))
    try:
        run(Paper(sys.stdout), folder / "demo.hold", engine, Paper(sys.stderr))
    except HoldfastError as error:
        sys.exit(f"{type(error).__name__}: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
