"""Reading and writing n-best lists."""
