"""ReLU network on MNIST: Table 5 with a prior on the first layer; ELBOs of learned and fixed rows do not compare."""

from papers.invariant_weights.budgets import FIXED, STARTS
from papers.invariant_weights.published import TABLE_5
from papers.invariant_weights.rotations import rotation_item

ITEM = rotation_item(__doc__, "relu", FIXED, STARTS["relu"], TABLE_5, anchored=True)
