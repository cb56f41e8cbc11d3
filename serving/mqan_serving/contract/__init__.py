"""The public contract in one place: what a question is, what an answer is, and the closed set of errors."""
