"""Reading denial constraints: what their predicates are, and how they are kept."""

from __future__ import annotations

from holdfast.errors import UsageError
from holdfast.fd_advice import FdAdviser
from holdfast.model.predicate import PredicateSpace
from holdfast.storage.constraints import DcRef
from holdfast.storage.tables import TableState


class DcReader(FdAdviser):
    """The part of a workspace that tells about denial constraints."""

    def dc_ref(self, table: str, at: int | None = None) -> DcRef | None:
        """How the denial constraints of a table are kept; None where they are not."""
        return self._current(table, at)[1].dcs

    def predicate_space(self, table: str) -> PredicateSpace:
        """The predicates that the constraints of a table are made of: fixed when it was tracked."""
        return self._needs_dcs(self._current(table)[1]).space

    def _needs_dcs(self, state: TableState) -> DcRef:
        if state.dcs is None:
            raise UsageError(
                f"denial constraints of table {state.table!r} are not tracked (kinds: {', '.join(state.kinds)}). "
                "Track it with --kinds dc."
            )
        return state.dcs
