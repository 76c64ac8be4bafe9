"""HyperInvariance (paper C): one extractor for a range of invariances, pre-trained once."""
