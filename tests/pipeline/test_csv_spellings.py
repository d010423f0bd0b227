"""CSV as people have it: what is recognised, what it is said to be, and what is left to the letter."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import json
import math
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.app.report.changes import print_change
from holdfast.app.report.paper import Paper
from holdfast.core.rows import encoding
from holdfast.core.sources import ReadOptions, csv_plan
from holdfast.core.sources.csv_comments import without_comments
from holdfast.core.sources.respelling import WORDS
from holdfast.errors import ColumnTypeError, SchemaError, SourceError, UnknownColumnError, UsageError
from relations import live_rows


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[holdfast.Workspace]:
    with holdfast.open(tmp_path / "w", engine="inline") as opened:
        yield opened


def tracked(text: str, **options: Any) -> tuple[dict[str, list[Any]], dict[str, str], tuple[str, ...]]:
    """(values by column, types, notes) of a CSV file as a table has them."""
    with tempfile.TemporaryDirectory() as folder, holdfast.open(f"{folder}/w", engine="inline") as ws:
        path = Path(folder, "t.csv")
        path.write_text(text, newline="")
        change = ws.track("t", path, options=options)
        relation = ws.writer.tables.rows(ws.writer.tables.state("t"))
        columns = live_rows(relation).to_pydict()
        return columns, {c.name: str(c.type) for c in ws.schema("t").columns}, change.notes


def column(texts: Sequence[str], **options: Any) -> tuple[list[Any], str, tuple[str, ...]]:
    """The same of one column of a file of two; quoted are texts that have to be."""
    cells = [f'"{text}"' if "," in text else text for text in texts]
    columns, types, notes = tracked("i,x\n" + "".join(f"{i},{c}\n" for i, c in enumerate(cells)), **options)
    return columns["x"], types["x"], notes


# -- dates ---------------------------------------------------------------------------------------

DAYS = st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))


@example(days=[dt.date(2026, 12, 31)], mark="/", padded=True, order="dmy")
@example(days=[dt.date(2026, 2, 3)], mark=".", padded=False, order="mdy")
@settings(max_examples=25)
@given(
    days=st.lists(DAYS, min_size=1, max_size=4),
    mark=st.sampled_from("/.-"),
    padded=st.booleans(),
    order=st.sampled_from(["dmy", "mdy"]),
)
def test_dates(days: list[dt.date], mark: str, padded: bool, order: str) -> None:
    width = 2 if padded else 1
    parts = [{"d": f"{d.day:0{width}}", "m": f"{d.month:0{width}}", "y": f"{d.year:04}"} for d in days]
    texts = [mark.join(part[c] for c in order) for part in parts]
    values, kind, notes = column(texts)
    if any(d.day > 12 for d in days):
        assert (values, kind) == (days, "date")
        first = {"dmy": "day", "mdy": "month"}[order]
        assert [n for n in notes if f"x: dates are read {first} first; --dates" in n] == list(notes)
    else:
        assert (values, kind) == (texts, "text")
        [note] = notes
        assert "x: dates are texts, since day and month cannot be told apart; --dates dmy" in note
    values, kind, notes = column(texts, dates=order)
    assert (values, kind, notes) == (days, "date", ())
    assert column(texts, dates="ymd") == (texts, "text", ())


def test_a_later_value_that_is_no_date_makes_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_plan, "SAMPLE_ROWS", 2)
    texts = ["31/12/2026", "01/02/2026", "31/02/2026"]
    values, kind, [note] = column(texts)
    assert (values, kind) == (texts, "text")
    assert note == (
        "t: x: texts, since not all are date as the first ones are; --types x=date reads them so, or names "
        "one that is not"
    )


@settings(max_examples=25)
@given(
    times=st.lists(
        st.datetimes(dt.datetime(2, 1, 1), dt.datetime(9998, 1, 1)).map(lambda t: t.replace(microsecond=0)),
        min_size=1,
        max_size=4,
    ),
    order=st.sampled_from(["dmy", "mdy", "ymd"]),
    mark=st.sampled_from("/-"),
    padded=st.booleans(),
    clock=st.sampled_from(["%H:%M", "%H:%M:%S", "%H:%M:%S.25"]),
    zones=st.none() | st.lists(st.sampled_from(["Z", "+00:00", "-0530", "+02"]), min_size=4, max_size=4),
    split_bytes=st.sampled_from([1 << 20, 1]),
)
@example(
    times=[dt.datetime(2026, 12, 31, 14, 5), dt.datetime(2026, 1, 2, 3, 4)],
    order="dmy",
    mark="/",
    padded=False,
    clock="%H:%M",
    zones=None,
    split_bytes=1,
)
def test_times_on_days(
    times: list[dt.datetime],
    order: str,
    mark: str,
    padded: bool,
    clock: str,
    zones: list[str] | None,
    split_bytes: int,
) -> None:
    """However they are spelt, and wherever the file is cut; with offsets they are instants."""
    width = 2 if padded else 1
    texts, expected = [], []
    for k, t in enumerate(times):
        part = {"d": f"{t.day:0{width}}", "m": f"{t.month:0{width}}", "y": f"{t.year:04}"}
        zone = zones[k] if zones else ""
        texts.append(mark.join(part[c] for c in order) + "T "[k % 2] + t.strftime(clock) + zone)
        t = t.replace(second=t.second if "%S" in clock else 0, microsecond=250_000 if ".25" in clock else 0)
        offset = {"-0530": dt.timedelta(hours=-5.5), "+02": dt.timedelta(hours=2)}.get(zone, dt.timedelta(0))
        expected.append(t if not zones else (t - offset).replace(tzinfo=dt.UTC))
    kind = "timestamp[us,utc]" if zones else "timestamp[us]"
    with pytest.MonkeyPatch.context() as patch:
        for name in ("WHOLE_BYTES", "MIN_SPLIT_BYTES", "INLINE_SPLIT_BYTES"):
            patch.setattr(encoding, name, split_bytes)
        assert column(texts, dates=order)[:2] == (expected, kind)
        values, guessed, notes = column(texts)
        if order == "ymd" or any(t.day > 12 for t in times):
            assert (values, guessed) == (expected, kind)
        else:
            assert (values, guessed) == (texts, "text")
            assert "since day and month cannot be told apart; --dates dmy" in notes[0]
        assert column(texts, types={"x": "text"}) == (texts, "text", ())


@pytest.mark.parametrize(
    ("texts", "kind", "says"),
    [
        (["2026/01/31", "2026-2-1"], "date", "dates and times are read, year first; --types x=text keeps"),
        (["2026-01-02 03:04"], "timestamp[us]", "dates and times are read, year first; --types x=text"),
        (
            ["2026-01-02T03:04:05+01:00"],
            "timestamp[us,utc]",
            "x: times with an offset are instants, kept as UTC",
        ),
        (
            ["2026-01-02T03:04:05Z", "2026-01-02 03:04:05"],
            "text",
            "dates are texts as they are spelt; 2026-12-31",
        ),
        (["2026-01-02", "2026-01-02 03:04"], "text", "dates are texts as they are spelt"),
        (["2026-02-31 03:04"], "text", "dates are texts as they are spelt"),
        (["2026-01-02 24:00"], "text", "dates are texts as they are spelt"),
        (["2026-01-02T03:04:05+25:00"], "text", "dates are texts as they are spelt"),
        (["31.12.26", "01.02.26"], "text", "since their years have two digits; 2026-12-31 and 31/12/2026"),
        (["31/12/26 14:05"], "text", "since their years have two digits"),
        (["05-Jan-2026", "6 May 2026"], "text", "since their months are words; 2026-12-31 and 31/12/2026"),
        (["January 5, 2026", "dec. 31 2025"], "text", "since their months are words"),
        (["5:05 PM", "11:30:15 a.m."], "text", "times of the day are texts as they are spelt, which have"),
        (["17:05", "9:30"], "text", "--types x=time reads them"),
        (["yes", "No"], "text", "x: yes and no are texts; --types x=bool reads them as booleans"),
        (["t", "f", "T"], "text", "x: t and f are texts; --types x=bool"),
        (["12/31/2026 2:05 PM"], "text", "dates are texts as they are spelt"),
        (["10%", "5.5 %"], "text", "numbers are texts, for the signs beside them"),
        (["$1,234.50", "€ 3"], "text", "numbers are texts, for the signs beside them"),
        (["1,234.50", "12"], "text", "--thousands , reads them as numbers"),
        (["1.234,56", "12"], "text", "--thousands . --decimal , reads them as numbers"),
        (["1 234,56", "12"], "text", "--thousands ' ' --decimal , reads them as numbers"),
        (["1,234", "12,000"], "text", "--decimal , says decimal, --thousands , of thousands"),
    ],
)
def test_what_looks_like_a_date_or_a_number_is_told(texts: list[str], kind: str, says: str) -> None:
    values, read, notes = column(texts)
    assert read == kind
    assert any(says in note for note in notes)
    assert kind != "text" or values == texts


CLOCKS = ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S%p")


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.times(), st.sampled_from(CLOCKS)),
        min_size=1,
        max_size=5,
    ),
    st.booleans(),
)
def test_times_of_the_day_however_they_are_spelt(spelt: list[tuple[dt.time, str]], padded: bool) -> None:
    """Where the type is said; else they are texts, and it is said that they are."""
    texts, times = [], []
    for time, form in spelt:
        text = time.strftime(form)
        texts.append(text if padded else text.removeprefix("0").replace("PM", "p.m.").replace("AM", "am"))
        time = time if "%f" in form else time.replace(microsecond=0)
        times.append(time if "%S" in form else time.replace(second=0))
    assert column(texts, types={"x": "time"})[:2] == (times, "time[us]")
    values, kind, notes = column(texts)
    assert (values, kind) == (texts, "text")
    assert "--types x=time reads them" in notes[0]


@pytest.mark.parametrize("text", ["24:00", "9:60", "13:00 pm", "0:30 am", "9", "9:30:61", "-9:30", "9:3"])
def test_what_is_no_time_of_the_day(text: str) -> None:
    with pytest.raises(ColumnTypeError, match=f"has '{text}'"):
        column(["9:30", text], types={"x": "time"})
    assert not column(["9:30", text])[2]


def test_batches_spell_dates_and_times_as_they_like_with_the_year_first(
    ws: holdfast.Workspace, tmp_path: Path
) -> None:
    times = pa.array([dt.datetime(2026, 1, 2, 3, 4)], pa.timestamp("s"))
    instants = pa.array([dt.datetime(2026, 1, 2, 3, 4, tzinfo=dt.UTC)], pa.timestamp("ms", "UTC"))
    clock = [dt.time(15, 5)]
    ws.track("t", pa.table({"day": [dt.date(2026, 1, 2)], "at": times, "when": instants, "open": clock}))
    batch = tmp_path / "b.csv"
    batch.write_text("day,at,when,open\n2026/1/2,2026-01-02T03:04,2026-01-02 05:04+02:00,3:05 PM\n")
    [told] = ws.apply("t", snapshot=batch).tables
    assert (told.n_inserted, told.n_deleted, told.n_unchanged) == (0, 0, 1)
    batch.write_text("day,at,when,open\n2026/1/2,2.1.2026 03:04,2026-01-02 05:04,15:05\n")
    with pytest.raises(ColumnTypeError, match=r"'at' .*Next step: say --dates dmy or mdy"):
        ws.apply("t", inserts=batch)
    with pytest.raises(ColumnTypeError, match=r"'when' .* has '2026-01-02 05:04'"):
        ws.apply("t", inserts=batch, options={"dates": "dmy"})


# -- numbers -------------------------------------------------------------------------------------


@example(numbers=[Decimal("1.234"), Decimal("5.678")])
@settings(max_examples=25)
@given(
    numbers=st.lists(
        st.decimals(-9999, 9999, places=2) | st.decimals(-9, 9, places=3), min_size=1, max_size=4
    ).filter(lambda numbers: not any(n.is_signed() and not n for n in numbers))
)
def test_a_decimal_comma(numbers: list[Decimal]) -> None:
    points = [str(n) for n in numbers]
    texts = [text.replace(".", ",") for text in points]
    values, kind, notes = column(texts)
    expected, plain, _ = column(points)  # whatever the type rule says of them
    if all(len(text.partition(",")[2]) == 3 for text in texts):
        assert (values, kind) == (texts, "text")
        assert any("--decimal , says decimal" in note for note in notes)
    else:
        assert (values, kind) == (expected, plain) or plain == "text"
        assert plain == "text" or any("a comma is the decimal point; --decimal . keeps" in n for n in notes)
    assert column(texts, decimal=",")[:2] == (expected if plain != "text" else texts, plain)
    assert column(texts, decimal=".")[:2] == (texts, "text")


@pytest.mark.parametrize(
    ("texts", "values", "kind"),
    [
        (["1e5", "2", "0.5"], [1e5, 2.0, 0.5], "float"),
        (["1E+05", "-2.5e-3"], [1e5, -0.0025], "float"),
        (["1e5", "x"], ["1e5", "x"], "text"),
        (["12e3x", "1"], ["12e3x", "1"], "text"),
        (["1e999", "1"], ["1e999", "1"], "text"),
    ],
)
def test_exponents(texts: list[str], values: list[Any], kind: str) -> None:
    read = column(texts)
    assert read[:2] == (values, kind)
    assert bool(read[2]) == (kind != "text")
    assert column(texts, types={"x": "text"}) == (texts, "text", ())


@pytest.mark.parametrize("split_bytes", [1 << 20, 1])
def test_thousands(split_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_plan, "SAMPLE_ROWS", 2)
    for name in ("WHOLE_BYTES", "MIN_SPLIT_BYTES", "INLINE_SPLIT_BYTES"):
        monkeypatch.setattr(encoding, name, split_bytes)
    ints = ["1", "12", "1,234", "-1,234,567", "1234"]
    assert column(ints, thousands=",") == ([1, 12, 1234, -1234567, 1234], "int", ())
    texts = ["1.234,50", "12,25", "0,75", "1.000.000,00"]
    numbers = [Decimal("1234.50"), Decimal("12.25"), Decimal("0.75"), Decimal(1000000)]
    assert column(texts, thousands=".") == (numbers, "decimal(18,2)", ())
    assert column(texts, thousands=".", decimal=",") == (numbers, "decimal(18,2)", ())
    assert column(["1 234", "7"], thousands=" ")[:2] == ([1234, 7], "int")
    for odd in ("1,23", "0,123", "1,2345", ",123", "12,34,567", "1,,234"):
        values, kind, notes = column(["1", "2", odd], thousands=",")
        assert (values, kind) == (["1", "2", odd], "text")
        assert "--types x=int reads them so, or names one that is not" in notes[0]
    assert column(["2", "1,234"], types={"x": "float"}, thousands=",")[0] == [2.0, 1234.0]
    for wrong in ("", "1", "-", "ab"):
        with pytest.raises(UsageError, match="thousands is"):
            column(ints, thousands=wrong)


def test_thousands_and_decimal_commas_behind_the_sample(
    ws: holdfast.Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is asked for holds where the first values do not show it, and in batches."""
    monkeypatch.setattr(csv_plan, "SAMPLE_ROWS", 2)
    path = tmp_path / "t.csv"
    path.write_text('n,x\n1,1\n2,2\n"1,234",3\n')
    ws.track("t", path, options={"thousands": ","})
    path.write_text('n,x\n1,1\n"1,234",2\n5,"3,000"\n')
    [told] = ws.apply("t", inserts=path).tables
    assert (told.n_inserted, [str(t) for t in ws.schema("t").types]) == (3, ["int", "int"])
    assert column(["1", "2", "3,5"], decimal=",")[:2] == ([1.0, 2.0, 3.5], "float")


def test_decimals_of_different_digits() -> None:
    numbers = [Decimal("1.50"), Decimal("2.75"), Decimal(3)]
    assert column(["1.50", "2.75", "3"]) == (numbers, "decimal(18,2)", ())
    texts = ["1.50", "1.5", "12"]  # two texts that may be versions: to the letter
    values, kind, [note] = column(texts)
    assert (values, kind) == (texts, "text")
    assert note.endswith("--types x=decimal(18,2) reads them as numbers")
    values, kind, notes = column(texts, types={"x": "decimal(18,2)"})
    assert (values, kind, notes) == ([Decimal("1.5"), Decimal("1.5"), Decimal(12)], "decimal(18,2)", ())


@pytest.mark.parametrize("split_bytes", [1 << 20, 30, 1])
def test_whole_numbers_behind_the_sample(split_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer does not depend on how the file is cut."""
    monkeypatch.setattr(csv_plan, "SAMPLE_ROWS", 2)
    for name in ("WHOLE_BYTES", "MIN_SPLIT_BYTES", "INLINE_SPLIT_BYTES"):
        monkeypatch.setattr(encoding, name, split_bytes)
    for texts, kind in (
        (["1", "2", "1.50", "3", "2.25"], "decimal(18,2)"),
        (["1", "2", "1.55", "3", "2.25"], "float"),
        (["1", "1.55", "2.50", "3"], "decimal(18,2)"),
        (["1", "1.5", "2.50", "3"], "text"),
        (["1.50", "2.75", "3"], "text"),
        (["1", "2", "1.50", "3.00"], "text"),
    ):
        assert column(texts)[1] == kind


def test_a_batch_may_spell_decimals_otherwise(ws: holdfast.Workspace, tmp_path: Path) -> None:
    path, batch = tmp_path / "t.csv", tmp_path / "b.csv"
    path.write_text("id,price\n1,1.50\n2,3.50\n3,4.00\n")
    ws.track("t", path)
    batch.write_text("id,price\n2,3.5\n3,4\n")
    [told] = ws.apply("t", deletes=batch).tables
    assert (told.n_deleted, ws.n_rows("t")) == (2, 1)
    [told] = ws.apply("t", inserts=batch).tables
    batch.write_text("id,price\n1,1.5\n2,3.500\n3,4.0\n")
    [told] = ws.apply("t", snapshot=batch).tables
    assert (told.n_inserted, told.n_deleted, told.n_unchanged) == (0, 0, 3)
    batch.write_text("id,price\n4,1.505\n")
    with pytest.raises(ColumnTypeError, match=r"has '1.505' .*--types price=decimal\(18,3\), or mend"):
        ws.apply("t", inserts=batch)


def test_what_a_value_with_a_decimal_comma_needs(ws: holdfast.Workspace, tmp_path: Path) -> None:
    """The column knows the comma: it lacks digits."""
    path, batch = tmp_path / "t.csv", tmp_path / "b.csv"
    path.write_text('id,amt\n1,"1,5"\n2,"2,0"\n')
    ws.track("t", path)
    batch.write_text('id,amt\n3,"7,25"\n')
    with pytest.raises(ColumnTypeError) as caught:
        ws.apply("t", inserts=batch)
    assert "is decimal(18,1); the batch has '7,25' in row 1" in str(caught.value)
    step = "Next step: track the table again with --types amt=decimal(18,2), or mend the value."
    assert str(caught.value).endswith(step)
    ws.track("u", path, options={"types": {"amt": "decimal(18,2)"}})
    assert ws.apply("u", inserts=batch).n_inserted == 1


@pytest.mark.parametrize(
    ("spelt", "step"),
    [
        ("5.5", "write '5,5': a comma is the decimal point of the column."),
        ("1.250,75", "track the table again with --thousands ., or mend the value."),
        ("1.250", "track the table again with --thousands ., or write '1,250': a comma is the decimal point"),
        ("x.", "track the table again with --types price=text, or mend the value."),
    ],
)
def test_a_point_in_a_column_of_decimal_commas(
    spelt: str, step: str, ws: holdfast.Workspace, tmp_path: Path
) -> None:
    path, batch = tmp_path / "t.csv", tmp_path / "b.csv"
    path.write_text("id;price\n1;12,50\n2;3,75\n")
    ws.track("t", path)
    batch.write_text(f"id;price\n3;11,50\n4;{spelt}\n")
    with pytest.raises(ColumnTypeError) as caught:
        ws.apply("t", inserts=batch)
    assert f"has '{spelt}' in row 2 of b.csv. Nothing was applied. Next step: {step}" in str(caught.value)


def test_a_mark_between_thousands_is_no_decimal_point(ws: holdfast.Workspace, tmp_path: Path) -> None:
    """A batch in which all numbers could be read with a point, too."""
    path, batch = tmp_path / "t.csv", tmp_path / "b.csv"
    path.write_text("id;price\n1;12,50\n2;1.003,75\n")
    ws.track("t", path, options={"thousands": "."})
    batch.write_text("id;price\n3;1.250\n")
    ws.apply("t", inserts=batch)
    values = live_rows(ws.writer.tables.rows(ws.writer.tables.state("t"))).to_pydict()["price"]
    assert sorted(values) == [Decimal("12.50"), Decimal("1003.75"), Decimal(1250)]


# -- booleans and NULL ---------------------------------------------------------------------------


@pytest.mark.parametrize("words", [("true", "false"), ("True", "False"), ("TRUE", "FALSE")])
def test_booleans(words: tuple[str, str]) -> None:
    values, kind, [note] = column([*words, words[0]])
    assert (values, kind) == ([True, False, True], "bool")
    assert note == "t: x: true and false are booleans; --types x=text keeps the texts"
    assert column(words, types={"x": "text"}) == (list(words), "text", ())


def test_other_words_for_booleans_have_to_be_declared() -> None:
    texts = ["yes", "N", "1", "off"]
    assert column(texts) == (texts, "text", ())
    assert column(texts, types={"x": "bool"}) == ([True, False, True, False], "bool", ())


@settings(max_examples=25)
@given(
    numbers=st.lists(st.integers(-99, 99), min_size=1, max_size=4),
    words=st.lists(st.sampled_from(WORDS[1:]), min_size=1, max_size=3),
    data=st.data(),
)
def test_words_are_null_only_where_they_can_be_nothing_else(
    numbers: list[int], words: list[str], data: st.DataObject
) -> None:
    texts = data.draw(st.permutations([*map(str, numbers), *words]))
    values, kind, [note] = column(texts)
    assert (values, kind) == ([None if text in words else int(text) for text in texts], "int")
    assert note.endswith("in columns of numbers, dates and booleans is NULL; --null says which texts are")
    assert set(note.removeprefix("t: ").partition(" in columns")[0].split(", ")) == set(words)
    values, kind, notes = column([*texts, "Rome"])
    assert (values, kind) == ([*texts, "Rome"], "text")
    what, them = ("are texts", "them") if len({*words}) > 1 else ("is a text", "it")
    assert f" {what} like any other; " in notes[0]
    assert f" reads {them} as NULL" in notes[0]
    if {*words} != {"nan"}:  # which is a float, where it is not said to be NULL
        assert column(texts, null_values=[""])[:2] == (texts, "text")
    assert column(words)[:2] == (words, "text")


def test_an_empty_field_in_quotes_is_null_where_it_can_be_nothing_else() -> None:
    """Many programs quote every field."""
    text = '"i","n","day","name"\n"1","2.5","2026-01-01","a"\n"2","","",""\n"3","4.5","2026-02-01","-"\n'
    columns, types, notes = tracked(text)
    assert columns == {
        "i": [1, 2, 3],
        "n": [Decimal("2.5"), None, Decimal("4.5")],
        "day": [dt.date(2026, 1, 1), None, dt.date(2026, 2, 1)],
        "name": ["a", "", "-"],
    }
    assert types["name"] == "text"
    assert 't: "" in columns of numbers, dates and booleans is NULL; --null says which texts are' in notes
    assert not any('name: ""' in note for note in notes)
    assert (
        tracked(text, null_values=[""])[1]["n"] == "text"
    )  # whoever says what is NULL is taken at their word
    assert tracked('"i","x"\n"1",""\n"2",""\n')[0]["x"] == ["", ""]


@pytest.mark.parametrize(
    ("texts", "odd", "what"),
    [
        ([*map(str, range(50))], ["unknown"], "is no number"),
        (["1.50", "2.75"] * 20, ["#DIV/0!", "inf"], "are no numbers"),
        (["1,5", "2,25"] * 20, ["nil", "N.A.", "it's"], "are no numbers"),
        (["2026-12-31", "2026-01-02"] * 10, ["missing"], "is no date"),
        (["31.12.2026 14:05", "1.2.2026 3:04"] * 10, ["open"], "is no time"),
        (["True", "False"] * 10, ["maybe"], "is no boolean"),
    ],
)
def test_a_few_odd_texts_that_make_texts_of_a_column_are_told(
    texts: list[str], odd: list[str], what: str
) -> None:
    values, kind, [note] = column([*texts, *odd])
    assert (values, kind) == ([*texts, *odd], "text")
    shown = ", ".join(map(repr, odd))
    assert note.startswith(f"t: x: texts, since {shown} {what}; --null '' --null {odd[0]!r}")
    assert note.endswith(f"reads {'it' if len(odd) == 1 else 'them'} as NULL, --types x=text keeps the texts")
    given = shlex.split(note.partition("; ")[2].partition(" reads")[0])
    values, kind, _ = column([*texts, *odd], null_values=given[1::2])
    assert (values[-1], kind != "text") == (None, True)
    assert column([*texts, *odd], types={"x": "text"})[2] == ()
    [note] = column([*texts, *odd, "NA"])[2]
    assert "--null '' --null 'NA' --null " in note


def test_columns_of_texts_are_not_told() -> None:
    many = [*map(str, range(50))]
    for texts in (
        [*many, "a", "b", "c", "d"],
        [*many[:9], "unknown", "unknown"],
        [f"{n:03}" for n in range(50)] + ["unknown"],
        ["Rome", "Oslo"] * 20,
        [*many, "a text that nobody would call a word for something that is not there"],
    ):
        assert column(texts) == (texts, "text", ())


def test_what_a_table_has_recognised_holds_for_its_batches(ws: holdfast.Workspace, tmp_path: Path) -> None:
    path, batch = tmp_path / "t.csv", tmp_path / "b.csv"
    path.write_text('id,when,price,ok,n\n1,31/12/2026,"1,5",True,NA\n2,01/02/2026,"2,25",False,7\n')
    ws.track("t", path)
    batch.write_text('id,when,price,ok,n\n3,02/03/2026,"3,5",FALSE,NA\n')
    assert ws.apply("t", inserts=batch).notes == ()
    relation = ws.writer.tables.rows(ws.writer.tables.state("t"))
    rows = live_rows(relation).to_pylist()
    assert rows[-1] == {"id": 3, "when": dt.date(2026, 3, 2), "price": 3.5, "ok": False, "n": None}
    batch.write_text("id,when,price,ok,n\n4,2026-03-02,3.5,false,\n")  # as the type rule spells them
    ws.apply("t", inserts=batch)
    batch.write_text('id,when,price,ok,n\n5,02/03/2026,"3,5",FALSE,-\n')
    assert ws.apply("t", inserts=batch).notes == (  # a word that the first file did not have
        "t: - in columns of numbers, dates and booleans is NULL; --null says which texts are",
    )
    with pytest.raises(
        ColumnTypeError, match=r"has '-' in row 1 .*read it as NULL with --null '' --null '-'"
    ):
        ws.apply("t", inserts=batch, options={"null_values": ["", "NA"]})


@pytest.mark.parametrize("split_bytes", [1 << 20, 9])
def test_the_usual_words_hold_in_batches_unless_null_was_said(
    ws: holdfast.Workspace, tmp_path: Path, split_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, batch = tmp_path / "t.csv", tmp_path / "b.csv"
    path.write_text("id,n,s\n1,2,N/A\n")
    ws.track("none", path)
    ws.track("typed", pa.table({"id": [1], "n": [2], "s": ["N/A"]}))
    ws.track("said", path, options={"null_values": [""]})
    for name in ("WHOLE_BYTES", "MIN_SPLIT_BYTES", "INLINE_SPLIT_BYTES"):
        monkeypatch.setattr(encoding, name, split_bytes)
    batch.write_text("id,n,s\n2,N/A,N/A\n3,null,null\n")
    for table in ("none", "typed"):
        for call in (ws.check, ws.apply):
            [note] = call(table, inserts=batch).notes
            assert note.startswith(f"{table}: N/A, null in columns of numbers")
        relation = ws.writer.tables.rows(ws.writer.tables.state(table))
        columns = live_rows(relation).to_pydict()
        assert (columns["n"], columns["s"]) == ([2, None, None], ["N/A", "N/A", "null"])
        [told] = ws.apply(table, deletes=batch).tables
        assert told.n_deleted == 2
    with pytest.raises(ColumnTypeError, match=r"has 'N/A' in row 1"):
        ws.apply("said", inserts=batch)


@pytest.mark.parametrize("split_bytes", [1 << 20, 4])
def test_nan_is_null(ws: holdfast.Workspace, tmp_path: Path, split_bytes: int) -> None:
    """It would be a float's value otherwise, which is greater than 0 and not NULL."""
    path, batch = tmp_path / "t.csv", tmp_path / "b.csv"
    with pytest.MonkeyPatch.context() as patch:
        for name in ("WHOLE_BYTES", "MIN_SPLIT_BYTES", "INLINE_SPLIT_BYTES"):
            patch.setattr(encoding, name, split_bytes)
        for word in ("nan", "NaN", "<NA>", "#NA"):
            for texts, values in ((["1.5", word, "2"], [1.5, None, 2.0]), ([word, "7"], [None, 7])):
                read, _, [note] = column(texts)
                assert read == values
                assert note.startswith(f"t: {word} in columns of numbers, dates and booleans is NULL")
            assert column(["1.5", word], types={"x": "float"})[0] == [1.5, None]
        path.write_text("i,x\n1,1.5\n2,2.5\n")
        ws.track("t", path)
        batch.write_text("i,x\n3,nan\n4,NaN\n")
        [note] = ws.apply("t", inserts=batch).notes
        assert note.startswith("t: nan, NaN in columns of numbers")
        batch.write_text("i,x\n1,1.5\n2,2.5\n3,\n4,\n")
        assert ws.apply("t", snapshot=batch).tables[0].n_unchanged == 4
    assert math.isnan(column(["1.5", "nan"], null_values=[""])[0][1])


def test_nan_stays_a_value_of_tables_that_may_have_it(
    ws: holdfast.Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that came with typed values, and those whose reading options do not say what it is."""
    batch = tmp_path / "b.csv"
    rows = pa.table({"i": [1, 2], "x": [1.5, float("nan")]})
    ws.track("typed", rows)
    with monkeypatch.context() as patch:  # as it was before
        patch.setattr(csv_plan, "WORDS", WORDS[: WORDS.index("nan")])
        batch.write_text("i,x\n1,1.5\n2,nan\n")
        assert ws.track("older", batch).notes == ()
    for table in ("typed", "older"):
        assert ws.apply(table, deletes=rows.slice(1)).tables[0].n_deleted == 1
        batch.write_text("i,x\n2,nan\n3,NA\n")
        [note] = ws.apply(table, inserts=batch).notes
        assert note.startswith(f"{table}: NA in columns of numbers")
        assert ws.apply(table, deletes=rows.slice(1)).tables[0].n_deleted == 1


def test_batches_of_tables_that_came_otherwise_need_the_options(
    ws: holdfast.Workspace, tmp_path: Path
) -> None:
    ws.track("t", pa.table({"id": [1], "when": [dt.date(2026, 12, 31)], "price": [1.5]}))
    batch = tmp_path / "b.csv"
    batch.write_text('id,when,price\n2,31/12/2026,"2,25"\n')
    with pytest.raises(ColumnTypeError, match=r"'when' .*Next step: say --dates dmy or mdy, track"):
        ws.apply("t", inserts=batch)
    with pytest.raises(ColumnTypeError, match=r"'price' .*Next step: say --decimal ',', track"):
        ws.apply("t", inserts=batch, options={"dates": "dmy"})
    [told] = ws.apply("t", inserts=batch, options={"dates": "dmy", "decimal": ","}).tables
    assert told.n_inserted == 1


def test_options_that_an_older_release_has_written_recognise_nothing() -> None:
    old = {"format": "auto", "header": True, "delimiter": None, "quote": '"', "encoding": "utf-8"}
    options = ReadOptions.from_dict({**old, "null_values": [""], "types": {}, "spellings": {"a": "bare"}})
    assert options == ReadOptions(null_values=("",), spellings={"a": "bare"})
    assert ReadOptions.checked(json.loads(json.dumps(options.to_dict()))) == options


@pytest.mark.parametrize(
    ("texts", "what", "marks"),
    [
        ([" 5", " 6"], "numbers", "blanks around them"),
        (["5", "6 ", "7"], "numbers", "blanks around them"),
        ([" 1.5", " 2.25"], "numbers", "blanks around them"),
        ([" 2026-01-31", " 2026-02-01"], "dates", "blanks around them"),
        ([" 31/01/2026"], "dates", "blanks around them"),
        ([" 2026-01-31 14:05:00"], "times", "blanks around them"),
        ([" True", " False"], "booleans", "blanks around them"),
        (["+5", "-6"], "numbers", "plus signs"),
        (["+5", "+6.5"], "numbers", "plus signs"),
        ([" +5", " -6"], "numbers", "blanks around them and the plus signs"),
    ],
)
def test_blanks_and_plus_signs_that_make_texts_are_told(texts: list[str], what: str, marks: str) -> None:
    note = f"t: x: {what} are texts, for the {marks}; written without, they are {what}"
    assert column(texts) == (texts, "text", (note,))
    plain = [text.strip().removeprefix("+") for text in texts]
    assert column(plain)[1] != "text"


def test_blanks_and_plus_signs_of_texts_are_not_told() -> None:
    for texts in ([" a", " b"], ["+49170123456", "+49170123457"], [" 1", " b"], ["+", "5"], [" ", " "]):
        assert column(texts) == (texts, "text", ())


@pytest.mark.parametrize(
    ("form", "bad", "type_", "what"),
    [
        ("%Y-%m-%d", "2026-02-30", "date", "date"),
        ("%Y-%m-%d", "0000-00-00", "date", "date"),
        ("%d/%m/%Y", "31/02/2026", "date", "date"),
        ("%m/%d/%Y", "13/13/2026", "date", "date"),
        ("%Y/%m/%d", "unknown", "date", "date"),
        ("%Y-%m-%d 14:05:00", "2026-02-30 14:05:00", "timestamp[us]", "time"),
        ("%Y-%m-%dT14:05:00Z", "2026-02-30T14:05:00Z", "timestamp[us,utc]", "time"),
    ],
)
def test_the_few_dates_that_are_none_are_named(form: str, bad: str, type_: str, what: str) -> None:
    texts = [(dt.date(2026, 1, 1) + dt.timedelta(i)).strftime(form) for i in range(99)]
    _, t, notes = column([*texts, bad])
    assert (t, notes) == (
        "text",
        (
            f"t: x: texts, since '{bad}' is no {what}; --null '' --null '{bad}' reads it as NULL, "
            "--types x=text keeps the texts",
        ),
    )
    assert column([*texts, bad], null_values=["", bad])[1] == type_
    assert column([*texts, bad], types={"x": "text"})[2] == ()
    assert "are texts as they are spelt" in column([f"2026-02-{day}" for day in range(20, 50)])[2][0]


# -- headers -------------------------------------------------------------------------------------


def test_columns_without_a_name_and_names_that_come_again() -> None:
    text = ",a,b,a,a_2,\n0,1,2,3,4,\n1,5,6,7,8,\n"
    columns, _, notes = tracked(text)
    assert columns == {"unnamed_1": [0, 1], "a": [1, 5], "b": [2, 6], "a_3": [3, 7], "a_2": [4, 8]}
    assert notes == (
        "t: unnamed_1 has no name in the file (--names gives one)",
        "t: a comes again and is called a_3 (--names)",
        "t: unnamed_6, at the end, is empty and left out (--names gives one)",
    )
    columns, _, notes = tracked(text, names=["i", "a", "b", "c", "d", "e"])
    assert (list(columns), notes) == (["i", "a", "b", "c", "d", "e"], ())
    with pytest.raises(SchemaError, match="has 6 columns, and 2 names are given"):
        tracked(text, names=["i", "a"])


def test_what_was_told_of_a_first_file_is_not_told_of_every_batch(
    ws: holdfast.Workspace, tmp_path: Path
) -> None:
    path, other = tmp_path / "t.csv", tmp_path / "u.csv"
    path.write_text("# by me\n,a,a,\n0,1,2,\n")
    other.write_text("# by me\n# today\n,a,a,\n0,1,2,\n")
    assert len(ws.track("t", path).notes) == 4
    assert ws.apply("t", inserts=path).notes == ws.check("t", deletes=path).notes == ()
    told = ("t: 2 lines with # at the start skipped; --comment '' reads them",)
    assert ws.apply("t", inserts=other).notes == told
    path.write_text("unnamed_1,a,a_2\n0,1,2\n")
    ws.track("v", path)
    assert [note.partition(",")[0] for note in ws.apply("v", inserts=other).notes] == [
        "v: unnamed_1 has no name in the file (--names gives one)",
        "v: a comes again and is called a_2 (--names)",
        "v: 2 lines with # at the start skipped; --comment '' reads them",
        "v: unnamed_4",
    ]


def test_notes_come_behind_what_broke(ws: holdfast.Workspace, tmp_path: Path) -> None:
    first, path = tmp_path / "t.csv", tmp_path / "u.csv"
    first.write_text("id,n\n1,1\n2,2\n")
    path.write_text("# by me\nid,n\n1,3\n")
    ws.track("t", first)
    ws.pin("t", ["id"])
    for change in (ws.check("t", inserts=path), ws.apply("t", inserts=path)):
        out = io.StringIO()
        print_change(Paper(out), change)
        for report in (str(change).lower(), out.getvalue().lower()):
            places = [report.index(text) for text in ("pinned", " br", "skipped")]
            assert places == sorted(places)


def test_blanks_around_a_name_are_told(ws: holdfast.Workspace, tmp_path: Path) -> None:
    columns, _, notes = tracked("id, name,v \n1,a,2\n")
    assert list(columns) == ["id", " name", "v "]
    assert notes == ("t: ' name', 'v ': the blanks are part of the name (--names gives others)",)
    assert tracked("id, name\n1,a\n", names=["id", " name"])[2] == ()
    (tmp_path / "t.csv").write_text("id, name\n1,a\n")
    ws.track("t", tmp_path / "t.csv")
    assert ws.apply("t", inserts=tmp_path / "t.csv").notes == ()


def test_an_empty_column_at_the_end_is_not_lost_if_it_gets_values(
    ws: holdfast.Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,\n1,\n2,\n")
    ws.track("t", path)
    assert ws.schema("t").names == ("a",)
    ws.apply("t", inserts=path)
    path.write_text("a,\n1,\n2,x\n")
    with pytest.raises(UnknownColumnError, match="unnamed_2"):
        ws.apply("t", inserts=path)
    monkeypatch.setattr(csv_plan, "SAMPLE_ROWS", 1)
    with pytest.raises(SchemaError, match=r"empty at first, and then has 'x'. Nothing was applied"):
        ws.apply("t", inserts=path)


@pytest.mark.parametrize("split_bytes", [1 << 20, 1])
def test_rows_that_end_with_a_delimiter_more_than_the_header(
    ws: holdfast.Workspace, tmp_path: Path, split_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WHOLE_BYTES", "MIN_SPLIT_BYTES", "INLINE_SPLIT_BYTES"):
        monkeypatch.setattr(encoding, name, split_bytes)
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2,\n3,4,\n5,6,\n")
    change = ws.track("t", path)
    assert (ws.schema("t").names, ws.n_rows("t")) == (("a", "b"), 3)
    assert change.notes == ("t: unnamed_3, at the end, is empty and left out (--names gives one)",)
    ws.track("u", path, options={"names": ["x", "y", "z"]})
    assert ws.schema("u").names == ("x", "y", "z")
    for wrong in ("a,b\n1,2,\n3,4\n", "a,b\n1,2\n3,4,\n", "a,b\n1,2,9\n3,4,\n"):
        path.write_text(wrong)
        with pytest.raises(SourceError, match=r"line [23] of t.csv .*has [23] fields instead of [23]"):
            ws.track("v", path)


def test_names_of_files_without_a_header_are_the_tables(ws: holdfast.Workspace, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("1,x\n2,y\n")
    ws.track("t", path, options={"header": False, "names": ["id", "name"]})
    [told] = ws.apply("t", snapshot=path).tables
    assert told.n_unchanged == 2
    assert ws.schema("t").names == ("id", "name")


# -- delimiters ----------------------------------------------------------------------------------


@pytest.mark.parametrize("split_bytes", [1 << 20, 7])
@pytest.mark.parametrize(("delimiter", "shown"), [(";", ";"), ("|", "|"), ("\t", "a tab")])
def test_a_delimiter_that_the_file_shows(
    ws: holdfast.Workspace, tmp_path: Path, delimiter: str, shown: str, split_bytes: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("WHOLE_BYTES", "MIN_SPLIT_BYTES", "INLINE_SPLIT_BYTES"):
            patch.setattr(encoding, name, split_bytes)
        path = tmp_path / "s.csv"
        path.write_text('id;v;b\n1;2,50;"x;1"\n2;0,75;y\n'.replace(";", delimiter))
        change = ws.track("t", path)
        assert [str(t) for t in ws.schema("t").types] == ["int", "decimal(18,2)", "text"]
        assert change.notes[0] == f"t: {shown} is the delimiter (--delimiter)"
        path.write_text('id;v;b\n3;2,5;"x,1"\n'.replace(";", delimiter))
        assert ws.apply("t", inserts=path).notes == ()
    relation = ws.writer.tables.rows(ws.writer.tables.state("t"))
    rows = live_rows(relation).to_pylist()
    assert rows[0]["b"] == f"x{delimiter}1"
    assert rows[-1] == {"id": 3, "v": Decimal("2.50"), "b": "x,1"}


def test_one_column_stays_one_column(tmp_path: Path, ws: holdfast.Workspace) -> None:
    for text in ("a\n1;2\n3\n", "a\n1|2;3\n"):
        assert list(tracked(text)[0]) == ["a"]
    for text in ("a;b\n1;2\n3\n", "a;b|c\n1;2|3\n", "a;b\nx\n"):  # it may be one, or not
        with pytest.raises(SourceError, match=r"has a single column 'a;b.*--delimiter ';' \(or ','"):
            tracked(text)
        assert len(tracked(text, delimiter=",")[0]) == 1
    (tmp_path / "b.csv").write_text("a;b\n3;4\n")
    ws.track("t", pa.table({"a": [1], "b": [2]}))
    assert ws.apply("t", inserts=tmp_path / "b.csv").notes == ("t: ; is the delimiter (--delimiter)",)
    # A table that is fed from such files takes others only if it is told.
    ws.track("u", tmp_path / "b.csv")
    (tmp_path / "c.csv").write_text("a,b\n5,6\n")
    with pytest.raises(UnknownColumnError, match=r"no column 'a,b'.*: give --delimiter ','\.$"):
        ws.apply("u", inserts=tmp_path / "c.csv")
    assert ws.apply("u", inserts=tmp_path / "c.csv", options={"delimiter": ","}).n_inserted == 1


@pytest.mark.parametrize("delimiter", [";", "|", "\t"])
def test_a_header_with_a_comma_in_it(delimiter: str) -> None:
    """What cuts all rows alike is the delimiter; nobody can tell if two do."""

    def cut(text: str, **options: Any) -> tuple[list[str], tuple[str, ...]]:
        columns, _, notes = tracked(text.replace(";", delimiter), **options)
        return list(columns), notes

    for rows in ("0;12,50\n1;9\n", "0;1\n"):
        names, notes = cut("id;Preis, EUR\n" + rows)
        assert names == ["id", "Preis, EUR"]
        assert "is the delimiter (--delimiter)" in notes[0]
    names, _ = cut('id;"Preis, EUR";q\n0;1;2\n')
    assert names == ["id", "Preis, EUR", "q"]
    for text in ("id;Preis, EUR\n0;12,50\n1;9,75\n", 'id;"a, b, c, d";q\n0;1,2,3,4;5\n'):
        with pytest.raises(SourceError, match=r"may have several delimiters.*Nothing was.* --delimiter ','"):
            cut(text)
        assert cut(text, delimiter=delimiter)[0][0] == "id"
        assert len(cut(text, delimiter=",")[0]) == text.partition("\n")[0].count(",") + 1


@pytest.mark.parametrize("text", ["1,5;a\n2,25;b\n", "1,5;a;2\n2,25;b;3\n", "0,1|2\n"])
def test_nobody_can_tell_the_delimiter_of_a_file_without_a_header(text: str) -> None:
    """A decimal comma is none; of a table's batches it is known."""
    with pytest.raises(SourceError, match=r"may have several delimiters, each of which cuts its first rows"):
        tracked(text, header=False)
    other = ";" if ";" in text else "|"
    assert len(tracked(text, header=False, delimiter=other)[0]) == text.partition("\n")[0].count(other) + 1
    for plain in ("1,a|b,3\n2,c|d,4\n", "1,a|b\n2,c\n", "1.5,2\n"):
        columns, _, notes = tracked(plain, header=False)
        assert (len(columns), notes) == (plain.partition("\n")[0].count(",") + 1, ())


def test_a_comma_stays_the_delimiter_where_others_cut_no_better(
    ws: holdfast.Workspace, tmp_path: Path
) -> None:
    for text in ("id,v,at|on\n1,2,3|4\n", "id,at|on\n1,2|3\n2,3\n", '"a;b",c\n"1;2",3\n', "a,b;c\n1,2\n"):
        columns, _, notes = tracked(text)
        assert (len(columns), notes) == (text.partition("\n")[0].count(",") + 1, ())
    # The ending says it, or the table.
    (tmp_path / "t.tsv").write_text("id\tv, w\n1\ta,b\n")
    assert ws.track("t", tmp_path / "t.tsv").notes == ()
    assert ws.schema("t").names == ("id", "v, w")
    ws.track("u", pa.table({"id": [1], "at|on": ["2|3"]}))
    (tmp_path / "u.csv").write_text("id,at|on\n2,3|4\n")
    assert ws.apply("u", inserts=tmp_path / "u.csv").n_inserted == 1


# -- comments ------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", [True, False])
def test_comments_before_the_header(
    ws: holdfast.Workspace, tmp_path: Path, header: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their quotes mean nothing, wherever the file is cut; rows that begin alike are rows."""
    path = tmp_path / "t.csv"
    rows = [f'{i},"x\n{i}"' for i in range(40)]
    head = '# by me: "\n#\n' + ("id,name\n" if header else "")
    path.write_text(head + "\n".join([*rows, "#1,row"]) + "\n")
    for split_bytes in (1 << 20, 60):
        monkeypatch.setattr(encoding, "WHOLE_BYTES", split_bytes)
        monkeypatch.setattr(encoding, "MIN_SPLIT_BYTES", split_bytes)
        monkeypatch.setattr(encoding, "INLINE_SPLIT_BYTES", split_bytes)
        change = ws.track(f"t{split_bytes}", path, options={"header": header})
        assert change.n_rows == 41
        assert change.notes[0].endswith("2 lines with # at the start skipped; --comment '' reads them")
    with pytest.raises(SourceError, match=r"fields? instead of|never closed|single column"):
        ws.track("u", path, options={"comment": "", "header": header})


def test_a_header_may_begin_with_a_hash() -> None:
    assert list(tracked("#id,name\n1,x\n")[0]) == ["#id", "name"]
    assert list(tracked("# by me\n#id,name\n1,x\n")[0]) == ["#id", "name"]
    assert list(tracked("#id,name\r1,x\r")[0]) == ["#id", "name"]
    assert list(tracked("#\r\nid,name\r\n1,x\r\n")[0]) == ["id", "name"]
    assert list(tracked("#\rid,name\r1,x\r")[0]) == ["id", "name"]
    assert tracked("#x\n#1\n#2\n")[0] == {"#x": ["#1", "#2"]}


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
@pytest.mark.parametrize("packed", [False, True])
def test_comments_before_the_header_of_a_file_with_another_delimiter(
    ws: holdfast.Workspace, tmp_path: Path, delimiter: str, packed: bool
) -> None:
    """A comment has as many commas as such a header, none: that makes it no header."""
    path = tmp_path / ("s.csv.gz" if packed else "s.csv")
    write = gzip.compress if packed else bytes
    for k, head in enumerate(("# exported by SAP\n", "# by me, today\n#\n", "#\n# x y\n")):
        text = head + "id;name;qty\n1;a;5\n2;b;6\n3;c;7\n".replace(";", delimiter)
        path.write_bytes(write(text.encode()))
        notes = ws.track(f"t{k}", path).notes
        assert (ws.schema(f"t{k}").names, ws.n_rows(f"t{k}")) == (("id", "name", "qty"), 3)
        assert any("is the delimiter (--delimiter)" in note for note in notes)
        assert any("with # at the start skipped; --comment '' reads" in note for note in notes)
        assert ws.apply(f"t{k}", snapshot=path).n_inserted == 0


@pytest.mark.parametrize("split_bytes", [1 << 20, 9])
@pytest.mark.parametrize("line", ["sep=;", '"SEP=;"', "sep=,", "sep=\t"])
@pytest.mark.parametrize("how", ["plain", "mark", "packed", "utf-16"])
def test_the_delimiter_that_the_first_line_says(
    ws: holdfast.Workspace, tmp_path: Path, line: str, how: str, split_bytes: int
) -> None:
    """As spreadsheets write it, and read it."""
    delimiter = line.strip('"')[-1]
    rows = ["id;price EUR;x", "1;2.50;a", "2;3.75;b", ""]
    text = "\r\n".join([line, *rows]).replace(";", delimiter)
    path = tmp_path / ("s.csv.gz" if how == "packed" else "s.csv")
    coded = text.encode({"mark": "utf-8-sig", "utf-16": "utf-16"}.get(how, "utf-8"))
    path.write_bytes(gzip.compress(coded) if how == "packed" else coded)
    options = {"encoding": "utf-16"} if how == "utf-16" else {}
    with pytest.MonkeyPatch.context() as patch:
        for name in ("WHOLE_BYTES", "MIN_SPLIT_BYTES", "INLINE_SPLIT_BYTES"):
            patch.setattr(encoding, name, split_bytes)
        notes = ws.track("t", path, options=options).notes
        assert (ws.schema("t").names, ws.n_rows("t")) == (("id", "price EUR", "x"), 2)
        assert "t: the first line says the delimiter (sep=) and is skipped" in notes
        again = ws.apply("t", snapshot=path)
        assert (again.tables[0].n_unchanged, again.notes) == (2, ())


def test_a_delimiter_that_is_given_wins_over_the_first_line() -> None:
    text = "sep=;\nid,v\n1,a;b\n"
    assert list(tracked(text, delimiter=",")[0]) == ["id", "v"]
    assert tracked("sep=;\n1;2\n3;4\n", header=False)[0] == {"c0": [1, 3], "c1": [2, 4]}
    for other in ("sep\n1\n", "sep=x\n1\n", "separate;b\n1;2\n"):
        assert len(tracked(other)[0]) == other.count(";", 0, 11) + 1


def test_a_header_that_begins_with_a_hash_is_told(ws: holdfast.Workspace, tmp_path: Path) -> None:
    note = "t: the header begins with #; --comment '#' skips such lines"
    for text in ("#id;v\n1;2\n", "#id,v\n1,2\n", "# x\n#id,v\n1,2\n"):
        columns, _, notes = tracked(text)
        assert list(columns) == ["#id", "v"]
        assert note in notes
    for text, options in (('"#id",v\n1,2\n', {}), ("#id,v\n1,2\n", {"comment": ""})):
        assert note not in tracked(text, **options)[2]
    (tmp_path / "t.csv").write_text("#id,v\n1,2\n")
    ws.track("t", tmp_path / "t.csv")
    assert ws.apply("t", inserts=tmp_path / "t.csv").notes == ()


def test_comments_that_are_longer_than_what_is_looked_at_first(
    ws: holdfast.Workspace, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text("# x\n" * 30_000 + "id,name\n1,x\n")
    change = ws.track("t", tmp_path / "t.csv")
    assert (ws.schema("t").names, ws.n_rows("t")) == (("id", "name"), 1)
    assert "30,000 lines with #" in change.notes[0]


def test_comments_in_another_encoding(tmp_path: Path, ws: holdfast.Workspace) -> None:
    (tmp_path / "t.csv").write_bytes("# größer, schöner, ä\nid,name\n1,ö\n".encode("latin-1"))
    ws.track("t", tmp_path / "t.csv", options={"encoding": "latin-1"})
    assert ws.schema("t").names == ("id", "name")
    assert ws.n_rows("t") == 1


def test_comments_by_option() -> None:
    text = 'a,b\n%,no "row\n1,"x\n% in quotes"\n%\n2,%y\n'
    columns, _, notes = tracked(text, comment="%")
    assert columns == {"a": [1, 2], "b": ["x\n% in quotes", "%y"]}
    assert notes == ()
    with pytest.raises(UsageError, match="comment must be one ASCII character"):
        tracked(text, comment="//")


CELLS = st.text('a#,"\n', max_size=4).map(lambda text: '"' + text.replace('"', '""') + '"') | st.text(
    "a#", max_size=3
)


@given(st.lists(st.tuples(CELLS, CELLS) | st.text('#a",', max_size=4).map(lambda text: ("#" + text,))))
def test_only_lines_outside_of_quotes_are_comments(lines: list[tuple[str, ...]]) -> None:
    lines = [line for line in lines if len(line) == 1 or not line[0].startswith("#")]
    text = "".join(",".join(line) + "\n" for line in lines)
    plain = "".join((",".join(line) if len(line) == 2 else "") + "\n" for line in lines)
    assert without_comments(pa.py_buffer(text.encode()), "#", ",", '"').to_pybytes() == plain.encode()
