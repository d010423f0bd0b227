"""A lake of tables: what linking did, what joins with a table, which inclusions there are."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.app.report.paper import ALL, Paper, Part
from holdfast.app.report.texts import cell, name_text, safe, share, side_text
from holdfast.core.words.dependency import Side
from holdfast.errors import plural
from holdfast.lakes.answers import LakeChange, LakeInd, LakeOverlap, LakeSide, LakeSummary

if TYPE_CHECKING:
    from holdfast.lakes.reader.overlaps import LakeOverlaps

# A terminal shows so many inclusions and files that were left out; a pipe all that are known by name.
ON_A_TERMINAL = 200
BAD_ON_A_TERMINAL = 5
SAMPLE_WIDTH = 30

_LINE = re.compile(r"#[0-9]+$")

# What a filter keeps out.
FILTERED = {
    "null": "a column has nothing but empty or null-like values",
    "integer": "a column has nothing but integers",
    "non-unique": "the referenced column is not unique",
    "coverage": "too few of the referenced values occur",
}


def print_lake_change(paper: Paper, change: LakeChange) -> None:
    """What a link, an addition or a removal did, and how the lake stands."""
    _headline(paper, change)
    counts = ((change.added, "added"), (change.replaced, "replaced"), (change.dropped, "dropped"))
    done = [f"{plural(n, 'table')} {what}" for n, what in counts if n]
    paper.line(", ".join(done) if done else "no table was added or dropped", indent=2)
    if change.known:
        left_out = plural(change.known, "table")
        paper.line((f"{left_out} left out: the lake has these names (--replace)", "yellow"), indent=2)
    _graph(paper, change)
    _removed(paper, change.filters, change.removed)
    _bad(paper, change)
    _time(paper, change)


def print_lake_summary(paper: Paper, summary: LakeSummary) -> None:
    """How a lake stands."""
    _headline(paper, summary)
    _graph(paper, summary)
    _removed(paper, summary.filters, summary.removed)


def _headline(paper: Paper, lake: LakeChange | LakeSummary) -> None:
    counts = (
        plural(lake.n_tables, "table"),
        plural(lake.n_columns, "column"),
        plural(lake.n_inds, "inclusion"),
    )
    paper.heading("lake", f": {', '.join(counts)}", lake.version)


def _graph(paper: Paper, lake: LakeChange | LakeSummary) -> None:
    joined = lake.n_tables - lake.n_isolated
    if lake.n_components:
        groups = f"{plural(joined, 'table')} in {plural(lake.n_components, 'component')}"
        isolated = f", {lake.n_isolated:,} linked to no other" if lake.n_isolated else ""
        paper.line(f"{groups}{isolated}", indent=2)
    elif lake.n_tables:
        paper.line(("no two tables are linked", "yellow"), indent=2)


def _removed(paper: Paper, filters: Sequence[str], removed: Mapping[str, int]) -> None:
    if not filters:
        paper.line("no filter is on: every inclusion is listed", indent=2)
        return
    names = [name for name in filters if name in removed]
    if not names:
        return
    n = sum(removed[name] for name in names)
    paper.line(f"{plural(n, 'inclusion')} kept out by filters{':' if n else ''}", indent=2)
    if not n:
        return
    counts = [f"{removed[name]:,}" for name in names]
    width = max(map(len, counts))
    rows: list[list[Part]] = [
        [count.rjust(width), safe(name), (FILTERED.get(name, ""), "dim")]
        for name, count in zip(names, counts, strict=True)
    ]
    paper.grid(rows, indent=4)


def _bad(paper: Paper, change: LakeChange) -> None:
    if not change.n_bad:
        return
    were = "was" if change.n_bad == 1 else "were"
    paper.line((f"{bad_text(change)} {were} left out:", "yellow"), indent=2)
    shown = paper.first(change.bad, BAD_ON_A_TERMINAL)
    for source, reason in shown:
        paper.line((safe(source), "bold"), f": {safe(reason)}", indent=4)
    how = f"; the first {len(change.bad):,} with --json" if len(change.bad) > len(shown) else ""
    paper.more(change.n_bad - len(shown), how, indent=4)


def bad_text(change: LakeChange) -> str:
    """How many files were left out; lines of a JSON file are tables of their own, named by numbers."""
    of_lines = [_LINE.search(source) is not None for source, _ in change.bad]
    if any(of_lines) and not all(of_lines):
        return f"{change.n_bad:,} files and lines"
    return plural(change.n_bad, "line" if any(of_lines) else "file")


def _time(paper: Paper, change: LakeChange) -> None:
    how = f", candidates by {safe(change.proposer)}" if change.proposer else ""
    phases = ", ".join(f"{safe(name)} {seconds_text(s)}" for name, s in change.phases)
    text = f"{seconds_text(change.elapsed_s)}{how}{f': {phases}' if phases else ''}"
    paper.line((text, "dim"), indent=2)


def seconds_text(seconds: float) -> str:
    """
    >>> seconds_text(0.0123), seconds_text(2.345), seconds_text(83.2), seconds_text(3725)
    ('0.01 s', '2.3 s', '83 s', '62 min')
    """
    if seconds < 0.995:
        return f"{seconds:.2f} s"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 60:.0f} min"


# -- joins -------------------------------------------------------------------------------------------------


def print_joins(
    paper: Paper,
    inds: Sequence[LakeInd],
    *,
    table: int,
    name: str,
    version: int,
    column: str | None = None,
    n: int | None = None,
    filters: Sequence[str] = (),
) -> None:
    """What a table or one of its columns joins with, best first.

    `table` is the number of the table that was asked about, `name` its name. `inds` are the best of `n`.
    """
    subject = name_text(name) if column is None else side_text(Side(name, (column,)))
    n = len(inds) if n is None else n
    if not inds:
        paper.line((f"nothing joins with {subject} ", "yellow"), (f"(version {version})", "dim"))
        if filters:
            note = (
                f"the lake was linked with the filters {', '.join(map(safe, filters))}; --all-inds has none"
            )
            paper.line((note, "dim"), indent=2)
        return
    paper.heading(plural(n, "join"), f" with {subject}", version)
    for ind in inds:
        style = "yellow" if ind.missing else "green"
        paper.item((f"{ind.score:.2f}", "bold"), (join_text(ind, table), style), indent=2)
        paper.line(measures_text(ind), indent=8)
        if ind.samples:
            texts = " | ".join(cell(text, SAMPLE_WIDTH) for text in ind.samples)
            paper.line(("both have: ", "dim"), texts, indent=8)
    paper.more(n - len(inds), ", with lower scores; see --top")


def join_text(ind: LakeInd, table: int) -> str:
    """An inclusion as seen from one of its tables: the arrow points to the column that has all the values.

    >>> orders, people = LakeSide(1, 0, "orders.csv", "customer"), LakeSide(4, 2, "people.csv", "id")
    >>> ind = LakeInd(orders, people, 2, 2, 3, 0.67, 1.0, 1.0, 0.5, 0.69)
    >>> join_text(ind, 0), join_text(ind, 2)
    ('customer -> people.csv[id]', 'id <- orders.csv[customer]')
    """
    if ind.dependent.table_id == table:
        return f"{name_text(ind.dependent.column)} -> {_side(ind.referenced)}"
    return f"{name_text(ind.referenced.column)} <- {_side(ind.dependent)}"


def measures_text(ind: LakeInd) -> str:
    """What speaks for an inclusion, in words.

    >>> orders, people = LakeSide(1, 0, "orders.csv", "customer"), LakeSide(4, 2, "people.csv", "id")
    >>> measures_text(LakeInd(orders, people, 2, 2, 3, 2 / 3, 1.0, 1.0, 0.5, 0.69))
    'all 2 values match, 66.7% of the 3 referenced ones; these are unique'
    >>> measures_text(LakeInd(orders, people, 19, 20, 19, 1.0, 0.95, 0.5, 0.5, 0.69))
    '19 of 20 values match, all of the 19 referenced ones; these repeat, 50% of the rows are distinct'
    """
    if ind.missing:
        matching = f"{ind.shared:,} of {plural(ind.n_dependent, 'value')} match"
    elif ind.n_dependent == 1:
        matching = "the only value matches"
    else:
        matching = f"all {ind.n_dependent:,} values match"
    covered = "all" if ind.coverage == 1 else percent(ind.coverage)
    ones = plural(ind.n_referenced, "referenced one")
    unique = "these are unique"
    if ind.uniqueness < 1:
        unique = f"these repeat, {percent(ind.uniqueness)} of the rows are distinct"
    return f"{matching}, {covered} of the {ones}; {unique}"


def percent(value: float) -> str:
    """A share in per cent, never rounded to 0 or 100 if it is neither.

    >>> percent(0.5), percent(0.66667), percent(0.99999), percent(0.00001234), percent(1.0)
    ('50%', '66.7%', '>99.9%', '0.00123%', '100%')
    """
    text = f"{100 * value:.3g}"
    return ">99.9%" if text == "100" and value < 1 else f"{text}%"


def _side(side: LakeSide) -> str:
    return side_text(Side(side.table, (side.column,)))


# -- overlaps ----------------------------------------------------------------------------------------------


def print_overlaps(paper: Paper, overlaps: LakeOverlaps, *, top: int, is_file: bool = False) -> None:
    """The columns that share values with those of a table, or of a file, the most first.

    At most `top` of each column were asked for; whether there are more is not known.
    """
    of = f" of {'the file ' if is_file else ''}{name_text(overlaps.table)}"
    paper.heading(plural(len(overlaps), "overlap"), of, overlaps.version)
    by_column: dict[int, list[LakeOverlap]] = {}
    for overlap in overlaps:
        by_column.setdefault(overlap.asked.position, []).append(overlap)
    for column in overlaps.columns:
        of_column = by_column.get(column.position, [])
        values = plural(column.n_values, "value")
        nothing: Part = "" if of_column else (", none of which the lake has", "yellow")
        paper.line((name_text(column.column), "bold"), f": {values}", nothing, indent=2)
        width = max((len(f"{overlap.shared:,}") for overlap in of_column), default=0)
        for overlap in of_column:
            style = "green" if overlap.shared == column.n_values else "yellow"
            count = f"{overlap.shared:,}".rjust(width)
            paper.item((count, "bold"), (_side(overlap.other), style), f"  {shares_text(overlap)}", indent=4)
        if len(of_column) == top:
            paper.line((f"the best {top:,}; more with --top", "dim"), indent=4)


def shares_text(overlap: LakeOverlap) -> str:
    """How much of either column is shared, in words.

    >>> from holdfast.lakes.answers import AskedColumn
    >>> towns, cities = AskedColumn(0, "town", 3), LakeSide(1, 0, "cities.csv", "city")
    >>> shares_text(LakeOverlap(towns, cities, 2, 9)), shares_text(LakeOverlap(towns, cities, 3, 3))
    ('66.7% of the 3, 22.2% of the 9 there, Jaccard 0.2', 'all of the 3, all of the 3 there, Jaccard 1')
    """
    here, there = ("all" if x == 1 else percent(x) for x in (overlap.containment, overlap.coverage))
    ends = f"{overlap.n_other:,} there, Jaccard {share(overlap.jaccard)}"
    return f"{here} of the {overlap.asked.n_values:,}, {there} of the {ends}"


# -- inclusions --------------------------------------------------------------------------------------------


def print_lake_inds(
    paper: Paper,
    inds: Iterable[LakeInd],
    *,
    version: int,
    n: int | None = None,
    subject: str | None = None,
    everything: bool = False,
) -> None:
    """The inclusions of a lake, or of the table or column `subject`, one a line as they come.

    `n` is how many there are, where that is known before. There may be millions: on a terminal the first few
    are shown, elsewhere all of them, and never is a list made of them.
    """
    of = "" if subject is None else f" of {name_text(subject)}"
    count = "inclusions" if n is None else plural(n, "inclusion")
    paper.heading(count, of, version)
    remaining = iter(inds)
    limit = None if everything or not paper.is_terminal else ON_A_TERMINAL
    shown = 0
    for ind in itertools.islice(remaining, limit):
        style = "yellow" if ind.missing else "green"
        missing = f"misses {plural(ind.missing, 'value')}, " if ind.missing else ""
        name = f"{_side(ind.dependent)} in {_side(ind.referenced)}"
        paper.line((name, style), f"  {missing}coverage {share(ind.coverage)}", indent=2)
        shown += 1
    if limit is not None and next(remaining, None) is not None:
        more = "more" if n is None else f"{n - shown:,} more"
        paper.line((f"... and {more}{ALL}", "yellow"), indent=2)
