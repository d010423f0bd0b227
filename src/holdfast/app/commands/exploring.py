"""Commands about a lake as a graph: the page that draws it, and files for other tools that do."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.app.calls import note, open_workspace
from holdfast.app.options import Output, check_share
from holdfast.app.writing import print_written, shows_to_a_person, written_to
from holdfast.errors import HoldfastError, UsageError, plural

if TYPE_CHECKING:
    from holdfast.app.explorer import Explorer, ExplorerServer


ONLY_READS = "the page only reads; with --write it can pin and mute"
CAN_WRITE = "whoever has the address can read, pin and mute"


class GraphFormat(StrEnum):
    graphml = "graphml"
    gexf = "gexf"
    json = "json"


# -- the page ----------------------------------------------------------------------------------------------


def explore(
    ctx: typer.Context,
    port: Annotated[
        int,
        typer.Option(
            min=0, max=65_535, metavar="N", help="Of 127.0.0.1; a free one if not given.", show_default=False
        ),
    ] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
    write: Annotated[
        bool, typer.Option("--write", help="Let the page pin and mute what it shows, too.")
    ] = False,
    host: Annotated[
        str | None,
        typer.Option(metavar="HOST", help="Listen on another address than 127.0.0.1; needs a certificate."),
    ] = None,
    cert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TLS: the certificate and its chain, as PEM.")
    ] = None,
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="TLS: the key, as PEM.")] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Another --host without TLS: others may read along.")
    ] = False,
) -> None:
    """Look at what is tracked, and at a lake, in the browser.

    Serves a page to this machine alone until Ctrl-C. Whoever has the address can read the workspace, and with
    --write pin and mute in it.
    """
    from holdfast.app.explorer import Explorer, ExplorerServer, Place

    place = Place.of(host, cert, key, insecure=insecure)
    with open_workspace(ctx) as ws:
        explorer = Explorer(ws, write=write)
        with ExplorerServer(explorer, port, at=place, debug=ctx.obj.debug) as server:
            threading.Thread(target=prepare, args=(explorer,), name="prepare", daemon=True).start()
            print(server.address, flush=True)
            note(f"{CAN_WRITE if write else ONLY_READS}; Ctrl-C ends it")
            wanted = not no_browser and _has_screen()
            try:
                with _shown(server) if wanted else contextlib.nullcontext():
                    server.serve_forever()
            except KeyboardInterrupt:
                note("ended")
        explorer.close()


def prepare(explorer: Explorer) -> None:
    with contextlib.suppress(HoldfastError):  # the page asks for it, and is told
        explorer.prepare()


def _has_screen() -> bool:
    """Whether there is somebody to look, and a screen: without one a browser in the terminal might start."""
    screen = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return shows_to_a_person() and bool(screen)


@contextlib.contextmanager
def _shown(server: ExplorerServer) -> Iterator[None]:
    """Opens the page in a browser, by a file that leads there: other users see a browser's command line.

    The folder is for its user alone, and so is the file. The file goes when somebody has come by it, or at
    the end. Where there can be no such file, the address that is printed has to do.
    """
    from holdfast.app.explorer.server import page_that_leads_to

    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            temporary = tempfile.TemporaryDirectory(prefix="holdfast-", ignore_cleanup_errors=True)
            file = Path(stack.enter_context(temporary), "page.html")  # a folder of mode 0700
            with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as page:
                page.write(page_that_leads_to(server.address))
            # Some browsers return only when they are closed.
            threading.Thread(target=_show, args=(server, file), name="browser", daemon=True).start()
        try:
            yield
        finally:
            server.entered.set()  # nobody comes any more


def _show(server: ExplorerServer, file: Path) -> None:
    import webbrowser

    with contextlib.suppress(webbrowser.Error, OSError):
        if webbrowser.open(file.as_uri()):
            server.entered.wait()
        file.unlink(missing_ok=True)


# -- for other tools ---------------------------------------------------------------------------------------


def graph(
    ctx: typer.Context,
    export: Annotated[GraphFormat, typer.Option(help="What to write.")],
    output: Output = None,
    component: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Only this component; 0 is the largest.")
    ] = None,
    min_score: Annotated[
        float, typer.Option(metavar="S", help="Only links with at least this score, 0 to 1.")
    ] = 0.0,
) -> None:
    """Write the join graph of a lake for other tools.

    Tables are its nodes, and two are linked if a column of one is included in one of the other; a link's
    score is that of its best inclusion. Tables without a link are left out.
    """
    check_share("--min-score", min_score, "a score from 0 to 1, such as 0.3")
    from holdfast.app.export.graphs import write_graph
    from holdfast.app.export.join_graph import ExportedGraph

    with open_workspace(ctx) as ws:
        lake = ws.lake()
        if lake is None:
            raise UsageError(
                "the workspace has no lake, so there is no graph: link one with 'holdfast link'."
            )
        chosen = ExportedGraph(lake, component, min_score)
        with written_to(output) as file:
            write_graph(export.value, chosen.nodes(), chosen.edges(), file)
        counts = f"{plural(chosen.n_tables, 'table')}, {plural(chosen.n_joins, 'link')}"
        print_written(output, counts, lake.version)
