"""How pairs of rows are found that may violate constraints: which indexes, at what cost."""
