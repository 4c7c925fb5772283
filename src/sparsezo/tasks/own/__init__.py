"""A task of one's own from three functions: read an input, decode its scores, the loss of an output (docs/tasks.md)."""
