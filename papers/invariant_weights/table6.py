"""RFF network on MNIST: test accuracy and ELBO with several transformations."""

from papers.invariant_weights.published import SINGLE, TABLE_6
from papers.invariant_weights.transformations import transformations_item

ITEM = transformations_item(__doc__, "rff", SINGLE, TABLE_6)
