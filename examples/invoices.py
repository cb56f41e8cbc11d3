"""Fill a record from each invoice: text files in, JSON lines out, with the place of every value in its file."""

import argparse
import json
import sys
from pathlib import Path

from mqan_client import Client, ClientError

FIELDS = {
    "number": "What is the invoice number?",
    "seller": "Who sent the invoice?",
    "total": "What is the total?",
    "due": "When must it be paid?",
    "account": "Which account should be paid to?",
}


def main() -> int:
    """Print one JSON document for each invoice; what a text does not say is null. Return 1 if any was not answered."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("invoices", type=Path, nargs="+")
    parser.add_argument("--server", default="grpc://127.0.0.1:9000")
    given = parser.parse_args()
    status = 0
    with Client(given.server) as client:
        for path in given.invoices:
            text = path.read_text(encoding="utf-8")
            record: dict[str, object] = {"file": path.name}
            answers = client.answer_many([(text, question) for question in FIELDS.values()], contiguous=True)
            for field, answer in zip(FIELDS, answers, strict=True):
                if isinstance(answer, ClientError):
                    record, status = {"file": path.name, "error": str(answer)}, 1
                    break
                span = answer.spans[0] if answer.answered else None
                record[field] = span and {"value": span.text, "start": span.start, "end": span.end}
            print(json.dumps(record, ensure_ascii=False))
    return status


if __name__ == "__main__":
    sys.exit(main())
