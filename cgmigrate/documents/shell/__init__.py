"""Shell scripts: launchers, batch jobs, and files of arguments."""

from cgmigrate.documents.shell.document import ShellDocument

__all__ = ["ShellDocument"]
