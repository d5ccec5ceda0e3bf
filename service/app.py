"""create_app(settings): wires settings, database and blueprints; nothing else."""

from __future__ import annotations

from flask import Flask

from service import health, http, logs, openapi
from service.access import guard
from service.audit import views as audit
from service.catalog import views as catalog
from service.current import attach
from service.database import Database
from service.json_provider import StrictJSONProvider
from service.settings import Settings
from service.sizings import views as sizings
from service.sizings.decisions import views as decisions
from service.sizings.observations import views as observations
from service.web import views as web


class Service(Flask):
    """Flask with strict JSON."""

    json_provider_class = StrictJSONProvider


def create_app(settings: Settings | None = None) -> Service:
    """The service, ready for a WSGI server. The database is opened by the first request that needs it."""
    settings = settings or Settings.from_environ()
    logs.configure(settings)
    app = Service("service.web")
    database = Database(settings)
    attach(app, settings, database)
    catalog.attach(app, database)
    http.register(app)
    guard.attach(app, settings, database)
    api = openapi.create_api(app)
    for views in (sizings, decisions, observations, catalog, audit):
        api.register_blueprint(views.blueprint)
    app.register_blueprint(health.blueprint)
    app.register_blueprint(web.blueprint)
    return app
