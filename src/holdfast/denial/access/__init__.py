"""How pairs of rows are found that may violate constraints: which indexes, at what cost.

Read `access.py` first: what an access is, and which kinds there are. `costs.py` prices one; `selection.py`
chooses accesses for a cover (`paper_selection.py`: as IncDC does); `plan.py` keeps them while batches come,
and says how the whole table is looked at.
"""
