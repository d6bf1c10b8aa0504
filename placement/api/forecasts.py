"""How good the forecasts were, as figures."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from placement.api.nouns import Noun
from placement.api.shapes.forecasts import Accuracy
from placement.selectors import forecasts

noun = Noun("Forecasts")


@noun.read("/forecasts", Accuracy, name="api-forecasts")
def accuracy(request: HttpRequest) -> dict[str, Any]:
    """Return how often starts came when they were foretold, by what it stood on and how far ahead it was."""
    return forecasts.as_json()
