"""ReLU network and SGPR on MNIST: test accuracy with several transformations."""

from papers.invariant_weights.published import SINGLE, TABLE_7
from papers.invariant_weights.transformations import transformations_item

ITEM = transformations_item(__doc__, "relu", SINGLE, TABLE_7, bounds=False, sgpr=True)
