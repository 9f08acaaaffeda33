"""Notebooks in one headless batch: what each declares, when it runs, how it ended."""
