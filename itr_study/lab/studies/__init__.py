"""What the notebooks study: arms of each paper, sizes, and what came of it."""
