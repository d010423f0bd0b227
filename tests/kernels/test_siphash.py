"""SipHash: the published vectors, the reference, and the two that the pipeline and a reader of a lake use."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.core.rows.kernels import siphash as kernel
from holdfast.core.store.plain_siphash import siphash as of_one
from reference.siphash import siphash as reference

KEY = int.from_bytes(bytes(range(8)), "little"), int.from_bytes(bytes(range(8, 16)), "little")
# Of the authors' reference implementation: the hash of the bytes 0, 1, ..., n - 1 under the key 00 01 ... 0f.
PUBLISHED = {
    0: "a3817f04ba25a8e66df67214c7550293",
    1: "da87c1d86b99af44347659119b22fc45",
    7: "a1f1ebbed8dbc153c0b84aa61ff08239",
    8: "3b62a9ba6258f5610f83e264f31497b4",
    15: "5493e99933b0a8117e08ec0f97cfc3d9",
    16: "6ee2a4ca67b054bbfd3315bf85230577",
}
KEYS = st.tuples(*[st.integers(0, 2**64 - 1)] * 2)


@pytest.mark.parametrize("n", PUBLISHED)
def test_published(n: int) -> None:
    expected = bytes.fromhex(PUBLISHED[n])
    low, high = reference(bytes(range(n)), KEY)
    assert low.to_bytes(8, "little") + high.to_bytes(8, "little") == expected


@given(st.lists(st.binary(max_size=70), max_size=12), KEYS)
@example([bytes(range(n)) for n in range(64)], KEY)
@example([b"x" * 255, b"x" * 256, b"x" * 257], KEY)
def test_equal_to_the_reference(texts: list[bytes], key: tuple[int, int]) -> None:
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int64)
    data = np.frombuffer(b"".join(texts), np.uint8)
    low, high = kernel.siphashes(offsets, data, key)
    expected = [reference(text, key) for text in texts]
    assert list(zip(low.tolist(), high.tolist(), strict=True)) == expected
    assert [of_one(text, key) for text in texts] == expected


def test_a_slice() -> None:
    data = np.frombuffer(b"xxxabcdeyy", np.uint8)
    low, _ = kernel.siphashes(np.array([3, 6, 8], dtype=np.int64), data, KEY)
    assert low.tolist() == [reference(b"abc", KEY)[0], reference(b"de", KEY)[0]]
