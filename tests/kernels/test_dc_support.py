"""What evidence stands behind denial constraints: equal to counting, and the bound bounds it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.rows.kernels.masks import mask_of
from holdfast.denial.kernels import support as kernel
from reference import dc_forms as reference

# Few of the bits are used, in different words.
BITS = [0, 1, 2, 5, 62, 63, 64, 70, 127]
SETS = st.frozensets(st.sampled_from(BITS))


@given(
    st.lists(SETS, max_size=8),
    st.dictionaries(SETS, st.integers(1, 9), max_size=12),
    st.sampled_from([0, 1, 700]),
    st.sampled_from([1, 1 << 30]),
)
@settings(deadline=None)
def test_support(dcs: list[frozenset[int]], pairs: dict[frozenset[int], int], n_more: int, room: int) -> None:
    """Also where evidences fill several blocks of 64 words."""
    wide = {frozenset({*(i for i in range(10) if n >> i & 1), 100}): 1 for n in range(n_more)}
    pairs = {**pairs, **wide}
    masks = np.array([mask_of(dc, 2) for dc in dcs], dtype=np.uint64).reshape(-1, 2)
    family = np.array([mask_of(e, 2) for e in pairs], dtype=np.uint64).reshape(-1, 2)
    counts = np.array(list(pairs.values()), dtype=np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "TESTS_PER_CALL", room)
        found = kernel.support(masks, family, counts)
    expected = [reference.support(dc, pairs) for dc in dcs]
    assert found.violations.tolist() == [e[0] for e in expected]
    assert found.near.tolist() == [e[1] for e in expected]
    assert found.expected.tolist() == pytest.approx([e[2] for e in expected])

    joint = np.zeros((129, 129))
    for evidence, n in pairs.items():
        with_nothing = [*evidence, 128]
        joint[np.ix_(with_nothing, with_nothing)] += n
    bound = kernel.most_expected(masks, joint)
    assert (bound >= found.expected - 1e-9).all()
    short = np.array([len(dc) <= 3 for dc in dcs], dtype=np.bool_)
    assert bound[short].tolist() == pytest.approx(found.expected[short].tolist())


@pytest.mark.parametrize("n_evidences", [8191, 8192, 8193, 20_000])
def test_ends_of_blocks(n_evidences: int) -> None:
    """Of so many evidences, all different, every third has bit 0."""
    numbers = np.arange(n_evidences, dtype=np.uint64)
    family = (numbers[:, None] << np.uint64(1)) | (numbers[:, None] % 3 == 0)
    found = kernel.support(
        np.array([[1], [3]], dtype=np.uint64), family, np.ones(n_evidences, dtype=np.int64)
    )
    first, second = numbers % 3 == 0, numbers % 2 == 1
    assert found.violations.tolist() == [int(first.sum()), int((first & second).sum())]
    assert found.near.tolist() == [int((~first).sum()), int((first ^ second).sum())]
