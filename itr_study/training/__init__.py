"""A model trained by an objective, stopped and resumed at any point."""
