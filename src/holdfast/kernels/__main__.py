"""`python -m holdfast.kernels`: see `warming.py`."""

from holdfast.kernels.warming import main

if __name__ == "__main__":  # not in the processes that it spawns
    main()
