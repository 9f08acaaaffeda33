"""The embedded data set: generated pictures, their captions, and exact relevance."""
