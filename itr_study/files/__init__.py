"""Files that are whole or absent, and where they lie."""
