"""One module for each migration, in order of its number."""
