"""Experiments: training with checkpoints, sweeps, tuning, reports. Light to import: the command line reads this."""

CHECKPOINT_SECONDS = 30.0  # between two checkpoints of a run
