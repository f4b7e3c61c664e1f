"""The files of a project: discovery, git, configuration, pins, writing and undo."""
