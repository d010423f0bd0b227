"""What pairs of rows show: agree sets and predicates, counted or with witnesses; found, compared, validated.

Read `comparison.py` (a batch with all rows) and `counted.py` (the state that follows), then `witnessed.py`
(the state of which only a part is kept) and `refute.py` with `validation.py` (is a candidate refuted?).
`probe.py` finds the pairs that may violate a constraint; its tasks work at a `probe_place.py`. `groups.py`
measures how far a dependency is from holding. `evidence_files.py` is the state on disk, `shuffled.py`
validates by Spark's shuffle.
"""
