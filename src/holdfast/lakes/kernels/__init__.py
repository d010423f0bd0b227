"""What is compiled of lakes: matching columns, linking tables, drawing their graph.

Read `value_index.py` first (entries, postings, bitmaps), then `rarest_value.py`, which finds inclusions by
them, and `removed_inds.py`, which only counts. `signatures.py` proposes inclusions in another way, and
`value_sets.py` validates what it proposes. `table_links.py` goes from columns to tables; `graph_parts.py`
(components, communities), `graph_layout.py` and `circles.py` are for the graph of these.
"""
