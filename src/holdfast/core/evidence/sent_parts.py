"""Parts of rows by Spark's shuffle, for tables that are more than every task should read.

A task that looks at the rows of one part reads all segments for them. Of a large table each segment is read
once instead: its rows go to their parts, on the columns that are asked about, and there the same function
answers. One job, as before. What rows go where, and what is made of those that come, is said by a `Sending`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.worker import import_task, task_name
from holdfast.core.evidence.shuffled import Blocks, Sent, is_worth_it
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.tasks import Payload
from holdfast.core.store.bundle import Bundle, unpack

I64 = NDArray[np.int64]
# A function of a payload, and of the rows of its part if they were sent.
PartTask = Callable[..., bytes]


@dataclass(frozen=True, slots=True)
class Sending:
    """How rows are sent. All three are at the top level of a module."""

    asked: Callable[[Payload], dict[str, Any] | None]
    """What segments are told of a question, by the payload of a part; None: its rows are not sent."""
    send: Callable[[Payload], Sent]
    """The rows of a segment, to the parts of all questions."""
    received: Callable[[Blocks, Payload], Any]
    """The rows of a part."""


def answers(
    relation: Relation, sending: Sending, task: PartTask, payloads: Sequence[Payload], ns: float
) -> list[Bundle]:
    """What a task says of parts of the rows, work of so many nanoseconds of one core.

    Payloads name all segments, their `part`, and of how many: those of one question are neighbours. One job,
    or two where the rows of some questions are sent, and those of others are not.
    """
    is_worth = is_worth_it(relation, ns)
    chosen: list[dict[str, Any]] = []
    sent: list[Payload] = []
    read: list[Payload] = []
    is_sent: list[bool] = []
    for payload in payloads:
        asked = sending.asked(payload) if is_worth else None
        is_sent.append(asked is not None)
        if asked is None:
            read.append(payload)
            continue
        if payload["part"] == 0:
            chosen.append({**asked, "first": len(sent), "n_parts": payload["n_parts"]})
        names = {"task": task_name(task), "received": task_name(sending.received), "segments": None}
        sent.append({**payload, **names})
    segments = [
        relation.payload(segment=segment, number=i, chosen=chosen) for i, segment in enumerate(relation.live)
    ]
    engine, progress = relation.engine, relation.progress
    by_shuffle = iter(engine.exchange(sending.send, segments, answer_part, sent, progress) if sent else ())
    by_segment = iter(relation.run(task, read, ns) if read else ())
    return [unpack(next(by_shuffle)) if one else next(by_segment) for one in is_sent]


def answer_part(blocks: Blocks, payload: Payload) -> bytes:
    """What the task that the payload names says of the rows that have come."""
    answer: bytes = import_task(payload["task"])(payload, import_task(payload["received"])(blocks, payload))
    return answer


def in_order(blocks: Blocks) -> list[Bundle]:
    """The blocks of a part as their segments lie; rows of one are in order."""
    return sorted(map(unpack, blocks), key=lambda bundle: int(bundle.array("number")[0]))


def number_of(payload: Payload) -> I64:
    """What says in a block which segment it is of."""
    return np.array([payload["number"]], np.int64)


def row_ids_of(bundles: Sequence[Bundle]) -> I64:
    return np.concatenate([np.empty(0, np.int64), *(bundle.array("row_id") for bundle in bundles)])
