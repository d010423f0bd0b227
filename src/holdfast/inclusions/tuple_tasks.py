"""The tasks of composite inclusions: which tuples of some rows are in no row of another table.

- `check_tuples`: rows of one segment of the dependent table, against all segments of the referenced one; or
  rows that were deleted from one segment of the referenced table, and which live rows miss them now.
- `check_known`: rows that missed their tuple before, one for each inclusion, against rows that were added.
- `orphan_tuples`: all rows of one segment whose tuple is missing, not only a few that show it.

Tuples are compared exactly and without hashing them: each value is translated into the local codes of the
segment that it is looked for in, once per dictionary; then codes are compared. A list of rows is walked only
for the column with most values; columns of few values are looked up in a table of all their tuples.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.rows.kernels import encode
from holdfast.core.rows.segments import Segment, open_segment
from holdfast.core.rows.table_state import SegmentRef
from holdfast.core.rows.tasks import Payload, parsed_schema, staged
from holdfast.core.store.bundle import pack
from holdfast.core.store.root import Root, root_of
from holdfast.core.words.schema import Schema
from holdfast.inclusions.identity import codes_of, identities
from holdfast.inclusions.kernels import tuple_lookup
from holdfast.inclusions.kernels.tuple_lookup import OPEN

U64 = NDArray[np.uint64]
U32 = NDArray[np.uint32]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Columns = Sequence[int]

# Most inclusions that do not hold are refuted by a handful of rows, almost all others by a few hundred.
SAMPLES = (16, 512)
# Rows that are looked at together; what they refute is not looked for in the rest.
CHUNK_ROWS = 1 << 18
# Tuples for which a pass over a column is cheaper than postings of it, and from what size of segment on.
FEW, LARGE_SEGMENT = 64, 1 << 16
# Lists longer than this are not walked for the same tuple twice.
LONG_LIST = 8
# Tables of all tuples have at most this many cells a row, so that making one costs a pass over the rows.
CELLS_PER_ROW = 8
# Translated values that a task keeps: 256 MB.
MAX_KEPT = 1 << 26
# Missing tuples that are looked at to name a few different ones.
LOOK_AT = 64


@dataclass(frozen=True, slots=True)
class Opened:
    """An open segment, and how its table's values compare."""

    segment: Segment
    as_text: bool

    @property
    def name(self) -> str:
        return self.segment.ref.file.name


# -- values of one segment in the codes of another ---------------------------------------------


@lru_cache(maxsize=16)
def _sorted_identities(root: Root, ref: SegmentRef, schema: Schema, c: int, as_text: bool) -> Any:
    segment = open_segment(root, ref, schema)
    keys, checks = identities(segment.dictionary(c), segment.texts(c), schema.types[c], as_text, segment.key)
    order = np.lexsort((checks, keys))
    return keys[order], checks[order], order


def _bare(ref: SegmentRef) -> SegmentRef:
    """The segment as it was written: what depends on its rows alone is kept across batches."""
    return replace(ref, deletes=None, n_deleted=0, indexes=())


def local_codes(there: Opened, c: int, keys: U64, checks: U32) -> I32:
    """The local code of each identity in a segment's column, -1 where it has none.

    Cost: a binary search each; once per segment a sort of the dictionary where codes do not tell.
    """
    segment, as_text = there.segment, there.as_text
    dictionary, type_ = segment.dictionary(c), segment.schema.types[c]
    if not len(dictionary) or not len(keys):
        return np.full(len(keys), -1, dtype=np.int32)
    coded = codes_of(keys, checks, type_, as_text)
    if coded is None:
        sorted_keys, sorted_checks, order = _sorted_identities(
            segment.root, _bare(segment.ref), segment.schema, c, as_text
        )
        at = tuple_lookup.look_up(sorted_keys, sorted_checks, keys, checks)
        return np.where(at >= 0, order[at] + 1, -1).astype(np.int32)
    codes, possible = coded
    at = np.searchsorted(dictionary, codes)
    at[at == len(dictionary)] = 0
    hit = possible & (dictionary[at] == codes)
    texts = segment.texts(c)
    if texts is not None and hit.any():
        some = texts.take(pa.array(at[hit]))
        _, checks_there = identities(dictionary[at[hit]], some, type_, as_text, segment.key)
        hit[hit] = checks_there == checks[hit]
    return np.where(hit, at + 1, -1).astype(np.int32)


class Rows:
    """Some rows of a segment, whose values can be had in the codes of other segments."""

    def __init__(self, here: Opened, positions: I64 | None) -> None:
        self.here, self.positions = here, positions
        self._used: dict[int, tuple[I64 | None, I32 | None]] = {}
        self._identities: dict[int, tuple[U64, U32]] = {}
        self._tables: OrderedDict[tuple[int, str, int], I32] = OrderedDict()
        self._n_cached = 0

    def __len__(self) -> int:
        return self.here.segment.ref.n_rows if self.positions is None else len(self.positions)

    def at(self, part: slice | I64) -> I64:
        """The positions of some of the rows."""
        if self.positions is not None:
            return self.positions[part]
        return np.arange(part.start, part.stop) if isinstance(part, slice) else part

    def codes(self, columns: Columns, part: slice | I64) -> I32:
        """Their own codes."""
        at: slice | I64 = part if self.positions is None else self.positions[part]
        return np.stack([self.here.segment.codes[c][at] for c in columns])

    def _values(self, c: int) -> tuple[I64 | None, I32 | None]:
        """(values used, which of them each row has); None where most of the dictionary is used."""
        if c not in self._used:
            if self.positions is None or 4 * len(self) > len(self.here.segment.dictionary(c)):
                self._used[c] = None, None
            else:
                used, which = np.unique(self.here.segment.codes[c][self.positions], return_inverse=True)
                self._used[c] = used, which.astype(np.int32)
        return self._used[c]

    def _of_values(self, c: int, used: I64 | None) -> tuple[U64, U32]:
        if c not in self._identities:
            segment = self.here.segment
            dictionary, texts = segment.dictionary(c), segment.texts(c)
            if used is not None:
                used = used[used > 0] - 1
                dictionary = dictionary[used]
                texts = None if texts is None else texts.take(pa.array(used))
            type_ = segment.schema.types[c]
            self._identities[c] = identities(dictionary, texts, type_, self.here.as_text, segment.key)
        return self._identities[c]

    def _table(self, c: int, there: Opened, d: int) -> I32:
        """For each value used its local code in column d of another segment; 0 for NULL."""
        cached = self._tables.get((c, there.name, d))
        if cached is not None:
            return cached
        used, _ = self._values(c)
        segment, target = self.here.segment, there.segment
        table: NDArray[Any]
        if there.name == self.here.name and c == d:
            table = np.arange(len(segment.dictionary(c)) + 1) if used is None else used
        else:
            exact = segment.schema.types[c] == target.schema.types[d] and not segment.schema.types[c].hashed
            if exact and self.here.as_text == there.as_text:
                # Codes of one exact type mean the same everywhere.
                wanted = segment.dictionary(c) if used is None else segment.dictionary(c)[used[used > 0] - 1]
                table = encode.translate(target.dictionary(d), wanted)
            else:
                codes = local_codes(there, d, *self._of_values(c, used))
                table = np.concatenate([np.zeros(1, np.int32), codes])
            if used is not None and (not len(used) or used[0] > 0):
                table = table[1:]
        out: I32 = table.astype(np.int32, copy=False)
        self._n_cached += len(out)
        while self._n_cached > MAX_KEPT and self._tables:
            self._n_cached -= len(self._tables.popitem(last=False)[1])
        self._tables[c, there.name, d] = out
        return out

    def wanted(self, columns: Columns, there: Opened, partners: Columns, part: slice | I64) -> I32:
        """Tuples of some of the rows in the codes of another segment: int32[k, m]."""
        out = []
        for c, d in zip(columns, partners, strict=True):
            table = self._table(c, there, d)
            _, which = self._values(c)
            if which is not None:
                out.append(table[which[part]])
            else:
                at: slice | I64 = part if self.positions is None else self.positions[part]
                out.append(table[self.here.segment.codes[c][at]])
        return np.stack(out)


# -- looking for tuples ------------------------------------------------------------------------


@lru_cache(maxsize=32)
def _postings(root: Root, ref: SegmentRef, schema: Schema, c: int) -> tuple[I32, I32]:
    segment = open_segment(root, ref, schema)
    return encode.postings(segment.codes[c], len(segment.dictionary(c)))


def _lists(segment: Segment, c: int, wanted: I32) -> tuple[I32, I32]:
    """Postings of a column, at least those of the wanted values."""
    if c in segment.ref.indexed:
        return segment.index(c)
    if len(wanted) > FEW or segment.ref.n_rows < LARGE_SEGMENT:
        return _postings(segment.root, _bare(segment.ref), segment.schema, c)
    n_values = len(segment.dictionary(c))
    hit = np.zeros(n_values + 1, dtype=np.bool_)
    hit[wanted[wanted > 0]] = True
    rows = np.flatnonzero(hit[segment.codes[c]])
    codes = segment.codes[c][rows]
    offsets = np.zeros(n_values + 2, dtype=np.int32)
    np.cumsum(np.bincount(codes, minlength=n_values + 1), out=offsets[1:])
    return offsets, rows[np.argsort(codes, kind="stable")].astype(np.int32)


class Finder:
    """Looks for tuples in some columns of one segment."""

    def __init__(self, there: Opened, columns: Columns, n_expected: int, *, rows_wanted: bool) -> None:
        """`n_expected` tuples, about; `rows_wanted`: which rows have them."""
        segment = there.segment
        sizes = [len(segment.dictionary(c)) for c in columns]
        # The column with most values first: it has the shortest lists, and rejects most of their rows.
        self.order = sorted(range(len(columns)), key=lambda i: (-sizes[i], i))
        self.there, self.columns = there, [columns[i] for i in self.order]
        self._at = np.array(self.columns, dtype=np.int32)
        self._marks, self._sizes = None, np.array([sizes[i] for i in self.order], dtype=np.int64)
        self.list_length = segment.ref.n_rows / max(1, max(sizes))
        n_cells = float(np.prod(self._sizes.astype(np.float64)))
        affordable = 0 < n_cells <= CELLS_PER_ROW * segment.ref.n_rows
        if not rows_wanted and affordable and n_expected * self.list_length > 4 * segment.ref.n_rows:
            self._marks = tuple_lookup.mark(segment.codes, self._at, self._sizes, segment.live)

    @property
    def walks(self) -> bool:
        """Whether the same tuple, looked for twice, costs a long way twice."""
        return self._marks is None and self.list_length > LONG_LIST

    def find(self, rows: Rows, columns: Columns, part: slice | I64, row_of: I64, stop: int) -> int:
        """Look for the open tuples among some of the rows; see `kernels.tuple_lookup.find`."""
        wanted = rows.wanted([columns[i] for i in self.order], self.there, self.columns, part)
        if self._marks is not None:
            return tuple_lookup.find_marked(wanted, row_of, self._marks, self._sizes, stop)
        segment = self.there.segment
        offsets, positions = _lists(segment, self.columns[0], wanted[0])
        return tuple_lookup.find(
            wanted, row_of, segment.codes, self._at, segment.live, offsets, positions, stop=stop
        )


def missing(rows: Rows, columns: Columns, there: Sequence[Opened], partners: Columns, stop: int) -> I64:
    """Which of the rows have a tuple that no live row of the other segments has; the first `stop` of them.

    Positions among the rows. A row with a NULL misses nothing.
    """
    finders: list[Finder] = []
    for start in range(0, len(rows), CHUNK_ROWS):
        part = slice(start, min(len(rows), start + CHUNK_ROWS))
        n = part.stop - start
        look: slice | I64 = part
        if not finders:
            finders = [Finder(o, partners, len(rows), rows_wanted=False) for o in there]
        if n > LOOK_AT and any(f.walks for f in finders):
            distinct = start + tuple_lookup.distinct_tuples(rows.codes(columns, part))
            look, n = distinct, len(distinct)
        row_of, end = np.full(n, OPEN, dtype=np.int64), n
        for i, finder in enumerate(finders):
            if i and not (row_of == OPEN).any():
                break
            end = finder.find(rows, columns, look, row_of, stop if i == len(finders) - 1 else 0)
        gone = np.flatnonzero(row_of[:end] == OPEN)
        if len(gone):
            return gone + start if isinstance(look, slice) else look[gone]
    return np.empty(0, np.int64)


def all_missing(rows: Rows, columns: Columns, there: Sequence[Opened], partners: Columns) -> I64:
    """Which of the rows have a tuple that no live row of the other segments has: all positions, in order.

    Of a tuple with NULLs what is not NULL is looked for. Cost: a lookup of each tuple of a chunk of rows.
    """
    finders: dict[tuple[int, ...], list[Finder]] = {}  # by which columns are not NULL
    gone = [np.empty(0, np.int64)]
    for start in range(0, len(rows), CHUNK_ROWS):
        part = slice(start, min(len(rows), start + CHUNK_ROWS))
        codes = rows.codes(columns, part)
        first, numbers = tuple_lookup.numbered_tuples(codes)
        filled, which = np.unique(codes[:, first] > 0, axis=1, return_inverse=True)
        is_missing = np.zeros(len(first), dtype=np.bool_)
        for n, pattern in enumerate(filled.T):
            there_too = tuple(np.flatnonzero(pattern).tolist())
            if not there_too:
                continue
            asked, of = ([side[i] for i in there_too] for side in (columns, partners))
            if there_too not in finders:
                finders[there_too] = [Finder(o, of, len(rows), rows_wanted=False) for o in there]
            at = np.flatnonzero(which.reshape(-1) == n)
            row_of = np.full(len(at), OPEN, dtype=np.int64)
            for finder in finders[there_too]:
                if not (row_of == OPEN).any():
                    break
                finder.find(rows, asked, start + first[at], row_of, 0)
            is_missing[at] = row_of == OPEN
        gone.append(start + np.flatnonzero(is_missing[numbers]))
    return np.concatenate(gone)


def _spread(positions: I64 | None, n_rows: int) -> I64:
    """A sample from all over the rows; so is its beginning."""
    n = min(SAMPLES[-1], n_rows)
    at = np.linspace(0, n_rows - 1, n).astype(np.int64)
    some = np.linspace(0, n - 1, min(SAMPLES[0], n)).astype(np.int64)
    at = np.concatenate([at[some], np.delete(at, some)])
    return at if positions is None else positions[at]


# -- the task ----------------------------------------------------------------------------------


def _opened(payload: Payload, what: str) -> list[Opened]:
    """The segments of a side, the largest first: it is likely to have most tuples."""
    side, schema = payload[what], parsed_schema(payload[what]["schema"])
    refs = sorted(map(SegmentRef.from_dict, side["segments"]), key=lambda s: -s.n_live)
    root = root_of(payload["root"])
    return [Opened(open_segment(root, ref, schema), side["as_text"]) for ref in refs]


def check_tuples(payload: Payload) -> bytes:
    """(node, row id): up to `wanted` rows of the dependent table that refute each node, none where it holds.

    A node is (columns of the dependent side, columns of the referenced side, wanted).
    """
    nodes = payload["nodes"]
    run = _lost if payload["lost"] else _refuted
    row_ids = run(payload, nodes)
    node = np.repeat(np.arange(len(nodes)), [len(ids) for ids in row_ids])
    return pack({"node": node, "row_id": np.concatenate([np.empty(0, np.int64), *row_ids])}, {})


def _refuted(payload: Payload, nodes: Sequence[Any]) -> list[I64]:
    """Rows of one segment of the dependent table whose tuples the referenced one does not have."""
    [here] = _opened(payload, "dependent")
    there = _opened(payload, "referenced")
    segment = here.segment
    positions = np.flatnonzero(segment.live) if segment.ref.n_deleted else None
    rows = Rows(here, positions)
    blocks = [rows]
    if len(rows) > 4 * SAMPLES[-1]:
        sample = _spread(positions, len(rows))
        blocks = [Rows(here, sample[: SAMPLES[0]]), Rows(here, sample), rows]
    out = []
    for columns, partners, wanted in nodes:
        ids = np.empty(0, np.int64)
        for block in blocks:
            gone = missing(block, columns, there, partners, 1 if wanted == 1 else LOOK_AT)
            if len(gone):
                gone = gone[np.sort(tuple_lookup.distinct_tuples(block.codes(columns, gone)))[:wanted]]
                ids = segment.row_ids(block.at(gone))
                break
        out.append(ids)
    return out


def _lost(payload: Payload, nodes: Sequence[Any]) -> list[I64]:
    """Live rows of the dependent table that carry a tuple of rows deleted from the referenced one.

    One segment's deleted rows: tuples that another live row has are not lost, and of the lost ones only
    those count that the dependent table has. Cost: a lookup a deleted row, and for each lost tuple one in
    the dependent table: a pass over one of its columns for a few, else postings of it.
    """
    [gone] = _opened(payload, "gone")
    rows = Rows(gone, staged(payload, "positions").array("positions"))
    referenced, dependents = _opened(payload, "referenced"), _opened(payload, "dependent")
    out = []
    for columns, partners, wanted in nodes:
        look = tuple_lookup.distinct_tuples(rows.codes(partners, slice(0, len(rows))))
        row_of = np.full(len(look), OPEN, dtype=np.int64)
        for there in referenced:
            if (row_of == OPEN).any():
                Finder(there, partners, len(look), rows_wanted=False).find(rows, partners, look, row_of, 0)
        look = look[row_of == OPEN]
        ids: list[int] = []
        for here in dependents:
            if not len(look) or len(ids) >= wanted:
                break
            row_of = np.full(len(look), OPEN, dtype=np.int64)
            Finder(here, columns, len(look), rows_wanted=True).find(rows, partners, look, row_of, 0)
            ids += here.segment.row_ids(row_of[row_of >= 0]).tolist()
            # Other segments may tell of other tuples.
            look = look[row_of == OPEN]
        out.append(np.array(ids[:wanted], dtype=np.int64))
    return out


def orphan_tuples(payload: Payload) -> bytes:
    """The first so many rows of a segment whose tuple the referenced table lacks, and how many there are.

    `keys` and `checks` [k, m] are the identities of all missing tuples, `tuple` says which one each row has.
    """
    [here] = _opened(payload, "dependent")
    columns, segment = payload["columns"], here.segment
    rows = Rows(here, np.flatnonzero(segment.live) if segment.ref.n_deleted else None)
    at = all_missing(rows, columns, _opened(payload, "referenced"), payload["partners"])
    codes = rows.codes(columns, at)
    first, numbers = tuple_lookup.numbered_tuples(codes)
    keys = np.empty((len(columns), len(first)), np.uint64)
    checks = np.empty((len(columns), len(first)), np.uint32)
    for i, c in enumerate(columns):
        used, which = np.unique(codes[i, first], return_inverse=True)
        values = used[used > 0] - 1
        texts = segment.texts(c)
        texts = None if texts is None else texts.take(pa.array(values))
        of_values = identities(
            segment.dictionary(c)[values], texts, segment.schema.types[c], here.as_text, segment.key
        )
        n_nulls = len(used) - len(values)  # NULL is 0
        keys[i], checks[i] = (np.pad(identity, (n_nulls, 0))[which] for identity in of_values)
    listed = slice(0, payload["limit"])  # positions ascend as ids do
    row_ids = segment.row_ids(rows.at(at[listed]))
    tuples = {"keys": keys.reshape(-1), "checks": checks.reshape(-1)}
    return pack({"row_ids": row_ids, "tuple": numbers[listed], **tuples, "n_rows": np.array([len(at)])}, {})


def check_known(payload: Payload) -> bytes:
    """Whether rows are still live, and miss their tuples in segments that are new: one for each inclusion."""
    ids, nodes = np.array(payload["row_ids"], dtype=np.int64), payload["nodes"]
    missing_now, added = np.zeros(len(ids), dtype=np.bool_), _opened(payload, "referenced")
    for here in _opened(payload, "dependent"):
        at = here.segment.positions(ids)
        numbers = np.flatnonzero(at >= 0)
        numbers = numbers[here.segment.live[at[numbers]]]
        if not len(numbers):
            continue
        missing_now[numbers] = True
        rows = Rows(here, at[numbers].astype(np.int64))
        for there in added:
            # A few pairs of columns are in many inclusions.
            pairs = {pair for n in numbers.tolist() for pair in zip(*nodes[n], strict=True)}
            everywhere = slice(0, len(numbers))
            codes = {(c, d): rows.wanted((c,), there, (d,), everywhere)[0].tolist() for c, d in pairs}
            for i, n in enumerate(numbers.tolist()):
                if all(codes[pair][i] > 0 for pair in zip(*nodes[n], strict=True)):
                    missing_now[n] &= not _has(rows, i, nodes[n], there)
    return pack({"missing": missing_now.astype(np.uint8)}, {})


def _has(rows: Rows, i: int, node: tuple[list[int], list[int]], there: Opened) -> bool:
    """Whether a segment, which has each value of the tuple of one row, has the tuple."""
    columns, partners = node
    row_of = np.full(1, OPEN, dtype=np.int64)
    Finder(there, partners, 1, rows_wanted=True).find(rows, columns, np.array([i]), row_of, 0)
    return bool(row_of[0] >= 0)
