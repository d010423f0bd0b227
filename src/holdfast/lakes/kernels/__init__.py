"""Signatures, inverted indexes, value sets; components and places of graphs."""
