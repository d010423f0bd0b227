"""Identities of values, sorted runs, attribute clusters, tuples."""
