"""Route support tickets to teams and read their customer numbers: a CSV file with id and text in, JSON lines out."""

import argparse
import csv
import json
import sys
from pathlib import Path

from mqan_client import Choice, Client, ClientError

TEAMS = [
    Choice("billing", "invoices, payments, refunds"),
    Choice("shipping", "parcels and their delivery"),
    Choice("technical support", "problems with the app or the product"),
    Choice("contracts", "starting, changing or ending a subscription"),
]
SURE = 0.6  # below this a person decides


def main() -> int:
    """Print one JSON document for each ticket; return 1 if any was not answered."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tickets", type=Path)
    parser.add_argument("--server", default="grpc://127.0.0.1:9000")
    given = parser.parse_args()
    with given.tickets.open(newline="", encoding="utf-8-sig") as file:  # Excel begins a file of UTF-8 with a mark
        tickets = list(csv.DictReader(file))
    texts = [ticket["text"] for ticket in tickets]
    with Client(given.server) as client:
        teams = client.answer_many([(text, "Which team should take this ticket?") for text in texts], choices=TEAMS)
        numbers = client.answer_many([(text, "What is the customer number?") for text in texts], contiguous=True)
    status = 0
    for ticket, team, number in zip(tickets, teams, numbers, strict=True):
        if isinstance(team, ClientError) or isinstance(number, ClientError):
            print(json.dumps({"id": ticket["id"], "error": str(team if isinstance(team, ClientError) else number)}))
            status = 1
            continue
        sure = team.answered and team.confidence >= SURE
        record = {"id": ticket["id"], "team": team.text if sure else None, "probability": round(team.confidence, 2)}
        if number.answered:
            record["customer"] = number.text
        print(json.dumps(record, ensure_ascii=False))
    return status


if __name__ == "__main__":
    sys.exit(main())
