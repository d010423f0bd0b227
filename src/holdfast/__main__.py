"""`python -m holdfast`: the command line."""

from holdfast.app.cli import main

if __name__ == "__main__":
    main()
