"""HyperInvariance (paper C): one extractor for a whole manifold of invariances, pre-trained once."""
