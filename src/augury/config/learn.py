"""The settings of a run: one frozen dataclass, and one table of what differs between methods.

Free of torch, so that the command line can show and check settings at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from augury.config.synonyms import renamed
from augury.core.errors import InputError, choose
from augury.records.results import Record

DEFAULT_METHOD = "lila"
"""The method of `augury learn` when none is named."""

_PAPER_D = {"rate": 8e-4, "rate_end": 8e-4, "batch": 512, "weight_decay": 0.0, "samples": 1, "samples_eval": 1}
"""Paper D: Adam 8e-4 at a constant rate, batches of 512; bare networks, so one view per input."""

_PAPER_B = {
    "model": "rff",
    "samples": 16,
    "samples_eval": 32,
    "sampling": "stratified",
    "epochs": 30,
    "batch": 250,
    "rate": 1e-3,
    "eta_rate": 0.2,
    "evidence_images": 2000,
    "delta": 1.0,
    "choose_from": 1.0,
    "settle_window": 4,
    "settle_evidence": 0.01,
    "checkpoint_seconds": 60.0,
}
"""Paper B's networks, prior and rate for the weights; 32 views, of which training takes half. No epoch is chosen: the
run ends when the widths rest. Its posterior makes checkpoints large, so that they are written once a minute."""

_RECIPE = {"epochs": 0, "rate": 3e-3, "warm_up": 0.3, "clip": 1.0, "standardise": True}
"""Adam with one cycle of the learning rate and a clipped gradient, for digits and photographs alike. With a constant or
falling rate from the start, networks fit what narrow orbits leave before the widths have grown."""

_LILA = {
    **_RECIPE,
    "samples": 1,
    "evidence_samples": 8,
    "sampling": "stratified",
    "evidence_images": 200,
    "eta_steps": 20,
    "eta_images": 20,
    "choose_from": 1.0,
    "finish": 0.5,
    "resting": 10,
}
"""One view per input in training, whose loss bounds that of the average from above (Jensen; paper A, appendix F.1), and
eight in the evidence, stratified: the noise of few views lowers the likelihood and raises the curvature, by more the
wider the orbit. A CNN trained on Fashion-MNIST moved by 2 pixels has its best evidence at 1.2 pixels with 4
independent views, at 2.0 with 4 stratified ones and at 2.3 with 64. With 8 steps on the widths for each of twenty
fits of the curvature, a full rotation of 4,000 digits ended anywhere between 107 and 157 degrees. With 10 images for
each step on the widths one of three sets of 1,000 ended at 101, a local optimum; at a rate of 0.15 none did, but 3 of
7 sets of upright digits had a width called invariant. Rest after ten steps was chosen on digits (seeds 601 to 606) and
CIFAR-10 (62 to 65): without second derivatives from the first on rotations ended near 95 degrees."""

METHOD_DEFAULTS: dict[str, dict[str, Any]] = {
    "data_augmented": _PAPER_D,
    "regularised": _PAPER_D,
    "weight_tied": _PAPER_D,
    "plain": {"samples": 1, "samples_eval": 1, "choose_from": 1.0, "finish": 0.5, **_RECIPE},
    "augmented": {**_RECIPE, "samples": 1},
    "augerino": {**_RECIPE, "samples": 1, "eta_rate": 0.1, "eta_rate_end": 0.005, "sampling": "stratified"},
    "lila": _LILA,
    "last_layer": _LILA,
    "invariant_weights": _PAPER_B,
}
"""Where a method's defaults differ from those of `LearnConfig`."""

OPTIMIZERS = ("adam", "sgd")
EVIDENCES = ("laplace", "ntk", "none")
SIDES = ("auto", "input", "weight")
POSTERIORS = ("natural", "adam", "point")
CLIMBS = 20
"""Steps up the evidence in a run, about. With 16, and 16 steps on the widths in each, two of three sets of 1,000
rotated digits ended near 97 degrees, a local optimum."""
FEW = 300
"""Data up to which the exact curvature in the outputs is worth its cost."""
EVALUATIONS, EVALUATED = 8, 250
"""Default for a run with a folder: how often the test set is scored on the way, and on how many of its inputs."""

SHARED = (
    "model", "weights", "freeze", "generators", "epochs", "batch", "standardise", "optimizer", "rate", "rate_end",
    "warm_up", "finish", "clip", "weight_decay", "device", "seed", "burn_in", "evidence_below", "evidence",
    "evidence_every", "evidence_images", "structure", "output", "positions", "prior", "delta", "delta_rate",
    "delta_steps", "batchnorm", "evaluate_every", "evaluate_images",
)  # fmt: skip
"""Settings that the baseline takes from the method: the same network, trained as long in the same way."""

AT_LEAST_ONE = {"samples", "samples_eval", "steps", "batch", "evidence_images", "eta_images", "posterior_steps"}
"""Every other number must be at least 0."""


def method_name(given: str) -> str:
    """Return the method of this name; hyphens are read as underscores."""
    return choose("method", given.replace("-", "_"), METHOD_DEFAULTS)


@dataclass(frozen=True)
class EvidenceConfig(Record):
    """What the evidence and its optimisers need; `augury.Evidence` and `augury.learn` share these defaults."""

    structure: str = "kron"
    """Structure of the curvature: "kron" (paper A), "diag" or "full"."""
    output: str = "auto"
    """Curvature in the outputs: "ggn" (exact), "mc" (one random column: unbiased for the curvature, not for its
    log-determinant), "label" or "ef"; "auto": "ggn" up to 2 outputs, where it costs the same, or 300 data, else "mc".
    Intervals are always by "ggn"."""
    positions: str = "reduce"
    """Positions of a convolution: "reduce" (cheap) or "expand"."""
    prior: str = "scalar"
    """Prior precision for all ("scalar", paper A on MNIST), each "layer" (the default of `augury.learn` on colour
    images), or each parameter "tensor"."""
    delta: float = 0.1
    """Prior precision at the start; paper A starts at 1 and trains ten times as long."""
    delta_rate: float = 0.0
    """Learning rate of log delta and log sigma^2, Adam; paper A takes 0.05. 0: solved for their maximum."""
    delta_steps: int = 10
    """Adam's steps on them at every step up the evidence; 0 holds them as they are."""
    evidence_images: int = 300
    """Most data behind the factors of one step up the evidence; a sample is scaled up."""
    eta_rate: float = 0.1
    """Learning rate of the widths, Adam; paper A takes 0.05 over ten times as many epochs."""
    eta_steps: int = 8
    """Mini-batch steps on the widths that share the same factors."""
    eta_images: int = 40
    """Data in each of these steps."""
    batchnorm: str = "refuse"
    """BatchNorm couples samples: "refuse" says so and stops, "evaluate" uses running statistics."""

    def __post_init__(self) -> None:
        if not self.delta > 0:
            raise InputError(f"delta must be a positive prior precision; got {self.delta}.")
        for f in fields(self):
            value, smallest = getattr(self, f.name), 1 if f.name in AT_LEAST_ONE else 0
            if f.type is int and (not isinstance(value, int) or isinstance(value, bool)):
                raise InputError(f"{f.name} must be a whole number; got {value!r}.")
            if isinstance(value, int | float) and not value >= smallest:
                why = " One view per input is the smallest orbit." if f.name.startswith("samples") else ""
                raise InputError(f"{f.name} must be at least {smallest}; got {value}.{why}")

    def curvature(self, N: int, C: int | None = None) -> str:
        """Return the curvature in the outputs for N data and C outputs, if their number is known.

        Random columns make gradients in eta noisy: their standard deviation over the gradient was 1.2 at N = 20, 0.4
        at 60, 0.12 at 150, 0.08 at 300 and 0.02 at 1,000 (C = 10, 50 units); the value was 3.8, 2.3, 2.7, 1.1 and 0.6
        nats too high.
        """
        few = N <= FEW or (C is not None and C <= 2)
        return self.output if self.output != "auto" else "ggn" if few else "mc"

    @classmethod
    def of(cls, **given: Any) -> "EvidenceConfig":
        """Return the defaults with what was given in their place."""
        for name in given:
            choose("setting of the evidence", name, {f.name for f in fields(cls)})
        return cls(**given)


@dataclass(frozen=True)
class LearnConfig(EvidenceConfig):
    """Every setting of a run except its data."""

    method: str = DEFAULT_METHOD
    """Which algorithm: a key of `METHOD_DEFAULTS`."""
    model: str | None = None
    """Name of the network, "custom" for the user's own module, or None for the one that suits the data."""
    weights: str = ""
    """Folder of a run (or its model.safetensors) whose network the weights begin as; layers of other shapes, such as a
    head for other classes, begin anew."""
    freeze: str = ""
    """Parameters that stay as they are and are not part of the evidence: the beginnings of their names, separated by
    commas, or "trunk" for all but the last layer."""
    generators: tuple[str, ...] | None = None
    """Which transformations may act; None for what suits the data: all six affine on images
    (paper A), and the mirror on colour images."""
    widths: Mapping[str, float] = field(default_factory=dict)
    """Widths at the start in their units; zero for those not named, as in paper A. `augmented` keeps them."""
    slight: Mapping[str, float] = field(default_factory=dict)
    """Widths in their units below which a transformation counts as none in the verdict; those not named: 0.1 as eta,
    which is 6 degrees, a tenth of the scale, 1.4 pixels of 28; a trained network is "invariant" from 1.5 times that."""
    samples: int = 8
    """S, views per input in training; paper A takes 31 (MNIST) and 20 (CIFAR-10); the cost is linear in S."""
    samples_eval: int = 20
    """Views per input in evaluation."""
    sampling: str = "independent"
    """How the noise is drawn: "independent" (paper A), "stratified", "centred" or "grid"."""
    epochs: int = 30
    """Passes over the training set; 0 for as many as make `steps` steps (the default of lila and plain)."""
    steps: int = 2400
    """Steps on the weights, if `epochs` is 0."""
    batch: int = 100
    """Inputs in a mini-batch."""
    standardise: bool = False
    """Whether networks that are chosen by name begin by standardising each channel of images and signals."""
    optimizer: str = "adam"
    """For the weights: "adam" (paper A on MNIST) or "sgd" with momentum 0.9 (paper A on CIFAR-10)."""
    rate: float = 0.005
    """Learning rate of the weights at the start: paper A's for Adam."""
    rate_end: float = 1e-6
    """Learning rate of the weights at the end of its cosine schedule (paper A)."""
    warm_up: float = 0.0
    """Share of the training in which the learning rate of the weights rises, before it falls by a cosine."""
    finish: float = 0.0
    """Share of a classifier's training, at its end, in which widths and prior rest where the evidence has put them and
    the weights are trained on under a tenth of the prior: the precision of the best evidence underfits wide orbits."""
    clip: float = 0.0
    """Largest norm of the weights' gradient; 0 for any."""
    weight_decay: float = 1e-4
    """L2 penalty on the weights: Augerino's, kept by paper A for its baseline."""
    eta_rate_end: float = 0.02
    """Learning rate of the widths at the end of its cosine schedule: high enough to come back from too wide."""
    eta_reward: float = 0.01
    """Augerino: how much of the norm of eta is subtracted from the loss (paper A, section 5)."""
    burn_in: int = 2
    """Epochs before the first step up the evidence; paper A takes 10 of 1,000."""
    evidence_below: float = 0.75
    """A classifier's first step up the evidence waits until its training loss is below this share of a guess's:
    before that widths would follow weights that know nothing, and run away."""
    evidence_every: int = 0
    """Epochs between two steps up the evidence; 0 for about twenty in a run."""
    resting: int = 0
    """Steps up the evidence after which widths that no longer drift are taken to rest: then half as many, without
    second derivatives, which are mostly noise by then; 0 for never, as above 20."""
    evidence_samples: int = 0
    """Views per input in the evidence; 0 for as many as in training."""
    evidence: str = "laplace"
    """What chooses widths: "laplace", or "ntk" for any network; "none" leaves `plain` with a weight decay."""
    nu: float = 0.0
    """Invariance regularisation: weight of the logit error; 0 lets it follow SI until that is `si_target`."""
    si_target: float = 0.95
    """Saliency similarity that an automatic nu aims at (paper D)."""
    side: str = "auto"
    """Invariant weights: what is transformed, the "input", the first layer's "weight", or the cheaper one."""
    posterior: str = "natural"
    """Invariant weights: how the output layer is learned: "natural" gradients or "adam" (paper B) up the bound, or
    "point": maximum likelihood."""
    posterior_steps: int = 2
    """Natural-gradient steps of the posterior after each epoch, at most."""
    choose_from: float = 0.0
    """The share of the epochs that must be done before one may be chosen by its evidence; 1 keeps the last.
    Laplace's evidence is about a mode: weights that have just begun to learn can look better than they are."""
    settle_window: int = 0
    """Stop early when nothing has drifted over so many epochs; 0 trains to the end."""
    settle_eta: float = 0.02
    """The largest drift of a width that counts as rest, as eta: 0.02 of a rotation is about one degree."""
    settle_evidence: float = 0.005
    """The same for the log evidence per example, in nats."""
    evaluate_every: int = 0
    """Score the test set after every so many epochs; 0 only at the end. It never steers the training."""
    evaluate_images: int = 0
    """Test inputs for the scores on the way; 0 for all. The score at the end takes all."""
    checkpoint_seconds: float = 10.0
    """Write a checkpoint after the first epoch that ends so long after the last one; 0 after every epoch."""
    device: str = "cpu"
    """Where to train, as torch names it: "cpu", "cuda", "cuda:1", "mps"."""
    seed: int = 0
    """Everything random follows from it."""

    def __post_init__(self) -> None:
        choose("method", self.method, METHOD_DEFAULTS)
        choose("optimizer", self.optimizer, OPTIMIZERS)
        choose("evidence", self.evidence, EVIDENCES)
        choose("side", self.side, SIDES)
        choose("posterior", self.posterior, POSTERIORS)
        if not self.finish < 1:
            raise InputError(f"finish must be a share of the training below 1; got {self.finish}.")
        super().__post_init__()

    def to_json(self) -> dict[str, Any]:
        """Return the settings: those of the run first, then those of the evidence."""
        values = super().to_json()
        return {name: values[name] for name in [*LearnConfig.__annotations__, *values]}

    def for_evidence(self) -> dict[str, Any]:
        """Return the settings that `augury.Evidence` takes."""
        return {f.name: getattr(self, f.name) for f in fields(EvidenceConfig)}

    def with_epochs(self, N: int) -> "LearnConfig":
        """Return these settings with the number of epochs filled in."""
        return self if self.epochs else replace(self, epochs=-(-self.steps // -(-N // self.batch)))

    @property
    def learning(self) -> int:
        """Epochs until widths and prior rest."""
        return self.epochs if self.evidence == "none" else self.epochs - int(self.finish * self.epochs)

    def may_rest(self, taken: int) -> bool:
        """Return whether widths may rest after so many steps up the evidence."""
        return 0 < self.resting <= taken

    def climbs(self, epoch: int, resting: bool = False) -> int:
        """Return how many steps up the evidence are due after this epoch; at least one after the last of learning."""
        most = CLIMBS // 2 if resting else CLIMBS
        every = self.evidence_every or max(1, self.learning // most)
        times = 1 if self.evidence_every else max(1, most // max(1, self.learning - self.burn_in))
        beyond = epoch - self.burn_in
        due = epoch == self.learning or (self.learning > epoch and beyond > 0 and beyond % every == 0)
        return times if due else 0

    def scored_on_the_way(self) -> "LearnConfig":
        """Return these settings with the test set scored a few times before the end: a few per cent of the time."""
        every, images = -(-self.epochs // EVALUATIONS), self.evaluate_images or EVALUATED
        return replace(self, evaluate_every=every, evaluate_images=images)

    def shared(self) -> dict[str, Any]:
        """Return the settings that the baseline takes, without those that are still open."""
        values = {name: getattr(self, name) for name in SHARED}
        return {name: value for name, value in values.items() if value is not None}

    @classmethod
    def for_method(cls, method: str, **given: Any) -> "LearnConfig":
        """Return the defaults of the method and of the network, with what was given in their place."""
        method, given = method_name(method), renamed(given)
        for name in given:
            choose("setting", name, {f.name for f in fields(cls)})
        return cls(**{**METHOD_DEFAULTS[method], **given, "method": method})

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "LearnConfig":
        """Rebuild the settings from what `to_json` gave."""
        names = values.get("generators")
        return super().from_json({**values, "generators": None if names is None else tuple(names)})
