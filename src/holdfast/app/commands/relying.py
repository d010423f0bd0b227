"""Commands about what somebody relies on: to pin it, one thing or many, and to list it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import holdfast
from holdfast.app import options
from holdfast.app.calls import Referenced, opened, tell
from holdfast.app.commands.reading import Asked, question_of, with_table
from holdfast.app.completing import complete_table
from holdfast.app.options import All, Json
from holdfast.app.report.pins import print_all_pins, print_pin_change, print_pinned
from holdfast.app.which_table import ThisTable
from holdfast.app.writing import print_written, written_to
from holdfast.core.words.change import Pin
from holdfast.core.words.reliance import PinTerms, Wanted
from holdfast.errors import UsageError, plural


class SeverityName(StrEnum):
    error = "error"
    warning = "warning"
    info = "info"


FailOn = Annotated[
    SeverityName,
    typer.Option(
        "--fail-on", help="Exit code 1 if something pinned would not hold that is of this severity or graver."
    ),
]
Gate = Annotated[
    SeverityName | None,
    typer.Option(
        "--fail-on",
        help="Apply nothing, and exit code 1, if something pinned would not hold that is of this severity or "
        "graver. Without it the batch is applied, and the report says what does not hold.",
    ),
]


@dataclass(frozen=True, slots=True)
class TermsGiven:
    """On which terms something is relied on."""

    at_most: Annotated[
        str | None,
        typer.Option(
            "--at-most",
            metavar="SHARE|N",
            help="A tolerance: so much may be against it, such as 0.1% or 5. Counted are rows that violate a "
            "condition, rows whose value is missing, rows that repeat a key, and of other rules ordered "
            "pairs of rows; a share is of all rows, or of all such pairs.",
        ),
    ] = None
    severity: Annotated[
        SeverityName | None,
        typer.Option("--severity", help="'holdfast check' fails for errors only, unless --fail-on says so."),
    ] = None
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why it is relied on.")] = None
    owner: Annotated[str | None, typer.Option(metavar="NAME", help="Whom to ask.")] = None

    def terms(self) -> PinTerms:
        terms: PinTerms = {}
        if self.at_most is not None:
            terms["at_most"] = self.at_most
        if self.severity is not None:
            terms["severity"] = self.severity.value
        if self.reason is not None:
            terms["reason"] = self.reason
        if self.owner is not None:
            terms["owner"] = self.owner
        return terms


@dataclass(frozen=True, slots=True)
class ManyPins:
    """Where many pins at once come from."""

    from_links: Annotated[
        bool, typer.Option("--from-links", help="Pin the references that 'holdfast links' chooses.")
    ] = False
    suggested: Annotated[
        bool,
        typer.Option(
            "--suggested",
            help="Pin what is worth it: primary keys and references as 'holdfast export' declares them, that "
            "columns have no NULL, and the accepted values, ranges and patterns of 'holdfast profile'.",
        ),
    ] = False
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", metavar="FILE", help="Pin what a YAML file says; 'holdfast pins -o FILE' writes one."
        ),
    ] = None
    prune: Annotated[
        bool, typer.Option("--prune", help="With --file: rely no longer on what is not in it.")
    ] = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be pinned; apply nothing.")] = (
        False
    )

    def check(self, table: str | None, columns: Sequence[str], terms: PinTerms, *, alone: bool) -> bool:
        """Whether many pins are asked for; an error if what is given does not go together."""
        ways = {"--from-links": self.from_links, "--suggested": self.suggested, "--file": self.file}
        given = [name for name, value in ways.items() if value]
        if self.prune and self.file is None:
            raise UsageError("--prune goes with --file: it unpins what is not in the file.")
        if not given:
            if table is None:
                raise UsageError(
                    "nothing to pin is named: give TABLE and COLUMN... or a RULE, --file, --from-links or "
                    "--suggested."
                )
            return False
        if len(given) > 1:
            raise UsageError(f"{' and '.join(given)} are two ways to say what to pin: give one of them.")
        if columns or alone or (self.file is not None and (table or terms)):
            says = "the file says all of it" if self.file is not None else "it takes a table at most"
            raise UsageError(f"{given[0]} pins many things at once, and {says}: leave out the rest.")
        return True


def pin(
    ctx: typer.Context,
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="[TABLE]",
            help="The table's name; a rule needs none if the workspace has one table.",
            autocompletion=complete_table,
        ),
    ] = None,
    columns: Asked = None,
    *,
    referenced: Referenced,
    given: TermsGiven,
    many: ManyPins,
    remove: Annotated[bool, typer.Option("--remove", help="Rely on it no longer.")] = False,
    as_json: Json = False,
) -> None:
    """Rely on something, so that `check` guards it.

    Whatever 'holdfast explain' understands. Every batch then says whether it holds, within the tolerance, and
    `check` has exit code 1 if it would not (unless its severity is less than error). Of a rule it also says
    how many pairs of rows violate it. Pinned again, it has the new terms. Many at once are one version, all
    of them or none.
    """
    terms = given.terms()
    several = many.check(table, columns or (), terms, alone=remove or referenced.named)
    if remove and (terms or many.dry_run):
        raise UsageError("--remove takes no terms, and no --dry-run: leave them out.")
    reasons: dict[tuple[str, str], str] = {}
    with opened(ctx) as ws:
        if not several:
            wanted = [_wanted(ws, table or "", columns or [], referenced, terms)]
        elif many.file is not None:
            from holdfast.app.pin_file import read_pins

            wanted = read_pins(ws, many.file)
        else:
            from holdfast.app.suggesting import linked, suggested

            suggestions = (linked if many.from_links else suggested)(ws, table)
            wanted = [suggestion.on(terms) for suggestion in suggestions]
            reasons = {suggestion.name: suggestion.reason for suggestion in suggestions}
        if remove:
            [one] = wanted
            _tell(ws.unpin(one), ws.version, as_json, removed=True)
            return
        only_holding = several and many.file is None
        change = ws.pin_all(wanted, prune=many.prune, only_holding=only_holding, dry_run=many.dry_run)
    if several or many.dry_run:
        document = {**change.to_dict(), "dry_run": many.dry_run}
        tell(as_json, lambda: document, print_pin_change, change, dry_run=many.dry_run, reasons=reasons)
    else:
        [pinned] = change.pinned or change.unchanged
        _tell(pinned, change.version, as_json, unmuted=change.unmuted)


def _tell(
    pin: holdfast.Pin,
    version: int,
    as_json: bool,
    *,
    removed: bool = False,
    unmuted: Sequence[holdfast.Muted] = (),
) -> None:
    document = {**pin.to_dict(), "pinned": not removed, "unmuted": [m.to_dict() for m in unmuted]}
    document["version"] = version
    tell(as_json, lambda: document, print_pinned, pin, version=version, removed=removed, unmuted=unmuted)


def _wanted(
    ws: holdfast.Workspace, table: str, texts: Sequence[str], referenced: Referenced, terms: PinTerms
) -> Wanted:
    """What the arguments ask for; in a workspace of one table a rule may stand alone."""
    from holdfast.muting import dependency_asked

    table, texts = with_table(ws, table, texts)
    if not texts and table not in ws.tables() and options.is_rule(table, ()):
        from holdfast.denial.written_rules import only_table

        table, texts = only_table(ws.tables(), table), [table]
    return Wanted.of(dependency_asked(ws.readers, *question_of(ws, table, texts, referenced)), terms)


def pins(
    ctx: typer.Context,
    table: ThisTable = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write them as YAML, for 'holdfast pin --file'; - prints it.",
        ),
    ] = None,
    everything: All = False,
    as_json: Json = False,
) -> None:
    """List what is pinned, on which terms, and whether it holds.

    What does not hold comes first, then what holds only within its tolerance. As a file (-o pins.yml) it can
    be kept in a repository, and applied with 'holdfast pin --file pins.yml'.
    """
    if output is not None and as_json:
        raise UsageError("--json and --output are two ways to write pins: give one of them.")
    with opened(ctx) as ws:
        version = ws.version
        listed = ws.pins(table, version or None)
        if output is not None:
            from holdfast.app.pin_file import written_pins

            text = written_pins(ws, listed, version)
    if output is not None:
        with written_to(output) as file:
            file.write(text)
        print_written(output, plural(len(listed), "pin"), version)
        return
    listed.sort(key=Pin.place)
    document = {"version": version, "pins": [pin.to_dict() for pin in listed]}
    tell(as_json, lambda: document, print_all_pins, listed, version=version, everything=everything)
