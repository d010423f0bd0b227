"""The join graph of a lake: its tables, and the links between them.

`components.py` first: what a step works out and a commit stores, the component of each table. `drawing.py`
has the views of a graph, worked out when somebody looks; `links.py` reads the files of links that both need.
"""
