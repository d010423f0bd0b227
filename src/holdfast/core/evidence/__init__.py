"""What pairs of rows show: agree sets and predicates, counted or with witnesses; found, compared, validated.

Read `comparison.py` (a batch with all rows) and `counted.py`; then `validation.py` (is a candidate
refuted?) and `probe.py` (which pairs may violate a constraint?), whose tasks work at a `probe_place.py`.
"""
