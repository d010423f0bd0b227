"""The benchmark's tables: seeded, generated row by row number, cached as CSV and Parquet.

Every cell is a pure function of (seed, column, row number): a counter-based hash takes the place
of a random stream. So a table is the same however it is cut into chunks, any row can be made again
without the table (a delete batch of 1,000 rows of 10 M costs 1,000 rows), and rows numbered past
the end of the table are its future: the insert batches. Memory follows the chunk, not the table.

Cost: about 2 us per lineitem row for the values and as much again for the files.

Text that looks like a number or a date is never stored as text, and no text needs quoting, so
that every reader of the CSV (holdfast, desbordante) sees the same values as the Arrow batches hold.
"""

# Word lists read better as one string than as forty quoted words.
# ruff: noqa: SIM905

from __future__ import annotations

import csv as csv_text
import functools
import io
import itertools
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

Rows = npt.NDArray[np.int64]  # row numbers
Ints = npt.NDArray[np.int64]

DATA = Path(__file__).parent / "data"
GENERATION = 1  # part of each cached file's name: raise it when a generator's output changes
CHUNK_ROWS = 250_000
BAD_EVERY = 200  # about one insert in this many repeats part of an old row, so that keys break
SEED = 20261115
# Values need no quotes (see above), nor do the names in the header.
PLAIN_CSV = pa_csv.WriteOptions(quoting_style="none", quoting_header="none")

# --- values from row numbers ------------------------------------------------------------------


def _mix(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """SplitMix64's finaliser: a bijection of 64-bit words that passes for random."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def unit(seed: int, stream: str, rows: Ints) -> npt.NDArray[np.float64]:
    """A number in [0, 1) for each row, independent between streams.

    >>> unit(1, "a", np.arange(3)).tolist() == unit(1, "a", np.arange(5))[:3].tolist()
    True
    """
    start = np.array([(seed << 32) ^ zlib.crc32(stream.encode())], dtype=np.uint64)
    with np.errstate(over="ignore"):
        counter = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + _mix(start)
        bits = _mix(counter)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def whole(seed: int, stream: str, rows: Ints, low: int, high: int) -> Ints:
    """A whole number in [low, high] for each row, uniform."""
    return low + (unit(seed, stream, rows) * (high - low + 1)).astype(np.int64)


@functools.lru_cache(maxsize=64)
def _zipf_steps(size: int, exponent: float) -> npt.NDArray[np.float64]:
    weights = np.arange(1, size + 1, dtype=np.float64) ** -exponent
    return np.cumsum(weights / weights.sum())


def zipf(seed: int, stream: str, rows: Ints, size: int, exponent: float = 1.0) -> Ints:
    """A rank in [0, size) for each row; rank r is drawn in proportion to (r + 1) ** -exponent."""
    return np.minimum(np.searchsorted(_zipf_steps(size, exponent), unit(seed, stream, rows)), size - 1)


def weighted(seed: int, stream: str, rows: Ints, weights: tuple[float, ...]) -> Ints:
    """A position in `weights` for each row, drawn in proportion to them."""
    steps = np.cumsum(weights) / sum(weights)
    return np.minimum(np.searchsorted(steps, unit(seed, stream, rows), side="right"), len(weights) - 1)


def pick(
    words: tuple[str, ...] | pa.Array, ranks: Ints, null: npt.NDArray[np.bool_] | None = None
) -> pa.Array:
    """The word of each rank, or NULL."""
    array = words if isinstance(words, pa.Array) else pa.array(words, pa.string())
    return array.take(pa.array(ranks, mask=null))


def money(cents: Ints) -> pa.Array:
    """Whole cents as decimal(15,2), without a Python object per value."""
    words = np.empty((len(cents), 2), dtype=np.int64)
    words[:, 0] = cents
    words[:, 1] = cents >> 63
    return pa.Array.from_buffers(pa.decimal128(15, 2), len(cents), [None, pa.py_buffer(words)])


def days(numbers: Ints) -> pa.Array:
    """Days since 1970 as dates."""
    return pa.array(numbers.astype(np.int32)).cast(pa.date32())


def _day(text: str) -> int:
    return int(np.datetime64(text, "D").astype(np.int64))


# --- lineitem ---------------------------------------------------------------------------------

LINEITEM_COLUMNS = (
    "l_orderkey l_partkey l_suppkey l_linenumber l_quantity l_extendedprice l_discount l_tax "
    "l_returnflag l_linestatus l_shipdate l_commitdate l_receiptdate l_shipinstruct l_shipmode l_comment"
).split()
_INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")
_MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
_FIRST_ORDER, _LAST_ORDER = _day("1992-01-01"), _day("1998-08-02")
_TODAY = _day("1995-06-17")

_ADVERBS = "quickly slowly carefully blithely furiously silently daringly ruthlessly evenly finally".split()
_ADJECTIVES = (
    "furious sly careful blithe quick fluffy slow quiet ruthless thin close dogged daring brave "
    "stealthy permanent enticing idle busy regular final ironic even bold special silent express pending"
).split()
_NOUNS = (
    "packages requests accounts deposits foxes ideas theodolites instructions dependencies excuses "
    "platelets asymptotes courts dolphins multipliers sauternes warthogs frets dinos attainments "
    "somas braids frays warhorses dugouts notornis epitaphs pearls tithes waters orbits gifts "
    "sheaves depths sentiments decoys realms pains grouches escapades hockey_players"
).split()
_VERBS = (
    "sleep wake are cajole haggle nag use boost affix detect integrate maintain nod was lose sublate "
    "solve thrash promise engage hinder print doze run dazzle snooze unwind kindle play hang believe doubt"
).split()
_PREPOSITIONS = "about above according_to across after against along among around at before beyond".split()
_STOPS = (".", ";", ":", "?", "!", " --")


@functools.cache
def _line_shapes() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Ways to cut 28 rows into 7 orders of 1 to 7 lines: each row's order and its line in it."""
    shapes = list(itertools.permutations(range(1, 8)))
    order = np.array([np.repeat(np.arange(7), sizes) for sizes in shapes])
    line = np.array([np.concatenate([np.arange(n) for n in sizes]) for sizes in shapes])
    return order, line


@functools.lru_cache(maxsize=2)
def _prose(seed: int, n_sentences: int = 200_000) -> npt.NDArray[np.uint8]:
    """About 10 MB of text from TPC-H's small grammar; comments are cuts of it, as in TPC-H."""
    at = np.arange(n_sentences)

    def words(stream: str, vocabulary: list[str] | tuple[str, ...]) -> list[str]:
        return [vocabulary[i] for i in whole(seed, stream, at, 0, len(vocabulary) - 1)]

    parts = zip(
        words("adverb", _ADVERBS),
        words("adjective", _ADJECTIVES),
        words("noun", _NOUNS),
        words("verb", _VERBS),
        words("preposition", _PREPOSITIONS),
        words("adjective 2", _ADJECTIVES),
        words("noun 2", _NOUNS),
        words("stop", _STOPS),
        strict=True,
    )
    text = " ".join(f"{d} {a} {n} {v} {p} the {a2} {n2}{s}" for d, a, n, v, p, a2, n2, s in parts)
    return np.frombuffer(text.replace("_", " ").encode(), dtype=np.uint8)


def _comments(seed: int, rows: Rows) -> pa.Array:
    """A cut of 10 to 43 characters for each row, without blanks at its ends."""
    prose = _prose(seed)
    first = whole(seed, "comment at", rows, 0, len(prose) - 50)
    first += prose[first] == ord(" ")
    last = first + whole(seed, "comment length", rows, 9, 42)
    last += prose[last] == ord(" ")
    ends = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(last - first + 1, out=ends[1:])
    where = np.arange(ends[-1]) + np.repeat(first - ends[:-1], np.diff(ends))
    offsets = pa.py_buffer(ends.astype(np.int32))
    return pa.Array.from_buffers(pa.string(), len(rows), [None, offsets, pa.py_buffer(prose[where])])


def lineitem_rows(rows: Rows, seed: int, table_rows: int) -> pa.Table:
    """The given rows of a lineitem table of `table_rows` rows; numbers past its end are inserts.

    One insert in `BAD_EVERY` is bad: it takes the order and line number of an old row (which
    breaks `l_orderkey, l_linenumber`), or its part and comment (which breaks keys with those).
    """
    bad = (rows >= table_rows) & (unit(seed, "bad", rows) < 1 / BAD_EVERY)
    victim = whole(seed, "victim", rows, 0, max(table_rows - 1, 0))
    copies_order = unit(seed, "bad kind", rows) < 0.5
    by_order = np.where(bad & copies_order, victim, rows)
    by_part = np.where(bad & ~copies_order, victim, rows)

    n_parts = max(200, table_rows // 30)  # TPC-H: 200,000 parts and 10,000 suppliers to 6 M lines
    n_suppliers = max(10, table_rows // 600)

    block, place = np.divmod(by_order, 28)
    shape = whole(seed, "shape", block, 0, 5039)
    order_in_block, line = _line_shapes()
    order = block * 7 + order_in_block[shape, place]
    order_day = whole(seed, "order day", order, _FIRST_ORDER, _LAST_ORDER)

    part = whole(seed, "part", by_part, 1, n_parts)
    nth = whole(seed, "supplier", by_part, 0, 3)
    supplier = (part + nth * (n_suppliers // 4 + (part - 1) // n_suppliers)) % n_suppliers + 1
    quantity = whole(seed, "quantity", rows, 1, 50)
    retail_cents = 90_000 + (part // 10) % 20_001 + 100 * (part % 1_000)

    shipped = order_day + whole(seed, "ship", rows, 1, 121)
    committed = order_day + whole(seed, "commit", rows, 30, 90)
    received = shipped + whole(seed, "receipt", rows, 1, 30)
    returned = np.where(received <= _TODAY, whole(seed, "return", rows, 0, 1), 2)

    columns = [
        pa.array(order // 8 * 32 + order % 8 + 1),  # 8 of 32 order keys are in use, as in TPC-H
        pa.array(part),
        pa.array(supplier),
        pa.array(line[shape, place] + 1),
        money(quantity * 100),
        money(quantity * retail_cents),
        money(whole(seed, "discount", rows, 0, 10)),
        money(whole(seed, "tax", rows, 0, 8)),
        pick(("R", "A", "N"), returned),
        pick(("F", "O"), (shipped > _TODAY).astype(np.int64)),
        days(shipped),
        days(committed),
        days(received),
        pick(_INSTRUCTIONS, whole(seed, "instruct", rows, 0, 3)),
        pick(_MODES, whole(seed, "mode", rows, 0, 6)),
        _comments(seed, by_part),
    ]
    return pa.table(columns, names=LINEITEM_COLUMNS)


def lineitem(n_rows: int, seed: int = SEED, start: int = 0, table_rows: int | None = None) -> pa.Table:
    """`n_rows` rows from number `start` on. With a `start`, they are inserts into a table that long.

    >>> lineitem(100, 7).slice(60, 5) == lineitem(5, 7, start=60, table_rows=100)
    True
    >>> lineitem(3, 7, start=100).num_rows
    3
    """
    if table_rows is None:
        table_rows = start or n_rows
    return _in_chunks(lambda rows: lineitem_rows(rows, seed, table_rows), start, n_rows)


# --- ncvoter ----------------------------------------------------------------------------------

_SYLLABLES = "ba den ford ley mor ton wick ham son berg er lin mac ro vil sta gar hol wood ing".split()


@functools.cache
def _names(size: int, title: str = "") -> pa.Array:
    """`size` different pronounceable words."""
    base = len(_SYLLABLES)

    def name(i: int) -> str:
        word = ""
        i += base
        while i:
            i, syllable = divmod(i, base)
            word += _SYLLABLES[syllable]
        return word.upper() + title

    return pa.array([name(i) for i in range(size)], pa.string())


@functools.cache
def _labels(prefix: str, size: int) -> pa.Array:
    """`prefix` with a number: text, not a number, to every reader."""
    return pa.array([f"{prefix}{i:03d}" for i in range(size)], pa.string())


NCVOTER_COLUMNS = (
    "voter_reg_num ncid county_id county_desc status_cd voter_status_desc reason_cd voter_status_reason_desc "
    "absent_ind name_prefx_cd last_name first_name midl_name name_sufx_cd house_num half_code street_dir "
    "street_name street_type_cd unit_designator unit_num res_city_desc state_cd zip_code mail_addr1 "
    "mail_city mail_zipcode area_cd phone_num race_code ethnic_code party_cd gender_code birth_age "
    "birth_place registr_dt precinct_abbrv municipality_abbrv ward_abbrv cong_dist"
).split()
_STATUS = (("A", "ACTIVE"), ("I", "INACTIVE"), ("R", "REMOVED"), ("D", "DENIED"), ("S", "TEMPORARY"))
_PARTIES = ("DEM", "REP", "UNA", "LIB", "GRE")
_STATES = tuple("NC VA SC NY GA FL PA OH TN WV NJ MD CA IL MI TX AL MA KY CT IN DC".split())


def ncvoter_rows(rows: Rows, seed: int, table_rows: int) -> pa.Table:
    """The given rows of a register of voters; numbers past its end are inserts.

    A person has a household (address, phone) and lives in a zip code, which decides city, county
    and districts: so most columns follow few, and keys number tens of thousands, not millions.
    One insert in `BAD_EVERY` is an old voter registered again under the same number.
    """
    bad = (rows >= table_rows) & (unit(seed, "bad", rows) < 1 / BAD_EVERY)
    who = np.where(bad, whole(seed, "victim", rows, 0, max(table_rows - 1, 0)), rows)

    household = whole(seed, "household", rows, 0, max(table_rows * 2 // 5, 1))
    place = zipf(seed, "zip", household, 60, 0.6)
    county = place * 7 % 12
    city = place * 5 % 31
    street = zipf(seed, "street", household, 90, 0.8) + place  # streets are shared by near zip codes
    precinct = place * 2 + (street % 2)
    mails_elsewhere = unit(seed, "mails elsewhere", household) < 0.06
    in_flat = unit(seed, "in flat", household) < 0.15
    has_phone = unit(seed, "has phone", household) < 0.45

    status = weighted(seed, "status", rows, (72, 15, 10, 2, 1))
    reason = status * 4 + zipf(seed, "reason", rows, 4, 2.0)
    gender = weighted(seed, "gender", who, (53, 45, 2))
    family = np.where(unit(seed, "own name", who) < 0.25, who, household)
    last = zipf(seed, "last name", family, 4_000, 0.9)
    first = zipf(seed, "first name", who, 300, 1.0) * 2 + np.minimum(gender, 1)
    middle = zipf(seed, "middle name", who, 400, 1.0)
    has_middle = unit(seed, "has middle", who) < 0.85
    suffix = weighted(seed, "suffix", who, (94, 3, 2, 1))
    age = 18 + whole(seed, "age", who, 0, 45) + whole(seed, "age 2", who, 0, 30)
    race = weighted(seed, "race", who, (68, 22, 4, 3, 2, 1))
    birth_place = zipf(seed, "birth place", who, len(_STATES), 1.2)
    registered = _day("2018-10-01") - 7 * zipf(seed, "registered", who, 1_200, 0.6)

    columns = [
        pa.array(1_000_000 + who * 3 + whole(seed, "gap", who, 0, 2)),
        pc.binary_join_element_wise("AA", pa.array(rows + 100_000).cast(pa.string()), ""),
        pa.array(county + 1),
        pick(_names(12, " COUNTY"), county),
        pick(tuple(code for code, _ in _STATUS), status),
        pick(tuple(text for _, text in _STATUS), status),
        pick(_labels("R", 20), reason),
        pick(_labels("REASON ", 20), reason),
        pick(("N",), np.zeros_like(rows), unit(seed, "absent", rows) > 0.01),
        pick(("MR", "MS", "DR"), gender, unit(seed, "prefix", who) > 0.02),
        pick(_names(4_000), last),
        pick(_names(600, "A"), first),
        pick(_names(400, "E"), middle, ~has_middle),
        pick(("", "JR", "SR", "III"), suffix, suffix == 0),
        pa.array(100 + 4 * zipf(seed, "house", household, 1_500, 0.5)),
        pick(("H",), np.zeros_like(rows), unit(seed, "half", household) > 0.002),
        pick(("N", "S", "E", "W"), street % 4, street % 5 != 0),
        pick(_names(160, " X"), street),
        pick(("ST", "RD", "DR", "LN", "CT", "AVE", "WAY"), street % 7),
        pick(("APT", "UNIT", "LOT"), street % 3, ~in_flat),
        pa.array(whole(seed, "flat", household, 1, 40), mask=~in_flat),
        pick(_names(31, " CITY"), city),
        pick(("NC",), np.zeros_like(rows)),
        pa.array(27_000 + place * 13),
        pick(_labels("PO BOX ", 400), whole(seed, "box", household, 0, 399), ~mails_elsewhere),
        pick(_names(31, " CITY"), city, ~mails_elsewhere),
        pa.array(27_000 + place * 13, mask=~mails_elsewhere),
        pa.array(np.array([336, 704, 828, 910, 919, 252])[county % 6], mask=~has_phone),
        pa.array(2_000_000 + whole(seed, "phone", household, 0, 7_999_999), mask=~has_phone),
        pick(("W", "B", "O", "A", "M", "I"), race),
        pick(("NL", "HL", "UN"), weighted(seed, "ethnic", who, (75, 5, 20))),
        pick(_PARTIES, weighted(seed, "party", who, (40, 31, 27, 1.8, 0.2))),
        pick(("F", "M", "U"), gender),
        pa.array(age),
        pick(_STATES, birth_place, unit(seed, "birth place known", who) < 0.15),
        days(registered),
        pick(_labels("PR", 160), precinct),
        pick(_names(8, " TOWN"), city % 8, city % 3 == 0),
        pick(_labels("W", 20), precinct % 20, city % 3 == 0),
        pa.array(1 + county % 4),
    ]
    return pa.table(columns, names=NCVOTER_COLUMNS)


def ncvoter(
    n_rows: int, n_columns: int = 40, seed: int = SEED, start: int = 0, table_rows: int | None = None
) -> pa.Table:
    """`n_rows` rows and the first `n_columns` columns of a voters' register; `start` as in `lineitem`."""
    if not 1 <= n_columns <= len(NCVOTER_COLUMNS):
        raise ValueError(f"n_columns must be 1 to {len(NCVOTER_COLUMNS)}, not {n_columns}")
    if table_rows is None:
        table_rows = start or n_rows
    table = _in_chunks(lambda rows: ncvoter_rows(rows, seed, table_rows), start, n_rows)
    return table.select(NCVOTER_COLUMNS[:n_columns])


N_DISTRICTS, N_ELECTIONS = 12, 24
NCVOTER94_COLUMNS = [
    *NCVOTER_COLUMNS,
    *(f"district_{i}_{what}" for i in range(N_DISTRICTS) for what in ("abbrv", "desc")),
    *(f"election_{i}" for i in range(N_ELECTIONS)),
    *"age_group birth_year registr_year cancellation_dt mail_state confidential_ind".split(),
]


def ncvoter94_rows(rows: Rows, seed: int, table_rows: int) -> pa.Table:
    """The given rows of a register of voters with 94 columns, as many as the real one has.

    Districts follow from the precinct, each with a number and a name; whoever went to one election went to
    more of them, and most cells of the later columns are NULL or one value.
    """
    register = ncvoter_rows(rows, seed, table_rows)
    precinct = pc.cast(pc.replace_substring(register["precinct_abbrv"], "PR", ""), pa.int64()).to_numpy()
    age = register["birth_age"].to_numpy()
    registered = pc.year(register["registr_dt"]).to_numpy()
    keen = unit(seed, "keen", rows) ** 2
    columns: list[pa.Array | pa.ChunkedArray] = list(register.columns)
    for i in range(N_DISTRICTS):
        number = (precinct * (2 * i + 3) + i) % (5 + 7 * i)
        columns += [pick(_labels(f"D{i}-", 90), number), pick(_names(90, f" {i}"), number)]
    for i in range(N_ELECTIONS):
        there = unit(seed, f"election {i}", rows) < keen * (0.9 - i / 40)
        columns.append(
            pick(("IN PERSON", "ABSENTEE", "CURBSIDE"), weighted(seed, f"how {i}", rows, (70, 27, 3)), ~there)
        )
    gone = pc.equal(register["status_cd"], "R")
    columns += [
        pick(("18-25", "26-40", "41-65", "66+"), np.searchsorted([26, 41, 66], age, side="right")),
        pa.array(2018 - age),
        pa.array(registered),
        pc.if_else(gone, days(_day("2018-10-01") + 7 * zipf(seed, "gone", rows, 60, 0.6)), None),
        pick(("NC",), np.zeros_like(rows), pc.is_null(register["mail_city"]).to_numpy()),
        pick(("N", "Y"), weighted(seed, "confidential", rows, (999, 1))),
    ]
    return pa.table(columns, names=NCVOTER94_COLUMNS)


# --- adult ------------------------------------------------------------------------------------

ADULT_COLUMNS = (
    "age workclass fnlwgt education education_num marital_status occupation relationship race sex "
    "capital_gain capital_loss hours_per_week native_country income"
).split()
_WORK = ("Private", "Self-emp-not-inc", "Local-gov", "Unknown", "State-gov", "Self-emp-inc", "Federal-gov")
_EDUCATION = tuple(
    "HS-grad Some-college Bachelors Masters Assoc-voc 11th Assoc-acdm 10th 7th-8th Prof-school 9th "
    "12th Doctorate 5th-6th 1st-4th Preschool".split()
)
_EDUCATION_YEARS = np.array([9, 10, 13, 14, 11, 7, 12, 6, 4, 15, 5, 8, 16, 3, 2, 1])
_MARITAL = ("Married", "Never-married", "Divorced", "Separated", "Widowed", "Spouse-absent")
_ROLES = ("Spouse", "Not-in-family", "Own-child", "Unmarried", "Other-relative")


def adult_rows(rows: Rows, seed: int, table_rows: int) -> pa.Table:
    """The given rows of a census extract like UCI adult: 15 columns, two of them derived.

    `fnlwgt` has so many values that (with the default seed) no two rows are equal: the table has keys,
    which UCI's adult with its 24 repeated rows has not.
    """
    bad = (rows >= table_rows) & (unit(seed, "bad", rows) < 1 / BAD_EVERY)
    who = np.where(bad, whole(seed, "victim", rows, 0, max(table_rows - 1, 0)), rows)
    education = zipf(seed, "education", rows, 16, 1.2)
    age = 17 + np.minimum(whole(seed, "age", who, 0, 40) + whole(seed, "age 2", who, 0, 33), 73)
    married = weighted(seed, "married", rows, (46, 33, 14, 3, 3, 1))
    sex = weighted(seed, "sex", rows, (67, 33))
    role = np.where(married == 0, 0, 1 + weighted(seed, "role", rows, (45, 30, 19, 6)))
    gains = unit(seed, "gains", rows) < 0.08
    loses = ~gains & (unit(seed, "loses", rows) < 0.05)
    gain = np.where(gains, 114 + 37 * zipf(seed, "gain", rows, 118, 0.8), 0)
    loss = np.where(loses, 155 + 31 * zipf(seed, "loss", rows, 91, 0.8), 0)
    weight = 12_285 + whole(seed, "weight", who, 0, 21_000) * 60 + zipf(seed, "weight 2", who, 20, 1.5)
    hours = np.where(unit(seed, "full time", rows) < 0.47, 40, 1 + whole(seed, "hours", rows, 9, 69))
    rich = (
        unit(seed, "rich", rows) < 0.02 + 0.03 * np.maximum(_EDUCATION_YEARS[education] - 7, 0) + 0.3 * gains
    )
    columns = [
        pa.array(age),
        pick(_WORK, weighted(seed, "work", rows, (70, 8, 6, 6, 4, 3, 3))),
        pa.array(weight),
        pick(_EDUCATION, education),
        pa.array(_EDUCATION_YEARS[education]),
        pick(_MARITAL, married),
        pick(_names(14, "-work"), zipf(seed, "occupation", rows, 14, 0.6)),
        pick(_ROLES, role),
        pick(("White", "Black", "Asian", "Amer-Indian", "Other"), zipf(seed, "race", rows, 5, 2.5)),
        pick(("Male", "Female"), sex),
        pa.array(gain),
        pa.array(loss),
        pa.array(hours),
        pick(_names(41, "land"), zipf(seed, "country", rows, 41, 2.4)),
        pick(("<=50K", ">50K"), rich.astype(np.int64)),
    ]
    return pa.table(columns, names=ADULT_COLUMNS)


def adult_like(
    n_rows: int = 32_561, seed: int = SEED, start: int = 0, table_rows: int | None = None
) -> pa.Table:
    """`n_rows` rows of a census extract; `start` as in `lineitem`."""
    if table_rows is None:
        table_rows = start or n_rows
    return _in_chunks(lambda rows: adult_rows(rows, seed, table_rows), start, n_rows)


# --- claims -----------------------------------------------------------------------------------

CLAIMS_COLUMNS = tuple("ABCDEFGHIJ")


def claims_rows(rows: Rows, seed: int, table_rows: int) -> pa.Table:
    """The given rows of a table of insurance claims with coded values: 10 columns, tall and without a key.

    As in the table the papers use, C and D (an airport's code and its name) decide each other, nothing else
    holds, and every set of columns is the agree set of some pair: 512 of them. Rows may be equal.
    """
    kind = zipf(seed, "kind", rows, 40, 1.2)
    airport = zipf(seed, "airport", rows, 395, 0.9)
    paid = unit(seed, "paid", rows) < 0.6
    columns = [
        whole(seed, "received", rows, 0, 1_327),
        whole(seed, "incident", rows, 0, 1_965),
        airport,
        airport * 7 % 395,
        zipf(seed, "airline", rows, 157, 1.3),
        weighted(seed, "type", rows, (525, 387, 74, 5, 4, 3, 1, 1)),
        weighted(seed, "site", rows, (792, 177, 25, 4, 1, 1)),
        np.where(paid, kind, 40 + zipf(seed, "item", rows, 1_464, 0.8)),
        np.where(paid, 0, 1 + zipf(seed, "amount", rows, 14_892, 0.7)),
        weighted(seed, "status", rows, (376, 287, 235, 101, 1)),
    ]
    return pa.table([pa.array(column) for column in columns], names=CLAIMS_COLUMNS)


# --- uniprot ----------------------------------------------------------------------------------

UNIPROT_COLUMNS = tuple(str(i + 1) for i in range(222))
SWAN_COLUMNS = 40  # of them, as SWAN's experiments take


def uniprot40_rows(rows: Rows, seed: int, table_rows: int) -> pa.Table:
    """The first columns of `uniprot_rows`."""
    return uniprot_rows(rows, seed, table_rows).select(range(SWAN_COLUMNS))


def uniprot_rows(rows: Rows, seed: int, table_rows: int) -> pa.Table:
    """The given rows of a table of proteins with coded values: 222 columns, from unique to constant.

    A third of a million agree sets at 1,000 rows. Most cells of the later columns are one value (nothing is
    known), and how much is known varies by protein, so that agree sets differ in nearly every pair.
    """
    known = unit(seed, "known", rows) ** 2.5
    columns: list[Ints] = []
    for i in range(len(UNIPROT_COLUMNS)):
        if i < 2:
            columns.append(rows)
        elif i >= 203:
            columns.append(np.zeros_like(rows))
        else:
            share = 0.9 * np.exp(-i / 60.0)
            there = unit(seed, f"there {i}", rows) < share * 2 * known
            size = max(2, int(700 * np.exp(-i / 45.0)))
            columns.append(np.where(there, 1 + zipf(seed, f"value {i}", rows, size, 0.6), 0))
    return pa.table([pa.array(column) for column in columns], names=UNIPROT_COLUMNS)


# --- flight -----------------------------------------------------------------------------------

_FLIGHT_HEAD = (
    "Year Quarter Month DayofMonth DayOfWeek FlightDate UniqueCarrier AirlineID Carrier TailNum FlightNum"
).split()
_PLACE = (
    "AirportID",
    "AirportSeqID",
    "CityMarketID",
    "",
    "CityName",
    "State",
    "StateFips",
    "StateName",
    "Wac",
)
_FLIGHT_TIMES = (
    "CRSDepTime DepTime DepDelay DepDelayMinutes DepDel15 DepartureDelayGroups DepTimeBlk TaxiOut "
    "WheelsOff WheelsOn TaxiIn CRSArrTime ArrTime ArrDelay ArrDelayMinutes ArrDel15 ArrivalDelayGroups "
    "ArrTimeBlk Cancelled CancellationCode Diverted CRSElapsedTime ActualElapsedTime AirTime Flights "
    "Distance DistanceGroup CarrierDelay WeatherDelay NASDelay SecurityDelay LateAircraftDelay "
    "FirstDepTime TotalAddGTime LongestAddGTime DivAirportLandings DivReachedDest "
    "DivActualElapsedTime DivArrDelay DivDistance"
).split()
_DIVERSION = ("Airport AirportID AirportSeqID WheelsOn TotalGTime LongestGTime WheelsOff TailNum").split()
FLIGHT_COLUMNS = (
    _FLIGHT_HEAD
    + [f"Origin{name}" for name in _PLACE]
    + [f"Dest{name}" for name in _PLACE]
    + _FLIGHT_TIMES
    + [f"Div{i}{name}" for i in range(1, 6) for name in _DIVERSION]
)


def flight_rows(rows: Rows, seed: int, table_rows: int) -> pa.Table:
    """The given rows of a record of flights: 109 columns, one carrier, one month, each flight once a day.

    Nine columns for each airport decide each other, times and delays are sums of one another, and the
    columns of cancelled and diverted flights are nearly or wholly empty: so at 1,000 rows there are about
    19,000 agree sets, but hundreds of thousands of minimal FDs.
    """
    n_flights = 60
    flight, day = rows % n_flights, rows // n_flights
    number = 1 + flight
    pair = flight // 2  # there and back again
    hub = pair % 5
    far = 5 + (pair * 3) % 11
    back = flight % 2 == 1
    origin, dest = np.where(back, far, hub), np.where(back, hub, far)

    def place(at: Ints) -> list[pa.Array]:
        state = at * 5 % 9
        return [
            pa.array(10_000 + at * 137),
            pa.array((10_000 + at * 137) * 100 + 2),
            pa.array(30_000 + at * 53),
            pick(_labels("AP", 16), at),
            pick(_names(16, " CITY"), at),
            pick(_labels("S", 9), state),
            pa.array(1 + state * 4),
            pick(_names(9, " STATE"), state),
            pa.array(20 + state * 3),
        ]

    def clock(minutes: Ints, null: npt.NDArray[np.bool_] | None = None) -> pa.Array:
        minutes = minutes % 1_440
        return pa.array(minutes // 60 * 100 + minutes % 60, mask=null)

    def block(minutes: Ints) -> pa.Array:
        return pick(_labels("H", 24), minutes % 1_440 // 60)

    cancelled = unit(seed, "cancelled", rows) < 0.02
    diverted = ~cancelled & (unit(seed, "diverted", rows) < 0.002)
    gone = cancelled | diverted  # never arrived as planned
    departs = 360 + whole(seed, "departs", flight, 0, 160) * 5
    miles = 250 + whole(seed, "miles", pair, 0, 110) * 21
    planned = 40 + miles // 8 + whole(seed, "planned", flight, 0, 4) * 5
    wind = zipf(seed, "wind", rows, 150, 0.5)
    late = np.where(unit(seed, "late", rows) < 0.45, zipf(seed, "minutes late", rows, 60, 0.7), 0) - zipf(
        seed, "early", rows, 12, 0.3
    )
    out, into = 8 + zipf(seed, "out", rows, 30, 0.6), 3 + zipf(seed, "in", rows, 18, 0.8)
    air = planned - 25 + wind // 2 - 12
    took = out + air + into
    arrives, arrived = departs + planned, departs + late + took
    delay = arrived - arrives
    slow = ~gone & (delay >= 15)
    causes = [
        np.where(unit(seed, f"cause {i}", rows) < share, delay // 2, 0)
        for i, share in enumerate((0.5, 0.05, 0.6, 0.0, 0.4))
    ]
    date = 15_340 + day
    none = np.ones(len(rows), dtype=np.bool_)

    def known(values: Ints, null: npt.NDArray[np.bool_]) -> pa.Array:
        return pa.array(values, mask=null)

    columns = [
        pa.array(np.full_like(rows, 2_012)),
        pa.array(np.full_like(rows, 1)),
        pa.array(np.full_like(rows, 1)),
        pa.array(1 + day),
        pa.array(1 + (day + 6) % 7),
        days(date),
        pick(("AA",), np.zeros_like(rows)),
        pa.array(np.full_like(rows, 19_805)),
        pick(("AA",), np.zeros_like(rows)),
        pick(_labels("N", 150), whole(seed, "tail", rows, 0, 149)),
        pa.array(number),
        *place(origin),
        *place(dest),
        clock(departs),
        clock(departs + late, cancelled),
        known(late, cancelled),
        known(np.maximum(late, 0), cancelled),
        known((late >= 15).astype(np.int64), cancelled),
        known(np.clip(late // 15, -2, 12), cancelled),
        block(departs),
        known(out, cancelled),
        clock(departs + late + out, cancelled),
        clock(arrived - into, gone),
        known(into, gone),
        clock(arrives),
        clock(arrived, gone),
        known(delay, gone),
        known(np.maximum(delay, 0), gone),
        known((delay >= 15).astype(np.int64), gone),
        known(np.clip(delay // 15, -2, 12), gone),
        block(arrives),
        pa.array(cancelled.astype(np.int64)),
        pick(("A", "B"), whole(seed, "code", rows, 0, 1), ~cancelled),
        pa.array(diverted.astype(np.int64)),
        pa.array(planned),
        known(took, gone),
        known(air, gone),
        pa.array(np.full_like(rows, 1)),
        pa.array(miles),
        pa.array(1 + miles // 250),
        *[known(cause, ~slow) for cause in causes],
        known(departs, none),
        known(out, none),
        known(out, none),
        known(diverted.astype(np.int64), ~diverted),
        known(diverted.astype(np.int64), ~diverted),
        known(took + 90, ~diverted),
        known(delay + 90, ~diverted),
        known(np.zeros_like(rows), ~diverted),
        *[known(rows, none) for _ in range(40)],
    ]
    return pa.table(columns, names=FLIGHT_COLUMNS)


# --- tables with files ------------------------------------------------------------------------


def _in_chunks(make: Callable[[Rows], pa.Table], start: int, n_rows: int) -> pa.Table:
    return pa.concat_tables(_chunks(make, start, n_rows))


def _chunks(make: Callable[[Rows], pa.Table], start: int, n_rows: int) -> Iterator[pa.Table]:
    for first in range(start, start + max(n_rows, 1), CHUNK_ROWS):
        yield make(np.arange(first, min(first + CHUNK_ROWS, start + n_rows), dtype=np.int64))


@dataclass(frozen=True)
class BenchTable:
    """A table with a future: rows 0 to `n_rows` - 1 are the table, those after it its inserts."""

    name: str
    n_rows: int
    csv: Path
    parquet: Path
    make: Callable[[Rows], pa.Table]
    n_future: int  # how many inserts there are

    @property
    def n_columns(self) -> int:
        return self.make(np.zeros(0, dtype=np.int64)).num_columns

    def rows(self, numbers: Rows) -> pa.Table:
        """The rows of these numbers, in this order."""
        return self.make(np.asarray(numbers, dtype=np.int64))

    def ensure_files(self) -> None:
        """Write the CSV and Parquet files unless they are there; whole or not at all."""
        if self.csv.exists() and self.parquet.exists():
            return
        self.csv.parent.mkdir(parents=True, exist_ok=True)
        part_csv, part_parquet = (Path(f"{path}.{os.getpid()}.part") for path in (self.csv, self.parquet))
        schema = self.make(np.zeros(0, dtype=np.int64)).schema
        with (
            pa_csv.CSVWriter(part_csv, schema, write_options=PLAIN_CSV) as csv,
            pq.ParquetWriter(part_parquet, schema, compression="zstd") as parquet,
        ):
            for chunk in _chunks(self.make, 0, self.n_rows):
                csv.write_table(chunk)
                parquet.write_table(chunk)
        part_csv.rename(self.csv)
        part_parquet.rename(self.parquet)

    def ensure_parquet(self) -> None:
        """Write the Parquet file alone unless it is there: of a table that is too large for a CSV file."""
        if self.parquet.exists():
            return
        self.parquet.parent.mkdir(parents=True, exist_ok=True)
        part = Path(f"{self.parquet}.{os.getpid()}.part")
        with pq.ParquetWriter(part, self.rows(np.zeros(0, np.int64)).schema, compression="zstd") as parquet:
            for chunk in _chunks(self.make, 0, self.n_rows):
                parquet.write_table(chunk)
        part.rename(self.parquet)


def append_csv(base: Path, rows: pa.Table, out: Path) -> None:
    """Write `out`: the CSV `base` with `rows` after it."""
    out.parent.mkdir(parents=True, exist_ok=True)
    body = pa.BufferOutputStream()
    pa_csv.write_csv(rows, body, pa_csv.WriteOptions(include_header=False, quoting_style="none"))
    with base.open("rb") as source, out.open("wb") as target:
        while block := source.read(1 << 24):
            target.write(block)
        target.write(body.getvalue())


MAKERS: dict[str, Callable[[Rows, int, int], pa.Table]] = {
    "lineitem": lineitem_rows,
    "ncvoter": ncvoter_rows,
    "ncvoter94": ncvoter94_rows,
    "adult": adult_rows,
    "claims": claims_rows,
    "uniprot": uniprot_rows,
    "uniprot40": uniprot40_rows,
    "flight": flight_rows,
}


def generated(name: str, n_rows: int, seed: int = SEED, folder: Path = DATA) -> BenchTable:
    """The generated table `name` (a key of `MAKERS`) with `n_rows` rows."""
    stem = f"{name}-{n_rows}-seed{seed}-g{GENERATION}"
    make = functools.partial(MAKERS[name], seed=seed, table_rows=n_rows)
    return BenchTable(
        name, n_rows, folder / f"{stem}.csv", folder / f"{stem}.parquet", make, n_future=max(n_rows, 10_000)
    )


def real(name: str, source: Path, folder: Path = DATA) -> BenchTable:
    """A CSV of yours as a benchmark table: its last 8 % are held back as the inserts.

    Equal rows are dropped but for one (a table with two equal rows has no key and nothing to measure).
    Small tables hold back more, enough for all batches but at most a quarter.
    """
    whole_table = pa_csv.read_csv(source)
    if len(set(whole_table.column_names)) < whole_table.num_columns:
        raise ValueError(f"{source}: column names repeat")
    distinct = whole_table.group_by(whole_table.column_names, use_threads=False).aggregate([])
    n_future = max(min(distinct.num_rows // 4, max(distinct.num_rows * 8 // 100, 5_000)), 1)
    stem = f"{name}-real-{distinct.num_rows - n_future}"
    return BenchTable(
        name,
        distinct.num_rows - n_future,
        folder / f"{stem}.csv",
        folder / f"{stem}.parquet",
        lambda rows: distinct.take(pa.array(rows)),
        n_future,
    )


def complete(name: str, source: Path, folder: Path = DATA) -> BenchTable:
    """A CSV of yours with all of its rows, equal ones too, in their order; it has no future.

    Records longer than the header are cut to it (uniprot's have a cell too many). The table's own files hold
    typed values written anew, so that a value has one text and readers of text and of types agree.
    """
    with source.open(newline="") as file:
        records = csv_text.reader(file)
        names = next(records)
        clean = io.StringIO()
        csv_text.writer(clean).writerows(record[: len(names)] for record in itertools.chain([names], records))
    if len(set(names)) < len(names):
        raise ValueError(f"{source}: column names repeat")
    nulls = pa_csv.ConvertOptions(null_values=[""], strings_can_be_null=True)
    table = pa_csv.read_csv(io.BytesIO(clean.getvalue().encode()), convert_options=nulls)
    stem = f"{name}-complete-{table.num_rows}"
    return BenchTable(
        name,
        table.num_rows,
        folder / f"{stem}.csv",
        folder / f"{stem}.parquet",
        lambda rows: table.take(pa.array(rows)),
        n_future=0,
    )
