"""Kernels of denial constraints, a module for each question.

`rewriting.py`: how else a constraint can be said. `implication.py`: which ones follow from others.
`support.py`: how much evidence stands behind one. `rule_violations.py`: how many pairs of rows violate a
rule. `row_outcomes.py`: how two columns of the same row compare. Read `rewriting.py` first: it defines the
states that `implication.py` works on; the others stand alone.
"""
