"""The site: what needs no Python to be read, made by `make site`."""
