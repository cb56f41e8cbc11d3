"""The command line: one verb for each way to use mqan."""
