"""Adaptation (paper C): a frozen hyper-extractor, a descriptor and a linear head for a new task."""
