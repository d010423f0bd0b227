"""Circles that do not overlap: packed around the largest one, or pushed apart from where they are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import frozen

F32 = NDArray[np.float32]

ROUNDS = 300  # of pushing circles apart
EPSILON = 1e-12


@njit(cache=True, nogil=True)
def _beside(ax, ay, ar, bx, by, br, r):  # type: ignore[no-untyped-def]
    """The centre of a circle of radius r that touches two others, on the right-hand side from b to a."""
    dx, dy = ax - bx, ay - by
    d2 = dx * dx + dy * dy
    if d2 <= 0:
        return ax + ar + r, ay
    a2, b2 = (br + r) * (br + r), (ar + r) * (ar + r)
    if a2 > b2:
        u = (d2 + b2 - a2) / (2 * d2)
        v = math.sqrt(max(0.0, b2 / d2 - u * u))
        return ax - u * dx - v * dy, ay - u * dy + v * dx
    u = (d2 + a2 - b2) / (2 * d2)
    v = math.sqrt(max(0.0, a2 / d2 - u * u))
    return bx + u * dx - v * dy, by + u * dy + v * dx


@njit(cache=True, nogil=True)
def _overlap(x, y, r, i, j):  # type: ignore[no-untyped-def]
    dx, dy, d = x[j] - x[i], y[j] - y[i], r[i] + r[j] - 1e-6 * min(r[i], r[j])
    return d > 0 and d * d > dx * dx + dy * dy


@njit(cache=True, nogil=True)
def _pack(r, x, y):  # type: ignore[no-untyped-def]
    """Root circles, in order, each at the gap of the front nearest to the centre. OUT: x, y."""
    k = r.shape[0]
    if k == 0:
        return
    x[0], y[0] = 0.0, 0.0
    if k == 1:
        return
    x[1], y[1] = r[0] + r[1], 0.0
    if k == 2:
        return
    x[2], y[2] = _beside(x[1], y[1], r[1], x[0], y[0], r[0], r[2])
    after, before = np.empty(k, np.int64), np.empty(k, np.int64)
    a, b = 0, 1
    after[0], after[1], after[2] = 1, 2, 0
    before[1], before[2], before[0] = 0, 1, 2
    area = r[0] * r[0] + r[1] * r[1] + r[2] * r[2]
    mx = (x[1] * r[1] * r[1] + x[2] * r[2] * r[2]) / area
    my = (y[1] * r[1] * r[1] + y[2] * r[2] * r[2]) / area
    c = 3
    start = True
    while c < k:
        if start:  # the gap of the front that is nearest to the centre
            best, node = np.inf, a
            first = a
            while True:
                nxt = after[node]
                whole = r[node] + r[nxt]
                gx = (x[node] * r[nxt] + x[nxt] * r[node]) / whole - mx
                gy = (y[node] * r[nxt] + y[nxt] * r[node]) / whole - my
                if gx * gx + gy * gy < best:
                    best, a = gx * gx + gy * gy, node
                node = nxt
                if node == first:
                    break
            b = after[a]
            start = False
        x[c], y[c] = _beside(x[a], y[a], r[a], x[b], y[b], r[b], r[c])
        # The closest circle of the front, on either side, that the new one would overlap: cut to it.
        j, i = after[b], before[a]
        sj, si = r[b], r[a]
        cut = False
        while True:
            if sj <= si:
                if _overlap(x, y, r, j, c):
                    b = j
                    cut = True
                    break
                sj += r[j]
                j = after[j]
            else:
                if _overlap(x, y, r, i, c):
                    a = i
                    cut = True
                    break
                si += r[i]
                i = before[i]
            if j == after[i]:
                break
        if cut:
            after[a], before[b] = b, a
            continue
        before[c], after[c] = a, b
        after[a], before[b] = c, c
        area += r[c] * r[c]
        mx += (x[c] - mx) * r[c] * r[c] / area
        my += (y[c] - my) * r[c] * r[c] / area
        b = c
        c += 1
        start = True


def packed(radii: NDArray[Any]) -> F32:
    """The centres of circles that do not overlap, as close together as they easily go: float32[k, 2].

    The largest are placed first, each further one where it touches two of the front and is closest to the
    middle (Wang et al., Visualization of large hierarchical data by circle packing, CHI 2006). Radii are
    positive. Cost: about k sqrt(k).
    """
    sizes = np.asarray(radii, np.float64)
    order = np.argsort(-sizes, kind="stable")
    x, y = np.zeros(len(sizes)), np.zeros(len(sizes))
    # Places are rounded to float32: a little room, so that the circles touch but do not overlap.
    _pack(frozen(sizes[order] * (1 + 1e-5)), x, y)
    out = np.empty((len(sizes), 2), np.float32)
    out[order, 0], out[order, 1] = x, y
    return out


@njit(cache=True, nogil=True)
def _push(x, y, r, n_rounds):  # type: ignore[no-untyped-def]
    """Push overlapping circles apart, the smaller one further. OUT: x, y. All pairs in each round."""
    k = r.shape[0]
    for _ in range(n_rounds):
        moved = False
        for i in range(k):
            for j in range(i + 1, k):
                dx, dy, least = x[j] - x[i], y[j] - y[i], r[i] + r[j]
                d2 = dx * dx + dy * dy
                if d2 < least * least * 0.999:
                    d = math.sqrt(d2)
                    if d < 1e-6 * least:
                        angle = 2.399963 * j
                        d = 1e-6 * least
                        dx, dy = d * math.cos(angle), d * math.sin(angle)
                    f = (least - d) / (d * least)
                    x[i] -= f * dx * r[j]
                    y[i] -= f * dy * r[j]
                    x[j] += f * dx * r[i]
                    y[j] += f * dy * r[i]
                    moved = True
        if not moved:
            break
    widest = 1.0
    for i in range(k):
        for j in range(i + 1, k):
            dx, dy, least = x[j] - x[i], y[j] - y[i], r[i] + r[j]
            widest = max(widest, least / (math.sqrt(dx * dx + dy * dy) + EPSILON))
    x *= widest
    y *= widest


def apart(places: NDArray[Any], radii: NDArray[Any]) -> F32:
    """Circles that do not overlap, near their places: float32[k, 2].

    The places are first scaled so that the circles fill about half of the area. Then overlapping ones are
    pushed apart; what overlaps still, after many rounds, is parted by scaling. No two places may be equal.
    Cost: k^2 per round.
    """
    centres, r = np.asarray(places, np.float64), np.asarray(radii, np.float64) * (1 + 1e-5)
    if len(centres) > 1:
        width = 2 * math.sqrt(2 * float((r * r).sum()))
        centres = centres * (width / max(float(np.ptp(centres, axis=0).max()), EPSILON))
    x, y = centres[:, 0].copy(), centres[:, 1].copy()
    _push(x, y, frozen(r), ROUNDS)
    return np.stack([x, y], axis=1).astype(np.float32)


def warm_up() -> None:
    packed(np.ones(4))
    apart(np.arange(6.0).reshape(3, 2), np.ones(3))
