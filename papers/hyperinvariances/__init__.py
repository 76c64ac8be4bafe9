"""Paper C: HyperInvariances: Amortizing Invariance Learning."""
