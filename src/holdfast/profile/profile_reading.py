"""Reading profiles: of a table now or at a version, the rules that follow, and what is worth a check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from holdfast.core.cover.history import Life, Past, life_of
from holdfast.core.rows.table_state import TableState
from holdfast.core.rows.tables import Tables
from holdfast.core.store.files import FileRef
from holdfast.core.store.tabular import Listed
from holdfast.core.words.codec import Coded
from holdfast.core.words.column_rule import ColumnRule
from holdfast.core.words.condition import Among, formula_of, is_condition, read_condition
from holdfast.errors import HoldfastError, UnknownColumnError, UsageError, plural
from holdfast.kind import Explanation
from holdfast.profile.column_profile import TOP_VALUES, ColumnProfile
from holdfast.profile.profile_files import ProfileRef, profile_ref, read_profiles

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from holdfast.core.cover.violating_rows import ViolatingRows
    from holdfast.core.rows.relation import Relation

# A rule is suggested if so many rows speak for it, and if it means so much.
ENOUGH_ROWS = 20
ENOUGH_SCORE = 0.3


def _is_worth_a_pin(rule: ColumnRule, state: TableState) -> bool:
    """Not one value for all rows, which may be all that there is yet; nor texts that are lists of values:
    those are combinations, and the next one is no error."""
    if rule.aspect != "values":
        return True
    node = read_condition(rule.formula, state.schema)
    if not isinstance(node, Among):
        return True
    are_lists = any(isinstance(value, str) and value[:1] in ("{", "[") for value in node.constants)
    return len(node.constants) > 1 and not are_lists


class TableProfile(Listed[ColumnProfile]):
    """The profiles of the columns of a table, at a version.

    `tracked` tells whether they are maintained, or were counted just now by a look at all rows.
    """

    noun = "columns"

    def __init__(
        self, columns: Iterable[ColumnProfile], table: str, version: int, n_rows: int, *, tracked: bool
    ) -> None:
        super().__init__(columns)
        self.table, self.version, self.n_rows, self.tracked = table, version, n_rows, tracked

    def column(self, name: str) -> ColumnProfile:
        """The profile of a column."""
        for profile in self:
            if profile.column == name:
                return profile
        raise UnknownColumnError.from_missing(self.table, self.version, name, [p.column for p in self])

    def restricted(self, names: Sequence[str]) -> TableProfile:
        """The profiles of some columns, in that order."""
        chosen = [self.column(name) for name in names]
        return TableProfile(chosen, self.table, self.version, self.n_rows, tracked=self.tracked)

    def to_dict(self) -> dict[str, Any]:
        fields = {"version": self.version, "table": self.table, "n_rows": self.n_rows}
        return {**fields, "tracked": self.tracked, **super().to_dict()}

    def records(self) -> list[dict[str, Any]]:
        return [_record(profile) for profile in self]

    def lines(self) -> Iterable[str]:
        return map(_line, self)

    def __repr__(self) -> str:
        return f"{self.table}: {plural(self.n_rows, 'row')}, {super().__repr__()}"


def _record(profile: ColumnProfile) -> dict[str, Any]:
    """One flat mapping: extremes and values of all types as texts."""
    fields = profile.to_dict()
    fields["rules"] = [rule.formula for rule in profile.rules]
    for name in ("low", "high"):
        fields[name] = None if fields[name] is None else str(fields[name])
    for name in ("low", "high", "mean"):
        fields[f"{name}_length"] = None if profile.lengths is None else getattr(profile.lengths, name)
    fields.pop("lengths")
    return fields


def _line(profile: ColumnProfile) -> str:
    return (
        f"{profile.column} {profile.type}: {profile.n_nulls:,} NULL, {profile.distinct_text} distinct, "
        f"{profile.low!r} to {profile.high!r}"
    )


@dataclass(frozen=True, slots=True)
class Suggestion(Coded):
    """A condition that all rows keep and that looks meant; `text` can be pinned as it is."""

    table: str
    column: str
    text: str
    reason: str
    score: float

    def __str__(self) -> str:
        return f"{self.text}: {self.reason}"


class Suggestions(Listed[Suggestion]):
    """Conditions that are worth a check, best first."""

    noun = "suggestions"

    def records(self) -> list[dict[str, Any]]:
        return [suggestion.to_dict() for suggestion in self]

    def lines(self) -> Iterable[str]:
        return (f"{s.score:.2f}  {s}" for s in self)


class ProfileReader:
    """Column profiles: `of` a table, `suggestions`; and the rules that the columns keep."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._past: Past[FileRef] = Past(tables, _cover_of)

    def of(self, table: str, at: int | None = None) -> TableProfile:
        """The profiles of all columns of a table, now or at a version; it need not be tracked for them.

        What is maintained is read. The distinct values of columns with more than some thousand are counted by
        one job; of a table that is not tracked for profiles all columns are, by another. Both are of the rows
        as they are now: at an earlier version the former are not known, and the latter is an error.
        """
        version, state = self._tables.current(table, at)
        ref, newest = profile_ref(state), at is None or state == self._tables.state(table)
        if ref is None and not newest:
            raise UsageError(
                f"the profiles of table {table!r} are not kept, so they are known of its rows now only: "
                "leave out the version, or track the table with --kinds ucc,profile."
            )
        columns: Sequence[ColumnProfile]
        if ref is not None:
            columns = self.columns(state)
        else:
            from holdfast.profile.profile_class import profiled

            with self._tables.opened(state) as relation:
                columns = profiled(table, relation).columns
        if newest and any(p.n_distinct is None for p in columns):
            with self._tables.opened(state) as relation:
                columns = _ranked(relation, columns)
        return TableProfile(columns, table, version, state.n_rows, tracked=ref is not None)

    def suggestions(self, table: str) -> Suggestions:
        """Conditions that all rows of a table keep and that look meant, best first: candidates for pins.

        Of a table that is not tracked for profiles they are worked out by one job.
        """
        _, state = self._tables.current(table)
        if state.n_rows < ENOUGH_ROWS:
            return Suggestions()
        rules = self.listed(state)
        if profile_ref(state) is None:
            rules = [rule for column in self.of(table) for rule in column.rules]
        worth = (r for r in rules if r.score >= ENOUGH_SCORE and _is_worth_a_pin(r, state))
        chosen = sorted(worth, key=lambda r: -r.score)
        return Suggestions(Suggestion(table, r.columns[0], r.formula, r.reason, r.score) for r in chosen)

    def columns(self, state: TableState) -> tuple[ColumnProfile, ...]:
        """The profiles that are kept of a table, as every version has them; none if it is not tracked."""
        ref = profile_ref(state)
        return () if ref is None else read_profiles(self._tables.root, ref.cover)

    # -- as of every class --------------------------------------------------------------------

    def listed(self, state: TableState, max_error: float = 0.0) -> list[ColumnRule]:
        """The rules that all rows keep in a column."""
        return [rule for column in self.columns(state) for rule in column.rules]

    def reads(self, question: str, state: TableState) -> bool:
        """A rule that is listed, however it is spelt; other conditions are tested on the rows."""
        return self._rule(state, question) is not None

    def explain(self, table: str, question: str) -> Explanation:
        """Since when a rule that is listed holds, and why."""
        version, state = self._tables.current(table)
        rule = self._rule(state, question)
        assert rule is not None  # it `reads` the question

        [since] = self.since(state, [rule], version).tolist()
        return Explanation(rule, version, True, since, rule.reason)

    def since(self, state: TableState, rules: Sequence[ColumnRule], until: int) -> NDArray[np.int64]:
        """Since which version each of some rules, which are listed at one, has held: int64[n]."""
        import numpy as np

        def holds(cover: FileRef, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
            formulas = {r.formula for column in read_profiles(self._tables.root, cover) for r in column.rules}
            return np.array([rules[i].formula in formulas for i in numbers])

        since = self._past.since(state.table, len(rules), until, holds)
        events = self._losses(state.table, until)
        for i, rule in enumerate(rules):
            if any(events.get(rule.formula, {}).values()):  # it held at versions that did not list it
                since[i] = self._life(state.table, rule.formula, until, events[rule.formula])[-1].first
        return since

    def life(self, table: str, question: str) -> Life:
        """When a condition held and when not, as far as it was listed since the table was tracked.

        Of one that is not listed any more the log says whether it held then. That is so until rows come that
        may violate it, or rows go that may have; from then on nobody knows, as before it was listed.
        """
        version, state = self._tables.current(table)
        if profile_ref(state) is None:
            return ()
        formula = formula_of(read_condition(question, state.schema, table=table, version=version))
        life = self._life(table, formula, version, self._losses(table, version).get(formula, {}))
        return life if any(stretch.holds is not None for stretch in life) else ()

    def _losses(self, table: str, until: int) -> dict[str, dict[int, bool]]:
        """By formula: the versions that list a rule no longer, and whether it held still."""
        losses: dict[str, dict[int, bool]] = {}
        for change in self._tables.ledger.changes(table, until=until, kind=ColumnRule.kind):
            if change.change in ("broke", "implied", "dropped"):
                held = change.change != "broke"
                losses.setdefault(change.dependency["formula"], {})[change.version] = held
        return losses

    def _life(self, table: str, formula: str, until: int, losses: Mapping[int, bool]) -> Life:
        holds: bool | None = None
        verdicts: list[tuple[int, bool | None]] = []
        for run in self._past.runs(table, until):
            listed = self._listed_in(formula, run.ref)
            for commit in run.commits:
                if listed:
                    holds = True
                elif commit.version in losses:
                    holds = losses[commit.version]
                elif commit.n_inserted if holds else commit.n_deleted:
                    holds = None
                verdicts.append((commit.version, holds))
        return life_of(verdicts)

    def violations(self, table: str, question: str, *, limit: int | None = None) -> ViolatingRows:
        """The rows that violate a rule that is listed: none."""
        import numpy as np

        from holdfast.core.cover.violating_rows import Removal, ViolatingRows

        version, state = self._tables.current(table)
        rule, relation = self._rule(state, question), self._tables.rows(state)
        assert rule is not None
        none = np.empty(0, np.int64)
        return ViolatingRows(
            rule, version, state.n_rows, 0, Removal(0, 0), relation, none, {"remove": none.astype(np.bool_)}
        )

    def _listed_in(self, formula: str, cover: FileRef) -> bool:
        columns = read_profiles(self._tables.root, cover)
        return any(rule.formula == formula for column in columns for rule in column.rules)

    def _rule(self, state: TableState, question: str) -> ColumnRule | None:
        """The rule that a question is about; None if it is none that is listed."""
        if profile_ref(state) is None or not is_condition(question):
            return None
        try:
            formula = formula_of(read_condition(question, state.schema, table=state.table))
        except HoldfastError:  # what is wrong with it is said by who has to answer
            return None
        return next((rule for rule in self.listed(state) if rule.formula == formula), None)


def _ranked(relation: Relation, columns: Sequence[ColumnProfile]) -> list[ColumnProfile]:
    """With the distinct values of columns that have many. Long texts are counted, and not told."""
    from holdfast.profile.column_rules import listed
    from holdfast.profile.value_ranking import ranked_values

    unknown = {c: p.more_than > 0 for c, p in enumerate(columns) if p.n_distinct is None}
    answers = ranked_values(relation, unknown, TOP_VALUES)
    counted = list(columns)
    for c, (n_distinct, values, counts) in answers.items():
        top = listed(values, counts) if unknown[c] else None
        counted[c] = replace(columns[c], n_distinct=n_distinct, top=top)
    return counted


def _cover_of(fields: Mapping[str, Any]) -> tuple[FileRef, FileRef] | None:
    if not fields.get("profile"):
        return None
    cover = ProfileRef.from_dict(fields["profile"]).cover
    return cover, cover
