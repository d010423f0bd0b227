"""Planning CSV files: their columns, how these are spelt, their guessed types, their splits."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Mapping, Sequence

import pyarrow as pa

from holdfast.core.sources import columnar, csv_files
from holdfast.core.sources.beginnings import heads
from holdfast.core.sources.csv_comments import HEADER_NOTE, SEP_NOTE, START, said_delimiter
from holdfast.core.sources.csv_delimiter import (
    USUAL,
    UnclearDelimiterError,
    delimiter_note,
    delimiter_of,
    others_in,
    says_more,
    two_cuts,
)
from holdfast.core.sources.csv_walk import Walk
from holdfast.core.sources.encodings import BOM, is_utf8, without_mark
from holdfast.core.sources.odd_values import odd_dates, odd_note, odd_texts
from holdfast.core.sources.packed import packing_of, unpacked
from holdfast.core.sources.raw_files import looked, opened_raw, raw_bytes
from holdfast.core.sources.read_options import Kind, ReadOptions, Source, Split
from holdfast.core.sources.respelling import (
    QUOTED_EMPTY,
    UNTOLD,
    WORDS,
    WORDS_BESIDE_NAN,
    form_of,
    respelt,
    survivors,
    without_words,
    words_note,
)
from holdfast.core.sources.type_rule import TEXT, spelling_of
from holdfast.core.words.schema import Type
from holdfast.errors import NOTHING_APPLIED, HoldfastError, SchemaError, SourceError, listing, shorten

SAMPLE_ROWS = 2_000
# A column that is NULL all through the sample is looked at again at the start of this many other splits.
MORE_SAMPLES = 15


def same_columns(columns: Sequence[str], names: tuple[str, ...], path: str, first: str, table: str) -> None:
    if different := columnar.difference(columns, names):
        raise SchemaError(
            f"the files for table {table!r} differ: {shorten(os.path.basename(path))} {different}, compared "
            f"with {shorten(os.path.basename(first))}. {NOTHING_APPLIED} Next step: give all files the "
            "same columns."
        )


def plan_csv(
    files: Mapping[str, int],
    description: str,
    kind: Kind,
    options: ReadOptions,
    table: str,
    split_bytes: int,
    *,
    walk: Walk,
    batch: bool,
) -> Source:
    """The plan of CSV files, given with their bytes.

    How a `batch` spells its values is what its table says, and the options.
    """
    names: tuple[str, ...] = ()
    splits: list[Split] = []
    samples: list[pa.Table] = []
    notes: dict[str, None] = {}
    trailing: tuple[str, ...] = ()
    n_rows = max(SAMPLE_ROWS // min(len(files), 10), 1)
    first, *others = files
    begun, chosen = _first_header(first, files[first], options, table, batch=batch)
    if chosen is not options:
        notes[delimiter_note(chosen.delimiter or "")] = None
        options = chosen
    ends_of = dict(zip(files, csv_files.cuts(files, options, split_bytes, walk, table=table), strict=True))

    def splits_of(path: str) -> list[Split]:
        pairs = itertools.pairwise(ends_of[path])
        return [Split("csv", path, low, high, high - low, low == 0) for low, high in pairs]

    headers = looked(lambda path: csv_files.header_of(splits_of(path)[0], options, table=table), others)
    for path, header in zip(files, itertools.chain([begun], headers), strict=True):
        names, trailing = names or header.names, trailing or header.trailing
        notes |= dict.fromkeys(n for n in header.notes if not batch or n not in (HEADER_NOTE, SEP_NOTE))
        same_columns(header.names, names, path, first, table)
        if len(samples) < 10:
            # Of the file, not of its first split: how a column is spelt must not depend on the cuts.
            whole = Split("csv", path, 0, files[path], files[path])
            rows = csv_files.first_rows(whole, options, n_rows, table=table)
            samples.append(rows.select(list(names)))
        splits += splits_of(path)
    blank = [name for name in names if name != name.strip()]
    if blank and not batch and not options.names:
        shown = listing([shorten(name) for name in blank])
        notes[f"{shown}: the blanks are part of the name (--names gives others)"] = None
    sample = pa.concat_tables(samples)
    undecided = [n for n in names if sample[n].null_count == len(sample)]
    later = [s for s in splits if s.path != first or not s.first]
    if undecided and later:
        for split in later[:: max(len(later) // MORE_SAMPLES, 1)][:MORE_SAMPLES]:
            rows = csv_files.first_rows(split, options, n_rows, table=table)
            samples.append(rows.select(list(names)))
        sample = pa.concat_tables(samples)
    left_out = tuple(n for n in trailing if sample[n].null_count == len(sample))
    for name in trailing:
        what = "is empty and left out" if name in left_out else "has no name in the file"
        notes[f"{name}, at the end, {what} (--names gives one)"] = None
    names = tuple(n for n in names if n not in left_out)
    options = dataclasses.replace(options, left_out=left_out)
    source = Source(description, splits, names, (), options, sum(split.n_bytes for split in splits))
    _settle(source, sample, batch=batch)
    source.notes = (*notes, *source.notes)
    return source


def _first_header(
    path: str, size: int, options: ReadOptions, table: str, *, batch: bool
) -> tuple[csv_files.Text, ReadOptions]:
    """(a file's header, the options), with a delimiter where the header cannot be cut without: see
    `csv_delimiter`. That of a `batch` is held to the columns of its table, so it may look like two cuts.
    """
    whole = Split("csv", path, 0, size, size)
    if options.delimiter is None and (said := said_delimiter(_start(path, size, options, table))) is not None:
        options = dataclasses.replace(options, delimiter=said)
    delimiter = delimiter_of(path, options)
    others = {d: dataclasses.replace(options, delimiter=d) for d in USUAL if d != delimiter}
    try:
        header = csv_files.header_of(whole, options, table=table)
    except UnclearDelimiterError as unclear:
        fits = [d for d, o in others.items() if _n_alike(whole, o, table) > 1]
        if len(fits) != 1:
            raise SourceError(str(unclear)) from None
        return csv_files.header_of(whole, others[fits[0]], table=table), others[fits[0]]
    asked = options.delimiter is not None or delimiter != USUAL[0] or batch
    named = {d for name in header.names for d in others_in(name, delimiter)} if options.header else others
    there = () if asked else named
    cuts = {d: n for d in there if (n := _n_alike(whole, others[d], table)) > 1}
    if not cuts:
        return header, options
    n = _n_alike(whole, options, table)
    if not n and len(cuts) == 1:
        chosen = others[next(iter(cuts))]
        return csv_files.header_of(whole, chosen, table=table), chosen
    if n and not says_more(header.names, cuts, options.quote):
        raise SourceError(two_cuts({delimiter: n, **cuts}, csv_files.file_name(whole), table=table))
    return header, options


def _start(path: str, size: int, options: ReadOptions, table: str) -> bytes:
    """The first bytes of a file as UTF-8, without a byte order mark."""
    most = 4 * START  # a letter has four bytes at most
    if packing := packing_of(path):
        with opened_raw(path, size) as file, unpacked(file, packing, os.path.basename(path), table) as text:
            start = text.read(most)
    else:
        start = raw_bytes(path, 0, min(most, size), table).to_pybytes()
    if not is_utf8(options):
        return without_mark(start.decode(options.encoding, "replace"), options.encoding).encode()
    return start.removeprefix(BOM)


def _n_alike(whole: Split, options: ReadOptions, table: str) -> int:
    """Into how many fields a delimiter cuts the first rows of a file; 0 if not into as many in each."""
    head = next(heads(whole, options))
    try:
        rows = csv_files.read_sample(
            csv_files.open_text(head, options, table=table), options, SAMPLE_ROWS, table=table
        )
    except HoldfastError:
        return 0
    return len(rows.column_names)


def _settle(source: Source, sample: pa.Table, *, batch: bool) -> None:
    """Complete a plan by the forms, spellings and types of its columns, and what is to be said of them."""
    options, declared = source.options, source.options.declared
    if options.null_values is None:
        words = WORDS if options.nan_is_null or not batch else WORDS_BESIDE_NAN
        options = dataclasses.replace(options, typed_nulls=words)
    forms, spellings, types = dict(options.forms), {}, []
    untold: dict[str, list[str]] = {}
    worded: dict[tuple[str, ...], list[str]] = {}
    odd: dict[tuple[tuple[str, ...], tuple[str, ...], Type], list[str]] = {}
    for name in source.names:
        bare, seen = without_words(sample[name], options.typed_nulls)
        seen = [word for word in seen if word != QUOTED_EMPTY]  # among texts it is one, and nobody wonders
        form, unclear, t = forms.get(name), None, declared.get(name)
        spelling = spelling_of(respelt(bare, form))
        if t is None:
            t = _guess(bare, spelling, form)
        asked = options.thousands or options.decimal == ","  # the first values may be spelt in either way
        if form is None and (t == TEXT or name in declared or asked):
            form, unclear = form_of(bare, options, declared.get(name), recognise=not batch)
            if form is not None:
                forms[name] = form
                spelling = spelling_of(respelt(bare, form))
                t = declared.get(name) or _guess(bare, spelling, form)
        if spelling is not None:
            spellings[name] = spelling
        types.append(t)
        if t != TEXT:
            continue
        of_first = not batch and name not in declared
        strange: Sequence[str] = ()
        if of_first and unclear in (None, UNTOLD["times"]):
            strange = odd_dates(bare, options) or (odd_texts(bare) if unclear is None else ())
        type_else = _type_without(bare, strange, options) if strange else TEXT
        if type_else != TEXT:
            odd.setdefault((tuple(strange), tuple(seen), type_else), []).append(name)
        elif unclear is not None:
            untold.setdefault(unclear, []).append(name)
        elif seen and of_first:
            worded.setdefault(tuple(seen), []).append(name)
    notes = [f"{listing(names)}: {what.format(shorten(names[0])[1:-1])}" for what, names in untold.items()]
    notes += [odd_note(names, *key) for key, names in odd.items()]
    source.notes = (*notes, *(words_note(names, words) for words, names in worded.items()))
    source.options = dataclasses.replace(options, spellings=spellings, forms=forms)
    source.types = tuple(types)


def _guess(bare: pa.ChunkedArray, spelling: str | None, form: str | None) -> Type:
    """The type of a column by its sample without the words for NULL."""
    if bare.null_count == len(bare):  # nothing, or nothing but words: these are what it holds
        return TEXT
    return next(survivors(bare, spelling, form, ()))


def _type_without(bare: pa.ChunkedArray, odd: Sequence[str], options: ReadOptions) -> Type:
    """The type of a column by its sample without some texts."""
    rest, _ = without_words(bare, odd)
    t = _guess(rest, spelling_of(rest), None)
    form, _ = form_of(rest, options, None, recognise=True) if t == TEXT else (None, None)
    return t if form is None else _guess(rest, spelling_of(respelt(rest, form)), form)
