"""The comparison of question answering with the baselines, in torch."""
