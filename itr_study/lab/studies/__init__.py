"""What the notebooks study: arms of each paper, how much is computed, what came of it."""
