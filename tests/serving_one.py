"""A server over one service, whose engine a test has made."""

from pathlib import Path

from mqan_serving.service.answer_service import Service
from mqan_serving.service.catalog import Catalog, Entry
from mqan_serving.service.models import Models
from mqan_serving.settings import Settings


def models_of(service: Service, settings: Settings) -> Models:
    """Return models of which one is open, and is this service."""
    model = service.model
    entry = Entry(model.name, settings.bundle or Path(), model.version, model.sha256, 0)
    models = Models(settings, Catalog(model.name, entries={model.name: entry}))
    models.loader.keep(models._slots[model.name], service)
    models.health.set_ready()
    return models
