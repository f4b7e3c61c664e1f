"""What goes together: merged mappings and files, owners, code that reads keys by name."""
