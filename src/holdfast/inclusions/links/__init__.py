"""Foreign keys among inclusion dependencies: names, evidence, and one consistent choice."""
