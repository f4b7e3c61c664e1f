"""Python configuration objects across functions and files: how functions set and read the settings of an object."""
