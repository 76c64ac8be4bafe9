"""From the settings of a run to its evidence."""

from collections.abc import Sequence

from augury.core.errors import InputError
from augury.evidence.ascent import Evidence
from augury.evidence.ascent_ntk import NtkEvidence
from augury.models.orbit import OrbitAverage
from augury.training.config import LearnConfig

AnyEvidence = Evidence | NtkEvidence


def make_evidence(
    model: OrbitAverage, config: LearnConfig, task: str, N: int, only: Sequence[str] | None = None
) -> AnyEvidence:
    """Return the evidence that the settings describe."""
    if config.evidence == "ntk":
        if only is not None:
            raise InputError(
                "evidence='ntk' has no last-layer form; take evidence='laplace' with this method."
            )
        return NtkEvidence(
            model,
            N,
            task,
            delta=config.delta,
            eta_rate=config.eta_rate,
            eta_steps=config.eta_steps,
            eta_images=config.eta_images,
            samples=config.evidence_samples or None,
            batchnorm=config.batchnorm,
        )
    return Evidence(
        model,
        N,
        task,
        structure=config.structure,
        output=config.output,
        prior=config.prior,
        positions=config.positions,
        only=only,
        delta=config.delta,
        delta_rate=config.delta_rate,
        delta_steps=config.delta_steps,
        eta_rate=config.eta_rate,
        eta_steps=config.eta_steps,
        images=config.evidence_images,
        eta_images=config.eta_images,
        samples=config.evidence_samples or None,
        batchnorm=config.batchnorm,
    )
