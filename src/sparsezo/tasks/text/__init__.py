"""Text classification: everything about it is in this folder."""
