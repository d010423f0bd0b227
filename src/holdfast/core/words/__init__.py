"""The words: schemas, predicates, dependencies, changes. Standard library and NumPy only; no state, no data.

Read `schema.py` first, then `predicate.py` (how two rows are compared; in English: `sentences.py`)
and `change.py` (what a batch did).
"""
