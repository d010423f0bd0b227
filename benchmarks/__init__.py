"""Benchmarks of holdfast; see README.md in this folder. Nothing here is imported by holdfast."""
