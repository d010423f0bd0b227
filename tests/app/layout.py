"""What can be seen to be wrong with a page, whatever its fonts: a style that is lost, a box that is squeezed.

Pictures to compare with would differ from machine to machine, and an eye would have to judge each. This looks
for what no view may have:

- something reaches beyond the window, so that the page as a whole scrolls sideways;
- two texts stand on each other, with nothing opaque between them;
- a text is cut off by a box that neither scrolls nor ends it in dots;
- a text is tiny, or of a picture and too pale for what is behind it (axe judges those that are no pictures);
- named parts are not there, have no room, or stand in another order than they should.

`test_a_lost_sheet_is_seen` takes each sheet of styles away, and holds this to finding something.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

# A part, where it stands, another part: "left of", "above", "inside", "in line with" (one above the other, as
# wide), "ends with" (one above the other, to the right).
Place = tuple[str, str, str]

PROBLEMS = (Path(__file__).parent / "layout.js").read_text("utf-8")


def problems(page: Any, places: tuple[Place, ...] = ()) -> list[str]:
    """What is wrong with a page as it is."""
    listed: list[str] = page.evaluate(PROBLEMS, [list(place) for place in places])
    return listed
