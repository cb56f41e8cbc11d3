"""Sort messages, one a line: publish, hold back, or let a person look. What is unsure is never decided alone."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from mqan_client import Answer, Client, ClientError, InvalidRequestError

ASKED = (
    ("What is the tone of this message?", ("friendly or neutral", "hostile"), "hostile"),
    ("Is this advertising or spam?", ("yes", "no"), "yes"),
)
SURE = 0.8


def decide(answers: Sequence[Answer | ClientError]) -> str:
    """Return what to do with a message by the answers to ASKED: it is published where all are sure and none is bad."""
    verdict = "publish"
    for (question, _, bad), answer in zip(ASKED, answers, strict=True):
        if isinstance(answer, InvalidRequestError):  # about this message, for example that it is too long
            verdict = f"look ({answer})"
        elif isinstance(answer, ClientError):
            raise answer
        elif not answer.answered or answer.confidence < SURE:
            verdict = f"look ({question} {answer.text or 'no answer'}, {answer.confidence:.2f})"
        elif answer.text == bad:
            return f"hold back ({question} {bad}, {answer.confidence:.2f})"
    return verdict


def main() -> None:
    """Print what to do with each message, and why."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("messages", type=Path)
    parser.add_argument("--server", default="grpc://127.0.0.1:9000")
    given = parser.parse_args()
    lines = given.messages.read_text(encoding="utf-8-sig").splitlines()  # some editors begin a file with a mark
    messages = [line for line in lines if line.strip()]
    with Client(given.server) as client:
        answers = [
            client.answer_many([(message, question) for message in messages], choices=labels)
            for question, labels, _ in ASKED
        ]
    for message, *found in zip(messages, *answers, strict=True):
        print(f"{decide(found)}: {message}")


if __name__ == "__main__":
    main()
