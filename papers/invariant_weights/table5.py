"""ReLU network on MNIST: five fixed rotations against learned ones from five starts."""

from papers.invariant_weights.budgets import FIXED, STARTS
from papers.invariant_weights.published import TABLE_5
from papers.invariant_weights.rotations import rotation_item

ITEM = rotation_item(__doc__, "relu", FIXED, STARTS["relu"], TABLE_5, many=True)
