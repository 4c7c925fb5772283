"""Reading and writing sentences."""
