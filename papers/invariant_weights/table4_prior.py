"""RFF network on MNIST: Table 4 where every width has the prior that suits it best, not all the same one."""

from papers.invariant_weights.budgets import FIXED, STARTS
from papers.invariant_weights.published import TABLE_4
from papers.invariant_weights.rotations import rotation_item

ITEM = rotation_item(__doc__, "rff", FIXED, STARTS["rff"], TABLE_4, "learned")
