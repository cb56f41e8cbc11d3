"""What training, export and serving agree on: text, vocabulary, examples, answers, bundles."""

__version__ = "0.17.0"
