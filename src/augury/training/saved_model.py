"""A trained model as one safetensors file: `save_model` writes it, `load_model` builds it again.

The header is the record `augury.records.saved.SavedModel` and a checksum of the record and of all tensors. The file is
written atomically; a modified or incomplete file is refused; nothing is unpickled.
"""

from pathlib import Path

from safetensors import SafetensorError
from torch import Tensor, nn

from augury.config.learn import LearnConfig
from augury.core.errors import InputError, RunError
from augury.core.rng import generator
from augury.data.dataset import Dataset
from augury.models.hypernetwork import HyperExtractor
from augury.models.layers import bare
from augury.models.networks import ENCODERS, NETWORKS, build_encoder
from augury.models.networks import build as build_net
from augury.models.orbit import OrbitAverage
from augury.models.own import LogitsOf
from augury.models.shallow import Shallow, ShallowOrbit
from augury.models.standardised import Standardised
from augury.models.units import InUnits, in_units
from augury.models.weight_tied import WeightTied, exact_group, tie
from augury.records.saved import CHECKSUM, CUSTOM, NORMALISATION, RECORD, SavedModel, not_ours, saved_of
from augury.training.checkpoint import digest, load_tensors, save_tensors
from augury.training.run_folder import model_file
from augury.transforms.base import Transform
from augury.transforms.vocabulary import build as build_transform


def describe_learned(model: nn.Module, data: Dataset, config: LearnConfig) -> SavedModel:
    """Return the record of a model that `learn` trained."""
    orbit = "shallow_orbit" if isinstance(model, ShallowOrbit) else "orbit"
    inner = model.net if isinstance(model, InUnits) else model
    bare = "tied" if isinstance(inner, WeightTied) else "network"
    return SavedModel(
        kind=orbit if isinstance(model, OrbitAverage) else bare,
        network=config.model or CUSTOM,
        n_outputs=data.n_outputs,
        generators=None if config.generators is None else list(config.generators),
        sampling=config.sampling,
        samples=config.samples,
        samples_eval=config.samples_eval,
        side=model.side if isinstance(model, ShallowOrbit) else "auto",
        target_mean=data.target_mean,
        target_scale=data.target_scale,
        **_takes(data),  # type: ignore[arg-type]
    )


def describe_adapted(extractor: HyperExtractor, data: Dataset) -> SavedModel:
    """Return the record of a model that `adapt` made: the extractor's encoder and a linear head."""
    own = {"n_outputs": data.n_outputs, "features": extractor.features}
    return SavedModel("adapted", extractor.encoder_name, **own, **_takes(data))  # type: ignore[arg-type]


def describe_extractor(extractor: HyperExtractor) -> SavedModel:
    return SavedModel(
        kind="extractor",
        network=extractor.encoder_name,
        input_shape=list(extractor.input_shape),
        n_outputs=extractor.features,
        normalisation=NORMALISATION["image"],
        groups=extractor.groups,
        d_h=extractor.d_h,
        activation=extractor.weights.activation,
    )


def _takes(data: Dataset) -> dict[str, object]:
    return {
        "input_shape": list(data.input_shape),
        "data_kind": data.kind,
        "task": data.task,
        "class_names": data.class_names,
        "normalisation": NORMALISATION.get(data.kind, ""),
    }


def save_model(path: Path, model: nn.Module, saved: SavedModel) -> None:
    """Write a model, whole or not at all."""
    text, tensors = saved.dumps(), model.state_dict()
    save_tensors(path, tensors, {RECORD: text, CHECKSUM: digest(text, tensors)})


def load_model(path: Path | str, net: nn.Module | None = None, transform: Transform | None = None) -> nn.Module:
    """Load the model of a run of `learn`, `adapt` or `amortize`.

    Parameters
    ----------
    path
        The folder of a run that has ended, or its `model.safetensors`.
    net
        A network (or encoder) like the one that was saved, if it was one of your own.
    transform
        A transformation like the one that was saved, if it was one of your own.

    Returns
    -------
    Module
        The model in evaluation mode; a `HyperExtractor` for a run of `amortize`.
    """
    file = model_file(Path(path))
    saved, tensors = read_tensors(file)
    standardised = any(name.endswith("input_mean") for name in tensors)
    model = _build(saved, net, transform, standardised)
    if net is not None and set(model.state_dict()) != set(tensors):
        wrapped = _build(saved, LogitsOf(net), transform, standardised)
        model = wrapped if set(wrapped.state_dict()) == set(tensors) else model
    model = in_units(model, saved.target_mean, saved.target_scale)
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise InputError(f"the network does not fit the one that was saved in {file}: {error}") from error
    return model.eval()


def read_tensors(file: Path) -> tuple[SavedModel, dict[str, Tensor]]:
    """Read a model's file and compare it with its checksum."""
    try:
        tensors, metadata = load_tensors(file)
        saved, text = saved_of(metadata)
    except (OSError, ValueError, KeyError, TypeError, RecursionError, SafetensorError) as error:
        raise not_ours(file, error) from error
    if (RECORD in metadata or CHECKSUM in metadata) and metadata.get(CHECKSUM) != digest(text, tensors):
        raise RunError(f"{file} was changed since it was written: its checksum differs. Create or copy it again.")
    if max(saved.n_outputs, saved.features, saved.d_h) > sum(tensor.numel() for tensor in tensors.values()):
        raise RunError(f"{file} is damaged: it holds fewer numbers than the model that it describes.")
    return saved, tensors


def _build(saved: SavedModel, net: nn.Module | None, transform: Transform | None, standardised: bool) -> nn.Module:
    known = ENCODERS if saved.kind in ("extractor", "adapted") else NETWORKS
    if net is None and saved.network not in known:
        raise InputError("this model was made from a network of your own. Give one like it: load_model(path, net).")
    shape, rng = saved.input_shape, generator(0)
    if saved.kind == "extractor":
        return HyperExtractor(net or saved.network, saved.groups, shape, rng, saved.d_h, saved.activation)
    if saved.kind == "adapted":
        encoder = build_encoder(saved.network, shape, rng) if net is None else net
        return nn.Sequential(encoder, bare(nn.Linear, saved.features, saved.n_outputs))
    if net is None:
        net = build_net(saved.network, shape, saved.n_outputs, rng)
        net = Standardised.empty(net, shape[0], len(shape)) if standardised else net
    if saved.kind == "network":
        return net
    if transform is None:
        if saved.generators is None:
            raise InputError(
                "this model was made with a transformation of your own. "
                "Give one like it: load_model(path, transform=...)."
            )
        transform = build_transform(saved.generators, saved.data_kind, shape, saved.sampling)
    if saved.kind == "tied":
        return tie(net, exact_group(transform))
    if saved.kind == "shallow_orbit" and isinstance(net, Shallow):
        return ShallowOrbit(net, transform, saved.samples, saved.samples_eval, saved.side)
    return OrbitAverage(net, transform, saved.samples, saved.samples_eval)
