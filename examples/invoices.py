"""Fill a record from each invoice: text files in, JSON lines out, with the place of every value in its file."""

import argparse
import json
import sys
from pathlib import Path

from mqan_client import Client, ClientError

SCHEMA = {
    "type": "object",
    "properties": {
        "number": {"type": "string", "ask": "What is the invoice number?"},
        "seller": {"type": "string", "ask": "Which company is the invoice from?"},
        "total": {"type": "number", "format": "money", "ask": "What is the total?"},
        "due": {"type": "string", "format": "date", "ask": "When must it be paid?"},
        "account": {"type": "string", "ask": "Which account should be paid to?"},
    },
}


def main() -> int:
    """Print one JSON document for each invoice; what a text does not say is null. Return 1 if any was not answered."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("invoices", type=Path, nargs="+")
    parser.add_argument("--server", help="default: MQAN_SERVER, or grpc://127.0.0.1:9000")
    given = parser.parse_args()
    status = 0
    with Client(given.server) as client:
        records = client.fill_records([path.read_text(encoding="utf-8") for path in given.invoices], SCHEMA)
    for path, record in zip(given.invoices, records, strict=True):
        if isinstance(record, ClientError):
            print(json.dumps({"file": path.name, "error": str(record)}))
            status = 1
            continue
        told: dict[str, object] = {"file": path.name}
        for name, field in record.fields.items():
            places = [[span.start, span.end] for span in field.spans]
            told[name] = {"value": field.value, "places": places} if field.answered else None
        print(json.dumps(told, ensure_ascii=False))
    return status


if __name__ == "__main__":
    sys.exit(main())
