"""Checkpoint to bundle: graphs, tracing, 8-bit products and parity."""
