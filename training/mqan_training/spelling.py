"""Answers spelled with the source's own tokens, and the tokens that the generator knows.

An answer is spelled with the source's tokens wherever it is a quotation: at the answer's place where that is known,
otherwise at the first place in the question or context where its words stand. Only half spaces at its ends can differ
from tokenising the answer alone, and they are not part of the answer's text.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from mqan_core.example import Example
from mqan_core.text.tokens import Token, read_tokens


def spell_answer(example: Example, context: Sequence[Token], question: Sequence[Token]) -> list[str]:
    """Return the tokens of the first answer, those of the source it can be quoted from if there is one."""
    answer = example.answers[0]
    if example.answer_start is not None:
        end = example.answer_start + len(answer)
        inside = [t for t in context if t.start < end and t.end > example.answer_start]
        if inside and inside[0].start == example.answer_start and inside[-1].end == end:
            return [t.key for t in inside]
    alone = read_tokens(answer)
    words = [t.word for t in alone]
    for source in (question, context):
        found = [t.word for t in source]
        for start, word in enumerate(found):
            if words[:1] == [word] and found[start : start + len(words)] == words:
                return [t.key for t in source[start : start + len(words)]]
    return [t.key for t in alone]


def generator_tokens(
    examples: Iterable[Example], number: int, max_answer_tokens: int, *, question_pointer: bool = True
) -> list[str]:
    """Choose the generator's tokens: first those that answers need and cannot copy, by use, then the most frequent."""
    needed: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for example in examples:
        if example.choices or not example.answers:
            continue
        context, question = read_tokens(example.context), read_tokens(example.question)
        known = {token.key for token in (*context, *question)}
        copied = known if question_pointer else {token.key for token in context}
        answer = spell_answer(example, context, question)[:max_answer_tokens]
        needed.update(token for token in answer if token not in copied)
        total.update(known)
        total.update(answer)
    return sorted(total, key=lambda token: (-needed[token], -total[token], token))[:number]


def grow(known: Sequence[str], wanted: Sequence[str], number: int) -> tuple[str, ...]:
    """Return the known tokens, in their order, and as many of the wanted ones as fit."""
    if len(known) > number:
        raise ValueError(
            f"the recipe's num_generated leaves place for {number} tokens, but what the run begins with generates "
            f"{len(known)}: a vocabulary can only grow"
        )
    seen = set(known)
    return (*known, *[token for token in wanted if token not in seen][: number - len(known)])
