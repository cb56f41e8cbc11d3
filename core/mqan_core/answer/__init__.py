"""Answers: from the trace of decoding to the answer that a caller gets, in one pipeline (``finish``)."""
