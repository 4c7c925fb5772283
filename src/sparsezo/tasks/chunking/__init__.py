"""Chunking, and sequence labelling in IOB tags at large: everything about it is in this folder."""
