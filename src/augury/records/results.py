"""What `learn`, `audit` and `adapt` found, as plain data: frozen, free of torch, JSON in and out."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from augury.core.errors import InputError
from augury.records.record import Count, Name, NotNegative, OneOf, Positive, Range, Record, Share

VERDICTS = ("invariant", "not invariant", "undecided", "given")
"""Verdicts on a width. "invariant": most inputs (not all) keep their labels up to `low`; "given": fixed by the user."""


AUDIT_VERDICTS = ("genuine", "only on the training distribution", "sensitive", "trivially invariant")
"""Verdicts of an audit; trivially invariant is a model with constant output."""


@dataclass(frozen=True)
class Width(Record):
    """One learned width in its unit."""

    value: float
    """The width in its unit."""
    unit: Name
    """"deg", "px", "factor", or "" for a plain number."""
    low: float | None = None
    """Lower end of a 95 % interval, if the method gives one."""
    high: float | None = None
    """Upper end."""
    verdict: Annotated[str, OneOf(VERDICTS)] = "undecided"
    """One of `VERDICTS`."""
    planted: float | None = None
    """The true width, if the data set has a planted one."""

    def check(self) -> None:
        """Raise unless factors are positive and the interval has its ends in order."""
        there = [v for v in (self.value, self.low, self.high, self.planted) if v is not None]
        if self.unit == "factor" and min(there) <= 0:
            raise InputError(f"a factor must be positive; got {min(there)}.")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise InputError(f"an interval must not end before it begins; got {self.low} to {self.high}.")


@dataclass(frozen=True)
class Invariance(Record):
    """What one run learned."""

    widths: dict[str, Width]
    """Every width by the name of its generator."""
    method: str
    """The method that learned it."""
    model: str
    """The network's name."""
    data: str
    """Where the data came from."""
    test_accuracy: Share | None = None
    """On the test set; None for regression or without a test set."""
    test_error: NotNegative | None = None
    """Root mean squared error on the test set, for regression."""
    log_evidence: float | None = None
    """Log marginal likelihood (or the bound that was maximised), summed over the training set."""
    log_evidence_without: float | None = None
    """That of the same network trained without any invariance, the baseline; None if it was not trained."""
    seconds: NotNegative = 0.0
    """Training time."""
    run: str | None = None
    """The run folder, if any."""
    notes: tuple[str, ...] = ()
    """Remarks, such as a target that was not reached."""


@dataclass(frozen=True)
class Measure(Record):
    """A mean over inputs."""

    value: float
    stderr: NotNegative | None = None  # its standard error over inputs; None for a single input


@dataclass(frozen=True)
class Scores(Record):
    """Paper D's measures of invariance on one set of inputs."""

    LI: Measure  # logit invariance error: squared distance between the logits of an input and of its view
    LI_relative: float | None = None
    """LI over the mean squared distance between the logits of two inputs: 1 is as far as another input."""
    DI: Measure | None = None  # KL divergence between predictive distributions, in nats; None for regression
    SI: Measure | None = None  # cosine between saliency maps in one frame; None for a model without gradients
    agreement: Measure | None = None  # share of views that get their input's prediction; None for regression
    images: Count = 0  # how many inputs


@dataclass(frozen=True)
class Point(Record):
    """The measures at one strength of the transformation."""

    strength: float  # strength of the transformation
    unit: str  # "deg", "px", ..., or "%" of the widths if there are several
    scores: Scores
    noise_floor: Scores  # the noise floor at this strength


@dataclass(frozen=True)
class Worst(Record):
    """An input on which the model is least invariant."""

    index: Count  # its index in the audited set
    label: str | None  # its class, if known
    prediction: str  # the model's prediction
    prediction_moved: str  # its prediction for the worst view
    strength: float  # how strong that view is
    LI: float  # logit invariance error of that view
    SI: float | None  # saliency similarity of that view


@dataclass(frozen=True)
class Audit(Record):
    """The result of an audit."""

    group: str
    """The audited transformation."""
    LI: Measure
    """As in `Scores`."""
    LI_relative: float | None
    """As in `Scores`."""
    DI: Measure | None
    """As in `Scores`."""
    SI: Measure | None
    """As in `Scores`."""
    agreement: Measure | None
    """As in `Scores`."""
    noise_floor: Scores
    """The same measures for inputs that are transformed and transformed back."""
    sigma_max_jacobian: float | None
    """Largest singular value of the Jacobian of the logits in the input, mean over inputs; None if not available."""
    verdict: Annotated[str, OneOf(AUDIT_VERDICTS)]
    """One of `AUDIT_VERDICTS`."""
    images: Count
    """How many inputs were audited."""
    why: str = ""
    """The figures behind the verdict, in a sentence."""
    advice: str = ""
    """What to do about it."""
    sigma_max_relative: float | None = None
    """`sigma_max_jacobian` over the root mean squared distance of the logits from their mean."""
    sigma_max_weights: dict[str, NotNegative] = field(default_factory=dict)
    """Largest singular value of every weight matrix, if the model is a module."""
    accuracy: Share | None = None
    """On the audited inputs, if they have labels for the model's outputs."""
    accuracy_moved: Share | None = None
    """On their views."""
    curve: tuple[Point, ...] = ()
    """The measures by strength, weakest first."""
    per_class: dict[str, Scores] = field(default_factory=dict)
    """The measures by class: the label, or the prediction if there are no labels."""
    drift: dict[str, Scores] = field(default_factory=dict)
    """The measures on other data: a second set, corrupted copies."""
    worst: tuple[Worst, ...] = ()
    """The least invariant inputs, worst first."""
    saliency: str = "gradient"
    """How saliency maps were made."""
    model: str = ""
    """What was audited."""
    data: str = ""
    """On which inputs."""
    seconds: NotNegative = 0.0
    """How long it took."""

    @property
    def scores(self) -> Scores:
        """The measures on the audited inputs."""
        return Scores(self.LI, self.LI_relative, self.DI, self.SI, self.agreement, self.images)


INVARIANT, SENSITIVE = 0.75, 0.25  # entries of a descriptor from here on are called invariant, and up to here sensitive


@dataclass(frozen=True)
class Bound(Record):
    """The terms of Theorem 3.1 (paper C): with probability 1 - failure, the expected loss is at most their sum."""

    total: float  # risk + complexity + choice; above 1 it is vacuous, since the loss is at most 1
    risk: float  # mean training loss
    complexity: float  # 2 X B / sqrt(n)
    choice: float  # 3 sqrt(ln(|I| / failure) / (2 n))
    X: float  # largest norm of a feature vector (a constant 1 among the features)
    B: float  # norm of the head
    n: Positive
    descriptors: Positive  # |I|: number of descriptors to choose from; 1 if it was given
    failure: Share  # probability with which the bound may fail (the theorem's delta)
    loss: str = "ramp"  # the loss that is bounded, see `augury.methods.hyper.scores`

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
    """A trial of a descriptor."""

    descriptor: dict[str, Share]  # by group
    value: float  # log evidence, or minus the training loss summed over examples


@dataclass(frozen=True)
class Adaptation(Record):
    """What was learned for one task."""

    descriptor: dict[str, Share]
    """Every entry in [0, 1] by the name of its group: 1 invariant, 0 sensitive; empty for a plain readout."""
    score: float
    """Accuracy, or R^2: on the test set if there is one, else the held-out estimate."""
    bound: Bound
    """The generalisation bound."""
    seconds: NotNegative
    """Time from the data to the adapted model, without scoring."""
    score_name: Annotated[str, OneOf(("accuracy", "R^2"))] = "accuracy"
    """"accuracy" or "R^2"."""
    scored_on: Annotated[str, OneOf(("test", "held out", "training"))] = "test"
    """"test", "held out" or "training"."""
    held_out: float | None = None
    """The same score estimated from the training examples: each predicted by a head that has not seen it."""
    train_score: float | None = None
    """The same score on the training examples themselves."""
    words: str = ""
    """The descriptor as a sentence."""
    margins: dict[str, float] = field(default_factory=dict)
    """By how many nats the evidence prefers each entry to the opposite; empty if it did not choose."""
    task: Annotated[str, OneOf(("classification", "regression"))] = "classification"
    """"classification" or "regression"."""
    criterion: Annotated[str, OneOf(("evidence", "loss", "given"))] = "evidence"
    """What chose the descriptor: "evidence", "loss" or "given"."""
    levels: Annotated[int, Range(2)] | None = None
    """Into how many levels each entry was discretised; None for continuous."""
    log_evidence: float | None = None
    """Of the head, at the descriptor, on all training examples."""
    train_loss: float | None = None
    """Mean cross-entropy, or mean squared error of standardised targets, on the training examples."""
    delta: NotNegative | None = None
    """Prior precision of the head that was learned."""
    trials: tuple[Trial, ...] = ()
    """Descriptors that were tried, in order."""
    N: Count = 0
    """Training examples."""
    features: Count = 0
    """Features per input."""
    data: str = ""
    """Where the data came from."""
    extractor: str = ""
    """Where the extractor came from."""
    run: str | None = None
    """The run folder, if any."""


DECIDED = 7.7
"""Nats from which the evidence decides an entry: over data sets a difference of d has the standard deviation
sqrt(2 d), and this is 1.96 of them."""


def entry_verdict(value: float, margin: float = math.inf) -> str:
    """Return one of `ENTRY_WORDS`."""
    if margin < DECIDED:
        return "undecided"
    return "invariant" if value >= INVARIANT else "sensitive" if value <= SENSITIVE else "in between"


ENTRY_WORDS = {
    "invariant": "invariant to",
    "in between": "partly invariant to",
    "sensitive": "sensitive to",
    "undecided": "undecided about",
}


def in_words(descriptor: Mapping[str, float], margins: Mapping[str, float] | None = None) -> str:
    """Describe a descriptor in words."""
    found: dict[str, list[str]] = {verdict: [] for verdict in ENTRY_WORDS}
    for name, value in descriptor.items():
        found[entry_verdict(value, (margins or {}).get(name, math.inf))].append(name)
    parts = [f"{ENTRY_WORDS[verdict]} {', '.join(names)}" for verdict, names in found.items() if names]
    return "; ".join(parts) or "no descriptor"
