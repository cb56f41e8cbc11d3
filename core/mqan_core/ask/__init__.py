"""Questions: the options, labels that a question lists, and the request that the model reads."""
