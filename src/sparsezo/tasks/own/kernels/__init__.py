"""What of this task is compiled into the training loop."""
