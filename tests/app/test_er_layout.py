"""Entity-relationship diagrams: no line goes through a box, no box over another, whatever refers to what."""

from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.app.export.er_layout import Box, Layout, Line, Point, layout

EDGE = 0.01


@st.composite
def diagrams(draw: st.DrawFn) -> tuple[list[Box], list[Line]]:
    sizes = st.tuples(st.integers(40, 300), st.integers(1, 12))
    boxes = [Box(width, 20.0 * rows) for width, rows in draw(st.lists(sizes, max_size=14))]
    if not boxes:
        return [], []

    def point(box: int) -> float:
        return 10.0 + 20.0 * draw(st.integers(0, int(boxes[box].height // 20) - 1))

    numbers = st.integers(0, len(boxes) - 1)
    pairs = draw(st.lists(st.tuples(numbers, numbers), max_size=24))
    return boxes, [Line(child, point(child), parent, point(parent)) for child, parent in pairs]


def inside(box: Box, corner: Point, a: Point, b: Point) -> bool:
    """Whether a line between two points goes through a box, and not only along its side."""
    (x, y), (left, right), (top, bottom) = corner, sorted((a[0], b[0])), sorted((a[1], b[1]))
    across = left < x + box.width - EDGE and right > x + EDGE
    return across and top < y + box.height - EDGE and bottom > y + EDGE


def check(boxes: list[Box], lines: list[Line], placed: Layout) -> None:
    for i, j in combinations(range(len(boxes)), 2):
        (x, y), (u, v) = placed.corners[i], placed.corners[j]
        beside = x + boxes[i].width <= u + EDGE or u + boxes[j].width <= x + EDGE
        above = y + boxes[i].height <= v + EDGE or v + boxes[j].height <= y + EDGE
        assert beside or above
    for line, path in zip(lines, placed.paths, strict=True):
        for a, b in pairwise(path):
            assert not any(inside(box, at, a, b) for box, at in zip(boxes, placed.corners, strict=True))
            # Level or upright, but for differences that nobody sees.
            assert min(abs(a[0] - b[0]), abs(a[1] - b[1])) < 1
        for number, below, end in (
            (line.child, line.child_y, path[0]),
            (line.parent, line.parent_y, path[-1]),
        ):
            x, y = placed.corners[number]
            assert abs(end[1] - y - below) < EDGE
            assert min(abs(end[0] - x), abs(end[0] - x - boxes[number].width)) < EDGE
    corners = [(x + b.width, y + b.height) for (x, y), b in zip(placed.corners, boxes, strict=True)]
    for x, y in [*placed.corners, *corners, *(point for path in placed.paths for point in path)]:
        assert -EDGE <= x <= placed.width + EDGE
        assert -EDGE <= y <= placed.height + EDGE


@given(diagrams())
@settings(deadline=None)
def test_no_line_goes_through_a_box(diagram: tuple[list[Box], list[Line]]) -> None:
    boxes, lines = diagram
    placed = layout(boxes, lines)
    check(boxes, lines, placed)
    assert layout(boxes, lines) == placed


def test_parents_stand_left_of_their_children() -> None:
    boxes = [Box(100, 60)] * 3
    placed = layout(boxes, [Line(0, 10, 1, 10), Line(1, 30, 2, 10)])
    (x0, _), (x1, _), (x2, _) = placed.corners
    assert x2 < x1 < x0


def test_a_straight_line_has_no_turn() -> None:
    boxes = [Box(100, 60)] * 2
    [path] = layout(boxes, [Line(0, 30, 1, 10)]).paths
    assert len(path) == 2
    assert path[0][1] == path[1][1]


def test_a_hub_of_many_tables_is_no_tower() -> None:
    boxes = [Box(150, 200)] * 60
    lines = [Line(i, 30, 0, 10) for i in range(1, 60)]
    placed = layout(boxes, lines)
    check(boxes, lines, placed)
    assert placed.height < 2 * placed.width
