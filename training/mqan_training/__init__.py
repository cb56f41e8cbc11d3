"""Dataset files to a checkpoint: data, the model and the training loop."""
