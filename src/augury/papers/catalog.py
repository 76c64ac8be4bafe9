"""Every paper and what can be reproduced of it."""

from augury.papers.genuine.drift import DRIFT
from augury.papers.genuine.proposition import PROPOSITION
from augury.papers.genuine.saliency import SALIENCY
from augury.papers.genuine.spectrum import SPECTRUM
from augury.papers.genuine.table import TABLE
from augury.papers.genuine.verdicts import VERDICTS
from augury.papers.hyperinvariances.figure1 import FIGURE1 as HYPER_FIGURE1
from augury.papers.hyperinvariances.table1 import TABLE1 as HYPER_TABLE1
from augury.papers.hyperinvariances.table2 import TABLE2 as HYPER_TABLE2
from augury.papers.hyperinvariances.table3 import TABLE3 as HYPER_TABLE3
from augury.papers.item import Paper
from augury.papers.lila.ablation import ABLATION
from augury.papers.lila.figure1 import FIGURE1
from augury.papers.lila.figure2 import FIGURE2
from augury.papers.lila.figure3 import FIGURE3
from augury.papers.lila.recovery import RECOVERY
from augury.papers.lila.table1 import TABLE1
from augury.papers.lila.table2 import TABLE2

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
