"""Learnable distributions over transformations, g(x, eps; eta)."""
