"""RFF network on MNIST: five fixed rotations against a learned one."""

from papers.invariant_weights.budgets import FIXED, STARTS
from papers.invariant_weights.published import TABLE_4
from papers.invariant_weights.rotations import rotation_item

ITEM = rotation_item(__doc__, "rff", FIXED, STARTS["rff"][:1], TABLE_4)
