"""The papers' networks, and OrbitAverage, which makes any network invariant."""
