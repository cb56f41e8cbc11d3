"""The worth of a model: scores, calibration, reports and the model card."""
