"""Answering questions, independent of transports and of Ray: validation, batching, the queue, streams."""
