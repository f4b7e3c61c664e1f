"""YAML files. ``document`` reads a file and rewrites its settings, with the help of the other modules.

* Text and nodes: ``tree``.
* Sites: ``keys`` and ``values``.
* Rewriting: ``site_rewriter`` and ``line_edits``; ``equivalence`` compares the file before and after.
"""

from cgmigrate.documents.yaml.document import YamlDocument

__all__ = ["YamlDocument"]
