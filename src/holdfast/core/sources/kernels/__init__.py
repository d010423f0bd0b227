"""What is compiled of sources: where the records of delimited text end.

`records.py` is all there is: whether a line end counts depends on the quotes before it, so a state runs
through a file, block by block.
"""
