"""A lake, open for questions. Needs neither Spark nor kernels."""
