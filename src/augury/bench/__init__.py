"""Comparisons on real data that Augury runs about itself: what the alternatives give, and what they cost."""
