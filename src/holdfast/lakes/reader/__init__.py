"""A lake, open for questions. Needs no Spark, and kernels only to draw its graph.

`lake_reader.py` first: all questions that there are. `catalogue.py` knows names, numbers and texts,
`joins.py` the inclusions and their scores, `overlaps.py` which columns share the most values,
`value_search.py` what a text may mean, `graph_views.py` the graph as the page shows it. All of them read rows
of Parquet files by `pages.py`.
"""
