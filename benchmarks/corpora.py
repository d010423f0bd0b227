"""Corpora of web tables: many small tables with the shape of WikiTables, seeded, of any size.

Table 1 and figure 3 of Tschirschnitz et al. (MANY, TODS 2017) say what such tables are like: 5.34 columns and
10.85 rows on average, both with a long tail; Zipfian values and names of columns; the empty text is the most
frequent value, then come 1, 2, 3, ... and other ways to write that there is nothing, together some 27 % of
all cells. Columns that count 1 to n, small integers, empty columns and columns of dashes give nearly all
inclusion dependencies, whose number grows with the square of the number of tables.

What is worth finding grows with the number of tables: tables come in *topics* (a league, an election, a
series) of a few tables to a hundred or so. A topic has two vocabularies of its own, some of the teams,
people, places or titles that there are; its tables list all of one, some of it, or refer to it.

Tables are made in blocks of 1,000, each a function of (seed, number of the block), so the corpus of n tables
is the beginning of every larger one. Another `edition` of a block has other tables about the same topics:
what is added to a lake later, or replaces some of it. Cost: some 0.2 ms a table.

    python -m benchmarks.corpora 2000            # what is in it, and the INDs counted in plain Python
    python -m benchmarks.corpora 2000 --write tables.jsonl     # or a folder, or a file that ends in .zip
"""

# Word lists read better as one string than as forty quoted words.
# ruff: noqa: SIM905

from __future__ import annotations

import argparse
import csv
import functools
import io
import itertools
import json
import sys
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import tables as bench_tables

Ints = npt.NDArray[np.int64]
Texts = npt.NDArray[np.object_]

GENERATION = 1  # part of each cached file's name: raise it when the generator's output changes
BLOCK = 1_000
MAX_ROWS, MAX_COLUMNS = 4_670, 120
PER_FOLDER = 1_000


@dataclass(frozen=True, slots=True)
class WebTable:
    """A table as it is on the web: rows of texts, now and then one that is too short."""

    name: str
    headers: list[str]
    rows: list[list[str]]


# --- vocabularies -------------------------------------------------------------------------------

COUNTRIES = (
    "United States|United Kingdom|Germany|France|Italy|Canada|Australia|Spain|Japan|Netherlands|Sweden|"
    "Brazil|Russia|China|India|Argentina|Poland|Switzerland|Belgium|Austria|Norway|Denmark|Finland|"
    "Mexico|Czech Republic|Hungary|Ireland|Portugal|New Zealand|South Africa|South Korea|Ukraine|Romania|"
    "Greece|Turkey|Croatia|Bulgaria|Serbia|Scotland|Israel|Slovakia|Cuba|Egypt|Nigeria|Chile|Colombia|"
    "Kenya|Uruguay|Wales|Slovenia|Thailand|Indonesia|Iran|Belarus|Philippines|Venezuela|Malaysia|Estonia|"
    "Latvia|Lithuania|Peru|Kazakhstan|Jamaica|Morocco|Iceland|Pakistan|Algeria|Tunisia|Paraguay|Ghana|"
    "Ecuador|Cameroon|Vietnam|Ethiopia|Singapore|Saudi Arabia|Hong Kong|Bolivia|Georgia|Iraq|Cyprus|"
    "Luxembourg|Costa Rica|Senegal|Uzbekistan|Zimbabwe|Azerbaijan|Sri Lanka|Armenia|Uganda|"
    "Trinidad and Tobago|Dominican Republic|Angola|Guatemala|Moldova|Albania|Lebanon|Bangladesh|Kuwait|"
    "Panama|Qatar|Honduras|Jordan|Macedonia|Zambia|Malta|Mongolia|Tanzania|Syria|Bahrain|Sudan|Nepal|"
    "El Salvador|Namibia|Bahamas|Puerto Rico|Fiji|Barbados|Haiti|North Korea|Libya|Mali|Mozambique|"
    "Montenegro|Botswana|Kyrgyzstan|Oman|Nicaragua|Madagascar|Guinea|Yemen|Congo|Myanmar|Burkina Faso|"
    "Liechtenstein|Togo|Benin|Cambodia|Gabon|Sierra Leone|Turkmenistan|Rwanda|Tajikistan|Malawi|Niger|"
    "Bermuda|Papua New Guinea|Suriname|Andorra|San Marino|Mauritius|Laos|Liberia|Guyana|Monaco|Belize|"
    "Lesotho|Afghanistan|Swaziland|Burundi|Gambia|Grenada|Chad|Brunei|Eritrea|Mauritania|Samoa|"
    "Cape Verde|Seychelles|Aruba|Saint Lucia|Antigua and Barbuda|Vanuatu|Somalia|Tonga|Maldives|Bhutan|"
    "Dominica|Guam|Djibouti|Comoros|Kiribati|Palau|Nauru|Tuvalu|Solomon Islands"
).split("|")
FIRST_NAMES = (
    "John David Michael James Robert William Peter Paul Thomas Mark Richard Andrew George Daniel Charles "
    "Chris Martin Steve Brian Kevin Mary Anna Maria Sarah Laura Emma Julia Jane Susan Karen Alice Helen "
    "Eva Ruth Carlos Juan José Luis Marco Paolo Pierre Jean Hans Karl Jan Ivan Sergei Igor Ali Ahmed "
    "Omar Chen Wei Li Yuki Kenji Olga Nina Ingrid Lars Erik Anders Nils Frank Henry Walter Arthur Albert "
    "Edward Samuel Joseph Patrick Sean Liam Owen Hugh Ian Colin Neil Graham Stuart Keith Barry Roger "
    "Dennis Gary Alan Simon Adam Ben Luke Max"
).split()
ONSETS = "B Br C Cl D Dr F Fr G Gr H J K Kl L M N P Pr R S Sch St T Tr V W Z".split()
VOWELS = "a e i o u ai ei ou".split()
MIDDLES = "l n r s t ll nd ng rd rk rt sk st tt v z".split()
ENDINGS = "er son man berg ton ley ford ov ic ez ski a o en well field burg ham wick mont".split()
MASCOTS = (
    "United City Rovers Athletic Town FC Wanderers Tigers Lions Eagles Bears Hawks Wolves Sharks Kings "
    "Giants Rangers Dynamo Sporting Real Union Olympic Spartans Bulls Rockets Stars Blues Reds Panthers "
    "Falcons"
).split()
TITLE_WORDS = (
    "Love Night Day Dream World Time House River Road Fire Heart Star Blue Black White Red Golden Lost "
    "Last First Secret Silent Dark Bright Broken Hidden Summer Winter Island City Garden Mirror Shadow "
    "Storm Song Dance King Queen Stranger Home Letter Game Train Ocean Mountain Bridge Window Door "
    "Street Angel Ghost Hunter Child"
).split()
GENERA = "Quercus Acer Rosa Salix Ficus Viola Carex Allium Aster Iris Lilium Pinus Erica Prunus Rubus".split()
MONTHS = "January February March April May June July August September October November December".split()
FLAGS = (
    ("Yes", "No"),
    ("W", "L"),
    ("Won", "Lost"),
    ("Win", "Loss", "Draw"),
    ("Home", "Away"),
    ("GK", "DF", "MF", "FW"),
    ("Democratic", "Republican", "Independent"),
    ("Conservative", "Labour", "Liberal Democrat", "Liberal", "Green"),
    ("Single", "Album", "EP"),
    ("Active", "Retired", "Closed"),
    ("Gold", "Silver", "Bronze"),
    ("Hard", "Clay", "Grass", "Carpet"),
    ("Nominated", "Won", "Pending"),
    ("Public", "Private"),
    ("Regular season", "Playoffs"),
    ("English", "French", "German", "Spanish", "Hindi", "Japanese"),
    ("N", "S", "E", "W"),
    ("Male", "Female"),
)
NOTES = (
    "declared a historic monument in|rebuilt after the fire of|first shown at the festival in|"
    "withdrew from the race in|replaced by a new building in|transferred on loan from|"
    "guest appearance by|recorded live in|named after the mayor of|merged with the society of|"
    "opened by the governor of|sold to a collector from|record of the|also known as the old|"
    "shared the prize with"
).split("|")
NUMBERS: Texts = np.array([str(n) for n in range(100_000)], dtype=object)
# How often each way to write nothing stands where nothing is known (the paper's table 2; "" is more).
NOTHING = ("", "—", "-", "\u2013", "N/A", "?", "Unknown", "- -", "n/a", "•", "- - -", ".", "??", "(n/a)")
NOTHING_WEIGHTS = (11280, 725, 501, 252, 131, 97, 32, 28, 27, 24, 7, 6, 6, 4)

HEADERS = {
    "rank": "Rank|No.|#|Pos|Position|Place|",
    "count": "Wins|Goals|Points|Total|Apps|Games|Losses|Draws|Gold|Silver|Bronze|Seats|Round|Played|GF|GA",
    "year": "Year|Season|Date|Founded|Opened|Released|From|To",
    "number": "Population|Votes|Attendance|Area|Height|Capacity|Elevation|Weight|Code",
    "empty": "|Notes|Ref|Image|Ref.|References|Comments|Picture",
    "dashes": "Runner-up|Notes|Film|Result|TBA|Replaced by|Chart",
    "flag": "Result|Status|Type|Party|Venue|Pos.|Medal|Surface|Language|Outcome|Gender",
    "country": "Country|Nation|Nationality|Team|Location|Country of origin",
    "city": "City|Location|Venue|Town|Place|Birthplace|District",
    "person": "Name|Player|Candidate|Director|Winner|Artist|Author|Member|Character|Driver",
    "team": "Team|Club|Opponent|Home team|Away team|Visitor",
    "title": "Title|Film|Album|Song|Episode|Work|Show|Award",
    "species": "Species|Scientific name|Taxon",
    "date": "Date|Original air date|Released|Born|Appointed",
    "score": "Score|Result|Record|Agg.|1st leg|Sets",
    "decimal": "%|Time|Average|Share|Swing|Rating|Distance (km)|Pct",
    "money": "Attendance|Prize|Population (2010)|Gross|Area (km2)|Earnings",
    "notes": "Notes|Description|Remarks|Comment|Details|Reason",
}
KINDS = tuple(HEADERS)
ENTITIES = ("team", "person", "city", "title", "species", "country")  # what a topic's vocabulary is of
# As many as there are, all primes: a walk with any stride meets each of them once before it returns.
N_ENTITIES = {"team": 3_001, "person": 100_003, "city": 20_011, "title": 200_003, "species": 30_011}
VOCABULARY_SIZES = np.array([3, 5, 7, 11, 13, 17, 23, 31, 43, 61, 89, 131, 199])
VOCABULARY_WEIGHTS = np.array([10, 14, 16, 16, 12, 10, 8, 6, 4, 2, 1, 0.6, 0.3])


@functools.cache
def vocabulary(kind: str) -> Texts:
    """All texts of a kind, the frequent ones first."""
    if kind == "country":
        return np.array(COUNTRIES, dtype=object)
    n = N_ENTITIES[kind]
    rng = np.random.default_rng([7, ENTITIES.index(kind)])
    made: dict[str, None] = {}
    while len(made) < n:
        made.update(dict.fromkeys(_entities(kind, rng, n)))
    return np.array(list(made)[:n], dtype=object)


def _entities(kind: str, rng: np.random.Generator, n: int) -> list[str]:
    def some(words: Iterable[str]) -> Texts:
        array = np.array(list(words), dtype=object)
        return array[rng.integers(0, len(array), n)]

    def surname() -> Texts:
        return some(ONSETS) + some(VOWELS) + some(MIDDLES) + some(VOWELS) + some(ENDINGS)

    if kind == "person":
        found = some(FIRST_NAMES) + " " + surname()
    elif kind == "city":
        found = surname()
    elif kind == "team":
        found = surname() + " " + some(MASCOTS)
    elif kind == "title":
        found = some(TITLE_WORDS) + some(["", " of the", " in the", " and", " without", " at"]) + " "
        found = found + some(TITLE_WORDS) + some(["", " Again", " II", " Forever", " (film)", " Tonight"])
        found = found + some(["", "", ": " + "The Return", " (song)"]) + " " + surname()
    else:
        found = some(GENERA) + " " + np.array([s.lower() for s in surname()], dtype=object)
    return list(found.tolist())


# --- a block of tables --------------------------------------------------------------------------

# A column that is not the rank or the main entity of its table is one of these, so often.
WEIGHTS = {
    "rank": 1.5,
    "count": 20.0,
    "year": 6.0,
    "number": 6.0,
    "empty": 7.4,
    "dashes": 1.2,
    "flag": 4.0,
    "country": 1.5,
    "city": 1.5,
    "person": 4.0,
    "team": 2.0,
    "title": 2.0,
    "date": 8.0,
    "score": 6.0,
    "decimal": 8.0,
    "money": 6.0,
    "notes": 7.0,
    "primary": 4.0,
    "secondary": 7.0,
}
RANK_FIRST = 0.32  # tables whose first column counts the rows
MAIN_ENTITY = 0.7  # tables with a column that lists the topic's entities
WITH_GAPS = 0.75  # columns where some cells say nothing
SHORT_ROW = 0.01  # tables whose last row lacks a cell


def block(seed: int, number: int, edition: int = 0) -> list[WebTable]:
    """The tables `number * BLOCK` to `(number + 1) * BLOCK - 1` of a corpus."""
    topics = _Topics(np.random.default_rng([seed, number]))
    rng = np.random.default_rng([seed, number, 1 + edition])
    topic = rng.permutation(topics.of_tables)

    # Shapes: a table about a topic is often as long as its vocabulary.
    n_rows = 1 + np.exp(rng.normal(1.3, 1.1, BLOCK)).astype(np.int64)
    n_rows[rng.random(BLOCK) < 0.003] *= 20
    whole = rng.random(BLOCK) < topics.whole[topic]
    n_rows[whole] = topics.size[topic[whole], 0]
    n_rows = np.minimum(np.maximum(n_rows, 1), MAX_ROWS)
    n_rows[rng.random(BLOCK) < 0.004] = 0
    n_columns = np.clip(np.rint(np.exp(rng.normal(1.54, 0.52, BLOCK))).astype(np.int64), 1, MAX_COLUMNS)

    # Columns, table after table, and cells, column after column.
    n = int(n_columns.sum())
    table = np.repeat(np.arange(BLOCK), n_columns)
    position = _within(n_columns)
    kinds = (*KINDS, "primary", "secondary")
    weights = np.array([WEIGHTS.get(kind, 0.0) for kind in kinds])
    kind = rng.choice(len(kinds), n, p=weights / weights.sum())
    full = rng.random(n) < 0.25  # lists entities, each once, instead of referring to them
    ranked = rng.random(BLOCK) < RANK_FIRST
    main = np.where(rng.random(BLOCK) < MAIN_ENTITY, ranked.astype(np.int64), -1)
    kind[ranked[table] & (position == 0)] = kinds.index("rank")
    is_main = position == main[table]
    kind[is_main] = kinds.index("primary")
    full[is_main] = rng.random(int(is_main.sum())) < 0.9
    side = (kind == kinds.index("secondary")).astype(np.int64)
    of_topic = kind >= len(KINDS)
    local = topics.kind[topic[table], side]
    kind = np.where(of_topic, np.array([KINDS.index(e) for e in ENTITIES])[local], kind)

    length = n_rows[table]
    column, row = np.repeat(np.arange(n), length), _within(length)
    texts: Texts = np.empty(len(column), dtype=object)
    numbers = _Cells(rng, column, row, length)
    for k, name in enumerate(KINDS):
        at = np.flatnonzero((kind == k)[column] & ~of_topic[column])
        texts[at] = numbers.of(name, at)
    at = np.flatnonzero(of_topic[column])
    texts[at] = topics.texts(rng, topic[table], side, full, column[at], row[at])
    _leave_gaps(rng, texts, column, kind == KINDS.index("rank"), is_main & full)

    headers = _headers(rng, kind)
    ends, offsets = np.cumsum(n_columns), np.concatenate([[0], np.cumsum(length)])
    short = rng.random(BLOCK) < SHORT_ROW
    found = []
    for t in range(BLOCK):
        low, high = int(ends[t] - n_columns[t]), int(ends[t])
        cells = texts[offsets[low] : offsets[high]].reshape(high - low, int(n_rows[t]))
        rows: list[list[str]] = cells.T.tolist()
        if short[t] and rows and len(rows[-1]) > 1:
            rows[-1].pop()
        title = f"{topics.titles[topic[t]]}, table {number * BLOCK + t}" + f" ({edition})" * bool(edition)
        found.append(WebTable(title, headers[low:high], rows))
    return found


def _within(lengths: Ints) -> Ints:
    """0 .. length - 1 for each of the lengths, one after the other."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) - np.repeat(ends - lengths, lengths)


class _Topics:
    """The topics of a block, each with two vocabularies."""

    def __init__(self, rng: np.random.Generator) -> None:
        sizes = np.minimum(np.maximum(np.exp(rng.normal(1.7, 1.0, BLOCK)).astype(np.int64), 1), 100)
        self.of_tables = np.repeat(np.arange(BLOCK), sizes)[:BLOCK]
        shape = (BLOCK, 2)
        self.kind = rng.choice(len(ENTITIES), shape, p=[0.22, 0.3, 0.16, 0.18, 0.06, 0.08])
        weights = VOCABULARY_WEIGHTS / VOCABULARY_WEIGHTS.sum()
        self.size = rng.choice(VOCABULARY_SIZES, shape, p=weights)
        self.n = np.array([len(vocabulary(e)) for e in ENTITIES])[self.kind]
        self.start = (rng.random(shape) ** 2 * self.n).astype(np.int64)  # the first are in more topics
        self.stride = 1 + (rng.random(shape) * (self.n - 1)).astype(np.int64)
        self.whole = np.where(rng.random(BLOCK) < 0.4, 0.8, 0.1)  # a series lists the same again and again
        words = rng.integers(0, len(vocabulary("title")), BLOCK)
        self.titles: list[str] = vocabulary("title")[words].tolist()

    def texts(
        self,
        rng: np.random.Generator,
        topic: Ints,
        side: Ints,
        full: npt.NDArray[np.bool_],
        column: Ints,
        row: Ints,
    ) -> Texts:
        """Cells of columns about their topics: a walk through the vocabulary, or Zipfian draws from it."""
        size = self.size[topic, side]
        start, stride = (rng.random(len(size)) * size).astype(np.int64), 1 + rng.integers(0, size - 1)
        size = size[column]
        walk = start[column] + stride[column] * row
        # A list longer than the vocabulary goes on among all entities of the kind.
        member = np.where(row < size, walk % size, row)
        drawn = np.minimum((size ** rng.random(len(column))).astype(np.int64) - 1, size - 1)
        member = np.where(full[column], member, drawn)
        t, s = topic[column], side[column]
        at = (self.start[t, s] + self.stride[t, s] * member) % self.n[t, s]
        found: Texts = np.empty(len(column), dtype=object)
        for k, kind in enumerate(ENTITIES):
            mine = self.kind[t, s] == k
            found[mine] = vocabulary(kind)[at[mine]]
        return found


class _Cells:
    """Texts of the cells of each kind of column; those of one column have one range and one style."""

    def __init__(self, rng: np.random.Generator, column: Ints, row: Ints, length: Ints) -> None:
        self.rng, self.column, self.row, self.length = rng, column, row, length
        n = len(length)
        self.style, self.low, self.spread = rng.random(n), rng.random(n), rng.random(n)

    def of(self, kind: str, at: Ints) -> Texts:
        rng, column, row = self.rng, self.column[at], self.row[at]
        u, style, low, spread = rng.random(len(at)), self.style[column], self.low[column], self.spread[column]
        if kind == "rank":
            return NUMBERS[np.minimum(row + np.where(style < 0.9, 1, (low * 30).astype(np.int64)), 99_999)]
        if kind == "count":
            # Benford's law and 1, 2, 3 before all others: powers of what is uniform
            return NUMBERS[(np.exp(u**0.9 * np.log(2 + 60 * spread**1.6)) - (style < 0.3)).astype(np.int64)]
        if kind == "year":
            year = np.where(
                style < 0.5, 1900 + (low * 110).astype(np.int64) + row % 40, 2014 - (u**1.3 * 90 * spread + 1)
            )
            return NUMBERS[year.astype(np.int64)]
        if kind == "number":
            return NUMBERS[np.exp(3 + 8 * (0.2 * u + 0.8 * low)).astype(np.int64) % 100_000]
        if kind == "empty":
            return np.full(len(at), "", dtype=object)
        if kind == "dashes":
            return _nothing(style**0.3)
        if kind == "flag":
            words = np.array([w + ("",) * (6 - len(w)) for w in FLAGS], dtype=object)
            n = np.array([len(w) for w in FLAGS])
            which = (low * len(FLAGS)).astype(np.int64)
            return words[which, (u**1.5 * n[which]).astype(np.int64)]
        if kind in ENTITIES:
            words = vocabulary(kind)
            one = np.where(style < 0.08, low, u)  # the same in all rows
            return words[
                np.minimum(
                    (len(words) ** (one ** (0.8 if kind == "country" else 0.6))).astype(np.int64) - 1,
                    len(words) - 1,
                )
            ]
        return getattr(self, "_" + kind)(u, style, low, spread, column)

    def _date(self, u: Any, style: Any, low: Any, spread: Any, column: Ints) -> Texts:
        month = np.array(MONTHS, dtype=object)[(u * 12).astype(np.int64)]
        day, year = (
            NUMBERS[1 + self.rng.integers(0, 28, len(u))],
            NUMBERS[2013 - (80 * low**2).astype(np.int64)],
        )
        return np.where(style < 0.5, month + " " + day + ", " + year, day + " " + month + " " + year)

    def _score(self, u: Any, style: Any, low: Any, spread: Any, column: Ints) -> Texts:
        most = np.where(style < 0.3, 7, 110)
        second = NUMBERS[(self.rng.random(len(u)) * most).astype(np.int64)]
        return (
            NUMBERS[(u * most).astype(np.int64)]
            + np.where(style < 0.8, "\u2013", "-").astype(object)
            + second
        )

    def _decimal(self, u: Any, style: Any, low: Any, spread: Any, column: Ints) -> Texts:
        whole, part = (100 * u).astype(np.int64), self.rng.integers(0, 100, len(u))
        ends = np.where(style < 0.4, "%", "").astype(object)
        return NUMBERS[whole] + "." + NUMBERS[np.where(style < 0.3, part % 10, part)] + ends

    def _money(self, u: Any, style: Any, low: Any, spread: Any, column: Ints) -> Texts:
        thousands = NUMBERS[(1 + np.exp(9 * (0.3 * u + 0.7 * low))).astype(np.int64)]
        rest = NUMBERS[1000 + self.rng.integers(0, 1000, len(u))]
        rest = np.array([text[1:] for text in rest.tolist()], dtype=object)
        return np.where(style < 0.2, "$", "").astype(object) + thousands + "," + rest

    def _notes(self, u: Any, style: Any, low: Any, spread: Any, column: Ints) -> Texts:
        begin = np.array(NOTES, dtype=object)[(u * len(NOTES)).astype(np.int64)]
        cities = vocabulary("city")
        end = cities[(len(cities) * self.rng.random(len(u)) ** 2).astype(np.int64)]
        number = " [" + NUMBERS[self.rng.integers(1, 400, len(u))] + "]"
        return begin + " " + end + np.where(style < 0.5, number, "")


def _nothing(u: npt.NDArray[np.float64]) -> Texts:
    steps = np.cumsum(NOTHING_WEIGHTS) / sum(NOTHING_WEIGHTS)
    return np.array(NOTHING, dtype=object)[np.minimum(np.searchsorted(steps, u), len(NOTHING) - 1)]


def _leave_gaps(
    rng: np.random.Generator,
    texts: Texts,
    column: Ints,
    without: npt.NDArray[np.bool_],
    seldom: npt.NDArray[np.bool_],
) -> None:
    """In some columns some cells say nothing, each column in its own way."""
    n = len(without)
    chance = np.where(without, 0.0, np.where(seldom, 0.05, WITH_GAPS))
    rate = np.where(rng.random(n) < chance, 0.06 + 0.3 * rng.random(n) ** 2, 0.0)
    gaps = np.flatnonzero(rng.random(len(column)) < rate[column])
    texts[gaps] = _nothing(rng.random(n))[column[gaps]]


def _headers(rng: np.random.Generator, kind: Ints) -> list[str]:
    """Names of columns, the first of each kind the most frequent; one in a hundred is the table's own."""
    found: Texts = np.empty(len(kind), dtype=object)
    for k, name in enumerate(KINDS):
        at = np.flatnonzero(kind == k)
        words = np.array(HEADERS[name].split("|"), dtype=object)
        found[at] = words[(len(words) * rng.random(len(at)) ** 2.5).astype(np.int64)]
    own = np.flatnonzero(rng.random(len(kind)) < 0.01)
    cities = vocabulary("city")
    found[own] = cities[rng.integers(0, len(cities), len(own))]
    return list(found.tolist())


# --- corpora ------------------------------------------------------------------------------------


def corpus(
    n_tables: int, first: int = 0, seed: int = bench_tables.SEED, edition: int = 0
) -> Iterator[WebTable]:
    """The tables `first` to `first + n_tables - 1`.

    >>> [t.name for t in corpus(2)] == [t.name for t in corpus(3)][:2]
    True
    """
    last = first + n_tables
    for number in range(first // BLOCK, -(-last // BLOCK)):
        low = number * BLOCK
        yield from block(seed, number, edition)[max(first - low, 0) : last - low]


def write_json_lines(tables: Iterable[WebTable], file: Path) -> None:
    """One table a line: {"name": ..., "headers": [...], "rows": [[...], ...]}."""
    with file.open("w", encoding="utf-8") as out:
        for t in tables:
            line = {"name": t.name, "headers": t.headers, "rows": t.rows}
            out.write(json.dumps(line, ensure_ascii=False, check_circular=False) + "\n")


def write_csv_folder(tables: Iterable[WebTable], folder: Path) -> None:
    """A CSV file for each table, a thousand in a folder: 000/000017.csv."""
    for name, text in _csv_files(tables):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="")


def write_csv_zip(tables: Iterable[WebTable], file: Path) -> None:
    """The same files in one archive."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, text in _csv_files(tables):
            archive.writestr(name, text)


def _csv_files(tables: Iterable[WebTable]) -> Iterator[tuple[str, str]]:
    for i, t in enumerate(tables):
        text = io.StringIO()
        out = csv.writer(text, lineterminator="\n")
        out.writerow(t.headers)
        out.writerows(t.rows)
        yield f"{i // PER_FOLDER:03}/{i:06}.csv", text.getvalue()


def json_lines(n_tables: int, first: int = 0, edition: int = 0, name: str | None = None) -> Path:
    """The file of a corpus, made once and kept in the folder of all generated data.

    With a `name` the file has that one, in a folder of its own. Tables of files of one name have the same
    names, line by line.
    """
    stem = f"web-{first}-{n_tables}-e{edition}-seed{bench_tables.SEED}-g{GENERATION}"
    file = bench_tables.DATA / stem / name if name else bench_tables.DATA / f"{stem}.jsonl"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        write_json_lines(corpus(n_tables, first, edition=edition), part)
        part.rename(file)
    return file


# --- counted in plain Python --------------------------------------------------------------------


def value_sets(tables: Iterable[WebTable]) -> list[frozenset[str]]:
    """The values of every column, table after table; a cell that a short row lacks has none."""
    found: list[frozenset[str]] = []
    for t in tables:
        filled = itertools.zip_longest(*t.rows) if t.rows else [()] * len(t.headers)
        columns = [frozenset(c) - {None} for c in filled]
        found += columns + [frozenset()] * (len(t.headers) - len(columns))
    return found


FREQUENT = 64  # columns; a value with more of them has all columns as one long integer


def inds_by_postings(
    sets: list[frozenset[str]],
    dependents: Iterable[int] | None = None,
    references: Iterable[int] | None = None,
) -> Iterator[tuple[int, Ints]]:
    """Each dependent column with the other columns, ascending, that contain all its values.

    De Marchi's inverted index in plain Python: of a column with a rare value, the columns with the rarest are
    tried one by one; else the columns of its values, one bit each, are ANDed.
    """
    n = len(sets)
    where: dict[str, list[int]] = {}
    for column in range(n) if references is None else references:
        for value in sets[column]:
            where.setdefault(value, []).append(column)
    bits: dict[str, int] = {}
    for value, columns in where.items():
        if len(columns) > FREQUENT:
            marked = np.zeros(n + 1, dtype=np.bool_)
            marked[columns] = True
            bits[value] = int.from_bytes(np.packbits(marked, bitorder="little").tobytes(), "little")
    nowhere: list[int] = []
    for column in range(n) if dependents is None else dependents:
        values = sets[column]
        if not values:
            continue
        rarest = min((where.get(value, nowhere) for value in values), key=len)
        if len(rarest) <= FREQUENT:
            found = np.array([c for c in rarest if c != column and values <= sets[c]], dtype=np.int64)
        else:
            every = functools.reduce(int.__and__, (bits[value] for value in values)) & ~(1 << column)
            octets = np.frombuffer(every.to_bytes(n // 8 + 1, "little"), dtype=np.uint8)
            found = np.flatnonzero(np.unpackbits(octets, bitorder="little"))
        yield column, found


def described(n_tables: int, edition: int = 0) -> dict[str, Any]:
    """What a corpus has, to be held against what the paper says."""
    made = list(corpus(n_tables, edition=edition))
    cells = Counter(cell for t in made for row in t.rows for cell in row)
    headers = Counter(name for t in made for name in t.headers)
    top = cells.most_common(25)
    found: dict[str, Any] = {
        "tables": n_tables,
        "columns": sum(len(t.headers) for t in made),
        "columns a table": sum(len(t.headers) for t in made) / n_tables,
        "most columns": max(len(t.headers) for t in made),
        "rows a table": sum(len(t.rows) for t in made) / n_tables,
        "most rows": max(len(t.rows) for t in made),
        "cells": cells.total(),
        "values": len(cells),
        "names of columns": len(headers),
        "share of the 25 most frequent values": sum(n for _, n in top) / cells.total(),
        "share of the empty text": cells[""] / cells.total(),
        "most frequent": [value for value, _ in top],
    }
    if n_tables <= 20_000:  # their number grows with the square
        found["INDs"] = sum(len(refs) for _, refs in inds_by_postings(value_sets(made)))
    return found


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpora", description=__doc__.split("\n")[0])
    parser.add_argument("tables", type=int)
    parser.add_argument("--first", type=int, default=0, help="the number of the first table")
    parser.add_argument("--edition", type=int, default=0, help="other tables about the same topics")
    parser.add_argument("--write", type=Path, help="a .jsonl file, a .zip of CSV files, or a folder for them")
    args = parser.parse_args(argv)
    if args.write is None:
        for what, value in described(args.tables, args.edition).items():
            print(f"{what}: {value:,.2f}" if isinstance(value, float) else f"{what}: {value}")
        return 0
    made = corpus(args.tables, args.first, edition=args.edition)
    if args.write.suffix == ".jsonl":
        write_json_lines(made, args.write)
    elif args.write.suffix == ".zip":
        write_csv_zip(made, args.write)
    else:
        write_csv_folder(made, args.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
