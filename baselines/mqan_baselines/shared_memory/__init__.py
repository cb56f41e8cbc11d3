"""LSTMs with a shared external memory (Liu, Qiu and Huang, EMNLP 2016), equation numbers beside the code."""
