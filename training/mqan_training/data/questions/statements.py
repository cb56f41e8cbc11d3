"""Yes/no questions that are made of statements."""


def question_of(statement: str) -> str | None:
    """Return the yes/no question that a statement answers by yes; None where that cannot be told by its form."""
    return None
