"""Denial constraints (IncDC), row rules, and rules that people write.

Read `dc_state.py`, then the two kinds of evidence, `dc_counted.py` and `dc_witnessed.py`; `access/` says how
violating pairs are found, `forms.py` how a constraint may be said. Row rules begin in `row_counts.py`, rules
that people write in `pair_rule.py`, conditions in `checks.py`. `dc_ranking.py` says which are worth a look,
`violations.py` counts. The classes (`dc_class.py`, `row_class.py`, `pinned_class.py`, `checks.py`) say how a
batch changes each; what is read without kernels lies in `constraints.py` and the `*_reading.py`.
"""
