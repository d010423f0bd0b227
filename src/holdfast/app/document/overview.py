"""The workspace as a whole: the health of each table and why, what broke and when, the newest versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from holdfast.app.document.pictures import sparkline, timeline
from holdfast.app.document.writing import Json, and_more, code, moment, moved, scrolled, since, wide
from holdfast.app.report.html import text_html
from holdfast.app.report.log import unmuted
from holdfast.app.report.texts import dependency_text, name_text
from holdfast.core.store.change_log import LogEntry
from holdfast.core.words.sameness import DependencySet
from holdfast.errors import plural

MOST_TABLES, MOST_REASONS = 500, 3
MOST_INCIDENTS = 25
MOST_VERSIONS, MOST_CHANGES = 40, 6
BUCKETS = 60
WORDS = {
    "broken": "a pin or a foreign key does not hold",
    "drifting": "a warning, a tolerance that is used, or something that had held for long",
    "hold": "what is relied on holds",
    "unwatched": "nothing is pinned, and nothing was found to hold: so nothing could break",
}


def health_words(overview: Json) -> str:
    """How many tables are broken, drifting, and hold; and unwatched, if there is one."""
    counts = overview["health"]
    words = "".join(
        f'<span class="word {word}"><b>{counts[word]:,}</b> '
        f"{'holds' if word == 'hold' and counts[word] == 1 else word}</span>"
        for word in WORDS
        if word != "unwatched" or counts[word]
    )
    return f'<p class="words">{words}</p>'


def health_of(table: Json) -> str:
    """A table's health as a word, which says more where somebody points at it."""
    word = table["health"]
    return f'<span class="health {word}" title="{WORDS[word]}">{"holds" if word == "hold" else word}</span>'


def reason_html(reason: Json) -> str:
    spell = since(reason["since"], reason["since_at"], at_least=reason["at_least"])
    return (
        f'{code(reason["text"])} <span class="faint">{text_html(reason["why"])}'
        f"{text_html(spell and f', {spell}')}</span>"
    )


def tables(overview: Json) -> Iterator[str]:
    """All tables, those with problems first."""
    listed = overview["tables"]
    if not listed:
        return
    rows = []
    for i, table in enumerate(listed[:MOST_TABLES]):
        why = [reason_html(reason) for reason in table["why"][:MOST_REASONS]]
        more = len(table["why"]) - len(why)
        why += [f'<span class="faint">and {more:,} more</span>'] if more > 0 else []
        pins = f"{table['n_pins']:,}" if table["n_pins"] else ""
        cells = (
            health_of(table),
            f'<a href="#t{i}">{text_html(name_text(table["name"]))}</a>',
            f"{table['n_rows']:,}",
            sparkline(table["name"], table["spark"]),
            pins,
            "<br>".join(why),
            text_html(f"version {table['changed']:,}, {moment(table['changed_at'])}"),
        )
        rows.append("<tr>" + "".join(f"<td>{text}</td>" for text in cells) + "</tr>")
    names = ("health", "table", "rows", "rows over time", "pins", "why", "last changed")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    table_text = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    yield scrolled(table_text, "Tables and their health", "wide healths")
    yield and_more(len(listed) - MOST_TABLES, "", "show")


def incidents(overview: Json, bars: Json) -> Iterator[str]:
    """What broke and may have been meant, newest first, below what broke and appeared over all versions."""
    yield "<h2>What broke</h2>"
    if any(bars["events"]["broke"]) or any(bars["events"]["appeared"]):
        yield timeline(bars)
        yield (
            '<p class="faint">Upward: what broke; downward: what appeared; '
            f"from version {bars['since']:,} to {bars['until']:,}.</p>"
        )
    listed = overview["incidents"][:MOST_INCIDENTS]
    if not listed:
        yield '<p class="faint">Nothing that looks meant broke since the tables were tracked.</p>'
    for (version, table), group in groupby(listed, key=lambda i: (i["version"], i["table"])):
        of_version = list(group)
        first = of_version[0]
        batch = f"batch {name_text(first['batch_id'])}" if first["batch_id"] else ""
        at_least = " or before" if first.get("at_least") else ""
        words = (f"version {version:,}{at_least}", batch, moved(first), moment(first["at"]))
        yield f"<p><b>{text_html(name_text(table))}</b> {text_html(', '.join(filter(None, words)))}</p>"
        yield "<ul>" + "".join(f"<li>{_incident(i)}</li>" for i in of_version) + "</ul>"
    yield and_more(overview["n_incidents"] - len(listed), "", "log")


def _incident(incident: Json) -> str:
    if incident["holds"]:
        state = f'<span class="good">holds again since version {incident["again"]:,}</span>'
    else:
        state = f'<span class="bad">{"broken" if incident["strong"] else "broke"}</span>'
    role = "" if incident["role"] in ("dependency", "pinned") else f"{incident['role']}; "
    return (
        f'{code(incident["text"])} {state} <span class="faint">{text_html(role + incident["reason"])}</span>'
    )


def versions(log: Sequence[LogEntry], muted: DependencySet) -> Iterator[str]:
    """The newest versions, newest first; of what is muted only how much."""
    yield "<h2>What changed</h2>"
    rows = []
    for entry in log[: -MOST_VERSIONS - 1 : -1]:
        several = len(entry.tables) > 1
        texts = {}
        for event in ("broke", "appeared"):
            of_event = [
                c for c in entry.changes if c.change == event and entry.action not in ("track", "drop")
            ]
            changes = unmuted(of_event, muted)
            shown = [dependency_text(c.dependency, with_table=several) for c in changes[:MOST_CHANGES]]
            rest = ((len(changes) - len(shown), "more"), (len(of_event) - len(changes), "muted"))
            texts[event] = "; ".join([*shown, *(f"and {n:,} {what}" for n, what in rest if n)])
        rows.append(
            {
                "version": f"{entry.version}",
                "at": entry.at,
                "what": entry.action,
                "tables": ", ".join(map(name_text, entry.tables)),
                **texts,
            }
        )
    yield wide(rows, "The newest versions", "log")
    yield and_more(len(log) - len(rows), f"version{'' if len(log) - len(rows) == 1 else 's'}", "log")


def in_short(overview: Json) -> str:
    """What the head of the document says."""
    pins = plural(overview["n_pins"], "pin") if overview["n_pins"] else "nothing is pinned"
    n_tables = plural(len(overview["tables"]), "table")
    return f"version {overview['version']:,} of the workspace, {n_tables}, {pins}"
