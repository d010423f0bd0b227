"""Denial constraints (IncDC), row rules, and rules that people write.

Read `dc_state.py`, then the two kinds of evidence, `dc_counted.py` and `dc_witnessed.py`; `access/` says how
violating pairs are found, `forms.py` how a constraint may be said.
"""
