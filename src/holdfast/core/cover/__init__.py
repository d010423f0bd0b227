"""What follows from evidence: the minimal sets that hold, searched for, repaired, and what changed in them.

Read `cover.py`; the searches are in `kernels/`.
"""
