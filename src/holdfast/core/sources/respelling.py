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
from holdfast.core.sources.type_rule import TEXT, Texts, Values, candidates, decimal_of, decode
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
BOOL, DMY, MDY, YMD, COMMA, ANY = "bool", "dmy", "mdy", "ymd", "comma", "any"
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
_KINDS = (Type("date"), Type("timestamp", unit="us"), Type("timestamp", unit="us", utc=True))
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
    if form is None and spelling is None and t.family in ("date", "timestamp"):
        form = YMD
    spelling = None if form == ANY and t.family == "float" else spelling
    for variant, seen in _variants(texts, form, words):
        values = decode(variant, t, spelling)
        if values is not None:
            return values, [*nans, *seen]
    return None, []


def _variants(texts: Texts, form: str | None, words: Sequence[str]) -> Iterator[tuple[Texts, list[str]]]:
    """The texts as they are, and more and more of them rewritten."""
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
    return any(decode(texts, t) is not None for t in ([declared] if declared else _KINDS))


def _looks_like(present: Texts, options: ReadOptions) -> str | None:
    """The note on a column of texts that look like numbers, or like dates if nothing was said of those."""
    decimal = decimal_of(present)
    if decimal is not None and decimal.scale:
        return UNTOLD["digits"].replace("TYPE", str(decimal))
    for mark, point, says in _GROUPED:
        if _all_match(present, _grouped(mark, point)):
            return UNTOLD["thousands"].replace("OPTIONS", says)
    looks = (what for what, pattern in _GUISES.items() if _all_match(present, pattern))
    guise = next((UNTOLD[what] for what in looks if what != "times" or not options.dates), None)
    return guise or _two_words(present)


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
_NUMERAL = r"[0-9][0-9.,' ]*"
_GUISES: Mapping[str, str] = {
    "signs": rf"^[-+]?\p{{Sc}} ?[-+]?{_NUMERAL}$|^[-+]?{_NUMERAL} ?[%\p{{Sc}}]$",
    "times": r"^([0-9]{1,2}[/.\-][0-9]{1,2}[/.\-][0-9]{4}"
    r"|[0-9]{4}[/.\-][0-9]{1,2}[/.\-][0-9]{1,2})([ T,].*)?$",
    "years": r"^([0-9]{1,2}[/\-][0-9]{1,2}[/\-][0-9]{2}|[0-9]{2}\.[0-9]{2}\.[0-9]{2})([ T,].*)?$",
    "months": rf"(?i)^([0-9]{{1,2}}[-/. ]*{_MONTHS}|{_MONTHS} [0-9]{{1,2}},?)[-/., ]*[0-9]{{2,4}}([ T,].*)?$",
    "clocks": r"(?i)^[0-9]{1,2}:[0-9]{2}(:[0-9]{2})? ?[ap]\.?m\.?$",
}
# What any value that is no text looks like, roughly; and how few others, and rows of those, are worth a note.
_VALUE = r"^[-+]?[0-9.,][0-9.,:/+\-' TZeE]*$|^(?i:true|false)$"
MAX_ODD, ODD_ROWS = 3, 10
UNTOLD: Mapping[str, str] = {
    "dates": "dates are texts, since day and month cannot be told apart; --dates dmy or --dates mdy says it",
    "commas": "numbers are texts, since commas may be decimal or of thousands; --decimal , says decimal, "
    "--thousands , of thousands",
    "thousands": "numbers are texts, for what is between their thousands; OPTIONS reads them as numbers",
    "signs": "numbers are texts, for the signs beside them; without those they are numbers",
    "times": "dates are texts as they are spelt; 2026-12-31 14:05 is read, and with --dates dmy or mdy "
    "31/12/2026 14:05",
    "years": "dates are texts, since their years have two digits; 2026-12-31 and 31/12/2026 are read",
    "months": "dates are texts, since their months are words; 2026-12-31 and 31/12/2026 are read",
    "clocks": "times of the day are texts as they are spelt; --types {}=time reads 17:05:00",
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
        t = None if name in declared else next((t for t in _KINDS if decode(column, t) is not None), None)
        if t is not None:
            by_type.setdefault(t, []).append(name)
    return tuple(
        f"{listing(names)}: dates are texts, as JSON has no dates; "
        f"--types {shorten(names[0])[1:-1]}={t} reads them as such"
        for t, names in by_type.items()
    )


def words_note(names: Sequence[str], words: Sequence[str]) -> str:
    """What is said of columns of texts that have words for NULL in them."""
    return f"{listing(names)}: {', '.join(words)} is a text like any other; {_nulls(words)} reads it as NULL"


def odd_texts(bare: Texts) -> list[str]:
    """The few texts of a column that do not look like values of any type where nearly all others do, or none.

    >>> odd_texts(pa.chunked_array([["1.5"] * 10 + ["unknown"]], pa.large_string()))
    ['unknown']
    """
    odd: list[str] = []
    for part in (bare.slice(0, 64), bare):  # of most columns of texts the first ones show it
        present = part.drop_null()
        unlike = present.filter(pc.invert(pc.match_substring_regex(present, _VALUE)))
        odd = pc.unique(unlike).to_pylist()
        if len(odd) > MAX_ODD:
            return []
    few = len(unlike) * ODD_ROWS <= len(present)
    return odd if few and all(0 < len(text) <= 40 for text in odd) else []


def odd_note(names: Sequence[str], odd: Sequence[str], words: Sequence[str], t: Type) -> str:
    """What is said of columns that would be of a type but for a few texts; `words`: those for NULL there."""
    what = {"bool": "boolean", "date": "date", "timestamp": "time"}.get(t.family, "number")
    shown = ", ".join(shorten(text) for text in odd)
    it, is_no = ("it", f"is no {what}") if len(odd) == 1 else ("them", f"are no {what}s")
    return (
        f"{listing(names)}: texts, since {shown} {is_no}; {_nulls([*words, *odd])} reads {it} as NULL, "
        f"--types {shorten(names[0])[1:-1]}=text keeps the texts"
    )


def _nulls(words: Sequence[str]) -> str:
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
    if t.family in NUMBERS and "," in text and _all_match(value, _grouped(",", ".")):
        return (
            "say --thousands ',' or --decimal ',', "
            if _all_match(value, _COMMAS)
            else "say --thousands ',', "
        )
    return "say --decimal ',', " if t.family in NUMBERS and _all_match(value, _COMMAS) and "," in text else ""


def _array(words: Sequence[str]) -> Any:
    return pa.array(list(words), pa.large_string())


def _all_in(texts: Texts, words: Sequence[str]) -> bool:
    return pc.all(pc.is_in(texts, value_set=_array(words))).as_py() is not False


def _all_match(texts: Texts, pattern: str) -> bool:
    # Most columns are of no form, and a few texts show it.
    parts = (texts.slice(0, 8), texts.slice(8))
    return all(pc.all(pc.match_substring_regex(part, pattern)).as_py() is not False for part in parts)
