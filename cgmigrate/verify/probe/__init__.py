"""The program of one arm: builds a proxy model with the installed megatron-core, runs it, counts what was captured.

It runs in a process of its own (one a GPU), in an environment that holds torch and one release of
megatron-core. Capture and replay are megatron-core's own; the probe captures nothing.
"""
