"""Proofs that edits of a project leave what it captures as it is."""
