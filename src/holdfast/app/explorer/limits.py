"""How much the server takes: of each request, and of all in a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from math import ceil

# Bytes of the address, and of the lines of the head, of a request.
LONGEST_ADDRESS = 16_384
LONGEST_HEAD = 32_768
# Requests of whoever has the token: a page that loads takes some dozens.
RATE = 100.0  # a second, for ever
BURST = 1_000.0  # at once


class Bucket:
    """A token bucket: BURST requests at once, and RATE a second from then on.

    >>> bucket = Bucket(rate=2.0, burst=1.0, clock=iter([0.0, 0.0, 0.0, 0.5]).__next__)
    >>> bucket.wait_s(), bucket.wait_s(), bucket.wait_s()
    (0, 1, 0)
    """

    def __init__(
        self, rate: float = RATE, burst: float = BURST, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._full, self._at = burst, clock()
        self._lock = threading.Lock()

    def wait_s(self) -> int:
        """0 if one more request is let through, which counts; else in how many seconds one would be."""
        with self._lock:
            now = self._clock()
            self._full = min(self._burst, self._full + (now - self._at) * self._rate)
            self._at = now
            if self._full >= 1:
                self._full -= 1
                return 0
            return ceil((1 - self._full) / self._rate)
