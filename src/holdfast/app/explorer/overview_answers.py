"""What the page asks about the workspace as a whole: what is broken now, since when, and where.

Nothing here lists dependencies: the history is numbers (`ChangeCounts`), which stay from version to version;
what broke lately is weighed by `broken.py`, and what a table's health is by `health.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from holdfast.app.explorer.broken import Incident, OpenInclusions, incidents, lives
from holdfast.app.explorer.health import WORDS, PinSpells, Reason, incident_reasons, pin_reasons, word_of
from holdfast.app.explorer.newest import Newest
from holdfast.app.explorer.routes import Route, Text, Whole
from holdfast.app.report.texts import dependency_text, safe
from holdfast.core.store.change_counts import I64, TRACKED, UNKNOWN, Bool, ChangeCounts, Counts, change_texts
from holdfast.core.store.ledger_rows import EPOCH, LAKE, SHARED
from holdfast.core.words.asking import ask_of
from holdfast.core.words.ranks import EVENTS, ROLES
from holdfast.errors import UnknownTableError
from holdfast.kind import dependency_from, kinds

Json = dict[str, Any]
SPARKS = 60  # places of a sparkline
MOST_BUCKETS = 2_000
MOST_VERSIONS = 200
MOST_CHANGES = 20  # of a version that is listed
MOST_INCIDENTS = 40
ALL_EVENTS = (*EVENTS, TRACKED)


class OverviewAnswers:
    def __init__(self, newest: Newest) -> None:
        self._newest = newest
        self._counts, self._inclusions, self._spells = ChangeCounts(), OpenInclusions(), PinSpells()

    def routes(self) -> Mapping[str, Route]:
        about = (Text("table"), Text("kind", kinds()))
        within = (Whole("since", 0), Whole("until", 0))
        return {
            "workspace/overview": Route(self.overview),
            "workspace/incidents": Route(
                self.incidents, (Whole("offset", 0), Whole("limit", MOST_INCIDENTS, 1, MOST_VERSIONS))
            ),
            "workspace/timeline": Route(
                self.timeline, (*about, *within, Whole("buckets", 200, 1, MOST_BUCKETS))
            ),
            "workspace/versions": Route(
                self.versions,
                (
                    *about,
                    Text("event", ALL_EVENTS),
                    Whole("since", 0),
                    Whole("before", 0),
                    Whole("limit", 50, 1, MOST_VERSIONS),
                ),
            ),
        }

    # -- the tables -------------------------------------------------------------------------------

    def overview(self) -> Json:
        """Tables with their health, those with problems first, and what broke, newest first."""
        tables, broken = self._newest.cached("overview", self._overview)
        return {**tables, "n_incidents": len(broken), "incidents": broken[:MOST_INCIDENTS]}

    def incidents(self, offset: int, limit: int) -> Json:
        """Some of what broke, newest first, in the order of the overview."""
        _, broken = self._newest.cached("overview", self._overview)
        page = broken[offset : offset + limit]
        return {"version": self._newest.version, "n_incidents": len(broken), "incidents": page}

    def _overview(self) -> tuple[Json, list[Json]]:
        """(the tables, all incidents)."""
        ws, at, counts = self._newest.workspace, self._newest.version, self._counted()
        names = ws.tables(at or None)
        pins = ws.pins(at=at or None)
        listed = incidents(ws, counts, self._inclusions, names, at) if names else []
        reasons: dict[str, list[Reason]] = {name: [] for name in names}
        for of_table in (pin_reasons(ws, pins, self._spells, at), incident_reasons(listed, at)):
            for table, some in of_table.items():
                reasons[table] += some
        pinned = {name: [pin for pin in pins if pin.table == name] for name in names}
        since = lives(counts, names)
        tables = [
            {
                "name": name,
                "n_rows": ws.n_rows(name, at),
                "kinds": list(ws.kinds(name, at)),
                "n_pins": len(pinned[name]),
                "health": word_of(reasons[name], is_watched=bool(pinned[name]) or self._held(counts, name)),
                "why": [self._reason(r) for r in sorted(reasons[name], key=_gravest)],
                "tracked": since[name],
                **self._sparkline(counts, name, since[name]),
            }
            for name in names
        ]
        tables.sort(key=lambda table: (WORDS.index(table["health"]), -(_latest(table) or 0), table["name"]))
        words = [table["health"] for table in tables]
        broken = [
            self._pin_incident(reason, table)
            for table in names
            for reason in reasons[table]
            if reason.role == "pinned" and reason.since is not None
        ]
        pinned_texts = {(incident["table"], incident["text"]) for incident in broken}
        others: list[Json] = [self._incident(i) for i in listed]
        shown = [*broken, *(i for i in others if (i["table"], i["text"]) not in pinned_texts)]
        shown.sort(key=lambda incident: -incident["version"])
        answer: Json = {"version": at, "at": self._time(at), "n_pins": len(pins), "tables": tables}
        return {**answer, "health": {word: words.count(word) for word in WORDS}}, shown

    def _held(self, counts: ChangeCounts, table: str) -> bool:
        """Whether anything was ever found to hold in a table."""
        some = counts.counts
        came = [counts.events.get(event) for event in (TRACKED, "appeared")]
        return bool(((some.table == counts.tables.get(table)) & np.isin(some.event, came)).any())

    def _reason(self, reason: Reason) -> Json:
        since_at = None if reason.since is None else self._time(reason.since)
        return {**reason.to_dict(), "since_at": since_at}

    def _sparkline(self, counts: ChangeCounts, table: str, since: int) -> Json:
        """Rows over the versions of the workspace, at a few of them, and how much broke up to each."""
        code, commits, some = counts.tables.get(table), counts.commits, counts.counts
        last = self._newest.version
        places = np.unique(np.linspace(min(since, last), last, SPARKS).astype(np.int64))
        chosen = (commits.table == code) & (commits.n_rows != UNKNOWN) & (commits.version >= since)
        versions, rows = commits.version[chosen], commits.n_rows[chosen]
        newest = np.searchsorted(versions, places, side="right") - 1
        n_rows = rows[np.maximum(newest, 0)].tolist() if len(rows) else []
        broke = (some.table == code) & (some.event == counts.events.get("broke")) & (some.version >= since)
        marks = np.bincount(
            np.searchsorted(places, some.version[broke]), weights=some.n[broke], minlength=len(places)
        )
        touched = int(versions[-1]) if len(versions) else since
        return {
            "changed": touched,
            "changed_at": self._time(touched),
            "spark": {
                "versions": places.tolist(),
                "n_rows": n_rows,
                "broke": marks.astype(np.int64)[: len(places)].tolist(),
            },
        }

    def _incident(self, incident: Incident) -> Json:
        fields = incident.dependency.to_dict()
        return {
            "version": incident.version,
            "table": incident.dependency.table,
            "kind": incident.dependency.kind,
            "text": dependency_text(fields, with_table=False),
            "ask": ask_of(incident.dependency),
            "reason": safe(incident.reason.removesuffix(":")),
            "role": incident.rank.role,
            "strong": incident.strong,
            "holds": incident.again is not None,
            "again": incident.again,
            **self._batch(incident.version, incident.dependency.table),
        }

    def _pin_incident(self, reason: Reason, table: str) -> Json:
        assert reason.since is not None
        fields = {"version": reason.since, "table": table, "kind": reason.kind, "text": reason.text}
        fields |= {"ask": reason.ask, "reason": reason.why, "role": "pinned", "strong": True}
        fields |= {"at_least": reason.at_least, "holds": False, "again": None}
        return {**fields, **self._batch(reason.since, table)}

    def _batch(self, version: int, table: str) -> Json:
        """When it was, which batch, and how many rows came and went: of the table, or of the others."""
        counts = self._counts
        commits = counts.commits
        rows = np.flatnonzero(commits.version == version)
        at = rows[commits.table[rows] == counts.tables.get(table)]
        rows = at if len(at) else rows
        moved = {
            name: int(getattr(commits, name)[rows].clip(0).sum()) for name in ("n_inserted", "n_deleted")
        }
        return {"at": self._time(version), "batch_id": counts.batch_ids.get(version), **moved}

    # -- the timeline -----------------------------------------------------------------------------

    def timeline(self, table: str | None, kind: str | None, since: int, until: int, buckets: int) -> Json:
        """How many dependencies broke, appeared ..., from one version up to another, in so many buckets.

        `since` and `until` are the first and the last version; 0 stands for those of the workspace.
        """
        key = ("timeline", table, kind, since, until, buckets)
        answer: Json = self._newest.cached(key, lambda: self._timeline(table, kind, since, until, buckets))
        return answer

    def _timeline(self, table: str | None, kind: str | None, since: int, until: int, buckets: int) -> Json:
        counts, newest = self._counted(), self._newest.version
        first, last = max(1, since), min(until or newest, newest)
        width = max(1, -(-(last - first + 1) // buckets))
        starts = np.arange(first, last + 1, width)
        some = counts.counts.chosen(self._about(counts, table, kind))
        inside = (some.version >= first) & (some.version <= last)
        bucket = (some.version - first) // width
        events = {}
        for event in ALL_EVENTS:
            here = inside & (some.event == counts.events.get(event))
            n = np.bincount(bucket[here], weights=some.n[here], minlength=len(starts))
            events[event] = n.astype(np.int64).tolist()
        ends = np.minimum(starts + width - 1, last)
        return {
            "version": newest,
            "since": first,
            "until": last,
            "first": starts.tolist(),
            "last": ends.tolist(),
            "batch_ids": [counts.batch_ids.get(v) if width == 1 else None for v in starts.tolist()],
            "from": [self._time(v) for v in starts.tolist()],
            "to": [self._time(v) for v in ends.tolist()],
            "events": events,
        }

    def versions(
        self, table: str | None, kind: str | None, event: str | None, since: int, before: int, limit: int
    ) -> Json:
        """Versions, newest first, from `since` to the one before `before`, with the first of their changes.

        Of a table those that did something to it, or changed what holds in it; of a kind or an event those
        with such changes. `next` is the `before` of what follows; None at the end.
        """
        key = ("versions", table, kind, event, since, before, limit)
        answer: Json = self._newest.cached(
            key, lambda: self._versions(table, kind, event, since, before, limit)
        )
        return answer

    def _versions(
        self, table: str | None, kind: str | None, event: str | None, since: int, before: int, limit: int
    ) -> Json:
        counts, newest = self._counted(), self._newest.version
        some = counts.counts.chosen(self._about(counts, table, kind, event))
        chosen = some.version
        if kind is None and event is None:
            commits = counts.commits
            done = commits.version if table is None else commits.version[commits.table == self._code(table)]
            chosen = np.concatenate([chosen, done])
        chosen = np.unique(chosen)
        last = before - 1 if before else newest
        chosen = chosen[(chosen >= max(1, since)) & (chosen <= last)][::-1]
        page = chosen[:limit].tolist()
        changes = self._changes(counts, page, table, kind, event)
        listed = []
        for version in page:
            here = some.version == version
            sums = dict.fromkeys(ALL_EVENTS, 0)
            for e, k in zip(some.event[here].tolist(), some.n[here].tolist(), strict=True):
                sums[counts.events.texts[e]] += k
            n = {e: k for e, k in sums.items() if k}
            listed.append({**self._version(version), "counts": n, "changes": changes.get(version, [])})
        return {
            "version": newest,
            "n": len(chosen),
            "versions": listed,
            "next": page[-1] if len(chosen) > limit else None,
        }

    def _version(self, version: int) -> Json:
        counts = self._counts
        commits = counts.commits
        tables, action = [], ""
        for row in np.flatnonzero(commits.version == version).tolist():
            name = counts.tables.texts[commits.table[row]]
            if name == SHARED:
                continue
            moved = {
                field: int(getattr(commits, field)[row]) for field in ("n_inserted", "n_deleted", "n_rows")
            }
            known = {field: n for field, n in moved.items() if n != UNKNOWN}
            tables.append({"table": "the lake" if name == LAKE else name, **known})
            action = counts.actions.texts[commits.action[row]]
        batch_id = counts.batch_ids.get(version)
        return {
            "version": version,
            "at": self._time(version),
            "action": action,
            "batch_id": batch_id,
            "tables": tables,
        }

    def _changes(
        self,
        counts: ChangeCounts,
        page: Sequence[int],
        table: str | None,
        kind: str | None,
        event: str | None,
    ) -> dict[int, list[Json]]:
        """The first changes of some versions, in the order of what they meant."""
        if not page:
            return {}
        wanted = [(counts.tables, table), (counts.kinds, kind), (counts.events, _stored(event))]

        def chosen(version: I64, *codes: I64) -> Bool:
            rows = np.isin(version, page)
            for (names, name), column in zip(wanted, codes, strict=True):
                rows &= (column >= 0) if name is None else (column == names.get(name))
            return rows & (_place(version, rows) < MOST_CHANGES)

        changes: dict[int, list[Json]] = {}
        columns = ("dependency", "reason")
        for block in change_texts(
            self._newest.workspace.ledger, counts, min(page), max(page), chosen, columns
        ):
            rows = zip(block.version.tolist(), block.event.tolist(), *block.cells.values(), strict=True)
            for version, code, text, reason in rows:
                fields = json.loads(text or "{}")
                change = {"change": counts.events.texts[code], "kind": fields["kind"]}
                change["table"] = fields["dependent"]["table"] if fields["kind"] == "ind" else fields["table"]
                change["text"] = dependency_text(fields, with_table=False)
                change["ask"] = ask_of(dependency_from(fields))
                change["reason"] = None if reason is None else safe(reason.removesuffix(":"))
                changes.setdefault(version, []).append(change)
        return changes

    # -- inside -----------------------------------------------------------------------------------

    def _counted(self) -> ChangeCounts:
        """The history up to the version that questions are answered from."""
        self._counts.read(self._newest.workspace.ledger, self._newest.version)
        return self._counts

    def _code(self, table: str) -> int:
        code = self._counts.tables.get(table)
        if code == UNKNOWN:
            known = [name for name in self._counts.tables.texts if name not in (SHARED, LAKE)]
            raise UnknownTableError.from_missing(table, sorted(known))
        return code

    def _about(
        self, counts: ChangeCounts, table: str | None, kind: str | None, event: str | None = None
    ) -> Bool:
        """Which counts are about a table, a kind, an event."""
        some: Counts = counts.counts
        rows = np.ones(len(some.version), dtype=np.bool_)
        if table is not None:
            rows &= some.table == self._code(table)
        if kind is not None:
            rows &= some.kind == counts.kinds.get(kind)
        if event is not None:
            rows &= some.event == counts.events.get(event)
        return rows

    def _time(self, version: int) -> str | None:
        """When a version was committed."""
        commits = self._counts.commits
        row = int(np.searchsorted(commits.version, version))
        if row >= len(commits.version) or commits.version[row] != version:
            return None
        return (EPOCH + timedelta(microseconds=int(commits.at[row]))).isoformat(timespec="seconds")


def _place(version: I64, rows: Bool) -> I64:
    """Which one of the chosen rows of its version each is; the rows of a version stand together."""
    before: I64 = np.cumsum(rows) - rows
    starts = np.ones(len(version), dtype=np.bool_)
    starts[1:] = version[1:] != version[:-1]
    place: I64 = before - np.maximum.accumulate(np.where(starts, before, 0))
    return place


def _stored(event: str | None) -> str | None:
    return "appeared" if event == TRACKED else event


def _gravest(reason: Reason) -> tuple[int, int, int]:
    return WORDS.index(reason.word), ROLES.index(reason.role), -(reason.since or 0)


def _latest(table: Json) -> int | None:
    return max((reason["since"] or 0 for reason in table["why"]), default=None)
