"""What a job that was sized really used."""
