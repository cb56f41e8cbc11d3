"""Checkpoint to bundle: graphs, tracing, 8-bit products and parity."""

import mqan_runtime  # noqa: F401  before onnxruntime, whose telemetry it switches off
