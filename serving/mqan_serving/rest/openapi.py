"""The REST contract as an OpenAPI document: ``make proto`` writes it beside the gRPC contract."""

import json
import sys
from typing import Any

from mqan_serving.keys import ApiKeys
from mqan_serving.observability.metrics import Metrics
from mqan_serving.rest.routes import create_rest_app
from mqan_serving.settings import Settings


def openapi_document() -> dict[str, Any]:
    """Return the document that a server with default settings publishes at ``/openapi.json``."""
    get_models: Any = None  # nothing is served
    return create_rest_app(get_models, Settings.model_construct(), ApiKeys(None), Metrics()).openapi()


if __name__ == "__main__":
    json.dump(openapi_document(), sys.stdout, indent=2, sort_keys=True)
    sys.stdout.write("\n")
