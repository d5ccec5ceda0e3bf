"""The append-only record of what was asked, answered and decided. It knows nobody; others append to it."""
