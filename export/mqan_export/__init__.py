"""Checkpoint to bundle (tracing side, torch) and running a bundle (engine side, onnxruntime and numpy only)."""
