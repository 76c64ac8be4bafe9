"""Gauss-Newton curvature of networks whose weights are shared over copies of the input."""
