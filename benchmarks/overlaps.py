"""The columns of a lake that share the most values with a column: seconds, and the same as by brute force.

The lake is the corpus of `corpora.py`, 100,000 tables with 533,146 columns. It is asked, in one warm process:

1. **tables**: CSV files of tables that are not in it, about topics that are; all columns of each;
2. **columns** of the lake itself, at random;
3. **integers** 1 to 4,670, of which the small ones are in every third column; **frequent**: the 1,000 values
   with the longest postings, nothing else;
4. **people**, **titles**: one column with 100,003 and one with 200,003 values.

Another lake, of arrays without tables, has 2 million columns of 20 frequent values each, and among them 200
that have 300 rare values, too: **stop words** asks for these and for all frequent values.

Brute force intersects Python sets, the question's with those of all columns, and sorts; both are in memory
before. Of stop words only the counts are compared, as NumPy has them by definition. Every answer must be
equal, else the exit code is 1. `all postings` are the seconds of the same question where no bounds are looked
at, so that all postings are read. The command line is timed, too, with its start.

    python -m benchmarks.overlaps [--quick] [--render]
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks import corpora, tables
from benchmarks.corpora import WebTable
from benchmarks.report import RESULTS, Json, Target, busy, machine, say, seconds_text, versions

TABLES, QUICK = 100_000, 2_000
COLUMNS = 2_000_000  # of the lake of stop words
ASKED = 20  # tables, and columns of the lake
TOP = 20
REPEATS = 5
FREQUENT = 1_000
REACH_S = 0.3

Answer = list[tuple[str, int, int]]  # table, position of the column, shared values


@dataclass(frozen=True)
class Question:
    """What is asked: `ask` answers for columns of these `values`, and `read` reads the file that they are in.

    A column of the lake has no file; it is not compared with itself (`skip`).
    """

    kind: str
    ask: Callable[[], Any]
    values: list[frozenset[str]]
    read: Callable[[], Any] = lambda: None
    skip: tuple[str, int] | None = None


# --- what holds, in plain Python ----------------------------------------------------------------


class Truth:
    """The value sets of all columns of a lake."""

    def __init__(self, n_tables: int, file: str) -> None:
        self.columns: list[tuple[str, int]] = []
        self.sets: list[frozenset[str]] = []
        for i, table in enumerate(corpora.corpus(n_tables)):
            found = corpora.value_sets([table])
            self.columns += [(f"{file}#{i + 1}", position) for position in range(len(found))]
            self.sets += found

    def best(self, values: frozenset[str], skip: tuple[str, int] | None) -> Answer:
        """By brute force."""
        shared = [
            (-len(values & one), column)
            for column, one in zip(self.columns, self.sets, strict=True)
            if not values.isdisjoint(one)
        ]
        best = sorted(found for found in shared if found[1] != skip)[:TOP]
        return [(*column, -n) for n, column in best]


# --- questions ----------------------------------------------------------------------------------


def questions(ws: Any, n_tables: int, file: str, truth: Truth, scratch: Path) -> Iterator[Question]:
    rng = random.Random(tables.SEED)
    found = [t for t in corpora.corpus(corpora.BLOCK, edition=2) if t.rows]
    for i, table in enumerate(rng.sample(found, ASKED)):
        # The same number of cells in every row, as a CSV file has it.
        rows = [[*row, *[""] * (len(table.headers) - len(row))] for row in table.rows]
        whole = WebTable(table.name, [f"c{i}" for i in range(len(table.headers))], rows)
        yield asked_file("tables", ws, scratch / f"t{i}.csv", whole)
    lake = ws.lake()
    for column in rng.sample(
        [c for c, values in zip(truth.columns, truth.sets, strict=True) if values], ASKED
    ):
        position = column[1]
        name = lake.catalogue.column_names_of(lake.resolve(column[0]))[position]
        if lake.resolve(f"{column[0]}[{name}]")[1] != position:
            continue  # another column of this name stands before it
        values = truth.sets[truth.columns.index(column)]
        text = f"{column[0]}[{name}]"
        yield Question("columns", lambda text=text: lake.overlaps(text, TOP), [values], skip=column)
    frequency = Counter(value for values in truth.sets for value in values)
    frequent = [value for value, _ in frequency.most_common(FREQUENT) if value]
    for kind, texts in (
        ("integers", [str(n) for n in range(1, corpora.MAX_ROWS + 1)]),
        ("frequent", frequent),
        ("people", corpora.vocabulary("person").tolist()),
        ("titles", corpora.vocabulary("title").tolist()),
    ):
        table = WebTable(kind, ["c0"], [[text] for text in texts])
        yield asked_file(kind, ws, scratch / f"{kind}.csv", table)


def asked_file(kind: str, ws: Any, file: Path, table: WebTable) -> Question:
    from holdfast.lakes.files import LakeReadOptions
    from holdfast.lakes.intake import read_table
    from holdfast.lakes.read_task import value_sets

    with file.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out, quoting=csv.QUOTE_ALL).writerows([table.headers, *table.rows])

    def read() -> Any:
        return value_sets(read_table(str(file), LakeReadOptions()), ws.root, ws.lake().state.options)

    return Question(kind, lambda: ws.lakes.overlaps(file, top=TOP), corpora.value_sets([table]), read)


def answers(found: Any, lake: Any) -> list[Answer]:
    """What was told of each column that was asked about."""
    told: dict[int, Answer] = {column.position: [] for column in found.columns}
    for o in found:
        position = o.other.id - lake.catalogue.columns_of(o.other.table_id).start
        told[o.asked.position].append((o.other.table, position, o.shared))
    return list(told.values())


def measured(question: Question, lake: Any, truth: Truth) -> Json:
    """Seconds of a question, of the same without bounds, and of brute force; and whether they are equal."""
    found, elapsed_s = timed(question.ask)
    _, reading_s = timed(question.read)
    with patch("holdfast.lakes.reader.overlaps.NS_VALUE", 1 << 30):
        unbounded, postings_s = timed(question.ask)
    started = time.perf_counter()
    expected = [truth.best(values, question.skip) for values in question.values]
    return {
        "kind": question.kind,
        "n_columns": len(question.values),
        "n_values": sum(map(len, question.values)),
        "elapsed_s": elapsed_s,
        "reading_s": reading_s,
        "postings_s": postings_s,
        "brute_s": time.perf_counter() - started,
        "equal": answers(found, lake) == answers(unbounded, lake) == expected,
    }


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What is done, and the median of its seconds."""
    runs = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        done = work()
        runs.append(time.perf_counter() - started)
    return done, statistics.median(runs)


def measure(n_tables: int, scratch: Path) -> Json:
    import holdfast

    file = corpora.json_lines(n_tables)
    out: Json = {"n_tables": n_tables, "cases": []}
    with holdfast.open(scratch / "lake.hold", engine="inline") as ws:
        change = ws.link(file)
        out.update(n_columns=change.n_columns, link_s=change.elapsed_s)
        say(f"  {change.n_columns:,} columns linked in {change.elapsed_s:.1f} s")
        command = [
            sys.executable,
            "-m",
            "holdfast",
            "-w",
            str(ws.root),
            "overlaps",
            f"{file.name}#1",
            "--json",
        ]
        for _ in range(2):  # the second finds files in memory
            started = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=scratch)
            out["command_s"] = time.perf_counter() - started
        truth = Truth(n_tables, file.name)
        for question in questions(ws, n_tables, file.name, truth, scratch):
            case = measured(question, ws.lake(), truth)
            out["cases"].append(case)
            say(
                f"  {case['kind']}: {case['n_columns']} columns, {case['n_values']:,} values, "
                f"{case['elapsed_s']:.3f} s, of it reading {case['reading_s']:.3f}, all postings "
                f"{case['postings_s']:.3f} s, brute force {case['brute_s']:.2f} s, "
                f"{'equal' if case['equal'] else 'DIFFERENT'}"
            )
    return out


def stop_words(n: int, per: int = 20, alike: int = 200, rare: int = 300) -> Json:
    """A question of rare and of frequent values to a lake of n columns: `per` frequent values are in each."""
    from holdfast.lakes.reader import overlaps
    from holdfast.lakes.state import Part

    rng = np.random.default_rng(tables.SEED)
    strata = 100  # frequent values: a column has one of each hundred
    hashes = np.unique(rng.integers(0, 2**64, per * strata + rare, dtype=np.uint64))
    chosen = rng.permutation(len(hashes))
    sizes = np.full(n, per)
    sizes[:: n // alike] += rare
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    values = np.empty(offsets[-1], np.uint64)
    for j in range(per):
        values[offsets[:-1] + j] = hashes[chosen[j * strata + rng.integers(0, strata, n)]]
    for column in range(0, n, n // alike):
        own = values[offsets[column] : offsets[column + 1]]
        own[per:] = hashes[chosen[per * strata :]]
    column_of = np.repeat(np.arange(n, dtype=np.int32), sizes)
    values = values[np.lexsort((values, column_of))]
    order = np.argsort(values, kind="stable")
    keys = values[order]
    arrays = {"offsets": offsets, "values": values, "checks": values, "keys": keys, "key_checks": keys}
    part = Part(Path(), SimpleNamespace(first_column=0, n_columns=n))  # type: ignore[arg-type]
    part.array = {**arrays, "postings": column_of[order]}.__getitem__  # type: ignore[method-assign]
    numbers = np.arange(n, dtype=np.int32)
    live = np.ones(n, np.bool_)
    lake: Any = SimpleNamespace(
        parts=[part], live=live, table_of=numbers, sizes=part.sizes, name_ranks=numbers
    )

    def ask() -> Any:
        return overlaps.most_shared(lake, overlaps.live_sizes(lake), hashes, hashes, TOP)

    found, elapsed_s = timed(ask)
    with patch("holdfast.lakes.reader.overlaps.NS_VALUE", 1 << 30):
        unbounded, postings_s = timed(ask)
    # Counted by definition, column by column.
    expected = np.add.reduceat(np.isin(values, hashes), offsets[:-1], dtype=np.int64)
    equal = np.array_equal(found, unbounded) and np.array_equal(found[1], np.sort(expected)[::-1][:TOP])
    told = "equal" if equal else "DIFFERENT"
    say(f"  stop words: {elapsed_s:.3f} s, all postings {postings_s:.3f} s, {told}")
    return {
        "kind": "stop words",
        "n_columns": 1,
        "n_values": len(hashes),
        "elapsed_s": elapsed_s,
        "reading_s": 0.0,
        "postings_s": postings_s,
        "brute_s": None,
        "equal": bool(equal),
    }


# --- the report ---------------------------------------------------------------------------------


def targets(results: Json) -> list[Target]:
    cases = results["cases"]
    n_equal = sum(case["equal"] for case in cases)
    of_lake = [case for case in cases if case["brute_s"] is not None]
    slowest = max(case["elapsed_s"] for case in of_lake if case["n_values"] < 10_000)
    lake = f"{results['n_columns']:,} columns"
    return [
        Target(
            "answers that equal the definition's", "all", f"{n_equal} of {len(cases)}", n_equal == len(cases)
        ),
        Target(
            f"a table or column of up to 10,000 values against {lake}, slowest",
            f"<= {REACH_S} s",
            f"{seconds_text(slowest)} s",
            slowest <= REACH_S,
        ),
    ]


def markdown(results: Json) -> str:
    lines = [
        "# Overlaps: the columns of a lake that share the most values",
        "",
        *busy(results),
        f"`{results['command']}`, {results['date']}; {results['machine']['cores']} cores "
        f"({results['machine']['cpu']}). {results['n_tables']:,} tables, {results['n_columns']:,} columns, "
        f"linked inline in {results['link_s']:.1f} s; the {TOP} best of each column.",
        "",
        "| what | to reach | reached | met |",
        "|---|---|---|---|",
        *(f"| {t.what} | {t.reach} | {t.reached} | {t.verdict} |" for t in targets(results)),
        "",
        "Seconds in a warm process: the median of the questions, what of it reads the file, and the slowest. "
        "The ratio is that of brute force, which reads no file, and of the question without reading. "
        f"Stop words are asked of another lake, of {results['n_stop_columns']:,} columns.",
        "",
        "| asked | questions | columns | values | seconds | of it reading | slowest | all postings "
        "| brute force | ratio |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    kinds = dict.fromkeys(case["kind"] for case in results["cases"])
    for kind in kinds:
        cases = [case for case in results["cases"] if case["kind"] == kind]
        names = ("elapsed_s", "reading_s", "postings_s", "brute_s")
        figures = [[c[name] for c in cases if c[name] is not None] for name in names]
        seconds, reading, postings, brute = (statistics.median(some) if some else None for some in figures)
        counts = (sum(case[name] for case in cases) for name in ("n_columns", "n_values"))
        asking = [c["elapsed_s"] - c["reading_s"] for c in cases]
        ratio = (
            statistics.median(figures[3][i] / asking[i] for i in range(len(cases))) if figures[3] else None
        )
        slowest = max(case["elapsed_s"] for case in cases)
        told = (seconds, reading, slowest, postings, brute)
        lines.append(
            f"| {kind} | {len(cases)} | {' | '.join(f'{n:,}' for n in counts)} "
            f"| {' | '.join(map(seconds_text, told))} | {'-' if ratio is None else f'{ratio:,.1f}'} |"
        )
    lines += [
        "",
        f"`holdfast overlaps TABLE` of a table of the lake, as a process: {results['command_s']:.2f} s.",
    ]
    return "\n".join(lines) + "\n"


def write_results(results: Json, folder: Path, stem: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stem}.json").write_text(json.dumps(results, indent=1) + "\n")
    (folder / f"{stem}.md").write_text(markdown(results))


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overlaps", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help=f"{QUICK:,} tables; results as overlaps-quick.*")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--render", action="store_true", help="only write the report again")
    args, _ = parser.parse_known_args(argv)  # --no-peers and --timeout of the others change nothing
    stem = "overlaps-quick" if args.quick else "overlaps"
    if args.render:
        write_results(json.loads((args.results / f"{stem}.json").read_text()), args.results, stem)
        return 0
    results: Json = {
        "command": shlex.join(["python", "-m", "benchmarks.overlaps", *(["--quick"] if args.quick else [])]),
        "date": datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
        "machine": machine(),
        "versions": versions(()),
    }
    for line in busy(results):
        say(line)
    with tempfile.TemporaryDirectory(prefix="overlaps-", ignore_cleanup_errors=True) as scratch:
        results |= measure(QUICK if args.quick else TABLES, Path(scratch))
    results["n_stop_columns"] = COLUMNS // 50 if args.quick else COLUMNS
    results["cases"].append(stop_words(results["n_stop_columns"]))
    write_results(results, args.results, stem)
    return 0 if all(case["equal"] for case in results["cases"]) else 1


if __name__ == "__main__":
    sys.exit(main())
