"""What a model is worth: scores, calibration, reports and the model card."""
