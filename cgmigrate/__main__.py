"""``python -m cgmigrate``."""

from cgmigrate.cli.commands import main

if __name__ == "__main__":
    main()
