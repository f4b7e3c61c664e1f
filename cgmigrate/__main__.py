"""``python -m cgmigrate``."""

from cgmigrate.cli import main

if __name__ == "__main__":
    main()
