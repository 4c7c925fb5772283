"""Inputs for the loop: what C is in S = C W. Sparse rows, one sparse row, or dense."""
