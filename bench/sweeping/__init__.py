"""The parts of bench/rule_truth.py."""
