"""A model measured on a split, and searched with."""
