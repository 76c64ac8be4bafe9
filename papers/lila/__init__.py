"""Paper A: Invariance Learning in Deep Neural Networks with Differentiable Laplace Approximations."""
