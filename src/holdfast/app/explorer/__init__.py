"""The page of a workspace: a small web server for the browser on this machine (`holdfast explore`).

`api.py` answers questions with plain dicts, `server.py` carries them over HTTP and keeps everybody else out,
`static/` is the page, whose `app.js` asks the questions. Read `api.py` first: its routes are all that a page
can see.
"""

from __future__ import annotations

from holdfast.app.explorer.api import Explorer
from holdfast.app.explorer.place import Place
from holdfast.app.explorer.server import ExplorerServer

__all__ = ["Explorer", "ExplorerServer", "Place"]
