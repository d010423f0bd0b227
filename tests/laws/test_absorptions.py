"""What ranges of values say together: which inclusions a delta breaks, and the first values that do."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.store.bundle import pack, unpack
from holdfast.inclusions.kernels.clusters import WITNESSES, no_clusters
from holdfast.inclusions.kernels.sorted_runs import no_entries
from holdfast.inclusions.value_tasks import Outcome, broken_by, unpacked_outcome

N_HOLDING = 6
# Of each range the values that break each inclusion.
Range = dict[int, list[int]]
ranges = st.lists(
    st.dictionaries(
        st.integers(0, N_HOLDING - 1), st.lists(st.integers(1, 99), min_size=1, max_size=7), max_size=4
    ),
    max_size=4,
)


def outcome_of(some: Range) -> Outcome:
    hit = sorted(some)
    first = [(some[h] + [0] * WITNESSES)[:WITNESSES] for h in hit]
    keys = np.array(first, np.uint64).reshape(-1, WITNESSES)
    broken = np.array([len(some[h]) for h in hit], np.int64)
    at = np.array(hit, np.int64)
    return Outcome(no_clusters(), at, broken, keys, keys.astype(np.uint32), no_entries(), 1, 2, 3)


@given(ranges)
def test_the_first_values_of_all_ranges(some: list[Range]) -> None:
    broken, keys, checks = broken_by(map(outcome_of, some), N_HOLDING)
    for h in range(N_HOLDING):
        values = [v for one in some for v in one.get(h, [])[:WITNESSES]][:WITNESSES]
        assert broken[h] == sum(len(one.get(h, [])) for one in some)
        assert keys[h].tolist() == checks[h].tolist() == values + [0] * (WITNESSES - len(values))


def test_an_outcome_is_as_large_as_what_its_range_breaks() -> None:
    """On the driver, too: there are as many of them as tasks, and inclusions may be hundreds of thousands."""
    outcome = outcome_of({3: [7, 8]})
    arrays = {name: getattr(outcome, name) for name in ("hit", "broken", "keys", "checks")}
    counts = {"n_values": "1", "n_reads": "2", "n_entries": "3"}
    again = unpacked_outcome(unpack(pack({**outcome.clusters._asdict(), **arrays}, counts)))
    assert [len(getattr(again, name)) for name in arrays] == [1] * 4
    assert all((getattr(again, name) == array).all() for name, array in arrays.items())
