"""Text to checkpoint: readers, batching, the model, training and evaluation."""
