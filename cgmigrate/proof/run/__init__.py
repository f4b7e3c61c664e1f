"""Proofs by running: a command of the user in copies of the tree, with the old and the new text, under an observer.

`copies` makes the trees, `command` runs in one, `observer/` is loaded into its processes, `observations` compares what
two runs built, and `judge` decides which fixes the runs prove.
"""
