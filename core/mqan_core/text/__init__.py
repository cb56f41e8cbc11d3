"""Texts as the model reads them: words, word pieces, windows, vocabulary."""
