"""Text: spans, edits, diffs, escapes. Knows nothing of Megatron."""
