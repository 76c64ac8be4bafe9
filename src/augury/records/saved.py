"""The header of a saved model: how to build it and what data it takes. Read without torch.

A saved model is one safetensors file. Its metadata holds this record as JSON under "augury", and under "sha256" a
checksum of the record and of every tensor with its name. Files of version 0.1 (three other records) are read as well.
"""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from augury import __version__
from augury.core.errors import InputError, RunError
from augury.records.record import Count, NotNegative, OneOf, Positive, Record, loads

KINDS = ("network", "orbit", "shallow_orbit", "tied", "extractor", "adapted")
"""A bare network, an orbit average, that of a shallow network, a first layer tied over a group, a hyper-extractor, an
encoder with a linear head."""
CUSTOM = "custom"  # name of a user's own network
AXES = {"image": 3, "signal": 2, "points": 2, "coordinates": 1, "features": None}
"""Axes of one input, by the kind of the data; features may have any number."""
LARGEST = 2**28  # numbers in one input
RECORD, CHECKSUM = "augury", "sha256"  # keys of the metadata
NORMALISATION = {"image": "bytes / 255"}
"""What is done to the raw inputs of a kind of data before the model; nothing for all others."""


@dataclass(frozen=True)
class Pretraining(Record):
    """What is known of an extractor's pre-training."""

    method: str = ""  # how
    data: str = ""  # on what
    images: Count = 0  # on how many images
    epochs: Count = 0  # how often it saw them
    loss: float | None = None  # the last epoch's mean loss
    seconds: NotNegative = 0.0  # how long it took
    transformations: dict[str, str] = field(default_factory=dict)  # what each group means: operations joined by "+"
    invariance: dict[str, dict[str, float]] = field(default_factory=dict)
    """Measured invariance to each group: see `augury.methods.hyper.measured.summarise`."""


@dataclass(frozen=True)
class SavedModel(Record):
    """How to build a model whose weights are at hand, and what data it takes."""

    kind: Annotated[str, OneOf(KINDS)]  # one of `KINDS`
    network: str  # name of the network or encoder, or "custom"
    input_shape: list[Positive]  # shape of one input
    n_outputs: Positive  # logits or numbers; features of an extractor
    data_kind: Annotated[str, OneOf(tuple(AXES))] = "image"  # kind of the data, as in `Dataset`
    task: Annotated[str, OneOf(("classification", "regression", ""))] = ""  # what the outputs are; "" if unknown
    class_names: tuple[str, ...] = ()  # a name for each logit
    normalisation: str = ""  # what is done to raw inputs: "bytes / 255" for images
    target_mean: tuple[float, ...] = ()
    """Mean of the targets that the network was trained on, standardised; outputs are in units all the same."""
    target_scale: tuple[float, ...] = ()  # their standard deviation; empty where nothing was standardised
    generators: list[str] | None = None
    """What the transformation is made of; None for one of the user's own, or for none."""
    sampling: str = "independent"  # how its noise is drawn
    samples: Positive = 1  # views per input in training
    samples_eval: Positive = 1  # views per input in evaluation
    side: str = "auto"  # what the transformation of a shallow network acts on
    features: Count = 0  # numbers that the head of an adapted model sees
    groups: tuple[str, ...] = ()  # invariance groups of an extractor, in the order of the descriptor
    d_h: Count = 0  # hidden units of its generator of weights
    activation: str = "tanh"  # of these units
    pretraining: Pretraining | None = None  # where an extractor came from
    version: str = __version__  # version of Augury that wrote it

    def check(self) -> None:
        """Raise unless there can be such inputs, and the sizes that this kind of model needs are given."""
        check_shape(self.data_kind, self.input_shape)
        if {"adapted": self.features, "extractor": self.d_h}.get(self.kind) == 0:
            raise InputError("an adapted model needs its number of features, an extractor its d_h.")
        if {len(self.target_mean), len(self.target_scale)} not in ({0}, {self.n_outputs}):
            raise InputError("a model has a mean and a scale for each of its outputs, or none.")


def check_shape(kind: str, shape: list[int]) -> None:
    """Raise unless an input of a kind can have a shape."""
    if AXES[kind] not in (None, len(shape)) or math.prod(shape) > LARGEST:
        raise InputError(f"an input of kind '{kind}' cannot have the shape {shape}.")


def read_saved(file: Path) -> SavedModel:
    """Read the header of a model's file, not its tensors."""
    try:
        with file.open("rb") as opened:
            header = loads(opened.read(min(int.from_bytes(opened.read(8), "little"), 100_000_000)).decode())
        return saved_of(header["__metadata__"])[0]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise not_ours(file, error) from error


def not_ours(file: Path, error: Exception) -> RunError:
    """Return the error for a file that holds no model of Augury's."""
    why = str(error).rstrip(".")
    return RunError(f"{file} is not a model that Augury saved, or it is damaged or cut short ({why}).")


def is_ours(metadata: Any) -> bool:
    """Say whether a file's metadata hold a record of ours."""
    return any(key in metadata for key in (RECORD, *FROM_0_1))


def saved_of(metadata: Any) -> tuple[SavedModel, str]:
    """Return the record in a file's metadata, and its text."""
    for key, make in ((RECORD, SavedModel.from_json), *FROM_0_1.items()):
        if key in metadata:
            return make(loads(metadata[key])), metadata[key]
    raise InputError("its header does not say how to build it.")


def _recipe(old: dict[str, Any]) -> SavedModel:
    """Read what `learn` of version 0.1 wrote."""
    shared = ("input_shape", "n_outputs", "generators", "sampling", "samples", "samples_eval")
    orbit = ("orbit" if old.get("side") is None else "shallow_orbit") if old["orbit"] else "network"
    return SavedModel.from_json({
        **{name: old[name] for name in shared},
        "kind": "tied" if old.get("tied") else orbit,
        "network": old["model"],
        "data_kind": old["kind"],
        "side": old.get("side") or "auto",
        "version": "0.1",
    })


def _card(old: dict[str, Any]) -> SavedModel:
    """Read what `amortize` of version 0.1 wrote."""
    shared = ("groups", "input_shape", "d_h", "activation", "version")
    facts = ("transformations", "method", "data", "images", "epochs", "loss", "seconds", "invariance")
    return SavedModel.from_json({
        **{name: old[name] for name in shared},
        "kind": "extractor",
        "network": old["encoder"],
        "n_outputs": old["features"],
        "pretraining": {name: old[name] for name in facts},
    })


def _plan(old: dict[str, Any]) -> SavedModel:
    """Read what `adapt` of version 0.1 wrote."""
    shared = ("input_shape", "n_outputs", "features")
    own = {"kind": "adapted", "network": old["encoder"], "version": "0.1"}
    return SavedModel.from_json({**{name: old[name] for name in shared}, **own})


FROM_0_1 = {"recipe": _recipe, "card": _card, "plan": _plan}  # readers of the headers of version 0.1, by their key
