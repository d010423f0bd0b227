"""Inclusions as a class: how a workspace keeps them, from the steps of all of its tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from holdfast.core.rows.writer import Context
from holdfast.core.store.ledger_rows import SHARED
from holdfast.core.store.root import Root
from holdfast.core.words.change import Pin
from holdfast.errors import UsageError
from holdfast.inclusions import inds
from holdfast.inclusions.generator import FOLDER, GeneratorState
from holdfast.inclusions.inclusions import Known, take_in, without_table
from holdfast.inclusions.inds import IndStep
from holdfast.inclusions.values import Values
from holdfast.kind import AcrossClass, AcrossStep, Crossing, OtherTables, Step


@dataclass(frozen=True, slots=True)
class IndOptions:
    """Which columns of new tables take part, and how."""

    as_text: bool
    columns: Sequence[str] | None  # patterns; None: all
    exclude: Sequence[str]
    max_arity: int | None  # of the workspace; None: as it is


class IndClass(AcrossClass[Known]):
    """Unary and composite inclusions, from values and their columns."""

    slot: ClassVar[str] = SHARED

    def options(self, asked: Mapping[str, Any]) -> IndOptions:
        max_arity = asked.get("max_arity")
        if max_arity is not None and max_arity < 1:
            raise UsageError(f"max_arity is {max_arity}; expected at least 1, which is single columns only.")
        as_text, exclude = bool(asked.get("as_text")), asked.get("exclude", ())
        return IndOptions(as_text, asked.get("columns"), exclude, max_arity)

    def load(self, root: Root, fields: Mapping[str, Any] | None) -> Known:
        return Known.load(root, GeneratorState() if fields is None else GeneratorState.from_dict(fields))

    def beside(self, known: Known, crossing: Crossing) -> IndStep:
        """The unary inclusions after the batch: they need nothing of what the others find."""
        folder = FOLDER if crossing.commit else crossing.context.staging
        values = _values(crossing.context, known.state, folder)
        return inds.absorb(values, known.unary, [crossing])

    def take_in(
        self,
        context: Context,
        known: Known,
        steps: Sequence[Step],
        others: OtherTables,
        options: IndOptions | None,
        *,
        commit: bool,
    ) -> AcrossStep[Known]:
        state = known.state
        if options is not None:
            state = replace(state, max_arity=options.max_arity or state.max_arity)
            for step in steps:
                patterns = options.columns, options.exclude
                chosen = inds.chosen_columns(state, step.state, *patterns, as_text=options.as_text)
                state = inds.joined(state, chosen)
        folder = FOLDER if commit else context.staging
        values = _values(context, state, folder)
        worked_out = steps[0].beside.get("ind") if len(steps) == 1 else None
        # Unless another table's batch was committed meanwhile.
        same = worked_out is not None and worked_out[0] is known
        unary = worked_out[1] if worked_out and same else inds.absorb(values, known.unary, steps)
        done = take_in(context, values, known, steps, others, unary, commit=commit)
        tables = {step.table for step in steps}
        return AcrossStep(
            done.after,
            done.after.state.to_dict(),
            done.after.n_inds,
            done.changes,
            tuple(_pins(done.after.state, tables)),
            done.accesses,
            done.notes,
        )

    def without_table(self, context: Context, known: Known, table: str) -> AcrossStep[Known]:
        after = without_table(_values(context, known.state, FOLDER), known, table)
        return AcrossStep(after, after.state.to_dict(), after.n_inds)

    def merged(self, context: Context, known: Known) -> tuple[dict[str, Any], dict[str, Any]] | None:
        state = _values(context, known.state, FOLDER).tidied(everything=True)
        return None if state.runs == known.state.runs else (state.to_dict(), {"n_runs": len(state.runs)})


def _values(context: Context, state: GeneratorState, folder: str) -> Values:
    progress = context.progress("finding inclusions")
    return Values(context.root, folder, context.staging, state, context.engine, progress)


def _pins(state: GeneratorState, tables: set[str]) -> Iterator[Pin]:
    """The pinned inclusions that batches of some tables could have touched."""
    for pin in state.pins:
        if tables & pin.tables:
            yield pin.pin()


CLASS = IndClass()
