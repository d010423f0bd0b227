"""`python -m benchmarks`: every benchmark, one after the other. Arguments go to each of them."""

import sys

from benchmarks import keys

if __name__ == "__main__":
    sys.exit(keys.main())
