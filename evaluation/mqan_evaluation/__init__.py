"""The worth of a model: scores, calibration and the model card."""
