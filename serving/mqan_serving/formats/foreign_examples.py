"""Requests in the formats of others, and what mqan-default answered to them (shortened numbers)."""

from typing import Any, Final

SYSTEMONE_REQUEST: Final[dict[str, Any]] = {
    "model": "jev-latest",
    "state": {"note": "Boiler leaks since Monday"},
    "questions": {
        "leak": {"type": "noul", "instructions": "Is there a leak?"},
        "trade": {
            "type": "choice",
            "instructions": "Who should repair this?",
            "criteria": {"plumber": "pipes", "roofer": "roofs"},
        },
        "haste": {"type": "score", "instructions": "How pressing?", "criteria": ["can wait", "today"]},
    },
}
DECISIONS_REQUEST: Final[dict[str, Any]] = {
    "model": "jev-latest",
    "input": "Boiler leaks since Monday",
    "questions": [
        {"type": "predicate", "name": "leak", "instructions": "There is a leak."},
        {
            "type": "choice",
            "name": "trade",
            "instructions": "Who?",
            "choices": [{"value": "plumber"}, {"value": "roofer"}],
        },
    ],
}


def _quoted(start: int, text: str) -> dict[str, Any]:
    return {"source": "context", "start": start, "end": start + len(text), "text": text}


SYSTEMONE_RESPONSE: Final[dict[str, Any]] = {
    "model": "mqan-default",
    "answers": {
        "leak": {
            "type": "noul",
            "noul": 0.846,
            "x_answered": True,
            "x_sources": [_quoted(10, "Boiler leaks"), _quoted(29, "Monday")],
        },
        "trade": {
            "type": "choice",
            "choice": "plumber",
            "confidence": 0.882,
            "probabilities": {"plumber": 0.941, "roofer": 0.059},
            "x_answered": True,
            "x_sources": [_quoted(10, "Boiler leaks"), _quoted(29, "Monday")],
        },
        "haste": {
            "type": "score",
            "score": 0.268,
            "confidence": 0.464,
            "legend": {"0": "can wait", "1": "today"},
            "probabilities": {"0": 0.732, "1": 0.268},
            "x_answered": True,
            "x_sources": [_quoted(10, "Boiler"), _quoted(23, "since Monday")],
        },
    },
    "usage": {"input_tokens": 34, "output_tokens": 0},
}
_EVIDENCE: Final = [_quoted(0, "Boiler leaks"), _quoted(19, "Monday")]
DECISIONS_RESPONSE: Final[dict[str, Any]] = {
    "model": "mqan-default",
    "answers": [
        {
            "type": "predicate",
            "name": "leak",
            "probability": 0.82,
            "x_answered": True,
            "x_sources": [_quoted(0, "Boiler leaks since")],
        },
        {
            "type": "choice",
            "name": "trade",
            "choice": "plumber",
            "confidence": 0.636,
            "probabilities": [{"value": "plumber", "probability": 0.818}, {"value": "roofer", "probability": 0.182}],
            "x_answered": True,
            "x_sources": _EVIDENCE,
        },
    ],
    "usage": {
        "input_tokens": 15,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 15,
    },
}
HF_QUESTION_REQUEST: Final[dict[str, Any]] = {
    "inputs": {
        "question": "When was it finished?",
        "context": "The tower is 330 m tall and was finished in 1889.",
    },
    "parameters": {"handle_impossible_answer": True},
}
HF_QUESTION_RESPONSE: Final[dict[str, Any]] = {"score": 0.546, "start": 44, "end": 48, "answer": "1889"}
HF_LABELS_REQUEST: Final[dict[str, Any]] = {
    "inputs": "I was charged twice for my order last week and would like one of the payments back.",
    "parameters": {
        "candidate_labels": ["shipping", "billing", "technical support"],
        "hypothesis_template": "This customer writes about {}.",
    },
}
HF_LABELS_RESPONSE: Final[dict[str, Any]] = {
    "sequence": HF_LABELS_REQUEST["inputs"],
    "labels": ["billing", "technical support", "shipping"],
    "scores": [0.967, 0.018, 0.015],
    "x_answered": True,
    "x_sources": [
        {"source": "context", "start": 0, "end": 5, "text": "I was"},
        {"source": "context", "start": 27, "end": 32, "text": "order"},
    ],
}
