"""Requests in the formats of others, and what mqan-default answered to them (shortened numbers)."""

from typing import Any, Final

SYSTEMONE_REQUEST: Final[dict[str, Any]] = {
    "model": "jev-latest",
    "state": {"note": "Boiler leaks since Monday"},
    "questions": {
        "leak": {"type": "noul", "instructions": "Is water escaping?"},
        "trade": {
            "type": "choice",
            "instructions": "Who should come?",
            "criteria": {"plumber": "pipes", "roofer": "roofs"},
        },
        "haste": {"type": "score", "instructions": "How pressing?", "criteria": ["can wait", "today"]},
    },
}
DECISIONS_REQUEST: Final[dict[str, Any]] = {
    "model": "jev-latest",
    "input": "Boiler leaks since Monday",
    "questions": [
        {"type": "predicate", "name": "leak", "instructions": "Water is escaping."},
        {
            "type": "choice",
            "name": "trade",
            "instructions": "Who?",
            "choices": [{"value": "plumber"}, {"value": "roofer"}],
        },
    ],
}

_LEAKS: Final = {"source": "context", "start": 10, "end": 22, "text": "Boiler leaks"}
_LEAKS_IN_TEXT: Final = {"source": "context", "start": 0, "end": 12, "text": "Boiler leaks"}
SYSTEMONE_RESPONSE: Final[dict[str, Any]] = {
    "model": "mqan-default",
    "answers": {
        "leak": {"type": "noul", "noul": 0.59, "x_answered": True, "x_sources": [_LEAKS]},
        "trade": {
            "type": "choice",
            "choice": "plumber",
            "confidence": 0.646,
            "probabilities": {"plumber": 0.823, "roofer": 0.177},
            "x_answered": True,
            "x_sources": [_LEAKS],
        },
        "haste": {
            "type": "score",
            "score": 0.727,
            "confidence": 0.454,
            "legend": {"0": "can wait", "1": "today"},
            "probabilities": {"0": 0.273, "1": 0.727},
            "x_answered": True,
            "x_sources": [_LEAKS],
        },
    },
    "usage": {"input_tokens": 30, "output_tokens": 0},
}
DECISIONS_RESPONSE: Final[dict[str, Any]] = {
    "model": "mqan-default",
    "answers": [
        {
            "type": "predicate",
            "name": "leak",
            "probability": 0.645,
            "x_answered": True,
            "x_sources": [_LEAKS_IN_TEXT],
        },
        {
            "type": "choice",
            "name": "trade",
            "choice": "plumber",
            "confidence": 0.313,
            "probabilities": [{"value": "plumber", "probability": 0.656}, {"value": "roofer", "probability": 0.344}],
            "x_answered": True,
            "x_sources": [_LEAKS_IN_TEXT],
        },
    ],
    "usage": {
        "input_tokens": 14,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 14,
    },
}
