"""Who should choose the augmentation: our own comparison of policies at equal budgets."""
