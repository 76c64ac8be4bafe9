"""Every setting that a cell does not name, written out: the library's defaults may move, what a cell means may not.

A cell says what distinguishes it; the rest of its run is in these tables, all of it (`tests/test_papers_recipes.py`),
so that no default of the library acts in a run of a paper. Free of torch.
"""

from typing import Any

from papers.results import Cell

Settings = dict[str, Any]

EVERY: Settings = {
    **{"weights": "", "freeze": "", "widths": {}, "slight": {}},
    **{"samples": 8, "samples_eval": 20, "sampling": "independent", "standardise": False},
    **{"epochs": 30, "steps": 2400, "batch": 100, "optimizer": "adam", "rate": 0.005, "rate_end": 1e-6},
    **{"warm_up": 0.0, "finish": 0.0, "clip": 0.0, "weight_decay": 1e-4},
    **{"eta_rate": 0.1, "eta_rate_end": 0.02, "eta_steps": 8, "eta_images": 64, "eta_reward": 0.01},
    **{"burn_in": 2, "evidence_below": 9.0, "evidence_every": 0, "evidence_samples": 0, "evidence_images": 500},
    **{"resting": 0},
    **{"evidence": "laplace", "structure": "kron", "output": "mc", "positions": "reduce", "batchnorm": "refuse"},
    **{"prior": "scalar", "delta": 0.1, "delta_rate": 0.05, "delta_steps": 10},
    **{"nu": 0.0, "si_target": 0.95, "side": "auto", "posterior": "natural", "posterior_steps": 2},
    **{"choose_from": 0.0, "settle_window": 0, "settle_eta": 0.02, "settle_evidence": 0.005},
    **{"evaluate_every": 0, "evaluate_images": 0, "checkpoint_seconds": 10.0},
}
"""The defaults of version 0.1, and of later settings what changes nothing in it: all fields of `LearnConfig` but the
transformations and what `learn` is given by name."""

_PAPER_D = {"rate": 8e-4, "rate_end": 8e-4, "batch": 512, "weight_decay": 0.0, "samples": 1, "samples_eval": 1}
EPOCHS: dict[str, Settings] = {
    "lila": {"choose_from": 0.8},
    "plain": {"samples": 1, "samples_eval": 1, "choose_from": 1.0},
    "augmented": {},
    "augerino": {"epochs": 15, "eta_rate_end": 0.005, "sampling": "stratified"},
    "invariant_weights": {
        **{"samples": 16, "samples_eval": 32, "sampling": "stratified", "batch": 250, "rate": 1e-3, "eta_rate": 0.2},
        **{"evidence_images": 2000, "delta": 1.0, "choose_from": 1.0, "settle_window": 4, "settle_evidence": 0.01},
        **{"checkpoint_seconds": 60.0},
    },
    **dict.fromkeys(("data_augmented", "regularised", "weight_tied"), _PAPER_D),
}
"""Of cells that name epochs: what each method has in place of it."""

_CYCLE = {"epochs": 0, "rate": 3e-3, "warm_up": 0.3, "clip": 1.0, "standardise": True, "samples": 1}
_BY_EVIDENCE = {**_CYCLE, "delta_rate": 0.0, "evidence_below": 0.75, "choose_from": 1.0, "finish": 0.5}
STEPS: dict[str, Settings] = {
    "lila": {
        **{**_BY_EVIDENCE, "sampling": "stratified", "evidence_samples": 8, "evidence_images": 200},
        **{"eta_steps": 20, "eta_images": 20},
    },
    "plain": {**_BY_EVIDENCE, "samples_eval": 1, "evidence_images": 300},
    "augerino": {**_CYCLE, "sampling": "stratified", "eta_rate_end": 0.005},
}
"""Of cells that name steps: the library's recipe of November 2026, one cycle of the rate and one view per step, the
second half of the steps for the weights alone."""


def complete(cell: Cell) -> Settings:
    """Return every setting of a cell that `learn` runs, but the transformations."""
    recipes = STEPS if "steps" in cell.settings else EPOCHS
    return {**EVERY, **recipes[cell.algorithm], **cell.settings}


_PRETRAINING: Settings = {
    **{"d_h": 0, "activation": "tanh", "epochs": 50, "batch": 128, "rate_end": 0.0, "temperature": 0.5},
    **{"projection": 128, "per_step": 3, "centred": False, "shared": False, "checkpoint_seconds": 30.0},
}
AMORTIZE: dict[str, Settings] = {
    "contrastive": {**_PRETRAINING, "encoder": "resnet10_16", "rate": 1e-3, "weight_decay": 1e-4, "invariance": 0.0},
    "multitask": {
        **{**_PRETRAINING, "encoder": "conv16", "rate": 3e-3, "weight_decay": 0.0, "invariance": 1.0},
        **{"epochs": 15},
    },
}
"""Of paper C's pre-training: all fields of `AmortizeConfig` but method, device and seed."""
ADAPT: Settings = {
    **{"criterion": "evidence", "levels": None, "images": 1000, "scouts": 400, "climbs": 2, "steps": 12, "rate": 0.3},
    **{"ridge": 0.01, "tolerance": 0.01, "folds": 0, "failure": 0.05, "seed": 0},
}
"""Of its downstream tasks: all fields of `AdaptConfig` but the device."""
