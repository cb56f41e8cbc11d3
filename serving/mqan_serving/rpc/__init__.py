"""gRPC: methods, messages and their limits."""
