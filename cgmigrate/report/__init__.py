"""Reports: findings in the forms that people and programs read."""
