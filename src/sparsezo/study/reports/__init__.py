"""Reports on finished runs: they read what experiments wrote, and nothing else."""
