"""What is known of a source: how to read it, its splits, and the plan as a whole."""

from __future__ import annotations

import codecs
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pyarrow as pa

from holdfast.core.store.files import FileRef, check_file
from holdfast.core.store.root import Root
from holdfast.core.words.codec import Coded
from holdfast.core.words.schema import Schema, Type
from holdfast.errors import UsageError, shorten

Format = Literal["auto", "csv", "parquet", "jsonl", "arrow"]
FORMATS = ("auto", "csv", "parquet", "jsonl", "arrow")
Kind = Literal["csv", "jsonl", "parquet", "arrow"]
DATES = ("ymd", "dmy", "mdy")
# What `plan_source` fills in.
PLANNED = ("spellings", "left_out", "forms", "typed_nulls", "nan_is_null", "first_notes")
NAN = "nan"  # the one text that is a float's NaN


@dataclass(frozen=True, slots=True)
class ReadOptions(Coded):
    """How a source is to be read.

    `format` "auto" goes by the file's ending. `delimiter` None is a tab for `.tsv` and a comma
    otherwise. A doubled quote stands for one; an empty `quote` turns quoting off. A field is NULL if it
    equals one of `null_values` and is not quoted; without them the empty one is, and the usual words are in
    columns that are no texts. `names` are those of all columns. Lines that begin with
    `comment` are none; without it those before the header that begin with `#`. `dates` says what comes first
    in dates that do not begin with a year: ymd (there are none), dmy or mdy; `decimal` the decimal point: `.`
    or `,`; `thousands` what is between thousands, without which that is never recognised.
    Without them they are recognised (`respelling`). `types` maps columns to type texts that the user has
    declared: they are not guesses, and a value that does not fit one is an error. With `sql` the source is a
    database, and the rows are those of the query; a table does not remember it for its batches.

    `spellings` is filled by `plan_source`: how a CSV column spells its floats or timestamps (see
    `type_rule`), so that all splits hold the column to one spelling. So is `left_out`: columns of the source
    that are nested or empty, and no part of the table; `forms`, how columns are spelt otherwise than by the
    type rule; and `typed_nulls`, words that are NULL in columns that are no texts. `nan_is_null`: `nan` and
    `NaN` are among these in batches, too. In tables of which that was never said a float may be NaN.
    `first_notes` are those on the first file, which say nothing new of a batch's.
    """

    format: Format = "auto"
    header: bool = True
    delimiter: str | None = None
    quote: str = '"'
    encoding: str = "utf-8"
    null_values: tuple[str, ...] | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    spellings: Mapping[str, str] = field(default_factory=dict)
    sql: str | None = None
    left_out: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    comment: str | None = None
    dates: str | None = None
    decimal: str | None = None
    forms: Mapping[str, str] = field(default_factory=dict)
    typed_nulls: tuple[str, ...] = ()
    thousands: str | None = None
    nan_is_null: bool = False
    first_notes: tuple[str, ...] = ()

    @property
    def nulls(self) -> tuple[str, ...]:
        """The fields that are NULL in every column."""
        return ("",) if self.null_values is None else self.null_values

    def settled(self, schema: Schema, words: Collection[str]) -> ReadOptions:
        """What a table remembers for its batches: nothing more is recognised in them but the usual words for
        NULL, where `null_values` did not say which there are.

        `words` are those that were NULL. Names that stand for those of a header are not for other files.
        """
        typed = {c.name for c in schema.columns if c.type.family != "text"}
        return replace(
            self,
            typed_nulls=tuple(word for word in self.typed_nulls if word in words),
            nan_is_null=NAN in self.typed_nulls,
            forms={name: form for name, form in self.forms.items() if name in typed},
            names=() if self.header else self.names,
            left_out=(),
        )

    @classmethod
    def public_names(cls) -> list[str]:
        """The options that users give."""
        return [name for name in cls.__slots__ if name not in PLANNED]

    @classmethod
    def checked(cls, fields: Mapping[str, Any]) -> ReadOptions:
        """What a user asks for; not by the codec: what is wrong with it is for people."""
        for name in fields:
            if name not in cls.__slots__:
                names = ", ".join(cls.public_names())
                raise UsageError(f"unknown reading option {shorten(name)}. Options: {names}.")
        options: dict[str, Any] = dict(fields)
        if options.get("format") == "json":  # one reader tells lines and arrays apart
            options["format"] = "jsonl"
        for name in ("null_values", "left_out", "names", "typed_nulls", "first_notes"):
            if options.get(name) is not None:
                options[name] = tuple(options[name])
        return cls(**options)

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise UsageError(
                f"format {shorten(self.format)} is not known. Formats: {', '.join(FORMATS)}, json."
            )
        for what, given, choice in (("dates", self.dates, DATES), ("decimal", self.decimal, (".", ","))):
            if given is not None and given not in choice:
                raise UsageError(f"{what} is {shorten(given)}; expected {' or '.join(choice)}.")
        for what, text, empty in (
            ("delimiter", self.delimiter, False),
            ("quote", self.quote, True),
            ("comment", self.comment, True),
        ):
            if text is None or (empty and text == ""):
                continue
            if len(text) != 1 or not text.isascii() or text in "\r\n":
                raise UsageError(
                    f"the {what} must be one ASCII character and no line end, not {shorten(text)}."
                )
        mark, point = self.thousands, self.decimal or ("," if self.thousands == "." else ".")
        if mark is not None and (len(mark) != 1 or mark.isalnum() or mark in ("-", "+", point)):
            raise UsageError(
                f"thousands is {shorten(mark)}; expected one character that is no digit, no sign and not the "
                f"decimal point {point!r}."
            )
        if self.quote and self.quote == self.delimiter:
            raise UsageError(f"delimiter and quote are both {self.quote!r}; they must differ.")
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise UsageError(
                f"encoding {shorten(self.encoding)} is not known. Next step: try utf-8, latin-1 or cp1252."
            ) from None
        for column, text in self.types.items():
            try:
                Type.parse(text)
            except ValueError:
                raise UsageError(
                    f"column {shorten(column)} cannot have type {shorten(text)}. Types: int, uint, float, "
                    "decimal(p,s), bool, date, time, timestamp, text, binary."
                ) from None

    @property
    def declared(self) -> dict[str, Type]:
        """The user's types."""
        return {column: Type.parse(text) for column, text in self.types.items()}


@dataclass(frozen=True, slots=True)
class Split(Coded):
    """A part of a file that can be read on its own.

    `start` and `end` are bytes of the file for csv and jsonl (always whole records), rows for parquet and
    arrow. A file that cannot be cut (compressed, or in a multi-byte encoding) is one split. `first` says
    that it begins with the file, so that it carries a byte order mark and a CSV header. `batch` is the number
    of the record batch that an arrow split begins with. Of a `staged` one the file is one of the workspace.
    `partition` are the columns that stand in the file's folders, with their values. `array` says that a jsonl
    file is one array of objects; it is not cut either. Of a compressed file `most` bytes of what is in it are
    read, if that is given.
    """

    kind: Kind
    path: str
    start: int
    end: int
    n_bytes: int
    first: bool = True
    batch: int = 0
    staged: FileRef | None = None
    partition: Mapping[str, str | None] = field(default_factory=dict)
    array: bool = False
    most: int | None = None

    def located(self, root: Root) -> Split:
        """The split, with the path of its file on this machine."""
        if self.staged is None:
            return self
        return replace(self, path=str(check_file(root, self.staged, deep=False)))


@dataclass(slots=True)
class Source:
    """A planned source.

    `types` are facts for Parquet, Arrow and declared columns and guesses for the rest of a CSV or JSON
    lines file. `options` are those to read the splits with.
    A small in-memory table has no splits: it is `local_table`. Nor has a Spark DataFrame: it is `frame`, and
    its size is not known. `notes` say what was understood of the source in a way that it does not say itself;
    `words` are those that were read as NULL so far.
    """

    description: str
    splits: list[Split]
    names: tuple[str, ...]
    types: tuple[Type, ...]
    options: ReadOptions
    n_bytes: int
    local_table: pa.Table | None = None
    frame: Any = None
    notes: tuple[str, ...] = ()
    words: set[str] = field(default_factory=set)

    @property
    def guessed(self) -> bool:
        """Whether the types must be verified by `read_split_guessed`."""
        return any(split.kind in ("csv", "jsonl") for split in self.splits[:1])
