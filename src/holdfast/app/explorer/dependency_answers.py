"""What the page asks about one dependency, listed or not: what it says, its life, the rows against it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.app.explorer.asking import asked
from holdfast.app.explorer.error_series import ErrorSeries
from holdfast.app.explorer.lives import life_fields
from holdfast.app.explorer.newest import Newest
from holdfast.app.explorer.origins import Origins
from holdfast.app.explorer.routes import Download, NotFoundError, Route, Text, Whole
from holdfast.app.explorer.tracked_answers import dependency_dict, rank_dict
from holdfast.app.explorer.violation_answers import Listings
from holdfast.app.report.texts import safe
from holdfast.core.words.change import Pin
from holdfast.core.words.dependency import Dependency, Fd, Ind, Ucc
from holdfast.core.words.notation import bracketed
from holdfast.core.words.predicate import IMPLIED, Dc, Predicate, written_name
from holdfast.core.words.row_rule import RowRule
from holdfast.core.words.sameness import DependencySet
from holdfast.core.words.sentences import display_name, sentence
from holdfast.errors import UnknownTableError, shorten
from holdfast.kind import entries
from holdfast.muting import dependency_asked

MOST_LISTED = 200  # rows of one answer
MOST_IMPLYING = 20
MOST_COLUMNS = 5_000
NOUNS = {"check": "condition"}  # of what is not tracked, only written


class DependencyAnswers:
    def __init__(self, newest: Newest) -> None:
        self._newest = newest
        self._origins, self._series = Origins(), ErrorSeries()
        self._listings = Listings(newest, self._origins)

    def routes(self) -> Mapping[str, Route]:
        which = Text("table", needed=True), Text("ask", needed=True)
        page = Whole("offset", 0), Whole("limit", 50, 1, MOST_LISTED)
        order = Text("sort"), Whole("descending", 0, 0, 1)
        return {
            "workspace/columns": Route(self.columns, (Text("table", needed=True),)),
            "workspace/explain": Route(self.explain, which),
            "workspace/violations": Route(self.violations, (*which, *page, *order)),
            "workspace/violations.csv": Route(self.file, which),
        }

    def columns(self, table: str) -> dict[str, Any]:
        """The columns of a table, each as formulas and as lists have its name."""
        schema = self._schema(table)
        pairs = list(zip(schema.names, schema.types, strict=True))
        first = [
            {
                "name": name,
                "type": str(type_),
                "formula": written_name(name),
                "listed": bracketed([name])[1:-1],
            }
            for name, type_ in pairs[:MOST_COLUMNS]
        ]
        return {"version": self._newest.version, "n": len(pairs), "columns": first}

    def explain(self, table: str, ask: str) -> dict[str, Any]:
        """All about a dependency but the rows against it; `holds` is None where only these tell."""
        answer: dict[str, Any] = self._newest.cached(
            ("explain", table, ask), lambda: self._explain(table, ask)
        )
        return answer

    def violations(
        self, table: str, ask: str, offset: int, limit: int, sort: str | None, descending: int
    ) -> dict[str, Any]:
        """Rows that violate it now."""
        self._schema(table)
        return self._listings.page(table, ask, offset, limit, sort, descending=bool(descending))

    def file(self, table: str, ask: str) -> Download:
        """All rows that violate it now, as CSV."""
        self._schema(table)
        return self._listings.file(table, ask)

    # -- inside --

    def _schema(self, table: str) -> Any:
        """The columns of a table; of one that was dropped the error says when."""
        ws = self._newest.workspace
        try:
            return ws.schema(table)
        except UnknownTableError:
            last = ws.ledger.commits(table)[-1:] if table else []
            if not last or last[0].action != "drop" or last[0].at is None:
                raise
            raise NotFoundError(
                f"table {shorten(table)} was dropped at version {last[0].version}, on "
                f"{last[0].at:%Y-%m-%d at %H:%M} UTC: nothing is known of it any more but its history "
                f"('holdfast log {shorten(table)}'). Track it again to see what holds in it."
            ) from None

    def _explain(self, table: str, ask: str) -> dict[str, Any]:
        ws = self._newest.workspace
        self._schema(table)
        reader, arguments = asked(ws, table, ask)
        for side in arguments if reader is ws.inds else ():
            self._schema(side.table)
        dependency = dependency_asked(ws.readers, reader, arguments)
        life = life_fields(ws, reader, arguments, dependency, self._origins)
        holds = life["stretches"][-1]["holds"] if life["stretches"] else None
        if reader is not ws.inds and holds is None and not hasattr(reader, "violations"):
            holds = reader.explain(*arguments).holds  # of a class from elsewhere
        minimal, implying = self._implying(reader, arguments, dependency) if holds else (None, [])
        [rank] = self._newest.cached("order", lambda: ws.readers.order(self._newest.at)).ranks([dependency])
        kind, pin = dependency.kind, self._pin(dependency)
        against = self._series.of(ws, reader, arguments, dependency, pin, self._newest.version)
        return {
            "version": self._newest.version,
            "dependency": {**dependency_dict(dependency), **rank_dict(rank)},
            "table": dependency.table,
            "noun": NOUNS.get(kind) or entries()[kind].nouns[0],
            "sentence": sentence_of(dependency),
            "holds": holds,
            "minimal": minimal,
            "implied_by": [dependency_dict(d) for d in implying[:MOST_IMPLYING]],
            "n_implied_by": len(implying),
            "role": rank.role,
            "score": round(rank.score, 4),
            "pin": None if pin is None else _terms(pin),
            "life": {**life, "against": against},
            "lists_rows": hasattr(reader, "violations"),
        }

    def _implying(
        self, reader: Any, arguments: tuple[Any, ...], dependency: Dependency
    ) -> tuple[bool | None, list[Dependency]]:
        """(whether it is listed itself, else the listed ones that it follows from). None: not known."""
        ws = self._newest.workspace
        listed: list[Dependency]
        match dependency:
            case Ucc():
                explanation = reader.explain(*arguments)
                listed = list(explanation.keys)
            case Fd():
                listed = list(reader.explain(*arguments).inside)
            case Dc():
                explanation = reader.explain(*arguments)
                return explanation.minimal, [] if explanation.minimal else list(explanation.implied_by)
            case RowRule():
                state = ws.writer.tables.state(dependency.table)
                rules = [r for rule in reader.listed(state) for r in (rule, rule.mirrored)]
                listed = [
                    r
                    for r in rules
                    if (r.left, r.right) == dependency.columns and dependency.op in IMPLIED[r.op]
                ]
            case _:
                return None, []
        if dependency in listed:
            return True, []
        return (False, listed) if listed else (None, [])

    def _pin(self, dependency: Dependency) -> Pin | None:
        """The pin of a dependency; None if nobody relies on it."""
        ws = self._newest.workspace
        said = DependencySet([dependency], lambda table: ws.writer.tables.state(table).nulls)
        pins = ws.pins(dependency.table, self._newest.at)
        return next((pin for pin in pins if pin.dependency in said), None)


def _terms(pin: Pin) -> dict[str, Any]:
    """A pin on its terms."""
    fields = pin.to_dict()
    names = ("holds", "n_violations", "error", "at_most", "severity", "reason", "owner")
    return {name: fields.get(name) for name in names}


def sentence_of(dependency: Dependency) -> str:
    """What a dependency says in words.

    >>> sentence_of(Fd("orders", ("zip",), "city")), sentence_of(Ucc("orders", ("invoice",)))
    ('rows with the same zip have the same city', 'no two rows have the same invoice')
    """
    match dependency:
        case Ucc():
            same = tuple(Predicate(c, "=", c) for c in dependency.columns)
            return safe(sentence(Dc(dependency.table, same)))
        case Fd(lhs=lhs, rhs=rhs) if rhs in lhs:
            return f"{safe(display_name(rhs))} is on both sides: it holds in every table"
        case Fd(lhs=lhs, rhs=rhs):
            same = tuple(Predicate(c, "=", c) for c in lhs)
            return safe(sentence(Dc(dependency.table, (*same, Predicate(rhs, "!=", rhs)))))
        case Ind(dependent=left, referenced=right):
            names = [" and ".join(map(display_name, side.columns)) for side in (left, right)]
            each = "every" if len(left.columns) == 1 else "every combination of"
            return safe(
                f"{each} {names[0]} of {display_name(left.table)} is the {names[1]} of a row of "
                f"{display_name(right.table)}"
            )
        case Dc():
            return safe(sentence(dependency))
        case RowRule():
            return f"in each row {safe(dependency.sentence)}"
    return f"each row keeps: {safe(dependency.name)}"
