"""Paper D, "On genuine invariance learning without weight-tying": its table, figures and proposition."""
