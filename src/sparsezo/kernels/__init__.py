"""Compiled loops. Arrays and scalars in, filled in place; nothing here checks what a user gave."""
