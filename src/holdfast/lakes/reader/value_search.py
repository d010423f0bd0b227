"""Tables, columns and values of a lake by a text. Needs no kernels.

A name is found by any part of it, whatever its case; a value only as a whole, by its hashes in the sorted
index of each part. Cost: a pass over the names (milliseconds for 100,000), two binary searches for a value.
"""

from __future__ import annotations

import difflib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from numpy.typing import NDArray

from holdfast.core.store.format import Key, text_key
from holdfast.core.store.plain_siphash import siphash
from holdfast.errors import UnknownColumnError, UnknownTableError, UsageError, listing, shorten
from holdfast.lakes.answers import FoundTable, FoundValue, SearchResult
from holdfast.lakes.reader.catalogue import I32, U64, Bool, LakeCatalogue
from holdfast.lakes.reader.pages import arrow, numbers, text_scalar, true_at
from holdfast.lakes.state import I64, TEXT_LENGTH, Part

SOUGHT = ("all", "table", "column", "value")

_NEAR = 3  # names suggested instead of an unknown one
_COMPARED = 5_000  # names that an unknown one is compared with


def search(catalogue: LakeCatalogue, text: str, what: str = "all", limit: int = 50) -> SearchResult:
    """Where a text is found: in names of tables and columns (best matches first), and as a value.

    An empty text is sought as a value only. At most `limit` of each are listed.
    """
    if what not in SOUGHT:
        raise UsageError(f"cannot search for {shorten(what)}. Expected one of: {', '.join(SOUGHT)}.")
    if limit < 1:
        raise UsageError(f"a limit of {limit} finds nothing. Expected 1 or more.")
    tables: tuple[FoundTable, ...] = ()
    more = False
    if what in ("all", "table"):
        named = _by_name(catalogue.table_names, text, catalogue.live)
        more |= len(named) > limit
        tables = _tables(catalogue, named[:limit])
    columns = np.empty(0, np.int64)
    if what in ("all", "column"):
        named = _by_name(catalogue.column_names, text, None)
        named = named[catalogue.live[catalogue.table_of[named]]]
        more |= len(named) > limit
        columns = named[:limit]
    values: tuple[FoundValue, ...] = ()
    if what in ("all", "value"):
        value = catalogue.state.options.normalised(text)
        holders = columns_with(catalogue, value)
        more |= len(holders) > limit
        if len(holders):
            listed = catalogue.found_columns(holders[:limit])
            values = (FoundValue(value[:TEXT_LENGTH], len(holders), listed),)
    return SearchResult(tables, catalogue.found_columns(columns), values, bool(more))


def columns_with(catalogue: LakeCatalogue, value: str) -> I32:
    """The numbers of the live columns that have a value, ascending; the text is normalised already."""
    try:
        value_hash, check = hashes(value, text_key(catalogue.root))
    except UnicodeEncodeError:  # a lone surrogate, which no file can hold
        return np.empty(0, np.int32)
    by_part = [np.empty(0, np.int32)]
    for part in catalogue.parts:
        starts, lengths = runs_of(part, np.array([value_hash]), np.array([check]))
        run = slice(int(starts[0]), int(starts[0] + lengths[0]))
        by_part.append(part.array("postings")[run] + np.int32(part.ref.first_column))
    columns = np.concatenate(by_part)
    return columns[catalogue.live[catalogue.table_of[columns]]]


def runs_of(part: Part, values: U64, checks: U64) -> tuple[I64, I64]:
    """(starts, lengths): where the postings of values are in the index of a part; length 0 if it has none.

    What `kernels.value_index.find` does, for readers, who load no kernels. Cost: two binary searches for each
    value, faster for sorted ones.
    """
    keys, key_checks = part.array("keys"), part.array("key_checks")
    low: NDArray[Any] = np.searchsorted(keys, values, "left")
    high: NDArray[Any] = np.searchsorted(keys, values, "right")
    there = np.flatnonzero(low < high)
    other = (key_checks[low[there]] != checks[there]) | (key_checks[high[there] - 1] != checks[there])
    for i in there[other].tolist():  # another value has this h1, 64 bits of a keyed hash: hardly ever
        first, run = low[i], key_checks[low[i] : high[i]]
        low[i] = first + np.searchsorted(run, checks[i], "left")
        high[i] = first + np.searchsorted(run, checks[i], "right")
    return low, high - low


def hashes(value: str, key: Key | None) -> tuple[np.uint64, np.uint64]:
    """What a value is known by: the hash of its UTF-8 under the key of the workspace.

    Without one (format 5), xxHash64 with the seeds 0 and 1.

    >>> [hex(h) for h in hashes("", None)]
    ['0xef46db3751d8e999', '0xd5afba1336a3be4b']
    """
    encoded = value.encode("utf-8")
    if key is None:
        return np.uint64(xxhash.xxh64_intdigest(encoded, 0)), np.uint64(xxhash.xxh64_intdigest(encoded, 1))
    low, high = siphash(encoded, key)
    return np.uint64(low), np.uint64(high)


def _by_name(names: pa.LargeStringArray, text: str, live: Bool | None) -> NDArray[np.int64]:
    """The numbers of the names that contain a text: the name itself first, then the shortest."""
    if not text or not _sane(text):
        return np.empty(0, np.int64)
    mask = pc.match_substring(names, pattern=text, ignore_case=True)
    matches = true_at(mask)
    if live is not None:
        matches = matches[live[matches]]
    chosen = names.take(arrow(matches))
    differs = numbers(pc.cast(pc.not_equal(chosen, text_scalar(text)), pa.uint8()))
    return matches[np.lexsort((matches, numbers(pc.utf8_length(chosen)), differs))]


def _tables(catalogue: LakeCatalogue, tables: NDArray[np.int64]) -> tuple[FoundTable, ...]:
    if not len(tables):
        return ()
    order = np.argsort(tables)
    rows = catalogue.table_rows.rows(tables, ("n_rows",)).column("n_rows")
    n_rows = np.empty(len(tables), np.int64)
    n_rows[order] = numbers(rows)
    names = catalogue.name_list(tables)
    return tuple(map(FoundTable, tables.tolist(), names, n_rows.tolist()))


def _sane(text: str) -> bool:
    """Whether a text can be a name at all: lone surrogates have no UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


# -- one table or column by its name -----------------------------------------------------------------------


def resolve(catalogue: LakeCatalogue, text: str) -> int | tuple[int, int]:
    """The number of the table that a text names; or, of a column, its table's number and its position.

    A table is named by its whole name or by the end of its path, where that is unique; a column as
    TABLE.COLUMN or TABLE[COLUMN]. A table goes before a column, a whole name before the end of a path. As
    names may have dots in them, every dot is tried, from the right.
    """
    named = _named(catalogue, text)
    if len(named) == 1:
        return int(named[0])
    unknown: tuple[int, str] | None = None
    doubtful = (text, named)
    for table_text, column in splits(text):
        tables = _named(catalogue, table_text)
        if len(tables) != 1:
            doubtful = doubtful if len(doubtful[1]) else (table_text, tables)
            continue
        names = catalogue.column_names_of(int(tables[0]))
        if column in names:
            return int(tables[0]), names.index(column)
        unknown = unknown or (int(tables[0]), column)
    if unknown is not None:
        names = catalogue.column_names_of(unknown[0])
        name = catalogue.table_name(unknown[0])
        raise UnknownColumnError.from_missing(name, catalogue.version, unknown[1], names)
    if len(doubtful[1]):
        names = catalogue.name_list(doubtful[1][:_NEAR])
        raise UsageError(
            f"{shorten(doubtful[0])} is the end of {len(doubtful[1]):,} names of tables: "
            f"{listing(names)}{_more(len(doubtful[1]) - len(names))}. Give more of the path."
        )
    raise _unknown_table(catalogue, text)


def _named(catalogue: LakeCatalogue, text: str) -> NDArray[np.int64]:
    """The live tables of a name: that which is called so, else those whose path ends so."""
    if not text or not _sane(text):
        return np.empty(0, np.int64)
    for mask in (
        pc.equal(catalogue.table_names, text_scalar(text)),
        pc.ends_with(catalogue.table_names, pattern="/" + text.lstrip("/")),
    ):
        tables = true_at(mask)
        tables = tables[catalogue.live[tables]]
        if len(tables):
            return tables
    return tables


def splits(text: str) -> list[tuple[str, str]]:
    """(table, column) that a text may mean.

    >>> splits("a.b.c"), splits("t[x[1]]")
    ([('a.b', 'c'), ('a', 'b.c')], [('t[x', '1]'), ('t', 'x[1]')])
    """
    splits = []
    if text.endswith("]"):
        splits += [(text[:i], text[i + 1 : -1]) for i in range(len(text) - 1, 0, -1) if text[i] == "["]
    return splits + [(text[:i], text[i + 1 :]) for i in range(len(text) - 1, 0, -1) if text[i] == "."]


def _unknown_table(catalogue: LakeCatalogue, text: str) -> UnknownTableError:
    start = f"the lake (version {catalogue.version}) has no table {shorten(text)}"
    if not catalogue.live.any():
        return UnknownTableError(f"{start}: it has none. Add some with 'holdfast link --add'.")
    near = _near(catalogue, text)
    if near:
        return UnknownTableError(f"{start}. Did you mean {' or '.join(map(shorten, near))}?")
    first = catalogue.name_list(np.flatnonzero(catalogue.live)[:_NEAR])
    more = _more(int(catalogue.live.sum()) - len(first))
    return UnknownTableError(f"{start}. Tables: {listing(first)}{more}.")


def _near(catalogue: LakeCatalogue, text: str) -> list[str]:
    """Names much like a text: those that contain its last part, else those that are spelt almost so."""
    last = text.rstrip("/").rpartition("/")[2]
    for part in (text, last, last.rpartition(".")[0]):
        named = _by_name(catalogue.table_names, part, catalogue.live)
        if len(named):
            return catalogue.name_list(named[:_NEAR])
    some = catalogue.name_list(np.flatnonzero(catalogue.live)[:_COMPARED])
    by_end = {name.rpartition("/")[2]: name for name in reversed(some)}
    close = difflib.get_close_matches(last, by_end, n=_NEAR)
    return [by_end[name] for name in close]


def _more(n: int) -> str:
    return f" and {n:,} more" if n > 0 else ""
