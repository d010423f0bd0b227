"""Commands about a lake of very many tables: `link`, `joins` and `overlaps`."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

import holdfast
from holdfast.app.calls import JSON_FORMAT, open_workspace, opened, tell
from holdfast.app.options import Json
from holdfast.app.report.lake import print_joins, print_lake_change, print_lake_inds, print_overlaps
from holdfast.app.report.paper import Paper
from holdfast.errors import UnknownTableError, UsageError, shorten_path
from holdfast.lakes import FILTERS

if TYPE_CHECKING:
    from holdfast.lakes.answers import LakeInd
    from holdfast.lakes.reader.lake_reader import LakeReader


class ProposerName(StrEnum):
    auto = "auto"
    signatures = "signatures"
    by_index = "index"  # a text has a method `index`


class StrategyName(StrEnum):
    dep2refs = "dep2refs"
    ref2deps = "ref2deps"


class Direction(StrEnum):
    both = "both"
    out = "out"
    into = "in"


@dataclass(frozen=True, slots=True)
class Listing:
    """Which inclusions a lake lists: fixed by the first link."""

    all_inds: Annotated[
        bool, typer.Option("--all-inds", help="No filter at all: every inclusion that holds.")
    ] = False
    no_filter: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"Turn a filter off: {', '.join(FILTERS)}; may be repeated."),
    ] = None
    tau: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Least share of the referenced values that is covered; 0.2."),
    ] = None
    null_value: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="Counts as missing, too; may be repeated.")
    ] = None
    trim: Annotated[bool, typer.Option("--trim", help="White space around a value does not matter.")] = False
    fold: Annotated[bool, typer.Option("--fold-case", help="Upper and lower case do not matter.")] = False
    unicode: Annotated[
        bool, typer.Option("--unicode", help="Different codings of a character do not matter (NFKC).")
    ] = False
    max_error: Annotated[
        float | None, typer.Option(metavar="SHARE", help="Inclusions that miss up to this share of values.")
    ] = None
    min_values: Annotated[
        int | None, typer.Option(metavar="N", help="Columns of fewer values may miss none; 5.")
    ] = None
    m: Annotated[
        int | None, typer.Option("--signature-bits", metavar="M", help="Of each pass of a signature; 650.")
    ] = None
    k: Annotated[int | None, typer.Option("--hashes", metavar="K", help="Of each pass; 6.")] = None
    p: Annotated[int | None, typer.Option("--passes", metavar="P", help="Of a signature; 2.")] = None

    def link_options(self) -> dict[str, Any]:
        """What `Workspace.link` is given."""
        forms = {"unicode": self.unicode, "trim": self.trim, "fold": self.fold}
        named = {name: getattr(self, name) for name in ("tau", "max_error", "min_values", "m", "k", "p")}
        return {
            **named,
            "filters": self._filters(),
            "null_values": self.null_value or None,
            "normalise": [name for name, on in forms.items() if on] or None,
        }

    def _filters(self) -> list[str] | None:
        """The filters that are on; None where nothing is said of them."""
        off = self.no_filter or []
        if self.all_inds:
            if off:
                raise UsageError("--all-inds turns all filters off: leave out --no-filter.")
            return []
        for name in off:
            if name not in FILTERS:
                raise UsageError(f"there is no filter {name!r}. Filters: {', '.join(FILTERS)}.")
        return [name for name in FILTERS if name not in off] if off else None


@dataclass(frozen=True, slots=True)
class LakeReading:
    """How the files of a lake are read."""

    no_header: Annotated[
        bool, typer.Option("--no-header", help="CSV and TSV files have no line of column names.")
    ] = False
    delimiter: Annotated[
        str | None, typer.Option(metavar="C", help="Of CSV files; found out if not given.")
    ] = None
    encoding: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of text files; found out if not given.")
    ] = None
    follow_symlinks: Annotated[
        bool, typer.Option("--follow-symlinks", help="Also what links in folders lead to, wherever that is.")
    ] = False
    max_file_bytes: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="A file, member or line of more bytes, when unpacked, is left out; 268435456.",
        ),
    ] = None
    json_name: Annotated[
        str | None, typer.Option(metavar="FIELD", help="Of a JSON table: its unique name ...")
    ] = None
    json_headers: Annotated[str | None, typer.Option(metavar="FIELD", help="... its column names ...")] = None
    json_rows: Annotated[str | None, typer.Option(metavar="FIELD", help="... its rows ...")] = None
    json_columns: Annotated[
        str | None, typer.Option(metavar="FIELD", help="... or its columns of values ...")
    ] = None
    json_text: Annotated[
        str | None, typer.Option(metavar="FIELD", help="... and the text of an object cell.")
    ] = None

    def link_options(self) -> dict[str, Any]:
        """What `Workspace.link` is given."""
        options = {name: value for name, value in asdict(self).items() if value is not None}
        return {"header": not options.pop("no_header"), **options}


def link(
    ctx: typer.Context,
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE...",
            help="Folders or archives (zip, tar.gz) of CSV, TSV or Parquet files, or JSON lines of tables.",
            show_default=False,
        ),
    ] = None,
    *,
    add: Annotated[bool, typer.Option("--add", help="Add tables to the lake that is there.")] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Add tables; those of the same name are replaced.")
    ] = False,
    drop: Annotated[
        list[str] | None, typer.Option(metavar="TABLE", help="Take this table out; may be repeated.")
    ] = None,
    anew: Annotated[bool, typer.Option("--anew", help="Forget the lake that is there.")] = False,
    listing: Listing,
    proposer: Annotated[
        ProposerName, typer.Option(help="How candidates are found; auto takes the cheaper way.")
    ] = ProposerName.auto,
    strategy: Annotated[
        StrategyName, typer.Option(help="In which direction signatures are asked.")
    ] = StrategyName.dep2refs,
    reading: LakeReading,
    as_json: Json = False,
) -> None:
    """Link very many small tables: find what is included in what.

    Four filters leave out what rarely means anything: columns of null-like values only, columns of whole
    numbers, references to columns that are not unique, and those that cover less than --tau of them.
    """
    if drop:
        if sources or add or replace or anew:
            raise UsageError("--drop takes tables out and nothing in: give it without sources.")
        with opened(ctx) as ws:
            change = ws.unlink(*drop)
    else:
        options = {**listing.link_options(), **reading.link_options()}
        with opened(ctx, create=not (add or replace)) as ws:
            change = ws.link(
                *(sources or ()),
                add=add,
                replace=replace,
                anew=anew,
                proposer=proposer.value,
                strategy=strategy.value,
                **options,
            )
    tell(as_json, change.to_dict, print_lake_change, change)


def joins(
    ctx: typer.Context,
    wanted: Annotated[
        str, typer.Argument(metavar="TABLE[.COLUMN]", help="A table of the lake, or one of its columns.")
    ],
    direction: Annotated[
        Direction, typer.Option(help="What it is contained in (out), what it contains (in), or both.")
    ] = Direction.both,
    top: Annotated[int, typer.Option(min=1, metavar="N", help="At most so many.")] = 20,
    min_score: Annotated[
        float, typer.Option(min=0.0, max=1.0, metavar="SCORE", help="Only those of at least this score.")
    ] = 0.0,
    as_json: Json = False,
) -> None:
    """What can this table of the lake be joined with?

    Ranked by a score between 0 and 1: how much of the referenced column is covered, how unique that is, and
    how distinctive the values are. With a few matching values of each.
    """
    ws = open_workspace(ctx)
    lake = ws.lake()
    if lake is None:
        raise UsageError("the workspace has no lake: link one first, with 'holdfast link SOURCE'.")
    number, table, column = lake.subject(wanted)
    inds, n = lake.ranked_joins(wanted, top, min_score, direction.value)
    subject = {"version": lake.version, "table": table, "column": column, "n_joins": n}
    tell(
        as_json,
        lambda: {**subject, "joins": [ind.to_dict() for ind in inds]},
        print_joins,
        inds,
        table=number,
        name=table,
        version=lake.version,
        column=column,
        n=n,
        filters=lake.state.options.filters,
    )


def overlaps(
    ctx: typer.Context,
    wanted: Annotated[
        str,
        typer.Argument(
            metavar="TABLE[.COLUMN]",
            help="A file, or one of its columns; where there is no such file, a table of the lake.",
        ),
    ],
    *,
    linked: Annotated[
        bool, typer.Option("--linked", help="The table of the lake, though there is a file of that name.")
    ] = False,
    top: Annotated[int, typer.Option(min=1, metavar="N", help="At most so many for each column.")] = 20,
    reading: LakeReading,
    as_json: Json = False,
) -> None:
    """Which columns of the lake share the most values with this one?

    They need not contain it, and no filter leaves any out. A file need not be of the lake: it is read here,
    and nothing of it stays.
    """
    file, column = (None, None) if linked else _file_of(wanted)
    with opened(ctx) as ws:
        try:
            how = {} if reading == LakeReading() else reading.link_options()
            overlaps = ws.lakes.overlaps(file or wanted, column, linked=file is None, top=top, **how)
        except UnknownTableError as error:
            if linked:
                raise
            raise UnknownTableError(f"there is no file {shorten_path(wanted)}, and {error}") from None
    tell(as_json, overlaps.to_dict, print_overlaps, overlaps, top=top, is_file=file is not None)


def _file_of(text: str) -> tuple[str | None, str | None]:
    """The file that a text names, and a column of it if it names one: as tables of a lake are named."""
    from holdfast.core.store.root import is_stored
    from holdfast.lakes.reader.value_search import splits

    if is_stored(text) or os.path.exists(text):
        return text, None
    return next(((file, column) for file, column in splits(text) if os.path.isfile(file)), (None, None))


class LakeView:
    """What `show` tells of a lake: its inclusions, or how it stands."""

    def __init__(self, lake: LakeReader, table: str | None, *, alone: bool) -> None:
        self.lake, self.table, self.alone = lake, table, alone

    @classmethod
    def of(
        cls, ws: holdfast.Workspace, kind: str | None, table: str | None, at: int | None
    ) -> LakeView | None:
        """The view of the workspace's lake, if that is what is asked for, or part of it.

        `alone`: nothing else is asked for, be it that the table is the lake's or that there are no others.
        """
        if kind not in (None, "ind") or at is not None:
            return None
        lake = ws.lake()
        if lake is None:
            return None
        tracked = ws.tables()
        if table is not None:
            return None if table in tracked else cls(lake, table, alone=True)
        inclusions = any("ind" in ws.kinds(name) for name in tracked)
        return cls(lake, None, alone=not tracked or (kind == "ind" and not inclusions))

    def show(self, *, as_json: bool, everything: bool) -> None:
        """The inclusions one by one: there may be millions."""
        if self.table is not None:
            self.lake.columns(self.table)  # is there such a table? Before anything is printed
        if as_json:
            self._print_json()
            return
        n = self.lake.state.n_inds if self.table is None else None
        print_lake_inds(
            Paper(sys.stdout),
            self.lake.each_ind(self.table),
            version=self.lake.version,
            n=n,
            subject=self.table,
            everything=everything,
        )

    def _print_json(self) -> None:
        """One document, written as it is read."""
        inds = self.lake.each_ind(self.table)
        print(f'{{\n  "format": {JSON_FORMAT},\n  "version": {self.lake.version},', end="")
        print('\n  "dependencies": [', end="")
        for i, ind in enumerate(inds):
            print("," if i else "", json.dumps(ind_dict(ind), allow_nan=False), sep="\n    ", end="")
        print("\n  ]\n}")


def ind_dict(ind: LakeInd) -> dict[str, Any]:
    """An inclusion as all inclusions are told to programs, with what is known of it in a lake."""
    sides = (ind.dependent, ind.referenced)
    dependent, referenced = ({"table": s.table, "columns": [s.column]} for s in sides)
    return {
        "kind": "ind",
        "dependent": dependent,
        "referenced": referenced,
        "error": ind.missing / ind.n_dependent,
        "coverage": ind.coverage,
        "score": ind.score,
    }
