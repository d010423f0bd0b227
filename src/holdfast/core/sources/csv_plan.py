"""Planning CSV files: their columns, how these are spelt, their guessed types, their splits."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Mapping, Sequence

import pyarrow as pa

from holdfast.core.sources import columnar, csv_files
from holdfast.core.sources.beginnings import heads
from holdfast.core.sources.csv_delimiter import (
    USUAL,
    UnclearDelimiterError,
    delimiter_note,
    delimiter_of,
)
from holdfast.core.sources.csv_walk import Walk
from holdfast.core.sources.raw_files import looked
from holdfast.core.sources.read_options import Kind, ReadOptions, Source, Split
from holdfast.core.sources.respelling import (
    WORDS,
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
    begun, chosen = _first_header(first, files[first], options, table)
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
        notes |= dict.fromkeys(header.notes)
        same_columns(header.names, names, path, first, table)
        if len(samples) < 10:
            # Of the file, not of its first split: how a column is spelt must not depend on the cuts.
            whole = Split("csv", path, 0, files[path], files[path])
            rows = csv_files.first_rows(whole, options, n_rows, table=table)
            samples.append(rows.select(list(names)))
        splits += splits_of(path)
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
    path: str, size: int, options: ReadOptions, table: str
) -> tuple[csv_files.Text, ReadOptions]:
    """(a file's header, the options), with a delimiter where the header cannot be cut without: see
    `csv_delimiter`."""
    whole = Split("csv", path, 0, size, size)
    try:
        return csv_files.header_of(whole, options, table=table), options
    except UnclearDelimiterError as unclear:
        others = [d for d in USUAL if d != delimiter_of(path, options)]
        fits = [
            o for d in others if _cuts_alike(whole, o := dataclasses.replace(options, delimiter=d), table)
        ]
        if len(fits) != 1:
            raise SourceError(str(unclear)) from None
        return csv_files.header_of(whole, fits[0], table=table), fits[0]


def _cuts_alike(whole: Split, options: ReadOptions, table: str) -> bool:
    """Whether a delimiter cuts the first rows of a file into several fields, as many in each."""
    head = next(heads(whole, options))
    try:
        rows = csv_files.read_sample(
            csv_files.open_text(head, options, table=table), options, SAMPLE_ROWS, table=table
        )
    except HoldfastError:
        return False
    return len(rows.column_names) > 1


def _settle(source: Source, sample: pa.Table, *, batch: bool) -> None:
    """Complete a plan by the forms, spellings and types of its columns, and what is to be said of them."""
    options, declared = source.options, source.options.declared
    if options.null_values is None:
        options = dataclasses.replace(options, typed_nulls=WORDS)
    forms, spellings, types = dict(options.forms), {}, []
    untold: dict[str, list[str]] = {}
    worded: dict[tuple[str, ...], list[str]] = {}
    for name in source.names:
        bare, seen = without_words(sample[name], options.typed_nulls)
        form, unclear, t = forms.get(name), None, declared.get(name)
        spelling = spelling_of(respelt(bare, form))
        if t is None:
            t = _guess(sample[name], bare, spelling, form)
        asked = options.thousands or options.decimal == ","  # the first values may be spelt in either way
        if form is None and (t == TEXT or name in declared or asked):
            form, unclear = form_of(bare, options, declared.get(name), recognise=not batch)
            if form is not None:
                forms[name] = form
                spelling = spelling_of(respelt(bare, form))
                t = declared.get(name) or _guess(sample[name], bare, spelling, form)
        if unclear is not None and t == TEXT:
            untold.setdefault(unclear, []).append(name)
        if spelling is not None:
            spellings[name] = spelling
        types.append(t)
        if t == TEXT and seen and not batch and name not in declared:
            worded.setdefault(tuple(seen), []).append(name)
    notes = [f"{listing(names)}: {what.format(shorten(names[0])[1:-1])}" for what, names in untold.items()]
    source.notes = (*notes, *(words_note(names, words) for words, names in worded.items()))
    source.options = dataclasses.replace(options, spellings=spellings, forms=forms)
    source.types = tuple(types)


def _guess(sample: pa.ChunkedArray, bare: pa.ChunkedArray, spelling: str | None, form: str | None) -> Type:
    """The type of a column by its sample; `bare` is that without the words for NULL."""
    if sample.null_count == len(sample):
        return TEXT
    # Nothing but words: these are what it holds.
    return next(survivors(sample if bare.null_count == len(bare) else bare, spelling, form, ()))
