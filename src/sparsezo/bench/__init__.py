"""What a step costs, as a ratio to a yardstick in the same run."""
