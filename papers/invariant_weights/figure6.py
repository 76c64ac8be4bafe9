"""Figure 6: filters of those runs of Table 3 that learn what was planted."""

from papers.invariant_weights.budgets import row_of
from papers.invariant_weights.filters import filters_item
from papers.invariant_weights.table3 import ITEM as TABLE3
from papers.invariant_weights.training import MATCHING

ITEM = filters_item(
    "Filters of the ReLU network after training on CIFAR-10.",
    lambda scale, seeds: [c for c in TABLE3.grid(scale, seeds) if (row_of(c), c.variant) in MATCHING],
)
