"""The laboratory, for researchers: plans, runs, tuning, the paper's tables and figures, theory and benchmarks."""
