"""Rules on sites: diagnostics, the plan of fixes and its proof, suppressions, baseline."""
