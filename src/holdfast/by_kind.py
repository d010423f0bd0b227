"""What only one kind of dependencies has: the face of each class that holdfast brings, as users see it.

It stands on the readers of `kinds.py`, which also have what only the rest of holdfast asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.core.rows.writer import Writer
from holdfast.core.words.notation import parse_fd
from holdfast.kinds import Readers

if TYPE_CHECKING:
    from holdfast.denial.check_reading import CheckReader
    from holdfast.denial.dc_reading import DcReader
    from holdfast.denial.row_reading import RowRuleReader
    from holdfast.functional.fd_reading import FdReader
    from holdfast.functional.key_reading import KeyReader
    from holdfast.functional.repairs import Repairs
    from holdfast.inclusions.ind_reading import IndReader
    from holdfast.lakes.answers import LakeChange
    from holdfast.lakes.lake_keeper import LakeKeeper
    from holdfast.lakes.reader.lake_reader import LakeReader
    from holdfast.profile.profile_reading import ProfileReader


class ByKind:
    """The readers of a workspace, by kind, and the lake."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.readers = Readers(writer)  # for the rest of holdfast: what runs over all classes

    @property
    def keys(self) -> KeyReader:
        """Keys: what is not unique, why a combination is or is not, since when."""
        return self.readers.keys

    @property
    def fds(self) -> FdReader:
        """Functional dependencies: explained, ranked, their log, normal forms."""
        return self.readers.fds

    @property
    def inds(self) -> IndReader:
        """Inclusions: explained, the foreign keys among them, attribute clusters."""
        return self.readers.inds

    @property
    def dcs(self) -> DcReader:
        """Denial constraints: explained, ranked, in other forms, their predicates and indexes."""
        return self.readers.dcs

    @property
    def row_rules(self) -> RowRuleReader:
        """Rules about each row: explained."""
        return self.readers.row_rules

    @property
    def checks(self) -> CheckReader:
        """Conditions on each row, with constants: explained."""
        return self.readers.checks

    @property
    def profiles(self) -> ProfileReader:
        """Column profiles: what the values of each column are like, and conditions that are worth a check."""
        return self.readers.profiles

    @property
    def lakes(self) -> LakeKeeper:
        """Very many tables that are not tracked, and the inclusions among their columns."""
        return self.readers.lakes

    def link(self, *sources: str | Path, **options: Any) -> LakeChange:
        """Link the tables of folders, archives and files: find all inclusions among their columns.

        `help(ws.lakes.link)` lists the options.
        """
        return self.lakes.link(*sources, **options)

    def unlink(self, *tables: str) -> LakeChange:
        """Take tables out of the lake, by name, with all inclusions that concern them."""
        return self.lakes.unlink(*tables)

    def lake(self) -> LakeReader | None:
        """The lake, to read; None if there is none. Needs neither Spark nor kernels."""
        return self.lakes.reader()

    def repairs(self, table: str, dependencies: Sequence[str] = ()) -> Repairs:
        """Cells of which dependencies such as `zip -> city` say that another value should stand there.

        Each dependency votes for the value that two thirds of a group have; without any, those that almost
        hold with one column on the left do. It is a list to look at: nothing is ever applied.
        """
        version, state = self.writer.tables.current(table)
        fds = [parse_fd(text, state.schema.names, table=table, version=version) for text in dependencies]
        return self.fds.repairs(table, fds)
