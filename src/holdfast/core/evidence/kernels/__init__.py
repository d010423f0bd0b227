"""Comparing rows, refining partitions, counting.

Read `compared_pairs.py` first, the one engine that compares pairs and counts what comes of it;
`agree_counts.py` and `predicate_evidence.py` say what is compared. `partitions.py` refutes candidates without
looking at pairs, `pairs.py` and `probed_pairs.py` walk indexes. `agree_index.py` asks counted agree sets,
`fd_masks.py` which of them matter; `group_counts.py` measures. `living_pairs.py` drops
witnesses with their rows.
"""
