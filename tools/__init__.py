"""Commands for who works on the project."""
