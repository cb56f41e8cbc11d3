"""What the two sibling systems, shared-memory LSTMs and MT-DNN, have in common: tasks, scores, recipes, folders."""
