"""The command `itr-study`."""
