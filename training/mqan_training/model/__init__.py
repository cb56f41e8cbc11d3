"""The model, in the order of the paper (McCann et al. 2018)."""
