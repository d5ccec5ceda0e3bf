"""What was decided on a sizing, by whom and why."""
