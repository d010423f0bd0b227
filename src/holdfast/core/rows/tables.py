"""The tables of a workspace, at any of its versions: their states, and their rows to be looked at.

Needs neither Spark nor kernels until rows are looked at.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from holdfast.core.rows.table_state import TableState
from holdfast.core.store.bucket import STAGING
from holdfast.core.store.ledger import Ledger
from holdfast.core.store.ledger_rows import NO_TABLES
from holdfast.core.store.root import Root, remove_folder
from holdfast.errors import UnknownColumnError, UnknownTableError, UsageError

if TYPE_CHECKING:
    from holdfast.core.engine.engine import Engine
    from holdfast.core.rows.relation import Relation

# States that are held open at most.
MAX_STATES = 256


class Tables:
    """What the ledger says of tables; one answer is read from one version, whoever writes meanwhile."""

    def __init__(self, root: Root, ledger: Ledger, engine: Callable[[], Engine]) -> None:
        self.root, self.ledger, self._engine = root, ledger, engine
        self._states: dict[tuple[str, int], TableState] = {}  # by table and version of its commit

    @property
    def version(self) -> int:
        """The newest version of the workspace; 0 before anything is tracked."""
        return self.ledger.version

    def newest(self, at: int | None = None) -> int | None:
        """A version to read one answer from: the one asked for, or the newest now; None if there is none."""
        return at if at is not None else self.version or None

    def names(self, at: int | None = None) -> list[str]:
        return sorted(t for t in self.ledger.heads(at) if t not in NO_TABLES)

    def chosen(self, table: str | None, at: int | None = None) -> list[TableState]:
        """The state of one table, or of all."""
        return [self.state(name, at) for name in (self.names(at) if table is None else [table])]

    def state(self, table: str, at: int | None = None) -> TableState:
        """A table at a version; by default the newest."""
        return self.current(table, at)[1]

    def current(self, table: str, at: int | None = None) -> tuple[int, TableState]:
        """(version of the workspace, state of the table at it)."""
        version = self.ledger.version if at is None else at
        if at is not None:
            self.ledger.commit_row(at)  # a version that does not exist is an error of its own
        heads = self.ledger.heads(version)
        if table not in heads or table in NO_TABLES:
            raise UnknownTableError.from_missing(table, sorted(t for t in heads if t not in NO_TABLES))
        state = self._states.get((table, heads[table]))
        if state is None:
            fields = self.ledger.commit_row(heads[table], table).state
            assert fields is not None
            if len(self._states) > MAX_STATES:
                self._states.clear()
            state = self._states[table, heads[table]] = TableState.from_dict(fields)
        return version, state

    def positions(self, state: TableState, version: int | None, columns: Sequence[str]) -> list[int]:
        """The positions of columns, ascending; an error names one that is not there, or is there twice."""
        positions = set()
        for name in columns:
            position = state.schema.position(name)
            if position is None:
                raise UnknownColumnError.from_missing(state.table, version, name, state.schema.names)
            if position in positions:
                raise UsageError(
                    f"the column {name!r} of table {state.table!r} is there twice; name each column once."
                )
            positions.add(position)
        return sorted(positions)

    def rows(self, state: TableState, staging: str = STAGING) -> Relation:
        """The rows of a table, to be looked at without a job."""
        from holdfast.core.rows.relation import Relation

        folder = state.folder if staging == STAGING else staging
        locator = tuple(state.locator)
        return Relation(
            self.root, folder, staging, state.schema, state.nulls, locator, state.segments, self._engine()
        )

    @contextmanager
    def opened(self, state: TableState) -> Iterator[Relation]:
        """The rows of a table, with a folder for the files of jobs, removed after them."""
        staging = f"{STAGING}/{secrets.token_hex(6)}"
        try:
            yield self.rows(state, staging)
        finally:
            remove_folder(self.root, staging)
