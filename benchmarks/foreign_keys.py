"""Foreign keys of databases that declare them: does `links` propose them, do reports tell them first?

A database is a folder of CSV files, DIR/NAME/*.csv, and beside it NAME.truth.json: {"pk": {table: columns},
"fk": [[table, columns, table, columns], ...]}. Those of --data DIR are measured, else those of
data/databases; without one there is nothing to measure, and that is said.

1. **links**: with kinds ucc (up to 3 columns) and ind, inline. Which true foreign keys are proposed, which of
   the proposed ones are none; which primary keys are chosen. The same of the choice that reports make, which
   reads no rows.
2. **one orphan**: for each true foreign key of one column with a value, a check of one row whose value there
   is in no other table. Whether the foreign key is the first of all changes, how many inclusions broke with
   it, and how much of the check went into the ranking.

    python -m benchmarks.foreign_keys [--data DIR] [--render]
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import tables
from benchmarks.inds import LINKS_MAX_COLUMNS, link_name
from benchmarks.report import RESULTS, Json, Target, busy, machine, say, versions

DATABASES = tables.DATA / "databases"
STEM = "foreign-keys"
# What is to be reached, of the 46 foreign keys of Chinook, Northwind and Sakila.
LEAST_PROPOSED, MOST_WRONG = 43 / 46, 2
ORPHANS = {"number": 70_000_001, "text": "no such value"}


# --- one database -------------------------------------------------------------------------------


def measure(name: str, folder: Path, scratch: Path) -> Json:
    import holdfast

    truth = json.loads((folder / f"{name}.truth.json").read_text())
    true = {link_name((child, tuple(a)), (parent, tuple(b))) for child, a, parent, b in truth["fk"]}
    sources = {file.stem: str(file) for file in sorted((folder / name).glob("*.csv"))}
    with holdfast.open(scratch / f"{name}.hold", engine="inline") as ws:
        started = time.perf_counter()
        ws.track_all(sources, kinds=("ucc", "ind"), max_columns=LINKS_MAX_COLUMNS)
        tracked = time.perf_counter()
        linkage = ws.inds.links()
        linked = time.perf_counter()
        proposed = {_name(link): link for link in linkage.links if link.chosen}
        inds = ws.dependencies("ind", ranked=True)
        reported = {
            _name(ind)
            for ind, rank in zip(inds, ws.readers.order(None).ranks(inds), strict=True)
            if rank.role == "foreign key"
        }
        orphans = [_orphan(ws, Path(sources[fk[0]]), fk, scratch) for fk in _single(ws, truth["fk"])]
        keys = {t: set(k) for t, k in truth["pk"].items()}
        n_primary = sum(set(linkage.primary_keys.get(t, ())) == key for t, key in keys.items())
        out = {
            "name": name,
            "n_tables": len(sources),
            "n_true": len(true),
            "n_candidates": len(linkage.links),
            "hits": len(true & proposed.keys()),
            "missed": sorted(true - proposed.keys()),
            "wrong": sorted(proposed.keys() - true),
            "unproved": sorted(name for name, link in proposed.items() if not link.proved),
            "report_hits": len(true & reported),
            "report_wrong": sorted(reported - true),
            "n_primary": n_primary,
            "n_keys": len(keys),
            "track_s": tracked - started,
            "links_s": linked - tracked,
            "orphans": orphans,
        }
    first = sum(o["first"] for o in orphans)
    say(
        f"{name}: {out['hits']} of {out['n_true']} foreign keys proposed, {len(out['wrong'])} wrong; "
        f"first in {first} of {len(orphans)} reports"
    )
    return out


def _name(link: Any) -> str:
    dependent, referenced = link.dependent, link.referenced
    return link_name((dependent.table, dependent.columns), (referenced.table, referenced.columns))


def _single(ws: Any, foreign_keys: list[Any]) -> Iterator[Any]:
    """The foreign keys of one column that hold and have a value."""
    holding = {_name(ind) for ind in ws.dependencies("ind")}
    for child, columns, parent, referenced in foreign_keys:
        if len(columns) == 1 and link_name((child, tuple(columns)), (parent, tuple(referenced))) in holding:
            yield child, columns[0], parent, referenced[0]


def _orphan(ws: Any, source: Path, fk: tuple[str, str, str, str], scratch: Path) -> Json:
    """A check of a row like the first of a table, but with a value that no other column has."""
    child, column, parent, referenced = fk
    schema = ws.schema(child)
    with source.open(newline="", encoding="utf-8-sig") as lines:
        row = next(iter(csv.DictReader(lines)))
    [first_key, *more] = ws.dependencies("ucc", child, ranked=True)[0].columns
    for name, value in ((column, 0), *((first_key, 1),) * (not more and first_key != column)):
        is_text = schema.types[schema.names.index(name)].family == "text"
        row[name] = f"{ORPHANS['text']} {value}" if is_text else str(int(ORPHANS["number"]) + value)
    batch = scratch / "orphan.csv"
    with batch.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, list(row))
        writer.writeheader()
        writer.writerow(row)
    spent: list[float] = []
    ranked = ws.readers.ranked

    def timed(*args: Any) -> Any:
        started = time.perf_counter()
        try:
            return ranked(*args)
        finally:
            spent.append(time.perf_counter() - started)

    ws.readers.ranked = timed
    try:
        started = time.perf_counter()
        change = ws.check(child, inserts=str(batch))
        elapsed = time.perf_counter() - started
    finally:
        del ws.readers.ranked
    name = link_name((child, (column,)), (parent, (referenced,)))
    broke = [c.dependency for c in change.broke if c.dependency.kind == "ind"]
    return {
        "foreign_key": name,
        "first": _name(change.changes[0].dependency) == name if broke else False,
        "n_broke": len(broke),
        "check_s": elapsed,
        "ranking_s": sum(spent),
    }


# --- all of them --------------------------------------------------------------------------------


def databases(data: Path | None) -> tuple[Path, list[str]]:
    folder = DATABASES if data is None else data
    names = [file.name.removesuffix(".truth.json") for file in sorted(folder.glob("*.truth.json"))]
    return folder, [name for name in names if (folder / name).is_dir()]


def targets(results: Json) -> list[Target]:
    cases = results["cases"]
    n_true, hits = (sum(case[field] for case in cases) for field in ("n_true", "hits"))
    n_wrong = sum(len(case["wrong"]) for case in cases)
    orphans = [o for case in cases for o in case["orphans"]]
    n_first = sum(o["first"] for o in orphans)
    return [
        Target(
            "true foreign keys that are proposed",
            f"{LEAST_PROPOSED:.0%}",
            f"{hits} of {n_true}",
            hits >= LEAST_PROPOSED * n_true,
        ),
        Target("proposed ones that are none", f"at most {MOST_WRONG}", str(n_wrong), n_wrong <= MOST_WRONG),
        Target(
            "reports of one orphan that begin with the foreign key",
            "all",
            f"{n_first} of {len(orphans)}",
            n_first == len(orphans),
        ),
    ]


def markdown(results: Json) -> str:
    lines = [
        "# Foreign keys of known databases",
        "",
        *busy(results),
        f"`{results['command']}`, {results['date']}.",
        "",
        "| what | to reach | reached | met |",
        "|---|---|---|---|",
        *(f"| {t.what} | {t.reach} | {t.reached} | {t.verdict} |" for t in targets(results)),
        "",
        "Reports choose without a look at rows: the columns `in reports` are that choice.",
        "",
        "| database | tables | candidates | proposed | wrong | in reports | wrong | primary keys | first of "
        "one orphan | inclusions that broke with it | ranking of a check |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for case in results["cases"]:
        orphans = case["orphans"]
        first = sum(o["first"] for o in orphans)
        most = max((o["n_broke"] for o in orphans), default=0)
        ranking, check = (sum(o[field] for o in orphans) for field in ("ranking_s", "check_s"))
        lines.append(
            f"| {case['name']} | {case['n_tables']} | {case['n_candidates']} | {case['hits']} of "
            f"{case['n_true']} | {len(case['wrong'])} | {case['report_hits']} | {len(case['report_wrong'])} "
            f"| {case['n_primary']} of {case['n_keys']} | {first} of {len(orphans)} | up to {most} "
            f"| {1e3 * ranking / max(1, len(orphans)):.1f} of {1e3 * check / max(1, len(orphans)):.0f} ms |"
        )
    lines.append("")
    for case in results["cases"]:
        for what in ("missed", "wrong", "unproved"):
            if case[what]:
                lines.append(f"- {case['name']}, {what}: {', '.join(case[what])}")
        late = [o["foreign_key"] for o in case["orphans"] if not o["first"]]
        if late:
            lines.append(f"- {case['name']}, not first in the report of an orphan: {', '.join(late)}")
    return "\n".join(lines).rstrip() + "\n"


def write_results(results: Json, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{STEM}.json").write_text(json.dumps(results, indent=1) + "\n")
    (folder / f"{STEM}.md").write_text(markdown(results))


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.foreign_keys", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--data", type=Path, help="folder of databases: NAME/*.csv beside NAME.truth.json")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--render", action="store_true", help="only write the report again")
    args, _ = parser.parse_known_args(argv)  # --quick, --no-peers and --timeout of the others change nothing
    if args.render:
        write_results(json.loads((args.results / f"{STEM}.json").read_text()), args.results)
        return 0
    folder, names = databases(args.data)
    if not names:
        say(f"foreign keys: no database in {folder}; left out")
        return 0
    results: Json = {
        "command": shlex.join(["python", "-m", "benchmarks.foreign_keys"]),
        "date": datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
        "machine": machine(),
        "versions": versions(()),
    }
    with tempfile.TemporaryDirectory(prefix="foreign-keys-") as scratch:
        results["cases"] = [measure(name, folder, Path(scratch)) for name in names]
    write_results(results, args.results)
    return 0 if all(target.met for target in targets(results)) else 1


if __name__ == "__main__":
    sys.exit(main())
