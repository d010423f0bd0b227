"""Options that several commands share, and what their texts mean."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from holdfast.core.words.notation import ARROW
from holdfast.core.words.row_rule import is_row_rule
from holdfast.errors import UsageError, shorten, shorten_path


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


TableName = Annotated[str, typer.Argument(metavar="TABLE", help="The table's name in the workspace.")]
In = Annotated[
    str | None, typer.Option("--in", metavar="TABLE.COLUMN", help="An inclusion in this column, not a key.")
]
InTable = Annotated[
    str | None,
    typer.Option("--in-table", metavar="TABLE", help="The same, where names have dots: the table ..."),
]
InColumn = Annotated[str | None, typer.Option("--in-column", metavar="COLUMN", help="... and the column.")]
OneTable = Annotated[str | None, typer.Option("--table", metavar="TABLE", help="Only this table.")]
MaxMissing = Annotated[
    float,
    typer.Option(
        "--max-error", metavar="SHARE", help="Inclusions that miss up to this share of values, too."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]
All = Annotated[bool, typer.Option("--all", help="Do not shorten long lists.")]

# --- How tables are tracked -------------------------------------------------------------------------------

Kinds = Annotated[
    str,
    typer.Option(
        "--kinds",
        metavar="KIND,...",
        help="What to keep: ucc (keys), fd (functional dependencies), ind (inclusions), dc (denial "
        "constraints: rules about two rows; row comes with them), row (rules about each row).",
    ),
]
Nulls = Annotated[
    NullRule, typer.Option("--nulls", help="Whether two NULLs are equal, or distinct as in SQL's UNIQUE.")
]
RowKey = Annotated[
    list[str] | None,
    typer.Option("--row-key", metavar="COL,...", help="Columns by which deletes and updates name rows."),
]
MaxColumns = Annotated[
    int | None,
    typer.Option("--max-columns", min=1, metavar="N", help="Look for keys of at most N columns."),
]
AppendOnly = Annotated[
    bool, typer.Option("--append-only", help="Rows are only ever inserted; the state gets smaller.")
]
AsText = Annotated[bool, typer.Option("--as-text", help="Compare columns by their text in inclusions.")]
Chosen = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        metavar="PATTERN,...",
        help="Only columns like these (* and ? match) take part in inclusions, denial constraints and row "
        "rules.",
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option("--exclude", metavar="PATTERN,...", help="Columns like these take no part in them."),
]

MaxArity = Annotated[
    int | None,
    typer.Option(
        "--max-arity",
        min=1,
        metavar="N",
        help="Look for inclusions of at most N columns, in all tables of the workspace; 4 unless said.",
    ),
]
MaxLhs = Annotated[
    int | None,
    typer.Option(
        "--max-lhs",
        min=1,
        metavar="N",
        help="Look for functional dependencies with at most N columns on the left.",
    ),
]
MaxError = Annotated[
    float | None,
    typer.Option(
        "--max-error",
        metavar="SHARE",
        help="Also keep what at most this share of the pairs of rows violates, such as 0.01: functional "
        "dependencies and keys, denial constraints; and row rules that this share of the rows violates.",
    ),
]
Evidence = Annotated[
    EvidenceName | None,
    typer.Option(
        "--evidence",
        help="What functional dependencies and denial constraints are kept from: counted knows every error, "
        "witnessed is for tall tables. By default a cost model chooses.",
    ),
]
MaxPredicates = Annotated[
    int | None,
    typer.Option(
        "--max-predicates",
        min=1,
        metavar="N",
        help="Look for denial constraints of at most N predicates.",
    ),
]
Operators = Annotated[
    str | None,
    typer.Option(
        "--operators",
        metavar="OP,...",
        help="Write denial constraints with these operators only (= != < <= > >=); < brings >, <= brings >=.",
    ),
]

WithinColumns = Annotated[
    bool,
    typer.Option(
        "--within-columns", help="Denial constraints compare each column with itself, not with others."
    ),
]
DcSeconds = Annotated[
    float | None,
    typer.Option(
        "--dc-seconds",
        metavar="S",
        help="Search denial constraints for at most S seconds, now and at every batch; 60 unless said. "
        "What is known then is complete up to some number of predicates.",
    ),
]
MaxDcs = Annotated[
    int | None,
    typer.Option(
        "--max-dcs", min=1, metavar="N", help="The same at more than N of them; 1,000,000 unless said."
    ),
]

# --- How files are read -----------------------------------------------------------------------------------

Format = Annotated[
    str | None,
    typer.Option(
        "--format", metavar="NAME", help="csv, parquet, jsonl or arrow; by the file's ending if not given."
    ),
]
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", metavar="CHAR", help=r"Between CSV fields; \t or tab is a tab.")
]
Quote = Annotated[
    str | None, typer.Option("--quote", metavar="CHAR", help='Around CSV fields; "" turns quoting off.')
]
Encoding = Annotated[
    str | None, typer.Option("--encoding", metavar="NAME", help="Of CSV files, such as latin-1.")
]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether CSV files start with the names of the columns."),
]
Null = Annotated[
    list[str] | None,
    typer.Option(
        "--null",
        metavar="TEXT",
        help="An unquoted CSV field that is NULL, instead of the empty one. Repeatable.",
    ),
]
Types = Annotated[
    list[str] | None,
    typer.Option(
        "--types", metavar="COL=TYPE,...", help="Types of CSV columns, such as zip=text,price=decimal(12,2)."
    ),
]

# --- Batches ----------------------------------------------------------------------------------------------

BatchId = Annotated[
    str | None, typer.Option("--batch-id", metavar="ID", help="Apply the batch of this name only once.")
]
Inserts = Annotated[
    str | None, typer.Option("--inserts", metavar="F", help="Rows to insert: a file, folder or glob.")
]
Deletes = Annotated[
    str | None, typer.Option("--deletes", metavar="F", help="Rows to delete: in full, or only their row key.")
]
Updates = Annotated[str | None, typer.Option("--updates", metavar="F", help="Row keys with new values.")]
Before = Annotated[str | None, typer.Option("--before", metavar="F", help="Rows to update, as they are ...")]
After = Annotated[
    str | None, typer.Option("--after", metavar="F", help="... and as they will be, in the same order.")
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

InsertsOf = Annotated[
    list[str] | None,
    typer.Option("--inserts", metavar="TABLE=F", help="Rows to insert: a file, folder or glob. Repeatable."),
]
DeletesOf = Annotated[
    list[str] | None,
    typer.Option("--deletes", metavar="TABLE=F", help="Rows to delete: in full, or only their row key."),
]
UpdatesOf = Annotated[
    list[str] | None, typer.Option("--updates", metavar="TABLE=F", help="Row keys with new values.")
]
BeforeOf = Annotated[
    list[str] | None, typer.Option("--before", metavar="TABLE=F", help="Rows to update, as they are ...")
]
AfterOf = Annotated[
    list[str] | None,
    typer.Option("--after", metavar="TABLE=F", help="... and as they will be, in the same order."),
]


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


def columns_of(table: str, known: Collection[str], given: Sequence[str]) -> list[str]:
    """The columns that arguments name: an argument is a column, or several with commas between."""
    found = [c for text in given for c in ([text] if text in known else split(text))]
    if not found:
        raise UsageError(f"no column of table {table!r} is named.")
    return found


def reading(
    format: str | None,
    delimiter: str | None,
    quote: str | None,
    encoding: str | None,
    header: bool | None,
    null: Sequence[str] | None,
    types: Sequence[str] | None,
) -> dict[str, Any]:
    """The reading options that were given; for the others the table's own count."""
    if delimiter in ("\\t", "tab"):
        delimiter = "\t"
    given = {
        "format": format,
        "delimiter": delimiter,
        "quote": quote,
        "encoding": encoding,
        "header": header,
        "null_values": list(null) if null else None,
        "types": dict(_type(part) for text in types for part in _split_types(text)) if types else None,
    }
    return {name: value for name, value in given.items() if value is not None}


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


def tracking(
    kinds: str,
    nulls: NullRule,
    row_key: Sequence[str] | None,
    max_columns: int | None,
    append_only: bool,
    as_text: bool,
    columns: Sequence[str] | None,
    exclude: Sequence[str] | None,
    max_arity: int | None,
    max_lhs: int | None,
    max_error: float | None,
    evidence: EvidenceName | None,
    max_predicates: int | None,
    operators: str | None,
    within_columns: bool,
    dc_seconds: float | None,
    max_dcs: int | None,
) -> dict[str, Any]:
    """How `track` and `track-all` track a table."""
    wanted = split(kinds)
    given: dict[str, tuple[object, tuple[str, ...]]] = {
        "--as-text": (as_text, ("ind",)),
        "--columns": (columns, ("ind", "dc", "row")),
        "--exclude": (exclude, ("ind", "dc", "row")),
        "--max-arity": (max_arity, ("ind",)),
        "--max-lhs": (max_lhs, ("fd",)),
        "--max-error": (max_error is not None, ("fd", "dc", "row")),
        "--evidence": (evidence, ("fd", "dc")),
        "--max-predicates": (max_predicates, ("dc",)),
        "--operators": (operators is not None, ("dc",)),
        "--within-columns": (within_columns, ("dc",)),
        "--dc-seconds": (dc_seconds is not None, ("dc",)),
        "--max-dcs": (max_dcs, ("dc",)),
    }
    for name, (value, kinds_of) in given.items():
        if value and not {*wanted} & {*kinds_of}:
            nouns = listed([NOUNS_OF_KINDS[kind] for kind in kinds_of])
            raise UsageError(
                f"{name} is about {nouns}, which are not to be kept: add {listed(kinds_of, 'or')} to --kinds."
            )
    return {
        "kinds": wanted,
        "nulls": nulls.value,
        "row_key": split_all(row_key),
        "max_columns": max_columns,
        "append_only": append_only,
        "as_text": as_text,
        "columns": split_all(columns) if columns else None,
        "exclude": split_all(exclude),
        "max_arity": max_arity,
        "max_lhs": max_lhs,
        "max_error": max_error,
        "evidence": None if evidence is None else evidence.value,
        "max_predicates": max_predicates,
        "operators": None if operators is None else operators_of(operators),
        "within_columns": within_columns,
        "dc_seconds": dc_seconds,
        "max_dcs": max_dcs,
    }


NOUNS_OF_KINDS = {
    "ucc": "keys",
    "fd": "functional dependencies",
    "ind": "inclusions",
    "dc": "denial constraints",
    "row": "row rules",
}


def listed(words: Sequence[str], last: str = "and") -> str:
    """
    >>> listed(["a"]), listed(["a", "b", "c"], "or")
    ('a', 'a, b or c')
    """
    *first, end = words
    return f"{', '.join(first)} {last} {end}" if first else end


def operators_of(text: str) -> list[str]:
    """The operators of a text, with commas or spaces between.

    >>> operators_of("=, != <")
    ['=', '!=', '<']
    """
    return text.replace(",", " ").split()


_ROW_NAMES = re.compile(r"(?<![\w.])[ts]\s*\.", re.IGNORECASE)


def names_rows(text: str, known: Collection[str]) -> bool:
    """Whether a rule is about two rows, but for the `not(...)` that was forgotten.

    >>> names_rows("t.zip = s.zip", ["zip"]), names_rows("t.zip = s.zip", ["t.zip", "s.zip"])
    (True, False)
    """
    return _ROW_NAMES.search(text) is not None and not any(_ROW_NAMES.match(name) for name in known)


_OPERATOR_SIGNS = re.compile("[=<>!≤≥≠]")


def is_rule(text: str, known: Collection[str]) -> bool:
    """Whether an argument is meant as a rule, about two rows or about one, and not as columns.

    >>> texts = "zip, a<b", "a<b -> zip", "not(t.zip = s.zip)", "net <= zip"
    >>> [is_rule(text, ["zip", "a<b"]) for text in texts]
    [False, False, True, True]
    """
    if text in known:
        return False
    if not is_row_rule(text):
        return True
    if ARROW in text or _OPERATOR_SIGNS.search(text) is None:
        return False
    return "\n" in text or not all(part in known for part in split(text))


def sources_of(given: Sequence[str]) -> dict[str, str]:
    """Tables and their sources, from `NAME=SOURCE` and `FILE`. A path with a folder in it is a FILE.

    >>> sources_of(["people=p.csv", "in/orders.csv.gz", "./day=1.csv", "items/"])
    {'people': 'p.csv', 'orders': 'in/orders.csv.gz', 'day=1': './day=1.csv', 'items': 'items/'}
    """
    found: dict[str, str] = {}
    for text in given:
        name, equals, source = text.partition("=")
        named = equals and os.sep not in name
        if not named:
            name, source = _stem(text), text
        if not name or not source or (not named and (set(name) & set("*?[") or not name.strip("."))):
            raise UsageError(
                f"{shorten_path(text)} does not say what to track: give FILE, or NAME=SOURCE for a source of "
                "which the table cannot have the name."
            )
        if name in found:
            raise UsageError(
                f"table {shorten(name)} is given two sources: {shorten_path(found[name])} and "
                f"{shorten_path(source)}. Name one of them otherwise: NAME=SOURCE."
            )
        found[name] = source
    return found


def _stem(path: str) -> str:
    """The name of a file without its ending, whether it is compressed or not."""
    name = os.path.basename(path.rstrip(os.sep))
    if name.lower().endswith(".gz"):
        name = name[:-3]
    return os.path.splitext(name)[0]


def batches_of(
    tables: Collection[str], parts: Mapping[str, Sequence[str] | None]
) -> dict[str, dict[str, str]]:
    """Of each table what its batch consists of, from `TABLE=F` of each part.

    >>> batches_of(["a", "a=b"], {"inserts": ["a=x.csv", "a=b=y.csv"], "deletes": ["a=z.csv"]})
    {'a': {'inserts': 'x.csv', 'deletes': 'z.csv'}, 'a=b': {'inserts': 'y.csv'}}
    """
    found: dict[str, dict[str, str]] = {}
    for part, texts in parts.items():
        for text in texts or ():
            # A table's name may have an equals sign in it: the longest name that fits is meant.
            names = sorted((t for t in tables if text.startswith(f"{t}=")), key=len)
            table = names[-1] if names else text.partition("=")[0]
            source = text[len(table) + 1 :]
            if not table or not source:
                raise UsageError(f"--{part} has {shorten(text)}; expected TABLE=FILE.")
            if part in found.setdefault(table, {}):
                raise UsageError(
                    f"table {shorten(table)} is given two --{part}: {shorten_path(found[table][part])} and "
                    f"{shorten_path(source)}. A folder or a glob can stand for several files."
                )
            found[table][part] = source
    if not found:
        raise UsageError(
            "no batch is given: name at least one table with its --inserts, such as orders=new.csv."
        )
    return found
