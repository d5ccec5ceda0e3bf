"""What belongs to the app that is answering: its settings and its database."""

from __future__ import annotations

from typing import cast

from flask import Flask, current_app

from service.database import Database
from service.settings import Settings

_SETTINGS, _DATABASE = "trainmem_settings", "trainmem_database"


def attach(app: Flask, settings: Settings, database: Database) -> None:
    """Give an app its settings and database."""
    app.extensions[_SETTINGS] = settings
    app.extensions[_DATABASE] = database


def settings() -> Settings:
    """The settings of the current app."""
    return cast(Settings, current_app.extensions[_SETTINGS])


def database() -> Database:
    """The database of the current app."""
    return cast(Database, current_app.extensions[_DATABASE])
