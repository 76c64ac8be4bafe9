"""ReLU network on CIFAR-10: test accuracy with several transformations."""

from papers.invariant_weights.published import SINGLE, TABLE_3
from papers.invariant_weights.transformations import transformations_item

ITEM = transformations_item(__doc__, "relu", SINGLE, TABLE_3, bounds=False, data="cifar10")
