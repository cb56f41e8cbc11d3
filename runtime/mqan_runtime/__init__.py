"""Runs a bundle: text in, attributed answers out. Needs onnxruntime and numpy, no torch."""
