"""What does not hold now: what it says, since when, its life, the rows against it, the missing values.

That is what the health of tables is about, and the broken references of the map. The first of them are shown
whole, with a job over the rows for each; the others are listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.app.document.pictures import lifeline
from holdfast.app.document.writing import (
    Json,
    and_more,
    asked,
    code,
    command_of,
    faint,
    items,
    moment,
    moved,
    plain,
    since,
    wide,
)
from holdfast.app.explorer import Explorer
from holdfast.app.report.html import text_html
from holdfast.app.report.texts import ind_text, name_text
from holdfast.core.words.dependency import Ind, Side
from holdfast.errors import HoldfastError, plural

MOST_SHOWN, MOST_LISTED = 20, 100
MOST_ROWS, MOST_COLUMNS = 10, 12
MOST_STRETCHES, MOST_ORPHANS = 4, 10
NOW = {True: "holds", False: "does not hold", None: "is not known"}
BEGUN = {
    "track": "when the table was tracked",
    "pin": "when it was pinned",
    "drop": "when a table was dropped",
}
THEN = {True: "held", False: "did not hold", None: "was not known"}


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that does not hold, or not quite: of a table, by the text that asks for it, and why."""

    table: str
    ask: str
    text: str
    word: str
    why: str


def troubles(overview: Json, drawing: Json) -> list[Trouble]:
    """Each once, the gravest tables first; references that broke and count less come last."""
    listed: dict[tuple[str, str], Trouble] = {}
    for table in overview["tables"]:
        for r in table["why"]:
            spell = since(r["since"], r["since_at"], at_least=r["at_least"])
            why = f"{r['why']}, {spell}" if spell else r["why"]
            trouble = Trouble(table["name"], r["ask"], r["text"], r["word"], why)
            listed.setdefault((trouble.table, trouble.ask), trouble)
    for r in drawing["references"]:
        if r["state"] == "broken":
            sides = Side(r["child"], tuple(r["columns"])), Side(r["parent"], tuple(r["parent_columns"]))
            why = f"reference: {r['label']} of its values are missing"
            trouble = Trouble(r["child"], r["ask"], ind_text(Ind(*sides)), "broken", why)
            listed.setdefault((trouble.table, trouble.ask), trouble)
    return list(listed.values())


def broken(explorer: Explorer, overview: Json, drawing: Json) -> Iterator[str]:
    listed = troubles(overview, drawing)
    yield "<h2>Broken now</h2>"
    if not listed:
        counts = ((overview["n_pins"], "pin"), (len(drawing["references"]), "reference"))
        held = " and ".join(plural(n, noun) for n, noun in counts if n)
        yield f'<p class="good">Nothing{held and f": {held} hold"}.</p>'
    for trouble in listed[:MOST_SHOWN]:
        yield f'<article class="trouble {trouble.word}">{"".join(_trouble(explorer, trouble))}</article>'
    others = listed[MOST_SHOWN:]
    yield items(
        f"{text_html(name_text(t.table))}: {code(t.text)} "
        f'<span class="faint">{text_html(t.why)}</span> {command_of("explain", t.table, t.ask)}'
        for t in others[:MOST_LISTED]
    )
    yield and_more(len(others) - MOST_LISTED, "", "pins")


def _trouble(explorer: Explorer, trouble: Trouble) -> Iterator[str]:
    where = text_html(name_text(trouble.table))
    yield (
        f'<h3><span class="health {trouble.word}">{trouble.word}</span> {code(trouble.text)} '
        f'<span class="faint">of {where}</span></h3>'
    )
    try:
        answer = asked(explorer, "explain", table=trouble.table, ask=trouble.ask)
    except HoldfastError as error:  # of a class from elsewhere, or of columns that are gone
        yield faint(f"{trouble.why}. {error}")
        return
    yield f"<p>{text_html(answer['noun'])}: {text_html(answer['sentence'])}.</p>"
    yield faint(". ".join(filter(None, (trouble.why, _terms(answer["pin"])))))
    yield from _life(answer["life"], trouble)
    if answer["dependency"]["kind"] == "ind":
        yield from _orphans(explorer, trouble)
    if answer["lists_rows"]:
        yield from _rows(explorer, trouble)


def _terms(pin: Json | None) -> str:
    """The terms of a pin, but for those that every pin has."""
    if pin is None:
        return ""
    severity = "" if pin["severity"] == "error" else f"severity {pin['severity']}"
    at_most = "" if pin["at_most"] is None else f"tolerated: {pin['at_most']}"
    owner = f"owner: {pin['owner']}" if pin["owner"] else ""
    reason = f"pinned because: {pin['reason']}" if pin["reason"] else ""
    return "; ".join(filter(None, (severity, at_most, reason, owner)))


def _life(life: Json, trouble: Trouble) -> Iterator[str]:
    """When it held and when not: on a line, and the newest stretches in words."""
    stretches = life["stretches"]
    if not stretches:
        if life["note"]:
            yield faint(f"Its life is not known: {life['note']}")
        return
    words = [_stretch(stretch) for stretch in stretches]
    yield lifeline(stretches, life["versions"], words)
    yield items(text_html(text) for text in words[: -MOST_STRETCHES - 1 : -1])
    rest = life["n_stretches"] - min(len(words), MOST_STRETCHES)
    yield and_more(rest, f"stretch{'' if rest == 1 else 'es'}", "explain", trouble.table, trouble.ask)


def _stretch(stretch: Json) -> str:
    """A stretch in words, with what began it."""
    first, last, begun = stretch["first"], stretch["last"], stretch["begun"] or {}
    if last is None:
        text = f"{NOW[stretch['holds']]} since version {first:,}"
    else:
        where = f"version {first:,}" if first == last else f"versions {first:,} to {last:,}"
        text = f"{THEN[stretch['holds']]} in {where}"
    by = BEGUN.get(begun.get("action", ""), "")
    batch = f"batch {name_text(begun['batch_id'])}" if begun.get("batch_id") else ""
    rows = ", ".join(filter(None, (moved(table) for table in begun.get("tables", ()))))
    return ", ".join(filter(None, (text, by, batch, rows, moment(begun.get("at")))))


def _orphans(explorer: Explorer, trouble: Trouble) -> Iterator[str]:
    """Values that are missing, those of most rows first."""
    try:
        answer = asked(explorer, "orphans", table=trouble.table, ask=trouble.ask)
    except HoldfastError:  # it is on no map: the rows below tell
        return
    if not answer["n_values"]:
        return
    rows = plural(answer["n_rows"], "row")
    values = ", ".join(
        f"{plain(v['value'])} ({plural(v['n_rows'], 'row')})" for v in answer["values"][:MOST_ORPHANS]
    )
    more = answer["n_values"] - min(len(answer["values"]), MOST_ORPHANS)
    rest = f" and {more:,} more" if more > 0 else ""
    yield (
        f"<p>{plural(answer['n_values'], 'value')} in {rows} {'is' if answer['n_values'] == 1 else 'are'} "
        f"missing: {text_html(values)}{rest}</p>"
    )


def _rows(explorer: Explorer, trouble: Trouble) -> Iterator[str]:
    """The first rows that violate it; and how many there are, and how few are to go."""
    try:
        answer = asked(explorer, "violations", table=trouble.table, ask=trouble.ask, limit=MOST_ROWS)
    except HoldfastError as error:
        yield faint(f"The rows cannot be listed. {error}")
        return
    if not answer["n_violating"]:
        return
    least, most = answer["remove"]["at_least"], answer["remove"]["at_most"]
    fewest = plural(most, "row") if least == most else f"at most {plural(most, 'row')}"
    yield (
        f"<p>{answer['n_violating']:,} of {plural(answer['n_rows'], 'row')} violate it; without {fewest} it "
        "holds.</p>"
    )
    columns = answer["columns"]
    places = {column["mark"]: i for i, column in enumerate(columns) if column["mark"]}
    others = [i for i, column in enumerate(columns) if not column["mark"]]
    chosen = sorted(sorted(others, key=lambda i: not columns[i]["concerned"])[:MOST_COLUMNS])
    suggests = "suggested" in places and any(row[places["suggested"]] is not None for row in answer["rows"])
    records = []
    for row in answer["rows"]:
        record = {"row": plain(row[places["row"]]), "to remove": "yes" if row[places["remove"]] else ""}
        if suggests:
            value = row[places["suggested"]]
            record["should be"] = "" if value is None else plain(value)
        # By places: columns of the table may be called like those of the listing.
        for i in chosen:
            name = columns[i]["name"]
            record[f"{name} (column)" if name in ("row", "to remove", "should be") else name] = plain(row[i])
        records.append(record)
    yield wide(records, f"Rows that violate {trouble.text}")
    if len(others) > len(chosen):
        yield faint(f"and {plural(len(others) - len(chosen), 'more column')}")
    more = answer["n_violating"] - len(records)
    yield and_more(more, f"row{'' if more == 1 else 's'}", "violations", trouble.table, trouble.ask, "--all")
