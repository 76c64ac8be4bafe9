"""What chooses the widths: marginal likelihoods and their bounds."""
