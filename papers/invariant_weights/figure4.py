"""Figure 4: filters of the affine runs of Table 2."""

from papers.invariant_weights.budgets import row_of
from papers.invariant_weights.filters import filters_item
from papers.invariant_weights.published import SINGLE
from papers.invariant_weights.table2 import ITEM as TABLE2

ITEM = filters_item(
    f"Filters of the affine model after training on MNIST: {', '.join(SINGLE)}.",
    lambda scale, seeds: [c for c in TABLE2.grid(scale, seeds) if row_of(c) == "affine"],
)
