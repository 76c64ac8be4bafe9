"""ReLU network on MNIST with two planted transformations: Table 8 with a prior on the first layer."""

from papers.invariant_weights.published import PAIRS, TABLE_8
from papers.invariant_weights.transformations import transformations_item

ITEM = transformations_item(__doc__, "relu", PAIRS, TABLE_8, anchored=True)
