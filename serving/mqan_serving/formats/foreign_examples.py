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


def _beside(none: float, *places: tuple[int, str, float]) -> dict[str, Any]:
    """Return what stands beside an answer: how likely none is right, and the places that decide."""
    sources = [
        {"source": "context", "start": start, "end": start + len(text), "text": text} for start, text, _ in places
    ]
    evidence = [
        {**source, "probability": probability} for source, (*_, probability) in zip(sources, places, strict=True)
    ]
    return {"x_answered": True, "x_none": none, "x_sources": sources, "x_evidence": evidence}


SYSTEMONE_RESPONSE: Final[dict[str, Any]] = {
    "model": "mqan-default",
    "answers": {
        "leak": {"type": "noul", "noul": 0.846, **_beside(0.0, (10, "Boiler leaks", 0.42))},
        "trade": {
            "type": "choice",
            "choice": "plumber",
            "confidence": 0.882,
            "probabilities": {"plumber": 0.941, "roofer": 0.059},
            **_beside(0.195, (10, "Boiler leaks", 0.5)),
        },
        "haste": {
            "type": "score",
            "score": 0.268,
            "confidence": 0.464,
            "legend": {"0": "can wait", "1": "today"},
            "probabilities": {"0": 0.732, "1": 0.268},
            **_beside(0.187, (23, "since Monday", 0.42)),
        },
    },
    "usage": {"input_tokens": 34, "output_tokens": 0},
}
DECISIONS_RESPONSE: Final[dict[str, Any]] = {
    "model": "mqan-default",
    "answers": [
        {"type": "predicate", "name": "leak", "probability": 0.82, **_beside(0.003, (0, "Boiler leaks", 0.26))},
        {
            "type": "choice",
            "name": "trade",
            "choice": "plumber",
            "confidence": 0.636,
            "probabilities": [{"value": "plumber", "probability": 0.818}, {"value": "roofer", "probability": 0.182}],
            **_beside(0.285, (0, "Boiler leaks", 0.24)),
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
    "labels": ["billing", "shipping", "technical support"],
    "scores": [0.789, 0.209, 0.003],
    **_beside(0.021, (6, "charged twice", 0.31)),
}
