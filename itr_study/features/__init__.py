"""A data set as arrays: encoded once, kept in a cache on the disk."""
