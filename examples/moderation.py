"""Sort messages, one a line: publish, hold back, or let a person look. What is unsure is never decided alone."""

import argparse
from pathlib import Path

from mqan_client import Client, ClientError

ASKED = (
    ("Is this message friendly or hostile?", ("friendly", "hostile"), "hostile"),
    ("Is this spam?", ("yes", "no"), "yes"),
)
SURE = 0.8


def main() -> None:
    """Print what to do with each message, and why."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("messages", type=Path)
    parser.add_argument("--server", default="grpc://127.0.0.1:9000")
    given = parser.parse_args()
    messages = [line for line in given.messages.read_text(encoding="utf-8").splitlines() if line.strip()]
    verdicts = {message: "publish" for message in messages}
    with Client(given.server) as client:
        for question, labels, bad in ASKED:
            answers = client.answer_many([(message, question) for message in messages], choices=labels)
            for message, answer in zip(messages, answers, strict=True):
                if isinstance(answer, ClientError):
                    raise answer
                if verdicts[message].startswith("hold"):
                    continue
                if answer.text == bad and answer.confidence >= SURE:
                    verdicts[message] = f"hold back ({question} {bad}, {answer.confidence:.2f})"
                elif answer.confidence < SURE:
                    verdicts[message] = f"look ({question} {answer.text or 'no answer'}, {answer.confidence:.2f})"
    for message, verdict in verdicts.items():
        print(f"{verdict}: {message}")


if __name__ == "__main__":
    main()
