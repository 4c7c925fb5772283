"""Chunking, and sequence labelling at large: everything about it is in this folder."""
