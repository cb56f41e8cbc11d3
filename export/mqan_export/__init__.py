"""Checkpoint to bundle: graphs, tracing, ranges of activations and parity."""
