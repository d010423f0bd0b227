"""Telling pages of new versions as they come: server-sent events, one stream for each page that listens.

One thread looks at the workspace's version for all listeners, once in LOOK_S, and only while there are some:
a look is one `stat` in a folder, one request in a bucket. What a stream says:

    event: version    the newest version, at once and whenever there is another
    data: 43

    event: full       more pages listen than MOST: the oldest goes
    :                 nothing new for HEARTBEAT_S; a page that is gone shows by this

Each listener has the thread of its connection, which waits; so they are few.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial

from holdfast.errors import HoldfastError

LOOK_S = 1.0
HEARTBEAT_S = 15.0
MOST = 6
FULL = b"event: full\ndata:\n\n"
BEAT = b":\n\n"


class Listeners:
    """Streams of versions; `version` looks which one is the newest, and may be asked by any thread."""

    def __init__(self, version: Callable[[], int]) -> None:
        self._version = version
        self._changed = threading.Condition()
        self._newest = -1
        self._listening: dict[object, None] = {}  # the oldest first
        self._watching = self._closed = False

    def serve(self, send: Callable[[bytes], object]) -> None:
        """Tells one listener, until it hangs up (an error of `send`), others come, or the server ends."""
        listener = object()
        with self._changed:
            if self._closed:
                return
            self._listening[listener] = None
            while len(self._listening) > MOST:
                del self._listening[next(iter(self._listening))]
            self._changed.notify_all()
            if not self._watching:
                self._watching = True
                threading.Thread(target=self._watch, name="versions", daemon=True).start()
        try:
            self._tell(listener, send)
        finally:
            with self._changed:
                self._listening.pop(listener, None)
                self._changed.notify_all()

    def _tell(self, listener: object, send: Callable[[bytes], object]) -> None:
        sent = -1
        while True:
            with self._changed:
                self._changed.wait_for(partial(self._has_news, listener, sent), HEARTBEAT_S)
                newest, closed, stays = self._newest, self._closed, listener in self._listening
            if closed:
                return
            if not stays:
                send(FULL)
                return
            send(BEAT if newest == sent else f"event: version\ndata: {newest}\n\n".encode())
            sent = newest

    def _has_news(self, listener: object, sent: int) -> bool:
        return self._closed or listener not in self._listening or self._newest != sent

    def _watch(self) -> None:
        """Looks while somebody listens."""
        while True:
            try:
                newest = self._version()
            except HoldfastError:  # a page that asks is told; the next look may find it well again
                newest = self._newest
            with self._changed:
                if newest != self._newest:
                    self._newest = newest
                    self._changed.notify_all()
                end = time.monotonic() + LOOK_S
                while not self._closed and self._listening and (rest := end - time.monotonic()) > 0:
                    self._changed.wait(rest)
                if self._closed or not self._listening:
                    self._watching, self._newest = False, -1
                    return

    def close(self) -> None:
        """Ends all streams; no more are served."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def __len__(self) -> int:
        with self._changed:
            return len(self._listening)
