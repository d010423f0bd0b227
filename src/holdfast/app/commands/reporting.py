"""A workspace as one file to read: `report`."""

from __future__ import annotations

import typer

from holdfast.app.calls import opened
from holdfast.app.options import Output
from holdfast.app.writing import print_written, written_to
from holdfast.errors import plural


def report(ctx: typer.Context, output: Output = None) -> None:
    """Write what holds, broke and changed as one HTML file.

    It needs nothing else, and can be sent to people who do not have holdfast, or printed.
    """
    from holdfast.app.commands.linking import model_of
    from holdfast.app.notebook import table_records
    from holdfast.app.report.document import document

    with opened(ctx) as ws:
        model = model_of(ws)
        text = document(ws, model, table_records(ws, model.version or None))
    with written_to(output) as file:
        file.write(text)
    counts = f"{plural(len(model.tables), 'table')}, {plural(len(model.foreign_keys), 'foreign key')}"
    print_written(output, counts, model.version)
