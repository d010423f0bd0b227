"""The benchmark's tax table: persons, where they live, what they earn and what they pay.

It has the structure of the tax table that papers on denial constraints use. These rules hold in every row,
whatever the seed, in the table and in its future:

    zip -> city -> state         area_code -> state           phone is a key
    of two persons in different states, the one with the higher zip has the higher area_code
    of two persons in one state, the one with the higher salary never has the lower rate
    state, marital_status -> single_exemp, married_exemp      state, has_child -> child_exemp
    who has a single_exemp has no married_exemp

All other constraints are accidents: rare combinations of values that no two rows happen to have. Inserts (the
table's future rows, same structure, other draws) break some of them, and deletes bring some into being.

States are drawn by population (two persons share one with 4 %), cities are Zipfian within a state (below
0.1 %), names are Zipfian, and a first name nearly always tells the gender.

As in `tables`, every cell is a function of seed, column and row number. Cost: about 1 us per row.

    python -m benchmarks.tax 20000      # how many evidences and constraints, by comparing all pairs
"""

# Word lists read better as one string than as fifty quoted words.
# ruff: noqa: SIM905

from __future__ import annotations

import functools
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.tables import DATA, GENERATION, SEED, BenchTable, Ints, Rows, money, pick, unit, whole, zipf

TAX_COLUMNS = (
    "fname lname gender area_code phone city state zip marital_status has_child salary rate single_exemp "
    "married_exemp child_exemp"
).split()

# By their inhabitants.
_STATES = tuple(
    (
        "CA TX FL NY PA IL OH GA NC MI NJ VA WA AZ TN MA IN MO MD WI CO MN SC AL LA KY OR OK CT UT IA NV AR "
        "KS MS NM ID NE WV HI NH ME MT RI DE SD ND AK DC VT WY"
    ).split()
)
_MILLIONS = np.array(
    (
        "39.0 30.5 22.6 19.6 13.0 12.5 11.8 11.0 10.8 10.0 9.3 8.7 7.8 7.4 7.1 7.0 6.9 6.2 6.2 5.9 5.9 5.7 "
        "5.4 5.1 4.6 4.5 4.2 4.1 3.6 3.4 3.2 3.2 3.1 2.9 2.9 2.1 2.0 2.0 1.8 1.4 1.4 1.4 1.1 1.1 1.0 0.9 "
        "0.8 0.7 0.7 0.6 0.6"
    ).split(),
    dtype=np.float64,
)
_UNTAXED = tuple(_STATES.index(state) for state in "TX FL WA TN NV NH SD AK WY".split())
_ONSETS, _VOWELS, _ENDS = "b d f g h k l m n p r s t v w".split(), "a e i o u".split(), " l n r s".split(" ")

N_CITIES, N_ZIPS, N_AREA_CODES = 2_400, 6_000, 300
N_FIRST, N_LAST = 600, 3_000
UNISEX_EVERY = 40  # one first name in so many is given to both
SALARY_STEP, MOST_SALARY = 500, 100_000
_PRIME = 7_999_993  # below the 8 M phone numbers from 2000000 on


@dataclass(frozen=True)
class _Country:
    """Where cities, zips and area codes lie, and what states tax; the same for each seed.

    All are numbered in the order of states, so zips and area codes ascend with them.

    city_state int64[N_CITIES]; city_steps float64[N_CITIES]: shares of persons, added up; zip_first
    int64[N_CITIES + 1]: each city's first zip; area_first int64[n_states + 1]: each state's first area code.
    """

    city_state: Ints
    city_steps: npt.NDArray[np.float64]
    zip_first: Ints
    area_first: Ints
    rate_base: Ints
    rate_step: Ints
    bracket: Ints
    single_exemp: Ints
    married_exemp: Ints
    child_exemp: Ints


def _shares(weights: npt.NDArray[np.floating[Any]], total: int) -> Ints:
    """`total` in whole parts, at least 1 each, about in proportion to the weights."""
    wanted = np.maximum(weights / weights.sum() * total, 1.0)
    edges = np.round(np.cumsum(wanted) / wanted.sum() * total).astype(np.int64)
    parts: Ints = np.maximum(np.diff(edges, prepend=0), 1)
    return parts


@functools.cache
def _country() -> _Country:
    people, at = _MILLIONS, np.arange(len(_STATES))
    n_cities = _shares(people, N_CITIES)
    city_state = np.repeat(at, n_cities)
    rank = np.arange(len(city_state)) - np.repeat(np.cumsum(n_cities) - n_cities, n_cities)
    weight = (rank + 3.0) ** -0.8
    weight *= (people / people.sum())[city_state] / np.bincount(city_state, weight)[city_state]
    n_areas = _shares(people, N_AREA_CODES)
    taxed = ~np.isin(at, _UNTAXED)
    single = whole(0, "single", at, 4, 40) * 50 * (unit(0, "has single", at) < 0.8)
    return _Country(
        city_state,
        np.cumsum(weight),
        np.cumsum(np.concatenate([[0], _shares(weight, N_ZIPS)])),
        np.cumsum(np.concatenate([[0], n_areas])),
        whole(0, "base", at, 2, 24) * 25 * taxed,
        whole(0, "step", at, 1, 6) * 15 * taxed,
        whole(0, "bracket", at, 3, 10) * 4 * SALARY_STEP,
        single * taxed,
        (single * 2 + 7 * (unit(0, "more", at) < 0.4)) * taxed,
        (whole(0, "child", at, 2, 60) * 25 + 3) * (unit(0, "has child", at) < 0.8) * taxed,
    )


@functools.cache
def _words(size: int, last: str) -> pa.Array:
    """`size` different words that can be spoken and end in `last`."""
    first = [f"{a}{b}{c}".strip() for a in _ONSETS for b in _VOWELS for c in _ENDS]
    second = [f"{a}{b}" for b in _VOWELS for a in _ONSETS]
    pairs = (f"{first[i * 7 % len(first)]}{second[i // len(first)]}{last}" for i in range(size))
    return pa.array([word.title() for word in pairs], pa.string())


def _phones(rows: Rows, seed: int) -> pa.Array:
    """A different seven-digit number for each row, in no order: a bijection of row numbers below a prime.

    As text: 0 to 9 and a dash.
    """
    factor, offset = (int(whole(seed, stream, np.zeros(1, np.int64), 10**6, 7 * 10**6)[0]) for stream in "ab")
    numbers = 2_000_000 + (rows * factor + offset) % _PRIME
    digits = pa.array(numbers).cast(pa.string())
    return pc.utf8_replace_slice(digits, start=3, stop=3, replacement="-")


def tax_rows(rows: Rows, seed: int, table_rows: int) -> pa.Table:
    """The given rows of a tax table; numbers past `table_rows` are its inserts, drawn like all others."""
    if len(rows) and rows.max() >= _PRIME:
        raise ValueError(f"row {rows.max():,}: there are phone numbers for {_PRIME:,} rows only")
    land = _country()
    city = np.searchsorted(land.city_steps, unit(seed, "city", rows) * land.city_steps[-1], side="right")
    city = np.minimum(city, N_CITIES - 1)
    state = land.city_state[city]

    def among(stream: str, first: Ints, of: Ints) -> Ints:
        """One of the numbers from first[of] up to first[of + 1]."""
        return first[of] + (unit(seed, stream, rows) * (first[of + 1] - first[of])).astype(np.int64)

    zip_number = among("zip", land.zip_first, city)
    area = among("area", land.area_first, state)
    first = zipf(seed, "first name", rows, N_FIRST, 0.8)
    unisex = (first % UNISEX_EVERY == UNISEX_EVERY - 1) & (unit(seed, "unisex", rows) < 0.5)
    married = unit(seed, "married", rows) < 0.55
    child = unit(seed, "child", rows) < np.where(married, 0.6, 0.2)
    earned = np.exp(0.75 * (unit(seed, "earned", rows) + unit(seed, "earned 2", rows) - 1) * 2) * 34_000
    salary = np.clip(earned // SALARY_STEP, 10, MOST_SALARY // SALARY_STEP).astype(np.int64) * SALARY_STEP
    rate = land.rate_base[state] + land.rate_step[state] * (salary // land.bracket[state])
    columns = [
        pick(_words(N_FIRST, "na"), first),
        pick(_words(N_LAST, "son"), zipf(seed, "last name", rows, N_LAST, 0.8)),
        pick(("F", "M"), (first + unisex) % 2),
        pa.array(201 + 2 * area),
        _phones(rows, seed),
        pick(_words(N_CITIES, "ton"), city),
        pick(_STATES, state),
        pa.array(10_000 + 13 * zip_number),
        pick(("Single", "Married"), married.astype(np.int64)),
        pick(("N", "Y"), child.astype(np.int64)),
        pa.array(salary),
        money(rate),
        pa.array(np.where(married, 0, land.single_exemp[state])),
        pa.array(np.where(married, land.married_exemp[state], 0)),
        pa.array(np.where(child, land.child_exemp[state], 0)),
    ]
    return pa.table(columns, names=TAX_COLUMNS)


def tax_table(n_rows: int, seed: int = SEED, folder: Path = DATA) -> BenchTable:
    """The tax table with `n_rows` rows and as many in its future.

    >>> tax_table(100).rows(np.arange(95, 105)) == tax_table(200).rows(np.arange(95, 105))
    True
    """
    stem = f"tax-{n_rows}-seed{seed}-g{GENERATION}"
    make = functools.partial(tax_rows, seed=seed, table_rows=n_rows)
    n_future = min(max(n_rows, 10_000), _PRIME - n_rows)
    return BenchTable("tax", n_rows, folder / f"{stem}.csv", folder / f"{stem}.parquet", make, n_future)


# --- what there is in it ------------------------------------------------------------------------


@dataclass(frozen=True)
class Contents:
    """What comparing all pairs of rows finds; seconds are of one core."""

    n_rows: int
    n_predicates: int
    n_evidences: int
    n_dcs: int
    evidence_s: float
    dcs_s: float


def contents(rows: pa.Table) -> Contents:
    """Count evidences and general constraints, columns compared with themselves. n ** 2 / 2 comparisons."""
    from holdfast.core.cover.kernels.search import minimal_dcs
    from holdfast.core.cover.kernels.vertices import Space
    from holdfast.core.evidence.kernels import predicate_evidence
    from holdfast.core.words.predicate import Group, PredicateSpace

    n_columns, n_rows = rows.num_columns, rows.num_rows
    codes = np.empty((n_columns, n_rows), dtype=np.int32)
    for i, column in enumerate(rows.columns):
        encoded = column.combine_chunks().dictionary_encode()
        order = pc.array_sort_indices(encoded.dictionary).to_numpy()
        rank = np.empty(len(order), dtype=np.int32)
        rank[order] = np.arange(1, len(order) + 1)
        codes[i] = rank[encoded.indices.to_numpy()]
    ordered = [not pa.types.is_string(field.type) for field in rows.schema]
    groups = tuple(Group(name, name, o) for name, o in zip(rows.column_names, ordered, strict=True))
    space = PredicateSpace(groups)
    own = np.arange(n_columns, dtype=np.int32)
    columns = (own, own, np.array(ordered, np.int32), np.array(space.first, np.int32))
    started = time.perf_counter()
    evidence = predicate_evidence.evidence_counts(
        codes,
        np.ones(n_rows, np.bool_),
        np.stack([2 * codes, 2 * codes], axis=1),
        predicate_evidence.Groups(*columns),
        (space.n_predicates + 63) // 64,
        within=True,
    )
    found = time.perf_counter()
    group_of, op_of, mirror = (np.array(x, np.int32) for x in (space.group_of, space.op_of, space.mirror))
    dcs = minimal_dcs(evidence.masks, Space(group_of, op_of, mirror, True))
    ended = time.perf_counter()
    return Contents(n_rows, space.n_predicates, len(evidence.masks), len(dcs), found - started, ended - found)


if __name__ == "__main__":
    for n in map(int, sys.argv[1:] or ["20000"]):
        print(contents(tax_table(n).rows(np.arange(n))))
