"""The types that training, export and serving share: text, vocabulary, examples, answers, bundles."""

__version__ = "0.17.0"
