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
    from holdfast.app.document import document

    with opened(ctx) as ws:
        text = document(ws)
        n_tables, version = len(ws.tables(ws.version or None)), ws.version
    with written_to(output) as file:
        file.write(text)
    print_written(output, plural(n_tables, "table"), version)
