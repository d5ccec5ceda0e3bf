"""Which databases a test runs on."""

from __future__ import annotations

import pytest

#: Put on a test (or a module, as `pytestmark`) whose behaviour the database could change. Others run on SQLite only.
on_both_databases = pytest.mark.parametrize(
    "database_kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)], indirect=True
)
