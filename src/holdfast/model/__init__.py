"""The words: schema, dependency, change. Standard library only; no state, no data."""
