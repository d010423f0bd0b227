"""`python -m benchmarks [keys | inds | foreign_keys | fds | dcs | rules | lake | overlaps | ...] ...`.

One of them, or all. Arguments go to the benchmark, or to each of them; what all know are --quick,
--no-peers, --timeout, --results and --render.
"""

import sys

from benchmarks import (
    dcs,
    fds,
    foreign_keys,
    glance,
    inds,
    keys,
    lake,
    latency,
    overlaps,
    page,
    repairs,
    rules,
    scaling,
    stores,
)

BENCHMARKS = {
    "keys": keys.main,
    "inds": inds.main,
    "foreign_keys": foreign_keys.main,
    "fds": fds.main,
    "dcs": dcs.main,
    "rules": rules.main,
    "lake": lake.main,
    "overlaps": overlaps.main,
    "page": page.main,
    "stores": stores.main,
    "scaling": scaling.main,
    "repairs": repairs.main,
    "latency": latency.main,
}

if __name__ == "__main__":
    argv = sys.argv[1:]
    if argv and argv[0] in BENCHMARKS:
        status = BENCHMARKS[argv[0]](argv[1:])
    elif argv and argv[0] == "glance":
        status = 0
    else:
        status = max([main(argv) for main in BENCHMARKS.values()])  # a list: one that fails stops no other
    glance.main()
    sys.exit(status)
