"""How people spell values: what the type rule does not know, rewritten so that it does.

A column has one *form* at most, that of the sample of its file, or one that the options ask for:

| form | texts | read as |
|---|---|---|
| bool | `True`, `FALSE`; of a declared bool also `yes`, `n`, `1`, `off` | `true`, `false` |
| dmy, mdy | `31/12/2026`, `1.2.2026`, `31.12.2026 14:05` | dates, times on days, day or month first |
| ymd | `2026/12/31`, `2026-12-31 14:05`, `2026-12-31T14:05:00+01:00` | the same, year first |
| comma | `12,50` | numbers |
| groups, and both marks | `1,234.50`, `1.234,50` | numbers; only if the options say so |
| any | `1e5`, `1E+05` beside other numbers | floats, however they are spelt |

A form is recognised only where texts cannot mean anything else: dates of which one has a day after the
twelfth, commas of which one has not three digits behind it. What may mean either stays text, and a note says
so. Times of which all say how far they are from UTC are instants, whatever they say; where some do not, they
are texts. A year that comes first can be nothing else, so columns that are known to be of dates or times take
it in every spelling. And the usual words for NULL are NULL only in columns that are no texts: there they can
be nothing else.

A column whose values turn out to be texts is read to the letter, whatever its form. Notes tell all forms.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute

from holdfast.core.sources.read_options import NAN, ReadOptions
from holdfast.core.sources.type_rule import TEXT, Texts, Values, candidates, decimal_of, decode, spelling_of
from holdfast.core.words.schema import NUMBERS, Schema, Type
from holdfast.errors import listing, shorten

pc: Any = pa.compute

QUOTED_EMPTY = ""  # an empty field without quotes is NULL in any column
WORDS = (
    QUOTED_EMPTY,
    "NA",
    "N/A",
    "n/a",
    "NULL",
    "null",
    "Null",
    "None",
    "none",
    "#N/A",
    "\\N",
    "-",
    "--",
    "?",
    ".",
    NAN,
    "NaN",
    "<NA>",
    "#NA",
)
# Those for tables in which a float may be NaN.
WORDS_BESIDE_NAN = tuple(word for word in WORDS if word.lower() != NAN)
BOOL, DMY, MDY, YMD, COMMA, ANY, CLOCK = "bool", "dmy", "mdy", "ymd", "comma", "any", "clock"
GROUPS = "groups"  # followed by the mark between thousands and the decimal point
ORDERS = (DMY, MDY)
_TRUE, _FALSE = ("true", "t", "yes", "y", "1", "on"), ("false", "f", "no", "n", "0", "off")
_DAY, _MONTH, _YEAR = r"(?P<d>[0-9]{1,2})", r"(?P<m>[0-9]{1,2})", r"(?P<y>[0-9]{4})"
_CLOCK = r"(?P<h>[0-9]{1,2}):(?P<i>[0-9]{2})(?::(?P<s>[0-9]{2})(?:\.(?P<f>[0-9]{1,6}))?)?"
_ZONE = r"(?P<z>Z|[+-][0-9]{2}(?::?[0-9]{2})?)"
_TIMES: Mapping[str, str] = {
    order: rf"^{date}(?:[ T]{_CLOCK}(?: ?{_ZONE})?)?$"
    for order, date in {
        DMY: rf"{_DAY}[/.\-]{_MONTH}[/.\-]{_YEAR}",
        MDY: rf"{_MONTH}[/.\-]{_DAY}[/.\-]{_YEAR}",
        YMD: rf"{_YEAR}[/\-]{_MONTH}[/\-]{_DAY}",
    }.items()
}
_DAYTIME = rf"^{_CLOCK}(?: ?(?P<p>[AaPp])\.?[Mm]\.?)?$"
TIMES = (Type("date"), Type("timestamp", unit="us"), Type("timestamp", unit="us", utc=True))
_TIME = Type("time", unit="us")
_COMMAS = r"^-?(0|[1-9][0-9]*)(,[0-9]+)?$"
_EXPONENT = r"^-?[0-9.]+[eE][+-]?[0-9]+$"


def respelt(texts: Texts, form: str | None) -> Texts:
    """The texts as the type rule spells them; those that are not of the form as they are.

    >>> read = lambda form, *texts: respelt(pa.chunked_array([texts], pa.large_string()), form).to_pylist()
    >>> read("dmy", "31/12/2026", "1.2.2026", "x")
    ['2026-12-31', '2026-02-01', 'x']
    >>> read("ymd", "2026/12/31 14:05", "2026-12-31T14:05:01.5+01:00")
    ['2026-12-31 14:05:00.000000', '2026-12-31 13:05:01.500000Z']
    >>> read("comma", "1,5", "2"), read("groups.,", "1.234,5", "2")
    (['1.5', '2'], ['1234.5', '2'])
    >>> read("clock", "9:30", "12:05 a.m.", "1:02:03.5PM", "13:00 pm", "25:00")
    ['09:30:00.000000', '00:05:00.000000', '13:02:03.500000', '13:00 pm', '25:00:00.000000']
    """
    if form in _TIMES:
        for order in dict.fromkeys((form or YMD, YMD)):
            texts = _as_iso(texts, order)
        return texts
    if form is not None and form.startswith(GROUPS):
        mark, point = form[len(GROUPS)], form[len(GROUPS) + 1]
        fits = pc.match_substring_regex(texts, _grouped(mark, point))
        bare = pc.replace_substring(pc.replace_substring(texts, mark, ""), point, ".")
        return pc.if_else(fits, bare, texts)
    if form == COMMA:
        has_points = pc.any(pc.match_substring(texts, ".")).as_py()
        return texts if has_points else pc.replace_substring(texts, ",", ".")
    if form == CLOCK:
        return _as_clock(texts)
    if form == BOOL:
        lower = pc.utf8_lower(texts)
        for words in (_TRUE, _FALSE):
            texts = pc.if_else(pc.is_in(lower, value_set=_array(words)), words[0], texts).cast(
                pa.large_string()
            )
    return texts


def _as_iso(texts: Texts, order: str) -> Texts:
    """Dates and times as `2026-12-31` and `2026-12-31 14:05:00.000000`, instants as those of UTC with a `Z`.

    One pass of a regular expression; texts that do not match it stay as they are.
    """
    parts = pc.extract_regex(texts, _TIMES[order])
    there = pc.is_valid(parts)
    if not pc.any(there).as_py():
        return texts
    y, m, d, h, i, s, f, z = (pc.struct_field(parts, name) for name in "ymdhisfz")
    dates = _joined("-", y, pc.utf8_lpad(m, 2, "0"), pc.utf8_lpad(d, 2, "0"))
    clocks = _joined(":", pc.utf8_lpad(h, 2, "0"), i, pc.utf8_lpad(s, 2, "0"))
    stamps = _joined(".", _joined(" ", dates, clocks), pc.utf8_rpad(f, 6, "0"))
    zoned = pc.fill_null(pc.not_equal(z, ""), False)
    if pc.any(zoned).as_py():
        local = pc.if_else(zoned, _joined("", stamps, z), None)
        try:
            instants = local.cast(pa.timestamp("us", tz="UTC")).cast(pa.timestamp("us"))
        except pa.ArrowInvalid:  # one of them is none
            return texts
        stamps = pc.if_else(zoned, _joined("", instants.cast(pa.large_string()), "Z"), stamps)
    return pc.if_else(there, pc.if_else(pc.equal(h, ""), dates, stamps), texts)


def _as_clock(texts: Texts) -> Texts:
    """Times of the day as `14:05:00.000000`; what is none stays as it is, or becomes a text that is none."""
    parts = pc.extract_regex(texts, _DAYTIME)
    there = pc.is_valid(parts)
    if not pc.any(there).as_py():
        return texts
    h, i, s, f, p = (pc.struct_field(parts, name) for name in "hisfp")
    halved = pc.not_equal(p, "")
    hours = h.cast(pa.int8())
    possible = pc.or_(pc.invert(halved), pc.and_(pc.greater(hours, 0), pc.less(hours, 13)))
    there = pc.and_(there, pc.fill_null(possible, False))
    early = pc.if_else(pc.equal(hours, 12), 0, hours)
    hours = pc.if_else(halved, pc.if_else(pc.equal(pc.utf8_lower(p), "p"), pc.add(early, 12), early), hours)
    hours = hours.cast(pa.int8()).cast(pa.large_string())
    clocks = _joined(":", pc.utf8_lpad(hours, 2, "0"), i, pc.utf8_lpad(s, 2, "0"))
    return pc.if_else(there, _joined(".", clocks, pc.utf8_rpad(f, 6, "0")), texts)


def _joined(mark: str, *parts: Any) -> Any:
    return pc.binary_join_element_wise(*(_text(p) if isinstance(p, str) else p for p in parts), _text(mark))


def _text(value: str) -> Any:
    return pa.scalar(value, pa.large_string())


def _grouped(mark: str, point: str) -> str:
    """The pattern of numbers with a mark between thousands, or without."""
    t, p = re.escape(mark), re.escape(point)
    return rf"^-?([1-9][0-9]{{0,2}}({t}[0-9]{{3}})+|0|[1-9][0-9]*)({p}[0-9]+)?$"


def without_words(texts: Texts, words: Sequence[str]) -> tuple[Texts, list[str]]:
    """(the texts with words as NULL, which of them there are)."""
    if not words:
        return texts, []
    there = pc.is_in(texts, value_set=_array(words))
    if not pc.any(there).as_py():
        return texts, []
    seen = pc.unique(texts.filter(there)).to_pylist()
    return pc.if_else(there, pa.scalar(None, pa.large_string()), texts), [
        word for word in words if word in seen
    ]


def read_column(
    texts: Texts, t: Type, spelling: str | None, form: str | None, words: Sequence[str]
) -> tuple[Values | None, list[str]]:
    """(values of a type or None if a text does not fit, words among them that are NULL); see `decode`.

    Cost: that of `decode`, unless texts do not fit as they are.
    """
    if t == TEXT:
        return decode(texts, t, spelling), []
    nans: list[str] = []
    if t.family == "float" and NAN in words:  # as it is, it would be a value
        texts, nans = without_words(texts, (NAN,))
    if form is None and spelling is None:  # what is known to be one of these can mean nothing else
        form = {"date": YMD, "timestamp": YMD, "time": CLOCK}.get(t.family)
    spelling = None if form == ANY and t.family == "float" else spelling
    for variant, seen in _variants(texts, form, words):
        values = decode(variant, t, spelling)
        if values is not None:
            return values, [*nans, *seen]
    return None, []


def of_known_type(texts: Texts, t: Type) -> Values | None:
    """The values of texts that are known to be of a type, however they are spelt; None if a text is none."""
    return read_column(texts, t, None, None, ())[0]


def _variants(texts: Texts, form: str | None, words: Sequence[str]) -> Iterator[tuple[Texts, list[str]]]:
    """The texts as they are, unless marks between thousands look like points, and more and more rewritten."""
    if form is None or not form.startswith(GROUPS):
        yield texts, []
    if form is not None:
        yield respelt(texts, form), []
    bare, seen = without_words(texts, words)
    if seen:
        yield respelt(bare, form), seen


def survivors(texts: Texts, spelling: str | None, form: str | None, words: Sequence[str]) -> Iterator[Type]:
    """The types that all texts survive, respelt, in the order of the rule; see `candidates`."""
    plain = respelt(without_words(texts, words)[0], form)
    if plain.null_count == len(plain) > texts.null_count:  # nothing but words
        plain = texts
    lenient = {BOOL: Type("bool"), ANY: Type("float")}.get(form or "")
    for t in candidates(plain, spelling):
        if t == TEXT and lenient is not None and decode(plain, lenient) is not None:
            yield lenient
        yield t


def form_of(
    bare: Texts, options: ReadOptions, declared: Type | None, *, recognise: bool
) -> tuple[str | None, str | None]:
    """(form of a column, the note on what it may be): by the options, and by the sample if that is wanted.

    `bare` is the sample without words for NULL; if no type is declared, it is one of texts by the rule.
    """
    present = bare.drop_null()
    if not len(present) or declared == TEXT:
        return None, None
    if declared is not None and decode(bare, declared) is not None and not options.thousands:
        return None, None
    family = declared.family if declared else None
    if family in (None, "bool"):
        words = (_TRUE, _FALSE) if family else (_TRUE[:1], _FALSE[:1])
        if (family or recognise) and _all_in(pc.utf8_lower(present), [w for of in words for w in of]):
            return BOOL, None
    if family in (None, "date", "timestamp"):
        orders = [options.dates] if options.dates else ORDERS if recognise else ()
        fits = [order for order in orders if order in ORDERS and _are_times(bare, order, declared)]
        if fits:
            return (fits[0], None) if len(fits) == 1 else (None, UNTOLD["dates"])
        if recognise and _are_times(bare, YMD, declared):
            return YMD, None
    if family in (None, *NUMBERS) and options.thousands:
        point = options.decimal or ("," if options.thousands == "." else ".")
        if _all_match(present, _grouped(options.thousands, point)):
            return f"{GROUPS}{options.thousands}{point}", None
    if family in (None, *NUMBERS) and _all_match(present, _COMMAS) and options.decimal in (None, ","):
        thousands = _all_match(present.filter(pc.match_substring(present, ",")), r",[0-9]{3}$")
        if options.decimal or (recognise and not thousands):
            return COMMA, None
        return None, UNTOLD["commas"] if recognise else None
    exponents = recognise and pc.any(pc.match_substring_regex(present, _EXPONENT)).as_py()
    if family is None and exponents and decode(bare, Type("float")) is not None:
        return ANY, None
    return None, _looks_like(present, options) if family is None and recognise else None


def _are_times(bare: Texts, order: str, declared: Type | None) -> bool:
    """Whether all texts are dates, times on days or instants in one order, and all of them the same."""
    if not _all_match(bare, _TIMES[order]):
        return False
    texts = respelt(bare, order)
    return any(decode(texts, t) is not None for t in ([declared] if declared else TIMES))


def _looks_like(present: Texts, options: ReadOptions) -> str | None:
    """The note on a column of texts that look like numbers, or like dates if nothing was said of those."""
    decimal = decimal_of(present)
    if decimal is not None and decimal.scale:
        return UNTOLD["digits"].replace("TYPE", str(decimal))
    for mark, point, says in _GROUPED:
        if _all_match(present, _grouped(mark, point)):
            return UNTOLD["thousands"].replace("OPTIONS", says)
    if (marked := _but_for_marks(present, options)) is not None:
        return marked
    looks = (what for what, pattern in GUISES.items() if _all_match(present, pattern))
    guise = next((UNTOLD[what] for what in looks if what != "times" or not options.dates), None)
    return guise or _two_words(present)


def _but_for_marks(present: Texts, options: ReadOptions) -> str | None:
    """The note on a column whose values are texts for the blanks around them, or for plus signs."""
    bare = pc.utf8_trim_whitespace(present)
    plain = pc.replace_substring_regex(bare, _PLUS, r"\1")
    has_blanks, has_signs = (pc.any(pc.not_equal(*pair)).as_py() for pair in ((bare, present), (plain, bare)))
    for texts, marks in (
        (bare, ["blanks around them"] * has_blanks),
        (plain, ["blanks around them"] * has_blanks + ["plus signs"] * has_signs),
    ):
        what = _noun_of(texts, options) if marks else None
        if what is not None:
            return UNTOLD["marks"].replace("WHAT", what).replace("MARKS", " and the ".join(marks))
    return None


def _noun_of(texts: Texts, options: ReadOptions) -> str | None:
    """What the texts are read as; None if as texts."""
    spelling = spelling_of(texts)
    t = next(candidates(texts, spelling))
    form = form_of(texts, options, None, recognise=True)[0] if t == TEXT else None
    if form is not None:
        t = next(survivors(texts, spelling_of(respelt(texts, form)), form, ()))
    nouns = {"text": None, "bool": "booleans", "date": "dates", "timestamp": "times"}
    return nouns.get(t.family, "numbers")


def _two_words(present: Texts) -> str | None:
    """The note on a column of two words that a declared boolean may have."""
    for pair in zip(_TRUE, _FALSE, strict=True):
        if _all_in(lower := pc.utf8_lower(present), pair) and len(pc.unique(lower)) == len(pair):
            return UNTOLD["words"].replace("WORDS", " and ".join(pair))
    return None


def notes_of(schema: Schema, options: ReadOptions) -> tuple[str, ...]:
    """What was recognised in the columns of a table, and which option changes it."""
    typed = {c.name for c in schema.columns if c.type != TEXT and c.name not in options.types}
    asked = {options.dates, COMMA if options.decimal else None}
    notes = []
    for form, (what, cure) in _RECOGNISED.items():
        if form in asked:
            continue
        names = [name for name, of in options.forms.items() if of == form and name in typed]
        if names:
            notes.append(f"{listing(names)}: {what}; {cure.format(shorten(names[0])[1:-1])}")
    instants = [c.name for c in schema.columns if c.type.utc and options.forms.get(c.name) in _TIMES]
    if instants:
        notes.append(f"{listing(instants)}: times with an offset are instants, kept as UTC")
    return (*notes, *nulls_notes(options.typed_nulls))


def nulls_notes(words: Collection[str]) -> tuple[str, ...]:
    """What is said of words that are NULL in columns that are no texts; nothing if there are none."""
    shown = ", ".join(word or '""' for word in WORDS if word in words)
    says = f"{shown} in columns of numbers, dates and booleans is NULL; --null says which texts are"
    return (says,) if shown else ()


_RECOGNISED: Mapping[str, tuple[str, str]] = {
    BOOL: ("true and false are booleans", "--types {}=text keeps the texts"),
    YMD: ("dates and times are read, year first", "--types {}=text keeps the texts"),
    DMY: ("dates are read day first", "--dates mdy reads them month first, --types {}=text as texts"),
    MDY: ("dates are read month first", "--dates dmy reads them day first, --types {}=text as texts"),
    COMMA: ("a comma is the decimal point", "--decimal . keeps the texts"),
    ANY: ("numbers with an exponent are floats", "--types {}=text keeps the texts"),
}
# Marks between thousands and decimal points that are told, and what to say for them.
_GROUPED = (
    (",", ".", "--thousands ,"),
    (".", ",", "--thousands . --decimal ,"),
    (" ", ",", "--thousands ' ' --decimal ,"),
    (" ", ".", "--thousands ' '"),
    ("'", ".", '--thousands "\'"'),
)
# What looks like something that is not read.
_MONTHS = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_MINUTES = r":[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
_NUMERAL = r"[0-9][0-9.,' ]*"
GUISES: Mapping[str, str] = {
    "signs": rf"^[-+]?\p{{Sc}} ?[-+]?{_NUMERAL}$|^[-+]?{_NUMERAL} ?[%\p{{Sc}}]$",
    "times": r"^([0-9]{1,2}[/.\-][0-9]{1,2}[/.\-][0-9]{4}"
    r"|[0-9]{4}[/.\-][0-9]{1,2}[/.\-][0-9]{1,2})([ T,].*)?$",
    "years": r"^([0-9]{1,2}[/\-][0-9]{1,2}[/\-][0-9]{2}|[0-9]{2}\.[0-9]{2}\.[0-9]{2})([ T,].*)?$",
    "months": rf"(?i)^([0-9]{{1,2}}[-/. ]*{_MONTHS}|{_MONTHS} [0-9]{{1,2}},?)[-/., ]*[0-9]{{2,4}}([ T,].*)?$",
    "clocks": rf"^(([01]?[0-9]|2[0-3]){_MINUTES}|(0?[1-9]|1[0-2]){_MINUTES} ?[AaPp]\.?[Mm]\.?)$",
}
# A plus sign before a number; before more digits it is one of a telephone.
_PLUS = r"^\+([0-9]{1,7}([.,][0-9]*)?)$"
UNTOLD: Mapping[str, str] = {
    "marks": "WHAT are texts, for the MARKS; written without, they are WHAT",
    "dates": "dates are texts, since day and month cannot be told apart; --dates dmy or --dates mdy says it",
    "commas": "numbers are texts, since commas may be decimal or of thousands; --decimal , says decimal, "
    "--thousands , of thousands",
    "thousands": "numbers are texts, for what is between their thousands; OPTIONS reads them as numbers",
    "signs": "numbers are texts, for the signs beside them; without those they are numbers",
    "times": "dates are texts as they are spelt; 2026-12-31 14:05 is read, and with --dates dmy or mdy "
    "31/12/2026 14:05",
    "years": "dates are texts, since their years have two digits; 2026-12-31 and 31/12/2026 are read",
    "months": "dates are texts, since their months are words; 2026-12-31 and 31/12/2026 are read",
    "clocks": "times of the day are texts as they are spelt, which have no order; --types {}=time reads them",
    "words": "WORDS are texts; --types {}=bool reads them as booleans",
    "digits": "numbers are texts, since not all have as many digits behind the point; --types {}=TYPE reads "
    "them as numbers",
}


def unlike_notes(types: Mapping[str, tuple[Type, Type]]) -> tuple[str, ...]:
    """What is said of columns whose first values are of a type that others are not; of each both types."""
    by_type: dict[Type, list[str]] = {}
    for name, (first, settled) in types.items():
        if settled == TEXT != first:
            by_type.setdefault(first, []).append(name)
    return tuple(
        f"{listing(names)}: texts, since not all are {t} as the first ones are; "
        f"--types {shorten(names[0])[1:-1]}={t} reads them so, or names one that is not"
        for t, names in by_type.items()
    )


def json_notes(samples: Mapping[str, Sequence[str]], declared: Collection[str]) -> tuple[str, ...]:
    """What is said of columns of JSON's texts that are all dates or times: JSON has no types for them."""
    by_type: dict[Type, list[str]] = {}
    for name, texts in samples.items():
        column = pa.chunked_array([_array(texts)])
        kinds = () if name in declared else (*TIMES, _TIME)
        t = next((t for t in kinds if of_known_type(column, t) is not None), None)
        if t is not None:
            by_type.setdefault(t, []).append(name)
    return tuple(
        f"{listing(names)}: {'times of the day' if t == _TIME else 'dates'} are texts, as JSON has no "
        f"{'times' if t == _TIME else 'dates'}; --types {shorten(names[0])[1:-1]}={t} reads them as such"
        for t, names in by_type.items()
    )


def words_note(names: Sequence[str], words: Sequence[str]) -> str:
    """What is said of columns of texts that have words for NULL in them."""
    what, them = ("is a text", "it") if len(words) == 1 else ("are texts", "them")
    cure = f"{null_options(words)} reads {them} as NULL"
    return f"{listing(names)}: {', '.join(words)} {what} like any other; {cure}"


def null_options(words: Sequence[str]) -> str:
    """The options by which fields that are empty or one of some words are NULL."""
    quoted = (shlex.quote(word) if "'" in word else f"'{word}'" for word in ("", *words))
    return " ".join(f"--null {word}" for word in quoted)


def remedy(text: str, t: Type, form: str | None = None) -> str:
    """The option by which a text that is no value of a type may be one, as the start of a sentence; or "".

    A column that has a form keeps it, whatever the options say.

    >>> remedy("31/12/2026", Type("date")), remedy("NA", Type("int")), remedy("x", Type("int"))
    ('say --dates dmy or mdy, ', "read it as NULL with --null '' --null 'NA', ", '')
    >>> remedy("7,25", Type("float")), remedy("7,25", Type("float"), "comma")
    ("say --decimal ',', ", '')
    """
    value = pa.chunked_array([[text]], pa.large_string())
    if text in WORDS:
        return f"read it as NULL with --null '' --null '{text}', "
    if form is not None:
        return ""
    if t.family in ("date", "timestamp") and _all_match(value, _TIMES[DMY]):
        return "say --dates dmy or mdy, "
    if t.family not in NUMBERS or "," not in text:
        return ""
    marks = {"--thousands ','": _grouped(",", "."), "--decimal ','": _COMMAS}
    says = " or ".join(option for option, pattern in marks.items() if _all_match(value, pattern))
    return f"say {says}, " if says else ""


def point_remedy(text: str, t: Type, form: str | None, verb: str) -> str | None:
    """What helps a number with points in a column of decimal commas; None if something else is wrong."""
    value = pa.chunked_array([[text]], pa.large_string())
    if form != COMMA or t.family not in NUMBERS or "." not in text:
        return None
    write = f"write {text.replace('.', ',')!r}: a comma is the decimal point of the column"
    if _all_match(value, _grouped(".", ",")):
        return f"{verb} --thousands ., or {'mend the value' if ',' in text else write}"
    return write if decimal_of(value) is not None else None


def _array(words: Sequence[str]) -> Any:
    return pa.array(list(words), pa.large_string())


def _all_in(texts: Texts, words: Sequence[str]) -> bool:
    return pc.all(pc.is_in(texts, value_set=_array(words))).as_py() is not False


def _all_match(texts: Texts, pattern: str) -> bool:
    # Most columns are of no form, and a few texts show it.
    parts = (texts.slice(0, 8), texts.slice(8))
    return all(pc.all(pc.match_substring_regex(part, pattern)).as_py() is not False for part in parts)
