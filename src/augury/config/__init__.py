"""Settings: one frozen dataclass per command, free of torch. A default is changed here and nowhere else."""
