"""Alembic migrations, the same on SQLite and PostgreSQL. `trainmem migrate` runs them; docs/operations.md says more."""
