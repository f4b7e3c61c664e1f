"""Shell scripts: launchers, batch jobs, and files of arguments."""

from cgmigrate.documents.shell.document import ShellDocument, parts_of

__all__ = ["ShellDocument", "parts_of"]
