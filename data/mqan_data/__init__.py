"""Datasets: official files to examples, metrics of the tasks, and examples as numbers."""
