"""Reranking of n-best lists: everything about it is in this folder."""
