"""One file, read in its syntax: sites, and the edits that change them. Knows no rules."""
