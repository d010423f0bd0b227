"""A workspace in one HTML file, for people without the tool (`holdfast report`).

What it says is what the page says: each part is made from the answers of `app/explorer/api.py`, and looks
nothing up itself. Read `whole.py` first, which puts the parts together: `overview.py`, `broken.py`,
`tables.py`, `lake.py`. `pictures.py` draws small SVGs, `writing.py` has what the parts share. All text comes
from data, and is escaped.
"""

from __future__ import annotations

from holdfast.app.document.whole import document

__all__ = ["document"]
