"""The program of one arm: builds a proxy model with the megatron-core at hand, runs it, counts what was captured.

Everything here runs in a fresh process (one a GPU), in an environment that holds torch and one release of
megatron-core. Capture and replay are megatron-core's own; nothing here captures.
"""
