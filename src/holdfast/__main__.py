"""`python -m holdfast`, and the script for spark-submit: the command line."""

if __name__ == "__main__":
    if not __package__:
        # Run by its path. Python then looks into its folder first, where `profile` hides the standard
        # library's, which PySpark imports by way of cProfile.
        import os
        import sys

        folder = os.path.dirname(os.path.realpath(__file__))
        sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != folder]

    from holdfast.app.cli import main

    main()
