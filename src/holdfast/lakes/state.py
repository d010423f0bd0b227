"""What a commit says of a lake: how it was read, its parts, and where their arrays lie.

A lake is a set of very many small tables without schema. Each `link` adds one *part*: flat arrays over the
part's columns (`.npy`, memory-mapped) and Parquet files that other tools can query. Tables and columns are
numbered through all parts, in order, and a number is never used again; so the inclusions that are written
once stay right when tables come and go. Dropped tables are listed, and what names them is skipped on reading.

State as a whole is plain data, JSON in a ledger row of its own; reading it needs neither kernels nor Spark.
"""

from __future__ import annotations

import threading
import tokenize
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import DTypeLike, NDArray

from holdfast.core.store.files import FileRef, new_file, opened, unique_name
from holdfast.core.store.root import Root
from holdfast.core.words.codec import Coded
from holdfast.errors import DamagedFileError
from holdfast.lakes import FILTERS

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]

FOLDER = "lake"
_HEADERS = threading.Lock()
_HEADER_BYTES = 1024  # what NumPy writes before the items takes 128
_REPAIR = "Restore it from a backup, or link the lake anew."

NORMALISATIONS = ("unicode", "trim", "fold")
# Cells that say nothing, whatever column they stand in; users add their own.
NULL_LIKE = ("", "—", "-", "\u2013", "N/A", "?", "Unknown", "- -", "n/a", "•", "- - -", ".", "??", "(n/a)")
TEXT_LENGTH = 1000  # characters of a cell or value that are kept as text; all of it is hashed
# Bits of `flags`.
NULL_COLUMN, INTEGER_COLUMN, UNIQUE_COLUMN = 1, 2, 4

TABLES_SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("source", pa.string()),
        ("n_rows", pa.int64()),
        ("n_columns", pa.int32()),
        ("rows", pa.list_(pa.list_(pa.string()))),
    ]
)
COLUMNS_SCHEMA = pa.schema(
    [
        ("table", pa.int32()),
        ("position", pa.int32()),
        ("name", pa.string()),
        ("n_rows", pa.int64()),
        ("n_values", pa.int64()),
        ("n_missing", pa.int64()),
        ("n_null_like", pa.int64()),
        ("texts", pa.list_(pa.string())),
    ]
)
INDS_SCHEMA = pa.schema([("dependent", pa.int32()), ("referenced", pa.int32()), ("shared", pa.int32())])
LINKS_SCHEMA = pa.schema(
    [("dep_table", pa.int32()), ("ref_table", pa.int32()), ("n_inds", pa.int32()), ("score", pa.float32())]
)


@dataclass(frozen=True, slots=True)
class LakeOptions(Coded):
    """What decides which inclusions a lake lists; fixed when it is linked.

    >>> LakeOptions.from_dict(LakeOptions(filters=("null",)).to_dict()) == LakeOptions(filters=("null",))
    True
    """

    filters: tuple[str, ...] = FILTERS
    tau: float = 0.2  # least coverage of the referenced column
    null_values: tuple[str, ...] = ()  # beside the usual ones
    normalise: tuple[str, ...] = ()
    m: int = 650  # bits of a signature in each pass
    k: int = 6  # hash functions of each pass
    p: int = 2  # passes
    max_error: float = 0.0  # share of its values that a dependent column may lack in the referenced one
    min_values: int = 5  # smaller columns must be contained whole

    @property
    def filter_bits(self) -> int:
        """Bit i is set if filter i is on."""
        return sum(1 << i for i, name in enumerate(FILTERS) if name in self.filters)

    @property
    def n_bits(self) -> int:
        """The length of a signature."""
        return self.m * self.p

    def normalised(self, text: str) -> str:
        """The text that stands for a cell in all comparisons: `unicode` (NFKC), `trim`, `fold`, in order.

        >>> LakeOptions(normalise=("fold", "trim", "unicode")).normalised(" Ａ ß ")
        'a ss'
        >>> LakeOptions().normalised(" Ａ ")
        ' Ａ '
        """
        if "unicode" in self.normalise:
            text = unicodedata.normalize("NFKC", text)
        if "trim" in self.normalise:
            text = text.strip()
        if "fold" in self.normalise:
            text = text.casefold()
        return text

    def null_like(self) -> frozenset[str]:
        """What counts as missing, spelt as the values of the lake are."""
        return frozenset(map(self.normalised, (*NULL_LIKE, *self.null_values)))


@dataclass(frozen=True, slots=True)
class PartRef(Coded):
    """Tables and columns that were linked together, or merged later."""

    first_table: int
    n_tables: int
    first_column: int
    n_columns: int
    n_entries: int  # values of all columns
    n_active: int  # columns that are matched
    arrays: dict[str, FileRef]
    tables: tuple[FileRef, ...]
    columns: tuple[FileRef, ...]

    def for_tasks(self) -> dict[str, Any]:
        """What tasks that match are told: without the files of tables and columns, which may be many."""
        return replace(self, tables=(), columns=()).to_dict()


@dataclass(frozen=True, slots=True)
class GraphRef(Coded):
    """The join graph of the whole lake: which component each table is in, and its inclusions."""

    files: dict[str, tuple[FileRef, ...]]
    n_components: int
    n_isolated: int  # live tables without a link to another one


@dataclass(frozen=True, slots=True)
class LakeState(Coded):
    """A lake at one version of the workspace."""

    options: LakeOptions
    parts: tuple[PartRef, ...] = ()
    inds: tuple[FileRef, ...] = ()  # all that were ever written; those of dropped tables are skipped
    links: tuple[FileRef, ...] = ()  # the same by pairs of tables
    dropped: FileRef | None = None  # int32, ascending: the numbers of dropped tables
    n_tables: int = 0  # live ones
    n_columns: int = 0
    n_inds: int = 0
    removed: dict[str, int] = field(default_factory=dict)  # filter -> inclusions that it keeps out
    graph: GraphRef | None = None

    @property
    def next_table(self) -> int:
        return self.parts[-1].first_table + self.parts[-1].n_tables if self.parts else 0

    @property
    def next_column(self) -> int:
        return self.parts[-1].first_column + self.parts[-1].n_columns if self.parts else 0


def live_tables(root: Root, state: LakeState) -> NDArray[np.bool_]:
    """Which tables are not dropped: bool[next_table]."""
    live = np.ones(state.next_table, np.bool_)
    if state.dropped is not None:
        live[open_array(root, state.dropped)] = False
    return live


class Part:
    """A part, open: its arrays are memory maps, read when they are asked for."""

    def __init__(self, root: Root, ref: PartRef) -> None:
        self.root, self.ref = root, ref
        self._open: dict[str, NDArray[Any]] = {}

    def array(self, name: str) -> NDArray[Any]:
        array = self._open.get(name)
        if array is None:
            array = self._open[name] = open_array(self.root, self.ref.arrays[name])
        return array

    @cached_property
    def sizes(self) -> NDArray[np.int32]:
        """How many values each column has, int32[n]."""
        return np.diff(self.array("offsets")).astype(np.int32)

    def values_of(self, columns: NDArray[Any]) -> tuple[I64, U64, U64]:
        """(offsets, values, checks) of some columns, behind each other."""
        offsets = self.array("offsets")
        if len(columns) and columns[-1] - columns[0] == len(columns) - 1:
            a, b = offsets[columns[0]], offsets[columns[-1] + 1]
            ends = offsets[columns[0] : columns[-1] + 2] - a
            return ends, self.array("values")[a:b], self.array("checks")[a:b]
        ends, at = entries_of(offsets, columns)
        return ends, self.array("values")[at], self.array("checks")[at]


def entries_of(offsets: I64, columns: NDArray[Any]) -> tuple[I64, I64]:
    """(offsets, positions) of the entries of some columns, when they stand behind each other.

    >>> [array.tolist() for array in entries_of(np.array([0, 2, 2, 5]), np.array([2, 0]))]
    [[0, 3, 5], [2, 3, 4, 0, 1]]
    """
    starts = offsets[columns]
    return run_positions(starts, offsets[columns + 1] - starts)


def run_positions(starts: I64, lengths: NDArray[Any]) -> tuple[I64, I64]:
    """(offsets, positions) of runs of entries, when they stand behind each other.

    >>> [array.tolist() for array in run_positions(np.array([7, 2]), np.array([2, 1]))]
    [[0, 2, 3], [7, 8, 2]]
    """
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return ends, np.arange(ends[-1]) + np.repeat(starts - ends[:-1], lengths)


# -- arrays ------------------------------------------------------------------------------------


def write_array(root: Root, folder: str, stem: str, array: NDArray[Any]) -> FileRef:
    """A whole array as a new file."""
    return join_arrays(root, folder, stem, array.shape, array.dtype, [array])


def join_arrays(
    root: Root,
    folder: str,
    stem: str,
    shape: tuple[int, ...],
    dtype: DTypeLike,
    pieces: Iterable[NDArray[Any]],
) -> FileRef:
    """An array of some pieces behind each other as a new file. One piece at a time is asked for."""
    dtype = np.dtype(dtype)
    described = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    length = 0
    with new_file(root, unique_name(folder, stem, ".npy")) as file:
        np.lib.format.write_array_header_1_0(file, described)
        for piece in pieces:
            if piece.dtype != dtype or piece.shape[1:] != shape[1:]:
                raise AssertionError(f"{piece.dtype}{piece.shape} is no piece of {dtype}{shape}")
            if piece.size:
                file.write(np.ascontiguousarray(piece))
            length += len(piece)
        if length != shape[0]:
            raise AssertionError(f"{length:,} items of {shape[0]:,} in {file.name!r}")
    return file.ref


def open_array(root: Root, ref: FileRef) -> NDArray[Any]:
    """The array of a file as a read-only memory map; it is hashed once in a process, or has its stamp."""
    try:
        # A plain array over the map: a memmap is slow to slice.
        array = np.asarray(opened(root, ref, _loaded, by_stamp=True))
        if not 0 <= ref.length - array.nbytes < _HEADER_BYTES:
            raise ValueError(f"it holds {array.nbytes:,} bytes of items")
        return array
    except (OSError, ValueError, SyntaxError, tokenize.TokenError) as error:  # NumPy's parser of the header
        raise DamagedFileError(
            f"the file {ref.name!r} of the workspace {str(root)!r} is no array: {error}. {_REPAIR}"
        ) from error


def _loaded(path: Path) -> NDArray[Any]:
    # NumPy parses the header with `ast.literal_eval`, which threads of CPython 3.11 must not run at once.
    with _HEADERS, open(path, "rb") as file:
        np.lib.format.read_magic(file)
        shape, _, _ = np.lib.format.read_array_header_1_0(file)
        # An empty array cannot be mapped.
        array: NDArray[Any] = np.load(path, mmap_mode="r" if np.prod(shape) else None, allow_pickle=False)
    return array


# -- Parquet -----------------------------------------------------------------------------------


def read_parquet(
    root: Root, refs: Sequence[FileRef], schema: pa.Schema, columns: Sequence[str] | None = None
) -> pa.Table:
    """The rows of some files, in their order; perhaps only some columns."""
    wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns])
    tables = [wanted.empty_table()]
    for ref in refs:
        with _opened_parquet(root, ref) as file:
            tables.append(file.read(columns=wanted.names).select(wanted.names).cast(wanted))
    return pa.concat_tables(tables)


def parquet_batches(
    root: Root, refs: Sequence[FileRef], columns: Sequence[str], rows: int = 1 << 20
) -> Iterator[pa.RecordBatch]:
    """The rows of some files piece by piece."""
    for ref in refs:
        with _opened_parquet(root, ref) as file:
            yield from file.iter_batches(batch_size=rows, columns=list(columns))


@contextmanager
def _opened_parquet(root: Root, ref: FileRef) -> Iterator[Any]:
    try:
        with opened(root, ref, pq.ParquetFile, by_stamp=True) as file:
            yield file
    except (pa.ArrowException, OSError, KeyError) as error:
        raise DamagedFileError(
            f"the file {ref.name!r} of the workspace {str(root)!r} is damaged: {error}. {_REPAIR}"
        ) from error
