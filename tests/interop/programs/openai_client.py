"""Ask for decisions with OpenAI's own client: ``python openai_client.py URL``."""

import json
import sys

from openai import OpenAI

client = OpenAI(base_url=f"{sys.argv[1]}/v1", api_key="any")
decision = client.decisions.create(
    model="mqan-default",
    input="I was charged twice for my order last week.",
    questions=[
        {
            "type": "choice",
            "name": "team",
            "instructions": "Which team should take this?",
            "choices": [{"value": "billing"}, {"value": "shipping"}],
        },
        {"type": "predicate", "name": "twice", "instructions": "Was the customer charged twice?"},
    ],
)
team, twice = decision.answers
evidence = team.model_extra["x_sources"]
models = [model.id for model in client.models.list()]
told = {"team": team.choice, "twice": twice.probability, "evidence": evidence, "models": models}
print(json.dumps(told))
