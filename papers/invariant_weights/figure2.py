"""RFF network on MNIST: the way of the learned rotation from five starts."""

from papers.invariant_weights.budgets import STARTS
from papers.invariant_weights.published import TABLE_4
from papers.invariant_weights.rotations import rotation_item

ITEM = rotation_item(__doc__, "rff", (), STARTS["rff"], TABLE_4)
