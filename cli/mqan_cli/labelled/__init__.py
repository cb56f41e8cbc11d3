"""Measure the model on rows that somebody has answered: ``mqan evaluate ROWS``."""
