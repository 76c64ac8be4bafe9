"""ReLU network on MNIST with two planted transformations: test accuracy and ELBO."""

from papers.invariant_weights.published import PAIRS, TABLE_8
from papers.invariant_weights.transformations import transformations_item

ITEM = transformations_item(__doc__, "relu", PAIRS, TABLE_8, many=True)
