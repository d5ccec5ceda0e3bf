"""What the `trainmem` command shows and reads: a sizing as a table, a refusal under the word that caused it."""
