"""The command line: one module for each command, options, console."""
