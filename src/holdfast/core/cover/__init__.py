"""What follows from evidence: the minimal sets that hold, searched for, repaired, and what changed in them.

Read `cover.py` first, for its law; then `kernels/search.py` and `kernels/repair.py`, which do the work.
`approximate.py` is the same within an error. `news.py` has what the reports of all classes share,
`history.py` says since when something holds, and `stability.py` what it has outlived; `dual.py` goes from
keys back to evidence.
"""
