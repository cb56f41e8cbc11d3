"""Records: a JSON Schema filled from a text."""
