"""The tables of IncDC's table 10: what the paper says of each, and stand-ins for those that are not at hand.

A stand-in has the published number of rows, of columns and of predicates (`fli` has two more). It is made to
be like what it stands for: codes with their names, places within places, numbers that ascend together, flags,
a key or none. Its number of constraints is of the published order: the work depends on it. What makes it so:

- A column that others determine brings few constraints, the same at any number of rows.
- The other columns are drawn independently, each as fine as it may be: n rows have n ** 2 pairs, and once the
  finest values of all columns together are rarer than one pair in so many, combinations of them that no two
  rows happen to have are constraints. Inserts (the table's future, drawn alike) break some of those.

Columns that are not to be compared with each other have no values in common.

As in `tables`, every cell is a function of seed, column and row number. Cost: about 1 us per row and column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.tables import (
    DATA,
    GENERATION,
    SEED,
    BenchTable,
    Ints,
    Rows,
    pick,
    unit,
    weighted,
    whole,
    zipf,
)


@dataclass(frozen=True)
class Figures:
    """A line of table 10: `changes` and `seconds` are those of 10 % inserts, `across` is of `predicates`."""

    title: str
    n_rows: int
    n_columns: int
    predicates: int
    across: int
    dcs: int
    changes: int
    seconds: float  # of IncDC, on 6 cores at 1.9 GHz


# By the mode that measures the table or its stand-in.
TABLE_10 = {
    "table10-atom": Figures("Atom", 105_000, 13, 60, 6, 544, 78, 28.10),
    "table10-fdr25": Figures("FDR25", 187_000, 25, 130, 60, 2_651, 218, 17.37),
    "table10-fdr15": Figures("FDR15", 187_000, 15, 44, 6, 412, 1, 7.71),
    "table10-claims": Figures("Claim", 112_000, 11, 36, 2, 33, 9, 3.73),
    "table10-fli": Figures("FLI", 367_000, 14, 60, 14, 62, 0, 19.27),
    "table10-ncv": Figures("NCV", 675_000, 15, 38, 0, 727, 286, 14.36),
    "table10-dit": Figures("DIT", 780_000, 8, 52, 12, 50, 24, 7.29),
    "airport": Figures("AirPort", 30_000, 11, 32, 6, 31, 10, 0.70),
    "table10-insp": Figures("INSP", 150_000, 13, 40, 2, 4_076, 2_281, 16.90),
    "adult-tenth": Figures("Adult", 24_000, 15, 60, 6, 59_291, 37_627, 467.03),
    "table10-uce": Figures("UCE", 10_000, 11, 60, 6, 27_813, 21_655, 160.39),
}


def coded(prefix: str, numbers: Ints) -> pa.Array:
    """Text: the prefix with each number.

    >>> coded("C", np.array([7, 10])).to_pylist()
    ['C7', 'C10']
    """
    return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), "")


def flag(seed: int, stream: str, rows: Rows, share: float) -> pa.Array:
    """'Y' in that share of the rows, else 'N'."""
    return pick(("N", "Y"), (unit(seed, stream, rows) < share).astype(np.int64))


def table(**columns: pa.Array | npt.NDArray[np.int64]) -> pa.Table:
    return pa.table({name: pa.array(column) for name, column in columns.items()})


def decoded(claims: BenchTable) -> BenchTable:
    """A table of claims of which all cells are codes, numbered as they first occur in a file.

    The days (A, B) and the amount (I) stay numbers, as the paper has three columns of them; they are in the
    order of the codes. All others are text.
    """

    def make(numbers: Rows) -> pa.Table:
        rows = claims.rows(numbers)
        texts = {name: coded(name, rows[name].to_numpy()) for name in rows.column_names if name not in "ABI"}
        return pa.table({name: texts.get(name, rows[name]) for name in rows.column_names})

    csv, parquet = (path.with_stem(f"{path.stem}-decoded") for path in (claims.csv, claims.parquet))
    return replace(claims, csv=csv, parquet=parquet, make=make)


# --- one function a table ---------------------------------------------------------------------------


def atom_rows(rows: Rows, seed: int) -> pa.Table:
    """Atoms of proteins: molecule > residue > atom, places in space, two numberings of the residues."""
    residue, place = np.divmod(rows, 8)
    molecule, position = np.divmod(residue, 60)
    amino = zipf(seed, "amino", molecule % 20 * 60 + position, 20, 0.5)
    entity = molecule % 20
    return table(
        id=1_000_000 + rows,
        kind=pick(("ATOM", "HETATM"), (position >= 55).astype(np.int64)),
        element=pick(tuple("NCCOCCSC"), place),
        name=coded("A", place),
        residue=coded("R", amino),
        chain=coded("CH", position // 20),
        entity=coded("E", entity),
        label_seq=1 + position,
        auth_seq=1 + position + entity % 5 * 4,
        x=1_000 + whole(seed, "x", rows, 0, 9),
        y=2_000 + whole(seed, "y", rows, 0, 9),
        z=3_000 + whole(seed, "z", rows, 0, 9),
        b_factor=4_000 + zipf(seed, "b", rows, 8, 0.5),
    )


FDR_VALUES = 10_000  # two columns agree in some pair of 187,000 rows, three hardly ever


def fdr15_rows(rows: Rows, seed: int) -> pa.Table:
    """Any three columns are a key; two of the columns are numbers of the same kind."""
    drawn = [whole(seed, f"fdr {i}", rows, 0, FDR_VALUES - 1) for i in range(15)]
    names = [f"c{i}" for i in range(15)]
    return table(
        **{name: coded(name + "_", d) for name, d in zip(names[:13], drawn[:13], strict=True)},
        c13=drawn[13],
        c14=drawn[14],
    )


def fdr25_rows(rows: Rows, seed: int) -> pa.Table:
    """As `fdr15_rows`, but for five numbers: one, and others that are larger by fixed differences.

    All five are compared: each difference between two of the numbers is different from the others.
    """
    drawn = [whole(seed, f"fdr {i}", rows, 0, FDR_VALUES - 1) for i in range(21)]
    texts = {f"c{i}": coded(f"c{i}_", drawn[i]) for i in range(20)}
    return table(**texts, **{f"n{i}": drawn[20] + 600 * mark for i, mark in enumerate((0, 1, 4, 9, 11))})


def fli_rows(rows: Rows, seed: int) -> pa.Table:
    """Flights within a state, day by day: airport > zone, carrier > alliance; no key.

    No combination of the columns that others do not determine is rare, so inserts break nothing.
    """
    start, end = zipf(seed, "from", rows, 8, 0.4), zipf(seed, "to", rows, 8, 0.4)
    carrier = whole(seed, "carrier", rows, 0, 2)
    return table(
        day_of_week=1_000 + whole(seed, "day", rows, 0, 6),
        origin_id=10_000 + 7 * start,
        dest_id=10_000 + 7 * end,
        origin_fips=np.full_like(rows, 12),
        dest_fips=np.full_like(rows, 12),
        origin_zone=coded("Z", start // 4),
        dest_zone=coded("Z", end // 4),
        carrier=coded("AL", carrier),
        alliance=coded("G", carrier // 2),
        hour=coded("H", whole(seed, "hour", rows, 0, 2)),
        month=coded("M", np.full_like(rows, 1)),
        year=coded("Y", np.full_like(rows, 2012)),
        cancelled=flag(seed, "cancelled", rows, 0.04),
        diverted=coded("D", np.zeros_like(rows)),
    )


def ncv_rows(rows: Rows, seed: int) -> pa.Table:
    """Voters: precinct > zip > city > county; street, names, what is known of them; a key."""
    precinct = zipf(seed, "precinct", rows, 3_600, 0.3)
    first = zipf(seed, "first", rows, 800, 0.6)
    status = weighted(seed, "status", rows, (80, 12, 5, 3))
    return table(
        voter=1_000_000 + rows,
        age=18 + whole(seed, "age", rows, 0, 59),
        county=coded("CO", precinct // 360),
        city=coded("CI", precinct // 72),
        zip=coded("Z", precinct // 24),
        precinct=coded("P", precinct),
        street=coded("ST", zipf(seed, "street", rows, 8_000, 0.3)),
        last_name=coded("L", zipf(seed, "last", rows, 6_000, 0.5)),
        first_name=coded("F", first),
        gender=pick(("F", "M"), first % 2),
        status=coded("S", status),
        active=pick(("Y", "N"), np.minimum(status, 1)),
        party=coded("PA", weighted(seed, "party", rows, (40, 30, 29, 1))),
        race=coded("RA", weighted(seed, "race", rows, (70, 20, 8, 2))),
        state=coded("NC", np.zeros_like(rows)),
    )


def dit_rows(rows: Rows, seed: int) -> pa.Table:
    """Tags on a genome: region > place > tag; later ones may be longer."""
    place = zipf(seed, "place", rows, 2_000, 0.4)
    tag = whole(seed, "tag", place, 0, 299)
    start = 100_000 + 40 * place
    longer = (rows >= 800_000) & (unit(seed, "longer", rows) < 0.01)
    length = whole(seed, "length", rows, 1, 2) + longer
    return table(
        tag=10_000_000 + tag,
        region=1_000 + place // 150,
        start=start,
        end=start + 40 * length,
        hit_start=np.ones_like(rows),
        hit_end=length,
        side=pick(("L", "R"), whole(seed, "side", rows, 0, 1)),
        strand=pick(("plus", "minus"), whole(seed, "strand", rows, 0, 1)),
    )


def insp_rows(rows: Rows, seed: int) -> pa.Table:
    """Inspections of restaurants: licence > names, kind, address > zip, city > state; a number is the key."""
    licence = zipf(seed, "licence", rows, 40_000, 0.4)
    address = licence // 2
    brand = zipf(seed, "brand", licence, 3_000, 0.6)
    renamed = unit(seed, "renamed", licence) < 0.2
    facility = zipf(seed, "facility", licence, 12, 1.0)
    return table(
        inspection=1_000_000 + rows,
        licence=100_000 + licence,
        zip=60_000 + address // 200,
        name=coded("B", brand),
        alias=coded("B", np.where(renamed, zipf(seed, "alias", licence, 3_000, 0.6), brand)),
        facility=coded("FA", facility),
        risk=coded("RI", np.minimum(facility // 3, 2)),
        address=coded("AD", address),
        city=coded("CI", (address + whole(seed, "near", address, 0, 400)) // 2_000),
        state=coded("IL", address // 10_000),
        quarter=coded("Q", whole(seed, "quarter", rows, 0, 79)),
        occasion=coded("OC", zipf(seed, "occasion", rows, 12, 0.8)),
        result=coded("RE", zipf(seed, "result", rows, 8, 0.8)),
    )


def uce_rows(rows: Rows, seed: int) -> pa.Table:
    """Persons of a census: what they are, how much they work, what they earn in all and by work."""
    age = whole(seed, "age", rows, 0, 69)
    hours = zipf(seed, "hours", rows, 20, 0.8)
    wage = hours // 4 * 5 + zipf(seed, "wage", rows, 8, 0.5)
    other = zipf(seed, "other", rows, 12, 1.5)
    return table(
        age=1_000 + age,
        schooling=2_000 + np.minimum(age // 2, zipf(seed, "schooling", rows, 14, 0.4)),
        hours=3_000 + hours,
        weeks=4_000 + zipf(seed, "weeks", rows, 8, 1.2),
        wage=wage,
        income=wage + other,
        rooms=5_000 + whole(seed, "rooms", rows, 1, 9),
        rent=6_000 + zipf(seed, "rent", rows, 20, 0.7),
        sex=pick(("F", "M"), whole(seed, "sex", rows, 0, 1)),
        status=coded("S", weighted(seed, "status", rows, (50, 30, 12, 8))),
        state=coded("US", zipf(seed, "state", rows, 16, 0.7)),
    )


MAKERS: dict[str, Callable[[Rows, int], pa.Table]] = {
    "atom": atom_rows,
    "fdr25": fdr25_rows,
    "fdr15": fdr15_rows,
    "fli": fli_rows,
    "ncv": ncv_rows,
    "dit": dit_rows,
    "insp": insp_rows,
    "uce": uce_rows,
}


def stand_in(name: str, n_rows: int, seed: int = SEED, folder: Path = DATA) -> BenchTable:
    """The table `name` (a key of `MAKERS`) with `n_rows` rows, and as many in its future.

    >>> lines = {name: TABLE_10[f"table10-{name}"] for name in MAKERS}
    >>> all(stand_in(name, 1).n_columns == line.n_columns for name, line in lines.items())
    True
    >>> stand_in("ncv", 10).rows(np.arange(5, 15)) == stand_in("ncv", 20).rows(np.arange(5, 15))
    True
    """
    stem = f"{name}-{n_rows}-seed{seed}-g{GENERATION}"
    csv, parquet = (folder / f"{stem}.{kind}" for kind in ("csv", "parquet"))
    return BenchTable(name, n_rows, csv, parquet, lambda rows: MAKERS[name](rows, seed), n_rows)
