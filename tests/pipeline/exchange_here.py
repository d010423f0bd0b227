"""An engine that does in this process what Spark does for others by its shuffle."""

from __future__ import annotations

import json
from typing import Any

from holdfast.core.engine.engine import Engine


class ExchangeHere(Engine):
    """Blocks of a part meet, in some order."""

    shuffles = True

    def run(self, function: Any, payloads: list[Any], **how: Any) -> list[bytes]:
        return super().run(function, payloads, **{**how, "where": "inline"})

    def exchange(
        self, produce: Any, payloads: Any, consume: Any, consumers: Any, progress: Any = None, **how: Any
    ) -> list[bytes]:
        sent = [block for payload in self._copies(payloads) for block in produce(payload)]
        for relay, of_parts in how.get("relays", ()):
            given = self._by_part(sent)
            copies = self._copies(of_parts)
            sent = [block for part in sorted(given) for block in relay(iter(given[part]), copies[part])]
        given = self._by_part(sent)
        return [consume(iter(given.get(i, ())), payload) for i, payload in enumerate(self._copies(consumers))]

    @staticmethod
    def _copies(payloads: Any) -> Any:
        return json.loads(json.dumps(payloads))

    @staticmethod
    def _by_part(sent: list[tuple[int, bytes]]) -> dict[int, list[bytes]]:
        given: dict[int, list[bytes]] = {}
        for part, block in reversed(sent):
            given.setdefault(part, []).append(block)
        return given
