"""Ask System One's questions with TypeSafe's own client: ``python typesafe_client.py URL``."""

import json
import sys

from typesafe_sdk import Choice, Noul, Score, TypeSafeClient

with TypeSafeClient(api_key="any", base_url=sys.argv[1]) as client:
    response = client.system_one(
        {"ticket": "I was charged twice for my order last week."},
        {
            "team": Choice(instructions="Which team should take this?", criteria={"billing": None, "shipping": None}),
            "twice": Noul(instructions="Was the customer charged twice?"),
            "haste": Score(instructions="How pressing is it?", criteria=["can wait", "today"]),
        },
    )
    models = [model.name for model in client.models.list().models]
team, twice, haste = (response.answers[name] for name in ("team", "twice", "haste"))
print(json.dumps({"team": team.choice, "twice": twice.noul, "haste": haste.score, "models": models}))
