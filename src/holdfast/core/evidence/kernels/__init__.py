"""Comparing rows, refining partitions, counting."""
