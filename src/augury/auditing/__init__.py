"""Is a model's invariance genuine? Measures, noise floor, spectrum, drift and a verdict, for any model."""
