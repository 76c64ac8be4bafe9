"""A trained model as one safetensors file, with what is needed to build it again in the file's header."""

import json
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import nn

from augury.core.errors import InputError, RunError
from augury.core.rng import generator
from augury.models.networks import NETWORKS
from augury.models.networks import build as build_net
from augury.models.orbit import OrbitAverage
from augury.models.shallow import Shallow, ShallowOrbit
from augury.models.weight_tied import exact_group, tie
from augury.records.results import Record
from augury.training.checkpoint import save_tensors
from augury.training.run_folder import MODEL
from augury.transforms.base import Transform
from augury.transforms.vocabulary import build as build_transform


@dataclass(frozen=True)
class Recipe(Record):
    """How to build a model whose weights are at hand."""

    model: str
    """Name of the network, or "custom"."""
    input_shape: list[int]
    """Shape of one input."""
    n_outputs: int
    """Outputs of the network."""
    kind: str
    """Kind of the data."""
    generators: list[str] | None
    """What the transformation is made of; None for one of the user's own."""
    sampling: str
    """How its noise is drawn."""
    samples: int
    """Views per input in training."""
    samples_eval: int
    """Views per input in evaluation."""
    orbit: bool
    """Whether the model is an orbit average; a plain network otherwise."""
    tied: bool = False
    """Whether the network's first layer is tied over the group that the transformation is."""
    side: str | None = None
    """What the transformation of a shallow network's orbit average acts on; None for any other model."""


def save_model(path: Path, model: nn.Module, recipe: Recipe) -> None:
    """Write a model's state with its recipe."""
    save_tensors(path, model.state_dict(), {"recipe": json.dumps(recipe.to_json())})


def load_model(
    path: Path | str, net: nn.Module | None = None, transform: Transform | None = None
) -> nn.Module:
    """Build a trained model from a run folder or from its `model.safetensors`."""
    file = Path(path) / MODEL if Path(path).is_dir() else Path(path)
    try:
        with safe_open(file, framework="pt") as opened:
            recipe = Recipe.from_json(json.loads((opened.metadata() or {})["recipe"]))
        tensors = load_file(file)
    except FileNotFoundError as error:
        raise InputError(f"no trained model at {file}. Give the folder of a run that has ended.") from error
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise RunError(f"{file} is not a model that Augury saved, or it is damaged ({error}).") from error
    model = _build(recipe, net, transform)
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise InputError(f"the network does not fit the one that was saved: {error}") from error
    return model.eval()


def _build(recipe: Recipe, net: nn.Module | None, transform: Transform | None) -> nn.Module:
    if net is None:
        if recipe.model not in NETWORKS:
            raise InputError(
                "this model was made from a network of your own. Give one like it: load_model(path, net)."
            )
        net = build_net(recipe.model, recipe.input_shape, recipe.n_outputs, generator(0))
    if not (recipe.orbit or recipe.tied):
        return net
    if transform is None:
        if recipe.generators is None:
            raise InputError(
                "this model was made with a transformation of your own. "
                "Give one like it: load_model(path, transform=...)."
            )
        transform = build_transform(recipe.generators, recipe.kind, recipe.input_shape, recipe.sampling)
    if recipe.tied:
        return tie(net, exact_group(transform))
    if recipe.side is not None and isinstance(net, Shallow):
        return ShallowOrbit(net, transform, recipe.samples, recipe.samples_eval, recipe.side)
    return OrbitAverage(net, transform, recipe.samples, recipe.samples_eval)
