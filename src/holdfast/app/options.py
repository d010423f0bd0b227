"""Options that several commands share, and what their texts mean."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.app.completing import complete_kinds
from holdfast.app.report.texts import listed
from holdfast.core.words.condition import is_condition
from holdfast.core.words.notation import ARROW
from holdfast.core.words.row_rule import is_row_rule
from holdfast.errors import UsageError, shorten, shorten_path
from holdfast.kind import entries


class EngineName(StrEnum):
    auto = "auto"
    inline = "inline"
    spark = "spark"


class NullRule(StrEnum):
    equal = "equal"
    distinct = "distinct"


class EvidenceName(StrEnum):
    counted = "counted"
    witnessed = "witnessed"


class Dialect(StrEnum):
    ansi = "ansi"
    postgres = "postgres"
    duckdb = "duckdb"


MaxMissing = Annotated[
    float | None,
    typer.Option(
        "--max-error",
        metavar="SHARE",
        help="Inclusions that miss up to this share of values, too; 0: those that hold. If it is not given: "
        "0.05, or one value.",
    ),
]
Output = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where to, if not standard output.")
]
SqlDialect = Annotated[Dialect | None, typer.Option("--dialect", help="Of SQL; ansi if not given.")]
At = Annotated[int | None, typer.Option(metavar="VERSION", help="As of this version.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]
All = Annotated[bool, typer.Option("--all", help="Do not shorten long lists.")]


# --- How tables are tracked -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tracking:
    """How `track` and `track-all` track a table."""

    kinds: Annotated[
        str,
        typer.Option(
            metavar="KIND,...",
            autocompletion=complete_kinds,
            help="What to keep: ucc (keys), fd (functional dependencies), ind (inclusions), dc (denial "
            "constraints: rules about two rows; row comes with them), row (rules about each row), profile "
            "(what the values of each column are like, and rules about them).",
        ),
    ] = "ucc"
    nulls: Annotated[
        NullRule, typer.Option(help="Whether two NULLs are equal, or distinct as in SQL's UNIQUE.")
    ] = NullRule.equal
    row_key: Annotated[
        list[str] | None,
        typer.Option(metavar="COL,...", help="Columns by which deletes and updates name rows."),
    ] = None
    max_columns: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Look for keys of at most N columns.")
    ] = None
    append_only: Annotated[
        bool, typer.Option("--append-only", help="Rows are only ever inserted; the state gets smaller.")
    ] = False
    as_text: Annotated[
        bool, typer.Option("--as-text", help="Compare columns by their text in inclusions.")
    ] = False
    columns: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN,...",
            help="Only columns like these (* and ? match) take part in inclusions, denial constraints and "
            "row rules.",
        ),
    ] = None
    exclude: Annotated[
        list[str] | None, typer.Option(metavar="PATTERN,...", help="Columns like these take no part in them.")
    ] = None
    max_arity: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Look for inclusions of at most N columns, in all tables of the workspace; 4 unless said.",
        ),
    ] = None
    max_lhs: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Look for functional dependencies with at most N columns on the left."
        ),
    ] = None
    max_error: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Also keep what at most this share of the pairs of rows violates, such as 0.01: functional "
            "dependencies and keys, denial constraints; and row rules that this share of the rows violates.",
        ),
    ] = None
    evidence: Annotated[
        EvidenceName | None,
        typer.Option(
            help="What functional dependencies and denial constraints are kept from: counted knows every "
            "error, witnessed is for tall tables. By default a cost model chooses."
        ),
    ] = None
    max_predicates: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Look for denial constraints of at most N predicates."),
    ] = None
    operators: Annotated[
        str | None,
        typer.Option(
            metavar="OP,...",
            help="Write denial constraints with these operators only (= != < <= > >=); < brings >, "
            "<= brings >=.",
        ),
    ] = None
    within_columns: Annotated[
        bool,
        typer.Option(
            "--within-columns", help="Denial constraints compare each column with itself, not with others."
        ),
    ] = False
    dc_seconds: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            help="Search denial constraints for at most S seconds, now and at every batch; 60 unless said. "
            "What is known then is complete up to some number of predicates.",
        ),
    ] = None
    max_dcs: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="The same at more than N of them; 1,000,000 unless said."),
    ] = None

    def track_options(self) -> dict[str, Any]:
        """What `Workspace.track` is given. An option is an error if nothing is kept that it is about."""
        kinds = split(self.kinds)
        for name, value in asdict(self).items():
            about = [kind for kind, entry in entries().items() if name in entry.takes]
            is_set = not (value is None or value is False or value == [])
            if about and is_set and not {*kinds} & {*about}:
                nouns = listed([entries()[kind].nouns[1] for kind in about])
                raise UsageError(
                    f"--{name.replace('_', '-')} is about {nouns}, which are not to be kept: add "
                    f"{listed(about, 'or')} to --kinds."
                )
        return {
            **asdict(self),
            "kinds": kinds,
            "nulls": self.nulls.value,
            "row_key": split_all(self.row_key),
            "columns": split_all(self.columns) if self.columns else None,
            "exclude": tuple(split_all(self.exclude)),
            "evidence": None if self.evidence is None else self.evidence.value,
            "operators": None if self.operators is None else operators_of(self.operators),
        }


# --- How files are read -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reading:
    """How the files of a command are read."""

    format: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="csv, parquet, json, jsonl or arrow; by the file's ending if not given."
        ),
    ] = None
    delimiter: Annotated[
        str | None, typer.Option(metavar="CHAR", help=r"Between CSV fields; \t or tab is a tab.")
    ] = None
    quote: Annotated[
        str | None, typer.Option(metavar="CHAR", help='Around CSV fields; "" turns quoting off.')
    ] = None
    encoding: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of CSV files, such as latin-1."),
    ] = None
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether CSV files start with the names of the columns."),
    ] = None
    null: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="An unquoted CSV field that is NULL, instead of the empty one, and of NA, null, - and the "
            "like in columns of numbers, dates and booleans. Repeatable.",
        ),
    ] = None
    names: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL,...", help="The names of all columns of a CSV file, instead of its header's."
        ),
    ] = None
    comment: Annotated[
        str | None,
        typer.Option(
            metavar="CHAR",
            help="CSV lines that begin with it are skipped. Without it only those with # before the header; "
            '"" skips none.',
        ),
    ] = None
    dates: Annotated[
        str | None,
        typer.Option(
            metavar="ORDER",
            help="Of CSV dates such as 3/4/2026 or 3.4.2026 14:05: dmy or mdy; ymd reads only 2026-04-03.",
        ),
    ] = None
    decimal: Annotated[
        str | None, typer.Option(metavar="CHAR", help="The decimal point of CSV numbers: . or a comma.")
    ] = None
    thousands: Annotated[
        str | None, typer.Option(metavar="CHAR", help="Between the thousands of CSV numbers: 1,234.50.")
    ] = None
    types: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL=TYPE,...", help="Types of CSV columns, such as zip=text,price=decimal(12,2)."
        ),
    ] = None
    sql: Annotated[
        str | None,
        typer.Option(
            metavar="QUERY",
            help="The rows are those of a query; the source is then a DuckDB or SQLite file, or an address: "
            "postgresql://HOST/DATABASE.",
        ),
    ] = None

    def read_options(self) -> dict[str, Any]:
        """The reading options that were given; for the others the table's own count."""
        options = asdict(self)
        options["null_values"] = options.pop("null") or None
        options["names"] = split_all(self.names) or None
        parts = [part for text in self.types or () for part in _split_types(text)]
        options["types"] = dict(map(_type, parts)) if self.types else None
        if self.delimiter in ("\\t", "tab"):
            options["delimiter"] = "\t"
        return {name: value for name, value in options.items() if value is not None}


# --- Batches ----------------------------------------------------------------------------------------------

BatchId = Annotated[
    str | None, typer.Option("--batch-id", metavar="ID", help="Apply the batch of this name only once.")
]
Held = Annotated[
    int | None,
    typer.Option(
        "--held",
        min=1,
        metavar="N",
        help="Exit code 1 also if a functional dependency would break that had held through N versions.",
    ),
]
INSERTS = "Rows to insert: a file, folder or glob; - is standard input."
DELETES = "Rows to delete: in full, or only their row key."
UPDATES = "Row keys with new values."
BEFORE, AFTER = "Rows to update, as they are ...", "... and as they will be, in the same order."
UPSERTS = "Rows with the row key: inserted if the key is new, updated if it is there."
SNAPSHOT = "The whole table as it is to be: what differs is the batch."

AllowEmpty = Annotated[
    bool, typer.Option("--allow-empty", help="Take a snapshot without rows: all rows of the table go.")
]


@dataclass(frozen=True, slots=True)
class Batch:
    """What a table's batch consists of."""

    inserts: Annotated[str | None, typer.Option(metavar="F", help=INSERTS)] = None
    deletes: Annotated[str | None, typer.Option(metavar="F", help=DELETES)] = None
    updates: Annotated[str | None, typer.Option(metavar="F", help=UPDATES)] = None
    before: Annotated[str | None, typer.Option(metavar="F", help=BEFORE)] = None
    after: Annotated[str | None, typer.Option(metavar="F", help=AFTER)] = None
    upserts: Annotated[str | None, typer.Option(metavar="F", help=UPSERTS)] = None
    snapshot: Annotated[str | None, typer.Option(metavar="F", help=SNAPSHOT)] = None
    allow_empty: AllowEmpty = False


Files = list[str] | None


@dataclass(frozen=True, slots=True)
class Batches:
    """What the batches of several tables consist of."""

    inserts: Annotated[Files, typer.Option(metavar="TABLE=F", help=f"{INSERTS} Repeatable.")] = None
    deletes: Annotated[Files, typer.Option(metavar="TABLE=F", help=DELETES)] = None
    updates: Annotated[Files, typer.Option(metavar="TABLE=F", help=UPDATES)] = None
    before: Annotated[Files, typer.Option(metavar="TABLE=F", help=BEFORE)] = None
    after: Annotated[Files, typer.Option(metavar="TABLE=F", help=AFTER)] = None
    upserts: Annotated[Files, typer.Option(metavar="TABLE=F", help=UPSERTS)] = None
    snapshot: Annotated[Files, typer.Option(metavar="TABLE=F", help=SNAPSHOT)] = None
    allow_empty: AllowEmpty = False


# --- What the texts mean ----------------------------------------------------------------------------------


def split(text: str) -> list[str]:
    """The parts between commas; a part with a comma in it stands in double quotes.

    >>> split('a, b,"last, first"')
    ['a', 'b', 'last, first']
    """
    [row] = list(csv.reader([text], skipinitialspace=True)) or [[]]
    return [part for part in row if part]


def split_all(texts: Sequence[str] | None) -> list[str]:
    """The parts of an option that may be given several times."""
    return [part for text in texts or () for part in split(text)]


def check_share(option: str, value: float, what: str) -> None:
    """What is a share, is one; `what` is expected, such as "a score from 0 to 1, such as 0.1"."""
    if not 0 <= value <= 1:
        raise UsageError(f"{option} is {value:g}; expected {what}.")


def columns_of(table: str, names: Collection[str], arguments: Sequence[str]) -> list[str]:
    """The columns that arguments name: an argument is a column, or several with commas between."""
    columns = [c for text in arguments for c in ([text] if text in names else split(text))]
    if not columns:
        raise UsageError(f"no column of table {table!r} is named.")
    rule = " ".join(arguments)
    if len(arguments) > 1 and is_condition(rule) and not {*names}.issuperset(columns):
        raise UsageError(f"put the whole rule in one argument: {shorten(rule)}.")
    return columns


def _split_types(text: str) -> list[str]:
    """The parts between commas, except for those inside a type.

    >>> _split_types("price=decimal(12,2),at=timestamp[us,utc],zip=text")
    ['price=decimal(12,2)', 'at=timestamp[us,utc]', 'zip=text']
    """
    return [part for part in re.split(r",(?![^(\[]*[)\]])", text) if part]


def _type(text: str) -> tuple[str, str]:
    column, equals, kind = text.rpartition("=")
    if not equals or not column or not kind:
        raise UsageError(f"--types has {shorten(text)}; expected COLUMN=TYPE, such as zip=text.")
    return column, kind.strip()


def operators_of(text: str) -> list[str]:
    """The operators of a text, with commas or spaces between.

    >>> operators_of("=, != <")
    ['=', '!=', '<']
    """
    return text.replace(",", " ").split()


_ROW_NAMES = re.compile(r"(?<![\w.])[ts]\s*\.", re.IGNORECASE)


def names_rows(text: str, columns: Collection[str]) -> bool:
    """Whether a rule is about two rows, but for the `not(...)` that was forgotten.

    >>> names_rows("t.zip = s.zip", ["zip"]), names_rows("t.zip = s.zip", ["t.zip", "s.zip"])
    (True, False)
    """
    return _ROW_NAMES.search(text) is not None and not any(_ROW_NAMES.match(name) for name in columns)


_OPERATOR_SIGNS = re.compile("[=<>!≤≥≠]")


def is_rule(text: str, columns: Collection[str]) -> bool:
    """Whether an argument is meant as a rule, about two rows or about one, and not as columns.

    >>> texts = "zip, a<b", "a<b -> zip", "not(t.zip = s.zip)", "net <= zip"
    >>> [is_rule(text, ["zip", "a<b"]) for text in texts]
    [False, False, True, True]
    """
    if text in columns:
        return False
    if not is_row_rule(text):
        return True
    if ARROW in text or (_OPERATOR_SIGNS.search(text) is None and not is_condition(text)):
        return False
    return "\n" in text or not all(part in columns for part in split(text))


def sources_of(arguments: Sequence[str]) -> dict[str, str]:
    """Tables and their sources, from `NAME=SOURCE` and `FILE`. A path with a folder in it is a FILE.

    >>> sources_of(["people=p.csv", "in/orders.csv.gz", "./day=1.csv", "items/"])
    {'people': 'p.csv', 'orders': 'in/orders.csv.gz', 'day=1': './day=1.csv', 'items': 'items/'}
    """
    sources: dict[str, str] = {}
    for text in arguments:
        name, equals, source = text.partition("=")
        named = equals and os.sep not in name
        if not named:
            name, source = _stem(text), text
        if not name or not source or (not named and (set(name) & set("*?[") or not name.strip("."))):
            raise UsageError(
                f"{shorten_path(text)} does not say what to track: give FILE, or NAME=SOURCE for a source of "
                "which the table cannot have the name."
            )
        if name in sources:
            raise UsageError(
                f"table {shorten(name)} is given two sources: {shorten_path(sources[name])} and "
                f"{shorten_path(source)}. Name one of them otherwise: NAME=SOURCE."
            )
        sources[name] = source
    return sources


def _stem(path: str) -> str:
    """The name of a file without its ending, whether it is compressed or not."""
    name = os.path.basename(path.rstrip(os.sep))
    from holdfast.core.sources.packed import PACKINGS  # here: `show` starts without the readers

    stem, ending = os.path.splitext(name)
    return os.path.splitext(stem if ending.lower() in PACKINGS else name)[0]


def batches_of(tables: Collection[str], parts: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Of each table what its batch consists of, from `TABLE=F` of each part.

    >>> batches_of(["a", "a=b"], {"inserts": ["a=x.csv", "a=b=y.csv"], "deletes": ["a=z.csv"]})
    {'a': {'inserts': 'x.csv', 'deletes': 'z.csv'}, 'a=b': {'inserts': 'y.csv'}}
    """
    batches: dict[str, dict[str, Any]] = {}
    flags = {name: flag for name, flag in parts.items() if isinstance(flag, bool)}
    for part, texts in parts.items():
        for text in () if part in flags else texts or ():
            # A table's name may have an equals sign in it: the longest name that fits is meant.
            names = sorted((t for t in tables if text.startswith(f"{t}=")), key=len)
            table = names[-1] if names else text.partition("=")[0]
            source = text[len(table) + 1 :]
            if not table or not source:
                raise UsageError(f"--{part} has {shorten(text)}; expected TABLE=FILE.")
            if part in batches.setdefault(table, {}):
                raise UsageError(
                    f"table {shorten(table)} is given two --{part}: {shorten_path(batches[table][part])} and "
                    f"{shorten_path(source)}. A folder or a glob can stand for several files."
                )
            batches[table][part] = source
    if not batches:
        raise UsageError(
            "no batch is given: name at least one table with its --inserts, such as orders=new.csv."
        )
    return {table: {**batch, **flags} for table, batch in batches.items()}
