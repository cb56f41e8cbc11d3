"""Baselines: shared-memory LSTMs and MT-DNN, trained for fixed tasks, and question answering compared with them."""
