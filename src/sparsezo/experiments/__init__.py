"""Experiments: plans in TOML, where their data comes from, runs, tuning, and reproducing the paper with one call."""
