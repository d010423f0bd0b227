"""The command line, and all that it shows and writes.

`cli.py` lists the commands, in the order of `holdfast --help`. What a command does is in `commands/`, the
options that several share in `options.py`, how all of them open, fail and print JSON in `calls.py`. `report/`
prints for people, `export/` writes for other tools (`writing.py`: where to), `explorer/` is the page,
`document/` the same as one file. Read `cli.py` and `commands/showing.py` first.
"""
