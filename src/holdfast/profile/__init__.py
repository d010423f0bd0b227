"""Column profiles: what the values of each column are like, counted and kept exact while the rows change.

Read `tally.py` (the law), `column_counts.py` (what is counted of a column, and how a batch changes it) and
`profile_class.py`. What follows from the counts is in `column_rules.py`; `profile_reading.py` reads it, and
`value_ranking.py` counts anew what is not kept: the most frequent of many values.
"""
