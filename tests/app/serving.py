"""Servers that answer while a test asks them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import HTTPServer
from typing import Any, TypeVar

import holdfast
from holdfast.app.explorer import Explorer, ExplorerServer

Server = TypeVar("Server", bound=HTTPServer)


@contextmanager
def answering(server: Server) -> Iterator[Server]:
    """A server in a thread of its own; closed at the end."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def explored(ws: holdfast.Workspace, *, write: bool = False, **how: Any) -> Iterator[ExplorerServer]:
    """The page of a workspace, served."""
    with answering(ExplorerServer(Explorer(ws, write=write), **how)) as server:
        yield server
