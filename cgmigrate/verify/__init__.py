"""Verification: the configuration before and after migration, run by the real megatron-core and compared.

The way of a verification: ``plan`` reads a file and says which configurations are to be compared on which
proxy model; ``config_level`` compares how megatron-core reads the settings (no GPU); ``run`` starts one fresh
process an arm, which is ``probe``; ``compare`` reads the results and gives a verdict; ``report`` and ``page`` show it.
"""
