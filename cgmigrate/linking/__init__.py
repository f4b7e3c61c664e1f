"""Connections between settings: merged mappings and files, owners, code that reads keys by name."""
