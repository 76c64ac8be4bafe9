"""Every paper and what can be reproduced of it."""

from augury.papers.item import Paper
from augury.papers.lila.recovery import RECOVERY

PAPERS = {
    "lila": Paper(
        "Invariance Learning in Deep Neural Networks with Differentiable Laplace Approximations",
        {"recovery": RECOVERY},
    ),
}
"""Papers by the name that `augury reproduce` knows."""
