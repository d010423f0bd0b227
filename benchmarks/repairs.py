"""How good repairs are: on a table with errors whose clean twin is at hand, and on tables with typing errors.

`hospital.dirty.csv` and `hospital.clean.csv`, the table that cleaning is tried on (1,000 rows x 20 columns,
509 wrong cells), in a folder of yours (`--data DIR`), its folder `dirty`, or `data/real`; without them
nothing is run. Columns are compared by their places: the twins name them differently.

Judged are the dependencies that vote by themselves, and for comparison the 60 best of the ranking within an
error of 1 % of the pairs: how many cells are proposed, how many of them are wrong in truth (precision), how
many of the wrong cells that is (recall), and how many of these get the right value. Exit code 1 if the first
falls below what is asked for.

Then every other CSV file of the folder, and of the folders in its folder `databases`, with 200 rows at least:
in each column 1 % of the cells get a wrong letter. Most columns follow from no other, so recall is of columns
that a dependency with a vote determines. What is proposed for the table as it came is counted, too: such
cells may be wrong in truth, but nobody knows. The limits in `functional/repairs.py` were chosen by all of
these tables together: the figures are no forecast for tables of yours.

    python -m benchmarks.repairs [--data DIR] [--results DIR] [--render]
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

import holdfast
from benchmarks import tables
from benchmarks.report import RESULTS, Json, machine, say, versions
from holdfast.functional.repairs import Repairs

NAME = "hospital"
# What a vote of the 60 best dependencies reached before there was a command for it.
PRECISION, RECALL, VALUES = 0.84, 0.73, 1.0
MAX_ERROR, TOP = 0.01, 60
MIN_ROWS = 200


def twins(data: Path | None) -> tuple[Path, Path] | None:
    """(dirty, clean), if they are there."""
    for folder in (*([data, data / "dirty"] if data else []), tables.DATA / "real"):
        pair = folder / f"{NAME}.dirty.csv", folder / f"{NAME}.clean.csv"
        if all(path.exists() for path in pair):
            return pair
    return None


def as_texts(path: Path) -> pa.Table:
    """All cells as texts."""
    names = pa_csv.open_csv(path).schema.names
    texts = pa_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False)
    return pa_csv.read_csv(path, convert_options=texts)


def judged(repairs: Repairs, dirty: pa.Table, clean: pa.Table) -> Json:
    """What the clean twin says of repairs; rows are in the order of the file."""
    right = np.array([column.to_pylist() for column in clean.columns], dtype=object)
    there = np.array([column.to_pylist() for column in dirty.columns], dtype=object)
    rows = repairs.row_ids & 0xFFFFFFFF
    suggested = np.array([str(value) for value in repairs.values()[1]], dtype=object)
    truth = right[repairs.columns, rows]
    wrong = there[repairs.columns, rows] != truth
    n_errors = int((there != right).sum())
    return {
        "dependencies": len(repairs.fds),
        "proposed": len(repairs),
        "wrong": int(wrong.sum()),
        "right_value": int((wrong & (suggested == truth)).sum()),
        "n_errors": n_errors,
        "precision": int(wrong.sum()) / max(1, len(repairs)),
        "recall": int(wrong.sum()) / max(1, n_errors),
    }


def run(paths: tuple[Path, Path], scratch: Path) -> list[Json]:
    dirty, clean = map(as_texts, paths)
    with holdfast.open(scratch / "my.hold", engine="inline") as ws:
        ws.track(NAME, dirty, kinds=("ucc", "fd"), max_error=MAX_ERROR)
        ranked = ws.fds.rank(NAME, TOP, max_error=MAX_ERROR).fds
        cases = []
        for name, fds in (
            ("one column on the left", ()),
            (f"the {TOP} best within {MAX_ERROR:.0%} of the pairs", [(r.fd.lhs, r.fd.rhs) for r in ranked]),
        ):
            started = time.perf_counter()
            repairs = ws.fds.repairs(NAME, fds)
            seconds = time.perf_counter() - started
            cases.append({"voters": name, **judged(repairs, dirty, clean), "seconds": seconds})
            say(json.dumps(cases[-1]))
    return cases


def typos(table: pa.Table, rng: np.random.Generator) -> tuple[pa.Table, dict[tuple[int, int], str]]:
    """(the table as texts, with a wrong letter in some cells; what stood there, by row and column)."""
    columns, before = [], {}
    for c, column in enumerate(table.columns):
        texts = column.cast(pa.string()).to_pylist()
        for i in rng.choice(len(texts), max(1, len(texts) // 100), replace=False).tolist():
            if texts[i]:
                at = int(rng.integers(len(texts[i])))
                before[i, c] = texts[i]
                texts[i] = f"{texts[i][:at]}#{texts[i][at + 1 :]}"
        columns.append(pa.array(texts, pa.string()))
    return pa.table(columns, names=table.column_names), before


def others(data: Path, scratch: Path) -> list[Json]:
    """The tables that get typing errors."""
    cases = []
    paths = [p for p in sorted([*data.glob("*.csv"), *data.glob("databases/*/*.csv")]) if NAME not in p.name]
    with holdfast.open(scratch / "others.hold", engine="inline") as ws:
        for k, path in enumerate(paths):
            try:
                table = as_texts(path)
            except (pa.ArrowInvalid, UnicodeDecodeError) as error:
                say(f"{path.name} is left out: {str(error).splitlines()[0]}")
                continue
            if len(table) < MIN_ROWS:
                continue
            dirty, before = typos(table, np.random.default_rng(k))
            ws.track_all({f"clean{k}": table, f"dirty{k}": dirty}, kinds=("row",))
            repairs = ws.repairs(f"dirty{k}")
            determined = {table.column_names.index(fd.rhs) for fd in repairs.fds}
            cells = zip((repairs.row_ids & 0xFFFFFFFF).tolist(), repairs.columns.tolist(), strict=True)
            proposals = list(zip(cells, repairs.values()[1], strict=True))
            hits = [before[cell] == value for cell, value in proposals if cell in before]
            case = {
                "table": path.stem,
                "as_it_came": len(ws.repairs(f"clean{k}")),
                "n_errors": len(before),
                "determined": sum(c in determined for _, c in before),
                "proposed": len(repairs),
                "wrong": len(hits),
                "right_value": sum(hits),
            }
            if case["as_it_came"] or case["proposed"] or case["determined"]:
                cases.append(case)
                say(json.dumps(case))
    return cases


def write_results(results: Json, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "repairs.json").write_text(json.dumps(results, indent=1) + "\n")
    lines = [
        "# Repairs",
        "",
        f"{results['date']}, `python -m benchmarks repairs`: {NAME}, "
        f"{results['cases'][0]['n_errors']} wrong cells.",
        "",
        "| who votes | dependencies | proposed | wrong | precision | recall | right value | seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for case in results["cases"]:
        shares = f"{case['precision']:.1%} | {case['recall']:.1%}"
        counts = f"{case['dependencies']} | {case['proposed']} | {case['wrong']}"
        lines.append(
            f"| {case['voters']} | {counts} | {shares} | {case['right_value']} | {case['seconds']:.2f} |"
        )
    if results["others"]:
        lines += [
            "",
            "Typing errors in 1 % of the cells of each column; those in columns that others determine count.",
            "",
            "| table | errors | in such columns | proposed | wrong | right value | proposed as it came |",
            "|---|---|---|---|---|---|---|",
        ]
        fields = ("table", "n_errors", "determined", "proposed", "wrong", "right_value", "as_it_came")
        total = {f: sum(case[f] for case in results["others"]) for f in fields[1:]}
        for case in [*results["others"], {"table": "all", **total}]:
            lines.append("| " + " | ".join(str(case[f]) for f in fields) + " |")
    (folder / "repairs.md").write_text("\n".join(lines) + "\n")


def reached(case: Json) -> bool:
    values = case["right_value"] / max(1, case["wrong"])
    return bool(case["precision"] >= PRECISION and case["recall"] >= RECALL and values >= VALUES)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks repairs", description=__doc__)
    parser.add_argument("--data", type=Path, help="a folder with the twins")
    parser.add_argument("--quick", action="store_true", help="it is")
    parser.add_argument("--no-peers", action="store_true", help="there are none")
    parser.add_argument("--timeout", type=float, help="of peers; there are none")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--render", action="store_true", help="write the report again from repairs.json")
    args = parser.parse_args(sys.argv[1:] if argv is None else argv)
    if args.render:
        write_results(json.loads((args.results / "repairs.json").read_text()), args.results)
        return 0
    paths = twins(args.data)
    if paths is None:
        say(
            f"repairs: no {NAME}.dirty.csv with its clean twin, so nothing to judge: name the folder "
            "with --data DIR."
        )
        return 0
    results: dict[str, Any] = {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
        "machine": machine(),
        "versions": versions(),
    }
    with tempfile.TemporaryDirectory(prefix="holdfast-repairs-", ignore_cleanup_errors=True) as scratch:
        results["cases"] = run(paths, Path(scratch))
        results["others"] = others(args.data, Path(scratch)) if args.data else []
    write_results(results, args.results)
    return 0 if reached(results["cases"][0]) else 1


if __name__ == "__main__":
    sys.exit(main())
