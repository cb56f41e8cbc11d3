"""Texts made by program that fields and layouts cannot say: who did what to whom, what was corrected, what is more."""
