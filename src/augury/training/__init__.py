"""The only training loop, with schedules, checkpoints and progress."""
