"""``python -m sparsezo``."""

from sparsezo.cli import main

main()
