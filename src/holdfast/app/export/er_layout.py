"""Where the boxes and lines of an entity-relationship diagram go.

Tables stand in layers from left to right, parents left of their children; lines run in the channels between
the layers, and where they pass a layer they have a place of their own in it. So no line goes through a box,
by construction. Lines that end at one point of a parent share their way (a *net*): a trunk with branches.

1. *layers*: children right of their parents, as far left as their layer has room; of cycles one line each
   goes the other way.
2. *order*: in each layer by the mean of the neighbours' places, to and fro; that with fewest crossings stays.
3. *heights*: as close to the neighbours as the order allows, by isotonic regression, to and fro.
4. *tracks*: in each channel every net that turns has a vertical line, and two on one track do not touch.

Parts that no line connects are laid out one by one and put side by side; boxes without a line stand apart,
below all others, close to each other. The same boxes and lines give the same layout. Cost: O(lines^2) small
steps of NumPy; 100 boxes with 200 lines take some hundredths of a second.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from math import sqrt

import numpy as np

Point = tuple[float, float]

GAP = 28.0  # between boxes of a layer, and between parts
APART = 64.0  # between them and the boxes without a line
PASSING = 14.0  # between a line that passes a layer and its neighbours
END = 34.0  # of a channel before its first track and behind its last: room for the ends of lines
TRACK = 12.0  # between tracks
SWEEPS, SETTLING = 12, 60  # over the layers, for order and heights
STRAIGHT = 0.75  # a difference in height that nobody sees


@dataclass(frozen=True, slots=True)
class Box:
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Line:
    """From the side of a child to that of its parent, by their numbers; heights are below the tops."""

    child: int
    child_y: float
    parent: int
    parent_y: float


@dataclass(frozen=True, slots=True)
class Layout:
    """The upper left corners of boxes; the corners of lines, from child to parent; the size of it all.

    `apart` is where the boxes without a line begin, if there are others above them.
    """

    corners: tuple[Point, ...]
    paths: tuple[tuple[Point, ...], ...]
    width: float
    height: float
    apart: float | None = None


@dataclass(eq=False, slots=True)
class _Slot:
    """A place in a layer: of a box, or of a net that passes."""

    layer: int
    height: float
    width: float = 0.0
    box: int | None = None
    y: float = 0.0
    near: _End | None = None  # where a net that passes comes from


@dataclass(frozen=True, eq=False, slots=True)
class _End:
    slot: _Slot
    below: float  # its top

    @property
    def y(self) -> float:
        return self.slot.y + self.below


@dataclass(eq=False, slots=True)
class _Turn:
    """A net in one channel: its ends on either side, and the place of its vertical line."""

    left: list[_End] = field(default_factory=list)
    right: list[_End] = field(default_factory=list)
    track: int | None = None  # none if it goes straight on
    x: float = 0.0

    @property
    def span(self) -> tuple[float, float]:
        heights = [end.y for end in (*self.left, *self.right)]
        return min(heights), max(heights)


def layout(boxes: Sequence[Box], lines: Sequence[Line]) -> Layout:
    """The layout of boxes and the lines between them."""
    parts = [_Part(boxes, lines, members) for members in _connected(len(boxes), lines)]
    corners: list[Point] = [(0.0, 0.0)] * len(boxes)
    paths: list[tuple[Point, ...]] = [()] * len(lines)
    joined, alone = [part for part in parts if part.lines], [part for part in parts if not part.lines]
    places, width, height = _packed(joined)
    apart = height + APART if joined and alone else None
    more, wide, high = _packed(alone, width)
    top = apart or 0.0
    places += [(x, y + top) for x, y in more]
    for part, (dx, dy) in zip([*joined, *alone], places, strict=True):
        for box, (x, y) in part.corners().items():
            corners[box] = (x + dx, y + dy)
        for line, path in part.paths().items():
            paths[line] = tuple((x + dx, y + dy) for x, y in path)
    height = top + high if alone else height
    return Layout(tuple(corners), tuple(paths), max(width, wide), height, apart)


def _connected(n: int, lines: Iterable[Line]) -> list[list[int]]:
    """The boxes that lines connect, directly or not; large parts first."""
    root = list(range(n))

    def find(i: int) -> int:
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        return i

    for line in lines:
        root[find(line.child)] = find(line.parent)
    parts: dict[int, list[int]] = defaultdict(list)
    for i in range(n):
        parts[find(i)].append(i)
    return sorted(parts.values(), key=lambda part: (-len(part), part))


def _packed(parts: Sequence[_Part], least: float = 0.0) -> tuple[list[Point], float, float]:
    """Places of parts on shelves, high ones first; about 4:3 in all, or `least` wide; and the size of it."""
    sizes = [(part.width, part.height) for part in parts]
    area = sum((w + GAP) * (h + GAP) for w, h in sizes)
    room = max([sqrt(area * 4 / 3), least, *(w for w, _ in sizes)])
    places: list[Point] = [(0.0, 0.0)] * len(sizes)
    x = y = shelf = width = 0.0
    for i in sorted(range(len(sizes)), key=lambda i: (-sizes[i][1], i)):
        w, h = sizes[i]
        if x > 0 and x + w > room:
            x, y, shelf = 0.0, y + shelf + GAP, 0.0
        places[i] = (x, y)
        width, shelf = max(width, x + w), max(shelf, h)
        x += w + GAP
    return places, width, y + shelf


class _Part:
    """Boxes that lines connect."""

    def __init__(self, boxes: Sequence[Box], lines: Sequence[Line], members: list[int]) -> None:
        inside = set(members)
        self.lines = {i: line for i, line in enumerate(lines) if line.child in inside}
        layer_of = _layered(boxes, self.lines.values(), members)
        n_layers = max(layer_of.values()) + 1
        self.slots = {b: _Slot(layer_of[b], boxes[b].height, boxes[b].width, b) for b in members}
        self.layers: list[list[_Slot]] = [[] for _ in range(n_layers)]
        for slot in self.slots.values():
            self.layers[slot.layer].append(slot)
        # One channel right of each layer.
        self.channels: list[list[_Turn]] = [[] for _ in range(n_layers)]
        self.ways: dict[int, list[tuple[_Turn, _End, _End]]] = {}  # of each line, from child to parent
        self.trunks: list[_Slot] = []  # that pass, each behind the one that it comes from
        self._make_nets()
        self.joined = [
            [(a, b) for turn in channel for a in turn.left for b in turn.right] for channel in self.channels
        ]
        self._set_order()
        self._set_heights()
        self._set_tracks()

    # -- nets ------------------------------------------------------------------------------------

    def _make_nets(self) -> None:
        nets: dict[tuple[int, float, int], list[int]] = defaultdict(list)
        for i, line in self.lines.items():
            child, parent = self.slots[line.child].layer, self.slots[line.parent].layer
            nets[line.parent, line.parent_y, (child > parent) - (child < parent)].append(i)
        for (parent, below, way), members in nets.items():
            root = _End(self.slots[parent], below)
            if way == 0:
                self._loop(root, members)
            else:
                self._trunk(root, members, way)

    def _loop(self, root: _End, members: list[int]) -> None:
        """Lines within a layer turn in the channel right of it."""
        turn = _Turn(left=[root])
        self.channels[root.slot.layer].append(turn)
        for i in members:
            end = _End(self.slots[self.lines[i].child], self.lines[i].child_y)
            turn.left.append(end)
            self.ways[i] = [(turn, end, root)]

    def _trunk(self, root: _End, members: list[int], way: int) -> None:
        """Lines to children on one side: `way` is 1 for those right of the parent, -1 for those left."""
        here = root.slot.layer
        by_layer: dict[int, list[int]] = defaultdict(list)
        for i in members:
            by_layer[self.slots[self.lines[i].child].layer].append(i)
        last = max(by_layer) if way > 0 else min(by_layer)
        end, so_far = root, list[tuple[_Turn, _End, _End]]()
        for layer in range(here, last, way):
            turn = _Turn()
            self.channels[layer if way > 0 else layer - 1].append(turn)
            near, far = (turn.left, turn.right) if way > 0 else (turn.right, turn.left)
            near.append(end)
            for i in by_layer.get(layer + way, ()):
                branch = _End(self.slots[self.lines[i].child], self.lines[i].child_y)
                far.append(branch)
                self.ways[i] = [(turn, branch, end), *reversed(so_far)]
            if layer + way != last:
                passing = _Slot(layer + way, 0.0, near=end)
                # In the middle: at an end, what follows would hang ever lower.
                self.layers[layer + way].insert(len(self.layers[layer + way]) // 2, passing)
                self.trunks.append(passing)
                beyond = _End(passing, 0.0)
                far.append(beyond)
                so_far.append((turn, beyond, end))
                end = beyond

    # -- order -----------------------------------------------------------------------------------

    def _set_order(self) -> None:
        best, fewest = [list(layer) for layer in self.layers], self._n_crossings()
        forward = range(1, len(self.layers))
        for sweep in range(SWEEPS):
            if fewest == 0:
                break
            to_right = sweep % 2 == 0
            for layer in forward if to_right else reversed(range(len(self.layers) - 1)):
                self._reorder(layer, to_right)
            if (n := self._n_crossings()) < fewest:
                best, fewest = [list(layer) for layer in self.layers], n
        self.layers = best
        self._n_crossings()

    def _places(self) -> dict[_Slot, float]:
        return {slot: place for layer in self.layers for place, slot in enumerate(layer)}

    def _reorder(self, layer: int, to_right: bool) -> None:
        """Put a layer into the order of the mean place of the ends that its slots are joined with."""
        places = self._places()
        wanted: dict[_Slot, list[float]] = defaultdict(list)
        for a, b in self.joined[layer - 1 if to_right else layer]:
            near, other = (b, a) if to_right else (a, b)
            wanted[near.slot].append(places[other.slot] + other.below / (other.slot.height + 1))
        before = {slot: float(place) for place, slot in enumerate(self.layers[layer])}
        mean = {s: sum(w) / len(w) for s, w in wanted.items()}
        self.layers[layer].sort(key=lambda slot: (mean.get(slot, before[slot]), before[slot]))

    def _n_crossings(self) -> int:
        places = self._places()
        total = 0
        for joined in self.joined:
            if len(joined) > 1:
                a, b = (
                    np.array([places[e.slot] + e.below / (e.slot.height + 1) for e in ends])
                    for ends in zip(*joined, strict=True)
                )
                total += int(np.count_nonzero((a[:, None] < a) & (b[:, None] > b)))
        return total

    # -- heights ---------------------------------------------------------------------------------

    def _set_heights(self) -> None:
        for layer in self.layers:
            for slot, y in zip(layer, _stacked(layer), strict=True):
                slot.y = y
        n = len(self.layers)
        for sweep in range(SETTLING):
            for number in range(n) if sweep % 2 == 0 else reversed(range(n)):
                self._settle(number)
        self._straighten()
        top = min(slot.y for layer in self.layers for slot in layer)
        for layer in self.layers:
            for slot in layer:
                slot.y -= top

    def _settle(self, layer: int) -> None:
        """The heights of a layer closest to where its lines want them, in its order and without overlap."""
        wanted: dict[_Slot, list[float]] = defaultdict(list)
        for channel, near, other in ((layer - 1, 1, 0), (layer, 0, 1)):
            for ends in self.joined[channel] if channel >= 0 else ():
                wanted[ends[near].slot].append(ends[other].y - ends[near].below)
        slots = self.layers[layer]
        offsets = _stacked(slots)
        # A slot that passes is worth most: a straight trunk is seen from afar.
        values = [
            (sum(wanted[s]) / len(wanted[s]) if s in wanted else s.y) - offset
            for s, offset in zip(slots, offsets, strict=True)
        ]
        weights = [(8.0 if s.box is None else 1.0) * (len(wanted[s]) or 0.1) for s in slots]
        for slot, offset, value in zip(slots, offsets, _ascending(values, weights), strict=True):
            slot.y = value + offset

    def _straighten(self) -> None:
        """Let nets that pass go on as high as they come, where there is room: they are easier to follow."""
        neighbours = {
            slot: (above, below)
            for layer in self.layers
            for above, slot, below in zip([None, *layer], layer, [*layer[1:], None], strict=False)
        }
        for slot in self.trunks:
            assert slot.near is not None
            above, below = neighbours[slot]
            least = -np.inf if above is None else above.y + above.height + _between(above, slot)
            most = np.inf if below is None else below.y - _between(slot, below)
            slot.y = float(min(max(slot.near.y, least), most))

    # -- tracks ----------------------------------------------------------------------------------

    def _set_tracks(self) -> None:
        x = 0.0
        self.x: list[float] = []
        for layer, channel in zip(self.layers, self.channels, strict=True):
            self.x.append(x)
            x += max(slot.width for slot in layer)
            n_tracks = _tracked(channel)
            for turn in channel:
                if turn.track is not None:
                    turn.x = x + END + TRACK * turn.track
            if channel:
                x += 2 * END + TRACK * max(0, n_tracks - 1)
        loops = any(turn.track is not None for turn in self.channels[-1])
        self.width = x - (END if loops else 0.0)
        spans = [turn.span for channel in self.channels for turn in channel]
        bottoms = [slot.y + slot.height for layer in self.layers for slot in layer]
        self.height = max([*bottoms, *(low for _, low in spans)])

    def corners(self) -> dict[int, Point]:
        return {box: (self.x[slot.layer], slot.y) for box, slot in self.slots.items()}

    def paths(self) -> dict[int, list[Point]]:
        return {i: self._path(way) for i, way in self.ways.items()}

    def _path(self, way: list[tuple[_Turn, _End, _End]]) -> list[Point]:
        (first, start, _), (last, _, end) = way[0], way[-1]
        points = [(self._side(start, first), start.y)]
        for turn, near, far in way:
            if turn.track is not None:
                points += [(turn.x, near.y), (turn.x, far.y)]
        points.append((self._side(end, last), end.y))
        return points

    def _side(self, end: _End, turn: _Turn) -> float:
        """The side of a box that an end is at."""
        return self.x[end.slot.layer] + (end.slot.width if end in turn.left else 0.0)


def _between(above: _Slot, below: _Slot) -> float:
    return PASSING if above.box is None or below.box is None else GAP


def _stacked(slots: Sequence[_Slot]) -> list[float]:
    """The heights of slots without room to spare."""
    steps = (above.height + _between(above, below) for above, below in pairwise(slots))
    return list(accumulate(steps, initial=0.0))


def _layered(boxes: Sequence[Box], lines: Iterable[Line], members: list[int]) -> dict[int, int]:
    """The layer of each box: right of its parents, in layers that are not much higher than it all is wide."""
    parents: dict[int, set[int]] = {b: set() for b in members}
    children: dict[int, set[int]] = {b: set() for b in members}
    for line in lines:
        if line.child != line.parent and line.parent not in _below(line.child, children):
            parents[line.child].add(line.parent)
            children[line.parent].add(line.child)
    area = sum((boxes[b].width + 3 * END) * (boxes[b].height + GAP) for b in members)
    room = max(sqrt(area) * 0.9, *(boxes[b].height for b in members), 0.0)
    filled: dict[int, float] = defaultdict(float)
    layer_of: dict[int, int] = {}

    def put(box: int, layer: int) -> None:
        layer_of[box] = layer
        filled[layer] += boxes[box].height + GAP

    waiting = {b: len(parents[b]) for b in members}
    ready = [b for b in members if not waiting[b]]
    while ready:
        # Those with many children first: what hangs on them comes soon.
        ready.sort(key=lambda b: (-len(children[b]), b))
        box = ready.pop(0)
        layer = 1 + max((layer_of[p] for p in parents[box]), default=-1)
        while filled[layer] and filled[layer] + boxes[box].height > room:
            layer += 1
        put(box, layer)
        for child in children[box]:
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
    # A box without parents stands next to its children.
    for box in members:
        if not parents[box] and children[box]:
            nearest = min(layer_of[c] for c in children[box]) - 1
            for layer in range(nearest, layer_of[box], -1):
                if filled[layer] + boxes[box].height <= room:
                    filled[layer_of[box]] -= boxes[box].height + GAP
                    put(box, layer)
                    break
    used = {layer: i for i, layer in enumerate(sorted(set(layer_of.values())))}
    return {box: used[layer] for box, layer in layer_of.items()}


def _below(box: int, children: dict[int, set[int]]) -> set[int]:
    """The box and all that hangs on it."""
    below, waiting = {box}, [box]
    while waiting:
        new = children[waiting.pop()] - below
        below |= new
        waiting += new
    return below


def _ascending(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The ascending values closest to the given ones in weighted squares: what is out of order is pooled.

    >>> _ascending([1.0, 3.0, 2.0, 5.0], [1.0, 1.0, 1.0, 1.0])
    [1.0, 2.5, 2.5, 5.0]
    """
    pools: list[tuple[float, float, int]] = []  # mean, weight, how many
    for value, weight in zip(values, weights, strict=True):
        mean, total, n = value, weight, 1
        while pools and pools[-1][0] > mean:
            other, w, m = pools.pop()
            mean, total, n = (mean * total + other * w) / (total + w), total + w, n + m
        pools.append((mean, total, n))
    return [mean for mean, _, n in pools for _ in range(n)]


def _tracked(channel: list[_Turn]) -> int:
    """Give every net of a channel that turns a track; how many there are.

    Where a net comes from the left as high as another leaves to the right, it turns first, or the two would
    lie upon each other; where that goes in a circle, one of them does.
    """
    turning = [turn for turn in channel if turn.span[1] - turn.span[0] > STRAIGHT]

    def rank(turn: _Turn) -> tuple[bool, float, float]:
        # Lines that go down turn the sooner the lower they start, those that go up the sooner the higher:
        # then they do not cross each other.
        start = turn.left[0].y
        stop = turn.right[0].y if turn.right else turn.left[-1].y
        return (stop < start, -start if stop >= start else start, stop)

    turning.sort(key=rank)
    first: dict[int, set[int]] = {i: set() for i in range(len(turning))}
    for i, a in enumerate(turning):
        for j, b in enumerate(turning):
            if i != j and any(abs(x.y - y.y) < TRACK / 2 for x in a.left for y in b.right):
                first[j].add(i)
    tracks: list[list[tuple[float, float]]] = []
    open_ = set(first)
    while open_:
        free = [i for i in sorted(open_) if not first[i] & open_]
        i = free[0] if free else min(open_)
        open_.remove(i)
        low, high = turning[i].span
        track = 1 + max((t for j in first[i] if (t := turning[j].track) is not None), default=-1)
        while track < len(tracks) and any(
            low < b + TRACK / 2 and a - TRACK / 2 < high for a, b in tracks[track]
        ):
            track += 1
        if track == len(tracks):
            tracks.append([])
        tracks[track].append((low, high))
        turning[i].track = track
    return len(tracks)
