"""Where commands write what other tools read: to a file, which is there whole or not at all, or to standard
output."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING

from holdfast.app.report.paper import Paper
from holdfast.app.report.texts import name_text, safe
from holdfast.errors import UsageError, shorten_path

if TYPE_CHECKING:
    import pyarrow as pa

TABLE_FILES = (".parquet", ".csv")


def shows_to_a_person() -> bool:
    return sys.stdout.isatty()


def print_written(output: Path | None, counts: str, version: int) -> None:
    """What a file has in it; nothing where it went to standard output."""
    if not _is_standard(output):
        Paper(sys.stdout).line(f"{name_text(str(output))}: {counts} (version {version})")


def _is_standard(output: Path | None) -> bool:
    return output is None or str(output) == "-"


@contextlib.contextmanager
def written_to(output: Path | None = None) -> Iterator[IO[str]]:
    """Where a text is written, at once or piece by piece, in UTF-8."""
    if output is None or _is_standard(output):
        if shows_to_a_person():
            yield _Terminal()  # type: ignore[misc]
            return
        with contextlib.suppress(AttributeError, ValueError):
            sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
        yield sys.stdout
        return
    with _replacing(output) as path, _opened(path) as file:
        yield file


@contextlib.contextmanager
def _replacing(output: Path) -> Iterator[Path]:
    """The file to write to in place of another one, which it becomes when it is whole."""
    part = None
    try:
        if output.exists() and not output.is_file():  # a pipe, /dev/null: it cannot be replaced
            yield output
            return
        target = output.resolve()
        part = target.with_name(f".holdfast-{os.getpid()}.part")
        yield part
        os.replace(part, target)
    except OSError as error:
        raise UsageError(
            f"cannot write to {shorten_path(str(output))}: {error.strerror or error}."
        ) from error
    finally:
        if part is not None:
            part.unlink(missing_ok=True)


def write_table(output: Path, schema: pa.Schema, batches: Iterable[pa.Table]) -> None:
    """Write tables one behind the other, as Parquet or CSV, by the end of the file's name; to `-` as CSV.

    One of them is held at a time. In CSV bytes are hexadecimal, and a list is one text.
    """
    kind = ".csv" if _is_standard(output) else output.suffix.lower()
    if kind not in TABLE_FILES:
        raise UsageError(
            f"cannot write rows to {shorten_path(str(output))}: name a file that ends in "
            f"{' or '.join(TABLE_FILES)}."
        )
    if kind == ".parquet":
        from pyarrow.parquet import ParquetWriter

        with _replacing(output) as path, path.open("wb") as raw, ParquetWriter(raw, schema) as parquet:
            for batch in batches:
                parquet.write_table(batch)
        return
    with written_to(output) as file:
        for piece in csv_pieces(schema, batches):
            file.write(piece)


def csv_pieces(schema: pa.Schema, batches: Iterable[pa.Table]) -> Iterator[str]:
    """Tables one behind the other as CSV, with one head.

    Values are as they are, so that what reads the file gets what was there: a spreadsheet may take a text
    that begins with `=` for a formula.
    """
    import pyarrow as pa
    from pyarrow.csv import WriteOptions, write_csv

    for i, batch in enumerate(chain([schema.empty_table()], batches)):
        sink = pa.BufferOutputStream()
        write_csv(_as_texts(batch), sink, WriteOptions(include_header=i == 0))
        yield bytes(sink.getvalue()).decode("utf-8", "backslashreplace")


def _as_texts(rows: pa.Table) -> pa.Table:
    """With texts for what CSV has no words for."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = {}
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if pa.types.is_list(column.type):
            columns[name] = pc.binary_join(column, "; ")
        elif pa.types.is_large_binary(column.type):
            texts = [None if value is None else value.hex() for value in column.to_pylist()]
            columns[name] = pa.array(texts, pa.string())
        else:
            columns[name] = column
    return pa.table(columns)


def _opened(path: Path) -> IO[str]:
    return open(path, "w", encoding="utf-8", errors="backslashreplace", newline="\n")


class _Terminal:
    """Standard output where a person looks at it: a name must not send it an escape sequence."""

    def write(self, text: str) -> int:
        return sys.stdout.write("\n".join(map(safe, text.split("\n"))))
