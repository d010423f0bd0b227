"""What every class of dependencies stands on. Nothing here imports one.

What a batch runs through asks the registry, which stands above. Kinds by name are known to `words` (`ranks`
has their order in a report, `sameness` what makes two dependencies one, `asking` the forms of questions,
`change` how a pin is written) and to `store/litter` (how files of covers are called).

Rooms, each of which imports only those before it: `words` (what is talked about), `store` (files and their
history), `engine` (jobs, Spark, compiled kernels), `sources` (what users bring), `rows` (encoded tables and
batches), `evidence` (what pairs of rows show), `cover` (what follows from it). Read `words` first, then
`rows`.
"""
