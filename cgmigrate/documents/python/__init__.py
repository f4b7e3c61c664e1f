"""Python files. ``document`` reads a file and rewrites its settings, with the help of the other modules.

* Text and names: ``source``, ``comments``, ``name_resolution``, ``class_origins``, ``definitions``,
  ``scopes``.
* Sites: ``calls``, ``argument_lists``, ``assignments`` (with ``object_states``) and ``built_copies`` read the places
  of ``site_nodes``; ``values`` reads what they set.
* Flags that code looks for or defines: ``flag_uses``.
* What surrounds a site: ``surroundings``, with ``statement_order``.
* Roles of all names: ``uses``.
* Problems with deprecated names outside of sites: ``use_problems``, ``scope_tests``, ``name_strings``,
  ``read_messages``, ``use_owners``, ``use_report``.
* Rewriting: ``site_rewriter``, ``statement_edits``, ``enum_imports``, ``spelling``;
  ``equivalence`` compares the file before and after.
* Safety of fixes: ``release_checks`` withhold a fix or make it unsafe; ``fix_risks`` has all that makes one unsafe.
"""

from cgmigrate.documents.python.document import PythonDocument, ReadingMode

__all__ = ["PythonDocument", "ReadingMode"]
