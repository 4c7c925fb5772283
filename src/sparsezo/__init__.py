"""sparsezo: learn structured predictors from feedback on their outputs alone."""

__version__ = "0.1.0"
