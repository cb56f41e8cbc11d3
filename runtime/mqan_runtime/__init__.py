"""Runs a bundle: text in, attributed answers out. Needs onnxruntime and numpy, no torch."""

import os

# onnxruntime reads it when it is imported; else it asks for its maker's host and keeps files in the user's cache.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
