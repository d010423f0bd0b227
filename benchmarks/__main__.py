"""`python -m benchmarks [keys | inds | fds] ...`: one benchmark, or without a name all, one after the other.

Arguments go to the benchmark, or to each of them; what all know are --quick, --no-peers, --timeout,
--results and --render.
"""

import sys

from benchmarks import fds, inds, keys

BENCHMARKS = {"keys": keys.main, "inds": inds.main, "fds": fds.main}

if __name__ == "__main__":
    argv = sys.argv[1:]
    if argv and argv[0] in BENCHMARKS:
        sys.exit(BENCHMARKS[argv[0]](argv[1:]))
    sys.exit(max([main(argv) for main in BENCHMARKS.values()]))  # a list: one that fails stops no other
