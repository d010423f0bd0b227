"""What every class of dependencies stands on. Nothing here knows a class by name.

Rooms, each of which imports only those before it: `words` (what is talked about), `store` (files and their
history), `engine` (jobs, Spark, compiled kernels), `sources` (what users bring), `rows` (encoded tables and
batches), `evidence` (what pairs of rows show), `cover` (what follows from it). Read `words` first, then
`rows`.
"""
