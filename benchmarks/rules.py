"""Rankings of rules: of what `show --kind dc --top 20` lists, how much means something to a person?

For each table of TABLES that --data DIR has (else data/): tracked with --kinds dc, ranked, and its first 20
rules printed, each with the judgement that docs/dc-rankings.md has of it. To be reached: of the rules that
are listed at least three of four mean something; one that is not judged does not, and then the exit code is
1. Without a table there is nothing to measure, and that is said.

    python -m benchmarks.rules [--data DIR] [--render]
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import shlex
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import tables
from benchmarks.report import RESULTS, ROOT, Json, Target, busy, machine, say, versions

# Name: the file below the folder of data.
TABLES = {
    "sp500": "sp500-2000.csv",
    "adult": "adult.csv",
    "birdstrikes": "birdstrikes.csv",
    "orders": "databases/northwind/Orders.csv",
}
JUDGEMENT = ROOT / "docs" / "dc-rankings.md"
STEM = "rules"
TOP = 20
LEAST = 0.75


def judgements(page: str) -> dict[str, dict[str, tuple[bool, str]]]:
    """Of each table (a heading) its rules, each with whether it means something, and why.

    >>> judgements("## t\\n| rule | means something | why |\\n|---|---|---|\\n| `a < b` | yes | by law |\\n")
    {'t': {'a < b': (True, 'by law')}}
    """
    found: dict[str, dict[str, tuple[bool, str]]] = {}
    table = ""
    for line in page.splitlines():
        if heading := re.match(r"## (\w+)", line):
            table = heading[1]
        elif row := re.fullmatch(r"\| `(.*)` \| (yes|no) \| (.*) \|", line):
            found.setdefault(table, {})[row[1]] = row[2] == "yes", row[3]
    return found


def measure(name: str, file: Path, scratch: Path) -> Json:
    import holdfast

    with holdfast.open(scratch / f"{name}.hold", engine="inline") as ws:
        started = time.perf_counter()
        ws.track(name, str(file), kinds=("dc",))
        tracked = time.perf_counter()
        ranking = ws.dcs.rank(name, TOP)
        ranked = time.perf_counter()
        ref = ws.dcs.ref(name)
        n_rows = ws.n_rows(name)
    say(f"{name}: {ranking.n_rules:,} rules among {ranking.n_dcs:,} denial constraints")
    return {
        **ranking.to_dict(),
        "name": name,
        "n_rows": n_rows,
        "max_predicates": ref.max_predicates if ref is not None else 0,
        "rules": [{"rule": place.rule.formula, "score": round(place.score, 2)} for place in ranking.rules],
        "track_s": tracked - started,
        "rank_s": ranked - tracked,
    }


def judge(results: Json, page: str) -> None:
    """Say of each rule what the page says of it."""
    judged = judgements(page)
    for case in results["cases"]:
        for rule in case["rules"]:
            rule["means"], rule["why"] = judged.get(case["name"], {}).get(rule["rule"], (None, ""))


def targets(results: Json) -> list[Target]:
    return [
        Target(
            f"{case['name']}: rules listed that mean something",
            f"{LEAST:.0%}",
            f"{sum(rule['means'] is True for rule in case['rules'])} of {len(case['rules'])}",
            sum(rule["means"] is True for rule in case["rules"]) >= LEAST * len(case["rules"]),
        )
        for case in results["cases"]
    ]


def markdown(results: Json) -> str:
    lines = [
        "# Rankings of rules",
        "",
        *busy(results),
        f"`{results['command']}`, {results['date']}. Judged in [docs](../../docs/dc-rankings.md).",
        "",
        "| what | to reach | reached | met |",
        "|---|---|---|---|",
        *(f"| {t.what} | {t.reach} | {t.reached} | {t.verdict} |" for t in targets(results)),
        "",
        "| table | rows | denial constraints | row rules | rules | that follow from row rules, keys, FDs, "
        "others | accidents | not looked at | tracked in | ranked in |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for case in results["cases"]:
        bound = f" of at most {case['max_predicates']} predicates" if case["max_predicates"] else ""
        folded = ", ".join(f"{case['folded'][sort]:,}" for sort in ("row_rules", "keys", "fds", "others"))
        lines.append(
            f"| {case['name']} | {case['n_rows']:,} | {case['n_dcs']:,}{bound} | {case['n_row_rules']:,} "
            f"| {case['n_rules']:,} | {folded} | {case['n_accidents']:,} | {case['n_open']:,} "
            f"| {case['track_s']:.1f} s | {case['rank_s']:.2f} s |"
        )
    for case in results["cases"]:
        lines += [
            "",
            f"## {case['name']}",
            "",
            "| score | rule | means something | why |",
            "|---|---|---|---|",
        ]
        for rule in case["rules"]:
            means = "not judged yet" if rule["means"] is None else "yes" if rule["means"] else "no"
            lines.append(f"| {rule['score']:.2f} | `{rule['rule']}` | {means} | {rule['why']} |")
    return "\n".join(lines).rstrip() + "\n"


def write_results(results: Json, folder: Path) -> None:
    judge(results, JUDGEMENT.read_text())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{STEM}.json").write_text(json.dumps(results, indent=1) + "\n")
    (folder / f"{STEM}.md").write_text(markdown(results))


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rules", description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=tables.DATA, help="folder with the tables")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--render", action="store_true", help="only judge and write the report again")
    args, _ = parser.parse_known_args(argv)  # --quick, --no-peers and --timeout of the others change nothing
    if args.render:
        write_results(json.loads((args.results / f"{STEM}.json").read_text()), args.results)
        return 0
    there = {name: args.data / file for name, file in TABLES.items() if (args.data / file).exists()}
    if not there:
        say(f"rules: none of {', '.join(TABLES.values())} in {args.data}; left out")
        return 0
    results: Json = {
        "command": shlex.join(["python", "-m", "benchmarks.rules"]),
        "date": datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
        "machine": machine(),
        "versions": versions(()),
    }
    with tempfile.TemporaryDirectory(prefix="rules-") as scratch:
        results["cases"] = [measure(name, file, Path(scratch)) for name, file in there.items()]
    write_results(results, args.results)
    print(markdown(results))
    return 0 if all(target.met for target in targets(results)) else 1


if __name__ == "__main__":
    sys.exit(main())
