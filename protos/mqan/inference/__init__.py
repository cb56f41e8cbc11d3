"""The stubs of the Open Inference Protocol."""
