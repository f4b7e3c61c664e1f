"""The variable of the environment that makes a process an observed one. This module imports nothing."""

VARIABLE = "CGMIGRATE_JOB"
"""The task of an observed job, as JSON: ``folder`` for results, ``steps``, and whether it runs ``eager``."""
