"""What the page asks about one table: its columns, keys and references, and what holds in it, best first.

Nothing here looks at rows: all of it is what a version keeps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast.app.explorer.fd_groups import fd_groups
from holdfast.app.explorer.listing import MUTED, Ask, Listing, listing_of
from holdfast.app.explorer.newest import Newest
from holdfast.app.explorer.routes import Route, Share, Text, Whole
from holdfast.app.explorer.tracked_answers import dependency_dict, rank_dict
from holdfast.app.report.texts import pin_text
from holdfast.core.words.change import Pin
from holdfast.core.words.column_facts import ColumnFacts
from holdfast.core.words.dependency import Dependency, Ind, Side
from holdfast.core.words.key_score import KeyScores
from holdfast.core.words.ranks import ROLES, Rank, best_first
from holdfast.errors import UnknownColumnError
from holdfast.inclusions.ind_reading import ALMOST, ORPHAN
from holdfast.kind import kinds
from holdfast.order import Order
from holdfast.profile.column_profile import ColumnProfile

MOST_DEPENDENCIES = 1_000
USUAL_DEPENDENCIES = 50
MOST_KEYS = 12  # of the table's head; all are among the dependencies
MOST_REFERENCES = 100
MOST_PINS = 500
RELIED = ("foreign key", "pinned")


class TableAnswers:
    def __init__(self, newest: Newest) -> None:
        self._newest = newest

    def routes(self) -> Mapping[str, Route]:
        table = Text("table", needed=True)
        wanted = (
            table,
            Text("kind", kinds()),
            Text("column"),
            Text("q"),
            Share("least_score"),
            Text("role", ROLES),
            Whole("offset", 0),
            Whole("limit", USUAL_DEPENDENCIES, 0, MOST_DEPENDENCIES),
        )
        return {
            "workspace/table": Route(self.table, (Text("name", needed=True),)),
            "workspace/dependencies": Route(self.dependencies, wanted),
            "workspace/fds": Route(self.fds, (table, Whole("follow", 0, 0, 1))),
        }

    # -- one table ----------------------------------------------------------------------------

    def table(self, name: str) -> dict[str, Any]:
        """Its columns, with what is known of their values; keys, references and pins, the gravest first."""
        answer: dict[str, Any] = self._newest.cached(("table", name), lambda: self._table(name))
        return answer

    def _table(self, name: str) -> dict[str, Any]:
        ws, at = self._newest.workspace, self._newest.at
        state = self._order.state(name)
        pins = sorted(ws.pins(name, at), key=lambda pin: pin.holds)
        [tracked] = [c for c in ws.ledger.commits(name) if c.action == "track"][-1:]
        references = self._references(name)
        keys = self._keys(name, references["into"])
        return {
            "version": self._newest.version,
            "name": name,
            "n_rows": state.n_rows,
            "kinds": list(state.kinds),
            "nulls": state.nulls,
            "tracked": self._moment(tracked.version),
            "max_lhs": ws.fds.max_lhs(name, at),
            "max_columns": ws.keys.max_columns(name, at),
            "columns": self._columns(name, keys, references["out"]),
            "keys": keys,
            "references": references,
            "pins": [self._pin(pin) for pin in pins[:MOST_PINS]],
            "n_pins": len(pins),
        }

    def _columns(
        self, name: str, keys: Mapping[str, Any], references: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        state, profiles = self._order.state(name), self._profiles(name)
        unique = {k["columns"][0] for k in keys["first"] if len(k["columns"]) == 1}
        primary = keys["first"][0]["columns"] if keys["has_primary"] else []
        to: dict[str, list[str]] = {}
        for r in references:
            if r["role"] in RELIED:
                for column, other in zip(r["dependent"]["columns"], r["referenced"]["columns"], strict=True):
                    to.setdefault(column, []).append(f"{r['referenced']['table']}.{other}")
        columns = []
        for f, type_ in zip(state.column_facts(), state.schema.types, strict=True):
            fields: dict[str, Any] = {
                "name": f.column,
                "type": str(type_),
                "n_distinct": f.n_distinct,
                # Of several segments the sum is told, unless a profile counts them.
                "is_estimate": len(state.segments) > 1,
                "is_primary": f.column in primary,
                "is_unique": f.column in unique,
                "refers_to": to.get(f.column, []),
            }
            profile = profiles.get(f.column)
            if profile is not None:
                fields |= _profile_dict(profile, f.n_distinct)
            columns.append(fields)
        return columns

    def _keys(self, name: str, into: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The first keys, the primary key among them first, each with why it is where it is.

        It is the one that reports call so, or the one that foreign keys refer to.
        """
        listing, order = self._listing(name), self._order
        part = listing.part("ucc")
        if part is None:
            return {"n": None, "n_chance": 0, "has_primary": False, "first": []}
        chosen = listing.choose(Ask("ucc"))
        referred = (tuple(r["referenced"]["columns"]) for r in into if r["role"] == "foreign key")
        primary = order.table(name).primary_key or next(referred, None)
        first = listing.named(chosen.places[listing.roles[chosen.places] != MUTED][:MOST_KEYS])
        first.sort(key=lambda key: key[0].columns != primary)
        scores = KeyScores(self._facts(name))
        keys = self._listed(name, first)
        for key, (ucc, _) in zip(keys, first, strict=True):
            key["reasons"] = [reason.to_dict() for reason in scores.reasons(ucc.columns)]
        has_primary = bool(first) and primary is not None and first[0][0].columns == primary
        return {
            "n": len(chosen.places),
            "n_chance": chosen.n_chance,
            "has_primary": has_primary,
            "first": keys,
        }

    def _facts(self, name: str) -> list[ColumnFacts]:
        """What is known of the columns, profiles included."""
        profiles = self._profiles(name)
        facts = self._order.state(name).column_facts()
        return [_with_profile(f, profiles[f.column]) if f.column in profiles else f for f in facts]

    def _profiles(self, name: str) -> Mapping[str, ColumnProfile]:
        ws = self._newest.workspace
        return {p.column: p for p in ws.profiles.columns(self._order.state(name))}

    def _references(self, name: str) -> dict[str, Any]:
        """Inclusions of the table and in it, those that are chosen or pinned first.

        One that misses a few values is there if it would be a foreign key: it broke, most likely. So is one
        that broke and was a foreign key, or is pinned, whatever it misses; of several columns that is looked
        up in rows. The map draws the same ones as broken.
        """
        near = self._near(name)
        gone = self._gone(name, {*near})
        ranks = dict(zip([*near, *gone], self._order.ranks([*near, *gone]), strict=True))
        listed = [ind for ind in near if not ind.missing_values or ranks[ind].role in RELIED] + gone
        placed = [listed[i] for i in best_first([ranks[ind] for ind in listed])]
        answer: dict[str, Any] = {}
        for side in ("out", "into"):
            those = [(ind, ranks[ind]) for ind in placed if name == _table_of(ind, side)]
            meant = [(ind, rank) for ind, rank in those if rank.role not in ("chance", "muted")]
            answer[side] = self._listed(name, meant[:MOST_REFERENCES])
            answer[f"n_{side}"], answer[f"n_chance_{side}"] = len(those), len(those) - len(meant)
        return answer

    def _near(self, name: str) -> list[Ind]:
        """What holds of a table, or almost does, as `links` sees it."""
        listed = self._newest.workspace.inds.listed(name, self._newest.at, ORPHAN)
        return [ind for ind in listed if ind.missing_values <= 1 or ind.error <= ALMOST]

    def _gone(self, name: str, near: set[Ind]) -> list[Ind]:
        """The inclusions that miss more of what was a foreign key or is pinned, with what they miss."""
        ws, at = self._newest.workspace, self._newest.at
        references = self._order.references()
        if references is None:
            return []
        pinned = [Ind(Side(p.table, p.columns), p.referenced) for p in ws.inds.pins(None, at) if p.referenced]
        broken: list[tuple[Side, Side]] = self._newest.cached("broken", lambda: ws.inds.broken(at))
        relied, once = (
            {ind for ind in inds if name in (ind.dependent.table, ind.referenced.table)} - near
            for inds in (pinned, [Ind(*sides) for sides in broken])
        )
        # Columns of other tables that led here may lead elsewhere now.
        children = {ind.dependent for ind in once}
        for child in sorted({side.table for side in children} - {name}):
            near = near.union(ind for ind in self._near(child) if ind.dependent in children)
        missed = relied | (references.lost(sorted(near), sorted(once)) if once else set())
        measured = ws.inds.measured([(ind.dependent, ind.referenced) for ind in sorted(missed)], at)
        return [ind for ind in measured if ind.missing_values]

    def _pin(self, pin: Pin) -> dict[str, Any]:
        fields = {**pin.to_dict(), "text": pin_text(pin), "counted": pin.counted}
        fields.pop("witnesses", None)
        return fields

    # -- what holds in it ---------------------------------------------------------------------

    def dependencies(
        self,
        table: str,
        kind: str | None,
        column: str | None,
        q: str | None,
        least_score: float,
        role: str | None,
        offset: int,
        limit: int,
    ) -> dict[str, Any]:
        """Some of what holds in a table, best first: all `n`, those that match, and of these what looks like
        chance and what is muted, which come last. `by_kind` counts those that match if the kind does not
        matter."""
        listing = self._listing(table)
        position = None
        if column is not None:
            if column not in listing.names:
                raise UnknownColumnError.from_missing(table, self._newest.version, column, listing.names)
            position = listing.names.index(column)
        chosen = listing.choose(Ask(kind, position, q, least_score, role))
        return {
            "version": self._newest.version,
            "n": len(listing),
            "n_matching": len(chosen.places),
            "n_chance": chosen.n_chance,
            "n_muted": chosen.n_muted,
            "by_kind": chosen.by_kind,
            "dependencies": self._listed(table, listing.named(chosen.places[offset : offset + limit])),
        }

    def fds(self, table: str, follow: int) -> dict[str, Any]:
        """Functional dependencies by their left-hand sides, the best groups, for a picture: those that do not
        follow from a key, or those that do."""
        names = self._order.state(table).schema.names
        answer: dict[str, Any] = self._newest.cached(
            ("fds", table, follow), lambda: fd_groups(self._listing(table), names, follow=bool(follow))
        )
        return {"version": self._newest.version, **answer}

    # -- inside -------------------------------------------------------------------------------

    @property
    def _order(self) -> Order:
        newest = self._newest
        order: Order = newest.cached("order", lambda: newest.workspace.readers.order(newest.at))
        return order

    def _listing(self, table: str) -> Listing:
        newest = self._newest
        listing: Listing = newest.cached(
            ("listing", table), lambda: listing_of(newest.workspace, self._order, table, newest.at)
        )
        return listing

    def _listed(self, table: str, some: Sequence[tuple[Dependency, Rank]]) -> list[dict[str, Any]]:
        """Dependencies for people, each with what it means, and since when it holds."""
        holding = [d for d, _ in some if not (isinstance(d, Ind) and d.missing_values)]
        since = dict(
            zip(map(id, holding), self._newest.workspace.since(table, holding, self._newest.at), strict=True)
        )
        return [
            {
                **dependency_dict(d),
                **rank_dict(rank),
                "score": round(rank.score, 4),
                "since": self._moment(since.get(id(d))),
            }
            for d, rank in some
        ]

    def _moment(self, version: int | None) -> dict[str, Any] | None:
        """A version, and its time."""
        if version is None:
            return None
        times = self._newest.cached(
            "times", lambda: {c.version: c.at for c in self._newest.workspace.ledger.commits()}
        )
        at = times.get(version)
        return {"version": version, "at": at.isoformat() if at is not None else None}


def _table_of(ind: Ind, side: str) -> str:
    return ind.dependent.table if side == "out" else ind.referenced.table


def _profile_dict(profile: ColumnProfile, n_distinct: int) -> dict[str, Any]:
    """What a profile says of a column; values as texts where JSON has no type for them."""
    fields = profile.to_dict()
    chosen = ("n_nulls", "low", "high", "top", "lengths", "patterns", "n_patterns")
    facts = {name: fields[name] for name in chosen}
    if profile.n_distinct is not None:
        return {**facts, "n_distinct": profile.n_distinct, "is_estimate": False}
    return facts


def _with_profile(facts: ColumnFacts, profile: ColumnProfile) -> ColumnFacts:
    """Facts about a column with what its profile says."""
    numbers = [float(v) if isinstance(v, int | float) else None for v in (profile.low, profile.high)]
    return replace(
        facts,
        n_values=profile.n_values,
        n_distinct=facts.n_distinct if profile.n_distinct is None else profile.n_distinct,
        low=numbers[0],
        high=numbers[1],
        mean_length=None if profile.lengths is None else profile.lengths.mean,
    )
