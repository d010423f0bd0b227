"""walk_records equals the reference for any bytes, delimiter, quote and any cut into blocks."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.core.sources.kernels import records as kernel
from reference.records import record_ends

kernel.warm_up()  # compiling takes a second, more than one example may

TEXT = st.lists(st.sampled_from([b"a", b",", b'"', b"\n", b"\r", b"\r\n", b'""', b",\xc3\xa9"]), max_size=40)


def walk_all(data: bytes, quote: int | None, blocks: list[int]) -> list[tuple[int, int, int, int]]:
    """All stops of the kernel, with the data handed over in blocks of the given sizes."""
    state, ends, at = kernel.new_state(), [], 0
    q = kernel.NO_QUOTE if quote is None else quote
    sizes = iter(blocks)
    block_end = 0
    while at < len(data):
        if at == block_end:
            block_end = min(len(data), at + next(sizes, len(data)))
        block = np.frombuffer(data, np.uint8)[at:block_end]
        n = int(kernel.walk_records(block, 44, q, np.int64(0), kernel.NO_LIMIT, state))
        at += n
        if state[0] == kernel.RECORD_START:
            ends.append((at, int(state[1]), int(state[2]), int(state[3])))
    return ends


@given(TEXT, st.booleans(), st.lists(st.integers(1, 7), max_size=40))
@example([b'5" pipe', b",", b"2", b"\n"], True, [])
@example([b'"', b"\n", b'""', b"\r", b'"', b"\r", b"\n", b"\r", b"a"], True, [1] * 20)
def test_every_record_end_is_found(parts: list[bytes], quoting: bool, blocks: list[int]) -> None:
    data = b"".join(parts)
    quote = 34 if quoting else None
    expected = record_ends(data, 44, quote)
    if data.endswith(b"\r") and expected and expected[-1][0] == len(data):
        expected.pop()  # the kernel waits for the byte behind a carriage return
    found = walk_all(data, quote, blocks)
    assert [e[:3] for e in found] == [e[:3] for e in expected]


@given(TEXT, st.integers(0, 60))
def test_it_stops_at_the_first_end_far_enough(parts: list[bytes], min_end: int) -> None:
    data = b"".join(parts) + b"\nx"
    state = kernel.new_state()
    block = np.frombuffer(data, np.uint8)
    stop = int(kernel.walk_records(block, 44, 34, np.int64(min_end), kernel.NO_LIMIT, state))
    later = [e for e in record_ends(data, 44, 34) if e[0] >= min_end]
    assert stop == (later[0][0] if later else len(data))
    if later:
        assert tuple(state) == (kernel.RECORD_START, *later[0][1:])


@given(TEXT, st.integers(1, 8))
def test_it_stops_after_the_wanted_number_of_records(parts: list[bytes], wanted: int) -> None:
    data = b"".join(parts) + b"\nx"
    state = kernel.new_state()
    stop = int(kernel.walk_records(np.frombuffer(data, np.uint8), 44, 34, kernel.NO_LIMIT, wanted, state))
    enough = [e for e in record_ends(data, 44, 34) if e[1] >= wanted]
    assert stop == (enough[0][0] if enough else len(data))


def test_one_signature_is_all() -> None:
    assert len(kernel.walk_records.signatures) == 1
