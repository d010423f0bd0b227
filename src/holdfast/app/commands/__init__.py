"""The commands, by what they do to a workspace: one function for each, with its options as parameters.

`changing` tracks tables and applies batches, `reading` tells of the past and explains, `showing` lists what
holds; `linking` and `normalising` propose keys, foreign keys and tables; `lakes` and `exploring` are about
very many tables; `relying` pins, `muting` mutes, `cleaning` lists rows, `doctor` looks at an installation. A
parameter that is a dataclass is a group of options (`calls.as_command`). Read `reading` first.
"""
