"""Other words for our settings: those of PyTorch, scikit-learn and Lightning, and those of version 0.1."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

from augury.core.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])

SYNONYMS = {
    "lr": "rate",
    "learning_rate": "rate",
    "batch_size": "batch",
    "n_samples": "samples",
    "num_samples": "samples",
    "eval_samples": "samples_eval",
    "n_epochs": "epochs",
    "num_epochs": "epochs",
    "max_epochs": "epochs",
    "max_iter": "epochs",
    "random_state": "seed",
    "random_seed": "seed",
    "optim": "optimizer",
    "prior_precision": "delta",
    "images": "evidence_images",  # Evidence in 0.1
    "S_train": "samples",  # OrbitAverage in 0.1
    "S_eval": "samples_eval",
}


def renamed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings under our names; two names for one setting are an error."""
    given: dict[str, str] = {}
    for name in settings:
        ours = SYNONYMS.get(name, name)
        if ours in given:
            raise InputError(f"{given[ours]} and {name} are one setting; give {ours} alone.")
        given[ours] = name
    return {ours: settings[name] for ours, name in given.items()}


def synonyms(function: F) -> F:
    """Let a function take its keywords under their other names too."""

    @wraps(function)
    def call(*args: Any, **settings: Any) -> Any:
        return function(*args, **renamed(settings))

    return call  # type: ignore[return-value]
