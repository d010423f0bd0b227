"""`python -m holdfast.kernels`: compile every kernel into the cache on disk."""

from holdfast.core.engine.kernels.warming import main

if __name__ == "__main__":  # not in the processes that it spawns
    main()
