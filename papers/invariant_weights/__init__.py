"""Paper B, Learning Invariant Weights in Neural Networks (van der Ouderaa and van der Wilk, 2022)."""
