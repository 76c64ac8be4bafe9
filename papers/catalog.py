"""Every paper and what can be reproduced of it."""

from papers.genuine.drift import DRIFT
from papers.genuine.proposition import PROPOSITION
from papers.genuine.saliency import SALIENCY
from papers.genuine.spectrum import SPECTRUM
from papers.genuine.table import TABLE
from papers.genuine.verdicts import VERDICTS
from papers.hyperinvariances.figure1 import FIGURE1 as HYPER_FIGURE1
from papers.hyperinvariances.table1 import TABLE1 as HYPER_TABLE1
from papers.hyperinvariances.table2 import TABLE2 as HYPER_TABLE2
from papers.hyperinvariances.table3 import TABLE3 as HYPER_TABLE3
from papers.invariant_weights.figure1 import FIGURE1 as WEIGHTS_FIGURE1
from papers.invariant_weights.figure5 import FIGURE5 as WEIGHTS_FIGURE5
from papers.invariant_weights.filters import FIGURE3 as WEIGHTS_FIGURE3
from papers.invariant_weights.filters import FIGURE4 as WEIGHTS_FIGURE4
from papers.invariant_weights.filters import FIGURE6 as WEIGHTS_FIGURE6
from papers.invariant_weights.rotation import FIGURE2 as WEIGHTS_FIGURE2
from papers.invariant_weights.rotation import TABLE1 as WEIGHTS_TABLE1
from papers.invariant_weights.rotation import TABLE4 as WEIGHTS_TABLE4
from papers.invariant_weights.rotation import TABLE4_PRIOR as WEIGHTS_TABLE4_PRIOR
from papers.invariant_weights.rotation import TABLE5 as WEIGHTS_TABLE5
from papers.invariant_weights.transformations import TABLE2 as WEIGHTS_TABLE2
from papers.invariant_weights.transformations import TABLE3 as WEIGHTS_TABLE3
from papers.invariant_weights.transformations import TABLE6 as WEIGHTS_TABLE6
from papers.invariant_weights.transformations import TABLE7 as WEIGHTS_TABLE7
from papers.invariant_weights.transformations import TABLE8 as WEIGHTS_TABLE8
from papers.item import Paper
from papers.lila.ablation import ABLATION
from papers.lila.figure1 import FIGURE1
from papers.lila.figure2 import FIGURE2
from papers.lila.figure3 import FIGURE3
from papers.lila.recovery import RECOVERY
from papers.lila.table1 import TABLE1
from papers.lila.table2 import TABLE2

PAPERS = {
    "lila": Paper(
        "Invariance Learning in Deep Neural Networks with Differentiable Laplace Approximations",
        {
            "recovery": RECOVERY,
            "table1": TABLE1,
            "table2": TABLE2,
            "figure1": FIGURE1,
            "figure2": FIGURE2,
            "figure3": FIGURE3,
            "ablation": ABLATION,
        },
    ),
    "invariant_weights": Paper(
        "Learning Invariant Weights in Neural Networks",
        {
            "figure1": WEIGHTS_FIGURE1,
            "figure2": WEIGHTS_FIGURE2,
            "table1": WEIGHTS_TABLE1,
            "table4": WEIGHTS_TABLE4,
            "table4_prior": WEIGHTS_TABLE4_PRIOR,
            "table5": WEIGHTS_TABLE5,
            "figure5": WEIGHTS_FIGURE5,
            "table2": WEIGHTS_TABLE2,
            "table7": WEIGHTS_TABLE7,
            "table6": WEIGHTS_TABLE6,
            "table3": WEIGHTS_TABLE3,
            "table8": WEIGHTS_TABLE8,
            "figure3": WEIGHTS_FIGURE3,
            "figure4": WEIGHTS_FIGURE4,
            "figure6": WEIGHTS_FIGURE6,
        },
    ),
    "genuine": Paper(
        "On genuine invariance learning without weight-tying",
        {
            "table": TABLE,
            "saliency": SALIENCY,
            "drift": DRIFT,
            "spectrum": SPECTRUM,
            "proposition": PROPOSITION,
            "verdicts": VERDICTS,
        },
    ),
    "hyperinvariances": Paper(
        "HyperInvariances: Amortizing Invariance Learning",
        {"table1": HYPER_TABLE1, "table2": HYPER_TABLE2, "table3": HYPER_TABLE3, "figure1": HYPER_FIGURE1},
    ),
}
"""Papers by the name that `augury reproduce` knows."""
