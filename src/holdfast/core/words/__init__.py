"""The words: schemas, predicates, dependencies, changes. Standard library and NumPy only; no state, no data.

Read `schema.py` first, then `dependency.py` and `predicate.py` (how two rows are compared; in English:
`sentences.py`), and `change.py` (what a batch did). `notation.py`, `rule_text.py` and `row_rule.py` read what
people write (`asking.py` says which of them it is), `condition.py` is a condition with constants;
`reliance.py` has the terms of pins, `ranks.py` what a dependency means. `codec.py` is the one way to JSON.
"""
