"""Tasks: what the scores S = C W mean. Each has a folder with everything about it; registry.py is the list of them."""
