"""The ablation of paper A's related work: the marginal likelihood of the last layer only (Schwoebel et al., 2022).

The same steps as LILA, with a posterior over the last layer's weights alone; every other weight is a point. Cheap, and
known to fail where the features below can absorb what the evidence should decide.
"""

from torch import Tensor, nn

from augury.curvature.tape import last_layer
from augury.evidence.ascent import Evidence
from augury.methods.lila import Lila
from augury.training.config import LearnConfig
from augury.training.schedule import Cosine
from augury.transforms.base import Transform


class LastLayer(Lila):
    """LILA with a Bayesian last layer; the other weights have the given weight decay instead of a prior."""

    def __init__(
        self, net: nn.Module, transform: Transform, config: LearnConfig, task: str, N: int, example: Tensor
    ) -> None:
        super().__init__(net, transform, config, task, N, only=[last_layer(net, example)])
        assert isinstance(self.evidence, Evidence)  # make_evidence refuses the bound with `only`
        bayesian = {p for block in self.evidence.laplace.structure.blocks for p in block.parameters}
        others = [p for p in net.parameters() if p.requires_grad and p not in bayesian]
        for group in self.weights.param_groups:
            group["params"] = [p for p in group["params"] if p in bayesian]
        self.weights.add_param_group({"params": others, "weight_decay": config.weight_decay})
        self.cosines[0] = Cosine(self.weights, config.rate_end)
