"""Runs: what one is, its id, its row, and how many are executed."""
