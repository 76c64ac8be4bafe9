"""What adapting an extractor to a task left, as plain data: frozen, free of torch, JSON in and out."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from augury.core.errors import InputError
from augury.records import Record

INVARIANT, SENSITIVE = 0.75, 0.25
"""From where an entry of a descriptor is called invariant, and up to where sensitive."""


@dataclass(frozen=True)
class Bound(Record):
    """The terms of Theorem 3.1 (paper C): with probability 1 - failure, the expected loss is at most their sum."""

    total: float
    """risk + complexity + choice; above 1 it says nothing, since the loss is at most 1."""
    risk: float
    """Mean training loss."""
    complexity: float
    """2 X B / sqrt(n)."""
    choice: float
    """3 sqrt(ln(|I| / failure) / (2 n))."""
    X: float
    """Largest norm of a feature vector (a constant 1 among the features)."""
    B: float
    """Norm of the head; for a fine-tuned network, of all that is trained."""
    n: int
    """Training examples."""
    descriptors: int
    """|I|: among how many descriptors was chosen; 1 where none was."""
    failure: float
    """Probability with which the bound may fail (the theorem's delta)."""
    loss: str = "ramp"
    """The loss that is bounded, see `augury.evidence.bound`."""

    @classmethod
    def of(
        cls, risk: float, X: float, B: float, n: int, descriptors: int, failure: float, loss: str = "ramp"
    ) -> "Bound":
        """Return the bound and its terms."""
        if not 0 < failure < 1:
            raise InputError(f"the bound's failure probability must lie between 0 and 1; got {failure}.")
        if descriptors < 1 or n < 1:
            raise InputError(f"the bound needs a descriptor and an example; got {descriptors} and {n}.")
        complexity = 2 * X * B / math.sqrt(n)
        choice = 3 * math.sqrt((math.log(descriptors) - math.log(failure)) / (2 * n))
        return cls(risk + complexity + choice, risk, complexity, choice, X, B, n, descriptors, failure, loss)


@dataclass(frozen=True)
class Trial(Record):
    """A descriptor that was tried."""

    descriptor: dict[str, float]
    """By group."""
    value: float
    """Log evidence, or minus the training loss summed over examples."""


@dataclass(frozen=True)
class Adaptation(Record):
    """What was learned for one task."""

    descriptor: dict[str, float]
    """Every entry in [0, 1] by the name of its group: 1 invariant, 0 sensitive; empty for a plain readout."""
    score: float
    """Accuracy, or R^2: on the test set where there is one, else the held-out estimate."""
    bound: Bound
    """What theory promises."""
    seconds: float
    """From the data to the adapted model, without scoring it."""
    score_name: str = "accuracy"
    """"accuracy" or "R^2"."""
    scored_on: str = "test"
    """"test" or "held out"."""
    held_out: float | None = None
    """The same score estimated from the training examples: each predicted by a head that has not seen it."""
    train_score: float | None = None
    """The same score on the training examples themselves."""
    words: str = ""
    """The descriptor as a sentence."""
    task: str = "classification"
    """"classification" or "regression"."""
    criterion: str = "evidence"
    """What chose the descriptor: "evidence", "loss" or "given"."""
    levels: int | None = None
    """Into how many levels each entry was discretised; None for continuous."""
    log_evidence: float | None = None
    """Of the head, at the descriptor, on all training examples."""
    train_loss: float | None = None
    """Mean cross-entropy, or mean squared error of standardised targets, on the training examples."""
    delta: float | None = None
    """Prior precision of the head that was learned."""
    trials: tuple[Trial, ...] = ()
    """Descriptors that were tried, in order."""
    N: int = 0
    """Training examples."""
    features: int = 0
    """Numbers that the head sees of each input."""
    data: str = ""
    """Where the data came from."""
    extractor: str = ""
    """Where the extractor came from."""
    run: str | None = None
    """The run folder, where there is one."""

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Adaptation":
        """Rebuild the record and all that it holds.

        Parameters
        ----------
        values
            The fields.

        Returns
        -------
        Adaptation
            The record.
        """
        parts = {
            "bound": Bound.from_json(values["bound"]),
            "trials": tuple(Trial.from_json(trial) for trial in values.get("trials", ())),
        }
        return super().from_json({**values, **parts})


def in_words(descriptor: Mapping[str, float]) -> str:
    """Say what a descriptor means."""

    def named(low: float, high: float) -> str:
        return ", ".join(name for name, value in descriptor.items() if low <= value <= high)

    above, below = math.nextafter(SENSITIVE, 1), math.nextafter(INVARIANT, 0)
    parts = {
        "invariant to": named(INVARIANT, 1.0),
        "partly invariant to": named(above, below),
        "sensitive to": named(0.0, SENSITIVE),
    }
    return "; ".join(f"{what} {groups}" for what, groups in parts.items() if groups) or "no descriptor"
