"""The page of a workspace: a small web server for the browser on this machine (`holdfast explore`).

`api.py` answers questions with plain dicts, `server.py` carries them over HTTP, `static/` is the page.
"""

from __future__ import annotations

from holdfast.app.explorer.api import Explorer
from holdfast.app.explorer.server import ExplorerServer

__all__ = ["Explorer", "ExplorerServer"]
